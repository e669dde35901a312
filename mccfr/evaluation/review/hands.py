"""A hand that was played, decision by decision: what each cost by a policy, and the hand without the luck of its cards.

The line is followed in the policy's tree as a seat follows it (`mccfr.games.translation`), a bet that the tree has not
by its likeliest reading; a decision's own bet by all of them, each by its probability.  Both ranges are the policy's,
by Bayes; what it never does tells nothing of the hands of who did it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.dealt import Board, Deal
from mccfr.evaluation.aivat import Aivat
from mccfr.evaluation.equity import EquityHeuristic
from mccfr.evaluation.review.costs import DecisionCosts
from mccfr.games.betting import BettingState
from mccfr.games.reading import Reading, taken_for
from mccfr.games.translation import Translation, real_betting
from mccfr.play.acpc import Played, played
from mccfr.play.acpc_log import LoggedHand
from mccfr.play.resolving import Settings
from mccfr.play.resolving.table import Resolver
from mccfr.play.resolving.watching import nearest_action
from mccfr.play.seat import Seat
from mccfr.play.table import PlayedHand
from mccfr.policy.profile import Behaviour, Profile
from mccfr.trees.lines import line_text

Floats = npt.NDArray[np.float64]
POTS = ("limped", "raised", "3-bet", "4-bet", "5-bet or more")
"""Pots by the raises before the flop."""
_CERTAIN = 1 - 1e-9


class ReviewedDecision(NamedTuple):
    """A decision of a hand.

    player, position  whose: name, and 0 for the big blind, 1 for the button
    street            0 before the flop
    line, hand, board what he knew
    action            what he did
    """

    player: str
    position: int
    street: int
    line: str
    hand: str
    board: str
    action: str
    verdict: "Verdict"


class Verdict(NamedTuple):
    """What the policy says of a decision, amounts in chips of the real betting.

    taken_for    where in the policy's tree it was, and how surely; "" where the tree has it
    probability  of the policy's doing it, or what it is taken for
    best         what wins most
    cost_chips   against that; estimates may be below 0
    ci95_chips   95 % interval; None where the cost is exact
    resolved     whether the rest of the hand was solved for it
    """

    taken_for: str
    probability: float
    best: str
    cost_chips: float
    ci95_chips: tuple[float, float] | None
    resolved: bool = False


class ReviewedHand(NamedTuple):
    """What a hand comes to.

    decisions  those whose cost is known
    unknown    number of those whose cost is not: hands not shown, or nothing in the tree to decide
    pot        one of `POTS`
    won_chips  by position 0; None where it is not known
    aivat_chips  the same without the luck of the cards; None where not all cards are known
    """

    decisions: list[ReviewedDecision]
    unknown: int
    pot: str
    won_chips: float | None
    aivat_chips: float | None


class _Trail:
    """Where in the tree a hand is, and both players' ranges [2, H] there."""

    def __init__(self, source: Behaviour, betting: Translation) -> None:
        self._source, self._betting = source, betting
        self._dealing = source.game.cards.at_table()
        self.reading = Reading(0, 1.0)
        self.reach = self._dealing.reach.astype(np.float64)

    def rows(self, state: BettingState, board: Board) -> Floats:
        """[H, A] what hands of the player to act do at the reading's decision."""
        buckets = self._dealing.bucket_row(state.street, state.player, board)
        return self._source.rows(self.reading.node, buckets)[0]

    def follow(self, state: BettingState, action: str, board: Board) -> None:
        """Somebody has acted."""
        likeliest = max(self._betting.outcomes(self.reading, state, action), key=lambda one: one.probability)
        if self._betting.decides(self.reading):
            column = taken_for(self._source.game.tree, self.reading.node, action, likeliest)
            reach = self.reach[state.player] * self.rows(state, board)[:, column]
            if reach.any():
                self.reach[state.player] = reach
        self.reading = likeliest._replace(probability=1.0)


