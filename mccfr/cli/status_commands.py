"""Commands that show, stop or plot runs of other processes: status, stop, tensorboard."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rich_click as click

from mccfr.cli.shared_options import (
    Duration,
    abstraction_option,
    code_option,
    json_option,
    path_type,
    print_json,
    refuse_options_without_effect,
    table_lines,
    workers_text,
)
from mccfr.runs.reporter import duration_text
from storage.free_space import bytes_text


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@click.option("--watch", is_flag=True, help="Repeat until no process trains the run; Ctrl-C stops.")
@click.option("--every", default="2s", show_default=True, type=Duration(), help="Time between two looks of --watch.")
@abstraction_option
@json_option
def status(directory: Path, watch: bool, every: float, abstraction: Path | None, as_json: bool) -> None:
    """Print the state and progress of the run in DIR, or a line for each run in a folder.

    States: running, stopped (by a signal), finished (at a limit), failed (with the error), interrupted (its process was
    killed). All but a running one continue with `resume`. Exit status 1: a run of the folder cannot be read.

    Example: mccfr status runs --watch
    """
    if not watch:
        refuse_options_without_effect("without --watch", "every")
    with _shown(watch and not as_json) as show:
        while True:
            result = _look(directory, abstraction)
            if as_json:
                print_json(result)
            else:
                show(_list_text(result) if isinstance(result, list) else _run_text(result))
            rows = result if isinstance(result, list) else [result]
            if not watch or all(row.get("state") != "running" for row in rows):
                break
            time.sleep(max(0.1, every))
    if unreadable := [row["run"] for row in rows if "problem" in row]:
        click.echo(f"mccfr: {directory}: {', '.join(unreadable)} cannot be read: the status above says why", err=True)
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@click.option("--after-checkpoint", is_flag=True, help="End at the next regular checkpoint, on any machine.")
@json_option
def stop(directory: Path, after_checkpoint: bool, as_json: bool) -> None:
    """Stop the run in DIR with a checkpoint, as Ctrl-C does, and wait for its end.

    A second `stop`, at least a second later, ends the process without a checkpoint. Stop a run of another machine on
    that machine, or with --after-checkpoint.

    Example: mccfr stop runs/leduc
    """
    from mccfr.runs.directory.run import open_to_look
    from mccfr.runs.directory.run_status import run_status, stop_run

    run = open_to_look(directory)
    stop_run(run, lambda text: click.echo(f"mccfr: {text}", err=True), after_checkpoint=after_checkpoint)
    result = run_status(run)
    if as_json:
        print_json(result)
    else:
        reason = "" if result["failure"] is None else f" ({result['failure']})"
        checkpoint = "no checkpoint" if result["checkpoint"] is None else f"checkpoint {result['checkpoint']}"
        click.echo(
            f"{result['state']}{reason} at {result['nodes_touched']:,} nodes, {result['iterations']:,} iterations, "
            f"{checkpoint}; continue with: mccfr resume {directory}"
        )
    if result["state"] in ("failed", "interrupted"):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@click.argument("out", type=path_type)
@click.option("--watch", is_flag=True, help="Repeat until no process trains a run; Ctrl-C stops.")
@click.option("--every", default="30s", show_default=True, type=Duration(), help="Time between two writes of --watch.")
@code_option
@abstraction_option
def tensorboard(directory: Path, out: Path, watch: bool, every: float, abstraction: Path | None) -> None:
    """Write the curves of the run in DIR, or of every run in a folder, to OUT for TensorBoard.

    The curves show speed and counters of training, the state of the tables, such as shares of infosets never reached,
    and evaluations, over nodes touched. A repeated call adds only new points. The command does not need TensorBoard; to
    see the curves, run: tensorboard --logdir OUT.

    Example: mccfr tensorboard runs curves --watch
    """
    from mccfr.runs.directory.run import is_locked, is_run, open_run
    from mccfr.runs.directory.run_status import runs_in
    from mccfr.runs.results.tensorboard import write_events

    if not watch:
        refuse_options_without_effect("without --watch", "every")
    one = is_run(directory) or not directory.is_dir()
    if abstraction is not None and not one:
        raise _of_one_run(directory)
    paths = [directory] if one else runs_in(directory)
    runs = [open_run(path, abstraction) for path in paths]
    if not runs:
        raise ValueError(
            f"{directory} is not a run directory, and contains none: give the directory of a run, or a folder of runs"
        )
    while True:
        running = any(map(is_locked, runs))
        events = sum(write_events(run, out / run.directory.resolve().name) for run in runs)
        if not (watch and running):
            break
        time.sleep(max(1.0, every))
    count = f"{events:,} events of {len(runs)} run{'s' * (len(runs) != 1)}"
    click.echo(f"wrote {out}: {count}; next: tensorboard --logdir {out}", err=True)


def _look(directory: Path, abstraction: Path | None) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the fields of `mccfr status --json`: of a run, or a list of those of a folder's runs.

    directory    a run, or a folder that contains runs
    abstraction  folder of the run's card abstraction, if it was moved; None: it was not

    Raises `ValueError` if `directory` is neither, and for a folder of runs with `abstraction`.
    """
    from mccfr.runs.directory.run import is_run, open_to_look
    from mccfr.runs.directory.run_status import run_list, run_status

    if not is_run(directory) and directory.is_dir() and (rows := run_list(directory)):
        if abstraction is not None:
            raise _of_one_run(directory)
        return rows
    return run_status(open_to_look(directory, abstraction))


