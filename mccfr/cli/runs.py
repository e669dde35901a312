"""Commands that work on runs: solve, resume, status, verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import rich_click as click

from mccfr.cli.options import (
    bytes_text,
    duration_text,
    force_option,
    json_option,
    limit_options,
    path_type,
    print_json,
)
from mccfr.cli.progress import evaluation_text, reporter

if TYPE_CHECKING:
    from mccfr.games.game import Game
    from mccfr.runs.report import Reporter
    from mccfr.runs.rundir import Run


@click.command()
@click.argument("config", type=path_type)
@click.option("--run", "directory", type=path_type, help="Run directory; default: runs/NAME for NAME.toml.")
@limit_options
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
@force_option
def solve(config: Path, directory: Path | None, overrides: tuple[str, ...], force: bool, **limits: Any) -> None:
    """Start the run that CONFIG describes, or continue it where it stands.

    Continues if DIR already holds a run of the same game, solver and tables; limits may differ. Ctrl-C, SIGTERM and
    SIGUSR1 stop it with a checkpoint (exit status 75). A run that would find too little memory or disk is refused.

    Example: mccfr solve runs/leduc.toml --nodes 1e8 --workers 2 --set solver.discount=linear
    """
    from mccfr.cli.building import stage_reporter
    from mccfr.config.file import config_from, ignored_keys, load_document
    from mccfr.runs.conclude import limited
    from mccfr.runs.start import start_run

    document = load_document(config, overrides)
    settings, ignored = config_from(document, str(config), (config.parent,)), ignored_keys(document)
    settings = msgspec.structs.replace(settings, run=limited(settings.run, limits))
    directory = directory or Path("runs") / config.stem
    with reporter() as report:
        run, game = start_run(
            settings, config.parent, directory, report, force=force, stages=stage_reporter, ignored=ignored
        )
        _train(run, game, report, force=force)


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@limit_options
@force_option
def resume(directory: Path, force: bool, **limits: Any) -> None:
    """Continue the run in DIR from its newest checkpoint.

    Limits are totals of the run, except --time; without any, those of the run's own config hold. Refused, as by solve,
    where memory or disk are too small.

    Example: mccfr resume runs/leduc --nodes 2e8
    """
    from mccfr.runs.conclude import limited
    from mccfr.runs.rundir import open_run, with_settings
    from mccfr.runs.start import prepare_run

    run = open_run(directory)
    run = with_settings(run, run=limited(run.config.run, limits))
    with reporter() as report:
        _train(run, prepare_run(run, report, force=force), report, force=force)


def _train(run: "Run", game: "Game", report: "Reporter", *, force: bool) -> None:
    """Train, export if asked, and end the process with 75 after a signal."""
    from mccfr.runs.conclude import train_and_export

    settings = run.config.run
    if settings.nodes is None and settings.iterations is None and settings.seconds is None:
        report.message("no limit is set: the run goes on until Ctrl-C stops it (with a checkpoint)")
    report.message(
        f"{run.directory}: {game.name}, {int(game.infosets.sum()):,} infosets, "
        f"{bytes_text(run.layout(game).nbytes)} of tables, {_workers_text(settings.workers)}"
    )
    outcome = train_and_export(run, game, report, force=force)
    if outcome.evaluation is not None and not outcome.evaluated:
        report.message(f"last evaluation {evaluation_text(outcome.evaluation)}")
    report.message(_ending(run, outcome))
    if outcome.signal is not None:
        raise click.exceptions.Exit(75)


def _ending(run: "Run", outcome: Any) -> str:
    counts = (
        f"{outcome.totals.nodes:,} nodes, {outcome.totals.iterations:,} iterations, checkpoint {outcome.checkpoint}"
    )
    if outcome.signal is not None:
        return f"stopped by signal {outcome.signal} at {counts}; continue with: mccfr resume {run.directory}"
    return f"done: {counts}; next: mccfr evaluate {run.directory}, or mccfr export {run.directory} OUT"


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@json_option
def status(directory: Path, as_json: bool) -> None:
    """How far the run in DIR is, and whether it is running.

    State: running, stopped (by a signal), finished (a limit was reached), interrupted (it died: resume it).
    """
    from mccfr.runs.rundir import open_run
    from mccfr.runs.status import run_status

    found = run_status(open_run(directory))
    if as_json:
        print_json(found)
        return
    lines = [
        f"state        {found['state']}",
        f"nodes        {found['nodes_touched']:,} (period {found['period']:,})",
        f"iterations   {found['iterations']:,}",
        f"speed        {found['nodes_per_second'] or 0:,.0f} nodes/s, {_workers_text(found['workers'])}"
        + _speeds_text(found),
        f"checkpoint   {'none yet' if found['checkpoint'] is None else found['checkpoint']}",
        f"tables       {bytes_text(found['tables_bytes'])}" + (f" in {found['live_dir']}" if found["live_dir"] else ""),
        f"trained      {duration_text(found['training_seconds'])}",
        *(
            f"silent       worker {silent['worker']} for {duration_text(silent['seconds'])}: {silent['why']}"
            for silent in found["silent_workers"]
        ),
        *_trend_lines(found),
    ]
    if found["last_evaluation"]:
        lines.append(f"evaluation   {evaluation_text(found['last_evaluation'])}")
    click.echo("\n".join(lines))


def _speeds_text(found: dict[str, Any]) -> str:
    """Speeds of the latest metrics, beside that of the session."""
    now, recent = found["nodes_per_second_now"], found["nodes_per_second_recent"]
    return "" if now is None else f"; now {now:,.0f}, over the last minutes {recent:,.0f}"


def _trend_lines(found: dict[str, Any]) -> list[str]:
    """What the newest checkpoint's trend line says, for people."""
    lines, never, lost = [], found["never_reached_per_street"], found["lost_updates"]
    if never is not None:
        shares = ", ".join("not kept" if share is None else f"{share:.2%}" for share in never)
        lines.append(f"never seen   {shares} of the rows, by street")
    if lost is not None:
        sentinels = ", ".join(
            "none" if share is None else f"{share:.1e} ± {error:.0e}"
            for share, error in zip(lost["sentinels_per_street"], lost["sentinel_errors_per_street"], strict=True)
        )
        first = "unknown" if lost["first_decisions"] is None else f"{lost['first_decisions']:.1e}"
        if error := lost.get("first_decisions_error"):  # lines of older versions have none
            first += f" ± {error:.0e}"
        lines.append(f"lost         {first} of the updates at first decisions; at later ones, by street, {sentinels}")
    if found["preflop_change"] is not None:
        lines.append(
            f"change       {found['preflop_change']:.2%} of the first street's average strategy in a checkpoint"
        )
    return lines


def _workers_text(workers: int) -> str:
    return "in its own process" if workers == 0 else "1 worker" if workers == 1 else f"{workers} workers"


@click.command()
@click.argument("path", type=path_type)
def verify(path: Path) -> None:
    """Check every byte of a run, a checkpoint or a policy.

    Prints what is wrong, one line each, and exits with 1; prints "sound" and exits with 0 where nothing is.
    """
    from mccfr.runs.verification import problems_of

    problems = problems_of(path)
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.exceptions.Exit(1)
    click.echo(f"{path}: sound")


COMMANDS = (solve, resume, status, verify)