class Reviewer:
    """Reviews hands of whole no-limit hold'em by a policy."""

    def __init__(self, side: Profile, source: Behaviour, boards: int, resolve: str | None = None) -> None:
        """
        side     the policy, read whole, for AIVAT's values
        source   the same, for its rows
        boards   as of `DecisionCosts`
        resolve  "turn" or "river": from there on the rest of the hand is solved for each decision, both ranges as the
                 policy has them; None: the policy goes on as it is

        Raises `ValueError` for another game.
        """
        betting = real_betting(source.game)
        if not isinstance(betting, Translation) or source.game.cards.boards is not None:
            raise ValueError(f"{source.game.name} is not whole no-limit hold'em, whose hands are reviewed")
        self._source, self._betting, self._dealing = source, betting, source.game.cards.at_table()
        self._costs = DecisionCosts(source, self._dealing, boards)
        self._heuristic = EquityHeuristic(side, self._dealing)
        self._aivat = Aivat(self._dealing, betting, self._heuristic)
        self._resolver = None
        if resolve is not None:
            self._resolver = Resolver(Seat(source), Settings(resolve, "unsafe"))

    def review(self, hand: LoggedHand, number: int) -> ReviewedHand:
        """A hand as `mccfr.play.hand_files` finds it; `number` names what is drawn for AIVAT's values."""
        game = played(self._betting.rules, hand.betting)
        texts = ["", *("".join(hand.board[: street + 1]) for street in range(len(hand.board)))]
        boards = [self._dealing.read_board(street, text or None) for street, text in enumerate(texts)]
        trail, decisions, unknown, line = _Trail(self._source, self._betting), list[ReviewedDecision](), 0, ""
        for state, action in zip(game.states, game.actions, strict=True):
            line += "/" * (state.street - line.count("/"))
            board = boards[state.street]
            found = None
            if hand.holes[state.player]:
                found = self._decision(trail, line, state, action, board, hand.holes[state.player])
            if found is None:
                unknown += 1
            else:
                who, hole = state.player, hand.holes[state.player]
                known = line, hole, texts[state.street]
                decisions.append(ReviewedDecision(hand.names[who], who, state.street, *known, action, found))
            if action != "f":
                trail.follow(state, action, board)
            line += action
        raises = sum(
            action[0] == "r" for state, action in zip(game.states, game.actions, strict=True) if not state.street
        )
        won = None if hand.chips is None else hand.chips[0]
        return ReviewedHand(
            decisions, unknown, POTS[min(raises, len(POTS) - 1)], won, self._without_luck(hand, game, boards, number)
        )

    def _decision(
        self, trail: _Trail, line: str, state: BettingState, action: str, board: Board, hole: str
    ) -> Verdict | None:
        """What the policy says of a decision; None where it cannot say."""
        hand = int(self._dealing.find_hands(hole)[0])
        if self._resolver is not None and state.street >= self._resolver.street:
            return self._resolved(trail, state, action, board, hand)
        if not self._betting.decides(trail.reading):
            return None
        tree, node = self._source.game.tree, trail.reading.node
        labels = [tree.label[child] for child in tree.children(node)]
        if action == "f" and action not in labels:
            return None  # a bet that the tree takes for a check cannot be folded to there
        level = float(tree.put_in[node].max())  # type: ignore[index]
        found = self._costs.costs(node, board, hand, self._other(trail, state, board))
        if found is None:
            return None
        scale = state.to_call / level
        outcomes = self._betting.outcomes(trail.reading, state, action)
        columns = [(taken_for(tree, node, action, each), each.probability) for each in outcomes]
        cost = sum(share * found.cost[column] for column, share in columns)
        ends = None if found.ci95 is None else scale * sum(share * found.ci95[column] for column, share in columns)
        row = trail.rows(state, board)[hand]
        real = self._betting.real_actions(trail.reading, state)
        known = line_text(tree, node) == line and action in labels
        there = "" if known else self._taken_for(node, labels, columns)
        return Verdict(
            there,
            float(sum(share * row[column] for column, share in columns)),
            real[int(found.cost.argmin())],
            float(scale * cost),
            None if ends is None else (float(ends[0]), float(ends[1])),
        )

    def _other(self, trail: _Trail, state: BettingState, board: Board) -> Floats:
        """[H] weights of the other's hands; all of them where none of his is left."""
        live = self._dealing.live(state.street, board)
        other = np.where(live, trail.reach[1 - state.player], 0.0)
        return other if other.any() else live.astype(np.float64)

    def _taken_for(self, node: int, labels: Sequence[str], columns: Sequence[tuple[int, float]]) -> str:
        """What a bet is taken for, for people."""
        found = [labels[column] + ("" if share > _CERTAIN else f" ({share:.0%})") for column, share in columns]
        return f"{' or '.join(found)} after {line_text(self._source.game.tree, node)!r}"

    def _resolved(self, trail: _Trail, state: BettingState, action: str, board: Board, hand: int) -> Verdict | None:
        """As `_decision`, by solving what follows: both ranges are believed, his own hand is in his."""
        assert self._resolver is not None
        ranges = np.zeros_like(trail.reach)
        ranges[1 - state.player] = self._other(trail, state, board)
        own = np.where(self._dealing.live(state.street, board), trail.reach[state.player], 0.0)
        own[hand] = max(own[hand], own.max(initial=0.0) / 100, 1e-9)
        ranges[state.player] = own / own.max()
        spot = self._resolver.spot(state.player, state, board, ranges, "unsafe")
        ranges = ranges * spot.weights
        here = self._resolver.solved(state.player, spot, ranges, None, state, "unsafe")
        values = here.values()
        if values is None or np.isnan(values[:, hand]).any():
            return None
        worth = values[:, hand]
        column = nearest_action(here.actions, action)
        there = "" if here.actions[column] == action else f"{here.actions[column]} as the hand is solved"
        probability = float(here.played()[column, hand])
        cost = float(worth.max() - worth[column])
        return Verdict(there, probability, here.actions[int(worth.argmax())], cost, None, resolved=True)

    def _without_luck(self, hand: LoggedHand, game: Played, boards: list[Board], number: int) -> float | None:
        """AIVAT's chips of position 0, neither player's strategy being known."""
        last = game.states[-1]
        fixed, showdown = self._betting.settled(last, game.actions[-1])
        if not all(hand.holes) or (showdown and len(boards) < self._dealing.streets):
            return None
        first, second = (int(self._dealing.find_hands(hole)[0]) for hole in hand.holes)
        self._heuristic.begin(0, number)
        whole = PlayedHand(hand.betting, game.states, game.actions, fixed, showdown)
        return float(sum(self._aivat.terms(Deal((first, second), tuple(boards)), whole, (None, None)).values()))
