"""The public tree of a spot, with the node names of PioSOLVER's protocol, such as `r:0:c:b94:c:7c`.

A spot is a game of two players that begins on a given board, with both ranges, a pot and stacks.  A name lists the
actions and dealt cards from the root `r:0`: c is a check or call, f a fold, b94 a bet.  The number of a bet is the
chips that its player has put in since the spot began.
"""

from typing import NamedTuple

import numpy as np

from abstraction.cards import card_text
from mccfr.config.value_limits import shown
from mccfr.games.betting import amount_text
from mccfr.games.game import Game
from mccfr.trees.betting_lines import starts_street
from mccfr.trees.compiled import DECISION

ROOT = "r:0"
DECIDES = "OOP_DEC", "IP_DEC"


class TreeStep(NamedTuple):
    """An action on the path to a node.

    decision  number, in the betting tree, of the decision at which it is taken
    action    index among the actions of this decision
    board     number of the board at this decision, among those of its street
    """

    decision: int
    action: int
    board: int


class Node(NamedTuple):
    """A node of a spot's public tree: a node of the betting tree, with a board.

    name   name in PioSOLVER's protocol: actions and cards from the root r:0, such as r:0:c:b94
    node   number of the node in the betting tree
    board  number of the current board among those of its street
    steps  all actions on the path from the root
    split  True if the next street's card is to be dealt here
    """

    name: str
    node: int
    board: int = 0
    steps: tuple[TreeStep, ...] = ()
    split: bool = False


class SpotTree:
    """The public tree of a spot: finds nodes by PioSOLVER's names, such as r:0:c:b94, and describes them.

    game    the spot's game, which begins on a given board with both ranges
    half    half the pot at the root, in chips
    behind  chips that each player has behind at the root
    """

    def __init__(self, game: Game, behind: float) -> None:
        self.game, self.behind = game, behind
        self.cards, self.tree, self.half = game.listed_cards(), game.tree, game.pot_chips / 2

    def find(self, name: str) -> Node:
        """Return the node with a name such as r:0:c:b94:c:7c: check, bet, call, and the card 7c.

        Raises `ValueError` for an unknown name.  If it begins with r:0, the message lists the children of the last
        node that exists.
        """
        parts = name.strip().split(":")
        if parts[:2] != ROOT.split(":"):
            raise ValueError(f"node {shown(name)} does not begin with {ROOT}")
        node = Node(ROOT, 0)
        for part in parts[2:]:
            node = self._step(node, part, name)
        return node

    def _step(self, at: Node, part: str, name: str) -> Node:
        """Return the child of node `at` for an action or card `part`; `ValueError`, naming `name`, if absent."""
        children = self.children(at)
        child_name = f"{at.name}:{part}"
        for child in children:
            if child.name == child_name:
                return child
        names = ", ".join(child.name.rpartition(":")[2] for child in children) or "nothing: the hand is over"
        raise ValueError(f"node {shown(name)}: {part!r} does not follow {at.name}, where there is {names}")

    def children(self, at: Node) -> list[Node]:
        """Return the children of a node: one for each action, or each card that can be dealt; [] at the end."""
        if at.split:
            return self._dealt(at)
        if self.tree.arrays.kind[at.node] != DECISION:
            return []
        children = self.tree.children(at.node)
        return [self._acted(at, number, child) for number, child in enumerate(children)]

    def _acted(self, at: Node, number: int, child: int) -> Node:
        """Return the node after action `number` of decision `at`; `child` is its number in the betting tree."""
        steps = (*at.steps, TreeStep(at.node, number, at.board))
        return Node(f"{at.name}:{self.action(child)}", child, at.board, steps, starts_street(self.tree, child))

    def _dealt(self, at: Node) -> list[Node]:
        """Return a node for each card that can be dealt next at node `at`."""
        street = self.street(at) + 1
        boards = np.flatnonzero(self.cards.board_parent[street] == at.board).tolist()
        cards = [int(self.cards.board_cards[street][board][-1]) for board in boards]
        return [
            at._replace(name=f"{at.name}:{card_text(card)}", board=board, split=False)
            for board, card in zip(boards, cards, strict=True)
        ]

    def action(self, node: int) -> str:
        """Return the last action before a node of the betting tree, such as "b94".

        "c" is a check or call, "f" a fold.  A bet or raise is "b" and the chips that its player has put in since the
        spot began.
        """
        label = self.tree.label[node]
        return f"b{amount_text(float(label[1:]) - self.half)}" if label.startswith("r") else label

    def street(self, at: Node) -> int:
        """Return the index of the street of a node's board; the spot begins on street 0."""
        if at.split or self.tree.arrays.kind[at.node] != DECISION:
            return int(self.tree.arrays.block[at.steps[-1].decision]) // 2
        return int(self.tree.arrays.block[at.node]) // 2

    def decides(self, at: Node) -> int | None:
        """Return the player to act: 0 out of position, 1 in position; None if the node is no decision."""
        return None if at.split or self.tree.arrays.kind[at.node] != DECISION else int(self.tree.arrays.player[at.node])

    def kind(self, at: Node) -> str:
        """Return the kind of a node: OOP_DEC, IP_DEC, SPLIT_NODE or END_NODE.

        The first two are decisions of the player out of position and in position.  At a SPLIT_NODE a board card is
        dealt; at an END_NODE no player acts any more.
        """
        player = self.decides(at)
        if player is not None:
            return DECIDES[player]
        return "SPLIT_NODE" if at.split else "END_NODE"

    def board(self, at: Node) -> str:
        """Return the board cards at a node, separated by spaces."""
        return self.board_text(self.street(at), at.board)

    def board_text(self, street: int, board: int) -> str:
        """Return the cards of board number `board` in the list of a street's boards, separated by spaces."""
        return " ".join(card_text(int(card)) for card in self.cards.board_cards[street][board])

    def text(self, at: Node, name: str | None = None) -> str:
        """Return six lines on a node: name, kind, board, chips and pot, number of children, "flags:".

        The fourth line has the chips that OOP and IP have put in since the root, then the pot at the root.

        name  None: describe the node `at`.  "r": describe the parent that PioSOLVER's protocol gives the root `at`
        """
        assert self.tree.put_in is not None
        chips = [amount_text(put_in - self.half) for put_in in self.tree.put_in[at.node].tolist()]
        pot = " ".join([*chips, amount_text(2 * self.half)])
        children, kind = (len(self.children(at)), self.kind(at)) if name is None else (1, "ROOT")
        return "\n".join([name or at.name, kind, self.board(at), pot, f"{children} children", "flags:"])

    def lines(self) -> list[str]:
        """Return the names of all nodes of the betting tree, such as r:0:c:b94, without dealt cards.

        The first is `r`, the parent that PioSOLVER's protocol gives the root `r:0`.
        """
        names = [ROOT]
        for node in range(1, len(self.tree.parent)):
            names.append(f"{names[self.tree.parent[node]]}:{self.action(node)}")
        return ["r", *names]
