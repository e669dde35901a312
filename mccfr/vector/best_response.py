"""Exact value and exact best response over a public tree, with all hands of a player at once.

A best response maximises at every node for each of the responder's hands on each board, against the opponent's whole
range there: it sees its own cards and the public ones, never the opponent's.  This is exact in the real game also where
strategies are bucketed or suits merged (Johanson et al. 2011).  Streets nest; boards of a street are taken one by one,
so memory is that of one subtree a street.
"""

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.strategy import Strategy
from mccfr.vector.public_tree import EXIT, RUN_OUT, PublicTree, public_tree
from mccfr.vector.traverse import Task, ascend, descend, last_street, new_scratch, run_out

Values = npt.NDArray[np.float64]


class _Walk:
    """A traversal for one player: whose values, against which strategy, and the scratch of each street."""

    def __init__(self, public: PublicTree, strategy: Strategy, player: int, respond: bool) -> None:
        self.public, self.player, self.respond = public, player, int(respond)
        self.scratch = [new_scratch(public, street) for street in range(public.streets)]
        # Read-only or foreign layouts would have the kernels compiled once more.
        tables = [np.require(table, np.float64, ["C", "W"]) for table in strategy.probability]
        self.probability = [
            (tables[2 * street + player], tables[2 * street + 1 - player]) for street in range(public.streets)
        ]

    def values(self, subtree: int, boards: npt.NDArray[np.int64], reach: Values) -> Values:
        """[H] counterfactual values of a subtree, the mean over its boards; reach [H] is the opponent's."""
        public, arrays = self.public, self.public.arrays
        street = int(arrays.subtrees.street[subtree])
        out = np.zeros(len(reach))
        task, scratch, probability = (
            Task(self.player, self.respond, subtree),
            self.scratch[street],
            self.probability[street],
        )
        weight = float(public.weight[street])
        if street + 1 == public.streets:
            last_street(arrays, scratch, task, boards, probability, reach, weight, out)
            return out
        for board in range(int(boards[0]), int(boards[1])):
            descend(arrays, scratch, task, board, probability, reach)
            self._leave(subtree, street, board)
            ascend(arrays, scratch, task, board, weight, out)
        return out

    def _leave(self, subtree: int, street: int, board: int) -> None:
        """Fill in the values of a subtree's exits and run-outs on a board."""
        public, subtrees, hands = self.public, self.public.arrays.subtrees, self.public.arrays.hands
        first, scratch = int(subtrees.member_first[subtree]), self.scratch[street]
        own, other = (
            hands.hand[hands.first[player, board] : hands.first[player, board + 1]]
            for player in (self.player, 1 - self.player)
        )
        kinds = subtrees.kind[first : int(subtrees.member_first[subtree + 1])]
        for m in np.flatnonzero((kinds == EXIT) | (kinds == RUN_OUT)):
            reach = np.zeros(public.reach.shape[1])
            reach[other] = scratch.reach[scratch.range_of[m], : len(other)]
            if not reach.any():
                values = reach
            elif kinds[m] == EXIT:
                values = self.values(int(subtrees.below[first + m]), public.child_boards[board], reach)
            else:
                values = self._run_out(street, board, float(subtrees.showdown[first + m]), reach)
            scratch.value[m, : len(own)] = values[own]

    def _run_out(self, street: int, board: int, chips: float, reach: Values) -> Values:
        """[H] values of a showdown with the boards of all later streets still to come."""
        public, out = self.public, np.zeros(len(reach))
        weight = float(np.prod(public.weight[street + 1 :]))
        boards = public.last_boards[board]
        run_out(public.arrays, self.scratch[-1], self.player, boards, chips, reach, weight, out)
        return out

    def total(self) -> float:
        """Value to the player in chips, over the joint distribution of hands."""
        public = self.public
        values = self.values(0, public.root_boards, public.reach[1 - self.player])
        return float(public.reach[self.player] @ values) / public.joint_weight


def prepare(game: Game) -> PublicTree:
    """The public tree of a game with cards, to be shared by several calls; `ValueError` for a game without cards."""
    if not game.cards.dealt:
        raise ValueError(f"the game {game.name} keeps its chance in the tree: vector evaluation needs cards beside it")
    return public_tree(game.tree, game.cards.listed())


def expected_value(game: Game, strategy: Strategy, public: PublicTree | None = None) -> float:
    """Chips player 0 gets on average when both follow `strategy`, without `offset_chips`.

    `public` is the game's prepared tree, to save making it again.  `ValueError` for a game without cards.
    """
    return _Walk(public or prepare(game), strategy, 0, False).total()


def best_response_value(game: Game, strategy: Strategy, player: int, public: PublicTree | None = None) -> float:
    """Chips `player` gets on average when he plays a best response to the other's part of `strategy`.

    Without `offset_chips`; `public` is the game's prepared tree.  `ValueError` for a game without cards or another
    player than 0 or 1.
    """
    if player not in (0, 1):
        raise ValueError(f"player = {player}: it must be 0 or 1")
    return _Walk(public or prepare(game), strategy, player, True).total()
