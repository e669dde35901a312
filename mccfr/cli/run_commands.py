"""Commands that train and check runs: solve, resume, verify."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.progress_display import evaluation_text, reporter
from mccfr.cli.shared_options import (
    abstraction_option,
    aside_options,
    code_option,
    file_or_example,
    force_option,
    limit_options,
    path_type,
    replace_option,
    workers_text,
)
from mccfr.cli.stopping import resumable_command
from mccfr.common.signals import SignalInterrupt
from storage.free_space import bytes_text

if TYPE_CHECKING:
    from mccfr.games.game import Game
    from mccfr.runs.directory.run import Run
    from mccfr.runs.reporter import Reporter
    from mccfr.runs.session.start import Terms
    from mccfr.runs.session.training_session import Outcome


@click.command()
@click.argument("config", type=path_type)
@click.option("--run", "directory", type=path_type, help="Run directory; default: runs/NAME for NAME.toml.")
@code_option
@limit_options
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
@force_option
@replace_option
@aside_options
@resumable_command(lambda config, directory, **_: run_directory_of(config, directory))
def solve(
    config: Path,
    directory: Path | None,
    overrides: tuple[str, ...],
    force: bool,
    replace: bool,
    aside: tuple[int, ...],
    from_scratch: bool,
    **limits: Any,
) -> None:
    """Start the run that CONFIG describes, or continue it from its newest checkpoint.

    CONFIG is a TOML file, or the name of an example (kuhn, leduc, subgame, hunl-quick ...), which is copied to runs/
    first. An existing run of the same game, solver and tables continues; limits may differ. Ctrl-C, SIGHUP, SIGTERM and
    SIGUSR1 stop it with a checkpoint (exit status 75; 128 + N before the run exists). The next `solve` or `resume` then
    does the evaluations and the export that are due. A second signal, at least a second later, ends it without a
    checkpoint. It does not start with too little memory or disk, or if its export would replace another run's.

    Example: mccfr solve runs/leduc.toml --nodes 1e8 --workers 2 --set solver.discount=linear
    """
    from mccfr.runs.session.start import Terms

    directory = run_directory_of(config, directory)
    with reporter() as report:
        run, game = started(config, directory, overrides, limits, Terms(report, force=force, replace=replace))
        _train(run, game, report, force=force, aside=None if from_scratch else aside)


def run_directory_of(config: Path, directory: Path | None) -> Path:
    """Return `directory`, or if it is None the default for configuration NAME.toml: runs/NAME."""
    return directory or Path("runs") / config.stem


def started(
    config: Path, directory: Path, overrides: tuple[str, ...], limits: Mapping[str, Any], terms: "Terms"
) -> "tuple[Run, Game]":
    """Create or reopen the run of a configuration, with given limits; return run and game.

    config     a TOML file, or the name of an example, which is copied to runs/ first
    directory  directory of the run, existing or not
    overrides  texts TABLE.KEY=VALUE of --set
    limits     nodes, iterations, seconds and workers of the command line; None: not given
    terms      permissions of --force and --replace, and the receiver of messages

    Raises `ValueError` if `config` is a run directory or invalid, and for too little memory or disk.
    """
    from msgspec import structs

    from mccfr.config.toml_files import load_config, parse_override
    from mccfr.runs.directory.run import is_run
    from mccfr.runs.session.start import start_run
    from mccfr.runs.session.train_and_export import limited

    if is_run(config):
        raise ValueError(f"{config} is a run already: continue it with mccfr resume {config}")
    with file_or_example(config) as file:
        settings = load_config(file, overrides)
        overridden = [parse_override(text)[0] for text in overrides]
        settings = structs.replace(settings, run=limited(settings.run, limits, overridden))
        return start_run(settings, file.parent, directory, terms)


@click.command()
@click.argument("directory", metavar="DIR", type=path_type)
@limit_options
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Change a key that may change.")
@code_option
@abstraction_option
@force_option
@replace_option
@aside_options
@resumable_command(lambda directory, **_: directory)
def resume(
    directory: Path,
    overrides: tuple[str, ...],
    abstraction: Path | None,
    force: bool,
    replace: bool,
    aside: tuple[int, ...],
    from_scratch: bool,
    **limits: Any,
) -> None:
    """Continue the run in DIR from its newest checkpoint.

    Limits are totals of the run, except --time. Limits and --set run.KEY also hold when the run is continued later,
    until they are changed. --set of another table holds for this command only. Like solve, it does not start with too
    little memory or disk.

    Example: mccfr resume runs/leduc --nodes 2e8
    """
    from mccfr.runs.session.start import Terms

    with reporter() as report:
        terms = Terms(report, force=force, replace=replace)
        run, game = reopened(directory, abstraction, limits, terms, overrides)
        _train(run, game, report, force=force, aside=None if from_scratch else aside)


def reopened(
    directory: Path,
    abstraction: Path | None,
    limits: Mapping[str, Any],
    terms: "Terms",
    overrides: tuple[str, ...] = (),
) -> "tuple[Run, Game]":
    """Open the run in a directory, with given limits and --set texts; return run and game.

    abstraction  folder of the run's card abstraction, if it was moved; None: it was not
    limits       nodes, iterations, seconds and workers of the command line; None: not given
    terms        permissions of --force and --replace, and the receiver of messages
    overrides    texts TABLE.KEY=VALUE of --set
    """
    from mccfr.config.toml_files import parse_override
    from mccfr.runs.directory.run import open_run, with_settings
    from mccfr.runs.session.start import changed_run, prepare_run
    from mccfr.runs.session.train_and_export import limited

    run = changed_run(open_run(directory, abstraction), overrides)
    settings = limited(run.config.run, limits, [parse_override(text)[0] for text in overrides])
    return prepare_run(with_settings(run, run=settings), terms)


def _train(run: "Run", game: "Game", report: "Reporter", *, force: bool, aside: tuple[int, ...] | None) -> None:
    """Train a run, and export it if its configuration says so; report both.

    Raises `SignalInterrupt`, which ends the command with status 75, after a signal.

    force  True: do not check memory
    aside  numbers of checkpoints to ignore, which are first moved to the folder set-aside; (): none; None: all
    """
    from mccfr.runs.session.restoring import put_aside
    from mccfr.runs.session.train_and_export import train_and_export

    if aside != ():
        put_aside(run, aside, report)
    report_beginning(run, game, report)
    report_end(run, *train_and_export(run, game, report, force=force), report)


def report_beginning(run: "Run", game: "Game", report: "Reporter") -> None:
    """Report the run's infosets, bytes of tables and workers before training.

    A message before that tells if the run has no limit. With `tables.memory_budget`, parts of the tables are loaded and
    trained in turn, and a cycle trains each part once. Without a limit of seconds, the message then tells that
    other limits take effect at the end of a cycle.
    """
    settings = run.config.run
    if settings.nodes is None and settings.iterations is None and settings.seconds is None:
        report.message("no limit is set: the run goes on until Ctrl-C stops it (with a checkpoint)")
    elif run.config.tables.memory_budget is not None and settings.seconds is None:
        cycle, expected = run.cycle_iterations, run.algorithm.forecast(game)
        nodes = "" if expected is None else f", about {float(f'{cycle * expected.nodes:.3g}'):,.0f} nodes"
        report.message(f"limits take effect at the end of a cycle of blocks: every {cycle:,} iterations{nodes}")
    report.message(
        f"{run.directory}: {game.name}, {int(game.infosets.sum()):,} infosets, "
        f"{bytes_text(run.layout(game).nbytes)} of tables, {workers_text(settings.workers)}"
    )


def report_end(run: "Run", outcome: "Outcome", exported: Path | None, report: "Reporter") -> None:
    """Report how training ended; raise `SignalInterrupt` (status 75) after a signal.

    outcome   why it ended, counts, newest checkpoint and evaluation
    exported  path of the policy that was exported; None: none was
    """
    from dataclasses import replace

    from storage.damage import UnreadableError
    from storage.durable import error_text
    from storage.free_space import tree_bytes

    run = replace(run, directory=outcome.directory)
    if outcome.evaluation is not None and not outcome.evaluated:
        report.message(f"last evaluation {evaluation_text(outcome.evaluation)}")
    if exported is not None:
        report.message(f"exported to {exported}, {bytes_text(tree_bytes(exported))}")
    try:
        for line in _measured_lines(run) if outcome.signal is None else ():
            report.message(line)
    except UnreadableError as error:  # training is done
        report.message(error_text(error))
    if outcome.signal is not None:
        for what, verb in _left(run, outcome):
            report.message(f"{what} was not done: the next session does it, or do it now with: mccfr {verb}")
        reached = "before anything was trained" if outcome.checkpoint is None else f"at {_counts(outcome)}"
        raise SignalInterrupt(outcome.signal, reached, run.directory)
    counts, directory = _counts(outcome), run.directory
    report.message(f"done: {counts}; next: mccfr evaluate {directory}, or mccfr export {directory} OUT")


def _left(run: "Run", outcome: "Outcome") -> list[tuple[str, str]]:
    """Return pairs (work, arguments of `mccfr` that do it) for work that a signal has prevented.

    It is an evaluation or export that is due: [("the export", "export runs/kuhn OUT")]. [] if none is.
    """
    undone = [("the evaluation that is due", f"evaluate {run.directory}")] if outcome.evaluation_due else []
    if outcome.at_limit and run.config.export is not None:
        undone.append(("the export", f"export {run.directory} OUT"))
    return undone


def _measured_lines(run: "Run") -> list[str]:
    """Return lines of text on the exploitability of each checkpoint on disk that was evaluated.

    Evaluations without an exploitability do not count. The result is [] for fewer than two checkpoints.
    """
    from mccfr.config.game_tables import HoldemGame
    from mccfr.runs.results.checkpoints import measured_checkpoints

    measured, game = measured_checkpoints(run), run.config.game
    if len(measured) < 2:
        return []
    folding = ""
    if isinstance(game, HoldemGame):
        folding = f" (always folding loses {1000 * (sum(game.blinds) / 2 + game.ante) / game.blinds[1]:g} mbb/g)"
    lines = [f"exploitability of the kept checkpoints{folding}:"]
    for number, records in measured.items():
        texts = [f"{name} {_figure(record)}" for name, record in records.items()]
        nodes = next(iter(records.values()))["nodes_touched"]
        lines.append(f"  checkpoint {number}, {nodes:,} nodes: {', '.join(texts)}")
    return [*lines, f"mccfr export {run.directory} OUT exports the last, with --checkpoint N another"]


def _figure(record: Mapping[str, Any]) -> str:
    """Return the exploitability of an evaluation record as text in mbb/g, or in chips if it has no mbb/g.

    A sign before it marks a lower bound (">= "), an upper bound ("<= ") or an estimate ("~ "). A negative lower bound
    gives "no bound".
    """
    mbb = record["exploitability_mbb"]
    if record.get("bound") == "lower" and record["exploitability_chips"] < 0:
        return "no bound"
    text = f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"
    return _SIGNS.get(str(record.get("bound")), "") + text


_SIGNS = {"exact": "", "lower": ">= ", "upper": "<= ", "estimate": "~ "}
"""Signs before figures, by kind of bound."""


def _counts(outcome: "Outcome") -> str:
    return f"{outcome.totals.nodes:,} nodes, {outcome.totals.iterations:,} iterations, checkpoint {outcome.checkpoint}"


@click.command()
@click.argument("path", type=path_type)
@abstraction_option
def verify(path: Path, abstraction: Path | None) -> None:
    """Check every byte of a run and its abstraction, a checkpoint, an abstraction, a policy or networks.

    It prints one line for each problem, with exit status 1, or "sound", with exit status 0.
    """
    from mccfr.runs.directory.verification import problems_of

    with reporter() as report:
        problems = problems_of(path, report, abstraction)
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.exceptions.Exit(1)
    click.echo(f"{path}: sound")
