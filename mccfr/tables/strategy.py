"""Strategies as arrays: what tables hold, normalised, in the form that evaluation, export and play all share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.tables.layout import TableSet, table_name
from mccfr.trees.compiled import DECISION


class Rows(NamedTuple):
    """The rows of one block as they lie in memory, or in a file that is mapped.

    cells   [buckets, slots or more]  float64: probabilities; uint8, uint16: whole shares of 255 or 65,535
    weight  [buckets, rows] float32   beside shares: a row of weight 0 is uniform; None beside probabilities
    sums    cells are strategy sums instead, float32 or float64: to be normalised, uniform where all are 0
    """

    cells: npt.NDArray[Any]
    weight: npt.NDArray[np.float32] | None = None
    sums: bool = False

    def read(
        self, row: int, slots: slice, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Probabilities [n, A] and weights [n] of one row for the given buckets; nothing else is read.

        The same to the last bit as in the dense form of the block.  Probabilities know no weights, which are then 1.
        """
        found = self.cells[buckets, slots].astype(np.float64)
        if self.sums:
            weight = np.zeros(len(found))
            for cells in found.T:  # added in order, as everywhere
                weight += cells
            dead = weight == 0
            found /= np.where(dead, 1.0, weight)[:, None]
        elif self.weight is None:
            return found, np.ones(len(found))
        else:
            weight = self.weight[buckets, row].astype(np.float64)
            dead = weight == 0
            found /= np.iinfo(self.cells.dtype).max
        found[dead] = 1.0 / found.shape[1]
        return found, weight


class RowSource(Protocol):
    """What can be asked for rows, block by block, without the whole strategy in memory."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""

    def rows(self, block: int) -> Rows:
        """The rows of a block."""


@dataclass(frozen=True)
class Strategy:
    """Behaviour of both players.  B blocks (2·street + player).

    probability  B × [buckets, slots] float64   a row's probabilities at slot .. slot+actions-1 sum to 1
    weight       B × [buckets, rows] float64    accumulated weight behind each row; 0: never reached, then uniform
    """

    probability: Sequence[npt.NDArray[np.float64]]
    weight: Sequence[npt.NDArray[np.float64]]

    @property
    def blocks(self) -> int:
        """As `RowSource.blocks`."""
        return len(self.probability)

    def rows(self, block: int) -> Rows:
        """As `RowSource.rows`."""
        return Rows(self.probability[block])

    def read(
        self, block: int, row: int, slots: slice, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Probabilities [n, A] and weights [n] of one row of a block, its cells at `slots`, for the given buckets."""
        return self.probability[block][buckets, slots], self.weight[block][buckets, row]


class StoredStrategy(Strategy):
    """A strategy whose tables lie in files: its arrays are made when they are asked for, one block at a time."""

    def __init__(
        self,
        stored: Sequence[Rows],
        probability: Callable[[int], npt.NDArray[np.float64]],
        weight: Callable[[int], npt.NDArray[np.float64]],
        forward: Callable[[int, int, npt.NDArray[np.integer]], npt.NDArray[np.float64] | float] | None = None,
    ) -> None:
        """`stored` holds the rows of every block; the functions make a block's arrays of them.

        forward  of (block, row, buckets): what stored weights are multiplied with; None: 1
        """
        super().__init__(BlockArrays(len(stored), probability), BlockArrays(len(stored), weight))
        self._stored: Sequence[Rows]
        self._forward: Callable[[int, int, npt.NDArray[np.integer]], npt.NDArray[np.float64] | float] | None
        object.__setattr__(self, "_stored", stored)  # dataclasses that are frozen take no other
        object.__setattr__(self, "_forward", forward)

    def rows(self, block: int) -> Rows:
        """As `RowSource.rows`: the mapped tables themselves."""
        return self._stored[block]

    def read(
        self, block: int, row: int, slots: slice, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """As `Strategy.read`, from what is stored: nothing is made dense."""
        probability, weight = self._stored[block].read(row, slots, buckets)
        return probability, weight if self._forward is None else weight * self._forward(block, row, buckets)


class BlockArrays(Sequence[npt.NDArray[np.float64]]):
    """Arrays by block, made when they are asked for; the last one is kept."""

    def __init__(self, count: int, make: Callable[[int], npt.NDArray[np.float64]]) -> None:
        self._count, self._make = count, make
        self._last: tuple[int, npt.NDArray[np.float64]] | None = None

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
def _normalise(sums, starts, probability, weight):
    """Rows of sums [buckets, width] to probabilities and weights, in place; rows without weight become uniform."""
    for bucket in range(sums.shape[0]):
        for row in range(starts.shape[0] - 1):
            first, stop = starts[row], starts[row + 1]
            total = 0.0
            for slot in range(first, stop):
                total += sums[bucket, slot]
            weight[bucket, row] = total
            for slot in range(first, stop):
                probability[bucket, slot] = sums[bucket, slot] / total if total > 0.0 else 1.0 / (stop - first)


Fading = Callable[[npt.NDArray[np.integer]], npt.NDArray[np.float64]]
"""What is left of weights, by their stamps (`mccfr.tables.discount.Schedule.faded`)."""


def average_block(
    game: Game, block: int, tables: TableSet, faded: Fading | None = None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Probabilities [buckets, slots] and weights [buckets, rows] of one block; otherwise as `average_strategy`."""
    starts, buckets = row_starts(game, block), int(game.buckets[block])
    probability, weight = np.zeros((buckets, int(starts[-1]))), np.zeros((buckets, len(starts) - 1))
    if len(starts) > 1:
        sums = tables.numbers("strategy_sum", block, starts)
        if sums is None:
            raise KeyError(table_name("strategy_sum", block))
        check_sums(sums, block)
        _normalise(np.ascontiguousarray(sums), starts, probability, weight)
        stamps = tables.rows("strategy_sum_stamp", block)
        if stamps is not None and faded is not None:
            weight *= faded(stamps)
    return probability, weight


def check_sums(sums: npt.NDArray[Any], block: int) -> None:
    """Raise `ValueError` where a strategy sum is negative or not finite: no run writes such a table."""
    if sums.size and not (sums.min() >= 0 and np.isfinite(sums.max())):
        raise ValueError(f"{table_name('strategy_sum', block)} holds a negative or infinite sum")


def average_strategy(game: Game, tables: TableSet, faded: Fading | None = None) -> Strategy:
    """The average strategy of `strategy_sum` tables (cells of padding are ignored).

    Where tables of a former version carry stamps and `faded` is given, weights are brought forward by it; probabilities
    do not depend on it.

    Raises `ValueError` where a sum is negative or not finite: no run writes such a table.
    """
    made = [average_block(game, block, tables, faded) for block in range(2 * game.tree.streets)]
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
