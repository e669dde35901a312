"""Runs an experiment: trains its run directories one after the other, and continues unfinished ones."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from mccfr.common.signals import signals_collected
from mccfr.config.run_tables import AbstractionConfig, Config
from mccfr.config.toml_files import to_document
from mccfr.experiments.definition import AXES, MEASURES, Experiment, ExperimentVariant
from mccfr.games.game import Game
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.state import check_belongs_to_run
from mccfr.runs.reporter import Reporter, Silent
from mccfr.runs.session.start import Start, Terms, build_abstractions, rehearse, reopen_run, start_run
from mccfr.runs.session.training_session import train
from mccfr.solvers.game_from_config import configured_game, opponents_buckets
from mccfr.solvers.registry import algorithm_of
from storage import durable
from storage.atomic_outputs import begins_with, check_output
from storage.damage import reading
from storage.json_files import read_json
from storage.locked_checkpoints import open_locked

RUNS = "runs"
TABLE, SUMMARY, PAIRS, PLOT = FILES = "table.csv", "summary.csv", "pairs.csv", "plot.png"
POINTS = "points.json"
"""File of the points at which each run was or will be measured, by the name of the run's directory."""
_TABLE_HEAD = b"variant,seed,point,"
_REACHED = 1.05  # a point in seconds counts as reached from 5 % below it


class _Within:
    """Passes progress reports of one run on to the reporter of the experiment.

    It puts the run's name before messages, and does not pass on evaluation results.
    """

    def __init__(self, reporter: Reporter, which: str) -> None:
        self._reporter, self._which = reporter, which
        self.phase, self.progress, self.evaluation = reporter.phase, reporter.progress, Silent().evaluation

    def message(self, text: str) -> None:
        """Send the text to the experiment's reporter, with the run's name before it."""
        self._reporter.message(f"{self._which}: {text}")


def run_path(out: Path, variant: ExperimentVariant, seed: int) -> Path:
    """Return the path of a run's directory: out/runs/VARIANT-SEED."""
    return out / RUNS / f"{variant.directory}-{seed}"


def check(experiment: Experiment, out: Path, reporter: Reporter, *, force: bool = False) -> Experiment:
    """Check that all variants can be trained and measured; fill in default solver options.

    Returns the experiment with the complete options of each variant.

    out       directory of the experiment's output
    reporter  receives messages
    force     accept that memory or disk are too small

    Raises `ValueError` or `OSError` for an invalid game, configuration or measure of a variant, and for too little
    memory or disk. Raises `ValueError` too if a run directory holds a run with another configuration.
    """
    checked = []
    for variant in experiment.variants:
        seed = experiment.seeds[0]
        try:
            config, directory = experiment.run_config(variant, seed), run_path(out, variant, seed)
            start = Start(config, Path(), directory, Terms(reporter, force=force))
            rehearse(start)
            game = start.foreseen
        except ValueError as error:
            raise ValueError(f"variant {variant.name!r}: {error}") from None
        in_mbb = [name for name in MEASURES if name.endswith("_mbb")]
        if game.big_blind_chips is None and (wrong := [name for name in experiment.measures if name in in_mbb]):
            others = ", ".join(name for name in MEASURES if name not in in_mbb)
            raise ValueError(
                f"variant {variant.name!r}: compare.y = {wrong[0]!r}, and {game.name} has no big blind: "
                f"choose of {others}"
            )
        checked.append(replace(variant, config=msgspec.structs.replace(variant.config, solver=start.completed.solver)))
    experiment = replace(experiment, variants=tuple(checked))
    for seed, variant in experiment.runs:
        if rundir.is_run(directory := run_path(out, variant, seed)):
            _opened(experiment.run_config(variant, seed), directory)
    return experiment


def check_out(out: Path) -> None:
    """Raise `FileExistsError` if the output directory holds anything but results of an experiment.

    It may be absent or empty, or hold finished and unfinished runs of an experiment.
    """
    check_output(out.resolve(), _is_experiment)


