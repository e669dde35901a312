"""The subgame from one decision on one board, with every hand an infoset of its own.

A spot is such a subgame without ranges, which are arguments of its methods. Its hands are those of the real game, each
with a strategy of its own. Solutions and best responses are therefore exact in the real game.

If too many boards follow, as after a flop, a spot may keep the game's buckets on later streets. Hands of a
bucket then share a strategy there, while best responses still choose for each hand.
"""

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import IndexedCards
from mccfr.cards.card_lists import ListedCards, lossless_buckets
from mccfr.cards.deals import NO_BUCKET
from mccfr.games.game import Game
from mccfr.games.subgame import nodes_below, subtree
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.merged_rows import in_dtype
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION

Floats = npt.NDArray[np.float64]
Tables = list[npt.NDArray[np.floating]]
"""A strategy of a spot: by block [slots, buckets]."""

_ALL = 1_000_000  # more than the boards of any spot


class RootValues(NamedTuple):
    """Counterfactual values of a player's hands at a subgame's root, for the other's range.

    value   [H]     for each of H hands: chips won, summed over the opposing hands with their weights
    action  [A, H]  if the player acts at the root, the value after each of A actions; if the other player acts, the
            part of `value` that comes from each action, so that they sum to `value`
    """

    value: Floats
    action: Floats


class Spot:
    """The subgame that begins at a decision on a board. H hands.

    Each hand has an infoset of its own; if `merged`, only on the first street.

    Tables of a strategy are one array [slots, buckets] for each block. A block has the decisions of one street and
    player. A slot is one action of one of these decisions.

    node    the decision, in the whole game's tree
    nodes   [n] the whole game's node for each of the n nodes of the subgame
    known   the whole game's cards after the board is dealt, with their buckets on all streets
    game    the subgame with all possible hands; its cards' `reach` is the weight of each hand in the deal
    merged  True if hands share the whole game's buckets on later streets
    dtype   dtype of tables and values while the subgame is solved and evaluated
    """

    def __init__(self, game: Game, node: int, board: Any, *, merged: bool = False, dtype: str = "float32") -> None:
        """Build the subgame that begins at a decision on a board.

        game    the whole game
        node    the decision, in its tree
        board   board of the decision's street: its index in games that list boards, else its cards
        merged  True: hands share the whole game's buckets on later streets
        dtype   dtype of tables and values: "float64", or "float32" with errors of some millionths of the pot

        Raises `ValueError` for a node that is no decision, and a board of another street. Also for games that
        take rake, have three or more players, or whose cards, if any, are chance nodes of the tree.
        """
        tree = game.tree
        game.check_two_players("re-solving")
        if not game.cards.dealt:
            raise ValueError(f"{game.name} deals no cards outside of its tree: nothing of it can be re-solved")
        if game.rake is not None:
            raise ValueError(f"{game.name} takes rake: what is re-solved has to be of zero sum, so leave rake out")
        if not 0 <= node < len(tree.parent) or tree.arrays.kind[node] != DECISION:
            raise ValueError(f"node {node} is not one of the tree's decisions")
        self.node, self.street = node, int(tree.arrays.block[node]) // 2
        self.origin, self.nodes, self.merged, self.dtype = game, nodes_below(tree, node), merged, dtype
        self.known = game.cards.after(self.street, board)
        cards = _cards_from(self.known, self.street, merged=merged)
        self.game = replace(game, tree=subtree(tree, node), cards=cards, real_rules=None)

    # --- hands and ranges ---

    @cached_property
    def dealing(self) -> IndexedCards:
        """The subgame's H hands, in the order of ranges [2, H], and its boards."""
        return self.game.table_cards()

    @cached_property
    def board_factor(self) -> float:
        """Factor that corrects means over full boards, if boards that share a card with a hand count as 0.

        It is the number of full boards, divided by the number of those that share no card with a given pair of hands.
        """
        return self.dealing.full_boards(0, 0, (), _ALL, np.random.default_rng(0))[1]

    @property
    def weights(self) -> Floats:
        """[2, H] weight of each hand in the deal; 0 if it shares a card with the board."""
        return self.game.listed_cards().reach

    def ranges(self, strategy: Strategy) -> Floats:
        """Return [2, H] weights of both players' hands at the root: weight in the deal times reach.

        strategy  strategies of both players in the whole game; reach is the player's own probability of playing to the
                  root with the hand
        """
        arrays, ranges = self.origin.tree.arrays, self.weights.copy()
        path = self.origin.tree.path(self.node)
        for above, node in pairwise(path):
            street, player = divmod(int(arrays.block[above]), 2)
            chosen = node - int(arrays.first[above])
            ranges[player] *= hand_rows(self.origin, strategy, above, self.known.bucket[street][player, 0])[:, chosen]
        return ranges

    # --- strategies ---

    def own_buckets(self, block: int) -> npt.NDArray[np.int32]:
        """Return [buckets] the whole game's bucket for each bucket of the subgame's `block`.

        block  street and player as the number 2 · street + player; street 0 is the subgame's first one
        """
        street, player = divmod(block, 2)
        is_possible = self.game.listed_cards().bucket[street][player] != NO_BUCKET
        shared = self.known.bucket[self.street + street][player][is_possible]
        return _occurring(shared) if self.merged and street else shared

    def tables(self, strategy: Strategy) -> Tables:
        """Return a whole game's `strategy` at the subgame's decisions.

        The result has for each block the probabilities [slots, buckets]. A block has the decisions of one street and
        player; a slot is one action of one decision.
        """
        tree, tables = self.game.tree, Tables()
        for block in range(2 * tree.streets):
            buckets = self.own_buckets(block)
            table = np.zeros((int(tree.row_slots[block]), len(buckets)))
            for node in np.flatnonzero(tree.arrays.block == block).tolist():
                slot, rows = (
                    int(tree.arrays.slot[node]),
                    hand_rows(self.origin, strategy, int(self.nodes[node]), buckets),
                )
                table[slot : slot + rows.shape[1]] = rows.T
            tables.append(table)
        return tables

    # --- values ---

    @cached_property
    def public(self) -> PublicTree:
        """The tree of the subgame's public states: betting nodes and boards; computed on first access."""
        return public_tree(self.game)

    def best_response(self, player: int, other: Floats, tables: Tables) -> RootValues:
        """Return the root values of `player`'s best response to the other player, over all boards.

        They are counterfactual values of each hand: chips won, summed over the opposing hands with their weights.

        player  the player who responds: 0 or 1
        other   [H] weights of the other player's hands at the root
        tables  strategy in the subgame: [slots, buckets] for each block (street and player). Only the other player's
                part is used
        """
        reach: npt.NDArray[np.floating] = self.weights.astype(self.dtype)
        reach[1 - player] = other
        tree, rows = self._walk_tree, [table.astype(self.dtype, copy=False) for table in tables]
        # Unless hands share rows, `sums` chooses the kernel that trains them, which is compiled already.
        walk = Walk(tree._replace(reach=reach), rows, follow=False, sums=not self.merged)
        walk.values(player)
        values = walk.root.by_hand.value[0]
        first, stop = tree.ranges.first[player, :2]
        hands = tree.ranges.hand[first:stop]
        action = np.zeros((int(tree.trees.actions[0]), values.shape[1]))
        column = int(walk.root.member_first[0]) + int(tree.trees.child[0])
        action[:, hands] = walk.root.value[-1, column : column + len(action), : len(hands)]
        return RootValues(values[-1].astype(np.float64), action)

    @cached_property
    def _walk_tree(self) -> PublicTree:
        return in_dtype(self.public, self.dtype)


