"""Review of a played hand: each decision's EV loss by a policy, and the hand's luck-adjusted chips.

The actions are followed in the policy's tree by action translation (`mccfr.games.translation`). A bet outside the tree
is replaced by the tree's action to which it is most likely mapped, except on streets that are solved again. These are
the flop and later streets from the first difference in stacks, blinds or bets on, or from the option `resolve` on.
Solving uses the real stacks, pot and bets (`mccfr.play.resolving.solved_street`). Both players' ranges follow from the
policy, then from the solutions, by Bayes' rule. An action that no hand of a range takes leaves the range unchanged.

At a table of three to six players, a decision has frequencies and no cost until two players are left after the flop.
From there on the streets are solved with the others' chips in the pot (`mccfr.play.two_left`). After an action that the
tree lacks, such as a call of a raise, its player has no range. No cost is computed against it. The others' decisions
are judged at the tree node where a playing policy would decide.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Deal
from mccfr.cards.full_deck import WholeDeck
from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.games.holdem_betting import position_names
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
from mccfr.play.two_left import TwoLeft, two_left
from mccfr.policy.strategy_profile import Behaviour, Profile
from mccfr.trees.betting_lines import line_text
from mccfr.trees.street_amounts import street_action, street_line

Floats = npt.NDArray[np.float64]
POTS = ("folded first in", "limped", "raised", "3-bet", "4-bet", "5-bet or more")
"""Names of pots: by the first action, then by the number of raises before the flop."""
RESOLVED = ("flop", "turn", "river")
"""Streets from which every decision may be solved again."""
IN_TREE, MAPPED, SOLVED, LACKING = "in the tree", "mapped", "solved again", "not in the tree"
"""How a decision is judged."""
NO_COST = "no cost is computed before two players are left after the flop"
IGNORED = "the cards of folded players and the rake are ignored"
"""What a review says of decisions at a table of three and more players."""
_LEAST_SHARE = 1e-6  # least weight of the real hand in a solved street, as a share of its range's largest weight
_SAME = 1e-9  # tolerance between stakes, in big blinds


class ReviewedDecision(NamedTuple):
    """A reviewed decision of a hand.

    player    name of the player
    position  of two players 0 is the big blind and 1 the button; of more, 0 is the small and 1 the big blind
    street    0 before the flop, 3 on the river
    line      actions before the decision; amounts are the hand's chips put in on the street
    hand      the player's hole cards
    board     board cards at that time
    action    taken by the player, with an amount as in `line`
    verdict   judgement of the action
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
    """The judgement of a decision: the action's cost, and how often the policy takes each action.

    how          source of the judgement: "in the tree", "mapped" (bets were translated), "solved again", or "not in the
                 tree" for an action that the tree lacks
    taken_for    tree's action and line to which a mapped decision was translated, such as "b300 after 'c'"; else ""
    tree_line    line of the tree's decision to which the line is mapped. "" if there is none, or if `how` is "solved
                 again" and the tree lacks the action
    probability  of taking the action, by the policy or the solution
    did, best    the action taken and the one with the highest EV, in words; best is "" without EVs
    cost_chips   EV of the best action minus that of the action taken, in chips of the hand; estimates may be below 0;
                 None without EVs
    ci95_chips   95 % interval of the cost; None if it is exact
    frequencies  {action in words: probability by the policy or the solution}
    note         reason why there is no cost, or what the solution ignores; "" if neither applies
    """

    how: str
    taken_for: str
    tree_line: str
    probability: float
    did: str
    best: str
    cost_chips: float | None
    ci95_chips: tuple[float, float] | None
    frequencies: dict[str, float]
    note: str = ""


class ReviewedHand(NamedTuple):
    """Result of reviewing a hand.

    decisions    all decisions that were judged, in order
    unknown      number of decisions without a judgement: hidden hands, or no decision in the tree
    pot          kind of the pot by its preflop raises, such as "limped" or "3-bet"
    won_chips    net chips by seat number, before rake; None if unknown
    aivat_chips  the same adjusted for luck by AIVAT; None unless all cards of two players are known
    ended        the reason if the review ends before the hand does; else ""
    """

    decisions: list[ReviewedDecision]
    unknown: int
    pot: str
    won_chips: tuple[float, ...] | None
    aivat_chips: tuple[float, ...] | None
    ended: str