def _is_experiment(out: Path) -> bool:
    """Return whether a directory is an experiment's output.

    That is so if its folder runs/ holds only runs and temporary files, and its table.csv is an experiment's. Without
    result files such as table.csv, the first condition is enough.
    """
    if not (out / RUNS).is_dir() or not all(map(_is_ours, (out / RUNS).iterdir())):
        return False
    return begins_with(_TABLE_HEAD)(out / TABLE) or not any((out / name).exists() for name in FILES)


def _is_ours(entry: Path) -> bool:
    return rundir.is_run(entry) or entry.name.startswith(durable.TEMPORARY_PREFIX)


def run_experiment(
    experiment: Experiment,
    out: Path,
    reporter: Reporter,
    *,
    force: bool = False,
) -> int | None:
    """Train and measure all unfinished runs, seed by seed; return the stopping signal or None.

    out       directory of the experiment's output
    reporter  receives messages, phases and counts of the runs
    force     start even if memory or disk are too small

    The result is the number of the signal that stopped it. All variants are checked before the first run. Raises
    `ValueError` for an invalid experiment or another run in a directory, and `FileExistsError` if `out` holds other
    files. Raises `MemoryError` or `OSError` if the tables do not fit. Raises `RuntimeError` if a worker process died or
    the last checkpoint could not be written.
    """
    check_out(out)
    experiment = check(experiment, out, reporter, force=force)
    built: list[tuple[AbstractionConfig | None, AbstractionConfig | None]] = [(None, None)]
    for variant in experiment.variants:
        abstractions = variant.config.abstraction, opponents_buckets(variant.config, Path())
        if abstractions not in built:
            built.append(abstractions)
            build_abstractions(variant.config, Path(), reporter)  # before signals are noted, so that Ctrl-C ends it
    with signals_collected(ignored=inf) as noted:  # between runs, which handle signals themselves
        return _train_runs(experiment, out, reporter, noted, force)


def _train_runs(experiment: Experiment, out: Path, reporter: Reporter, noted: list[int], force: bool) -> int | None:
    """Train and measure the unfinished runs, one after the other; return the stopping signal or None.

    out    directory of the experiment's output
    noted  numbers of the signals that arrive between runs; the list grows, and the first one stops the experiment
    force  do not check memory and disk
    """
    todo = experiment.runs
    built: tuple[Any, Game] | None = None
    for number, (seed, variant) in enumerate(todo, 1):
        config, directory = experiment.run_config(variant, seed), run_path(out, variant, seed)
        report = _Within(reporter, f"{number} of {len(todo)}: {variant.name}, seed {seed}")
        if rundir.is_run(directory) and not pending(experiment, _opened(config, directory)):
            _report_passed(experiment, out, directory, report)
            continue
        described, algorithm = to_document(config), algorithm_of(config)
        key = (described["game"], described["abstraction"], config.run.strata, algorithm.traits.over_histories)
        if built is None or built[0] != key:
            built = (key, configured_game(config, Path()))
        report.message(f"to {experiment.points[-1]:,.10g} {experiment.axis}")
        terms = Terms(report, force=force)
        run, game = start_run(config, Path(), directory, terms, game=built[1])
        _note_points(experiment, out, run)
        _report_passed(experiment, out, directory, report)
        stopped = noted[0] if noted else _continue(experiment, run, game, report, force)
        if stopped:
            return stopped
    return noted[0] if noted else None


def _opened(config: Config, directory: Path) -> rundir.Run:
    """Return the `Run` in a directory; raise `ValueError` if its configuration does not match `config`."""
    try:
        return reopen_run(config, Path(), directory)
    except ValueError as error:
        text = str(error).partition("; choose another directory")[0]
        raise ValueError(f"{text}; choose another output for the changed experiment, or remove that run") from None


