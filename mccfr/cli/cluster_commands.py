"""Commands for one run on several machines: cluster local, solve, resume, status."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.progress_display import reporter
from mccfr.cli.run_commands import reopened, report_beginning, report_end, run_directory_of, started
from mccfr.cli.shared_options import (
    abstraction_option,
    answer,
    code_option,
    force_option,
    json_option,
    limit_options,
    path_type,
    replace_option,
    say,
)
from mccfr.cli.stopping import holds_runs, resumable_command
from mccfr.common.signals import EXIT_RESUMABLE
from storage.free_space import bytes_text

if TYPE_CHECKING:
    from mccfr.cluster.launch import Launch
    from mccfr.games.game import Game
    from mccfr.runs.directory.run import Run
    from mccfr.runs.reporter import Reporter
    from mccfr.runs.session.start import Room, Terms

    Prepare = Callable[[Reporter], tuple[Run, Game]]

_RESUME = "the same command"
_run_option = click.option("--run", "directory", type=path_type, help="Run directory; default: runs/NAME.")
_set_option = click.option(
    "--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config."
)
_hosts_option = click.option(
    "--hosts", metavar="A,B,...", help="Start these machines by ssh; this machine comes first."
)


@click.group()
def cluster() -> None:
    """Train one run in strata (run.strata) on several machines.

    A stratum is a set of boards that is trained separately. The result is bit-identical to that of one machine, as
    docs/machines.md describes. These commands need the optional dependencies `cluster`. If srun or mpiexec starts solve
    or resume, they use the machines that it gives them. `mccfr plan --machines N` estimates memory and time.
    """


@cluster.command()
@click.argument("config", type=path_type)
@click.option("--machines", type=click.IntRange(1, 64), default=2, show_default=True, help="Number of machines.")
@_run_option
@code_option
@limit_options
@_set_option
@force_option
@replace_option
@resumable_command(
    lambda config, directory, **_: config if holds_runs(config) else run_directory_of(config, directory), _RESUME
)
def local(config: Path, machines: int, **given: Any) -> None:
    """Start or continue the run that CONFIG describes, with processes in place of machines.

    All processes run on this machine. CONFIG may also be a run's directory. Use the command to test a run on several
    machines. Each has run.workers training processes. If one machine dies, the others continue from the last
    checkpoint.

    Example: mccfr cluster local leduc --machines 3 --set game.ranks=12 --set run.strata=6
    """
    from mccfr.runs.directory.run import is_run

    if is_run(config) and (given["directory"] is not None or given["overrides"]):
        raise ValueError(f"{config} is a run already: leave --run and --set out")
    job = _resuming(config, None, given) if is_run(config) else _solving(config, given, machines)
    _launch(*job, machines, None)


@cluster.command()
@click.argument("config", type=path_type)
@_run_option
@_hosts_option
@code_option
@limit_options
@_set_option
@force_option
@replace_option
@resumable_command(lambda config, directory, **_: run_directory_of(config, directory), _RESUME)
def solve(config: Path, hosts: str | None, **given: Any) -> None:
    """Start or continue the run that CONFIG describes on the machines of this job or of --hosts.

    This job: the machines on which srun or mpiexec starts the command. Otherwise give --hosts.

    Example: srun mccfr cluster solve blueprint.toml
    """
    job = _solving(config, given, None if hosts is None else len(_named(hosts)))
    _launch_or_take_part(run_directory_of(config, given["directory"]), *job, hosts, force=given["force"])


@cluster.command()
@click.argument("directory", metavar="DIR", type=path_type)
@_hosts_option
@code_option
@limit_options
@abstraction_option
@force_option
@replace_option
@resumable_command(lambda directory, **_: directory, _RESUME)
def resume(directory: Path, hosts: str | None, abstraction: Path | None, **given: Any) -> None:
    """Continue the run in DIR on the machines of this job or of --hosts.

    This job: the machines on which srun or mpiexec starts the command. Otherwise give --hosts. The number of machines
    may change; the result does not depend on it.

    Example: srun mccfr cluster resume runs/blueprint
    """
    _launch_or_take_part(directory, *_resuming(directory, abstraction, given), hosts, force=given["force"])


@cluster.command()
@click.argument("directory", metavar="DIR", type=path_type)
@json_option
def status(directory: Path, as_json: bool) -> None:
    """Print strata, speed and waiting time of each training process, up to the last pause of all.

    Strata are the sets of boards that are trained separately. At barriers the processes wait for each other, and their
    changes to the tables of the first street are added up. At a pause, such as for a checkpoint, they stop training.
    """
    from mccfr.cluster.cluster_status import cluster_status
    from mccfr.runs.directory.run import open_run

    newest = cluster_status(open_run(directory))
    answer(newest, as_json, _status_text)


def _status_text(status: Mapping[str, Any]) -> str:
    process = ", process {}" if status["running"] else ""
    session = "" if status["running"] else "no session is running; the last one: "
    ranks = [
        f"\nmachine {rank['machine']} ({rank['host']}{process.format(rank['pid'])}): "
        f"{len(rank['strata'])} strata, "
        f"{rank['nodes_per_second'] / 1e6:.1f} M nodes/s, {rank['waiting_share']:.1%} waiting"
        for rank in status["ranks"]
    ]
    return (
        f"{session}{status['nodes_touched']:,} nodes; since the last pause: {status['barriers']:,} barriers, "
        f"{bytes_text(status['sent_bytes'])} sent and {bytes_text(status['received_bytes'])} received by the "
        f"coordinator, {status['moved_strata']} strata moved{''.join(ranks)}"
    )


def _solving(config: Path, options: Mapping[str, Any], machines: int | None) -> "tuple[Prepare, list[str]]":
    """Return a function that starts or opens a configuration's run, and a command line.

    The command line is the list of words after `mccfr cluster` that every MPI process of the run executes. The function
    takes a `Reporter`, which receives messages, and returns the run and its game.

    options   values of the command's options by name
    machines  number of machines; None: unknown, because srun or mpiexec has started this process
    """
    from mccfr.cluster.capacity import coordinator_problem

    room = partial(coordinator_problem, machines=machines)
    where = run_directory_of(config, options["directory"]), options["overrides"]
    limits, terms = _limits(options), _terms(options, room)
    return lambda report: started(config, *where, limits, terms(report)), ["solve", str(config), *_arguments(options)]


def _resuming(directory: Path, abstraction: Path | None, options: Mapping[str, Any]) -> "tuple[Prepare, list[str]]":
    """Return a function that opens an existing run, and a command line.

    The command line is the list of words after `mccfr cluster` that every MPI process of the run executes. The function
    takes a `Reporter`, which receives messages, and returns the run and its game.

    abstraction  folder of the run's card abstraction, if it was moved; None: it was not
    options      values of the command's options by name
    """
    from mccfr.cluster.capacity import coordinator_problem

    moved = [] if abstraction is None else ["--abstraction", str(abstraction)]
    limits, terms = _limits(options), _terms(options, coordinator_problem)
    arguments = ["resume", str(directory), *moved, *_arguments(options)]
    return lambda report: reopened(directory, abstraction, limits, terms(report)), arguments


def _limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits among a command's options as {name: value}; None: not given."""
    return {key: options[key] for key in ("nodes", "iterations", "seconds", "workers")}


