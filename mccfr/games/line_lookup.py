"""Readings: the tree nodes that a line of real betting is mapped to, with probabilities.

Real betting is that of a hand at a table, with amounts that the solved tree may lack.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from mccfr.trees.compiled import CompiledTree

OVER = -1
"""Used instead of a state: the hand is over, or no more bets are possible."""
NOWHERE = -1
"""Used instead of a node: the tree has none here."""


class LineReading(NamedTuple):
    """One tree node that a line of real betting is mapped to.

    node         decision of the player to act; a terminal if the tree's hand is over; NOWHERE if the tree has no
                 decision for the player
    probability  probability of this node among all readings of the line
    closed       used only where `node` is NOWHERE. Two players: a bet that the tree lacks was mapped to a check or call
                 that ends the street; this is the node after it, to which a call of the bet leads. Three and more
                 players: the node at which the tree waits, a terminal or a decision of another player or street
    """

    node: int
    probability: float
    closed: int = NOWHERE


class Reader(Protocol):
    """Interface that maps an action at the table to the tree nodes that follow."""

    def outcomes(self, reading: LineReading, state: Any, action: str) -> list[LineReading]:
        """Return the tree nodes (readings) after `action` at `reading`; probabilities sum to 1.

        state  betting state at the table before the action
        """
        ...


def followed(reader: Reader, readings: Sequence[LineReading], state: Any, action: str) -> list[LineReading]:
    """Return the readings (tree nodes with probabilities) after a legal action, with equal ones merged.

    readings  tree nodes to which the line before the action is mapped
    state     real betting state before the action
    """
    probabilities: dict[tuple[int, int], float] = {}
    for reading in readings:
        for node, probability, closed in reader.outcomes(reading, state, action):
            key = node, closed
            probabilities[key] = probabilities.get(key, 0.0) + reading.probability * probability
    return [LineReading(node, probability, closed) for (node, closed), probability in probabilities.items()]


def mapped_action(tree: CompiledTree, node: int, action: str, outcome: LineReading) -> int | None:
    """Return the index of the tree's action to which a real action was mapped at decision `node`.

    outcome  tree node (reading) after the action, one of those that `Reader.outcomes` returns

    Returns None if the tree has no such action, as for a fold to a bet that was mapped to a check.
    """
    children = list(tree.children(node))
    reached = outcome.closed if outcome.closed != NOWHERE else outcome.node  # a bet that was mapped to a call
    if reached in children:
        return children.index(reached)
    labels = [tree.label[child] for child in children]  # the call of such a bet leads to the node `closed`
    return labels.index(action) if action in labels else None
