"""Where in a tree a real line of betting is taken to be."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from mccfr.trees.compiled import CompiledTree

OVER = -1
"""In place of a state: the hand has ended, or no more can be bet."""
NOWHERE = -1
"""In place of a node: the tree has none here."""


class Reading(NamedTuple):
    """One of the places in the tree that a real line may stand for.

    node         the decision where the player to act answers; a terminal where the tree's hand is over, and NOWHERE
                 where he can only call
    probability  of this reading
    closed       where a call leads instead of `node`'s call, when a bet was taken for a call that closes the betting;
                 else NOWHERE
    """

    node: int
    probability: float
    closed: int = NOWHERE


class Reader(Protocol):
    """What maps one action at one reading."""

    def outcomes(self, reading: Reading, state: Any, action: str) -> list[Reading]:
        """What an action may stand for at a reading, each with its probability there."""
        ...


def followed(reader: Reader, readings: Sequence[Reading], state: Any, action: str) -> list[Reading]:
    """The readings after a legal action of the player to act; those that meet are one."""
    found: dict[tuple[int, int], float] = {}
    for reading in readings:
        for node, probability, closed in reader.outcomes(reading, state, action):
            place = node, closed
            found[place] = found.get(place, 0.0) + reading.probability * probability
    return [Reading(node, probability, closed) for (node, closed), probability in found.items()]


def taken_for(tree: CompiledTree, node: int, action: str, outcome: Reading) -> int:
    """Number of the tree's action at a decision that a real action stands for there, by one of its outcomes."""
    children = list(tree.children(node))
    taken = outcome.closed if outcome.closed != NOWHERE else outcome.node  # a bet that was taken for a call
    if taken not in children:  # the call of such a bet, which goes on where that call had led
        return [tree.label[child] for child in children].index(action)
    return children.index(taken)
