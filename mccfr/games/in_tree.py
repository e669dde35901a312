"""Games whose every bet is in their tree, behind the face of `mccfr.games.translation`: a real line is one decision.

So whoever follows real betting - a seat, local best response, a match - is written once, for Kuhn as for hold'em.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from mccfr.games.reading import OVER, Reading, followed
from mccfr.trees.compiled import DECISION, CompiledTree
from mccfr.trees.lines import find_node, put_in_chips


class TreeState(NamedTuple):
    """A decision as what both players see of it; fields as those of `BettingState`.

    node    of the tree
    put_in  chips each player has put in over the whole hand
    """

    node: int
    player: int
    street: int
    put_in: tuple[float, float]

    @property
    def to_call(self) -> float:
        """Chips that a check or call brings the actor up to."""
        return max(self.put_in)

    @property
    def facing(self) -> bool:
        """Whether the actor has less in than his opponent."""
        return self.put_in[self.player] < self.put_in[1 - self.player]


class InTree:
    """The betting of a game that its tree holds whole: every reading has probability 1.

    As `Translation`, but for its rules; beside it, `actions` lists what no-limit poker has too much of.
    """

    def __init__(self, tree: CompiledTree) -> None:
        """Of a betting tree, beside which cards are dealt."""
        self.tree = tree

    @cached_property
    def _states(self) -> list["TreeState | int"]:
        """[N] of each node; OVER at terminals."""
        arrays, found = self.tree.arrays, list[TreeState | int]()
        for node, kind in enumerate(arrays.kind.tolist()):
            if kind != DECISION:
                found.append(OVER)
                continue
            street, player = divmod(int(arrays.block[node]), 2)
            own, other = put_in_chips(self.tree, node)
            found.append(TreeState(node, player, street, (other, own) if player else (own, other)))
        return found

    def start(self) -> tuple["TreeState | int", list[Reading]]:
        """State and readings of the empty line."""
        return self._states[0], [Reading(0, 1.0)]

    def read(self, line: str) -> tuple["TreeState | int", list[Reading]]:
        """The state after a line, and its reading; `ValueError` naming the character where it is not of the tree."""
        node = find_node(self.tree, line)
        return self._states[node], [Reading(node, 1.0)]

    def apply(self, state: TreeState, action: str, where: str = "") -> "TreeState | int":
        """The state after an action; `ValueError`, begun with `where`, where it is not legal."""
        return self._states[self._child(state.node, action, where)]

    def settled(self, state: TreeState, action: str) -> tuple[float, float]:
        """(chips that player 0 gets whatever the cards, chips times the showdown's result) where an action ends it."""
        child = self._child(state.node, action)
        return float(self.tree.arrays.fixed[child]), float(self.tree.arrays.showdown[child])

    def actions(self, state: TreeState) -> list[str]:
        """All legal actions."""
        return [self.tree.label[child] for child in self.tree.children(state.node)]

    def follow(self, readings: Sequence[Reading], state: TreeState, action: str) -> list[Reading]:
        """The readings after a legal action; those that meet are one."""
        return followed(self, readings, state, action)

    def outcomes(self, reading: Reading, state: TreeState, action: str) -> list[Reading]:
        """What an action stands for at a reading: itself."""
        return [Reading(self._child(reading.node, action), 1.0)]

    def real_actions(self, reading: Reading, state: TreeState) -> list[str]:
        """The real action of each of the tree's actions at a reading."""
        return [self.tree.label[child] for child in self.tree.children(reading.node)]

    def real_action(self, node: int, number: int, state: TreeState) -> str:
        """The real action of the tree's action `number` at a decision."""
        return self.tree.label[self.child(node, number)]

    def child(self, node: int, number: int) -> int:
        """The child that action `number` of a decision leads to."""
        return int(self.tree.arrays.first[node]) + number

    def _child(self, node: int, action: str, where: str = "") -> int:
        labels = [self.tree.label[child] for child in self.tree.children(node)]
        if action not in labels:
            said = f"{where}: " if where else ""
            raise ValueError(f"{said}{action!r} is not possible here; legal actions: {', '.join(labels)}")
        return self.child(node, labels.index(action))
