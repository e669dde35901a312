"""Local best response to a policy that re-solves from some street on (`mccfr.play.resolving`).

Before that street the responder knows only a distribution over the policy's tree nodes, as usual in LBR. From that
street on, the policy's play depends only on public information and its hand, so all these nodes merge into one public
state.

Re-solving is expensive and depends only on board and betting. On each board the responder therefore plays all its
hands at once, each as if alone. Only betting lines are drawn, at the start of each street.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT
from mccfr.cards.card_index import IndexedCards
from mccfr.common.rng import uniform
from mccfr.evaluation.local_best_response.hand import PolicyRows, Ranges, Responder, all_of_them
from mccfr.evaluation.local_best_response.responder_deals import RUN_OUTS, DeckBoard, Floats
from mccfr.evaluation.local_best_response.settings import ResponderBetting
from mccfr.games.line_lookup import OVER
from mccfr.play.resolving.resolving_table import Acted, PublicState, Resolver
from mccfr.play.showdown_values import RunOuts, run_outs, win_minus_lose

ENUMERATED = 2_000
"""Largest number of run-outs that are all enumerated."""


class OpponentRanges:
    """The board of a sample up to one street, for comparing all pairs of hands.

    It has the methods of a `ResponderDeal` that the responder needs, for all hands of the responder at once.

    street  number of the street, from 0
    known   card numbers of the board up to the street
    live    [1326] bool: True for hands that share no card with `known`
    share   probability of each possible pair of hands: they share no card with each other or with `known`
    """

    def __init__(self, board: DeckBoard, street: int, seed: int) -> None:
        """Cut a full board after one street.

        board   full board
        street  number of the street
        seed    seed for drawing the boards on which an all-in before the flop is settled
        """
        self._board, self.street, self._seed = board, street, seed
        self._cards: IndexedCards = board.table.cards
        self.known = tuple(board.cards[: board.table.known[street]])
        self.live = ~board.hits(0, len(self.known)).astype(bool)
        remaining = CARD_COUNT - len(self.known)
        self.share = 1 / (comb(remaining, 2) * comb(remaining - 2, 2))  # probability of a pair of hands

    def buckets(self) -> npt.NDArray[np.int32]:
        """Return [1326] the policy's bucket of each hand; arbitrary for hands that the board blocks."""
        return self._board.buckets(self.street)

    def opponent_weight(self, weight: Floats) -> Floats:
        """Return [1326] for each responder hand the weight of disjoint policy hands.

        Disjoint hands share no card.

        weight  [1326] of the policy's hands
        """
        return np.maximum(self._cards.disjoint_weight(weight), 0)

    def _run_outs(self, most: int, seed: int) -> RunOuts:
        return run_outs(self._cards, self.street, self.known, (), most, np.random.default_rng(seed))

    @cached_property
    def _looked(self) -> RunOuts:
        return self._run_outs(ENUMERATED, 0) if self.known else self._board.table.looked_run_outs

    @cached_property
    def _settling(self) -> RunOuts:
        return self._looked if self.known else self._run_outs(RUN_OUTS, self._seed)

    def won(self, weight: Floats) -> Floats:
        """Return [1326] the policy's weight that each responder hand beats minus the weight that beats it.

        It serves to choose actions and as a control variate; payoffs use `settled`. It is the mean over full boards:
        from the flop on all that continue `known`, before the flop 4,096 fixed ones.

        weight  [1326] of the policy's hands
        """
        return win_minus_lose(self._cards, self._looked, weight)

    def settled(self, weight: Floats) -> Floats:
        """Return [1326] like `won`, for payoffs: the weight that a hand beats minus that which beats it.

        It is the mean over full boards: from the flop on all that continue `known`. Before the flop they are 32 boards
        drawn for each sample, so that the mean is unbiased.

        weight  [1326] of the policy's hands
        """
        return win_minus_lose(self._cards, self._settling, weight)


