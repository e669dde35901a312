"""What checkpoints of large tables cost a run that goes on, and how many updates workers without locks lose.

Tables of any size come from full hold'em with buckets drawn at random: nothing is learnt, but everything is visited.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np
import rich_click as click

from abstraction.boards import BOARD_COUNTS, preflop_classes
from abstraction.buckets import bucket_dtype
from abstraction.cards import COMBO_COUNT
from mccfr.config.file import config_from
from mccfr.rng import new_stream
from mccfr.runs.directory.run import CHECKPOINTS, Run
from mccfr.runs.directory.trends import TRENDS, words_drawn
from mccfr.runs.reporter import Progress, Silent
from mccfr.runs.session.session import train
from mccfr.runs.session.start import start_run
from mccfr.tables.layout import table_name
from storage.checkpoint import checkpoint_path, commit, list_checkpoints, open_checkpoint
from storage.schema import ArraySpec

ROOT = Path(__file__).resolve().parent.parent
MENUS: dict[str, dict[str, Any]] = {
    "S": {"first": ["1p", "allin"], "later": ["1p", "allin"]},
    "M": {"first": ["0.5p", "1p", "allin"], "later": ["1p", "allin"]},
}
BOARD_CARDS = {"flop": 3, "turn": 4, "river": 5}
INTERVAL_SECONDS = 600.0  # between the checkpoints of a run, to which costs are scaled
_SETTLING_SECONDS = 1.0  # around a checkpoint, that belong to neither side


class Sampler(Silent):
    """Notes (seconds since the epoch, processor seconds of this process, nodes touched) at every tick."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float, int]] = []

    def progress(self, progress: Progress) -> None:
        """Take a sample."""
        self.samples.append((time.time(), time.process_time(), progress.nodes))


def random_abstraction(directory: Path, buckets: int) -> None:
    """An abstraction whose buckets are drawn at random, and preflop the 169 classes."""
    dice = np.random.default_rng(0)
    tables = {"preflop": (preflop_classes()[None].astype(np.uint16), 169)}
    for street, cards in BOARD_CARDS.items():
        shape = (BOARD_COUNTS[cards], COMBO_COUNT)
        tables[street] = (dice.integers(0, buckets, shape, bucket_dtype(buckets)), buckets)
    for street, (table, count) in tables.items():
        spec = ArraySpec("bucket", table.shape, table.dtype.name, ("board", "slot"))
        (directory / street).parent.mkdir(parents=True, exist_ok=True)
        arrays, state, identity = {"bucket": table}, {"buckets": count}, {"recipe": {"features": "random"}}
        commit(directory / street, 0, (spec,), arrays, state, identity, format="zarr", keep=1, compressed=False)


@contextmanager
def _made_run(document: dict[str, Any], buckets: int | None, directory: Path | None) -> Iterator[Run]:
    """A new run in a temporary directory inside `directory`, removed at the end."""
    scratch = Path(tempfile.mkdtemp(prefix="mccfr-bench-", dir=directory))
    try:
        if buckets is not None:
            random_abstraction(scratch / "buckets", buckets)
            document = {**document, "abstraction": {"path": str(scratch / "buckets")}}
        config = config_from(document, "the benchmark")
        yield start_run(config, ROOT, scratch / "run", Silent())[0]
    finally:
        shutil.rmtree(scratch)


def _windows(run: Run, first: float, last: float) -> list[tuple[float, float]]:
    """(begin, end) of each checkpoint between two times, in seconds since the epoch."""
    found = []
    for line in run.read(TRENDS):
        length = line["pause_seconds"] + line["commit_seconds"]
        # The room for the copy is got before the pause, and the trends are taken after the commit.
        begin, end = line["unix_seconds"] - 1.5 * length - _SETTLING_SECONDS, line["unix_seconds"] + _SETTLING_SECONDS
        if first < begin and end < last:
            found.append((begin, end))
    return found


def _cost(samples: list[tuple[float, float, int]], windows: list[tuple[float, float]]) -> tuple[float, float, float]:
    """(nodes a second outside checkpoints, seconds of training lost and processor seconds spent for one checkpoint)."""
    rates = [
        (after[2] - before[2]) / (after[0] - before[0])
        for before, after in pairwise(samples[::10])
        if not any(begin < after[0] and before[0] < end for begin, end in windows)
    ]
    idle = [
        (after[1] - before[1]) / (after[0] - before[0])
        for before, after in pairwise(samples[::10])
        if not any(begin < after[0] and before[0] < end for begin, end in windows)
    ]
    rate, lost, spent = median(rates), [], []
    times, cpu, nodes = (np.array(column, float) for column in zip(*samples, strict=True))
    for begin, end in windows:
        lost.append(end - begin - float(np.interp(end, times, nodes) - np.interp(begin, times, nodes)) / rate)
        spent.append(float(np.interp(end, times, cpu) - np.interp(begin, times, cpu)) - median(idle) * (end - begin))
    return rate, median(lost), median(spent)


