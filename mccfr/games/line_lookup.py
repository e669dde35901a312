"""Finds the tree nodes to which a line of real betting is mapped, with their probabilities.

A line is a sequence of actions. Real betting is that of a hand at a table. Its bet sizes may be missing in the solved
tree, so action translation maps them to sizes of the tree. A reading is one tree node to which a line is mapped.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from mccfr.trees.compiled import CompiledTree

OVER = -1
"""Used instead of a state: the hand is over, or no more bets are possible."""
NOWHERE = -1
"""Used instead of a node: the tree has none here."""


class LineReading(NamedTuple):
    """One tree node to which action translation maps a line of real betting, with its probability.

    node         number of the tree node: a decision of the player to act; a terminal if the tree's hand is over;
                 NOWHERE (-1) if the tree has no decision for the player. With three and more players this holds for
                 results of `SeatTranslation.at`; elsewhere the node may be another player's decision
    probability  probability, 0 to 1, that the line is mapped to this node
    closed       used only where `node` is NOWHERE. Two players: a bet that the tree lacks was mapped to a check or call
                 that ends the street; this is the node after the check or call, which a call of the bet reaches. Three
                 and more players: the tree's current node, a terminal or a decision of another player or street
    """

    node: int
    probability: float
    closed: int = NOWHERE


class Reader(Protocol):
    """Interface of an action translation: maps a table's action to tree nodes."""

    def outcomes(self, reading: LineReading, state: Any, action: str) -> list[LineReading]:
        """Return the tree nodes to which an action may be mapped; probabilities sum to 1.

        reading  tree node before the action, as a `LineReading`
        state    betting state at the table before the action
        action   "c" (check or call), "f" or "rN" (raise to N chips over the whole hand)
        """
        ...


def followed(reader: Reader, readings: Sequence[LineReading], state: Any, action: str) -> list[LineReading]:
    """Return the tree nodes, with probabilities, after a legal action at a table; each node once.

    reader    action translation, which maps the action
    readings  tree nodes to which the line before the action is mapped, as a list of `LineReading`
    state     betting state at the table before the action

    Probabilities of the same node, reached from several nodes, are added.
    """
    probabilities: dict[tuple[int, int], float] = {}
    for reading in readings:
        for node, probability, closed in reader.outcomes(reading, state, action):
            key = node, closed
            probabilities[key] = probabilities.get(key, 0.0) + reading.probability * probability
    return [LineReading(node, probability, closed) for (node, closed), probability in probabilities.items()]


def mapped_action(tree: CompiledTree, node: int, action: str, outcome: LineReading) -> int | None:
    """Return the index of the tree's action at a decision to which a table's action was mapped.

    node     number of the decision
    action   action at the table, such as "r300"
    outcome  tree node after the action, one of those that `Reader.outcomes` returns

    Returns None if the tree has no such action, as for a fold to a bet that was mapped to a check.
    """
    children = list(tree.children(node))
    reached = outcome.closed if outcome.closed != NOWHERE else outcome.node  # a bet that was mapped to a call
    if reached in children:
        return children.index(reached)
    labels = [tree.label[child] for child in children]  # the call of such a bet leads to the node `closed`
    return labels.index(action) if action in labels else None