def _terms(options: Mapping[str, Any], room: "Room") -> "Callable[[Reporter], Terms]":
    """Return a function from a `Reporter`, which receives messages, to the `Terms` of starting a run.

    options  values of the command's options by name, of which --force and --replace are used
    room     function that returns a sentence if memory or disk are too small, else None
    """
    from mccfr.runs.session.start import Terms

    return partial(Terms, force=options["force"], replace=options["replace"], room=room)


def _arguments(given: Mapping[str, Any]) -> list[str]:
    """Convert a command's options, {name: value}, back to words of a command line for the MPI processes."""
    options = [("run", given.get("directory")), *(("set", text) for text in given.get("overrides", ()))]
    options += [({"seconds": "time"}.get(key, key), value) for key, value in _limits(given).items()]
    arguments = [part for key, value in options if value is not None for part in (f"--{key}", str(value))]
    return [*arguments, *(f"--{flag}" for flag in ("force", "replace") if given[flag])]


def _launch_or_take_part(
    directory: Path, prepare: "Prepare", arguments: list[str], hosts: str | None, *, force: bool
) -> None:
    """Train as an MPI process if srun or mpiexec has started this one; else start processes on `hosts`.

    directory  directory of the run
    prepare    function that takes a `Reporter` (it receives messages) and returns the run and its game
    arguments  words after `mccfr cluster` that each started process executes
    hosts      value of --hosts, "A,B,..."; None: not given

    force      do not check memory; used only by an MPI process

    Raises `ValueError` if this is no MPI process and `hosts` is None.
    """
    from mccfr.cluster.mpi import is_inside_mpi

    if is_inside_mpi():
        _take_part(directory, prepare, force=force)
        return
    if hosts is None:
        raise ValueError(
            "there are no machines: start this inside srun or mpiexec, or give --hosts; mccfr cluster local simulates "
            "machines on this one"
        )
    machines = _named(hosts)
    _launch(prepare, arguments, len(machines), machines)


