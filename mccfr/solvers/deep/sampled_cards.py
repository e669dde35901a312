"""Deals of cards from the whole deck: network inputs and memories without a list of infosets.

Columns are those of `mccfr.solvers.deep.network_inputs`: a group for the hand and one for the cards of each street,
then the bets.  A group counts its cards by rank (13 columns), by suit (4) and one by one (52).  A card is the number
4·rank + suit.

A sample names a decision and its player's cards: 25 or 27 bytes in float32.  The choice of samples to keep and the
order of minibatches are those of `mccfr.solvers.deep.sample_memory`.  Inputs are computed when a sample is read.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from abstraction.hand_evaluator import evaluator_tables
from abstraction.kernels.jit import njit, nogil_njit
from abstraction.kernels.prefetch import prefetch_to_read
from abstraction.lookup import DEAL_CARDS, fill_results
from mccfr.cards.full_deck_deals import draw_cards
from mccfr.common.rng import DEALS
from mccfr.games.game import Game
from mccfr.solvers.deep.fitting import Batch
from mccfr.solvers.deep.network_inputs import bet_columns
from mccfr.solvers.deep.sample_memory import AHEAD, SampleOrder
from mccfr.trees.compiled import CHANCE

_RANKS, _SUITS = 13, 4
GROUP = _RANKS + _SUITS + CARD_COUNT
"""Columns of a group of cards."""
_HAND = 2
NO_CARD = 255
"""Marks a card that is not dealt yet."""


@dataclass(frozen=True)
class CardView:
    """Constants of a game for network inputs: N nodes, A actions, S streets, G groups of cards.

    A group is the hand or the board cards that a street deals.

    known  [S]             number of visible board cards on each street
    ends   [G] int64       number of cards up to the end of each group in a player's cards (hand first, then board),
                           such as 2, 5, 6, 7 in hold'em
    lines  [N, B] float32  network inputs of the betting before each decision; 0 at other nodes
    legal  [N, A] float32  1 for the actions of each decision, else 0
    """

    known: tuple[int, ...]
    ends: npt.NDArray[np.int64]
    lines: npt.NDArray[np.float32]
    legal: npt.NDArray[np.float32]

    @property
    def card_columns(self) -> int:
        """Return the number of columns of all groups of cards."""
        return GROUP * len(self.ends)

    @property
    def cards(self) -> int:
        """Return the number of cards that a player may see: the hand and the whole board."""
        return int(self.ends[-1])


@dataclass(frozen=True)
class SampledHands:
    """K deals of a game for two players, given by their cards (4·rank + suit).

    cards   [K, 9] int8  player 0's hand, player 1's hand, the board in order of dealing
    result  [K] float64  showdown result for player 0: 1 wins, 0 ties, -1 loses
    """

    cards: npt.NDArray[np.int8]
    result: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.result)

    def visible_cards(self, player: int, board_cards: int, width: int) -> npt.NDArray[np.uint8]:
        """Return [K, width] uint8: a player's hand, `board_cards` board cards, then NO_CARD."""
        visible = np.full((len(self), width), NO_CARD, np.uint8)
        visible[:, :_HAND] = self.cards[:, _HAND * player : _HAND * (player + 1)]
        visible[:, _HAND : _HAND + board_cards] = self.cards[:, 2 * _HAND : 2 * _HAND + board_cards]
        return visible

    def part(self, first: int, stop: int) -> "SampledHands":
        """Return the deals number `first` to `stop`-1, as views."""
        return SampledHands(self.cards[first:stop], self.result[first:stop])


def view(game: Game) -> CardView:
    """Return the `CardView` of a game: constants for the network inputs.

    Raises `ValueError` for a game with chance nodes in its tree.
    """
    tree = game.tree
    if (tree.arrays.kind == CHANCE).any():
        raise ValueError(f"{game.name} has chance in its tree: deep-cfr takes it where infosets can be listed only")
    board_counts = tuple(game.cards.cards_on(street) for street in range(tree.streets))
    steps = [after for before, after in pairwise((0, *board_counts)) if after > before]
    counts = np.where(np.isin(np.arange(tree.nodes), tree.decisions), tree.arrays.count, 0)
    legal = np.arange(int(counts.max())) < counts[:, None]
    ends = np.array([_HAND, *(_HAND + after for after in steps)], np.int64)
    return CardView(board_counts, ends, bet_columns(game), legal.astype(np.float32))


def draw_hands(seed: int, first: int, count: int, board_cards: int, purpose: int = DEALS) -> SampledHands:
    """Return the deals number `first` to `first`+`count`-1; seed, purpose and number determine each.

    board_cards  number of board cards at the showdown; `result` is decided on them
    purpose      number that selects one of several independent series of deals; default: the run's training deals
    """
    cards, result, state = np.zeros((count, DEAL_CARDS), np.int8), np.zeros(count), np.zeros(4, np.uint64)
    draw_cards(np.uint64(seed), np.uint64(0), purpose, first, count, state, cards)
    fill_results(evaluator_tables(), cards, count, board_cards, result)
    return SampledHands(cards, result)


