"""The average strategy behind the tables of a run, whichever algorithm made them.

Runs of an older version may have strategy sums on the first street only (`PREFLOP_SUMS`): the exact average is there.
On later streets it is a heuristic: the mean over the run's snapshots and the checkpoint itself
(`mccfr.runs.results.snapshot_mean`), each weighed by the iterations since the one before it and by own reach.  The
weights beside it are the totals of those: weight of iterations times own reach, whether or not chance ever dealt the
hand.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.tables import PREFLOP_SUMS, Config
from mccfr.games.game import Game
from mccfr.runs.events import Totals
from mccfr.runs.results.snapshot_mean import SnapshotMean
from mccfr.solvers.deep.asked import Networks
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import TableSet, table_name
from mccfr.tables.narrow import number_dtype, numbers
from mccfr.tables.strategy import (
    BlockRows,
    Fading,
    LazyBlocks,
    Strategy,
    average_strategy,
    check_sums,
    row_starts,
)
from storage.checkpoint import Checkpoint, checkpoint_path
from storage.damage import DamagedError
from storage.locked_checkpoints import open_locked
from storage.schema import ArraySpec
from storage.spill import spilled


class _Tables(Mapping[str, npt.NDArray[Any]]):
    """Tables of a checkpoint by name, each read when it is first asked for."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint, self._names = checkpoint, [spec.name for spec in checkpoint.specs]
        self._read: dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = self._checkpoint.read(name)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _tables_of(checkpoint: Checkpoint) -> TableSet:
    return TableSet(_Tables(checkpoint), checkpoint.specs)


IN_MEMORY_BYTES = 64 << 20
"""Of a table that is read into memory whole."""


def checkpoint_average(game: Game, config: Config, checkpoint: Checkpoint) -> Strategy:
    """The average strategy of a run's checkpoint, and of the snapshots that it builds on.

    Raises `ValueError` for sums no run writes, `OSError` where a checkpoint is damaged, or a snapshot is gone.
    """
    algorithm, state = algorithm_of(config), checkpoint.state
    if isinstance(config.tables, PREFLOP_SUMS):
        return _snapshot_average(game, algorithm.schedule, checkpoint)
    tables = _tables_of(checkpoint)
    return algorithm.averages.strategy(game, tables, state["nodes_touched"], state["iterations"])


def named_average(game: Game, config: Config, checkpoint: Checkpoint, name: str) -> Strategy:
    """One of the average strategies of a run's checkpoint; `ValueError` for one that its algorithm does not make."""
    averages, state = algorithm_of(config).averages, checkpoint.state
    return averages.strategy(game, _tables_of(checkpoint), state["nodes_touched"], state["iterations"], name)


def checkpoint_networks(game: Game, config: Config, checkpoint: Checkpoint, average: str | None = None) -> Networks:
    """The networks behind an average strategy of a run's checkpoint (None: its first); `ValueError` where none are."""
    averages, iterations = algorithm_of(config).averages, checkpoint.state["iterations"]
    found: Networks = averages.networks(game, _tables_of(checkpoint), iterations, average)
    return found


def stored_average(game: Game, config: Config, checkpoint: Checkpoint) -> Strategy:
    """`checkpoint_average`, as far as that goes with strategy sums that stay as they are, large ones in a file.

    Rows are normalised when they are asked for.  Raises as `checkpoint_average`, and `OSError` where the file finds no
    room.
    """
    algorithm, state = algorithm_of(config), checkpoint.state
    if isinstance(config.tables, PREFLOP_SUMS) or not algorithm.averages.of_sums:
        return checkpoint_average(game, config, checkpoint)
    stored = {
        spec.name: _read_outside(checkpoint, spec) for spec in checkpoint.specs if algorithm.averages.takes(spec.name)
    }
    faded = partial(algorithm.schedule.faded, nodes=state["nodes_touched"])
    return sums_average(game, TableSet(stored, checkpoint.specs), faded)


def sums_average(game: Game, tables: TableSet, faded: Fading) -> Strategy:
    """`average_strategy` of tables with sums on all streets, read where they lie, a row when it is asked for.

    So tables must stay as they are as long as the strategy is used.  Raises `ValueError` for sums no run writes.
    """

    @cache
    def rows(block: int) -> BlockRows:
        sums = _sums_outside(game, tables, block)
        if sums is None:  # nobody acts there
            sums = np.zeros((int(game.buckets[block]), 0), np.float32)
        check_sums(sums, block)
        stamps = tables.rows("strategy_sum_stamp", block)
        return BlockRows(sums, sums=True, factor=None if stamps is None else partial(_faded, stamps, faded))

    count = len(game.buckets)
    if (narrow := _narrow(tables, count)) is None:
        return Strategy.stored(game, [rows(block) for block in range(count)])
    for block, (cells, _) in enumerate(narrow):
        check_sums(cells, block)
    strategy = Strategy.stored(game, LazyBlocks(count, rows))
    strategy.narrow = narrow
    return strategy


