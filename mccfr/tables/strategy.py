"""Strategies as arrays: what tables hold, normalised, in the form that evaluation, export and play all share."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.tables.layout import TableSet, table_name
from mccfr.trees.compiled import DECISION


class BlockRows(NamedTuple):
    """The rows of one block as they lie in memory, or in a file that is mapped.

    cells   [buckets, slots or more]  float64: probabilities; uint8, uint16: whole shares of 255 or 65,535; float32 or
            float64 with `sums`: strategy sums, to be normalised, uniform where all of a row are 0
    weight  [buckets, rows]  accumulated weight behind each row, beside shares uniform where it is 0; None: of sums what
            they add up to, of probabilities 1
    sums    whether cells are strategy sums
    """

    cells: npt.NDArray[Any]
    weight: npt.NDArray[np.floating] | None = None
    sums: bool = False

    @property
    def shares(self) -> bool:
        """Whether cells are whole shares."""
        return self.cells.dtype.kind == "u"

    def rows(
        self, row: int, slots: slice, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Probabilities [n, A] and weights [n] of one row for the given buckets [n]; nothing else is read.

        The same to the last bit as in the dense form of the block.
        """
        found = self.cells[buckets, slots].astype(np.float64)
        if self.sums:
            weight = np.zeros(len(found))
            for cells in found.T:  # added in order, as everywhere
                weight += cells
            dead = weight == 0
            found /= np.where(dead, 1.0, weight)[:, None]
            found[dead] = 1.0 / found.shape[1]
            return found, weight
        if self.weight is None:
            return found, np.ones(len(found))
        weight = self.weight[buckets, row].astype(np.float64)
        if self.shares:
            found /= np.iinfo(self.cells.dtype).max
            found[weight == 0] = 1.0 / found.shape[1]
        return found, weight

    def probabilities(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """[buckets, slots] of the whole block; `starts` [rows+1] of its rows, and the end of the last."""
        if self.sums:
            return _normalised(self.cells, starts)[0]
        if self.shares:
            counts, weight = np.diff(starts), np.asarray(self.weight)
            never, uniform = np.repeat(weight == 0, counts, axis=1), np.repeat(1.0 / counts, counts)
            return np.where(never, uniform, self.cells / float(np.iinfo(self.cells.dtype).max))
        return self.cells

    def weights(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """[buckets, rows] of the whole block; `starts` as of `probabilities`."""
        if self.sums:
            return _normalised(self.cells, starts)[1]
        return np.ones((len(self.cells), len(starts) - 1)) if self.weight is None else self.weight.astype(np.float64)


class Strategy:
    """Behaviour of both players, wherever its tables lie.  B blocks (2·street + player).

    blocks       B × BlockRows                  rows as they lie
    probability  B × [buckets, slots] float64   a row's probabilities at slot .. slot+actions-1 sum to 1
    weight       B × [buckets, rows] float64    accumulated weight behind each row; 0: never reached, then uniform
    on_deals     where no table holds what networks play: what they play on `mccfr.solvers.deep.dealt.DealtHands`, row k
                 of deal k; the tables then raise `ValueError`.  None elsewhere
    narrow       strategy sums in cells of 16 bits as they lie, for walks in place: of each block (cells [slot, bucket]
                 int16, scales [row, bucket] uint8); `blocks` are made of them when they are asked for.  None elsewhere
    """

    narrow: Sequence[tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]] | None = None

    def __init__(
        self,
        probability: Sequence[npt.NDArray[np.float64]],
        weight: Sequence[npt.NDArray[np.float64]],
        blocks: Sequence[BlockRows] | None = None,
        on_deals: "Callable[[Any], Strategy] | None" = None,
    ) -> None:
        """`blocks` are made of the arrays where they are None."""
        self.probability, self.weight, self.on_deals = probability, weight, on_deals
        if blocks is None:
            blocks = tuple(BlockRows(rows, behind) for rows, behind in zip(probability, weight, strict=True))
        self.blocks = blocks

    @classmethod
    def stored(cls, game: Game, blocks: Sequence[BlockRows]) -> "Strategy":
        """A strategy of a game by its rows: dense arrays are made when they are asked for, one block at a time."""
        return cls(
            LazyBlocks(len(blocks), lambda block: blocks[block].probabilities(row_starts(game, block))),
            LazyBlocks(len(blocks), lambda block: blocks[block].weights(row_starts(game, block))),
            blocks,
        )


Made = TypeVar("Made")


class LazyBlocks(Sequence[Made]):
    """Values by block, made when they are asked for; the last one is kept."""

    def __init__(self, count: int, make: Callable[[int], Made]) -> None:
        self._count, self._make = count, make
        self._last: tuple[int, Made] | None = None

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


def row_starts(game: Game, block: int) -> npt.NDArray[np.int64]:
    """[rows+1] first slot of each row of a block in order of rows, and the end of the last."""
    arrays = game.tree.arrays
    nodes = np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block))
    starts = np.zeros(int(game.tree.row_count[block]) + 1, np.int64)
    starts[arrays.row[nodes]] = arrays.slot[nodes]  # trees with hidden moves name a row at several nodes
    starts[-1] = game.tree.row_slots[block]
    return starts


