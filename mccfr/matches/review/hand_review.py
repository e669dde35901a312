"""Review of a played hand: each decision's EV loss by a policy, and the hand's luck-adjusted chips.

The line is followed in the policy's tree as at a table (`mccfr.games.translation`). A bet outside the tree is
followed by its likeliest translation. The reviewed decision's own bet uses all translations with their
probabilities. Both ranges follow the policy by Bayes' rule; an action that the policy never takes leaves the range
unchanged.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board, Deal
from mccfr.games.betting import BettingState
from mccfr.games.line_lookup import LineReading, taken_for
from mccfr.games.translation import Translation, real_betting
from mccfr.matches.acpc import BettingResult, follow_line
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.aivat import Aivat
from mccfr.matches.equity_heuristic import EquityHeuristic
from mccfr.matches.review.action_costs import DecisionCosts
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving import Settings
from mccfr.play.resolving.observer_ranges import nearest_action
from mccfr.play.resolving.resolving_table import Resolver
from mccfr.play.table import PlayedHand
from mccfr.policy.strategy_profile import Behaviour, Profile
from mccfr.trees.betting_lines import line_text

Floats = npt.NDArray[np.float64]
POTS = ("limped", "raised", "3-bet", "4-bet", "5-bet or more")
"""Names of pots by the number of raises before the flop."""
_CERTAIN = 1 - 1e-9


class ReviewedDecision(NamedTuple):
    """A reviewed decision of a hand.

    player, position   name of the player, and 0 for the big blind, 1 for the button
    street             0 before the flop
    line, hand, board  known to the player at that time
    action             taken
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
    """The policy's judgement of a decision, in chips of the real betting.

    taken_for    the line's and action's translation into the policy's tree; "" if the tree contains both
    probability  of the policy to take the action, or its translation
    best         action with the highest EV
    cost_chips   EV loss against it; estimates may be below 0
    ci95_chips   95 % interval; None if there is none
    resolved     the rest of the hand was re-solved for it
    """

    taken_for: str
    probability: float
    best: str
    cost_chips: float
    ci95_chips: tuple[float, float] | None
    resolved: bool = False


class ReviewedHand(NamedTuple):
    """Result of reviewing a hand.

    decisions    with a known EV loss
    unknown      number of other decisions: hidden hands, or no decision in the tree
    pot          one of `POTS`
    won_chips    by position 0; None if unknown
    aivat_chips  the same adjusted for luck by AIVAT; None unless all cards are known
    """

    decisions: list[ReviewedDecision]
    unknown: int
    pot: str
    won_chips: float | None
    aivat_chips: float | None


class _LinePosition:
    """A hand's translation into the tree, and both players' ranges [2, H] there."""

    def __init__(self, source: Behaviour, betting: Translation) -> None:
        self._source, self._betting = source, betting
        self._dealing = source.game.cards.at_table()
        self.reading = LineReading(0, 1.0)
        self.reach = self._dealing.reach.astype(np.float64)

    def rows(self, state: BettingState, board: Board) -> Floats:
        """Return [H, A] action probabilities of the player to act at the current node."""
        buckets = self._dealing.bucket_row(state.street, state.player, board)
        return self._source.rows(self.reading.node, buckets)[0]

    def follow(self, state: BettingState, action: str, board: Board) -> None:
        """Apply an action to the translation and the range."""
        likeliest = max(self._betting.outcomes(self.reading, state, action), key=lambda one: one.probability)
        if self._betting.decides(self.reading):
            column = taken_for(self._source.game.tree, self.reading.node, action, likeliest)
            reach = self.reach[state.player] * self.rows(state, board)[:, column]
            if reach.any():
                self.reach[state.player] = reach
        self.reading = likeliest._replace(probability=1.0)


class Reviewer:
    """Reviews hands of full-deck no-limit hold'em by a policy."""

    def __init__(self, side: Profile, source: Behaviour, boards: int, resolve: str | None = None) -> None:
        """Prepare the review.

        side     the policy loaded in full, for AIVAT's values
        source   the same policy, for its rows
        boards   as in `DecisionCosts`
        resolve  "turn" or "river": from there on each decision is judged by re-solving the rest of the hand with the
                 policy's ranges; None: by the policy itself

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
        """Review a hand from `mccfr.matches.hand_files`; `number` seeds the draws of AIVAT's values."""
        game = follow_line(self._betting.rules, hand.betting)
        texts = ["", *("".join(hand.board[: street + 1]) for street in range(len(hand.board)))]
        boards = [self._dealing.read_board(street, text or None) for street, text in enumerate(texts)]
        trail, decisions, unknown, line = _LinePosition(self._source, self._betting), list[ReviewedDecision](), 0, ""
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
        self, trail: _LinePosition, line: str, state: BettingState, action: str, board: Board, hole: str
    ) -> Verdict | None:
        """Return the verdict on a decision, or None if the policy has none."""
        hand = int(self._dealing.find_hands(hole)[0])
        if self._resolver is not None and state.street >= self._resolver.street:
            return self._resolved(trail, state, action, board, hand)
        if not self._betting.decides(trail.reading):
            return None
        tree, node = self._source.game.tree, trail.reading.node
        labels = [tree.label[child] for child in tree.children(node)]
        if action == "f" and action not in labels:
            return None  # the tree translated the bet to a check, so it has no fold here
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

    def _other(self, trail: _LinePosition, state: BettingState, board: Board) -> Floats:
        """Return [H] weights of the opponent's possible hands; all of them if the range is empty."""
        live = self._dealing.live(state.street, board)
        other = np.where(live, trail.reach[1 - state.player], 0.0)
        return other if other.any() else live.astype(np.float64)

    def _taken_for(self, node: int, labels: Sequence[str], columns: Sequence[tuple[int, float]]) -> str:
        """Return the translation of an action as text."""
        found = [labels[column] + ("" if share > _CERTAIN else f" ({share:.0%})") for column, share in columns]
        return f"{' or '.join(found)} after {line_text(self._source.game.tree, node)!r}"

    def _resolved(
        self, trail: _LinePosition, state: BettingState, action: str, board: Board, hand: int
    ) -> Verdict | None:
        """Return the verdict by re-solving with both ranges; the player's real hand is added to its range."""
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

    def _without_luck(self, hand: LoggedHand, game: BettingResult, boards: list[Board], number: int) -> float | None:
        """Return AIVAT's chips of position 0 with unknown strategies; None unless all cards are known."""
        last = game.states[-1]
        fixed, showdown = self._betting.settled(last, game.actions[-1])
        if not all(hand.holes) or (showdown and len(boards) < self._dealing.streets):
            return None
        first, second = (int(self._dealing.find_hands(hole)[0]) for hole in hand.holes)
        self._heuristic.begin(0, number)
        whole = PlayedHand(hand.betting, game.states, game.actions, fixed, showdown)
        return float(sum(self._aivat.terms(Deal((first, second), tuple(boards)), whole, (None, None)).values()))
