"""What is dealt in a hand of the responder: his own cards, which hands the policy may hold, and the board as it comes.

The policy's hand is never drawn: every hand that it may hold has a weight.  So the board is drawn as if there were no
such hand, and the weights answer for it: a hand that the board hits drops out, and the others are multiplied with the
share by which the board is likelier beside them.  Sums of weights over all hands are then right in expectation, and
where every board is looked at, exactly.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT, combo_index
from abstraction.evaluator import evaluator_tables
from mccfr.cards.deals import card_masks
from mccfr.cards.dealt import DealtCards
from mccfr.cards.listed import ListedCards
from mccfr.evaluation.local_best_response.kernels import draw_boards, fill_run_outs, meet_all
from mccfr.play.run_outs import RunOuts
from mccfr.policy.deck import holds_card
from mccfr.rng import EVALUATION, new_stream, uniform

RUN_OUTS = 32
"""Boards that settle an all-in before the turn, where its street is not looked at by the responder."""
LOOKED_BOARDS = 4096
"""Whole boards by which the responder judges his hand before any card lies: the same ones always."""
_MOST_ENUMERATED = 2
"""Cards to come that all run-outs are looked at of: 1,176 on the flop."""
Floats = npt.NDArray[np.float64]
_DECK = np.arange(CARD_COUNT, dtype=np.int8)


class ResponderDeal(ABC):
    """One hand of the responder, as far as it has been dealt.  H hands of the policy.

    street  the board of which lies
    """

    street: int

    @abstractmethod
    def buckets(self) -> npt.NDArray[np.int32]:
        """[H] the policy's bucket of each hand; any where a hand cannot be held."""

    @property
    @abstractmethod
    def equity(self) -> Floats:
        """[H] the responder's chance to win less that to lose against each hand, by which he decides."""

    @property
    def settlement(self) -> Floats:
        """[H] the same, by which hands are paid: right in expectation over what is drawn for it."""
        return self.equity

    @staticmethod
    def met(weight: Floats) -> float:
        """What the weights [H] of the policy's hands sum to."""
        return float(weight.sum())

    def won(self, weight: Floats) -> float:
        """Weight [H] that the responder's hand beats less what beats it, by which he decides."""
        return float(weight @ self.equity)

    @property
    @abstractmethod
    def following(self) -> Sequence[tuple["ResponderDeal", Floats]]:
        """The next street: boards, each with what the weights [H] are multiplied with."""


def _balance(strength: npt.NDArray[np.int16], hand: int) -> tuple[Floats, Floats]:
    """([H] boards of strength [R, H] that a hand wins less those that it loses, [H] boards that leave both)."""
    balance, live_boards = np.empty((2, strength.shape[1]), np.int32)
    meet_all(strength, hand, balance, live_boards)
    return balance.astype(np.float64), live_boards.astype(np.float64)


# --- hands and boards in a list ---


class ListedTable:
    """Deals of listed cards."""

    def __init__(self, cards: ListedCards) -> None:
        """`cards` of the game."""
        self.cards = cards
        masks = cards.hand_masks()
        self.disjoint = (masks[:, None] & masks) == 0
        self.leaves = [(card_masks(boards)[:, None] & masks) == 0 for boards in cards.board_cards]
        known, numbers = np.unique(cards.strength, return_inverse=True)  # kernels take int16
        self.strength = (numbers.reshape(cards.strength.shape) - (known[0] < 0)).astype(np.int16)
        self._below: list[npt.NDArray[np.integer]] = [np.arange(len(self.strength))]
        for parents in cards.board_parent[:0:-1]:
            self._below.insert(0, parents[self._below[0]])

    def last_boards(self, street: int, board: int) -> npt.NDArray[np.int64]:
        """Boards of the last street that follow a board."""
        return np.flatnonzero(self._below[street] == board)

    def weights(self, seat: int) -> Floats:
        """[H] probability of each hand of the responder."""
        own, other = self.cards.reach[seat], self.cards.reach[1 - seat]
        found = own * (self.disjoint @ other)
        return found / found.sum()

    def prior(self, seat: int, hand: int) -> Floats:
        """[H] probability of each hand of the policy beside one of the responder's."""
        found = self.cards.reach[1 - seat] * self.disjoint[hand]
        return found / found.sum()

    def begun(self, seat: int, hand: int, draws: Floats | None = None) -> list[tuple["ListedHand", Floats]]:
        """The first board of a hand, with the weights of the policy's hands: all of them, or one by draws [S]."""
        prior = self.prior(seat, hand)
        return [
            (ListedHand(self, seat, hand, 0, board, draws), prior * factor)
            for board, factor in self.next_boards(hand, 0, range(len(self.leaves[0])), draws)
        ]

    def next_boards(
        self, hand: int, street: int, boards: Sequence[int], draws: Floats | None
    ) -> Iterator[tuple[int, Floats]]:
        """Those of the boards that come next beside a hand, each with the factor of the weights."""
        leaves = self.leaves[street]
        free = [board for board in boards if leaves[board, hand]]
        beside = leaves[free].sum(axis=0)  # boards that leave a hand of the policy's as well
        share = np.divide(1.0, beside, out=np.zeros(len(beside)), where=beside > 0)
        if draws is not None:
            share *= len(free)
            free = [free[int(draws[street] * len(free))]]
        for board in free:
            yield board, share * leaves[board]


