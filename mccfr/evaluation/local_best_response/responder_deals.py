"""Cards of one LBR hand: the responder's hand, the weights of the policy's hands, and the board.

The policy's hand is never drawn; every possible hand has a weight. The board is drawn from the cards the responder
does not hold. A policy hand that shares a card with the board gets weight 0. The other weights are multiplied by the
ratio of the board's probability given that hand to its probability without it. Sums of weights are then unbiased,
and exact if every board is enumerated.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT, combo_index
from abstraction.hand_evaluator import evaluator_tables, fill_strengths_on_boards
from mccfr.cards.card_index import IndexedCards
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import card_masks
from mccfr.common.rng import EVALUATION, new_stream, uniform
from mccfr.evaluation.local_best_response.range_kernels import draw_boards, meet_all
from mccfr.play.showdown_values import RunOuts
from mccfr.policy.policy_deck import holds_card

RUN_OUTS = 32
"""Number of drawn boards that settle an all-in before the turn if the responder does not enumerate them."""
LOOKED_BOARDS = 4096
"""Number of full boards for the responder's preflop equity; always the same boards."""
_MOST_ENUMERATED = 2
"""Most cards to come for which all run-outs are enumerated (1,176 on the flop)."""
Floats = npt.NDArray[np.float64]
_DECK = np.arange(CARD_COUNT, dtype=np.int8)


class ResponderDeal(ABC):
    """The responder's hand and the board up to a street, against all H hands of the policy.

    street  number of the board's street, from 0
    """

    street: int

    @abstractmethod
    def buckets(self) -> npt.NDArray[np.int32]:
        """Return [H] the policy's bucket of each hand; arbitrary for hands the board blocks."""

    @property
    @abstractmethod
    def equity(self) -> Floats:
        """[H] probability to beat each policy hand minus that to lose to it, for choosing actions."""

    @property
    def settlement(self) -> Floats:
        """[H] responder's probability to beat each policy hand minus that to lose, for payoffs.

        If it is computed on drawn boards, its expectation is the exact value.
        """
        return self.equity

    @staticmethod
    def opponent_weight(weight: Floats) -> float:
        """Return the sum of the weights of the policy's hands, one number for the responder's one hand.

        `OpponentRanges.opponent_weight` has a number for each hand of the responder instead.

        weight  [H] weights; 0 for hands that share a card with the responder's hand or the board
        """
        return float(weight.sum())

    def won(self, weight: Floats) -> float:
        """Return the policy's weight that the responder beats minus the weight that beats it.

        It serves to choose actions; payoffs use `settlement`.

        weight  [H] weights of the policy's hands
        """
        return float(weight @ self.equity)

    @property
    @abstractmethod
    def following(self) -> Sequence[tuple["ResponderDeal", Floats]]:
        """List of (deal of the next street, factors [H]), one entry for each next board.

        If boards are drawn, there is one entry. The responder's hand stays the same. The factors multiply the weights
        of the policy's hands, so that sums over boards are expectations. They are 0 for hands that the board blocks.
        """


def _balance(strength: npt.NDArray[np.int16], hand: int) -> tuple[Floats, Floats]:
    """Compare one hand with each of H hands on R full boards.

    Returns two float64 arrays [H]. The first is the number of boards on which `hand` wins minus those on which it
    loses. The second is the number of boards that share no card with either hand.

    strength  [R, H] showdown rank of each hand on each board, higher wins; -1 if hand and board share a card
    hand      index of the hand
    """
    balance, live_boards = np.empty((2, strength.shape[1]), np.int32)
    meet_all(strength, hand, balance, live_boards)
    return balance.astype(np.float64), live_boards.astype(np.float64)


# --- listed hands and boards ---