def _named(hosts: str) -> list[str]:
    return [host for host in hosts.split(",") if host]


def _take_part(directory: Path, prepare: "Prepare", *, force: bool) -> None:
    """Train the run in `directory` as one of its MPI processes, until a limit or a signal.

    prepare  function that takes a `Reporter` (it receives messages) and returns the run and its game
    force    do not check memory
    """
    from mccfr.cluster.startup_signals import set_startup_signals

    set_startup_signals(status_of=lambda number: EXIT_RESUMABLE if holds_runs(directory) else 128 + number)
    from mccfr.cluster.cluster_session import take_part
    from mccfr.cluster.mpi import World
    from mccfr.runs.session.errors import AbandonedError

    world = World()
    with reporter() as report:

        def prepared() -> "tuple[Run, Game]":
            run, game = prepare(report)
            report_beginning(run, game, report)
            return run, game

        try:
            result = take_part(world, prepared, report, force=force)
        except AbandonedError:
            raise  # the other ranks do not answer, so `leave` would never return
        except BaseException:
            if world.rank == 0:  # it has released the others; another rank that fails ends the job
                world.leave()
            raise
        world.leave()
        if result is not None:
            report_end(*result, report)


def _launch(prepare: "Prepare", arguments: list[str], machines: int, hosts: list[str] | None) -> None:
    """Check the run, start its MPI processes on all machines, and wait for their end.

    One of the processes, the coordinator, leads the others. If its exit status is not 0, the command ends with it.

    prepare    function that takes a `Reporter` (it receives messages) and returns the run and its game
    arguments  words after `mccfr cluster` that each process executes
    machines   number of machines
    hosts      names of the machines; None: processes on this machine

    Raises `ValueError` if the run cannot be trained on so many machines, or ssh does not reach a host. Raises
    `RuntimeError` if machines are lost repeatedly, or fewer answer after a loss than the configuration needs.
    """
    from mccfr.cluster.capacity import check_cluster
    from mccfr.cluster.launch import check_reachable, hosts_launch, local_launch, reachable_hosts, run_to_end
    from mccfr.runs.directory.run import lock

    with reporter() as report:
        run, _ = prepare(report)
        check_cluster(run.config, machines)
        settings, least = run.config.cluster, run.config.cluster.machines[0]
        with lock(run):  # fails if the run is locked; the coordinator locks it later
            pass
        workers = run.config.run.workers

        def left(count: int) -> int:
            if hosts is None:
                return max(least, count - 1)
            hosts[:] = reachable_hosts(hosts)
            if len(hosts) < least:
                raise RuntimeError(f"{len(hosts)} machines answer, and cluster.machines needs {least}")
            return len(hosts)

        def start(count: int) -> "Launch":
            return local_launch(count, workers) if hosts is None else hosts_launch(hosts, workers, settings)

        start(machines)
        if hosts is not None:
            check_reachable(hosts)
    status = run_to_end(run, start, left, ["cluster", *arguments], machines, say)
    if status:
        raise click.exceptions.Exit(status)