def hand_rows(game: Game, strategy: Strategy, node: int, buckets: npt.NDArray[np.int32]) -> Floats:
    """Return [H, A] the probabilities of A actions at a decision `node` for hands with `buckets`.

    strategy  strategies of both players in the whole game
    buckets   [H] bucket of each hand; hands with NO_BUCKET, which cannot be held there, get 0
    """
    arrays, live = game.tree.arrays, buckets != NO_BUCKET
    first, count = int(arrays.slot[node]), int(arrays.count[node])
    rows = np.zeros((len(buckets), count))
    source = strategy.blocks[int(arrays.block[node])]
    rows[live] = source.rows(int(arrays.row[node]), slice(first, first + count), buckets[live])[0]
    return rows


def _occurring(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the distinct values of `numbers`, small non-negative integers, in ascending order."""
    return np.flatnonzero(np.bincount(numbers)).astype(np.int32)


def _cards_from(known: ListedCards, street: int, *, merged: bool) -> ListedCards:
    """Return the cards of a subgame from a street on, with a separate bucket for each hand and board.

    known   the whole game's cards, after the subgame's first board is dealt
    street  first street of the subgame, in the whole game
    merged  True: on streets after the first, hands keep the whole game's buckets, renumbered from 0
    """
    cards, masks = known.from_street(street), known.hand_masks()
    bucket = [lossless_buckets(masks, known.reach, boards) for boards in cards.board_cards]
    for own, shared in zip(bucket[1:], cards.bucket[1:], strict=True) if merged else ():
        for player in range(2):
            live = own[player] != NO_BUCKET
            occurring = _occurring(shared[player][live])
            number = np.zeros(occurring[-1] + 1, np.int32)
            number[occurring] = np.arange(len(occurring))
            own[player][live] = number[shared[player][live]]
    buckets = np.array([numbers.max(axis=(1, 2)) + 1 for numbers in bucket], np.int64)
    return replace(cards, bucket=bucket, buckets=buckets)