def _narrow(tables: TableSet, count: int) -> list[tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]] | None:
    """`Strategy.narrow` of tables; None where sums are no int16 with scales, slots first."""
    found = []
    for block in range(count):
        cells, scales = tables.rows("strategy_sum", block), tables.rows("strategy_sum_scale", block)
        if cells is None:
            cells, scales = np.zeros((0, 0), np.int16), np.zeros((0, 0), np.uint8)
        if scales is None or cells.dtype != np.int16 or not cells.T.flags.c_contiguous:
            return None
        found.append((cells.T, scales.T))
    return found


def _faded(
    stamps: npt.NDArray[np.integer], faded: Fading, row: int, buckets: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    return faded(stamps[buckets, row])


def _sums_outside(game: Game, tables: TableSet, block: int) -> npt.NDArray[Any] | None:
    """`TableSet.numbers` of a block's sums; those made of many 16-bit cells lie in a temporary file."""
    cells, starts = tables.rows("strategy_sum", block), row_starts(game, block)
    scales = tables.rows("strategy_sum_scale", block)
    if cells is None or number_dtype(cells.dtype) == cells.dtype or 4 * cells.size <= IN_MEMORY_BYTES:
        return tables.numbers("strategy_sum", block, starts)
    slots_first, step = cells.T.flags.c_contiguous, max(1, IN_MEMORY_BYTES // (4 * cells.shape[1]))
    found = spilled(cells.T.shape, np.float32).T if slots_first else spilled(cells.shape, np.float32)
    for at in range(0, len(cells), step):
        here = slice(at, at + step)
        found[here] = numbers(cells[here], None if scales is None else scales[here], starts)
    return found


def _read_outside(checkpoint: Checkpoint, spec: ArraySpec) -> npt.NDArray[Any]:
    """A table of a checkpoint; where it is large, in a temporary file instead of memory."""
    if spec.nbytes <= IN_MEMORY_BYTES:
        return checkpoint.read(spec.name)
    table = spilled(spec.shape, spec.numpy_dtype)
    checkpoint.read_into(spec.name, table)
    return table


def snapshot_entry(number: int, totals: Totals) -> dict[str, int]:
    """How the state of a checkpoint names a snapshot that it builds on."""
    return {"checkpoint": number, "nodes_touched": totals.nodes, "iterations": totals.iterations}


def _snapshot_average(game: Game, schedule: Schedule, newest: Checkpoint) -> Strategy:
    """First street from sums, the others the mean of snapshots; one table is in memory at a time."""
    totals = Totals(newest.state["nodes_touched"], newest.state["iterations"])
    sums = {spec.name: newest.read(spec.name) for spec in newest.specs if spec.name.startswith("strategy_sum")}
    first_street = replace(game, tree=replace(game.tree, streets=1))
    faded = partial(schedule.faded, nodes=totals.nodes)
    mean = SnapshotMean(game, average_strategy(first_street, TableSet(sums, newest.specs), faded))
    del sums
    before = Totals()
    for entry in [*newest.state["snapshots"], snapshot_entry(newest.number, totals)]:
        now = Totals(entry["nodes_touched"], entry["iterations"])
        mean.add(_regrets_of(game, _sibling(newest, entry["checkpoint"])), stretch_weight(schedule, before, now))
        before = now
    return mean.strategy


def _regrets_of(game: Game, checkpoint: Checkpoint) -> Callable[[str], npt.NDArray[Any]]:
    """What reads a checkpoint's regrets by the name of their table, as numbers."""
    names = {spec.name for spec in checkpoint.specs}

    def read(name: str) -> npt.NDArray[Any]:
        kind, street, player = name.split("/")
        block = 2 * int(street.removeprefix("street")) + int(player.removeprefix("player"))
        scale = table_name(f"{kind}_scale", block)
        scales = checkpoint.read(scale) if scale in names else None
        return numbers(checkpoint.read(name), scales, row_starts(game, block))

    return read


def _sibling(newest: Checkpoint, number: int) -> Checkpoint:
    """A snapshot of the same run; `OSError` where it is gone or damaged."""
    if number == newest.number:
        return newest
    path = checkpoint_path(newest.path.parent, number)
    found = open_locked(path.parent, number)
    if found is None:
        raise DamagedError(
            f"{path} is gone: checkpoint {newest.number} takes the average strategy of later streets from it"
        )
    if found.identity != newest.identity:
        raise DamagedError(f"{path} belongs to another run than checkpoint {newest.number}, which builds on it")
    return found


def stretch_weight(schedule: Schedule, before: Totals, now: Totals) -> float:
    """What the iterations between two counts weigh in the average: their number, times the mean weight of the nodes.

    Where tables are swept an iteration of period n weighs n^gamma, what its sums keep up to scale.
    """
    first, last, step = before.nodes, now.nodes, schedule.period_nodes
    edges = [first, *range((first // step + 1) * step, last, step), last]
    total = sum(_node_weight(schedule, low) * (high - low) for low, high in pairwise(edges))
    return (now.iterations - before.iterations) * total / max(1, last - first)


def _node_weight(schedule: Schedule, nodes: int) -> float:
    if schedule.sweeps:
        return float(schedule.effective_period(nodes) ** schedule.gamma)
    return schedule.weight(nodes)
