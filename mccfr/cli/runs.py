"""Commands that work on runs: solve, resume, status, verify."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import rich_click as click

from mccfr.cli.options import bytes_text, duration_text, json_option, limit_options, path_type, print_json
from mccfr.cli.progress import evaluation_text, reporter

if TYPE_CHECKING:
    from mccfr.config import Config
    from mccfr.games.game import Game
    from mccfr.tables import TableLayout
    from mccfr.training.rundir import Run

force_option = click.option("--force", is_flag=True, help="Run although memory or disk are too small for it.")


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
    from mccfr.config_file import config_from, ignored_keys, load_document
    from mccfr.games.build import build_game
    from mccfr.games.holdem_deck import HoldemDeck
    from mccfr.plan import planned_layout
    from mccfr.solvers.configured import configured_game
    from mccfr.solvers.registry import algorithm_of
    from mccfr.training import rundir
    from mccfr.training.evaluator import check_evaluation

    document = load_document(config, overrides)
    settings = config_from(document, str(config))
    run_settings = msgspec.structs.replace(settings.run, **_given(limits))
    settings = msgspec.structs.replace(settings, run=run_settings)
    rehearsal = build_game(settings.game, config.parent, settings.abstraction)  # what is wrong, is so at once
    settings = algorithm_of(settings).completed(rehearsal)
    directory = directory or Path("runs") / config.stem
    if rundir.is_run(directory):
        run = rundir.open_run(directory)
        rundir.check_same_run(run, settings, config.parent)
        run = rundir.with_settings(
            run, run=settings.run, evaluation=settings.evaluation, export=settings.export, tables=settings.tables
        )
        _train(run, ignored=ignored_keys(document), force=force)
        return
    check_evaluation(settings.evaluation, rehearsal)
    if settings.abstraction is None or isinstance(rehearsal.cards, HoldemDeck):  # sizes are known before it is built
        _find_room(settings, rehearsal, planned_layout(settings, rehearsal), directory, force)
    _find_abstraction(settings, config.parent)
    game = configured_game(settings, config.parent)
    layout = planned_layout(settings, game)
    warning = _find_room(settings, game, layout, directory, force)
    run = rundir.create_run(settings, config.parent, directory, layout)
    _train(run, game, warning, ignored=ignored_keys(document), force=force)


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
    from mccfr.training import rundir

    run = rundir.open_run(directory)
    settings = msgspec.structs.replace(run.config.run, **_given(limits))
    _train(rundir.with_settings(run, run=settings), force=force)


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    """The limits that were given.  One kind replaces the others: --nodes 1e8 is not ended by the config's seconds."""
    given = {key: value for key, value in limits.items() if value is not None}
    if {"nodes", "iterations", "seconds"} & set(given):
        return {"nodes": None, "iterations": None, "seconds": None, **given}
    return given


def _find_abstraction(settings: "Config", base: Path) -> None:
    """Build the abstraction that the config's recipe describes, or see that the one it names is sound in every byte."""
    wanted = settings.abstraction
    if wanted is None:
        return
    from abstraction.buckets import is_abstraction, verify_abstraction
    from abstraction.build import Builder
    from abstraction.recipe import load_recipe
    from mccfr.cli.abstraction import stage_reporter

    path = base / wanted.path
    if wanted.recipe is not None:
        Builder(load_recipe(base / wanted.recipe), path, max(1, settings.run.workers), stage_reporter()).build()
    elif is_abstraction(path):
        for problem in verify_abstraction(path):
            raise ValueError(f"{path}: {problem}: build the abstraction again")


def _find_room(config: "Config", game: "Game", layout: "TableLayout", directory: Path, force: bool) -> str | None:
    """Raise `ValueError`, with both numbers, where the run finds too little memory or disk; with `force`, return it."""
    from mccfr.plan import room_problem

    problem = room_problem(config, game, layout, directory)
    if problem is not None and not force:
        raise ValueError(f"{problem}; or use --force")
    return problem


def _train(
    run: "Run", game: Any = None, warning: str | None = None, *, ignored: Sequence[str] = (), force: bool = False
) -> None:
    """Train, export if asked, and end the process with 75 after a signal."""
    from mccfr.training.run import train
    from mccfr.training.rundir import is_locked

    settings = run.config.run
    with reporter() as report:
        if game is None:
            game = run.build_game()
            if not (run.path("live").is_symlink() and is_locked(run)):  # a running run has its tables already
                warning = _find_room(run.config, game, run.layout(game), run.directory, force)
        if warning is not None:
            report.message(f"going on, as --force says, although {warning}")
        for sentence in run.algorithm.warnings():
            report.message(sentence)
        for key in ignored:
            report.message(f"solver.{key} is ignored by algorithm {run.algorithm.name!r}")
        if settings.nodes is None and settings.iterations is None and settings.seconds is None:
            report.message("no limit is set: the run goes on until Ctrl-C stops it (with a checkpoint)")
        report.message(
            f"{run.directory}: {game.name}, {int(game.infosets.sum()):,} infosets, "
            f"{bytes_text(run.layout(game).nbytes)} of tables, {_workers_text(settings.workers)}"
        )
        outcome = train(run, game, report, force=force)
        if outcome.evaluation is not None and not outcome.evaluated:
            report.message(f"last evaluation {evaluation_text(outcome.evaluation)}")
        export = run.config.export
        if outcome.signal is None and export is not None:
            from mccfr.results import export_run

            out = export_run(run, game, Path(export.out), export.format, export.quantise, outcome.checkpoint)
            report.message(f"exported to {out}")
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
    from mccfr.training.rundir import open_run
    from mccfr.training.status import run_status

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
    from mccfr.verification import problems_of

    problems = problems_of(path)
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.exceptions.Exit(1)
    click.echo(f"{path}: sound")


COMMANDS = (solve, resume, status, verify)
