"""Exact values and best responses in small public trees, by NumPy instead of kernels.

A public tree is a betting tree times boards; each operation works on all boards and hands of a node at once.

The result is that of `best_response.Walk`, which needs kernels that take longer to compile than a small game to
evaluate.  Terminals take a matrix of all pairs of hands for each board, so this suits few boards and hands only.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import joint_weight
from mccfr.games.game import Game
from mccfr.solvers.public.public_tree import board_weights
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import TERMINAL

_MOST_PAIRS = 1 << 21  # pairs of hands over all last boards: 16 MB for a matrix
_MOST_PRODUCTS = 1 << 27  # pairs at all nodes: about 0.2 s
Floats = npt.NDArray[np.float64]


def is_small(game: Game) -> bool:
    """Return whether a game has few enough boards, pairs of hands and nodes for `ArrayWalk`.

    Games with chance nodes in their tree, and those that need memory to list their boards, are not small.  Raises
    `ValueError` for cards that cannot be listed.
    """
    if not game.cards.dealt or game.cards.listing_bytes:
        return False
    cards = game.listed_cards()
    pairs = len(cards.board_cards[-1]) * int((cards.reach > 0).sum(axis=1).prod())
    return pairs <= _MOST_PAIRS and pairs * game.tree.nodes <= _MOST_PRODUCTS


class WalkValues(NamedTuple):
    """Values of one player's H hands: chips, summed over the opponent's hands by their weights.

    Only hands of the opponent that share no card with the player's hand count.  Divided by their weight, a value of
    `hands` is the hand's mean chips.

    total    [2] values of the strategy and of a best response, summed over hands with the player's own weights
    hands    [H] with both players' strategies; 0 for hands outside of the range
    actions  for each requested decision [A, H] after each of its A actions, with both players' strategies from there
             on; 0 at the opponent's decisions
    """

    total: Floats
    hands: Floats
    actions: Sequence[Floats]


class ArrayWalk:
    """Computes values of a strategy and of best responses to it in a small game with listed cards.

    The constructor takes the game and the strategy; the caller must check `is_small`.  It raises `ValueError` if chance
    is not uniform, for example if boards are missing.

    H hands; N of them are in the traverser's range and M in the opponent's.  B boards of a street.  Arrays [2, ...]
    hold the value of the strategy, then that of a best response.

    joint_weight  sum of the weights of all pairs of hands; values divided by it are chips a deal
    """

    def __init__(self, game: Game, strategy: Strategy) -> None:
        self._game, self._cards = game, game.listed_cards()
        self.joint_weight = joint_weight(self._cards)
        self._hands = [np.flatnonzero(reach > 0) for reach in self._cards.reach]
        masks = self._cards.hand_masks()
        disjoint = ((masks[self._hands[0]][:, None] & masks[self._hands[1]]) == 0).astype(np.float64)
        self._disjoint = disjoint, disjoint.T
        self._live = [
            [(boards[:, None] & masks[hands]) == 0 for hands in self._hands] for boards in self._cards.board_masks
        ]
        self._weight = np.cumprod(board_weights(self._cards))
        self._probability = [strategy.probability[block].T for block in range(len(strategy.probability))]

    def responding(self) -> "ArrayWalk":
        """Return this walk itself, which computes values of the strategy and of a best response.

        Larger games have a faster walk for best responses alone (`Walk` of `best_response`).
        """
        return self

    def values(self, player: int, respond_from: int = 0) -> Floats:
        """Return [2] values of a player's strategy and of its best response, in chips times weight.

        player        the evaluated player; the opponent plays the strategy
        respond_from  first street of the best response; before it the player follows the strategy

        Each value is a sum over all pairs of hands.  Divided by `joint_weight` it is in chips a deal.
        """
        return self._root(player, respond_from, {}) @ self._cards.reach[player][self._hands[player]]

    def hand_values(self, game: Game, player: int, nodes: Sequence[int]) -> WalkValues:
        """Return `WalkValues` of a player: of its hands at the root, of its actions at decisions.

        game    the game of this walk
        player  player whose hands are valued
        nodes   first-street decisions whose action values are returned; zeros for those of the opponent
        """
        hands, first, actions = self._hands[player], dict[int, Floats](), []
        root = self._root(player, 0, first)
        value = np.zeros(self._cards.reach.shape[1])
        value[hands] = root[0]
        for node in nodes:
            children = game.tree.children(node)
            out = np.zeros((len(children), len(value)))
            if game.tree.arrays.player[node] == player:
                out[:, hands] = [first[child][0].sum(axis=0) for child in children]
            actions.append(out)
        return WalkValues(root @ self._cards.reach[player][hands], value, actions)

    def _root(self, player: int, respond_from: int, first: dict[int, Floats]) -> Floats:
        """Return [2, N] values of the player's N hands at the root: of the strategy, and of a best response.

        player        the traverser, who owns the N hands
        respond_from  first street of the best response; before it the player follows the strategy
        first         receives {node: values [2, B, N] on B boards} of the first street's nodes
        """
        reach = self._live[0][1 - player] * self._cards.reach[1 - player][self._hands[1 - player]]
        return np.asarray(self._node(0, 0, (player, respond_from), reach, first).sum(axis=1))

    def _node(self, node: int, street: int, of: tuple[int, int], reach: Floats, first: dict[int, Floats]) -> Floats:
        """Return [2, B, N] values of a node (strategy, best response) for N hands on B boards of the street.

        of     (traverser, first street of its best response); the N hands are the traverser's
        reach  [B, M] the opponent's range on each board of the street
        first  receives {node: values} of the first street's nodes
        """
        arrays, player = self._game.tree.arrays, of[0]
        if arrays.kind[node] == TERMINAL:
            values = self._terminal(node, street, player, reach)
            values_below = np.stack([values, values])
        elif int(arrays.block[node]) // 2 > street:
            parent = self._cards.board_parent[street + 1]
            later = reach[parent] * self._live[street + 1][1 - player]
            values_below = self._by_board(parent, self._node(node, street + 1, of, later, first), len(reach))
        else:
            values_below = self._decision(node, street, of, reach, first)
        if street == 0:
            first[node] = values_below
        return values_below

    @staticmethod
    def _by_board(board: npt.NDArray[np.integer], values: Floats, boards: int) -> Floats:
        """Return [V, boards, N]: values [V, B, N] of B later boards, summed by earlier board.

        board  [B] for each later board, the index (below `boards`) of the earlier board that it extends
        """
        sums = np.zeros((len(values), boards, values.shape[2]))
        for kind, out in enumerate(sums):
            np.add.at(out, board, values[kind])
        return sums

    def _decision(self, node: int, street: int, of: tuple[int, int], reach: Floats, first: dict[int, Floats]) -> Floats:
        arrays, children = self._game.tree.arrays, self._game.tree.children(node)
        block, slot, (player, respond_from) = int(arrays.block[node]), int(arrays.slot[node]), of
        acting = block % 2
        bucket = np.maximum(self._cards.bucket[street][acting][:, self._hands[acting]], 0)
        sigma = self._probability[block][slot : slot + len(children)][:, bucket]
        shares = [reach] * len(children) if acting == player else list(reach * sigma)
        pairs = zip(children, shares, strict=True)
        below = np.array([self._node(child, street, of, share, first) for child, share in pairs])
        if acting != player:
            return np.asarray(below.sum(axis=0))
        values: Floats = (sigma[:, None] * below).sum(axis=0)
        if street >= respond_from:
            values[1] = self._best(node, bucket, below[:, 1])
        return values

    def _best(self, node: int, bucket: npt.NDArray[np.int32], below: Floats) -> Floats:
        """Return [B, N] values of the best actions, from the actions' values `below` [A, B, N].

        bucket  [B, N] bucket of each hand on each board, used if locks are set by bucket and not by hand

        Hands with locked (fixed) probabilities play these, and their best free action with the remaining probability.
        """
        locks = self._game.tree.locks
        if locks is None or node not in locks.shares:
            return np.asarray(below.max(axis=0))
        player = int(self._game.tree.arrays.player[node])
        shares = locks.shares[node][:, self._hands[player]][:, None] if locks.by_hand else locks.shares[node][:, bucket]
        given = np.broadcast_to(shares >= 0, below.shape)
        fixed = np.where(given, shares, 0)
        left = np.where(given.all(axis=0), 0, 1 - fixed.sum(axis=0))
        best = np.where(given, -np.inf, below).max(axis=0)
        return np.asarray((fixed * below).sum(axis=0) + left * np.where(given.all(axis=0), 0, best))

    def _terminal(self, node: int, street: int, player: int, reach: Floats) -> Floats:
        """Return [B, N] values of a terminal node for the player's hands on all boards of its street.

        They are chips, times the board's probability, times the weight of the opponent's hands.

        street  street of the terminal, from 0
        player  the traverser, who owns the N hands
        reach   [B, M] the opponent's range on each board of the street
        """
        arrays, last = self._game.tree.arrays, len(self._live) - 1
        fixed, showdown = float(arrays.fixed[node]), float(arrays.showdown[node])
        if showdown == 0:
            chips = self._game.won_chips(fixed, 0.0)[player] * self._weight[street]
            return np.asarray(chips * self._met(street, player, reach))
        board: npt.NDArray[np.integer] = np.arange(len(self._live[last][0]))
        for later in range(last, street, -1):
            board = self._cards.board_parent[later][board]
        reach = reach[board] * self._live[last][1 - player]
        won, split, lost = (self._game.won_chips(0.0, showdown, result)[player] for result in (1, 0, -1))
        beaten = self._wins @ reach[:, :, None] if player == 0 else reach[:, None] @ self._wins
        found = split * self._met(last, player, reach)  # split is (won + lost) / 2, with rake as well
        found += (won - lost) / 2 * beaten.reshape(found.shape)
        found *= self._weight[last]
        return self._by_board(board, found[None], len(self._live[street][0]))[0]

    def _met(self, street: int, player: int, reach: Floats) -> Floats:
        """Return [B, N] total weight of the opponent's hands that share no card with the player's hand.

        street  street of the boards, from 0
        player  the traverser, who owns the N hands
        reach   [B, M] the opponent's range on each board of the street; hands that share cards with a board have 0
        """
        return np.asarray((reach @ self._disjoint[1 - player]) * self._live[street][player])

    @cached_property
    def _wins(self) -> Floats:
        """Return [B, N, M] showdowns: 1 where player 0 wins, -1 where player 1 wins, else 0.

        Player 0 has N hands, player 1 has M; B boards of the last street.  Hands that share a card have 0.
        """
        order = [self._cards.strength[:, hands] for hands in self._hands]
        pairs = self._disjoint[0] * (self._live[-1][0][:, :, None] & self._live[-1][1][:, None])
        mine, theirs = order[0][:, :, None], order[1][:, None]
        return np.asarray(pairs * np.sign(mine - theirs))