@click.command()
@click.option("--buckets", default=3300, show_default=True, help="Buckets of each street after the flop; 26000: 8 GB.")
@click.option("--menu", type=click.Choice(sorted(MENUS)), default="M", show_default=True, help="Bet sizes.")
@click.option("--format", "form", type=click.Choice(["zarr", "hdf5"]), default="zarr", show_default=True)
@click.option("--compression", type=click.Choice(["auto", "none"]), default="auto", show_default=True)
@click.option("--workers", default=2, show_default=True, help="Worker processes.")
@click.option("--seconds", default=120.0, show_default=True, help="Length of the run.")
@click.option("--every", default=30.0, show_default=True, help="Seconds from one checkpoint to the next.")
@click.option("--directory", type=click.Path(exists=True, path_type=Path), help="Where to write; default: /tmp.")
def checkpoint(
    buckets: int,
    menu: str,
    form: str,
    compression: str,
    workers: int,
    seconds: float,
    every: float,
    directory: Path | None,
) -> None:
    """Cost of checkpoints while workers train: pause, commit, processor time, and what training loses by them."""
    document = {
        "game": {"name": "holdem", "menu": MENUS[menu]},
        "tables": {"format": form, "checkpoint_compression": compression},
        "run": {"workers": workers, "seconds": seconds, "checkpoint_seconds": every, "keep_checkpoints": 1},
        "evaluation": {"every_checkpoint": False, "at_end": False},
    }
    with _made_run(document, buckets, directory) as run:
        game, sampler = run.build_game(), Sampler()
        size = run.layout(game).nbytes
        train(run, game, sampler)
        training = sampler.samples
        windows = _windows(run, training[0][0], training[-1][0])
        if not windows:
            raise click.ClickException("no checkpoint began and ended within the run: give more --seconds")
        rate, lost, spent = _cost(training, windows)
        lines = run.read(TRENDS)[: len(windows)]
        number = list_checkpoints(run.path(CHECKPOINTS))[-1]
        files = open_checkpoint(checkpoint_path(run.path(CHECKPOINTS), number)).files.values()
        stored = sum(length for length, _ in files)
        click.echo(
            f"{form}, compression {compression}: {size / 1e9:.2f} GB of tables, {stored / 1e9:.2f} GB stored; "
            f"{len(windows)} checkpoints: pause {median(line['pause_seconds'] for line in lines):.2f} s, commit "
            f"{median(line['commit_seconds'] for line in lines):.1f} s, {spent:.1f} s of processor time; training at "
            f"{rate / 1e6:.1f} M nodes/s lost {lost:.1f} s each: {lost / INTERVAL_SECONDS:.2%} at one in ten minutes "
            f"({spent / workers / INTERVAL_SECONDS:.2%} by processor time, {workers} workers)"
        )


def additions(run: Run) -> tuple[int, float]:
    """(additions to strategy sums made by all workers, what the sums of an undiscounted run come to)."""
    newest = open_checkpoint(checkpoint_path(run.path(CHECKPOINTS), list_checkpoints(run.path(CHECKPOINTS))[-1]))
    made = 0
    for worker, state in enumerate(newest.state["workers"]):
        first = new_stream(run.config.solver.seed, worker)
        made += words_drawn(first, np.array(state["rng"], np.uint64), state["nodes"])
    blocks = [table_name("strategy_sum", block) for block in range(2 * run.build_game().tree.streets)]
    names = [spec.name for spec in newest.specs if spec.name in blocks]
    return made, sum(float(newest.read(name).sum(dtype=np.float64)) for name in names)


@click.command("lost-updates")
@click.option("--buckets", default=200, show_default=True, help="Buckets of each street after the flop.")
@click.option("--menu", type=click.Choice(sorted(MENUS)), default="S", show_default=True, help="Bet sizes.")
@click.option("--workers", default=2, show_default=True, help="Worker processes, beside a run with one.")
@click.option("--nodes", default=100_000_000, show_default=True, help="Nodes of each run.")
def lost_updates(buckets: int, menu: str, workers: int, nodes: int) -> None:
    """Share of all updates that workers on one table lose: additions counted against what the sums hold."""
    document = {
        "game": {"name": "holdem", "menu": MENUS[menu]},
        "solver": {"discount": "none"},
        "tables": {"sum_dtype": "float64"},
        "run": {"workers": 1, "nodes": nodes},
        "evaluation": {"every_checkpoint": False, "at_end": False},
    }
    for count in (1, workers):
        with _made_run(document, buckets, None) as made:
            run = Run(
                made.directory,
                msgspec.structs.replace(made.config, run=msgspec.structs.replace(made.config.run, workers=count)),
                made.manifest,
            )
            train(run, run.build_game(), Silent())
            adds, held = additions(run)
            lost = run.read(TRENDS)[-1]["lost_updates"]
            click.echo(
                f"{count} workers: {adds:,} additions, sums {held:,.1f}, lost {1 - held / adds:.2e} of all, "
                f"{lost['first_decisions']:.2e} ± {lost['first_decisions_error']:.0e} at first decisions; later, by "
                "street: "
                + ", ".join(
                    f"{share:.1e} ± {error:.0e}"
                    for share, error in zip(
                        lost["sentinels_per_street"], lost["sentinel_errors_per_street"], strict=True
                    )
                )
            )


COMMANDS = (checkpoint, lost_updates)
