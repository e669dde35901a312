"""Joint betting tree of two players with different betting trees, for head-to-head evaluation.

A node is a state of the real betting, with a node of each player's own tree that stands for it
(`mccfr.games.translation`). The player to act plays by a decision of its own tree; its actions become real amounts. The
other player may translate a real action to one of several actions of its own tree. Each of them gives a node, with its
probability; later nodes keep that translation.

A player may have to act in a state that is no decision in its own tree. It then has a single action, and the state gets
no node. The action is a check or call, or a fold to a bet if the hand in its tree has ended by a fold.

Payoffs are those of the real betting.

Two lines to the same state and translations are separate nodes, because a player's reach differs between them.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.games.line_lookup import LineReading
from mccfr.games.translation import Translation
from mccfr.trees.compiled import DECISION, NO_PARENT, CompiledTree, blank_arrays

MAX_NODES = 3_000_000
"""Limit of a joint tree; building takes some 10 microseconds and 300 bytes per node."""


class JointTree(NamedTuple):
    """A betting tree of two players whose own trees may have different bets. N nodes.

    tree    nodes and real payoffs. Each decision also has the indices of its strategy in the tables of the player to
            act: number of the table (one for each street and player), row (decision) and first slot (action)
    action  [N] int64    number, in the acting player's own tree, of the action that leads to a node; 0 at the root
    factor  [N] float64  probability that the other player translates this action into the action of its own tree for
                         which the node stands
    """

    tree: CompiledTree
    action: npt.NDArray[np.int64]
    factor: npt.NDArray[np.float64]


def shared_tree(tree: CompiledTree) -> JointTree:
    """Return the `JointTree` of two players who have the same betting tree."""
    action = np.arange(tree.nodes) - tree.arrays.first[tree.parent]
    action[0] = 0
    return JointTree(tree, action, np.ones(tree.nodes))


def joint_tree(games: Sequence[Game]) -> JointTree:
    """Return the joint tree of two players with different betting trees.

    Its nodes are states of the real betting, with the node of each player's own tree that stands for them.

    games  the two players' games, by seat

    Raises `ValueError` for more than MAX_NODES (3 million) nodes.
    """
    players = []
    for game in games:
        assert game.real_rules is not None
        players.append(Translation(game.tree, game.real_rules))
    builder = _JointTreeBuilder(players)
    state, (reading, *_) = players[0].start()
    todo = [(builder.add(NO_PARENT, 0, 1.0), _JointDecision(state, (reading, reading)))]
    while todo:
        node, decision = todo.pop()
        todo.extend(reversed(builder.expand(node, decision)))
    return builder.compiled()


class _JointDecision(NamedTuple):
    """A decision of the real betting, and the nodes of both players' own trees that stand for it.

    state     the real betting
    readings  one `LineReading` (tree node with its probability) for each player, in the player's own tree
    """

    state: BettingState
    readings: tuple[LineReading, LineReading]


class _JointTreeBuilder:
    """Builds a joint tree depth-first, one decision at a time.

    The nodes after a decision's actions get consecutive numbers, before the nodes below the first of them.
    """

    def __init__(self, players: Sequence[Translation]) -> None:
        self.players = players
        self.parent, self.action, self.factor = array("i"), array("i"), array("d")
        self.ends: dict[int, tuple[float, float]] = {}  # payoffs of the terminals
        # For each decision in order of expansion: its node, the actor's block and the decision in the actor's tree.
        self.node, self.block, self.own, self.count = array("i"), array("b"), array("i"), array("i")
        self.outcomes: dict[tuple[int, LineReading, BettingState, str], list[LineReading]] = {}

    def add(self, parent: int, action: int, factor: float) -> int:
        node = len(self.parent)
        if node >= MAX_NODES:
            raise ValueError(
                f"the joint betting tree of two policies with these bet sizes has more than {MAX_NODES:,} nodes, the "
                "most allowed: compare policies whose menus have fewer sizes"
            )
        self.parent.append(parent)
        self.action.append(action)
        self.factor.append(factor)
        return node

    def expand(self, node: int, decision: _JointDecision) -> list[tuple[int, _JointDecision]]:
        """Record a decision and the nodes after its actions; return those that are decisions.

        node      number of the decision in the joint tree
        decision  the betting there

        The result is a list of (number in the joint tree, betting there).
        """
        state, readings = decision
        player = state.player
        own = self.players[player]
        block = int(own.tree.arrays.block[readings[player].node])
        assert block == 2 * state.street + player, "a reading is of another street or player than the betting"
        first, children = len(self.parent), []
        for number, action in enumerate(own.real_actions(readings[player], state)):
            after = own.apply(state, action)
            if not isinstance(after, BettingState):
                self.ends[self.add(node, number, 1.0)] = own.settled(state, action)
                continue
            own_reading = own.done(readings[player], number, action)
            for other_reading in self.translations_of(1 - player, readings[1 - player], state, action):
                child = self.add(node, number, other_reading.probability)
                both = (own_reading, other_reading) if player == 0 else (other_reading, own_reading)
                following = self.played_on(after, both)
                if isinstance(following, _JointDecision):
                    children.append((child, following))
                else:
                    self.ends[child] = following
        self.node.append(node)
        self.block.append(block)
        self.own.append(readings[player].node)
        self.count.append(len(self.parent) - first)
        return children

    def translations_of(self, player: int, reading: LineReading, state: BettingState, action: str) -> list[LineReading]:
        """Return the nodes of a player's own tree to which it may translate a real action.

        Each node comes with its probability, given the node before the action.

        player   the player who translates: 0 or 1
        reading  the player's tree node before the action
        state    the real betting before the action
        action   the real action: `c`, `f`, or `rN` with N chips put in over the whole hand
        """
        key = (player, reading._replace(probability=1.0), state, action)
        translations = self.outcomes.get(key)
        if translations is None:
            translations = self.outcomes[key] = self.players[player].outcomes(reading, state, action)
        return translations

    def played_on(
        self, state: BettingState, readings: tuple[LineReading, LineReading]
    ) -> _JointDecision | tuple[float, float]:
        """Play forced actions from a state; return the next decision, or payoffs if the hand ends.

        An action is forced if the player to act has no decision here in its own tree. It then checks or calls, or folds
        to a bet if the hand in its tree has ended by a fold.

        Payoffs are (player 0's chips by a fold, chips that the winner of a showdown gets from the loser).

        state     the real betting
        readings  each player's node of its own tree that stands for it
        """
        while not self.players[state.player].decides(readings[state.player]):
            action = self.players[state.player].real_actions(readings[state.player], state)[0]
            after = self.players[0].apply(state, action)
            if not isinstance(after, BettingState):
                return self.players[0].settled(state, action)
            first, second = (self.translations_of(player, readings[player], state, action)[0] for player in range(2))
            state, readings = after, (first, second)
        return _JointDecision(state, readings)

    def compiled(self) -> JointTree:
        """Return the joint tree of all recorded nodes."""
        nodes, decision, count = len(self.parent), np.array(self.node), np.array(self.count)
        block, own = np.array(self.block), np.array(self.own)

        def owned(name: str) -> npt.NDArray[np.int64]:
            first, second = (getattr(player.tree.arrays, name)[own % player.tree.nodes] for player in self.players)
            return np.where(block % 2, second, first)

        arrays, ends = blank_arrays(nodes), list(self.ends)
        columns = {"kind": DECISION, "player": block % 2, "block": block, "count": count}
        columns |= {"first": 1 + np.cumsum(count) - count, "slot": owned("slot"), "row": owned("row")}
        for name, values in columns.items():
            getattr(arrays, name)[decision] = values
        arrays.fixed[ends], arrays.showdown[ends] = np.array(list(self.ends.values())).T
        trees = [own.tree for own in self.players]
        seats = np.arange(2 * trees[0].streets) % 2
        tree = CompiledTree(
            arrays,
            np.array(self.parent, np.int32),
            [""] * nodes,
            trees[0].streets,
            np.where(seats, trees[1].row_slots, trees[0].row_slots),
            np.where(seats, trees[1].row_count, trees[0].row_count),
        )
        return JointTree(tree, np.array(self.action, np.int64), np.array(self.factor))
