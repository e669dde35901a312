"""Strategies as arrays, in the form shared by evaluation, export and play.

A block is the tables of one street and player.  A row is one decision of a block; with a bucket it is an infoset.  A
slot is one action of a row.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.tables.table_layout import TableSet, table_name
from mccfr.trees.compiled import DECISION

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class BlockRows(NamedTuple):
    """Strategy at all rows (decisions) of one street and player, in memory or in a mapped file.

    cells   [buckets, slots or more]  float64: probabilities; uint8, uint16: probabilities as integers, in units of
            1/255 or 1/65,535; float32 or float64 with `sums`: strategy sums, uniform if all of a row are 0
    weight  [buckets, rows]  accumulated weight of each row; a row of integers with weight 0 is uniform. None: the total
            of strategy sums, 1 for probabilities
    sums    True if cells are strategy sums
    """

    cells: npt.NDArray[Any]
    weight: npt.NDArray[np.floating] | None = None
    sums: bool = False

    @property
    def shares(self) -> bool:
        """True if cells are probabilities as unsigned integers."""
        return self.cells.dtype.kind == "u"

    def rows(self, row: int, slots: slice, buckets: npt.NDArray[np.integer]) -> tuple[Floats, Floats]:
        """Return (probabilities [n, A], weights [n]) of one row of A actions for n buckets, in float64.

        Other cells are not read.  The results equal those of `probabilities` and `weights` to the last bit.

        row      index of the row
        slots    slice of the row's slots, one for each action
        buckets  [n] numbers of the buckets
        """
        chances = self.cells[buckets, slots].astype(np.float64)
        if self.sums:
            weight = np.zeros(len(chances))
            for cells in chances.T:  # added in order, for results equal to the last bit
                weight += cells
            unreached = weight == 0
            chances /= np.where(unreached, 1.0, weight)[:, None]
            chances[unreached] = 1.0 / chances.shape[1]
            return chances, weight
        if self.weight is None:
            return chances, np.ones(len(chances))
        weight = self.weight[buckets, row].astype(np.float64)
        if self.shares:
            chances /= np.iinfo(self.cells.dtype).max
            chances[weight == 0] = 1.0 / chances.shape[1]
        return chances, weight

    def probabilities(self, starts: Ints) -> Floats:
        """Return [buckets, slots] float64 probabilities of all rows.

        starts  [rows+1] int64 first slot of each row, and the end of the last
        """
        if self.sums:
            return _normalised(self.cells, starts)[0]
        if self.shares:
            counts, weight = np.diff(starts), np.asarray(self.weight)
            never, uniform = np.repeat(weight == 0, counts, axis=1), np.repeat(1.0 / counts, counts)
            return np.where(never, uniform, self.cells / float(np.iinfo(self.cells.dtype).max))
        return self.cells

    def weights(self, starts: Ints) -> Floats:
        """Return [buckets, rows] float64 weights of all rows.

        starts  [rows+1] int64 first slot of each row, and the end of the last
        """
        if self.sums:
            return _normalised(self.cells, starts)[1]
        return np.ones((len(self.cells), len(starts) - 1)) if self.weight is None else self.weight.astype(np.float64)


class Strategy:
    """Behaviour strategy of all P players, in B blocks (P·street + player).

    blocks       B × BlockRows                  rows as stored
    probability  B × [buckets, slots] float64   a row's probabilities at slot .. slot+actions-1 sum to 1
    weight       B × [buckets, rows] float64    accumulated weight of each row; 0: never reached, the row is uniform
    on_deals     for networks without tables: function from deals (`mccfr.solvers.deep.sampled_cards.SampledHands`) to a
                 strategy whose bucket k is deal k; access to the tables raises `ValueError`. Otherwise None
    narrow       for 16-bit strategy sums, which evaluations read directly: (cells [slot, bucket] int16, scales [row,
                 bucket] uint8) of each block. Cells are in units of 2^(scale - 128); `blocks` are computed from them on
                 access. Otherwise None
    """

    narrow: Sequence[tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]] | None = None

    def __init__(
        self,
        probability: Sequence[Floats],
        weight: Sequence[Floats],
        blocks: Sequence[BlockRows] | None = None,
        on_deals: "Callable[[Any], Strategy] | None" = None,
    ) -> None:
        """Store the arguments as the fields of the same names.

        blocks  rows of each block as stored; None: they consist of `probability` and `weight`
        """
        self.probability, self.weight, self.on_deals = probability, weight, on_deals
        if blocks is None:
            blocks = tuple(BlockRows(rows, row_weights) for rows, row_weights in zip(probability, weight, strict=True))
        self.blocks = blocks

    @classmethod
    def stored(cls, game: Game, blocks: Sequence[BlockRows]) -> "Strategy":
        """Return a strategy from the BlockRows of each block (street and player), in order of blocks.

        Its `probability` and `weight` are computed for one block at a time, on access.
        """
        return cls(
            LazyBlocks(len(blocks), lambda block: blocks[block].probabilities(row_starts(game, block))),
            LazyBlocks(len(blocks), lambda block: blocks[block].weights(row_starts(game, block))),
            blocks,
        )


Value = TypeVar("Value")


class LazyBlocks(Sequence[Value]):
    """Sequence of one value for each block, computed on access; only the last value is cached.

    The constructor takes the number of blocks and a function that computes a block's value from its number.
    """

    def __init__(self, count: int, make: Callable[[int], Value]) -> None:
        self._count, self._make = count, make
        self._last: tuple[int, Value] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, block: Any) -> Any:
        if isinstance(block, slice):
            return [self[number] for number in range(*block.indices(self._count))]
        number = range(self._count)[block]
        if self._last is None or self._last[0] != number:
            self._last = None
            self._last = number, self._make(number)
        return self._last[1]


def row_starts(game: Game, block: int) -> Ints:
    """Return [rows+1] int64 the first slot of each row of a block, and the end of the last.

    A block is one street and player, a row one of its decisions, a slot one action of a row.
    """
    arrays = game.tree.arrays
    nodes = np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block))
    starts = np.zeros(int(game.tree.row_count[block]) + 1, np.int64)
    starts[arrays.row[nodes]] = arrays.slot[nodes]  # in trees with hidden moves, several nodes share a row
    starts[-1] = game.tree.row_slots[block]
    return starts


@njit
def normalise(sums, starts, probability, weight):
    """Divide each row of strategy sums by its total; write probabilities and totals, in place.

    Rows with total 0 become uniform.

    sums         [buckets, slots or more]
    starts       [rows+1] int64 first slot of each row, and the end of the last
    probability  [buckets, slots] float64 receives probabilities; it may be `sums` itself
    weight       [buckets, rows] float64 receives totals
    """
    for bucket in range(sums.shape[0]):
        for row in range(starts.shape[0] - 1):
            first, stop = starts[row], starts[row + 1]
            total = 0.0
            for slot in range(first, stop):
                total += sums[bucket, slot]
            weight[bucket, row] = total
            for slot in range(first, stop):
                probability[bucket, slot] = sums[bucket, slot] / total if total > 0.0 else 1.0 / (stop - first)


def _normalised(sums: npt.NDArray[Any], starts: Ints) -> tuple[Floats, Floats]:
    """Return (probabilities [buckets, slots], totals [buckets, rows]) of strategy sums.

    sums    [buckets, slots or more]
    starts  [rows+1] int64 first slot of each row, and the end of the last
    """
    probability, weight = np.zeros((len(sums), int(starts[-1]))), np.zeros((len(sums), len(starts) - 1))
    if len(starts) > 1:
        normalise(np.ascontiguousarray(sums), starts, probability, weight)
    return probability, weight


def average_block(game: Game, block: int, tables: TableSet) -> tuple[Floats, Floats]:
    """Return (probabilities [buckets, slots], weights [buckets, rows]) of a block's average strategy.

    block   number of the block: street · players + player
    tables  the run's tables; `strategy_sum` of the block is read

    Rows with a total of 0 are uniform, with weight 0.

    Raises `ValueError` if a sum is negative or not finite, and `KeyError` if the table of a block with decisions is
    missing.
    """
    starts = row_starts(game, block)
    if len(starts) == 1:  # no decisions in this block
        return _normalised(np.zeros((int(game.buckets[block]), 0)), starts)
    sums = tables.numbers("strategy_sum", block, starts)
    if sums is None:
        raise KeyError(table_name("strategy_sum", block))
    check_sums(sums, block)
    return _normalised(sums, starts)


def check_sums(sums: npt.NDArray[Any], block: int) -> None:
    """Raise `ValueError` if a strategy sum is negative or not finite; no run writes such a table.

    sums   strategy sums of a block
    block  number of the block, for the message
    """
    if sums.size and not (sums.min() >= 0 and np.isfinite(sums.max())):
        raise ValueError(f"{table_name('strategy_sum', block)} holds a negative or infinite sum")


def average_strategy(game: Game, tables: TableSet) -> Strategy:
    """Return the average strategy of a run's `strategy_sum` tables; rows of sum 0 are uniform.

    Cells that only pad the tables are ignored.

    Raises `ValueError` if a sum is negative or not finite, and `KeyError` if the table of a block with decisions is
    missing.
    """
    blocks = [average_block(game, block, tables) for block in range(len(game.tree.row_slots))]
    return Strategy(tuple(probability for probability, _ in blocks), tuple(weight for _, weight in blocks))


def pure_strategy(game: Game, action: str) -> Strategy:
    """Return the strategy that always takes one action, such as "c" for always-call; all weights are 1.

    action  label of the action; if a decision lacks it, the strategy takes the first action that is no fold

    So in a game whose first player may only fold or raise, "c" raises by the smallest size there.
    """
    rows = [np.zeros(int(slots)) for slots in game.tree.row_slots]
    arrays = game.tree.arrays
    for node in game.tree.decisions.tolist():
        labels = [game.tree.label[child] for child in game.tree.children(node)]
        instead = next((k for k, label in enumerate(labels) if label != "f"), 0)
        chosen = labels.index(action) if action in labels else instead
        rows[int(arrays.block[node])][int(arrays.slot[node]) + chosen] = 1
    return _alike(game, rows, 1.0)


def uniform_strategy(game: Game) -> Strategy:
    """Return the strategy that is uniform at every infoset; all weights are 0."""
    counts = [np.diff(row_starts(game, block)) for block in range(len(game.tree.row_slots))]
    return _alike(game, [np.repeat(1.0 / count, count) for count in counts], 0.0)


def _alike(game: Game, rows: Sequence[Floats], weight: float) -> Strategy:
    """Return a strategy with the same probabilities in every bucket; its arrays are read-only views.

    rows    [slots] for each block (street and player): probabilities of the actions of its decisions
    weight  weight of every row
    """
    shapes = list(zip(game.buckets.tolist(), game.tree.row_count.tolist(), strict=True))
    return Strategy(
        tuple(np.broadcast_to(row, (buckets, len(row))) for row, (buckets, _) in zip(rows, shapes, strict=True)),
        tuple(np.broadcast_to(np.float64(weight), shape) for shape in shapes),
    )
