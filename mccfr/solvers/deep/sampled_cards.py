"""Network inputs for cards dealt from the whole deck, without a list of infosets.

Columns are those of `mccfr.solvers.deep.network_inputs`: a group for the hand and one for the cards of each street,
then the bets.  A group counts its cards by rank (13 columns), by suit (4) and one by one (52).  A card is the number
4·rank + suit.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from abstraction.hand_evaluator import evaluator_tables
from abstraction.kernels.jit import nogil_njit
from abstraction.lookup import DEAL_CARDS, fill_results
from mccfr.cards.full_deck_deals import draw_cards
from mccfr.common.rng import DEALS
from mccfr.games.game import Game
from mccfr.solvers.deep.network_inputs import bet_columns
from mccfr.trees.compiled import CHANCE

_RANKS, _SUITS = 13, 4
GROUP = _RANKS + _SUITS + CARD_COUNT
"""Columns of a group of cards."""
_HAND = 2
NO_CARD = 255
"""Marks a card that is not dealt yet."""


@dataclass(frozen=True)
class CardView:
    """Description of the network inputs: N nodes, A actions, S streets, G groups of cards.

    known  [S]             board cards on each street
    ends   [G] int64       end of each group in a player's cards (hand first, then board)
    lines  [N, B] float32  columns of bets of each decision
    legal  [N, A] float32  1 for the actions of each decision
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
    def groups(self) -> tuple[int, ...]:
        """Return the number of columns of each group."""
        return (GROUP,) * len(self.ends)

    @property
    def cards(self) -> int:
        """Return the number of cards that a player may see: the hand and the whole board."""
        return int(self.ends[-1])


@dataclass(frozen=True)
class SampledHands:
    """K deals by their cards.

    cards   [K, 9] int8  player 0's hand, player 1's hand, the board in order of dealing
    result  [K] float64  showdown result for player 0: 1, 0 or -1
    """

    cards: npt.NDArray[np.int8]
    result: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.result)

    def seen(self, player: int, known: int, width: int) -> npt.NDArray[np.uint8]:
        """Return [K, width] a player's hand with `known` board cards, then NO_CARD."""
        found = np.full((len(self), width), NO_CARD, np.uint8)
        found[:, :_HAND] = self.cards[:, _HAND * player : _HAND * (player + 1)]
        found[:, _HAND : _HAND + known] = self.cards[:, 2 * _HAND : 2 * _HAND + known]
        return found

    def part(self, first: int, stop: int) -> "SampledHands":
        """Return the deals first to stop-1."""
        return SampledHands(self.cards[first:stop], self.result[first:stop])


def view(game: Game) -> CardView:
    """Return the description of network inputs; raise `ValueError` for a game with chance in its tree."""
    tree = game.tree
    if (tree.arrays.kind == CHANCE).any():
        raise ValueError(f"{game.name} has chance in its tree: deep-cfr takes it where infosets can be listed only")
    known = tuple(game.cards.cards_on(street) for street in range(tree.streets))
    steps = [after for before, after in pairwise((0, *known)) if after > before]
    counts = np.where(np.isin(np.arange(tree.nodes), tree.decisions), tree.arrays.count, 0)
    legal = np.arange(int(counts.max())) < counts[:, None]
    ends = np.array([_HAND, *(_HAND + after for after in steps)], np.int64)
    return CardView(known, ends, bet_columns(game), legal.astype(np.float32))


def draw_hands(seed: int, first: int, count: int, board_cards: int, purpose: int = DEALS) -> SampledHands:
    """Return the deals numbered first to first+count-1.

    With purpose DEALS these are the training deals of the seed.
    """
    cards, result, state = np.zeros((count, DEAL_CARDS), np.int8), np.zeros(count), np.zeros(4, np.uint64)
    draw_cards(np.uint64(seed), np.uint64(0), purpose, first, count, state, cards)
    fill_results(evaluator_tables(), cards, count, board_cards, result)
    return SampledHands(cards, result)


@nogil_njit
def count_cards(cards, ends, out):
    """Write the card columns of cards [n, C] uint8 to out [n, >= G·69] float32, in place."""
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


def card_values(seen: CardView, cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return [n, card columns] float32 of cards [n, C]."""
    out = np.zeros((len(cards), seen.card_columns), np.float32)
    count_cards(cards, seen.ends, out)
    return out