class _Line(NamedTuple):
    """A betting line that has reached the start of a street, which is played only if the line is drawn.

    stake   probability of the line times the chips that each player has put in; lines are drawn in proportion to it
    state   the real betting at the start of the street
    acted   (state before it, action, board) of all real actions so far
    ranges  function that returns the policy's range after the line, {tree node or public state: weights [1326]}
    own     [1326] weights of the responder's hands that take the line. In a head-to-head, where the responder plays a
            second policy: {node of its tree: weights [1326]}
    factor  importance weight of the draws on earlier streets; `stake` contains it
    """

    stake: float
    state: Any
    acted: Sequence[Acted]
    ranges: Callable[[], Ranges]
    own: Any
    factor: float


class RangeResponder(Responder):
    """Local best response in one seat, played with all 1,326 hands of the responder at once.

    In the methods, `own` [1326] are weights of the responder's hands; 0 for hands that do not take the line or share a
    card with the board. `ranges` is the policy's range, {(node of its tree, second node): weights [1326] of its hands}
    with keys `TreePosition`. After re-solving its key is one public state.
    """

    def __init__(
        self,
        lines: ResponderBetting,
        rows: PolicyRows,
        seat: int,
        resolver: Resolver | None,
        draws: npt.NDArray[np.uint64] | None,
        step: float,
    ) -> None:
        """Take the betting, the policy, the responder's seat and how lines are drawn.

        lines     rules of the real betting, with the responder's actions
        rows      reads the policy's strategy
        seat      the responder's seat, 0 or 1
        resolver  re-solves for the policy; None for a policy without re-solving
        draws     [4] uint64 random state for drawing betting lines; None: all lines are followed
        step      chips: a line is followed with probability stake / step, at most 1. Its stake is its probability times
                  the chips that each player has put in
        """
        super().__init__(lines, rows, seat, all_of_them)
        self._resolver, self._draws, self._step = resolver, draws, step
        self._next_lines: list[_Line] = []
        self._acted: list[Acted] = []
        self._known: list[tuple[int, ...]] = []

    @staticmethod
    def weight(ranges: Any) -> Floats:
        """Return [1326] the weight of each hand, summed over positions if `ranges` is a dict.

        ranges  {position: weights [1326] of hands}, or one array of weights [1326], which is returned unchanged

        A position is a node of a policy's tree that stands for the real betting so far. There may be several, because
        a bet that the tree lacks is translated at random to one of the tree's actions. Each position has a part of each
        hand's weight. After re-solving there is one position, the public state.
        """
        return sum(ranges.values(), np.zeros(COMBO_COUNT)) if isinstance(ranges, dict) else ranges

    def play_all(self, streets: Sequence[OpponentRanges], own: Any) -> float:
        """Return the responder's chips on a board, summed over all pairs of hands.

        A pair counts with its probability times the weight `own` of the responder's hand. So if all weights are 1, the
        result is the mean chips per hand. If lines are drawn, it is an unbiased estimate.

        streets  the board up to each street, from the first on
        own      [1326] weights of the responder's hands; in a head-to-head {node of its tree: weights [1326]}
        """
        (state, readings), value = self._lines.betting.start(), 0.0
        self._known = [hands.known for hands in streets]
        begun: Ranges = {(node, closed): np.ones(COMBO_COUNT) for node, _, closed in readings}
        self._next_lines = [_Line(1.0, state, (), lambda: begun, own, 1.0)]
        for hands in streets:
            lines, self._next_lines = self._next_lines, []
            for number, factor in self._drawn([line.stake for line in lines], hands.street):
                line = lines[number]
                self._acted = list(line.acted)
                ranges = _without_blocked(line.ranges(), hands)
                if self._resolver is not None and hands.street == self._resolver.street:
                    solved = self._resolver.begin(1 - self._seat, self._acted, line.state, hands.known)
                    ranges = {solved: self.weight(ranges)}
                own = _without_blocked(line.own, hands)
                if hands.street > 1:
                    value -= line.factor * factor * self._checked_down(line.state, self.weight(ranges), own, hands)
                value += self._from(line.state, ranges, own, hands, line.factor * factor)
        return value

    def _checked_down(self, state: Any, weight: Floats, own: Any, hands: OpponentRanges) -> float:
        """Return the responder's chips if both players only check and call from here on.

        They are summed over pairs of hands, weighted by probability. From the flop on they serve as a control variate:
        they are added at the end of a street for every line, and subtracted at the start of the next for drawn lines.
        If all lines are followed, the result is 0.

        state   the real betting
        weight  [1326] weights of the policy's hands
        own     weights of the responder's hands
        hands   the board of the street
        """
        if self._draws is None:
            return 0.0
        return float(self._lines.checked_down(state)[1] * (self.weight(own) @ hands.won(weight)) * hands.share)

    def _drawn(self, stakes: Sequence[float], street: int) -> list[tuple[int, float]]:
        """Draw the betting lines to follow, by systematic sampling; return (index, factor) of each.

        A line is drawn with probability stake / `step`, at most 1; the factor is the inverse of this probability. All
        lines are followed on the first street, and if lines are not drawn at all (`draws` is None).

        stakes  stake of each line in chips (`_Line.stake`)
        street  number of the street that begins
        """
        if self._draws is None or street == 0:
            return all_of_them(stakes)
        ends = np.cumsum([min(stake / self._step, 1.0) for stake in stakes])
        marks = np.floor(np.array([0.0, *ends]) + float(uniform(self._draws)))
        return [(number, max(1.0, self._step / stakes[number])) for number in np.flatnonzero(np.diff(marks)).tolist()]

    def _from(self, state: Any, ranges: Any, own: Any, hands: OpponentRanges, factor: float) -> float:
        """Return the responder's chips from a betting state on, of lines that end on this street.

        They are summed over pairs of hands, weighted by probability, and multiplied by `factor`. Lines that reach the
        next street are added to `_next_lines`. From the flop on, their value by `_checked_down` is included as a
        control variate.

        state   the real betting at a decision of either player
        ranges  the policy's range
        own     weights of the responder's hands
        hands   the board up to the street
        factor  importance weight of the line
        """
        value = 0.0
        for action, mine, weight, following in self._branches(state, ranges, own, hands):
            beside = hands.opponent_weight(weight)
            owned = self.weight(mine)
            pairs = float(owned @ beside) * hands.share
            if pairs <= 0:
                continue
            after = self._lines.apply(state, action)
            if after == OVER:
                fixed, showdown = self._lines.settled(state, action)
                value += factor * self._sign * fixed * pairs
                if showdown:
                    value += factor * showdown * float(owned @ hands.settled(weight)) * hands.share
                continue
            self._acted.append((state, action, hands.known))
            if after.street == state.street:
                value += self._from(after, following(), mine, hands, factor)
            else:
                stake = pairs * after.to_call * factor
                if hands.street:  # before the flop equities are not exact
                    value += factor * self._checked_down(after, weight, mine, hands)
                self._next_lines.append(_Line(stake, after, tuple(self._acted), following, mine, factor))
            self._acted.pop()
        return value

    def _branches(
        self, state: Any, ranges: Any, own: Any, hands: OpponentRanges
    ) -> list[tuple[str, Any, Floats, Callable[[], Any]]]:
        """Return (action, responder's weights, policy's weights, function) for each action.

        The weights [1326] are those of each player's hands after the action. The function takes no arguments and
        returns the policy's range after the action. The caller calls it only if the hand goes on.

        state   the real betting at a decision of either player
        ranges  the policy's range before the action
        own     weights of the responder's hands before the action
        hands   the board of the street
        """
        whole = self.weight(ranges)
        if state.player == self._seat:
            after = partial(self.ranges_after, ranges, state)
            chosen = self._chosen(state, ranges, own, hands)
            return [(action, mine, whole, partial(after, action)) for action, mine in chosen]
        if not public(ranges):
            answers = self.answers(state, ranges, hands)  # type: ignore[arg-type]
            return [
                (action, own, self.weight(after_action), partial(dict, after_action))
                for action, after_action in answers.items()
            ]
        ((position, weight),) = ranges.items()
        shares = zip(position.actions, weight * position.played(), strict=True)
        return [(action, own, share, partial(self._entered, position, action, share)) for action, share in shares]

    def _entered(self, position: PublicState, action: str, weight: Floats) -> dict[Any, Floats]:
        """Return the policy's range after an action on a re-solved street.

        It is {public state after the action: the given weights}, so that the policy's solution can be looked up there.

        position  public state before the action
        action    action of either player, such as "r300"
        weight    [1326] weights of the policy's hands after the action
        """
        return {position.after(action, self._known[min(position.state.street + 1, len(self._known) - 1)]): weight}

    def ranges_after(self, ranges: Ranges, state: Any, action: str) -> Ranges:
        """Return the policy's range after an action of the responder.

        It is {position in the policy's tree: weights [1326]}, over all translations of the action. After re-solving it
        has one public state, without translation, because the policy re-solves for the real bet.

        ranges  the policy's range before the action
        state   the real betting before the action
        action  the responder's action, such as "r300"
        """
        if not public(ranges):
            return super().ranges_after(ranges, state, action)
        ((position, weight),) = ranges.items()
        return self._entered(position, action, weight)  # type: ignore[arg-type]

    def _chosen(self, state: Any, ranges: Any, own: Floats, hands: OpponentRanges) -> list[tuple[str, Floats]]:
        """Return (action, weights [1326] of the responder's hands that choose it) for each legal action.

        state   the real betting at a decision of the responder
        ranges  the policy's range
        own     [1326] weights of the responder's hands
        hands   the board of the street
        """
        legal = self._lines.actions(state)
        if len(legal) == 1:
            return [(str(legal[0]), own)]
        best, chosen = np.full(len(own), -np.inf), np.zeros(len(own), np.int64)
        for number, (_, value, apart) in enumerate(self.values(state, ranges, hands)):
            better = value > best + apart
            best, chosen = np.where(better, value, best), np.where(better, number, chosen)
        return [(str(action), own * (chosen == number)) for number, action in enumerate(legal)]

    def _folding(self, state: Any, action: str, ranges: Any, deal: Any, cache: dict[Any, tuple[Any, Any]]) -> Any:
        """Return two arrays [1326] by responder hand: the policy's weight that folds to a bet, and a balance.

        The balance is the folding weight that the hand would beat at a showdown minus that which would beat it.

        state   the real betting before the bet
        action  the responder's bet, such as "r300"
        ranges  the policy's range before the bet
        deal    the board of the street
        cache   results by translation, as in the base class; not used after re-solving
        """
        if not public(ranges):
            return super()._folding(state, action, ranges, deal, cache)
        ((position, weight),) = ranges.items()
        (answering,) = self._entered(position, action, weight)
        share = weight * answering.played()[answering.actions.index("f")]
        return deal.opponent_weight(share), deal.won(share)


def _without_blocked(ranges: Any, hands: OpponentRanges) -> Any:
    """Return weights of hands, with weight 0 for hands that share a card with the street's board.

    ranges  weights [1326], or {key: weights [1326]}; the result has the same form
    """
    if isinstance(ranges, dict):
        return {position: weight * hands.live for position, weight in ranges.items()}
    return ranges * hands.live


def public(ranges: Any) -> bool:
    """Return True if a range is one after re-solving: its key is a public state, not a tree position.

    ranges  {position in the policy's tree, or public state: weights [1326] of hands}; not empty
    """
    return isinstance(next(iter(ranges)), PublicState)
