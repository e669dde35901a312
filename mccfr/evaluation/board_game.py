"""Builds the small game below a given board, with all later boards, to evaluate strategies exactly.

For the full deck it uses float32, which doubles the hands per SIMD vector; rounding errors are about a millionth of
the pot.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET
from mccfr.games.game import Game
from mccfr.solvers.public.merged_rows import in_dtype
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.tables.row_tables import some_rows
from mccfr.tables.strategy import Strategy, row_starts


def board_game(
    game: Game, strategy: Strategy, street: int, board: int | Sequence[int]
) -> tuple[PublicTree, Sequence[npt.NDArray[np.floating]]]:
    """Return the public tree of one board and all that can follow it, and the strategy's tables.

    In a public tree a traversal has all hands of both players at once.

    game      a game of two players whose tree is the betting only, without the cards
    strategy  both players' strategies
    street    number of the board's street, from 0
    board     its index in the list of that street's boards if the game lists boards, else its cards in order of dealing

    There is a table for each street and player (index 2·street + player): probabilities [slots, buckets], where a slot
    is an action of a decision. They are float32 for the full deck, else float64.
    """
    public, tables = card_game(game, strategy, game.cards.after(street, board))
    if game.cards.boards is not None:
        return public, tables
    return in_dtype(public, np.float32), [table.astype(np.float32) for table in tables]


def card_game(game: Game, strategy: Strategy, cards: ListedCards) -> tuple[PublicTree, list[npt.NDArray[np.float64]]]:
    """Return the public tree of a game with other cards, and the strategy's tables for their buckets.

    In a public tree a traversal has all hands of both players at once.

    game      a game of two players whose tree is the betting only, without the cards
    strategy  both players' strategies
    cards     all hands, and some of the game's boards of all streets, such as those after one board

    There is a table for each street and player (index 2·street + player): probabilities [slots, buckets] float64, where
    a slot is an action of a decision. It has only the buckets that occur on these boards, renumbered from 0.
    """
    tables, buckets, numbers = [], [], []
    for street in range(cards.streets):
        numbered = np.empty_like(cards.bucket[street])
        for player in range(2):
            hand_buckets, block = cards.bucket[street][player], 2 * street + player
            occurring = np.unique(hand_buckets[hand_buckets != NO_BUCKET]).astype(np.int32)
            numbered[player] = np.where(hand_buckets == NO_BUCKET, NO_BUCKET, np.searchsorted(occurring, hand_buckets))
            tables.append(some_rows(strategy.blocks[block], row_starts(game, block), occurring))
            numbers.append(occurring)
        buckets.append(numbered)
    tree = game.tree
    if tree.locks is not None:
        tree = replace(tree, locks=tree.locks.renumbered(tree.arrays.block, numbers))
    renumbered = replace(game, cards=replace(cards, bucket=buckets), tree=tree)
    return public_tree(renumbered, [table.T for table in tables]), tables
