"""Reads the average strategy of a run's checkpoint, for any algorithm."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.solvers.deep.network_strategy import Networks
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.int16_cells import number_dtype, numbers
from mccfr.tables.strategy import BlockRows, LazyBlocks, Strategy, check_sums, row_starts
from mccfr.tables.table_layout import TableSet
from storage.checkpoint import Checkpoint
from storage.schema import ArraySpec
from storage.unnamed_files import spilled


class _Tables(Mapping[str, npt.NDArray[Any]]):
    """Maps each table name of a checkpoint to its array, which is read on first access.

    So `checkpoint_average` and `checkpoint_networks` read only the tables that the average needs.
    """

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


IN_MEMORY_BYTES = 64 << 20
"""Bytes of the largest table of sums that is read into memory; larger ones go to temporary files."""


def checkpoint_average(game: Game, config: Config, checkpoint: Checkpoint, name: str | None = None) -> Strategy:
    """Return an average strategy of a run's checkpoint.

    game, config  of the run
    name          name of the average, for algorithms with several; None: the first one

    If the average follows from strategy sums alone, large tables of sums are read into a temporary file. An infoset's
    sums are then normalised to probabilities only when they are read.

    Raises `ValueError` for invalid sums, and for an average that the algorithm does not have. Raises
    `OSError` if the checkpoint is damaged or the disk is full.
    """
    averages, state = algorithm_of(config).averages, checkpoint.state
    if averages.of_sums and name is None:
        stored = {spec.name: _read_outside(checkpoint, spec) for spec in checkpoint.specs if averages.takes(spec.name)}
        return sums_average(game, TableSet(stored, checkpoint.specs))
    tables = TableSet(_Tables(checkpoint), checkpoint.specs)
    return averages.strategy(game, tables, state["nodes_touched"], state["iterations"], name)


def checkpoint_networks(game: Game, config: Config, checkpoint: Checkpoint, average: str | None = None) -> Networks:
    """Return the neural networks of an average strategy of a run's checkpoint.

    game, config  of the run
    average       name of the average, for algorithms with several; None: the first one

    Raises `ValueError` if the run has no networks.
    """
    averages, iterations = algorithm_of(config).averages, checkpoint.state["iterations"]
    networks: Networks = averages.networks(game, TableSet(_Tables(checkpoint), checkpoint.specs), iterations, average)
    return networks


def sums_average(game: Game, tables: TableSet) -> Strategy:
    """Return the average strategy of tables with strategy sums.

    An infoset's sums are normalised to probabilities only when the infoset is looked up.

    tables  all tables of a run, or those of strategy sums

    All streets must have sums. The tables must not change while the strategy is used. Raises `ValueError` for a
    negative, NaN or infinite sum.
    """

    @cache
    def rows(block: int) -> BlockRows:
        sums = _sums_outside(game, tables, block)
        if sums is None:  # no decisions in this block
            sums = np.zeros((int(game.buckets[block]), 0), np.float32)
        check_sums(sums, block)
        return BlockRows(sums, sums=True)

    count = len(game.buckets)
    if (narrow := _narrow(tables, count)) is None:
        return Strategy.stored(game, [rows(block) for block in range(count)])
    for block, (cells, _) in enumerate(narrow):
        check_sums(cells, block)
    strategy = Strategy.stored(game, LazyBlocks(count, rows))
    strategy.narrow = narrow
    return strategy


def _narrow(tables: TableSet, count: int) -> list[tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]] | None:
    """Return (int16 strategy sums, uint8 scales) of each block; None if not all are of this form.

    A block is the tables of one player on one street. The sums are [slots, buckets], contiguous in this order; a slot
    is one action of a decision. The scales are [decisions, buckets].
    """
    tables_of_blocks = []
    for block in range(count):
        cells, scales = tables.rows("strategy_sum", block), tables.rows("strategy_sum_scale", block)
        if cells is None:
            cells, scales = np.zeros((0, 0), np.int16), np.zeros((0, 0), np.uint8)
        if scales is None or cells.dtype != np.int16 or not cells.T.flags.c_contiguous:
            return None
        tables_of_blocks.append((cells.T, scales.T))
    return tables_of_blocks


def _sums_outside(game: Game, tables: TableSet, block: int) -> npt.NDArray[Any] | None:
    """Return the strategy sums of a block, [buckets, slots] floats; None if it has no decisions.

    A block is the tables of one player on one street; a slot is one action of a decision. 16-bit sums are converted to
    float32, in a temporary file if they are large.
    """
    cells, starts = tables.rows("strategy_sum", block), row_starts(game, block)
    scales = tables.rows("strategy_sum_scale", block)
    if cells is None or number_dtype(cells.dtype) == cells.dtype or 4 * cells.size <= IN_MEMORY_BYTES:
        return tables.numbers("strategy_sum", block, starts)
    slots_first, step = cells.T.flags.c_contiguous, max(1, IN_MEMORY_BYTES // (4 * cells.shape[1]))
    expanded = spilled(cells.T.shape, np.float32).T if slots_first else spilled(cells.shape, np.float32)
    for at in range(0, len(cells), step):
        rows = slice(at, at + step)
        expanded[rows] = numbers(cells[rows], None if scales is None else scales[rows], starts)
    return expanded


def _read_outside(checkpoint: Checkpoint, spec: ArraySpec) -> npt.NDArray[Any]:
    """Read a table of a checkpoint, into memory if it is small and into a temporary file if it is large."""
    if spec.nbytes <= IN_MEMORY_BYTES:
        return checkpoint.read(spec.name)
    table = spilled(spec.shape, spec.numpy_dtype)
    checkpoint.read_into(spec.name, table)
    return table
