"""Hands and boards of a game as a table deals them: deal after deal, whole ranges on a board, run-outs of all-ins."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, lru_cache, singledispatch
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT, cards_text, combo_cards, combo_index, combo_text
from abstraction.evaluator import board_strengths, strengths
from mccfr.cards.cards import Cards
from mccfr.cards.deals import card_masks
from mccfr.cards.deck import WholeDeck
from mccfr.cards.deck_deals import draw_cards
from mccfr.cards.listed import ListedCards, board_text, card_names, find_boards
from mccfr.rng import EVALUATION, new_stream, uniform
from mccfr.solvers.public.terminals.board_values import won_at_showdowns

Board = Any
"""The board of a street: cards in order of dealing, or the number of a listed one."""
DEALT = 1
"""Worker, so to say, whose stream deals at tables: boards of other evaluations have number 0."""
_KEPT = 64


class Deal(NamedTuple):
    """Two hands, by their numbers, and the board of every street."""

    hands: tuple[int, int]
    boards: tuple[Board, ...]


class RunOuts(NamedTuple):
    """Full boards that may follow a board.  K of them.

    strength  [K, H] int32   showdown order of every hand, -1 where the board hits it
    order     [K, H] uint16  hands by strength, ascending
    factor    what a mean over the boards is multiplied with: each pair of hands meets on 1 in `factor` of them
    """

    strength: npt.NDArray[np.int32]
    order: npt.NDArray[np.uint16]
    factor: float

    @classmethod
    def of(cls, strength: npt.NDArray[np.integer], factor: float = 1.0) -> "RunOuts":
        """Of strengths [K, H]."""
        order = np.argsort(strength, axis=1, kind="stable")
        return cls(strength.astype(np.int32), order.astype(np.uint16), factor)


class Dealing(ABC):
    """Cards beside a betting tree.  H hands in one list for both players, S streets.

    prior  [2, H] float64  each player's weight of each hand; a disjoint pair is dealt in proportion to the product
    cards  [H, 2] int64    cards of each hand; `deck` where it has fewer
    masks  [H] uint64      one bit for each card of a hand
    deck   cards in the deck
    """

    def __init__(self, prior: npt.NDArray[np.float64], cards: npt.NDArray[np.int16], deck: int, streets: int) -> None:
        self.prior, self.deck, self.streets = prior, deck, streets
        self.masks = card_masks(cards)
        self.cards = np.where(cards < 0, deck, cards).astype(np.int64)
        self._twice = (self.cards < deck).all(axis=1)
        self.hands = len(cards)

    @abstractmethod
    def draw(self, seed: int, number: int) -> Deal:
        """Deal `number` of a seed: two hands in proportion to their weights, and a board that hits neither."""

    @abstractmethod
    def hand_text(self, hand: int) -> str:
        """A hand as `Cards.hand_bucket` reads it."""

    @abstractmethod
    def board_text(self, street: int, board: Board) -> str:
        """A board as `Cards.hand_bucket` reads it; "" where the street has none."""

    @abstractmethod
    def read_board(self, street: int, text: str) -> Board:
        """The board of a text; `ValueError` where it is none of the street's."""

    @abstractmethod
    def board_mask(self, street: int, board: Board) -> np.uint64:
        """One bit for each card of a board."""

    @abstractmethod
    def buckets(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """[H] bucket of every hand on a board; below 0 where it cannot be."""

    @abstractmethod
    def following(self, street: int, board: Board) -> list[Board]:
        """The boards of the next street that may follow; of street -1 (and any board) those of the first street."""

    @property
    @abstractmethod
    def first_boards(self) -> int:
        """Number of boards of the first street."""

    @abstractmethod
    def full_boards(
        self, street: int, board: Board, taken: Sequence[int], most: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """Full boards after a board without the cards `taken`: all, or `most` drawn from them; and `RunOuts.factor`."""

    @abstractmethod
    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """[H] showdown order of every hand on a full board, below 0 where it hits the hand."""

    def live(self, street: int, board: Board) -> npt.NDArray[np.bool_]:
        """[H] which hands a board leaves."""
        return (self.masks & self.board_mask(street, board)) == 0

    def met(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """[H] weight [H] of the other player's hands that each hand may meet."""
        sums = np.bincount(self.cards[:, 0], weight, self.deck + 1)
        sums += np.bincount(self.cards[:, 1], weight, self.deck + 1)
        sums[self.deck] = 0
        found: npt.NDArray[np.float64] = weight.sum() - sums[self.cards[:, 0]] - sums[self.cards[:, 1]]
        return found + np.where(self._twice, weight, 0)

    def run_outs(self, street: int, board: Board, taken: Sequence[int], most: int, rng: np.random.Generator) -> RunOuts:
        """Strengths on full boards after a board; arguments as of `full_boards`."""
        full, factor = self.full_boards(street, board, taken, most, rng)
        return RunOuts.of(np.stack([self.strengths(each) for each in full]), factor)

    def won(self, run_outs: RunOuts, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """[H] weight [H] that each hand beats at a showdown less the weight that beats it, mean over run-outs.

        Of all pairs on a board that `run_outs` has drawn, each counts with the probability that it is dealt there.
        """
        out, sums = np.zeros(self.hands), np.zeros(self.deck + 1)
        won_at_showdowns(run_outs.strength, run_outs.order, self.cards.astype(np.uint8), weight, sums, out)
        return out * (run_outs.factor / len(run_outs.strength))

    def results(
        self, hands: tuple[int, int], street: int, board: Board, most: int, rng: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """[K] showdowns of two hands on full boards after a board, all or `most` drawn: +1 player 0 wins, -1, 0."""
        taken = [card for card in self.cards[list(hands)].ravel().tolist() if card < self.deck]
        full, _ = self.full_boards(street, board, taken, most, rng)
        return self._results(hands, full)

    def _results(self, hands: tuple[int, int], full: Sequence[Board]) -> npt.NDArray[np.float64]:
        found = [self.strengths(board)[list(hands)] for board in full]
        return np.array([np.sign(float(one) - float(other)) for one, other in found])


class DeckDealing(Dealing):
    """Of the whole deck: boards are drawn."""

    def __init__(self, deck: WholeDeck) -> None:
        super().__init__(np.ones((2, COMBO_COUNT)), deck.hand_cards(), CARD_COUNT, deck.streets)
        self._deck = deck
        self._known = [deck.cards_on(street) for street in range(deck.streets)]

    def draw(self, seed: int, number: int) -> Deal:
        """As `Dealing.draw`."""
        cards = np.empty((1, 9), np.int8)
        keys = np.uint64(seed), np.uint64(DEALT), EVALUATION, np.int64(number), np.int64(1)
        draw_cards(*keys, np.zeros(4, np.uint64), cards)
        dealt = cards[0].tolist()
        hands = combo_index(dealt[0], dealt[1]), combo_index(dealt[2], dealt[3])
        return Deal(hands, tuple(tuple(dealt[4 : 4 + known]) for known in self._known))

    def hand_text(self, hand: int) -> str:
        """As `Dealing.hand_text`."""
        return combo_text(hand)

    def board_text(self, street: int, board: Board) -> str:
        """As `Dealing.board_text`."""
        return cards_text(board)

    def read_board(self, street: int, text: str) -> Board:
        """As `Dealing.read_board`."""
        return tuple(self._deck.read_board(street, text))

    def board_mask(self, street: int, board: Board) -> np.uint64:
        """As `Dealing.board_mask`."""
        return np.uint64(sum(1 << card for card in board))

    def buckets(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """As `Dealing.buckets`."""
        return self._deck.street_buckets(street, board)

    def following(self, street: int, board: Board) -> list[Board]:
        """As `Dealing.following`, in one order of the cards dealt at a time."""
        before = () if street < 0 else tuple(board)
        left = [card for card in range(CARD_COUNT) if card not in before]
        return [(*before, *more) for more in combinations(left, self._known[street + 1] - len(before))]

    @property
    def first_boards(self) -> int:
        """As `Dealing.first_boards`."""
        return comb(CARD_COUNT, self._known[0])

    def full_boards(
        self, street: int, board: Board, taken: Sequence[int], most: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """As `Dealing.full_boards`."""
        before = () if street < 0 else tuple(board)
        left = [card for card in range(CARD_COUNT) if card not in before and card not in taken]
        more = self._known[-1] - len(before)
        count = comb(len(left), more)
        factor = count / comb(CARD_COUNT - len(before) - 4, more)
        if count <= most:
            return [(*before, *cards) for cards in combinations(left, more)], factor
        drawn = np.argsort(rng.random((most, len(left))), axis=1)[:, :more]
        return [(*before, *cards) for cards in np.array(left)[drawn].tolist()], factor

    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """As `Dealing.strengths`."""
        return board_strengths(full)

    def _results(self, hands: tuple[int, int], full: Sequence[Board]) -> npt.NDArray[np.float64]:
        rows = [np.array([(*combo_cards(hand), *board) for board in full]) for hand in hands]
        return np.sign(strengths(rows[0]).astype(np.float64) - strengths(rows[1]))


class ListedDealing(Dealing):
    """Of listed cards: boards are numbers in the lists of their streets."""

    def __init__(self, cards: ListedCards) -> None:
        super().__init__(cards.reach, cards.hand_cards, cards.deck_size, cards.streets)
        self._cards, self._names = cards, card_names(cards)
        self._board_masks = [card_masks(boards) for boards in cards.board_cards]
        self._below = lru_cache(_KEPT)(self._all_below)

    @cached_property
    def _first_chance(self) -> npt.NDArray[np.float64]:
        """[H] running sum of the weights with which player 0 is dealt each hand."""
        return np.cumsum(self.prior[0] * self.met(self.prior[1]))

    def draw(self, seed: int, number: int) -> Deal:
        """As `Dealing.draw`."""
        state = new_stream(seed, DEALT, EVALUATION, number)
        first = _drawn(self._first_chance, uniform(state))
        second = _drawn(np.cumsum(np.where(self.masks & self.masks[first], 0, self.prior[1])), uniform(state))
        held = self.masks[first] | self.masks[second]
        free = np.flatnonzero((self._board_masks[-1] & held) == 0)
        return self.deal_of(first, second, int(free[int(uniform(state) * len(free))]))

    def deal_of(self, first: int, second: int, last: int) -> Deal:
        """The deal of two hands and a board of the last street."""
        path = [last]
        for parents in self._cards.board_parent[:0:-1]:
            path.append(int(parents[path[-1]]))
        return Deal((first, second), tuple(path[::-1]))

    def all_deals(self) -> list[tuple[Deal, float]]:
        """Every deal that may be, with its probability."""
        found = list[tuple[Deal, float]]()
        for first in np.flatnonzero(self.prior[0]).tolist():
            for second in np.flatnonzero((self.prior[1] > 0) & ((self.masks & self.masks[first]) == 0)).tolist():
                held = self.masks[first] | self.masks[second]
                free = np.flatnonzero((self._board_masks[-1] & held) == 0).tolist()
                weight = float(self.prior[0, first] * self.prior[1, second]) / len(free)
                found.extend((self.deal_of(first, second, last), weight) for last in free)
        total = sum(weight for _, weight in found)
        return [(deal, weight / total) for deal, weight in found]

    def hand_text(self, hand: int) -> str:
        """As `Dealing.hand_text`."""
        return self._cards.hand_names[hand]

    def board_text(self, street: int, board: Board) -> str:
        """As `Dealing.board_text`."""
        return board_text(self._cards, street, board, self._names)

    def read_board(self, street: int, text: str) -> Board:
        """As `Dealing.read_board`; a board of several that look alike, the first."""
        return int(find_boards(self._cards, street, text or None)[0])

    def board_mask(self, street: int, board: Board) -> np.uint64:
        """As `Dealing.board_mask`."""
        return np.uint64(self._board_masks[street][board])

    def buckets(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """As `Dealing.buckets`."""
        return self._cards.bucket[street][player, board]

    def following(self, street: int, board: Board) -> list[Board]:
        """As `Dealing.following`."""
        if street < 0:
            return list(range(len(self._cards.board_cards[0])))
        found: list[int] = np.flatnonzero(self._cards.board_parent[street + 1] == board).tolist()
        return found

    @property
    def first_boards(self) -> int:
        """As `Dealing.first_boards`."""
        return len(self._board_masks[0])

    def _all_below(self, street: int, board: Board) -> tuple[npt.NDArray[np.int64], int]:
        """Last boards that may follow a board, and how many of them leave any one pair of hands."""
        last: npt.NDArray[np.int64] = np.arange(len(self._board_masks[-1]))
        if street >= 0:
            above: npt.NDArray[np.integer] = last
            for parents in self._cards.board_parent[:street:-1]:
                above = parents[above]
            last = last[above == board]
        live = np.ones(self.hands, bool) if street < 0 else self.live(street, board)
        for first in np.flatnonzero(live & (self.prior[0] > 0)).tolist():
            others = np.flatnonzero(live & (self.prior[1] > 0) & ((self.masks & self.masks[first]) == 0))
            if len(others):
                held = self.masks[first] | self.masks[others[0]]
                return last, int(((self._board_masks[-1][last] & held) == 0).sum())
        raise ValueError("no two hands of the game's ranges can be dealt together on a board")

    def full_boards(
        self, street: int, board: Board, taken: Sequence[int], most: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """As `Dealing.full_boards`."""
        last, each = self._below(street, board)
        held = np.uint64(sum(1 << card for card in taken))
        last = last[(self._board_masks[-1][last] & held) == 0]
        drawn = last if len(last) <= most else rng.choice(last, most)
        return drawn.tolist(), len(last) / each

    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """As `Dealing.strengths`."""
        return self._cards.strength[full]


def _drawn(sums: npt.NDArray[np.float64], share: float) -> int:
    """The entry of running sums at a share of their total; none of weight 0."""
    place = int(np.searchsorted(sums, share * sums[-1], side="right"))
    return min(place, int(np.searchsorted(sums, sums[-1])))


@singledispatch
def dealing_of(cards: Cards) -> Dealing:
    """The dealing of a game's cards; `ValueError` where none are dealt beside the tree."""
    raise ValueError("the game keeps its chance in the tree: a table deals cards beside it")


@dealing_of.register
def _(cards: WholeDeck) -> Dealing:
    return DeckDealing(cards)


@dealing_of.register
def _(cards: ListedCards) -> Dealing:
    return ListedDealing(cards)