class _Step(NamedTuple):
    """One action of a hand, mapped into the policy's tree.

    reading  tree node to which the line before the action is most likely mapped
    decides  True if the tree has a decision of the same player there
    column   index of the tree's action to which the action is mapped; None if the tree has no decision, or lacks the
             action
    lacks    True if the action is mapped to no action of the tree, or to one of another kind (fold, call, raise)
    exact    True if the hand has the policy's stacks and blinds, and the tree has all actions so far with these amounts
    """

    reading: LineReading
    decides: bool
    column: int | None
    lacks: bool
    exact: bool


class Reviewer:
    """Reviews hands of full-deck no-limit hold'em by a policy.

    source         the policy
    betting        action translation, which maps real bets to those of the policy's tree
    dealing        cards of the policy's game
    pair           the same cards dealt to two players, for solving a street again
    costs          computes EV losses at decisions of the policy's tree, for two players
    heuristic      AIVAT's heuristic; None for three and more players
    resolved_from  first street on which every decision is solved again; beyond the river if none
    """

    def __init__(self, side: Profile, source: Behaviour, boards: int, resolve: str | None = None) -> None:
        """Take the policy, as a `Profile` and as a `Behaviour`, and the options of the review.

        side     game and strategy of the policy, for AIVAT's values
        source   the same policy, for its action probabilities
        boards   number of full boards to draw for a decision on the flop
        resolve  "flop", "turn" or "river": from there on every decision is judged by solving its street again. None:
                 only where stakes or actions differ from the tree's. Three and more players: always from the flop on,
                 once two are left

        Raises `ValueError` for fewer than 4 boards, and unless the policy's game is full-deck no-limit hold'em.
        """
        betting, cards = real_betting(source.game), source.game.cards
        if not isinstance(betting, Translation) or not isinstance(cards, WholeDeck):
            raise ValueError(f"a review needs a policy of whole no-limit hold'em; {source.game.name} is not")
        self.source, self.betting, self.dealing, self.pair = source, betting, cards.at_table(), cards.of_two()
        self.costs = DecisionCosts(source, self.dealing, boards)
        self.heuristic = EquityHeuristic(side, self.dealing) if cards.players == 2 else None
        self.resolved_from = len(RESOLVED) + 1 if resolve is None else 1 + RESOLVED.index(resolve)

    def review(self, checked: CheckedHand, number: int) -> ReviewedHand:
        """Judge the decisions of a hand from a file (`checked`); `number` seeds AIVAT's drawn boards."""
        hand, stakes = checked
        return _HandReview(self, hand, stakes).reviewed(number)


