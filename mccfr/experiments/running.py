"""The runs of an experiment, one after the other: ordinary run directories, each continued where it stands."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from mccfr.config import Config
from mccfr.config_file import to_document
from mccfr.evaluation.record import check_method
from mccfr.experiments.definition import MEASURES, Experiment, Variant
from mccfr.games.game import Game
from mccfr.plan import planned_layout
from mccfr.solvers.configured import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.training import rundir
from mccfr.training.report import Progress, Reporter
from mccfr.training.run import SIGNALS, train
from storage import checkpoint as checkpoints
from storage.live import check_room

RUNS = "runs"
_REACHED = 1.05  # a point in seconds counts as reached from 5 % below


class _Within:
    """A reporter for one run of several: says which, and leaves single evaluations out."""

    def __init__(self, reporter: Reporter, which: str) -> None:
        self._reporter, self._which = reporter, which

    def message(self, text: str) -> None:
        """Pass it on, with the run's name."""
        self._reporter.message(f"{self._which}: {text}")

    def progress(self, progress: Progress) -> None:
        """Pass it on."""
        self._reporter.progress(progress)

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Leave it out: tables have them all."""


def run_path(out: Path, variant: Variant, seed: int) -> Path:
    """Directory of one run."""
    return out / RUNS / f"{variant.directory}-{seed}"


def check(experiment: Experiment) -> None:
    """Raise `ValueError` or `OSError` for what would fail later: games, tables and measures of every variant."""
    for variant in experiment.variants:
        try:
            game = configured_game(variant.config, Path())
            check_method(game, "exact")
            planned_layout(experiment.run_config(variant, experiment.seeds[0]), game)
        except ValueError as error:
            raise ValueError(f"variant {variant.name!r}: {error}") from None
        if "exploitability_mbb" in experiment.measures and game.big_blind_chips is None:
            others = ", ".join(name for name in MEASURES if name != "exploitability_mbb")
            raise ValueError(
                f"variant {variant.name!r}: compare.y = 'exploitability_mbb', and {game.name} has no big blind: "
                f"choose of {others}"
            )


def check_out(out: Path) -> None:
    """Raise `FileExistsError` where `out` holds something else than an earlier state of an experiment."""
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out} exists and is not a directory: choose another name for the experiment's output")
    if out.is_dir() and any(out.iterdir()) and not (out / RUNS).is_dir():
        raise FileExistsError(f"{out} holds something else than an experiment: choose another name, or empty it")


def conduct(experiment: Experiment, out: Path, reporter: Reporter) -> int | None:
    """Run what is not finished yet, seed by seed and variant by variant; the signal that stopped it, or None.

    Checks everything first.  Raises `ValueError` for what cannot be run or where a directory holds another run,
    `FileExistsError` where `out` is something else, and as `train` does.
    """
    check_out(out)
    check(experiment)
    for variant in experiment.variants:
        for sentence in algorithm_of(variant.config).warnings():
            reporter.message(f"{variant.name}: {sentence}")
    with _signals_noted() as noted:
        return _conduct(experiment, out, reporter, noted)


@contextmanager
def _signals_noted() -> Iterator[list[int]]:
    """The signals that stop a run, as a list, while no run is there to note them."""
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conduct(experiment: Experiment, out: Path, reporter: Reporter, noted: list[int]) -> int | None:
    todo = [(seed, v) for seed in experiment.seeds for v in experiment.variants if seed in experiment.seeds_of(v)]
    built: tuple[Any, Game] | None = None
    for number, (seed, variant) in enumerate(todo, 1):
        config = experiment.run_config(variant, seed)
        described, algorithm = to_document(config), algorithm_of(config)
        key = (described["game"], described["abstraction"], algorithm.over_histories)
        if built is None or built[0] != key:
            built = (key, configured_game(config, Path()))
        run = _open(config, run_path(out, variant, seed), built[1])
        if not pending(experiment, run):
            continue
        report = _Within(reporter, f"{number} of {len(todo)}: {variant.name}, seed {seed}")
        report.message(f"to {experiment.points[-1]:,.10g} {experiment.axis}")
        stopped = noted[0] if noted else _continue(experiment, run, built[1], report)
        if stopped:
            return stopped
    return noted[0] if noted else None


def _open(config: Config, directory: Path, game: Game) -> rundir.Run:
    """The run of a configuration, made if there is none; `ValueError` where the directory holds another."""
    if not rundir.is_run(directory):
        layout = planned_layout(config, game)
        check_room(layout.specs, format=config.tables.format, live_dir=config.tables.live_dir)
        return rundir.create_run(config, Path(), directory, layout)
    run = rundir.open_run(directory)
    try:
        rundir.check_same_run(run, config, Path())
    except ValueError as error:
        text = str(error).partition("; choose another directory")[0]
        raise ValueError(f"{text}; choose another output for the changed experiment, or remove that run") from None
    return rundir.with_settings(run, run=config.run, evaluation=config.evaluation, tables=config.tables)


def pending(experiment: Experiment, run: rundir.Run) -> list[float]:
    """Points that a run has yet to reach; the last one counts as reached once it is evaluated too."""
    numbers = checkpoints.list_checkpoints(run.path(rundir.CHECKPOINTS))
    if not numbers:
        return list(experiment.points)
    state = checkpoints.open_checkpoint(checkpoints.checkpoint_path(run.path(rundir.CHECKPOINTS), numbers[-1])).state
    records = run.read(rundir.EVALUATIONS)
    evaluated = bool(records) and records[-1]["nodes_touched"] >= state["nodes_touched"]
    if experiment.axis == "seconds":
        left = [point for point in experiment.points if point > _REACHED * state["training_seconds"]]
    else:
        done = state["nodes_touched" if experiment.axis == "nodes" else "iterations"]
        left = [point for point in experiment.points if point > done]
    return left if evaluated or left else [experiment.points[-1]]


def _continue(experiment: Experiment, run: rundir.Run, game: Game, reporter: Reporter) -> int | None:
    """Train a run to its last point, in seconds point by point; the signal that stopped it, or None."""
    if experiment.axis != "seconds":
        return train(run, game, reporter).signal
    for point in pending(experiment, run):
        settings = msgspec.structs.replace(run.config.run, seconds=max(0.0, point - trained_seconds(run)))
        outcome = train(rundir.with_settings(run, run=settings), game, reporter)
        if outcome.signal is not None:
            return outcome.signal
    return None


def trained_seconds(run: rundir.Run) -> float:
    """Training seconds up to a run's newest checkpoint."""
    root = run.path(rundir.CHECKPOINTS)
    numbers = checkpoints.list_checkpoints(root)
    if not numbers:
        return 0.0
    return float(checkpoints.open_checkpoint(checkpoints.checkpoint_path(root, numbers[-1])).state["training_seconds"])
