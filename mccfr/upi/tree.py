"""A spot's tree as the protocol names its nodes: `r:0:c:b94:c:7c`, root, actions, and cards where they are dealt."""

from typing import NamedTuple

import numpy as np

from abstraction.cards import card_text
from mccfr.config.limits import shown
from mccfr.games.betting import amount_text
from mccfr.games.game import Game
from mccfr.trees.compiled import DECISION
from mccfr.trees.lines import starts_street

ROOT = "r:0"
DECIDES = "OOP_DEC", "IP_DEC"


class TreeStep(NamedTuple):
    """An action on the way to a node: of which decision, its number there, and the board it was done on."""

    decision: int
    action: int
    board: int


class Node(NamedTuple):
    """A node of the public tree.

    name   as the protocol has it
    node   of the betting tree
    board  number of the board that lies, on its street
    steps  all actions on the way
    split  whether the next street's card is to come
    """

    name: str
    node: int
    board: int = 0
    steps: tuple[TreeStep, ...] = ()
    split: bool = False


class SpotTree:
    """The tree of a spot.

    game    the spot
    half    chips of each player in the pot when it begins
    behind  chips that each has behind then
    """

    def __init__(self, game: Game, behind: float) -> None:
        self.game, self.behind = game, behind
        self.cards, self.tree, self.half = game.cards.listed(), game.tree, game.pot_chips / 2

    def find(self, name: str) -> Node:
        """The node of a name; `ValueError` where there is none, with what comes there instead."""
        parts = name.strip().split(":")
        if parts[:2] != ROOT.split(":"):
            raise ValueError(f"node {shown(name)} does not begin with {ROOT}")
        found = Node(ROOT, 0)
        for part in parts[2:]:
            found = self._step(found, part, name)
        return found

    def _step(self, at: Node, part: str, name: str) -> Node:
        following = self.children(at)
        wanted = f"{at.name}:{part}"
        for child in following:
            if child.name == wanted:
                return child
        there = ", ".join(child.name.rpartition(":")[2] for child in following) or "nothing: the hand is over"
        raise ValueError(f"node {shown(name)}: {part!r} does not follow {at.name}, where there is {there}")

    def children(self, at: Node) -> list[Node]:
        """What follows a node: its actions, or the cards that may come."""
        if at.split:
            return self._dealt(at)
        if self.tree.arrays.kind[at.node] != DECISION:
            return []
        children = self.tree.children(at.node)
        return [self._acted(at, number, child) for number, child in enumerate(children)]

    def _acted(self, at: Node, number: int, child: int) -> Node:
        steps = (*at.steps, TreeStep(at.node, number, at.board))
        return Node(f"{at.name}:{self.action(child)}", child, at.board, steps, starts_street(self.tree, child))

    def _dealt(self, at: Node) -> list[Node]:
        street = self.street(at) + 1
        boards = np.flatnonzero(self.cards.board_parent[street] == at.board).tolist()
        cards = [int(self.cards.board_cards[street][board][-1]) for board in boards]
        return [
            at._replace(name=f"{at.name}:{card_text(card)}", board=board, split=False)
            for board, card in zip(boards, cards, strict=True)
        ]

    def action(self, node: int) -> str:
        """The action that leads to a node of the betting tree: c, f, or b and the chips put in since the spot began."""
        label = self.tree.label[node]
        return f"b{amount_text(float(label[1:]) - self.half)}" if label.startswith("r") else label

    def street(self, at: Node) -> int:
        """The street of the board that lies."""
        if at.split or self.tree.arrays.kind[at.node] != DECISION:
            return int(self.tree.arrays.block[at.steps[-1].decision]) // 2
        return int(self.tree.arrays.block[at.node]) // 2

    def decides(self, at: Node) -> int | None:
        """Who acts: 0 out of position, 1 in position; None where nobody does."""
        return None if at.split or self.tree.arrays.kind[at.node] != DECISION else int(self.tree.arrays.player[at.node])

    def kind(self, at: Node) -> str:
        """As the protocol has it."""
        player = self.decides(at)
        if player is not None:
            return DECIDES[player]
        return "SPLIT_NODE" if at.split else "END_NODE"

    def board(self, at: Node) -> str:
        """The cards that lie, with blanks between them."""
        return self.board_text(self.street(at), at.board)

    def board_text(self, street: int, board: int) -> str:
        """A board, with blanks between its cards."""
        return " ".join(card_text(int(card)) for card in self.cards.board_cards[street][board])

    def text(self, at: Node, name: str | None = None) -> str:
        """A node in six lines: name, kind, board, chips put in and pot, children, flags."""
        assert self.tree.put_in is not None
        chips = [amount_text(put_in - self.half) for put_in in self.tree.put_in[at.node].tolist()]
        pot = " ".join([*chips, amount_text(2 * self.half)])
        children, kind = (len(self.children(at)), self.kind(at)) if name is None else (1, "ROOT")
        return "\n".join([name or at.name, kind, self.board(at), pot, f"{children} children", "flags:"])

    def lines(self) -> list[str]:
        """The names of all nodes, cards left out."""
        found = [ROOT]
        for node in range(1, len(self.tree.parent)):
            found.append(f"{found[self.tree.parent[node]]}:{self.action(node)}")
        return ["r", *found]
