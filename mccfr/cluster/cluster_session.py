"""Sessions on several machines: finds the ranks, checks that their software agrees, starts training.

A session is one stretch of training, from a start to a stop. A rank is an MPI process, and all ranks call `take_part`.
Rank 0, the coordinator, creates or opens the run and returns the session's outcome. The others train until rank 0 ends
them.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mccfr.cluster.assignment import assign_strata
from mccfr.cluster.capacity import check_cluster, memory_of_machines, ranks_problem
from mccfr.cluster.compatibility import disagreement, facts_of, new_token, shared_directory
from mccfr.cluster.messages import RankLocation, copy_machines
from mccfr.cluster.mpi import MpiEngine, World, host_name, serve
from mccfr.cluster.rank_pool import cluster_pool_opener, restore_copies
from mccfr.cluster.trainer import Trainer, new_order
from mccfr.common.signals import take
from mccfr.config.plugins import grant, permissions
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run, open_run
from mccfr.runs.reporter import Reporter
from mccfr.runs.session.errors import AbandonedError
from mccfr.runs.session.train_and_export import train_and_export
from mccfr.runs.session.training_session import Outcome
from storage.damage import UnreadableError
from storage.durable import error_text
from storage.free_space import available_memory_bytes
from storage.open_directory import OpenDirectory, errors_shown, shown

Ended = tuple[Run, Outcome, Path | None]
"""The run, its outcome, and the path of the export."""


def rank_locations(hosts: Sequence[str], workers: int) -> list[RankLocation]:
    """Return the machine number and host of each training process (rank) from its host name.

    hosts    host name of each rank
    workers  number of ranks of each machine; 0 counts as 1

    Ranks on one host are grouped into machines of `workers` ranks, in order. One host may simulate several machines.
    The results have no process ids (0) and no memory sizes (infinite).
    """
    locations: list[RankLocation] = []
    ranks_on_host: dict[str, int] = {}
    numbers: dict[tuple[str, int], int] = {}
    for host in hosts:
        machine_of_host = ranks_on_host.get(host, 0) // max(1, workers)
        ranks_on_host[host] = ranks_on_host.get(host, 0) + 1
        locations.append(RankLocation(numbers.setdefault((host, machine_of_host), len(numbers)), host, 0))
    return locations


def take_part(
    world: World, prepare: Callable[[], tuple[Run, Game]], reporter: Reporter, *, force: bool = False
) -> Ended | None:
    """Run one process's part of a training session on several machines, from its start to its end.

    MPI process 0 leads; all others train.

    world    the MPI job: number of this process, and messages to the others
    prepare  function that creates or opens the run and returns it with its game; called by process 0 only
    force    do not check memory

    Returns (run, outcome: why training ended, path of the export or None) on process 0, and None on the others.

    On process 0, it raises `ValueError` if machines differ in software, run or processor, or have too little memory.
    Also if there is no other process. It raises `RuntimeError` if a process cannot read a file. It passes on the errors
    of `prepare`, and `RuntimeError`, `OSError` or `MemoryError` of training.
    """
    if world.rank:
        _train(world)
        return None
    if world.size < 2:
        raise ValueError("there is one rank, which coordinates and does not train: start at least two ranks")
    try:
        run, game = prepare()
    except BaseException:
        _send_to_all(world, {"go": False})
        raise
    with OpenDirectory(run.directory) as opened, errors_shown():
        return run, *_coordinate(world, replace(run, directory=opened.path), game, reporter, force=force)


def _coordinate(world: World, run: Run, game: Game, reporter: Reporter, *, force: bool) -> tuple[Outcome, Path | None]:
    """Lead a training session as MPI process 0; return outcome and path of the export, or None.

    A session is training from a start to a stop; the outcome says why it stopped. The caller holds the run's directory
    open. An error ends the training processes and is passed on. `AbandonedError`, after a second signal, is passed on
    without ending them.

    force  do not check memory
    """
    try:
        ranks = _check_agreement(world, run, game, force=force)
    except BaseException:
        _send_to_all(world, {"go": False})
        raise
    for rank, machine in enumerate(copy_machines(ranks)):
        world.send_text(1 + rank, {"go": True, "keeps_for": machine})
    game = world.share_buckets(game, run.algorithm)
    answers = [world.receive_text(rank) for rank in range(1, world.size)]
    order = new_order(run, game)
    engine = MpiEngine(world, ranks, len(order.owner), len(order.first))
    refusals = [answer for answer in answers if "problem" in answer]
    _send_to_all(world, {"go": not refusals})
    _refuse(refusals)
    try:
        restore_copies(run, game, engine, reporter)
        return train_and_export(run, game, reporter, force=force, pools=cluster_pool_opener(engine))
    except AbandonedError:
        raise
    except BaseException:
        engine.close()
        raise


def _refuse(answers: Sequence[Mapping[str, Any]]) -> None:
    """Raise an error if at least one training process cannot take part.

    answers  a message from each process that cannot take part; empty: do nothing
             host     name of its machine
             problem  sentence on the reason
             system   True if the operating system could not read a file; False for all other reasons

    The error is about the first message whose `system` is True, or the first of all if there is none. It is a
    `RuntimeError` if `system` is True, else a `ValueError`.
    """
    for answer in sorted(answers, key=lambda answer: not answer["system"]):
        kind = RuntimeError if answer["system"] else ValueError
        raise kind(f"{answer['host']} cannot take part: {answer['problem']}")


def _send_to_all(world: World, value: Mapping[str, Any]) -> None:
    for rank in range(1, world.size):
        world.send_text(rank, value)


def _check_agreement(world: World, run: Run, game: Game, *, force: bool) -> list[RankLocation]:
    """Check that all machines have the same software, run and kind of processor.

    Returns machine number, host and process id of each training process, and the machine's memory unless `force`.

    force  do not check the memory of the machines

    Raises `ValueError` with the first difference, and if the run cannot use so many machines or they have too little
    memory. Raises `RuntimeError` if a training process cannot read a file.
    """
    check_cluster(run.config, -(-(world.size - 1) // max(1, run.config.run.workers)))
    token = new_token(run)
    _send_to_all(world, {"go": True, "run": str(run.directory.resolve()), "token": token, **_startup_facts(run)})
    facts = [facts_of(run), *(world.receive_text(rank) for rank in range(1, world.size))]
    _refuse([fact for fact in facts if "problem" in fact])
    problem = disagreement(facts)
    if problem is not None:
        raise ValueError(problem)
    locations = rank_locations([fact["host"] for fact in facts[1:]], run.config.run.workers)
    check_cluster(run.config, len({location.machine for location in locations}))
    if not force:
        locations = with_memory(locations, [fact["memory_bytes"] for fact in facts[1:]])
        check_machine_memory(run, game, locations)
    return [location._replace(pid=fact["pid"]) for location, fact in zip(locations, facts[1:], strict=True)]


def with_memory(locations: Sequence[RankLocation], memory_bytes: Sequence[int]) -> list[RankLocation]:
    """Return the locations of training processes, with the available bytes of their machines added.

    locations     machine number and host of each training process
    memory_bytes  available bytes of each process's host, divided equally among the machines that the host simulates
    """
    on_host = Counter(host for _, host in {(location.machine, location.host) for location in locations})
    parts = (available / on_host[location.host] for location, available in zip(locations, memory_bytes, strict=True))
    return [location._replace(memory_bytes=part) for location, part in zip(locations, parts, strict=True)]


def check_machine_memory(run: Run, game: Game, locations: Sequence[RankLocation]) -> None:
    """Raise `ValueError` if the run's tables do not fit in the memory of the machines.

    The tables are divided by groups of flops (strata), and each training process gets whole groups.

    locations  machine number and available bytes of each training process
    """
    assert game.strata is not None
    memory = memory_of_machines(run.config, game, run.layout(game), locations)
    owner = assign_strata(game.strata.shares, [1.0] * len(locations), memory)
    problem = ranks_problem(run.config, game, run.layout(game), locations, owner)
    if problem is not None:
        raise ValueError(f"{problem}; or use --force")


def _startup_facts(run: Run) -> dict[str, Any]:
    """Return {name: value} of the facts that training processes need to open the run.

    "code" has the imports of user code that are permitted, "abstraction" the path of the card abstraction. Runs without
    an abstraction lack the second.
    """
    abstraction, code = run.abstraction_path, permissions()
    return {"code": code} if abstraction is None else {"code": code, "abstraction": str(abstraction.resolve())}


def _train(world: World) -> None:
    """Run a training process: open the run, and train until the coordinator (process 0) ends it.

    Before training it sends the coordinator its software versions and processor features, which must agree.
    """
    take(signal.SIG_IGN)
    invitation = world.receive_text(0)
    if not invitation["go"]:
        return
    with ExitStack() as stack:
        run = None
        try:
            directory = shared_directory(Path(invitation["run"]), invitation["token"])
            stack.callback(directory.close)
            grant(invitation["code"])
            run = open_run(directory.path, Path(invitation["abstraction"]) if "abstraction" in invitation else None)
            world.send_text(0, {**facts_of(run), "pid": os.getpid(), "memory_bytes": available_memory_bytes()})
        except (ValueError, OSError) as error:
            world.send_text(0, _problem(error))
        _train_strata(world, run)


def _train_strata(world: World, run: Run | None) -> None:
    """Create the tables of a training process, and do what the coordinator (process 0) orders.

    run  the opened run; None: this process could not open it, and only waits until the coordinator gives up
    """
    order = world.receive_text(0)
    if not order["go"] or run is None:
        return
    game, trainer = run.build_game(), None
    game = world.share_buckets(game, run.algorithm)
    try:
        trainer = Trainer(run, game, world.rank - 1, order["keeps_for"])
        world.send_text(0, {"host": host_name()})
    except (MemoryError, ValueError, OSError) as error:
        world.send_text(0, _problem(error))
    if world.receive_text(0)["go"] and trainer is not None:
        serve(world, trainer)


def _problem(error: Exception) -> dict[str, Any]:
    """Return the message of a training process that cannot take part, {name: value}.

    `host` is its machine's name, `problem` a sentence on one line. `system` is True if the operating system could not
    read a file (`UnreadableError`).

    error  the reason
    """
    unreadable = isinstance(error, UnreadableError)
    text = str(error) if unreadable else error_text(error)
    return {"host": host_name(), "problem": " ".join(shown(text).split()) or type(error).__name__, "system": unreadable}