class ListedHand(ResponderDeal):
    """A hand of the responder on a listed board."""

    def __init__(self, table: ListedTable, seat: int, hand: int, street: int, board: int, draws: Floats | None) -> None:
        """`draws` [S] choose the boards to come; None: all of them come."""
        self._table, self._seat, self._hand, self._draws = table, seat, hand, draws
        self.street, self._board = street, board

    def buckets(self) -> npt.NDArray[np.int32]:
        """As `ResponderDeal.buckets`."""
        return np.maximum(self._table.cards.bucket[self.street][1 - self._seat, self._board], 0)

    @cached_property
    def equity(self) -> Floats:
        """As `ResponderDeal.equity`: over all boards to come."""
        boards = self._table.last_boards(self.street, self._board)
        balance, live_boards = _balance(self._table.strength[boards], self._hand)
        return balance / np.maximum(live_boards, 1)

    @cached_property
    def following(self) -> Sequence[tuple[ResponderDeal, Floats]]:
        """As `ResponderDeal.following`."""
        street = self.street + 1
        boards = np.flatnonzero(self._table.cards.board_parent[street] == self._board).tolist()
        return [
            (ListedHand(self._table, self._seat, self._hand, street, board, self._draws), factor)
            for board, factor in self._table.next_boards(self._hand, street, boards, self._draws)
        ]


# --- the whole deck ---


