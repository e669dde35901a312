"""Memories of samples that name a decision and its player's cards, about 32 bytes a sample.

The choice of samples to keep and the order of minibatches are those of `mccfr.solvers.deep.sample_memory`.  A network's
inputs are computed when a sample is read.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from abstraction.kernels.prefetch import prefetch_to_read
from mccfr.solvers.deep.fitting import Batch
from mccfr.solvers.deep.sample_memory import AHEAD, SampleOrder
from mccfr.solvers.deep.sampled_cards import CardView, count_cards


class SampledCardsMemory(NamedTuple):
    """Samples of one player: at most M, A actions, C cards.

    node    [M] int32     decision
    cards   [M, C] uint8  the player's hand, then the board; NO_CARD if not dealt yet
    weight  [M] float     weight in the loss
    value   [M, A] float  regrets in chips, or probabilities
    """

    node: npt.NDArray[np.int32]
    cards: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]


@njit
def _read(memory, numbers, ends, lines, given, weight, total):
    """Fill inputs, weights, and weights times values of the samples `numbers`, in place.

    lines   [N, B] columns of bets
    given   [n, F]
    weight  [n]
    total   [n, A]
    """
    cards, width, columns = memory.cards.shape[1], memory.value.shape[1], given.shape[1] - lines.shape[1]
    for asked in range(numbers.shape[0] + AHEAD):
        if asked < numbers.shape[0]:
            prefetch_to_read(memory.node, numbers[asked])
            prefetch_to_read(memory.weight, numbers[asked])
            prefetch_to_read(memory.cards, numbers[asked] * cards)
            prefetch_to_read(memory.value, numbers[asked] * width)
        if asked < AHEAD:
            continue
        k = asked - AHEAD
        sample = numbers[k]
        count_cards(memory.cards[sample : sample + 1], ends, given[k : k + 1])
        node = memory.node[sample]
        for column in range(lines.shape[1]):
            given[k, columns + column] = lines[node, column]
        weight[k] = memory.weight[sample]
        for action in range(width):
            total[k, action] = weight[k] * memory.value[sample, action]


class SampledCardsBatches:
    """Minibatches of a memory: a `mccfr.solvers.deep.fitting.Batches`."""

    def __init__(
        self, seen: CardView, memory: SampledCardsMemory, held: int, batch: int, start: int, unit: float = 1.0
    ) -> None:
        """Prepare minibatches of `batch` from the first `held` samples; targets are values divided by `unit`.

        start  determines the order of the samples
        """
        self.weight = float(memory.weight[:held].sum(dtype=np.float64)) / held * batch
        self._view, self._memory, self._batch, self._unit = seen, memory, batch, unit
        self._walk = SampleOrder(held, start)
        self._given = np.zeros((batch, seen.card_columns + seen.lines.shape[1]), np.float32)
        self._weight, self._total = np.zeros(batch), np.zeros((batch, memory.value.shape[1]))

    def next(self) -> Batch:
        """Return the next minibatch; its arrays are reused."""
        numbers, memory = self._walk.take(self._batch), self._memory
        _read(memory, numbers, self._view.ends, self._view.lines, self._given, self._weight, self._total)
        self._total /= self._unit
        return Batch(self._given, self._weight, self._total, self._view.legal[memory.node[numbers]])


def cards_known(seen: CardView, block: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return [N] the number of cards that the player at each node sees, from the nodes' blocks."""
    hand = int(seen.ends[0])
    return hand + np.array(seen.known, np.int64)[np.maximum(block, 0) // 2]