class ListedTable:
    """Deals for local best response in a game that lists all hands and boards.

    Such a game has a small deck, for example. H hands, S streets. Arguments give a board as its index in the game's
    list for its street.
    """

    def __init__(self, cards: ListedCards) -> None:
        """Precompute which hands and boards share no cards."""
        self.cards = cards
        masks = cards.hand_masks()
        self.disjoint = (masks[:, None] & masks) == 0
        self.leaves = [(card_masks(boards)[:, None] & masks) == 0 for boards in cards.board_cards]
        ranks, numbers = np.unique(cards.strength, return_inverse=True)  # kernels take int16
        self.strength = (numbers.reshape(cards.strength.shape) - (ranks[0] < 0)).astype(np.int16)
        self._below: list[npt.NDArray[np.integer]] = [np.arange(len(self.strength))]
        for parents in cards.board_parent[:0:-1]:
            self._below.insert(0, parents[self._below[0]])

    def last_boards(self, street: int, board: int) -> npt.NDArray[np.int64]:
        """Return indices of the full boards (of the last street) that continue one street's board.

        street  number of the street
        board   index of the board on that street
        """
        return np.flatnonzero(self._below[street] == board)

    def weights(self, seat: int) -> Floats:
        """Return [H] the probability that the player in `seat` is dealt each hand."""
        own, other = self.cards.reach[seat], self.cards.reach[1 - seat]
        probability = own * (self.disjoint @ other)
        return probability / probability.sum()

    def prior(self, seat: int, hand: int) -> Floats:
        """Return [H] the probability of each hand of the policy, given the responder's seat and hand index."""
        weights = self.cards.reach[1 - seat] * self.disjoint[hand]
        return weights / weights.sum()

    def first_boards(self, seat: int, hand: int, draws: Floats | None = None) -> list[tuple["ListedHand", Floats]]:
        """Return [(deal, weights [H] of the policy's hands)] for boards of the first street.

        A deal has the responder's hand and one board.

        seat   the responder's seat, 0 or 1
        hand   index of the responder's hand
        draws  [S] random numbers in [0, 1), one for choosing the board of each street; None: all possible boards
        """
        prior = self.prior(seat, hand)
        return [
            (ListedHand(self, seat, hand, 0, board, draws), prior * factor)
            for board, factor in self.next_boards(hand, 0, range(len(self.leaves[0])), draws)
        ]

    def next_boards(
        self, hand: int, street: int, boards: Sequence[int], draws: Floats | None
    ) -> Iterator[tuple[int, Floats]]:
        """Yield (board, factors [H]) for boards that share no card with the responder's hand.

        The factors multiply the weights of the policy's hands, so that sums over boards are unbiased.

        hand    index of the responder's hand
        street  number of the street
        boards  indices of the boards to choose from
        draws   [S] random numbers in [0, 1), one for choosing the board of each street; None: all possible boards
        """
        leaves = self.leaves[street]
        free = [board for board in boards if leaves[board, hand]]
        beside = leaves[free].sum(axis=0)  # boards compatible with both hands
        share = np.divide(1.0, beside, out=np.zeros(len(beside)), where=beside > 0)
        if draws is not None:
            share *= len(free)
            free = [free[int(draws[street] * len(free))]]
        for board in free:
            yield board, share * leaves[board]


class ListedHand(ResponderDeal):
    """A hand of the responder on a board, in a game that lists all hands and boards."""

    def __init__(self, table: ListedTable, seat: int, hand: int, street: int, board: int, draws: Floats | None) -> None:
        """Take the numbers of the responder's seat and hand, and of the street and its board.

        table  all hands and boards of the game
        draws  [S] random numbers in [0, 1) that choose the board of each later street; None: all boards are followed
        """
        self._table, self._seat, self._hand, self._draws = table, seat, hand, draws
        self.street, self._board = street, board

    def buckets(self) -> npt.NDArray[np.int32]:
        """Return [H] the policy's bucket of each hand on the board; 0 for hands that the board blocks."""
        return np.maximum(self._table.cards.bucket[self.street][1 - self._seat, self._board], 0)

    @cached_property
    def equity(self) -> Floats:
        """[H] probability to win minus to lose against each hand, over all possible last boards."""
        boards = self._table.last_boards(self.street, self._board)
        balance, live_boards = _balance(self._table.strength[boards], self._hand)
        return balance / np.maximum(live_boards, 1)

    @cached_property
    def following(self) -> Sequence[tuple[ResponderDeal, Floats]]:
        """List of (deal of the next street, factors [H]), one entry for each next board.

        If boards are drawn, there is one entry. The responder's hand stays the same. The factors multiply the weights
        of the policy's hands, so that sums over boards are unbiased.
        """
        street = self.street + 1
        boards = np.flatnonzero(self._table.cards.board_parent[street] == self._board).tolist()
        return [
            (ListedHand(self._table, self._seat, self._hand, street, board, self._draws), factor)
            for board, factor in self._table.next_boards(self._hand, street, boards, self._draws)
        ]


# --- full deck ---


