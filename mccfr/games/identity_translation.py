"""Identity translation for games whose tree contains every legal bet: each line leads to one node.

It has the interface of `mccfr.games.translation`, so that bots, local best response and matches handle both cases.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from mccfr.games.line_lookup import OVER, LineReading, followed
from mccfr.trees.betting_lines import find_node, put_in_chips
from mccfr.trees.compiled import DECISION, CompiledTree


class TreeState(NamedTuple):
    """A decision of a two-player betting tree: its node, player to act, street, and chips put in.

    node    number of the decision in the tree
    put_in  chips each player has put in over the whole hand
    """

    node: int
    player: int
    street: int
    put_in: tuple[float, float]

    @property
    def to_call(self) -> float:
        """Chips that the player to act has put in after a check or call, over the whole hand."""
        return max(self.put_in)

    @property
    def facing(self) -> bool:
        """True if the player to act has put in less than the opponent."""
        return self.put_in[self.player] < self.put_in[1 - self.player]


class IdentityTranslation:
    """Follows betting lines in a game whose tree contains every legal bet.

    The interface is that of `Translation`, which maps a line of real bets to tree nodes with probabilities, as
    `LineReading` objects. Here a line has exactly one node, with probability 1. The class lacks `rules` and
    methods that compare amounts, such as `is_exact`. It adds `actions`, which lists all legal actions.
    """

    players = 2

    def __init__(self, tree: CompiledTree) -> None:
        """Take a two-player betting tree, which contains no cards."""
        self.tree = tree

    @cached_property
    def _states(self) -> list["TreeState | int"]:
        """[N] state of each node: a `TreeState` at decisions, `OVER` (-1) at terminals."""
        arrays, states = self.tree.arrays, list[TreeState | int]()
        for node, kind in enumerate(arrays.kind.tolist()):
            if kind != DECISION:
                states.append(OVER)
                continue
            street, player = divmod(int(arrays.block[node]), 2)
            own, other = put_in_chips(self.tree, node)
            states.append(TreeState(node, player, street, (other, own) if player else (own, other)))
        return states

    def start(self) -> tuple["TreeState | int", list[LineReading]]:
        """Return the betting state before the first action, and the tree node for it, the root.

        The state is a `TreeState`. The root is in a list of one `LineReading` (a node and its probability, here 1).
        """
        return self._states[0], [LineReading(0, 1.0)]

    def read(self, line: str) -> tuple["TreeState | int", list[LineReading]]:
        """Return the state after a line (`OVER` if the hand has ended), and a list of one `LineReading`.

        The `LineReading` is the line's tree node with probability 1. Raises `ValueError`, naming the first illegal
        character.
        """
        node = find_node(self.tree, line)
        return self._states[node], [LineReading(node, 1.0)]

    def apply(self, state: TreeState, action: str, where: str = "") -> "TreeState | int":
        """Return the state after an action, or `OVER` (-1) if the hand ends.

        Raises `ValueError`, with a message that begins with `where`, for an illegal action.
        """
        return self._states[self._child(state.node, action, where)]

    def settled(self, state: TreeState, action: str) -> tuple[float, float]:
        """Return (chips player 0 wins by a fold, chips a showdown's winner gets) after a last action.

        These are the arguments `fixed` and `showdown` of `Game.won_chips`; one of them is 0. Chips are net.
        """
        child = self._child(state.node, action)
        return float(self.tree.arrays.fixed[child]), float(self.tree.arrays.showdown[child])

    def actions(self, state: TreeState) -> list[str]:
        """Return all legal actions at a state, as labels such as c, f and r300."""
        return [self.tree.label[child] for child in self.tree.children(state.node)]

    def follow(self, readings: Sequence[LineReading], state: TreeState, action: str) -> list[LineReading]:
        """Return the tree nodes after a legal action, as a list of `LineReading`.

        readings  the same before the action
        """
        return followed(self, readings, state, action)

    def at(self, reading: LineReading, state: TreeState) -> LineReading:
        """Return `reading` unchanged: its tree node is the decision of the player to act."""
        del state
        return reading

    def outcomes(self, reading: LineReading, state: TreeState, action: str) -> list[LineReading]:
        """Return a list with the one tree node after an action, as a `LineReading`.

        reading  the tree node before the action
        """
        return [LineReading(self._child(reading.node, action), 1.0)]

    def real_actions(self, reading: LineReading, state: TreeState) -> list[str]:
        """Return the labels of a tree node's actions, such as c and r300.

        reading  the tree node, as a `LineReading`
        """
        return [self.tree.label[child] for child in self.tree.children(reading.node)]

    def real_action(self, node: int, number: int, state: TreeState) -> str:
        """Return the label of action `number`, counted from 0, of decision `node`, such as r300."""
        return self.tree.label[self.child(node, number)]

    def child(self, node: int, number: int) -> int:
        """Return the child node to which action `number` of decision `node` leads."""
        return int(self.tree.arrays.first[node]) + number

    def decides(self, reading: LineReading) -> bool:
        """Return True if a tree node is a decision, False if the hand is over there.

        reading  the tree node, as a `LineReading`
        """
        return not isinstance(self._states[reading.node], int)

    def done(self, reading: LineReading, number: int, action: str) -> LineReading:
        """Return the tree node after an action, as a `LineReading` with probability 1.

        reading  the tree node before the action
        number   index of the action at that node
        """
        return LineReading(self.child(reading.node, number), 1.0)

    def _child(self, node: int, action: str, where: str = "") -> int:
        labels = [self.tree.label[child] for child in self.tree.children(node)]
        if action not in labels:
            prefix = f"{where}: " if where else ""
            raise ValueError(f"{prefix}{action!r} is not possible here; legal actions: {', '.join(labels)}")
        return self.child(node, labels.index(action))
