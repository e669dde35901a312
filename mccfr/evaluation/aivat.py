"""AIVAT: what a hand is worth once the luck of cards and of known strategies is taken out of it.

Burch, Schmid, Moravcik & Bowling 2018, "AIVAT: A new variance reduction technique for agent evaluation in imperfect
information games", section 4.  A hand's chips are replaced by their mean over all hands that the players whose strategy
is known may hold, after all that was seen (imaginary observations); and wherever chance or such a player has acted, the
value expected of that, by any heuristic, is added, and the value of what came is taken off.  The mean stays what it is,
whatever the heuristic, as long as that is fixed before the hand and the probabilities are right; the better it is, the
less is left of the variance.

A player's hands are vectors here: the weights of all hands where his strategy is known, his real hand alone where it
is not.  So one formula serves a match of two policies, of a policy and a program, and of two programs.  Of a program
that acts without its hole cards all hands stay as likely as they were, although what it does is not corrected.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.dealt import Board, Deal, DealtCards
from mccfr.play.player import Betting
from mccfr.play.ranges import AnyHand, SeenRange
from mccfr.play.run_outs import RunOuts, win_minus_lose
from mccfr.play.table import PlayedHand

Weights = npt.NDArray[np.float64]


class HandState(NamedTuple):
    """What both players see.

    actions  so far
    street   of the board that lies; -1 before the first
    board    of that street
    state    of the betting; an `int` where nobody acts any more
    settled  there: (chips that player 0 gets whatever the cards, chips times the showdown's result)
    """

    actions: tuple[str, ...]
    street: int
    board: Board
    state: Any
    settled: tuple[float, float] | None = None


class Heuristic(ABC):
    """Values of histories to player 0, in chips: any at all, but fixed before the hand that they are used on."""

    def begin(self, seed: int, number: int) -> None:
        """Another hand: what is drawn for it follows from seed and number, and from nothing that happens in it."""
        del seed, number

    @abstractmethod
    def values(self, spot: HandState, hero: int, other: Weights) -> Weights:
        """[H] for each hand of player `hero`: sum over the hands it may meet of their weight `other` [H] times value.

        Where something is drawn for it, its mean is meant.
        """

    def foreseen(self, spot: HandState, hero: int, other: Weights, dealing: DealtCards) -> Weights:
        """[H] the mean of `values` over the boards of the next street that may follow, by hand of `hero`.

        The weight of a board that hits one of two hands counts as 0, and so means are taken by pairs.
        """
        boards = dealing.boards_after(spot.street, spot.board)
        total, opponent_reach = np.zeros(dealing.hand_count), np.zeros(dealing.hand_count)
        for board in boards:
            live = dealing.live(spot.street + 1, board)
            left = np.where(live, other, 0)
            after = spot._replace(street=spot.street + 1, board=board)
            total += np.where(live, self.values(after, hero, left), 0)
            opponent_reach += np.where(live, dealing.disjoint_weight(left), 0)
        possible = opponent_reach > 0
        return total * np.divide(
            dealing.disjoint_weight(other), opponent_reach, out=np.zeros_like(opponent_reach), where=possible
        )


class Aivat:
    """The corrected chips of one hand after the other."""

    def __init__(self, dealing: DealtCards, betting: Betting, heuristic: Heuristic) -> None:
        """Of a game's cards and its real betting."""
        self._dealing, self._betting, self._heuristic = dealing, betting, heuristic

    def terms(self, deal: Deal, played: PlayedHand, ranges: Sequence[SeenRange | AnyHand | None]) -> dict[str, float]:
        """What the corrected chips of player 0 are the sum of.

        ranges  of the players whose strategy is known, fresh, or does not heed his hand; None for another

        chips   the mean over the hands that known players may hold
        deal, board, action 0, action 1   corrections for what chance and known players did

        Raises `RuntimeError` for an action that a known player never takes.
        """
        return _Hand(self._dealing, self._heuristic, deal, ranges).walked(self._betting, played)


class _Hand:
    """One hand, replayed."""

    def __init__(
        self, dealing: DealtCards, heuristic: Heuristic, deal: Deal, ranges: Sequence[SeenRange | AnyHand | None]
    ) -> None:
        self.dealing, self.heuristic, self.deal, self.ranges = dealing, heuristic, deal, ranges
        self.terms = defaultdict[str, float](float)
        self.weights: list[Weights] = []
        self.live = np.ones(dealing.hand_count, bool)

    def walked(self, betting: Betting, played: PlayedHand) -> dict[str, float]:
        """All terms of the hand."""
        spot = HandState((), -1, None, betting.start()[0])
        spot = self._dealt_hands(spot)
        for state, action in zip(played.states, played.actions, strict=True):
            while spot.street < state.street:
                spot = self._dealt_board(spot)
            spot = self._acted(betting, spot, action)
        if played.showdown:
            while spot.street < self.dealing.streets - 1:
                spot = self._dealt_board(spot)
            results = self._showdown(spot.board)
            self.terms["chips"] += played.fixed + played.showdown * results
        else:
            self.terms["chips"] += played.fixed
        return dict(self.terms)

    def _correct(self, term: str, expected: float, realised: float) -> None:
        """Add what was expected of something and take off what came."""
        self.terms[term] += expected - realised

    def _mean(self, hero: int, values: Weights, weights: Sequence[Weights]) -> float:
        """The mean of values over pairs of hands, from `Heuristic.values`."""
        opponent_reach = float(weights[hero] @ self.dealing.disjoint_weight(weights[1 - hero]))
        if opponent_reach <= 0:
            raise RuntimeError("a known player has done what none of his hands does: its strategy is another one")
        return float(weights[hero] @ values) / opponent_reach

    def _hero(self) -> int:
        """Whose hands values are listed by: a known player's, so that there are many of them."""
        return 0 if self.ranges[0] is not None else 1

    def _one_hand(self, hand: int) -> Weights:
        weights = np.zeros(self.dealing.hand_count)
        weights[hand] = 1.0
        return weights

    def _dealt_hands(self, spot: HandState) -> HandState:
        """The hands that nobody's strategy hides are dealt."""
        prior = list(self.dealing.reach)
        self.weights = [
            weights if known is not None else self._one_hand(hand)
            for weights, known, hand in zip(prior, self.ranges, self.deal.hands, strict=True)
        ]
        if all(known is not None for known in self.ranges):
            return spot
        shown = 1 - self._hero()  # one vector serves the hand that came and those that might have
        values = self.heuristic.values(spot, shown, prior[1 - shown])
        expected = self._mean(shown, values, prior)
        if self.ranges[1 - shown] is None:
            realised = self._mean(shown, self.heuristic.values(spot, shown, self.weights[1 - shown]), self.weights)
        else:
            realised = self._mean(shown, values, self.weights)
        self._correct("deal", expected, realised)
        return spot

    def _dealt_board(self, spot: HandState) -> HandState:
        """The next street's board is dealt."""
        street = spot.street + 1
        board, hero = self.deal.boards[street], self._hero()
        live = self.dealing.live(street, board)
        after = spot._replace(street=street, board=board)
        left = [np.where(live, weights, 0) for weights in self.weights]
        if street or self.dealing.first_boards > 1:  # the first street has but one board in most games
            foreseen = self.heuristic.foreseen(spot, hero, self.weights[1 - hero], self.dealing)
            values = self.heuristic.values(after, hero, left[1 - hero])
            self._correct("board", self._mean(hero, foreseen, self.weights), self._mean(hero, values, left))
        self.weights, self.live = left, live
        return after

    def _acted(self, betting: Betting, spot: HandState, action: str) -> HandState:
        """Somebody has acted."""
        player, known = spot.state.player, self.ranges[spot.state.player]
        if isinstance(known, SeenRange):
            self._known_acted(betting, spot, action)
        other = self.ranges[1 - player]
        if other is not None:
            other.see(spot.state, action)
        return self._after(betting, spot, action)

    def _known_acted(self, betting: Betting, spot: HandState, action: str) -> None:
        player = spot.state.player
        known = self.ranges[player]
        assert isinstance(known, SeenRange)
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
            raise RuntimeError(f"a known player has played {action!r}, which none of his hands does")
        self._correct(f"action {player}", expected, realised)
        self.weights[player] = after
        known.chose(action)

    def _after(self, betting: Betting, spot: HandState, action: str) -> HandState:
        """What both see after an action."""
        state = betting.apply(spot.state, action)
        ended = betting.settled(spot.state, action) if isinstance(state, int) else None
        return spot._replace(actions=(*spot.actions, action), state=state, settled=ended)

    def _showdown(self, board: Board) -> float:
        """The mean result of a showdown over the hands that may be held."""
        hero = self._hero()
        won = win_minus_lose(self.dealing, RunOuts.of(self.dealing.strengths(board)[None]), self.weights[1 - hero])
        return (1 - 2 * hero) * self._mean(hero, won, self.weights)