class DeckTable:
    """Deals of the whole deck: of each unit both seats' hands and the board, all different cards."""

    def __init__(self, cards: DealtCards, seed: int, looks: set[int]) -> None:
        """`looks` are the streets on which the responder decides by his chances."""
        self.cards, self._seed, self.looks = cards, seed, looks
        self.known = [cards.cards_on(street) for street in range(cards.streets)]
        self.holds = holds_card()
        self._looked: dict[int, Floats] = {}

    def unit(self, number: int) -> tuple["DeckBoard", tuple[int, int], npt.NDArray[np.uint64]]:
        """Board, hands by seat, and the generator [4] uint64 of whatever else is drawn."""
        state = new_stream(self._seed, 0, EVALUATION, number)
        dealt = np.zeros((1, 4 + self.known[-1]), np.int8)
        draw_boards(state, _DECK.copy(), 0, dealt)
        cards = dealt[0].tolist()
        hands = [combo_index(*cards[place : place + 2]) for place in (0, 2)]
        return DeckBoard(self, cards[4:], state), (hands[0], hands[1]), state

    def left(self, cards: Sequence[int]) -> npt.NDArray[np.int8]:
        """The deck without some cards."""
        return np.delete(_DECK, cards)

    def strengths(self, boards: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
        """[R, 1326] strengths on full boards [R, n]."""
        strength = np.empty((len(boards), COMBO_COUNT), np.int16)
        fill_run_outs(evaluator_tables(), boards, strength)
        return strength

    @cached_property
    def _looked_boards(self) -> npt.NDArray[np.int16]:
        boards = np.zeros((LOOKED_BOARDS, self.known[-1]), np.int8)
        draw_boards(new_stream(0, 0, EVALUATION), _DECK.copy(), 0, boards)
        return self.strengths(boards)

    @cached_property
    def looked_run_outs(self) -> RunOuts:
        """The same boards, for all hands at once."""
        last = self.known[-1]
        return RunOuts.of(self._looked_boards, comb(CARD_COUNT, last) / comb(CARD_COUNT - 4, last))

    def looked(self, hand: int) -> Floats:
        """[1326] `ResponderDeal.equity` of a hand before any card lies, on `LOOKED_BOARDS` boards."""
        if hand not in self._looked:
            balance, live_boards = _balance(self._looked_boards, hand)
            self._looked[hand] = balance / np.maximum(live_boards, 1)
        return self._looked[hand]


class DeckBoard:
    """The board of a unit, and what both seats see of it."""

    def __init__(self, table: DeckTable, cards: Sequence[int], state: npt.NDArray[np.uint64]) -> None:
        """`cards` in order of dealing; `state` of the generator, which run-outs are drawn with."""
        self.table, self.state = table, state
        self.cards = list(cards)
        self._buckets: dict[int, npt.NDArray[np.int32]] = {}
        self._run_outs: dict[int, npt.NDArray[np.int16]] = {}

    def buckets(self, street: int) -> npt.NDArray[np.int32]:
        """[1326] of every combination; any where it is hit."""
        if street not in self._buckets:
            board = self.cards[: self.table.known[street]]
            self._buckets[street] = np.maximum(self.table.cards.bucket_row(street, 0, board), 0)
        return self._buckets[street]

    def hits(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """[1326] combinations that share a card with board cards first .. last - 1."""
        return np.logical_or.reduce(self.table.holds[self.cards[first:last]], axis=0)

    def luck(self, hand: int) -> float:
        """Chance to win less that to lose at a showdown against any hand on the full board.

        Over all deals its mean is 0, by symmetry: of two random hands either may be the responder's.
        """
        balance, live_boards = _balance(self.run_outs(len(self.table.known) - 1), hand)
        live_boards[self.table.holds[self.table.holds[:, hand]].any(axis=0)] = 0
        return float(balance @ live_boards / live_boards.sum())

    def run_outs(self, street: int) -> npt.NDArray[np.int16]:
        """[R, 1326] strengths on all full boards that may follow from a street's."""
        if street not in self._run_outs:
            known, last = self.table.known[street], self.table.known[-1]
            left = self.table.left(self.cards[:known])
            boards = np.zeros((comb(len(left), last - known), last), np.int8)
            boards[:, :known] = self.cards[:known]
            if last > known:
                boards[:, known:] = list(combinations(left.tolist(), last - known))
            self._run_outs[street] = self.table.strengths(boards)
        return self._run_outs[street]


class DeckHand(ResponderDeal):
    """A hand of the responder on a unit's board."""

    def __init__(self, board: DeckBoard, hand: int, street: int = 0) -> None:
        """`hand` is a combination."""
        self._board, self._hand, self.street = board, hand, street
        self._known = board.table.known[street]
        self._own = np.flatnonzero(board.table.holds[:, hand]).tolist()

    def prior(self) -> Floats:
        """[1326] probability of each hand of the policy before anything is bet."""
        table = self._board.table
        free = ~(table.holds[self._own].any(axis=0) | self._board.hits(0, table.known[0]))
        return free / free.sum()

    def buckets(self) -> npt.NDArray[np.int32]:
        """As `ResponderDeal.buckets`."""
        return self._board.buckets(self.street)

    @property
    def _to_come(self) -> int:
        return self._board.table.known[-1] - self._known

    @cached_property
    def equity(self) -> Floats:
        """As `ResponderDeal.equity`: over all boards to come on the flop and later, before it over the
        same drawn ones.
        """
        if self._to_come > _MOST_ENUMERATED:
            return self._board.table.looked(self._hand)
        balance, live_boards = _balance(self._board.run_outs(self.street), self._hand)
        return balance / np.maximum(live_boards, 1)

    @cached_property
    def settlement(self) -> Floats:
        """As `ResponderDeal.settlement`: where the equity would cost too much, or is none over all boards, by some
        run-outs.
        """
        looked_at = self._to_come == _MOST_ENUMERATED and self.street in self._board.table.looks
        if self._to_come < _MOST_ENUMERATED or looked_at:
            return self.equity
        board, table = self._board, self._board.table
        left = table.left([*self._own, *board.cards[: self._known]])
        boards = np.zeros((RUN_OUTS, table.known[-1]), np.int8)
        boards[:, : self._known] = board.cards[: self._known]
        draw_boards(board.state, left, self._known, boards)
        # What leaves a hand of the policy's is divided by how many should, and not by how many do, which would be
        # right in the limit only.
        leaving = comb(len(left) - 2, self._to_come) / comb(len(left), self._to_come)
        return _balance(table.strengths(boards), self._hand)[0] / (RUN_OUTS * leaving)

    @cached_property
    def following(self) -> Sequence[tuple[ResponderDeal, Floats]]:
        """As `ResponderDeal.following`: the board of the unit."""
        street, known = self.street + 1, self._board.table.known
        left, dealt = CARD_COUNT - 2 - self._known, known[street] - self._known
        likelier = comb(left, dealt) / comb(left - 2, dealt)  # than beside nobody
        factor = np.where(self._board.hits(self._known, known[street]), 0.0, likelier)
        return [(DeckHand(self._board, self._hand, street), factor)]


def drawn(state: npt.NDArray[np.uint64], count: int) -> Floats:
    """[count] uniform draws."""
    return np.array([uniform(state) for _ in range(count)])