@nogil_njit
def count_cards(cards, ends, out):
    """Write the network inputs of cards: for each group, how often each rank, suit and card occurs.

    cards  [n, C] uint8 a player's hand, then the board; NO_CARD is not counted
    ends   [G] int64 number of cards up to the end of each group
    out    [n, >= G·69] float32; each group gets 13 columns for ranks, 4 for suits and 52 for cards
    """
    for row in range(cards.shape[0]):
        at = 0
        for group in range(ends.shape[0]):
            base = group * GROUP
            for column in range(base, base + GROUP):
                out[row, column] = 0
            while at < ends[group]:
                card = np.int64(cards[row, at])
                at += 1
                if card != NO_CARD:
                    out[row, base + (card >> 2)] += 1
                    out[row, base + _RANKS + (card & 3)] += 1
                    out[row, base + _RANKS + _SUITS + card] += 1


def card_values(card_view: CardView, cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return the network inputs [n, 69·G] float32 of the cards that a player sees in n samples.

    There are G groups of cards: the hand, and the board cards of each street that deals some.  A group has a column
    for each of 13 ranks, 4 suits and 52 cards, which counts the group's cards of that kind.

    cards  [n, C] uint8 the player's hand, then the board; a card is 4·rank + suit, and NO_CARD (255) if not dealt yet
    """
    out = np.zeros((len(cards), card_view.card_columns), np.float32)
    count_cards(cards, card_view.ends, out)
    return out


class SampledCardsMemory(NamedTuple):
    """A memory of at most M samples of one player's regrets or strategies; A actions, C cards.

    node    [M] int32     tree node of the decision
    cards   [M, C] uint8  the player's hand, then the board; NO_CARD if not dealt yet
    weight  [M] float     weight in the loss
    value   [M, A] float  regrets in chips, or probabilities
    """

    node: npt.NDArray[np.int32]
    cards: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]


@njit
def _read(memory, numbers, ends, lines, inputs, weight, total):
    """Fill network inputs, weights, and weights times values of n samples of a memory, in place.

    memory   SampledCardsMemory
    numbers  [n] int64        indices of the samples in the memory
    ends     [G] int64        number of cards up to the end of each group of cards
    lines    [N, B] float32   network inputs of the betting, by node of the tree
    inputs   [n, F] float32   receives card columns, then the B betting columns
    weight   [n] float64      receives weights
    total    [n, A] float64   receives weights times values
    """
    cards, width, columns = memory.cards.shape[1], memory.value.shape[1], inputs.shape[1] - lines.shape[1]
    for ahead in range(numbers.shape[0] + AHEAD):
        if ahead < numbers.shape[0]:
            prefetch_to_read(memory.node, numbers[ahead])
            prefetch_to_read(memory.weight, numbers[ahead])
            prefetch_to_read(memory.cards, numbers[ahead] * cards)
            prefetch_to_read(memory.value, numbers[ahead] * width)
        if ahead < AHEAD:
            continue
        k = ahead - AHEAD
        sample = numbers[k]
        count_cards(memory.cards[sample : sample + 1], ends, inputs[k : k + 1])
        node = memory.node[sample]
        for column in range(lines.shape[1]):
            inputs[k, columns + column] = lines[node, column]
        weight[k] = memory.weight[sample]
        for action in range(width):
            total[k, action] = weight[k] * memory.value[sample, action]


class SampledCardsBatches:
    """Minibatches from a memory whose samples name a decision and cards.

    `next` computes the network inputs of the samples that it returns.
    """

    def __init__(
        self, seen: CardView, memory: SampledCardsMemory, held: int, batch: int, start: int, unit: float = 1.0
    ) -> None:
        """Prepare minibatches of `batch` samples from the first `held` samples of a memory.

        seen   CardView: constants for the network inputs
        start  any number; determines the order of the samples
        unit   number by which the memory's values are divided to give targets, such as the chips of a pot
        """
        self.weight = float(memory.weight[:held].sum(dtype=np.float64)) / held * batch
        self._view, self._memory, self._batch, self._unit = seen, memory, batch, unit
        self._walk = SampleOrder(held, start)
        self._given = np.zeros((batch, seen.card_columns + seen.lines.shape[1]), np.float32)
        self._weight, self._total = np.zeros(batch), np.zeros((batch, memory.value.shape[1]))

    def next(self) -> Batch:
        """Return the next minibatch; the next call overwrites its arrays."""
        numbers, memory = self._walk.take(self._batch), self._memory
        _read(memory, numbers, self._view.ends, self._view.lines, self._given, self._weight, self._total)
        self._total /= self._unit
        return Batch(self._given, self._weight, self._total, self._view.legal[memory.node[numbers]])