def _of_one_run(directory: Path) -> ValueError:
    return ValueError(
        f"--abstraction is for one run, and {directory} is a folder of runs: give the directory of one run"
    )


@contextmanager
def _shown(watch: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints a text; with --watch on a terminal it replaces the previous text."""
    if not watch:
        yield click.echo
    elif not sys.stdout.isatty():
        yield lambda text: click.echo(f"{text}\n")
    else:
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False) as live:
            yield lambda text: live.update(Text(text), refresh=True)


def _list_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return the runs of a folder as a table of text, with a line for each run; failures follow the table.

    rows  for each run the fields of `mccfr status --json`; of one that cannot be read `run` and `problem`
    """
    from mccfr.evaluation.methods.registry import find_method

    lines = [("run", "game", "algorithm", "state", "nodes", "trained", "checkpoint", "last evaluation")]
    for row in rows:
        if "problem" in row:
            lines.append((row["run"], "", "", "unreadable", "", "", "", row["problem"]))
            continue
        last = row["last_evaluation"]
        lines.append(
            (
                row["run"],
                row["game"],
                row["algorithm"],
                row["phase"] or row["state"],
                f"{row['nodes_touched']:,}",
                duration_text(row["training_seconds"]),
                "" if row["checkpoint"] is None else str(row["checkpoint"]),
                "" if last is None else find_method(last["method"]).short(last),
            )
        )
    table = table_lines(lines, right=(4, 5, 6))
    for row in rows:
        table += [f"{row['run']}: {row[key]}" for key in ("failure", "abstraction_problem") if row.get(key)]
    return "\n".join(table)


def _run_text(status: dict[str, Any]) -> str:
    """Return the status of one run as lines of text: state, counts, speed, tables, evaluations.

    status  fields of `mccfr status --json`
    """
    from mccfr.cli.progress_display import evaluation_text

    lines = [
        f"state        {status['state']}" + (f": {said}" if (said := status["phase"] or status["failure"]) else ""),
        *([f"process      {status['process']} on {status['machine']}"] if status["process"] else []),
        f"nodes        {status['nodes_touched']:,} (period {status['period']:,})",
        f"iterations   {status['iterations']:,}",
        f"speed        {_speed_text(status)}; {workers_text(status['workers'])}",
        f"checkpoint   {'none yet' if status['checkpoint'] is None else status['checkpoint']}",
        f"tables       {_memory_text(status)}",
        *([f"abstraction  {status['abstraction_problem']}"] if status["abstraction_problem"] else []),
        f"trained      {duration_text(status['training_seconds'])}",
        *(
            f"silent       worker {silent['worker']} for {duration_text(silent['seconds'])}: {silent['why']}"
            for silent in status["silent_workers"]
        ),
        *_trend_lines(status),
    ]
    lines += _bound_lines(status["bounds"])
    last = status["last_evaluation"]
    if last and last["exploitability_chips"] is None:
        lines.append(f"evaluation   {evaluation_text(last)}")
    return "\n".join(lines)


def _speed_text(status: dict[str, Any]) -> str:
    """Return a text on a run's nodes per second, since its last start and in its last minutes.

    status  fields of `mccfr status --json`
    """
    if status["nodes_per_second"] is None:
        return "not measured yet"
    recent = status["nodes_per_second_recent"]
    minutes = "" if recent is None else f", {recent:,.0f} in its last minutes of training"
    ago = duration_text(max(0.0, time.time() - status["speed_unix_seconds"]))
    return f"{status['nodes_per_second']:,.0f} nodes/s in the newest session{minutes}, up to {ago} ago"


def _memory_text(status: dict[str, Any]) -> str:
    """Return the size of a run's tables as text.

    While the run trains, the text also has the tables' folder, and the bytes that lie in huge pages of memory.

    status  fields of `mccfr status --json`
    """
    size = "unknown" if status["tables_bytes"] is None else bytes_text(status["tables_bytes"])
    where = f" in {status['live_dir']}" if status["live_dir"] else ""
    return size + where + (f", {bytes_text(status['huge_bytes'])} of it in huge pages" if status["huge_bytes"] else "")


def _bound_lines(bounds: list[dict[str, Any]]) -> list[str]:
    """Return lines on the newest exploitability figures, with a note if one is higher than before.

    bounds  a dictionary for each method: `now`, its newest evaluation record, and `before`, the one before or None
    """
    from mccfr.cli.progress_display import evaluation_text

    lines = []
    for pair in bounds:
        now, before = pair["now"], pair["before"]
        lines.append(f"evaluation   {evaluation_text(now)}")
        if before is not None and now["exploitability_chips"] > before["exploitability_chips"]:
            least = (now.get("ci95_chips") or [now["exploitability_chips"]])[0]
            most = (before.get("ci95_chips") or [before["exploitability_chips"]])[-1]
            sure = "" if least > most else ", within the intervals"
            lines.append(
                f"             risen from {before['exploitability_chips']:.4g} chips at {before['nodes_touched']:,} "
                f"nodes{sure}"
            )
    return lines


def _trend_lines(status: dict[str, Any]) -> list[str]:
    """Return lines of text on the state of the tables at the newest checkpoint.

    They show the share of infosets that no traversal has reached, by street. For 16-bit tables they show the number of
    rows whose scale is the largest: their values are cut off or soon will be. For tables larger than memory they show
    the bytes moved between disk and memory, and the time of it. Lines that do not apply are left out.

    status  fields of `mccfr status --json`
    """
    lines, never = [], status["never_reached_per_street"]
    if never is not None:
        shares = ", ".join("not kept" if share is None else f"{share:.2%}" for share in never)
        lines.append(f"never seen   {shares} of the rows, by street")
    if status["saturated_rows"] is not None:
        lines.append(f"saturated    {status['saturated_rows']:,} rows of 16-bit tables at the largest scale")
    if (disk := status["disk"]) is not None:
        lines.append(
            f"blocks       {bytes_text(disk['moved_bytes'])} moved in {duration_text(disk['moving_seconds'])}, "
            f"{duration_text(disk['waiting_seconds'])} waited for them"
        )
    return lines