@reading()
def measured_points(out: Path) -> dict[str, list[float]]:
    """Return {name of a run's directory: ascending points of the x axis where it is measured}.

    They are past and future points, from points.json in the output `out`; empty without that file.

    Raises `ValueError` for a damaged file.
    """
    path = out / POINTS
    if not path.is_file():
        return {}
    try:
        return msgspec.convert(read_json(path), dict[str, list[float]])
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {error}: remove it and the runs beside it, or choose another output") from None


def _note_points(experiment: Experiment, out: Path, run: rundir.Run) -> None:
    """Write to points.json, in the output directory `out`, at which x-axis points a run is measured.

    They are the points at which it was measured, and those of the experiment that it has not reached yet.
    """
    points_of_runs, reached = measured_points(out), _reached(experiment, run)
    measured = [point for point in points_of_runs.get(run.directory.name, []) if point <= reached]
    points_of_runs[run.directory.name] = sorted({*measured, *(point for point in experiment.points if point > reached)})
    durable.replace_file(out / POINTS, json.dumps(points_of_runs).encode())


def _report_passed(experiment: Experiment, out: Path, directory: Path, reporter: Reporter | _Within) -> None:
    """Send a message on points of the x axis at which a run was not measured; none if there are none.

    They are points that were added to the experiment after the run had passed them.

    out        directory of the experiment's output
    directory  directory of the run
    """
    passed = sorted({*experiment.points} - {*measured_points(out).get(directory.name, ())})
    if passed:
        points = ", ".join(f"{point:,.10g}" for point in passed)
        reporter.message(f"the run was not measured at {points} {experiment.axis}: the tables have no rows for them")


def _newest_state(run: rundir.Run) -> dict[str, Any] | None:
    """Return the fields of state.json in a run's newest checkpoint; None without a checkpoint."""
    newest = open_locked(run.path(rundir.CHECKPOINTS))
    return None if newest is None else check_belongs_to_run(run, newest).state


def _reached(experiment: Experiment, run: rundir.Run) -> float:
    """Return the x-axis value of a run's newest checkpoint; 0 without a checkpoint.

    It is in iterations, nodes or seconds. Seconds are multiplied by 1.05, so that a point in seconds counts as reached
    a little early.
    """
    state = _newest_state(run)
    if state is None:
        return 0.0
    return float(state[AXES[experiment.axis]]) * (_REACHED if experiment.axis == "seconds" else 1)


def pending(experiment: Experiment, run: rundir.Run) -> list[float]:
    """Return the points of the x axis that a run has not reached, ascending.

    If it has reached all points, but its newest checkpoint is not evaluated, the result is the last point alone.
    """
    state, reached = _newest_state(run), _reached(experiment, run)
    if state is None:
        return list(experiment.points)
    last = next(run.backwards(rundir.EVALUATIONS), None)
    evaluated = last is not None and last["nodes_touched"] >= state["nodes_touched"]
    left = [point for point in experiment.points if point > reached]
    return left if evaluated or left else [experiment.points[-1]]


def _continue(
    experiment: Experiment, run: rundir.Run, game: Game, reporter: Reporter, force: bool = False
) -> int | None:
    """Train a run to its last point on the x axis; measure it at each point.

    Points that the run has passed are not measured again. On the axis "seconds" each point is a training session of its
    own. Returns the number of the signal that stopped it, or None.

    force  do not check memory
    """
    if experiment.axis != "seconds":
        return train(run, game, reporter, force=force).signal
    for point in pending(experiment, run):
        settings = msgspec.structs.replace(run.config.run, seconds=max(0.0, point - trained_seconds(run)))
        outcome = train(rundir.with_settings(run, run=settings), game, reporter, force=force)
        if outcome.signal is not None:
            return outcome.signal
    return None


def trained_seconds(run: rundir.Run) -> float:
    """Return the training time up to a run's newest checkpoint in seconds."""
    state = _newest_state(run)
    return 0.0 if state is None else float(state["training_seconds"])
