"""Review of a played hand: each decision's EV loss by a policy, and the hand's luck-adjusted chips.

The line is followed in the policy's tree as at a table (`mccfr.games.translation`), by the real pot. A bet outside the
tree is followed by its likeliest translation. From the flop on no decision is judged on another line than the real one:
a street with a bet outside the tree, in that line or before, is solved again with the real stacks, pot and bets
(`mccfr.play.resolving.solved_street`). Both ranges follow the policy, then the solutions, by Bayes' rule. An action
that is never taken leaves the range unchanged.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Deal
from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.games.holdem_betting import BUTTON
from mccfr.games.line_lookup import NOWHERE, LineReading, mapped_action
from mccfr.games.line_text import line_start
from mccfr.games.translation import Translation, real_betting
from mccfr.matches.acpc import follow_line
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.aivat import Aivat
from mccfr.matches.equity_heuristic import EquityHeuristic
from mccfr.matches.hand_files.format_base import CheckedHand, Stakes
from mccfr.matches.review.action_costs import DecisionCosts
from mccfr.play.resolving.solved_street import SolvedStreet
from mccfr.play.table import PlayedHand
from mccfr.policy.strategy_profile import Behaviour, Profile
from mccfr.trees.betting_lines import line_text
from mccfr.trees.street_amounts import street_action, street_line

Floats = npt.NDArray[np.float64]
POTS = ("folded first in", "limped", "raised", "3-bet", "4-bet", "5-bet or more")
"""Names of pots: by the first action, then by the number of raises before the flop."""
RESOLVED = ("flop", "turn", "river")
"""Streets from which every decision may be solved again."""
IN_TREE, MAPPED, SOLVED = "in the tree", "mapped", "solved again"
"""How a decision is judged."""
_LEAST_SHARE = 1e-6  # weight of the real hand, in the largest of its range, where the policy would not hold it
_SAME = 1e-9  # tolerance between stakes, in big blinds


class ReviewedDecision(NamedTuple):
    """A reviewed decision of a hand.

    player, position   name of the player, and 0 for the big blind, 1 for the button
    street             0 before the flop
    line, hand, board  known to the player at that time; the line in the hand's chips put in on the street
    action             taken, in the same chips
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
    """The judgement of a decision, in chips of the hand.

    how            one of `IN_TREE`, `MAPPED` and `SOLVED`
    taken_for      the line's and action's translation if it is mapped; else ""
    tree_line      the line's translation, if the tree has a decision there; else ""
    probability    of taking the action, by the policy or the solution
    did, best      the action taken and the one with the highest EV, in words
    cost_chips     EV loss against that one; estimates may be below 0
    ci95_chips     95 % interval; None if the cost is exact
    """

    how: str
    taken_for: str
    tree_line: str
    probability: float
    did: str
    best: str
    cost_chips: float
    ci95_chips: tuple[float, float] | None


class ReviewedHand(NamedTuple):
    """Result of reviewing a hand.

    decisions    with a known EV loss
    unknown      number of other decisions: hidden hands, or no decision in the tree
    pot          one of `POTS`
    won_chips    by position 0, before rake; None if unknown
    aivat_chips  the same adjusted for luck by AIVAT; None unless all cards are known
    """

    decisions: list[ReviewedDecision]
    unknown: int
    pot: str
    won_chips: float | None
    aivat_chips: float | None


class _Step(NamedTuple):
    """One action of a hand, mapped into the tree.

    reading  before the action
    column   number of the tree's action; None if the tree has no decision, or no such kind of action
    exact    the tree has this very action, and had all actions before
    """

    reading: LineReading
    column: int | None
    exact: bool


