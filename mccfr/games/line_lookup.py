"""Readings: the tree nodes that a line of real betting is mapped to, with probabilities."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from mccfr.trees.compiled import CompiledTree

OVER = -1
"""Used instead of a state: the hand is over, or no more bets are possible."""
NOWHERE = -1
"""Used instead of a node: the tree has none here."""


class LineReading(NamedTuple):
    """One tree node that a real line is mapped to.

    node         decision at which the player to act answers; a terminal if the tree's hand is over; NOWHERE if calling
                 is the only answer
    probability  of this reading
    closed       if a bet was mapped to a call that closes the betting: the node to which a call leads, where `node` is
                 NOWHERE; else NOWHERE
    """

    node: int
    probability: float
    closed: int = NOWHERE


class Reader(Protocol):
    """Maps one action at one reading."""

    def outcomes(self, reading: LineReading, state: Any, action: str) -> list[LineReading]:
        """Return the readings of an action at a reading, each with its probability given that reading."""
        ...


def followed(reader: Reader, readings: Sequence[LineReading], state: Any, action: str) -> list[LineReading]:
    """Return the readings after a legal action of the player to act, with equal ones merged."""
    probabilities: dict[tuple[int, int], float] = {}
    for reading in readings:
        for node, probability, closed in reader.outcomes(reading, state, action):
            key = node, closed
            probabilities[key] = probabilities.get(key, 0.0) + reading.probability * probability
    return [LineReading(node, probability, closed) for (node, closed), probability in probabilities.items()]


def mapped_action(tree: CompiledTree, node: int, action: str, outcome: LineReading) -> int | None:
    """Return the number of the tree's action that a real action was mapped to at a decision.

    outcome  the reading after the action, one of `Reader.outcomes`

    It is None if the tree lacks the action: a fold to a bet that was mapped to a check.
    """
    children = list(tree.children(node))
    reached = outcome.closed if outcome.closed != NOWHERE else outcome.node  # a bet that was mapped to a call
    if reached in children:
        return children.index(reached)
    labels = [tree.label[child] for child in children]  # the call of such a bet leads to the node `closed`
    return labels.index(action) if action in labels else None