class _HandReview:
    """Reviews one hand: translates its actions into the tree's, then judges each decision."""

    def __init__(self, by: Reviewer, hand: LoggedHand, stakes: Stakes) -> None:
        self._by, self._hand, self._stakes = by, hand, stakes
        self._source, self._dealing = by.source, by.dealing
        self._betting = by.betting.with_stakes(stakes.rules)
        self._names = position_names(stakes.seats)
        self._game = follow_line(stakes.rules, hand.betting)
        texts = ["", *("".join(hand.board[: street + 1]) for street in range(len(hand.board)))]
        self._boards = [self._dealing.read_board(street, text or None) for street, text in enumerate(texts)]
        self._texts = texts
        self._held = [int(self._dealing.find_hands(hole)[0]) if hole else None for hole in hand.holes]
        self._steps = self._mapped()
        self._reach = self._dealing.reach.astype(np.float64)
        self._lacking = dict[int, str]()  # by position: the first action that the tree lacks

    def reviewed(self, number: int) -> ReviewedHand:
        """Judge all decisions and return the review; `number` seeds the boards drawn for AIVAT's heuristic."""
        game, hand, solved_from = self._game, self._hand, self._solved_from()
        verdicts = list[Verdict | None]()
        for street in range(len(self._boards)):
            here = [n for n, state in enumerate(game.states) if state.street == street]
            solved = [n for n in here if street >= solved_from and len(game.states[n].left) == 2]
            if not any(hole is not None for hole in self._held):
                verdicts += [None] * len(here)
                continue
            verdicts += [self._in_tree(each) for each in here[: len(here) - len(solved)]]
            if solved:
                has_ranges = self._lacking.keys().isdisjoint(game.states[solved[0]].left)
                verdicts += self._solved(solved) if has_ranges else [self._in_tree(each) for each in solved]
        decisions, start = list[ReviewedDecision](), self._stakes.rules.line_start
        for place, verdict in enumerate(verdicts):
            if verdict is not None:
                state, line = game.states[place], self._line_at(place)
                who = state.player
                known = street_line(line, start), hand.holes[who], self._texts[state.street]
                taken = street_action(line, game.actions[place], start)
                decisions.append(ReviewedDecision(hand.names[who], who, state.street, *known, taken, verdict))
        raises = sum(
            action[0] == "r" for state, action in zip(game.states, game.actions, strict=True) if not state.street
        )
        pot = POTS[0] if set(game.actions) == {"f"} else POTS[1 + min(raises, len(POTS) - 2)]
        aivat, offset = self._without_luck(number), self._stakes.offset
        offsets = (offset, -offset, *[0.0] * len(hand.names))
        won, adjusted = (
            None if chips is None else tuple(one + more for one, more in zip(chips, offsets, strict=False))
            for chips in (hand.chips, None if aivat is None else (aivat, -aivat))
        )
        name = "" if self._straddler is None else self._names[self._straddler]
        ended = f"the policy has no straddle of {name}: the review ends there" if self._is_straddle_outside else ""
        return ReviewedHand(decisions, len(game.states) - len(decisions), pot, won, adjusted, ended)

    def _mapped(self) -> list[_Step]:
        """Return for each action of the hand its likeliest mapping into the policy's tree.

        After an action that the tree lacks, such as a limp, a hand of two players has no node of the tree any more.
        With more players the next actions still have nodes, as when the policy plays at a table.
        """
        tree, betting, rules = self._source.game.tree, self._betting, self._stakes.rules
        reading, exact, steps = LineReading(0, 1.0), self._same_stakes(), list[_Step]()
        if self._straddler is not None:
            reading = LineReading(NOWHERE, 1.0) if self._is_straddle_outside else self._straddled(rules)
        for state, action in zip(self._game.states, self._game.actions, strict=True):
            before, column = betting.at(reading, state), None
            decides = betting.decides(before)
            here = decides and int(tree.arrays.block[before.node]) == tree.players * state.street + state.player
            reading = before
            if here or not decides:
                reading = max(betting.outcomes(before, state, action), key=lambda one: one.probability)
            if here:
                column = mapped_action(tree, before.node, action, reading)
                exact = exact and betting.is_exact(before.node, reading, state, action)
            lacks = (here or tree.players > 2) and betting.lacks(before, state, action, column)
            if lacks:
                column = None
                reading = LineReading(NOWHERE, 1.0) if tree.players == 2 else reading
            exact = exact and column is not None
            steps.append(_Step(before, here, column, lacks, exact))
            reading = reading._replace(probability=1.0)
        return steps

    @property
    def _straddler(self) -> int | None:
        """Seat number of the last player who has straddled; None if there is none."""
        first, usual = self._stakes.rules.first_player[0], self._by.betting.rules.first_player[0]
        return None if first == usual else (first - 1) % len(self._names)

    @property
    def _is_straddle_outside(self) -> bool:
        """True if a player has straddled who is not the first to act before the flop in the tree.

        A straddle of the first player is treated as its first raise.
        """
        return self._straddler not in (None, self._by.betting.rules.first_player[0])

    def _straddled(self, rules: BettingRules) -> LineReading:
        """Return the likeliest tree node after the first player's straddle, which counts as a raise."""
        player = self._by.betting.rules.first_player[0]
        before, after = rules.put_in[:player], rules.put_in[player + 1 :]
        state = rules.start()._replace(put_in=(*before, max(before + after), *after), player=player)
        readings = self._betting.outcomes(LineReading(0, 1.0), state, f"r{amount_text(rules.put_in[player])}")
        return max(readings, key=lambda one: one.probability)._replace(probability=1.0)

    def _same_stakes(self) -> bool:
        """Return True if effective stack, posted chips (in big blinds) and first player are the policy's."""
        own, rules = self._stakes, self._by.betting.rules
        pairs = zip(_stakes(own.rules, own.effective), _stakes(rules, rules.effective_stack), strict=True)
        return all(abs(ours - theirs) < _SAME for ours, theirs in pairs)

    def _solved_from(self) -> int:
        """Return the first street that is solved again: the flop at a table of three and more players.

        For two players it is the street on which the hand first differs from the tree in stakes or actions, but not
        before the flop. It is `Reviewer.resolved_from` if that is earlier.
        """
        if len(self._names) > 2:
            return 1
        inexact = [
            max(1, state.street) for state, step in zip(self._game.states, self._steps, strict=True) if not step.exact
        ]
        return min([self._by.resolved_from, *inexact])

    def _in_tree(self, place: int) -> Verdict | None:
        """Return the policy's verdict on the hand's action of index `place`, None if it has none.

        Also updates the range of the player who took the action, unless it folded or no hand of the range takes it.
        """
        state, step, action = self._game.states[place], self._steps[place], self._game.actions[place]
        if len(self._names) > 2 and step.lacks:
            words, name = self._words(self._stakes.rules, state, action), self._names[state.player]
            line = street_line(self._line_at(place), self._stakes.rules.line_start)
            text = f"the policy's tree has no {words} of {name} after {line!r}, so {name} has no range"
            self._lacking.setdefault(state.player, text)
        if step.column is None and not (len(self._names) > 2 and step.decides):
            return None
        board, held = self._boards[state.street], self._held[state.player]
        buckets = self._dealing.bucket_row(state.street, state.player, board)
        rows = self._source.rows(step.reading.node, buckets)[0]
        verdict = None if held is None else self._verdict(place, held, rows[held])
        reach = self._reach[state.player] * rows[:, self._same(place)].sum(axis=1)
        if action != "f" and reach.any():
            self._reach[state.player] = reach
        return verdict

    def _same(self, place: int) -> list[int]:
        """Return the tree's action indices that stand for the hand's action of index `place`.

        These are the one to which it is mapped, and those that become the same action at the table. Against an all-in,
        the tree's raises become calls too.
        """
        column, action = self._steps[place].column, self._game.actions[place]
        real = self._betting.real_actions(self._steps[place].reading, self._game.states[place])
        return [each for each in range(len(real)) if each == column or real[each] == action]

    def _line_at(self, place: int) -> str:
        """Return the line before action `place` (r600: a raise to 600 chips over all streets)."""
        line, game = "", self._game
        for state, action in zip(game.states[:place], game.actions, strict=False):
            line += "/" * (state.street - line.count("/")) + action
        return line + "/" * (game.states[place].street - line.count("/"))

    def _verdict(self, place: int, held: int, row: Floats) -> Verdict | None:
        """Return the verdict on the hand's action of index `place`; None without an opposing hand.

        held  index of the player's hole cards
        row   [A] the policy's action probabilities for them
        """
        state, action, step = self._game.states[place], self._game.actions[place], self._steps[place]
        tree, node, column = self._source.game.tree, step.reading.node, step.column
        start, line, taken_for = line_start(self._source.game), line_text(tree, node), ""
        if column is not None and not step.exact:
            label = tree.label[tree.children(node)[column]]
            taken_for = f"{street_action(line, label, start)} after {street_line(line, start)!r}"
        real, same = self._betting.real_actions(step.reading, state), self._same(place)
        did, rules = self._words(self._stakes.rules, state, action), self._stakes.rules
        words = [
            did if len(self._names) == 2 and each in same else self._words(rules, state, real[each])
            for each in range(len(real))
        ]
        judged: tuple[str, float | None, tuple[float, float] | None] = "", None, None
        note = self._no_cost(state)
        if len(self._names) == 2:
            found = self._cost(place, held, same)
            if found is None:
                return None
            judged, note = (words[found[0]], found[1], found[2]), ""
        return Verdict(
            LACKING if column is None else IN_TREE if step.exact else MAPPED,
            taken_for,
            street_line(line, start),
            float(row[same].sum()),
            did,
            *judged,
            _summed(words, row),
            note,
        )

    def _no_cost(self, state: BettingState) -> str:
        """Return, as text, why a decision at a table of three and more players has no cost."""
        lacking = [self._lacking[player] for player in state.left if player in self._lacking]
        return "; ".join([NO_COST] * (len(state.left) > 2 or not state.street) + lacking)

    def _cost(self, place: int, held: int, same: Sequence[int]) -> tuple[int, float, tuple[float, float] | None] | None:
        """Return (index of the best action, cost, 95 % interval); None if no opposing hand is possible.

        The cost is that of the cheapest action in `same`, in chips of the hand. The interval is None if it is exact.

        place  index of the hand's action
        held   index of the player's hole cards
        same   indices of the tree's actions that stand for the hand's
        """
        state, node = self._game.states[place], self._steps[place].reading.node
        live = self._dealing.live(state.street, self._boards[state.street])
        other = np.where(live, self._reach[1 - state.player], 0.0)
        costs = self._by.costs.costs(
            node, self._boards[state.street], held, other if other.any() else live.astype(np.float64)
        )
        if costs is None:
            return None
        scale = state.to_call / float(self._source.game.tree.put_in[node].max())  # type: ignore[index]
        column = min(same, key=lambda each: float(costs.cost[each]))
        ends = None if costs.ci95 is None else scale * costs.ci95[column]
        interval = None if ends is None else (float(ends[0]), float(ends[1]))
        return int(costs.cost.argmin()), float(scale * costs.cost[column]), interval

    def _solved(self, places: Sequence[int]) -> list[Verdict | None]:
        """Solve a street again; return verdicts on its decisions; store ranges for the next street.

        places  indices, in the hand's actions, of the street's actions since two players are left
        """
        state, actions = self._game.states[places[0]], [self._game.actions[place] for place in places]
        board, left = self._boards[state.street], two_left(self._stakes.rules, state, actions)
        live, players = self._dealing.live(state.street, board), list(left.players)
        ranges = np.where(live, self._reach[players], 0.0)
        for own, player in zip(ranges, players, strict=True):
            own[:] = own if own.any() else live
            if (held := self._held[player]) is not None:
                own[held] = max(own[held], own.max() * _LEAST_SHARE)
        solved = SolvedStreet(left.rules, left.acted, board, ranges, self._by.pair)
        self._reach[players] = solved.ranges
        return [self._solved_verdict(left, solved, number, place) for number, place in enumerate(places)]

    def _solved_verdict(self, left: TwoLeft, solved: SolvedStreet, number: int, place: int) -> Verdict | None:
        (state, action), step = left.acted[number], self._steps[place]
        held, labels = self._held[left.players[state.player]], solved.actions[number]
        if held is None or np.isnan(solved.values[number][:, held]).any():
            return None
        evs, column, game = solved.values[number][:, held], labels.index(action), self._source.game
        line = "" if step.column is None else line_text(game.tree, step.reading.node)
        words, played = [self._words(left.rules, state, label) for label in labels], solved.played[number][:, held]
        return Verdict(
            SOLVED,
            "",
            street_line(line, line_start(game)),
            float(played[column]),
            words[column],
            words[int(evs.argmax())],
            float(evs.max() - evs[column]),
            None,
            _summed(words, played),
            "" if len(self._names) == 2 else IGNORED,
        )

    def _words(self, rules: BettingRules, state: BettingState, action: str) -> str:
        """Return an action in words, such as "raise to 6 BB".

        Amounts are in big blinds: the player's total on the street for a bet or raise, the chips added for a call.
        """
        if action == "f":
            return "fold"
        big, stack = self._stakes.big_blind, rules.stack_of(state.player)
        target = min(state.to_call, stack) if action == "c" else float(action[1:])
        if action == "c":
            words = f"call {(target - state.put_in[state.player]) / big:.4g} BB" if state.facing else "check"
        else:
            verb = "raise to" if state.to_call > state.put_in_before else "bet"
            words = f"{verb} {(target - state.put_in_before) / big:.4g} BB"
        return words + ", all-in" * (target >= stack and words != "check")

    def _without_luck(self, number: int) -> float | None:
        """Return player 0's chips corrected by AIVAT; None with over two players or unknown cards.

        At a showdown, all board cards have to be known; otherwise only both hands.

        number  seeds the boards that the heuristic draws
        """
        game, heuristic = self._game, self._by.heuristic
        if heuristic is None:
            return None
        fixed, showdown = self._betting.settled(game.states[-1], game.actions[-1])
        first, second = self._held
        if first is None or second is None or (showdown and len(self._boards) < self._dealing.streets):
            return None
        heuristic.begin(0, number, self._betting)
        aivat = Aivat(self._dealing, self._betting, heuristic)
        whole = PlayedHand(self._hand.betting, game.states, game.actions, fixed, showdown)
        return float(sum(aivat.terms(Deal((first, second), tuple(self._boards)), whole, (None, None)).values()))


def _stakes(rules: BettingRules, stack: float) -> list[float]:
    """Return numbers that compare stakes: the first player's seat, then amounts in big blinds.

    The amounts are `stack` (an argument in chips), each seat's posted chips, the ante, and all dead chips together.
    """
    chips = stack, *rules.put_in, rules.put_in_before, sum(rules.dead)
    return [rules.first_player[0], *(each / rules.minimum_bet for each in chips)]


def _summed(words: Sequence[str], shares: Floats) -> dict[str, float]:
    """Return {action in words: its probability}, summed over all actions with the same words.

    words   [A] of the actions
    shares  [A] probabilities of the actions
    """
    total = dict.fromkeys(words, 0.0)
    for word, share in zip(words, shares.tolist(), strict=True):
        total[word] += share
    return total