@njit
def normalise(sums, starts, probability, weight):
    """Rows of sums [buckets, width] to probabilities and weights, in place; rows without weight become uniform.

    `probability` may be `sums` itself.
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


def _normalised(
    sums: npt.NDArray[Any], starts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Probabilities [buckets, slots] and weights [buckets, rows] of sums [buckets, slots or more]."""
    probability, weight = np.zeros((len(sums), int(starts[-1]))), np.zeros((len(sums), len(starts) - 1))
    if len(starts) > 1:
        normalise(np.ascontiguousarray(sums), starts, probability, weight)
    return probability, weight


def average_block(game: Game, block: int, tables: TableSet) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Probabilities [buckets, slots] and weights [buckets, rows] of one block; otherwise as `average_strategy`."""
    starts = row_starts(game, block)
    if len(starts) == 1:  # nobody acts there
        return _normalised(np.zeros((int(game.buckets[block]), 0)), starts)
    sums = tables.numbers("strategy_sum", block, starts)
    if sums is None:
        raise KeyError(table_name("strategy_sum", block))
    check_sums(sums, block)
    return _normalised(sums, starts)


def check_sums(sums: npt.NDArray[Any], block: int) -> None:
    """Raise `ValueError` where a strategy sum is negative or not finite: no run writes such a table."""
    if sums.size and not (sums.min() >= 0 and np.isfinite(sums.max())):
        raise ValueError(f"{table_name('strategy_sum', block)} holds a negative or infinite sum")


def average_strategy(game: Game, tables: TableSet) -> Strategy:
    """The average strategy of `strategy_sum` tables (cells of padding are ignored).

    Raises `ValueError` where a sum is negative or not finite: no run writes such a table.
    """
    made = [average_block(game, block, tables) for block in range(2 * game.tree.streets)]
    return Strategy(tuple(probability for probability, _ in made), tuple(weight for _, weight in made))


def tabulate(game: Game, choose: Callable[[int, int], npt.ArrayLike]) -> Strategy:
    """A strategy from a function of (node, bucket) giving the probabilities of the node's actions; for small games."""
    blocks = range(2 * game.tree.streets)
    probability = [np.zeros((int(game.buckets[b]), int(game.tree.row_slots[b]))) for b in blocks]
    weight = [np.ones((int(game.buckets[b]), int(game.tree.row_count[b]))) for b in blocks]
    arrays = game.tree.arrays
    for node in game.tree.decisions:
        block, slot, count = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.count[node])
        for bucket in range(int(game.buckets[block])):
            probability[block][bucket, slot : slot + count] = choose(int(node), bucket)
    return Strategy(tuple(probability), tuple(weight))


def pure_strategy(game: Game, action: str) -> Strategy:
    """The action of a label wherever there is one, else the first that is no fold: always-call is "c".

    Where limping is off the button may not call first, and raises by the smallest size.
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
    """Every action alike at every infoset."""
    counts = [np.diff(row_starts(game, block)) for block in range(2 * game.tree.streets)]
    return _alike(game, [np.repeat(1.0 / count, count) for count in counts], 0.0)


def _alike(game: Game, rows: Sequence[npt.NDArray[np.float64]], weight: float) -> Strategy:
    """A strategy that every bucket has alike: rows [slots] of each block, in memory once; its arrays are read-only."""
    shapes = list(zip(game.buckets.tolist(), game.tree.row_count.tolist(), strict=True))
    return Strategy(
        tuple(np.broadcast_to(row, (buckets, len(row))) for row, (buckets, _) in zip(rows, shapes, strict=True)),
        tuple(np.broadcast_to(np.float64(weight), shape) for shape in shapes),
    )
