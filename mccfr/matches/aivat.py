"""AIVAT: unbiased, low-variance estimates of the chips won in a hand.

Burch, Schmid, Moravcik & Bowling 2018, "AIVAT: A new variance reduction technique for agent evaluation in imperfect
information games", section 4. A player is known if its strategy is known. The method has two parts:

* Imaginary observations: a hand's chips are replaced by their mean over all hands that known players may hold, given
  all public actions and cards.
* Corrections: a heuristic estimates the chips from any state of the hand. Wherever chance or a known player acts, the
  mean of its estimates over the outcomes is added. Its estimate for the real outcome is subtracted.

The mean is unchanged for any heuristic, if it is fixed before the hand and the probabilities are right. A better
heuristic leaves less variance.

Each player has a vector of weights, one for each hand. A known player may hold any hand; otherwise only the real hand
has a weight. One formula thus serves matches of two policies, of a policy and a program, and of two programs. For a
program that ignores its hole cards, all hands keep their weights and its actions are not corrected.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board, Deal, IndexedCards
from mccfr.play.hand_beliefs import AnyHand, ObservedRange
from mccfr.play.player import Betting
from mccfr.play.showdown_values import RunOuts, win_minus_lose
from mccfr.play.table import PlayedHand

Weights = npt.NDArray[np.float64]


class HandState(NamedTuple):
    """Public state of a hand.

    actions  actions of both players so far, such as "c" and "r300"
    street   street of the current board; -1 before the first
    board    that street's board: its cards, or its index among the game's listed boards; None before the first
    state    betting state; an `int` if no player acts any more
    settled  after the last action: (f, s). Player 0 wins f + s · r chips before rake; r is 1, 0 or -1 if player 0 wins,
             ties or loses the showdown. None before the end
    """

    actions: tuple[str, ...]
    street: int
    board: Board
    state: Any
    settled: tuple[float, float] | None = None


class Heuristic(ABC):
    """Base class of heuristics, which estimate player 0's chips from any state of a hand.

    Any function is allowed that is fixed before its hand begins.
    """

    def begin(self, seed: int, number: int) -> None:
        """Begin a hand; random draws may depend on the match's seed and the hand's number only."""
        del seed, number

    @abstractmethod
    def values(self, spot: HandState, hero: int, opponent_weights: Weights) -> Weights:
        """Return [H] for each of a player's H hands the weighted sum of values over opposing hands.

        A value is player 0's net chips in the whole hand, if the hand continues from `spot` with these two hands.
        Opposing hands that share a card with the player's are left out of the sum.

        spot              public state of the hand
        hero              player to whose hands the result belongs
        opponent_weights  [H] weights of the opponent's hands

        A heuristic that draws samples returns an unbiased estimate of this sum.
        """

    def foreseen(self, spot: HandState, hero: int, opponent_weights: Weights, dealing: IndexedCards) -> Weights:
        """Return [H] for each of a player's H hands the mean of `values` over the next boards.

        For each pair of hands the mean is over the boards that share no card with either hand.

        spot              public state before the next street's board is dealt
        hero              player to whose hands the result belongs
        opponent_weights  [H] weights of the opponent's hands
        dealing           the game's hands and boards
        """
        boards = dealing.boards_after(spot.street, spot.board)
        total, opponent_reach = np.zeros(dealing.hand_count), np.zeros(dealing.hand_count)
        for board in boards:
            live = dealing.live(spot.street + 1, board)
            left = np.where(live, opponent_weights, 0)
            after = spot._replace(street=spot.street + 1, board=board)
            total += np.where(live, self.values(after, hero, left), 0)
            opponent_reach += np.where(live, dealing.disjoint_weight(left), 0)
        possible = opponent_reach > 0
        return total * np.divide(
            dealing.disjoint_weight(opponent_weights), opponent_reach, out=np.zeros_like(opponent_reach), where=possible
        )


class Aivat:
    """Computes AIVAT's luck-adjusted chips: unbiased estimates of winnings, with less variance."""

    def __init__(self, dealing: IndexedCards, betting: Betting, heuristic: Heuristic) -> None:
        """Take the game's hands and boards, its betting, and the heuristic that estimates chips.

        betting  applies the actions of real hands, and tells at their end which chips are won
        """
        self._dealing, self._betting, self._heuristic = dealing, betting, heuristic

    def terms(
        self, deal: Deal, played: PlayedHand, ranges: Sequence[ObservedRange | AnyHand | None]
    ) -> dict[str, float]:
        """Return a hand's AIVAT terms, {name: chips}; their sum is player 0's luck-adjusted chips.

        They are before rake.

        deal    cards of the hand
        played  its betting
        ranges  for each player: an `ObservedRange` at its start if its strategy is known, `AnyHand` if it ignores its
                cards, None if its strategy is unknown

        The keys are:

        chips               mean chips over known players' possible hands
        deal, board         corrections for hole and board cards
        action 0, action 1  corrections for known players' actions

        Raises `RuntimeError` for an action that the known player's strategy never takes.
        """
        return _Hand(self._dealing, self._heuristic, deal, ranges).walked(self._betting, played)


