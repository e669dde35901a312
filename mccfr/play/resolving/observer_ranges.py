"""Computes ranges of a policy, and its strategy on the rest of a hand, from the public betting.

The policy maps a bet outside its tree to one inside by a random draw that other players do not see. Ranges follow all
such mappings, with their probabilities (`mccfr.play.hand_beliefs`). Results depend only on the policy, the betting and
the board.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board
from mccfr.cards.deals import NO_BUCKET
from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.games.line_lookup import LineReading, mapped_action
from mccfr.games.translation import SeatTranslation, Translation
from mccfr.play.hand_beliefs import ObservedRange
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.resolving_spot import Spot, Tables
from mccfr.play.two_left import TwoLeft
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.compiled import DECISION

Floats = npt.NDArray[np.float64]


class NoRangeError(ValueError):
    """Raised if a player has no range: at a table of three or more it took an action that the tree lacks."""


class AssumedRange(ObservedRange):
    """The range of a player who is assumed to play a policy, even if its real actions differ.

    An action outside the policy's tree is mapped to one inside. If the policy takes no such action with any hand of the
    range, the hands keep their weights.

    known  False once the player, at a table of three or more, has taken an action that the tree lacks, such as a
           cold call
    """

    known = True

    def took(self, state: BettingState, action: str, board: Board) -> None:
        """Multiply the range by the policy's probabilities of this player's action.

        The action may be outside the policy's tree; it is then mapped to actions inside.

        state   betting state at the table before the action
        action  `f`, `c`, or `rN` with N chips put in over the whole hand
        board   all board cards of the state's street
        """
        before, tree = self.reach, self._seat.policy.game.tree
        for heeds_hands in (True, False):
            self._after = {action: {}}
            found = list[bool]()
            for (node, closed), reach in before.items():
                reading, rows = self._betting.at(LineReading(node, 1.0, closed), state), None  # type: ignore[arg-type]
                if heeds_hands and self._betting.decides(reading):
                    rows = self._seat.played(reading.node, self._buckets_on(reading.node, board))
                for outcome in self._betting.outcomes(reading, state, action):  # type: ignore[arg-type]
                    column = None if rows is None else mapped_action(tree, reading.node, action, outcome)
                    share = 1.0 if rows is None or column is None else rows[:, column]
                    self._add(action, outcome, reach * outcome.probability * share)
                    found.append(not heeds_hands or not self._lacks(reading, state, action, column))
            self.known = self.known and any(found)
            self.chose(action)
            if self.reach:
                return

    def _lacks(self, reading: LineReading, state: BettingState, action: str, column: int | None) -> bool:
        betting = self._betting
        return isinstance(betting, SeatTranslation) and betting.lacks(reading, state, action, column)


class HandObserver:
    """Tracks the ranges of the two players who are left, as an observer who knows one player's policy.

    ours      range of the player whose policy is known (`AssumedRange`)
    theirs    range of the opponent, computed as if it played the same policy
    position  index of the known player in the pair of players left, 0 or 1
    """

    def __init__(
        self, seat: Seat, position: int, line: Sequence[tuple[BettingState, str, Board]], left: TwoLeft
    ) -> None:
        """Compute both ranges after all actions so far.

        seat      the player whose policy is known
        position  index of this player at the table
        line      (state before, action, board) of each action of the hand
        left      the rest of the hand, converted to a hand of the two players who are left

        Raises `NoRangeError` if one of the two took an action that the policy's tree lacks, such as a cold call. It is
        possible only at a table of three or more.
        """
        self._seat, self._left, self.position = seat, left, left.players.index(position)
        other = left.players[1 - self.position]
        self.ours, self.theirs = AssumedRange(seat, position), AssumedRange(seat, other)
        for state, action, board in line:
            if state.player == position and action in self.ours.choices(state, board):
                self.ours.chose(action)
            elif state.player == position:  # an action from before a restart, or of another program at this seat
                self.ours.took(state, action, board)
            else:
                self.ours.see(state, action)
            if state.player == other:
                self.theirs.took(state, action, board)
            else:
                self.theirs.see(state, action)
        if not (self.ours.known and self.theirs.known):
            raise NoRangeError("one of the two players left has taken an action that the policy's tree lacks")

    def ranges(self) -> Floats:
        """Return the ranges [2, H] float64 of the two players left, after the actions so far.

        Row `position` is the range of the player whose policy is known; the other row is the opponent's. A hand's
        weight is the probability that the policy takes the player's actions so far with this hand. The opponent is
        assumed to play the same policy. An action that the policy takes with no hand of the range changes no weights.
        If all weights of the opponent are 0, they are set to 1. Hands that share a card with the board may have weight.
        """
        ranges = np.zeros((2, self._seat.dealing.hand_count))
        for position, tracked in ((self.position, self.ours), (1 - self.position, self.theirs)):
            ranges[position] = sum(tracked.reach.values(), np.zeros(ranges.shape[1]))
        if not ranges[1 - self.position].any():
            ranges[1 - self.position] = 1
        return ranges

    def buckets_in(self, spot: Spot, state: BettingState) -> Tables:
        """Return the policy's strategy, for both players, in a subgame whose hands share buckets.

        spot   subgame that begins at `state`, whose hands share buckets on later streets (`Spot.merged`)
        state  betting state at the table

        The result has for each block the probabilities [slots, buckets]. A block has the decisions of one street and
        player; a slot is one action of one decision.

        The betting so far may be mapped to several nodes of the policy's tree. Only the likeliest is followed, also for
        later bets. A raise of the policy that the subgame lacks counts as the subgame's raise with the nearest amount.
        """
        tree, betting = spot.game.tree, self._seat.betting
        buckets = [spot.own_buckets(block) for block in range(2 * tree.streets)]
        tables: Tables = [table.T.copy() for table in uniform_strategy(spot.game).probability]
        likeliest = max(self.ours.reach, key=lambda likeliest: float(self.ours.reach[likeliest].sum()))
        todo: list[tuple[int, Any, LineReading]] = [(0, state, LineReading(likeliest[0], 1.0, likeliest[1]))]
        while todo:
            node, state_here, reading = todo.pop()
            block, children = int(tree.arrays.block[node]), tree.children(node)
            slot = int(tree.arrays.slot[node])
            tables[block][slot : slot + len(children)] = self._rows_of(
                reading, state_here, buckets[block], [tree.label[child] for child in children]
            )
            for child in children:
                if tree.arrays.kind[child] == DECISION:
                    action = self._at_table(state_here, tree.label[child])
                    after = max(
                        betting.outcomes(reading, state_here, action),
                        key=lambda outcome: outcome.probability,
                    )
                    todo.append((child, betting.apply(state_here, action), after))
        return tables

    def _rows_of(
        self, reading: LineReading, state: Any, buckets: npt.NDArray[np.int32], labels: Sequence[str]
    ) -> npt.NDArray[np.float64]:
        """Return [A, buckets] the policy's probabilities of a subgame's actions `labels`.

        reading  node of the policy's tree to which the betting is mapped. If it is no decision of the player, one
                 action has probability 1: a check, call or fold
        state    betting state at the table
        buckets  the policy's bucket for each bucket of the subgame
        labels   the A actions of the subgame at the decision
        """
        betting, rows = self._seat.betting, np.zeros((len(labels), len(buckets)))
        reading = betting.at(reading, state)
        actions = [self._left.amount(action) for action in betting.real_actions(reading, state)]
        if not betting.decides(reading):
            rows[labels.index(actions[0])] = 1
            return rows
        for action, played in zip(actions, self._seat.played(reading.node, buckets).T, strict=True):
            rows[nearest_action(labels, action)] += played
        return rows

    def _at_table(self, state: BettingState, label: str) -> str:
        """Return `label`, an action of the subgame, as a legal action at the table.

        Both are `f`, `c`, or `rN` with N chips put in over the whole hand. Amounts may differ, because a subgame of two
        players counts chips of others, who have folded, as theirs.

        state  betting state at the table before the action
        """
        assert isinstance(self._seat.betting, Translation)
        return self._left.at_table(self._seat.betting, state, label)

    def policy_in(self, game: Game, state: BettingState) -> Tables:
        """Return the policy's strategy for the known player in the subgame `game`; the opponent's is uniform.

        The result has for each block the probabilities [slots, buckets]. A block has the decisions of one street and
        player; a slot is one action of one decision.

        Probabilities of a hand are means over all mappings of the betting into the policy's tree. A raise of the policy
        that the subgame lacks counts as the subgame's raise with the nearest amount. Hands of weight 0 play uniformly.

        state  betting state at the table where the subgame begins
        """
        cards, tree = game.listed_cards(), game.tree
        tables: Tables = [table.T.copy() for table in uniform_strategy(game).probability]
        todo: list[tuple[int, Any, ObservedRange, npt.NDArray[np.intp]]] = [(0, state, self.ours, np.zeros(1, np.intp))]
        while todo:  # each entry covers all boards of a street
            node, state_here, tracked, boards = todo.pop()
            street, children = state_here.street - state.street, tree.children(node)
            is_ours = state_here.player == self._left.players[self.position]
            if is_ours:
                dealt = [tuple(board) for board in cards.board_cards[street][boards].tolist()]
                choices = tracked.choices(state_here, dealt)
                labels = [tree.label[child] for child in children]
                nearest = {action: nearest_action(labels, self._left.amount(action)) for action in choices}
                rows = _rows(choices, nearest, len(children))
                bucket, slot = cards.bucket[street][self.position, boards].ravel(), int(tree.arrays.slot[node])
                live = bucket != NO_BUCKET
                tables[2 * street + self.position][slot : slot + len(children), bucket[live]] = rows[:, live]
            for number, child in enumerate(children):
                if tree.arrays.kind[child] != DECISION:
                    continue
                real = self._at_table(state_here, tree.label[child])
                if is_ours:
                    ours = tree.label[child][0]  # a raise that became a call, for lack of raises, is not continued
                    later = tracked.having_chosen(
                        action for action in choices if nearest[action] == number and action[0] == ours
                    )
                    if not later.reach:
                        continue  # the player never gets there
                else:
                    later = copy(tracked)
                    later.see(state_here, real)
                after: Any = self._seat.betting.apply(state_here, real)
                boards_after = boards
                if after.street != state_here.street:  # subgames have at most two streets, the first with one board
                    boards_after, later = np.flatnonzero(cards.board_parent[street + 1] >= 0), copy(later)
                    later.reach = {place: np.tile(reach, len(boards_after)) for place, reach in later.reach.items()}
                todo.append((child, after, later, boards_after))
        return tables


def _rows(choices: Mapping[str, Floats], number: Mapping[str, int], count: int) -> Floats:
    """Return [A, H] a decision's action probabilities by hand; uniform for hands that never get there.

    Several actions of the policy may become one action of the subgame; their probabilities are added.

    choices  {action: [H] probability of reaching the decision with the hand and taking the action}
    number   {action: index of the subgame's action that it becomes}
    count    A, the number of actions in the subgame
    """
    rows = np.zeros((count, len(next(iter(choices.values())))))
    for action, reach in choices.items():
        rows[number[action]] += reach
    total = rows.sum(axis=0)
    return np.where(total > 0, rows / np.where(total > 0, total, 1), 1 / count)


def nearest_action(labels: Sequence[str], action: str) -> int:
    """Return the index in `labels` of `action`, or of the closest action if it is not among them.

    For a raise this is the raise with the nearest amount, or the call if there are no raises. For another action it is
    the call, or check.

    labels  actions of a decision: `f`, `c`, or `rN` with N chips put in over the whole hand
    """
    if action in labels:
        return labels.index(action)
    raises = [number for number, label in enumerate(labels) if label[0] == "r"]
    if action[0] != "r" or not raises:
        return labels.index("c")
    return min(raises, key=lambda number: abs(float(labels[number][1:]) - float(action[1:])))