class Reviewer:
    """Reviews hands of full-deck no-limit hold'em by a policy.

    source         the policy
    betting        its mapping of real bets
    dealing        its cards
    costs          EV losses at decisions of its tree
    heuristic      for AIVAT
    resolved_from  first street of which every decision is solved again
    """

    def __init__(self, side: Profile, source: Behaviour, boards: int, resolve: str | None = None) -> None:
        """Prepare the review.

        side     the policy loaded in full, for AIVAT's values
        source   the same policy, for its rows
        boards   as in `DecisionCosts`
        resolve  one of `RESOLVED`: from there on every decision is judged by solving its street again; None: only
                 where the tree lacks the line

        Raises `ValueError` for another game.
        """
        betting = real_betting(source.game)
        if not isinstance(betting, Translation) or source.game.cards.boards is not None:
            raise ValueError(f"{source.game.name} is not whole no-limit hold'em, whose hands are reviewed")
        self.source, self.betting, self.dealing = source, betting, source.game.cards.at_table()
        self.costs = DecisionCosts(source, self.dealing, boards)
        self.heuristic = EquityHeuristic(side, self.dealing)
        self.resolved_from = len(RESOLVED) + 1 if resolve is None else 1 + RESOLVED.index(resolve)

    def review(self, checked: CheckedHand, number: int) -> ReviewedHand:
        """Review a hand from `mccfr.matches.hand_files`; `number` seeds the draws of AIVAT's values."""
        hand, stakes = checked
        return _HandReview(self, hand, stakes).reviewed(number)


