"""Commands that work on runs: solve, resume, status, verify."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import rich_click as click

from mccfr.cli.options import bytes_text, duration_text, json_option, limit_options, path_type, print_json
from mccfr.cli.progress import evaluation_text, reporter

if TYPE_CHECKING:
    from mccfr.config import Config
    from mccfr.tables import TableLayout
    from mccfr.training.rundir import Run


@click.command()
@click.argument("config", type=path_type)
@click.option("--run", "directory", type=path_type, help="Run directory; default: runs/NAME for NAME.toml.")
@limit_options
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
def solve(config: Path, directory: Path | None, overrides: tuple[str, ...], **limits: Any) -> None:
    """Start the run that CONFIG describes, or continue it where it stands.

    Continues if DIR already holds a run of the same game, solver and tables; limits may differ. Ctrl-C, SIGTERM and
    SIGUSR1 stop it with a checkpoint (exit status 75).

    Example: mccfr solve runs/leduc.toml --nodes 1e8 --workers 2 --set solver.discount=linear
    """
    from mccfr.config import load_config
    from mccfr.games.build import configured_game
    from mccfr.plan import planned_layout
    from mccfr.training import rundir

    settings = load_config(config, overrides)
    run_settings = msgspec.structs.replace(settings.run, **_given(limits))
    settings = msgspec.structs.replace(settings, run=run_settings)
    directory = directory or Path("runs") / config.stem
    if rundir.is_run(directory):
        run = rundir.open_run(directory)
        rundir.check_same_run(run, settings, config.parent)
        run = rundir.with_settings(
            run, run=settings.run, evaluation=settings.evaluation, export=settings.export, tables=settings.tables
        )
        _train(run)
        return
    _build_abstraction(settings, config.parent)
    game = configured_game(settings, config.parent)
    layout = planned_layout(settings, game)
    _check_room(layout, settings)
    _train(rundir.create_run(settings, config.parent, directory, layout), game)


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@limit_options
def resume(directory: Path, **limits: Any) -> None:
    """Continue the run in DIR from its newest checkpoint.

    Limits are totals of the run, except --time; without any, those of the run's own config hold.

    Example: mccfr resume runs/leduc --nodes 2e8
    """
    from mccfr.training import rundir

    run = rundir.open_run(directory)
    settings = msgspec.structs.replace(run.config.run, **_given(limits))
    _train(rundir.with_settings(run, run=settings))


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    """The limits that were given.  One kind replaces the others: --nodes 1e8 is not ended by the config's seconds."""
    given = {key: value for key, value in limits.items() if value is not None}
    if {"nodes", "iterations", "seconds"} & set(given):
        return {"nodes": None, "iterations": None, "seconds": None, **given}
    return given


def _build_abstraction(settings: "Config", base: Path) -> None:
    """Build the abstraction that the config's recipe describes, unless all of it is there."""
    wanted = settings.abstraction
    if wanted is None or wanted.recipe is None:
        return
    from abstraction.build import Builder
    from abstraction.recipe import load_recipe
    from mccfr.cli.abstraction import stage_reporter

    recipe = load_recipe(base / wanted.recipe)
    Builder(recipe, base / wanted.path, max(1, settings.run.workers), stage_reporter()).build()


def _check_room(layout: "TableLayout", config: "Config") -> None:
    """Raise `MemoryError` or `ValueError`, with both numbers, where the live tables would find no room."""
    from storage.live import check_room

    try:
        check_room(layout.specs, format=config.tables.format, live_dir=config.tables.live_dir)
    except OSError as error:  # a full or missing live_dir is bad input, unlike a disk that fails later
        raise ValueError(error.strerror or str(error)) from None


def _train(run: "Run", game: Any = None) -> None:
    """Train, export if asked, and end the process with 75 after a signal."""
    from mccfr.training.run import train
    from mccfr.training.rundir import is_locked

    settings = run.config.run
    with reporter() as report:
        game = run.build_game() if game is None else game
        if not (run.path("live").is_symlink() and is_locked(run)):  # a running run has its tables already
            _check_room(run.layout(game), run.config)
        if settings.nodes is None and settings.iterations is None and settings.seconds is None:
            report.message("no limit is set: the run goes on until Ctrl-C stops it (with a checkpoint)")
        report.message(
            f"{run.directory}: {game.name}, {int(game.infosets.sum()):,} infosets, "
            f"{bytes_text(run.layout(game).nbytes)} of tables, {_workers_text(settings.workers)}"
        )
        outcome = train(run, game, report)
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
        f"speed        {found['nodes_per_second'] or 0:,.0f} nodes/s, {_workers_text(found['workers'])}",
        f"checkpoint   {'none yet' if found['checkpoint'] is None else found['checkpoint']}",
        f"tables       {bytes_text(found['tables_bytes'])}" + (f" in {found['live_dir']}" if found["live_dir"] else ""),
        f"trained      {duration_text(found['training_seconds'])}",
    ]
    if found["last_evaluation"]:
        lines.append(f"evaluation   {evaluation_text(found['last_evaluation'])}")
    click.echo("\n".join(lines))


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