class DeckTable:
    """Deals from the full deck for local best response: both players' hands and a full board."""

    def __init__(self, cards: IndexedCards, seed: int, looks: set[int]) -> None:
        """Prepare deals by a seed.

        cards  hands, buckets and streets of the game
        looks  numbers of the streets on which the responder's choice depends on its equity
        """
        self.cards, self._seed, self.looks = cards, seed, looks
        self.known = [cards.cards_on(street) for street in range(cards.streets)]
        self.holds = holds_card()
        self._looked: dict[int, Floats] = {}

    def deal(self, sample: int) -> tuple["DeckBoard", tuple[int, int], npt.NDArray[np.uint64]]:
        """Deal a sample from the full deck: both hands and a full board.

        Returns the board, the hands in seats 0 and 1 (each an index 0 to 1325), and a random state [4] uint64 for other
        draws.

        sample  number of the deal, which determines it together with the seed
        """
        state = new_stream(self._seed, 0, EVALUATION, sample)
        dealt = np.zeros((1, 4 + self.known[-1]), np.int8)
        draw_boards(state, _DECK.copy(), 0, dealt)
        cards = dealt[0].tolist()
        hands = [combo_index(*cards[start : start + 2]) for start in (0, 2)]
        return DeckBoard(self, cards[4:], state), (hands[0], hands[1]), state

    def left(self, cards: Sequence[int]) -> npt.NDArray[np.int8]:
        """Return [n] int8 the card numbers of the deck without `cards`, ascending."""
        return np.delete(_DECK, cards)

    def strengths(self, boards: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
        """Return [R, 1326] showdown ranks on full boards [R, n], higher wins; -1: a shared card."""
        strength = np.empty((len(boards), COMBO_COUNT), np.int16)
        fill_strengths_on_boards(evaluator_tables(), boards, strength)
        return strength

    @cached_property
    def _looked_boards(self) -> npt.NDArray[np.int16]:
        boards = np.zeros((LOOKED_BOARDS, self.known[-1]), np.int8)
        draw_boards(new_stream(0, 0, EVALUATION), _DECK.copy(), 0, boards)
        return self.strengths(boards)

    @cached_property
    def looked_run_outs(self) -> RunOuts:
        """Showdown ranks of all 1,326 hands on 4,096 fixed full boards, for preflop equities."""
        last = self.known[-1]
        return RunOuts.of(self._looked_boards, comb(CARD_COUNT, last) / comb(CARD_COUNT - 4, last))

    def looked(self, hand: int) -> Floats:
        """Return [1326] a hand's preflop probability to beat each other hand minus that to lose.

        It is estimated on 4,096 full boards, always the same ones.

        hand  index of the hand
        """
        if hand not in self._looked:
            balance, live_boards = _balance(self._looked_boards, hand)
            self._looked[hand] = balance / np.maximum(live_boards, 1)
        return self._looked[hand]


class DeckBoard:
    """The board of a sample, with buckets and strengths that both seats share."""

    def __init__(self, table: DeckTable, cards: Sequence[int], state: npt.NDArray[np.uint64]) -> None:
        """Take a full board.

        table  deals of the game, with its cards
        cards  card numbers of the board in order of dealing
        state  [4] uint64 random state for drawing run-outs, advanced in place
        """
        self.table, self.state = table, state
        self.cards = list(cards)
        self._buckets: dict[int, npt.NDArray[np.int32]] = {}
        self._run_outs: dict[int, npt.NDArray[np.int16]] = {}

    def buckets(self, street: int) -> npt.NDArray[np.int32]:
        """Return [1326] the policy's bucket of each hand on one street of this board.

        It is arbitrary for hands that share a card with the board.

        street  number of the street
        """
        if street not in self._buckets:
            board = self.cards[: self.table.known[street]]
            self._buckets[street] = np.maximum(self.table.cards.bucket_row(street, 0, board), 0)
        return self._buckets[street]

    def hits(self, first: int, last: int) -> npt.NDArray[np.bool_]:
        """Return [1326] bool: True for hands that share a card with some cards of the board.

        They are the cards of index `first` to `last` - 1, in order of dealing.
        """
        return np.logical_or.reduce(self.table.holds[self.cards[first:last]], axis=0)

    def luck(self, hand: int) -> float:
        """Return a hand's probability to beat a random hand on the full board minus that to lose.

        Its mean over all deals is 0 by symmetry, so it is the control variate for the luck of the cards.
        """
        balance, live_boards = _balance(self.run_outs(len(self.table.known) - 1), hand)
        live_boards[self.table.holds[self.table.holds[:, hand]].any(axis=0)] = 0
        return float(balance @ live_boards / live_boards.sum())

    def run_outs(self, street: int) -> npt.NDArray[np.int16]:
        """Return [R, 1326] showdown ranks of all hands on all R full boards after one street.

        These are all full boards that contain this board's cards up to the street. Higher ranks win; -1 if hand and
        board share a card.

        street  number of the street
        """
        if street not in self._run_outs:
            dealt_cards, last = self.table.known[street], self.table.known[-1]
            remaining = self.table.left(self.cards[:dealt_cards])
            boards = np.zeros((comb(len(remaining), last - dealt_cards), last), np.int8)
            boards[:, :dealt_cards] = self.cards[:dealt_cards]
            if last > dealt_cards:
                boards[:, dealt_cards:] = list(combinations(remaining.tolist(), last - dealt_cards))
            self._run_outs[street] = self.table.strengths(boards)
        return self._run_outs[street]


class DeckHand(ResponderDeal):
    """A hand of the responder on a sample's board."""

    def __init__(self, board: DeckBoard, hand: int, street: int = 0) -> None:
        """Take the board, the index 0 to 1325 of the hand, and the number of the street."""
        self._board, self._hand, self.street = board, hand, street
        self._known = board.table.known[street]
        self._own = np.flatnonzero(board.table.holds[:, hand]).tolist()

    def prior(self) -> Floats:
        """Return [1326] probability of each hand of the policy before any betting."""
        table = self._board.table
        free = ~(table.holds[self._own].any(axis=0) | self._board.hits(0, table.known[0]))
        return free / free.sum()

    def buckets(self) -> npt.NDArray[np.int32]:
        """Return [1326] the policy's bucket of each hand on the board; arbitrary for hands that it blocks."""
        return self._board.buckets(self.street)

    @property
    def _to_come(self) -> int:
        return self._board.table.known[-1] - self._known

    @cached_property
    def equity(self) -> Floats:
        """[1326] responder's probability to win minus to lose against each hand, for its choices.

        It is over all possible full boards if at most two cards are to come, else over 4,096 fixed ones.
        """
        if self._to_come > _MOST_ENUMERATED:
            return self._board.table.looked(self._hand)
        balance, live_boards = _balance(self._board.run_outs(self.street), self._hand)
        return balance / np.maximum(live_boards, 1)

    @cached_property
    def settlement(self) -> Floats:
        """[1326] responder's probability to win minus to lose against each hand, for payoffs.

        It is the mean over all full boards, or over `RUN_OUTS` (32) drawn ones. They are drawn preflop, and on a flop
        where the responder's choice does not depend on its equity.
        """
        looked_at = self._to_come == _MOST_ENUMERATED and self.street in self._board.table.looks
        if self._to_come < _MOST_ENUMERATED or looked_at:
            return self.equity
        board, table = self._board, self._board.table
        remaining = table.left([*self._own, *board.cards[: self._known]])
        boards = np.zeros((RUN_OUTS, table.known[-1]), np.int8)
        boards[:, : self._known] = board.cards[: self._known]
        draw_boards(board.state, remaining, self._known, boards)
        # Dividing by the expected number of compatible boards is unbiased; the actual number is so in the limit only.
        leaving = comb(len(remaining) - 2, self._to_come) / comb(len(remaining), self._to_come)
        return _balance(table.strengths(boards), self._hand)[0] / (RUN_OUTS * leaving)

    @cached_property
    def following(self) -> Sequence[tuple[ResponderDeal, Floats]]:
        """List of one pair: the same hand on the sample's next street, and factors [1326].

        The factors multiply the weights of the policy's hands; they are 0 for hands that the new board cards block.
        """
        street, card_counts = self.street + 1, self._board.table.known
        remaining, dealt = CARD_COUNT - 2 - self._known, card_counts[street] - self._known
        likelier = comb(remaining, dealt) / comb(
            remaining - 2, dealt
        )  # probability with a policy hand over that without
        factor = np.where(self._board.hits(self._known, card_counts[street]), 0.0, likelier)
        return [(DeckHand(self._board, self._hand, street), factor)]


def uniform_draws(state: npt.NDArray[np.uint64], count: int) -> Floats:
    """Return [count] uniform random numbers in [0, 1); the random state [4] uint64 is advanced."""
    return np.array([uniform(state) for _ in range(count)])