class _Hand:
    """Replays one hand and sums its AIVAT correction terms."""

    def __init__(
        self, dealing: IndexedCards, heuristic: Heuristic, deal: Deal, ranges: Sequence[ObservedRange | AnyHand | None]
    ) -> None:
        self.dealing, self.heuristic, self.deal, self.ranges = dealing, heuristic, deal, ranges
        self.terms = defaultdict[str, float](float)
        self.weights: list[Weights] = []
        self.live = np.ones(dealing.hand_count, bool)

    def walked(self, betting: Betting, played: PlayedHand) -> dict[str, float]:
        """Replay a hand; return AIVAT terms, {name: chips}, whose sum is player 0's adjusted chips."""
        spot = HandState((), -1, None, betting.start()[0])
        spot = self._deal_hands(spot)
        for state, action in zip(played.states, played.actions, strict=True):
            while spot.street < state.street:
                spot = self._deal_board(spot)
            spot = self._acted(betting, spot, action)
        if played.showdown:
            while spot.street < self.dealing.streets - 1:
                spot = self._deal_board(spot)
            results = self._showdown(spot.board)
            self.terms["chips"] += played.fixed + played.showdown * results
        else:
            self.terms["chips"] += played.fixed
        return dict(self.terms)

    def _correct(self, term: str, expected: float, realised: float) -> None:
        """Add to the AIVAT term named `term` the expected minus the realised value, in chips."""
        self.terms[term] += expected - realised

    def _mean(self, hero: int, values: Weights, weights: Sequence[Weights]) -> float:
        """Return the weighted mean value over all pairs of disjoint hands, one of each player.

        values   [H] for each hand of player `hero`, the sum over the opponent's hands of weight × value
        weights  2 × [H] weights of both players' hands

        Raises `RuntimeError` if no such pair has weight: a known player took an action that its strategy never takes.
        """
        opponent_reach = float(weights[hero] @ self.dealing.disjoint_weight(weights[1 - hero]))
        if opponent_reach <= 0:
            raise RuntimeError("a known player took an action that its strategy never takes: it plays another strategy")
        return float(weights[hero] @ values) / opponent_reach

    def _hero(self) -> int:
        """Return the player for whose hands values are computed: 1 if player 0's strategy is unknown."""
        return 0 if self.ranges[0] is not None else 1

    def _one_hand(self, hand: int) -> Weights:
        weights = np.zeros(self.dealing.hand_count)
        weights[hand] = 1.0
        return weights

    def _deal_hands(self, spot: HandState) -> HandState:
        """Deal the hole cards: set both players' weights of hands, add the deal's correction.

        A player of unknown strategy, None in `ranges`, has only its real hand. Other players have all hands. If both
        have all hands, there is no correction. Returns `spot`, the public state, unchanged.
        """
        prior = list(self.dealing.reach)
        self.weights = [
            weights if known is not None else self._one_hand(hand)
            for weights, known, hand in zip(prior, self.ranges, self.deal.hands, strict=True)
        ]
        if all(known is not None for known in self.ranges):
            return spot
        shown = 1 - self._hero()  # one value vector serves both the expected and the realised value
        values = self.heuristic.values(spot, shown, prior[1 - shown])
        expected = self._mean(shown, values, prior)
        if self.ranges[1 - shown] is None:
            realised = self._mean(shown, self.heuristic.values(spot, shown, self.weights[1 - shown]), self.weights)
        else:
            realised = self._mean(shown, values, self.weights)
        self._correct("deal", expected, realised)
        return spot

    def _deal_board(self, spot: HandState) -> HandState:
        """Deal the next street's board; add AIVAT's correction, if several boards are possible.

        Sets the weights of hands that share a card with the board to 0. Returns the public state after the deal.

        spot  public state before it
        """
        street = spot.street + 1
        board, hero = self.deal.boards[street], self._hero()
        live = self.dealing.live(street, board)
        after = spot._replace(street=street, board=board)
        left = [np.where(live, weights, 0) for weights in self.weights]
        if street or self.dealing.first_boards > 1:  # most games have a single first board, without luck to correct
            foreseen = self.heuristic.foreseen(spot, hero, self.weights[1 - hero], self.dealing)
            values = self.heuristic.values(after, hero, left[1 - hero])
            self._correct("board", self._mean(hero, foreseen, self.weights), self._mean(hero, values, left))
        self.weights, self.live = left, live
        return after

    def _acted(self, betting: Betting, spot: HandState, action: str) -> HandState:
        """Apply an action, add AIVAT's correction if the player is known, and update ranges.

        Returns the public state after the action; `spot` is that before it.
        """
        player, known = spot.state.player, self.ranges[spot.state.player]
        if isinstance(known, ObservedRange):
            self._correct_known_action(betting, spot, action)
        other = self.ranges[1 - player]
        if other is not None:
            other.see(spot.state, action)
        return self._after(betting, spot, action)

    def _correct_known_action(self, betting: Betting, spot: HandState, action: str) -> None:
        player = spot.state.player
        known = self.ranges[player]
        assert isinstance(known, ObservedRange)
        own, others = np.where(self.live, self.dealing.reach[player], 0), self.weights[1 - player]
        expected, after = 0.0, self.weights[player]
        whole = float(self.weights[player] @ self.dealing.disjoint_weight(others))
        realised: float | None = None
        for choice, reach in known.choices(spot.state, spot.board).items():
            weights = own * reach
            values = self.heuristic.values(self._after(betting, spot, choice), player, others)
            expected += float(weights @ values) / whole
            if choice == action:
                after = weights
                pair = (weights, others) if player == 0 else (others, weights)
                realised = self._mean(player, values, pair)
        if realised is None:
            raise RuntimeError(f"a known player has played {action!r}, which its strategy never plays")
        self._correct(f"action {player}", expected, realised)
        self.weights[player] = after
        known.chose(action)

    def _after(self, betting: Betting, spot: HandState, action: str) -> HandState:
        """Return the public state after an action in the state `spot`."""
        state = betting.apply(spot.state, action)
        ended = betting.settled(spot.state, action) if isinstance(state, int) else None
        return spot._replace(actions=(*spot.actions, action), state=state, settled=ended)

    def _showdown(self, board: Board) -> float:
        """Return player 0's mean showdown result, -1 to 1, over the hands that the players may hold.

        board  the last street's board: its cards, or its index among the game's listed boards
        """
        hero = self._hero()
        won = win_minus_lose(self.dealing, RunOuts.of(self.dealing.strengths(board)[None]), self.weights[1 - hero])
        return (1 - 2 * hero) * self._mean(hero, won, self.weights)
