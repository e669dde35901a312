"""Creates and trains runs of small games in this process, and compares them bit by bit."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from same import assert_same_arrays
from stratified import LEDUC_12

from mccfr.config.toml_files import config_from
from mccfr.runs.directory.run import Run, create_run, with_settings
from mccfr.runs.reporter import Reporter, Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.session.training_session import Outcome, train
from storage.checkpoint import list_checkpoints

EXTERNAL = {"discount": "linear", "period_nodes": 50_000, "seed": 5}
OUTCOME = {"algorithm": "outcome-sampling", "discount": "dcfr", "period_nodes": 40_000}
NO_EVALUATION = {"every_checkpoint": False, "at_end": False}


def new_run(path: Path, document: Mapping[str, object]) -> Run:
    """Create a run directory from a whole configuration."""
    config = config_from(document, "test")
    return create_run(config, path.parent, path)


def make(
    path: Path,
    solver: Mapping[str, object] = EXTERNAL,
    game: str | Mapping[str, object] = "leduc",
    tables: Mapping[str, object] | None = None,
    evaluation: Mapping[str, object] | None = None,
    **settings: object,
) -> Run:
    """Create a run directory of a small game; `settings` are its `[run]` table."""
    document = {
        "game": {"name": game} if isinstance(game, str) else game,
        "solver": solver,
        "tables": tables or {},
        "run": {"workers": 0, **settings},
        "evaluation": {"every_checkpoint": False} if evaluation is None else evaluation,
    }
    return new_run(path, document)


def in_form(path: Path, form: str, seed: int = 5, **settings: object) -> Run:
    """Create a run of a small game in a storage form: zarr, hdf5 or blocks.

    With blocks, two of four are in memory.
    """
    solver, tables = {"seed": seed, "period_nodes": 10_000}, {"format": form}
    if form != "blocks":
        return make(path, solver, "leduc", tables, NO_EVALUATION, **settings)
    strata = {"strata": 6, "blocks": 4, "cycle_iterations": 400}
    return make(path, solver, LEDUC_12, {"memory_budget": "80kB"}, NO_EVALUATION, **{**strata, **settings})


def with_limits(run: Run, **settings: object) -> Run:
    """Return the run with other `[run]` settings."""
    return with_settings(run, run=msgspec.structs.replace(run.config.run, **settings))


def go(run: Run, reporter: Reporter | None = None, **settings: object) -> Outcome:
    """Train one session of a run with other `[run]` settings."""
    run = with_limits(run, **settings)
    return train(run, run.build_game(), reporter or Silent())


def trained(run: Run, reporter: Reporter | None = None, **settings: object) -> Run:
    """Train one session of a run, and return the run."""
    go(run, reporter, **settings)
    return run


class Listener(Silent):
    """Collects progress messages."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def message(self, text: str) -> None:
        self.told.append(text)


class PhaseListener(Listener):
    """Collects progress messages and phases."""

    def phase(self, text: str, share: float | None = None) -> None:
        self.told.append(text)


def content(run: Run, number: int | None = None) -> tuple[dict[str, np.ndarray], list[list[int]]]:
    """Return tables and random words of a checkpoint, by default the newest."""
    checkpoint = find_checkpoint(run, number)
    return read_tables(checkpoint), [worker["rng"] for worker in checkpoint.state["workers"]]


def newest(run: Run) -> int:
    """Return the number of the newest checkpoint, or 0."""
    return max(list_checkpoints(run.path("checkpoints")), default=0)


def assert_same_tables(one: Run, other: Run) -> None:
    """Assert that the newest checkpoints of two runs have the same tables."""
    assert_same_arrays(content(one)[0], content(other)[0])


def assert_same(one: Run, other: Run) -> None:
    """Assert that two runs have the same tables and random words."""
    assert content(one)[1] == content(other)[1]
    assert_same_tables(one, other)


def resuming(run: Run, *arguments: object, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start `mccfr resume` of a run in a process of its own."""
    command = [sys.executable, "-m", "mccfr", "resume", str(run.directory), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, text=True)


def kill_often(run: Run, times: int, seconds: float) -> None:
    """Run sessions of one and of two workers, and kill each some time after its first checkpoint."""
    moments = random.Random(4)
    for kill in range(times):
        saved, process = newest(run), resuming(run, "--workers", 1 + kill % 2)
        wait_for(partial(_has_gone_on, run, saved, process), 300)
        time.sleep(moments.uniform(0, seconds))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed: make the run longer"


def _has_gone_on(run: Run, saved: int, process: subprocess.Popen) -> bool:
    return process.poll() is not None or newest(run) > saved


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