class _HandReview:
    """Reviews one hand: maps it into the tree, then judges each decision."""

    def __init__(self, by: Reviewer, hand: LoggedHand, stakes: Stakes) -> None:
        self._by, self._hand, self._stakes = by, hand, stakes
        self._source, self._dealing = by.source, by.dealing
        self._betting = (
            by.betting if _stakes(stakes.rules) == _stakes(by.betting.rules) else by.betting.with_stakes(stakes.rules)
        )
        self._game = follow_line(stakes.rules, hand.betting)
        texts = ["", *("".join(hand.board[: street + 1]) for street in range(len(hand.board)))]
        self._boards = [self._dealing.read_board(street, text or None) for street, text in enumerate(texts)]
        self._texts = texts
        self._held = [int(self._dealing.find_hands(hole)[0]) if hole else None for hole in hand.holes]
        self._steps = self._mapped()
        self._reach = self._dealing.reach.astype(np.float64)

    def reviewed(self, number: int) -> ReviewedHand:
        """Judge all decisions and return the review; `number` as in `Reviewer.review`."""
        game, hand, solved_from = self._game, self._hand, self._solved_from()
        verdicts = list[Verdict | None]()
        for street in range(len(self._boards)):
            here = [n for n, state in enumerate(game.states) if state.street == street]
            if self._held == [None, None]:  # nobody's cards are known
                verdicts += [None] * len(here)
            elif street >= solved_from and here:
                verdicts += self._solved(here)
            else:
                verdicts += [self._in_tree(each) for each in here]
        decisions, line, start = list[ReviewedDecision](), "", self._stakes.rules.line_start
        for state, action, verdict in zip(game.states, game.actions, verdicts, strict=True):
            line += "/" * (state.street - line.count("/"))
            if verdict is not None:
                who = state.player
                known = street_line(line, start), hand.holes[who], self._texts[state.street]
                taken = street_action(line, action, start)
                decisions.append(ReviewedDecision(hand.names[who], who, state.street, *known, taken, verdict))
            line += action
        raises = sum(
            action[0] == "r" for state, action in zip(game.states, game.actions, strict=True) if not state.street
        )
        pot = POTS[0] if game.actions[0] == "f" else POTS[1 + min(raises, len(POTS) - 2)]
        offset = self._stakes.offset
        won = None if hand.chips is None else hand.chips[0] + offset
        aivat = self._without_luck(number)
        return ReviewedHand(
            decisions, len(game.states) - len(decisions), pot, won, None if aivat is None else aivat + offset
        )

    def _mapped(self) -> list[_Step]:
        """Return each action with its likeliest translation into the policy's tree.

        If that is of another kind, such as a raise for a limp that the tree lacks, the line leaves the tree.
        """
        tree, betting, rules = self._source.game.tree, self._betting, self._stakes.rules
        reading, exact, steps = LineReading(0, 1.0), _same_stakes(rules, self._by.betting.rules), list[_Step]()
        if rules.first_player[0] != BUTTON:
            reading = self._straddled(rules)
        for state, action in zip(self._game.states, self._game.actions, strict=True):
            decides, column = betting.decides(reading), None
            before, after = reading, reading
            if decides and int(tree.arrays.block[reading.node]) == 2 * state.street + state.player:
                labels = [tree.label[child] for child in tree.children(reading.node)]
                if action != "f" or action in labels:
                    after = max(betting.outcomes(reading, state, action), key=lambda one: one.probability)
                    column = mapped_action(tree, reading.node, action, after)
                    exact = exact and betting.is_exact(reading.node, after, state, action)
                    if action != "f" and (action == "c") != (labels[column] == "c"):
                        after, column = LineReading(NOWHERE, 1.0), None
            elif not decides:
                after = betting.outcomes(reading, state, action)[0]
            exact = exact and column is not None
            steps.append(_Step(before, column, exact))
            reading = after._replace(probability=1.0)
        return steps

    def _straddled(self, rules: BettingRules) -> LineReading:
        """Return the likeliest translation of the button's straddle, a raise made without seeing the cards."""
        put_in = rules.put_in[1 - BUTTON]
        state = rules.start()._replace(put_in=(put_in, put_in), player=BUTTON)
        readings = self._betting.outcomes(LineReading(0, 1.0), state, f"r{amount_text(rules.put_in[BUTTON])}")
        return max(readings, key=lambda one: one.probability)._replace(probability=1.0)

    def _solved_from(self) -> int:
        """Return the first street that is solved again."""
        inexact = [
            max(1, state.street) for state, step in zip(self._game.states, self._steps, strict=True) if not step.exact
        ]
        return min([self._by.resolved_from, *inexact])

    def _in_tree(self, place: int) -> Verdict | None:
        """Return the policy's verdict on a decision, or None if it has none; then update the range."""
        state, step = self._game.states[place], self._steps[place]
        if step.column is None:
            return None
        board, held = self._boards[state.street], self._held[state.player]
        buckets = self._dealing.bucket_row(state.street, state.player, board)
        rows = self._source.rows(step.reading.node, buckets)[0]
        verdict = None if held is None else self._verdict(place, held, rows[held])
        reach = self._reach[state.player] * rows[:, step.column]
        if self._game.actions[place] != "f" and reach.any():
            self._reach[state.player] = reach
        return verdict

    def _verdict(self, place: int, held: int, row: Floats) -> Verdict | None:
        """Return the verdict on a decision of the tree; `row` has the policy's probabilities of the real hand."""
        state, action, step = self._game.states[place], self._game.actions[place], self._steps[place]
        tree, node, column = self._source.game.tree, step.reading.node, step.column
        assert column is not None
        live = self._dealing.live(state.street, self._boards[state.street])
        other = np.where(live, self._reach[1 - state.player], 0.0)
        costs = self._by.costs.costs(
            node, self._boards[state.street], held, other if other.any() else live.astype(np.float64)
        )
        if costs is None:
            return None
        scale = state.to_call / float(tree.put_in[node].max())  # type: ignore[index]
        label, line = tree.label[tree.children(node)[column]], line_text(tree, node)
        start = line_start(self._source.game)
        real = self._betting.real_actions(step.reading, state)
        # Against an all-in, the tree's raises are calls too.
        same = [each for each in range(len(real)) if each == column or real[each] == action]
        column, best = min(same, key=lambda each: float(costs.cost[each])), int(costs.cost.argmin())
        ends = None if costs.ci95 is None else scale * costs.ci95[column]
        return Verdict(
            IN_TREE if step.exact else MAPPED,
            "" if step.exact else f"{street_action(line, label, start)} after {street_line(line, start)!r}",
            street_line(line, start),
            float(row[same].sum()),
            self._words(state, action),
            self._words(state, action if best in same else real[best]),
            float(scale * costs.cost[column]),
            None if ends is None else (float(ends[0]), float(ends[1])),
        )

    def _solved(self, places: Sequence[int]) -> list[Verdict | None]:
        """Solve a street again; return the verdicts on its decisions, and continue with the solution's ranges."""
        states = [self._game.states[place] for place in places]
        actions = [self._game.actions[place] for place in places]
        board = self._boards[states[0].street]
        live = self._dealing.live(states[0].street, board)
        ranges = np.where(live, self._reach, 0.0)
        for own, held in zip(ranges, self._held, strict=True):
            own[:] = own if own.any() else live
            if held is not None:
                own[held] = max(own[held], own.max() * _LEAST_SHARE)
        solved = SolvedStreet(
            self._stakes.rules, list(zip(states, actions, strict=True)), board, ranges, self._source.game.cards
        )
        self._reach = solved.ranges
        return [self._solved_verdict(solved, number, place) for number, place in enumerate(places)]

    def _solved_verdict(self, solved: SolvedStreet, number: int, place: int) -> Verdict | None:
        state, action, step = self._game.states[place], self._game.actions[place], self._steps[place]
        held, labels = self._held[state.player], solved.actions[number]
        if held is None or np.isnan(solved.values[number][:, held]).any():
            return None
        evs, column = solved.values[number][:, held], labels.index(action)
        game = self._source.game
        line = "" if step.column is None else line_text(game.tree, step.reading.node)
        return Verdict(
            SOLVED,
            "",
            street_line(line, line_start(game)),
            float(solved.played[number][column, held]),
            self._words(state, action),
            self._words(state, labels[int(evs.argmax())]),
            float(evs.max() - evs[column]),
            None,
        )

    def _words(self, state: BettingState, action: str) -> str:
        """Return an action in words, with amounts on the street in big blinds."""
        if action == "f":
            return "fold"
        rules, big = self._stakes.rules, self._stakes.big_blind
        target = state.to_call if action == "c" else float(action[1:])
        if action == "c":
            words = f"call {(target - state.put_in[state.player]) / big:.4g} BB" if state.facing else "check"
        else:
            verb = "raise to" if state.to_call > state.put_in_before else "bet"
            words = f"{verb} {(target - state.put_in_before) / big:.4g} BB"
        return words + ", all-in" * (target >= rules.stack and words != "check")

    def _without_luck(self, number: int) -> float | None:
        """Return position 0's chips adjusted for the luck of the deal by AIVAT; None unless cards are known."""
        game, heuristic = self._game, self._by.heuristic
        fixed, showdown = self._betting.settled(game.states[-1], game.actions[-1])
        first, second = self._held
        if first is None or second is None or (showdown and len(self._boards) < self._dealing.streets):
            return None
        heuristic.begin(0, number, self._betting)
        aivat = Aivat(self._dealing, self._betting, heuristic)
        whole = PlayedHand(self._hand.betting, game.states, game.actions, fixed, showdown)
        return float(sum(aivat.terms(Deal((first, second), tuple(self._boards)), whole, (None, None)).values()))


def _stakes(rules: BettingRules) -> list[float]:
    """Return blinds, antes, stack and the first player."""
    return [*rules.put_in, rules.put_in_before, rules.stack, rules.first_player[0]]


def _same_stakes(rules: BettingRules, own: BettingRules) -> bool:
    """Return True if a hand's stakes are the policy's, counted in big blinds."""
    (*ours, first), (*theirs, other) = _stakes(rules), _stakes(own)
    pairs = zip(ours, theirs, strict=True)
    return first == other and all(abs(a / rules.minimum_bet - b / own.minimum_bet) < _SAME for a, b in pairs)
