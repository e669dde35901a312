"""A board that lies, with all that may follow it, as a small game of its own for the walk of exact evaluation.

Of the whole deck it is walked in float32, 16 hands or ranges a vector instead of 8: rounding is a millionth of the pot.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.listed import ListedCards
from mccfr.games.game import Game
from mccfr.solvers.public.merged_rows import in_dtype
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.tables.row_tables import some_rows
from mccfr.tables.strategy import Strategy, row_starts

_BLOCKS = 8  # kernels are compiled anew for each number of tables


def board_game(
    game: Game, strategy: Strategy, street: int, board: int | Sequence[int]
) -> tuple[PublicTree, Sequence[npt.NDArray[np.floating]]]:
    """As `card_game`, below a board; of the whole deck in float32."""
    public, tables = card_game(game, strategy, game.cards.after(street, board))
    if game.cards.boards is not None:
        return public, tables
    return in_dtype(public, np.float32), [table.astype(np.float32) for table in tables]


def card_game(game: Game, strategy: Strategy, cards: ListedCards) -> tuple[PublicTree, list[npt.NDArray[np.float64]]]:
    """The public tree with some of a game's cards, and the strategy's tables [slots, buckets] of the buckets there."""
    cards, tables, numbers = known_rows(game, strategy, cards)
    tree = game.tree
    if tree.locks is not None:
        tree = replace(tree, locks=tree.locks.renumbered(tree.arrays.block, numbers))
    return public_tree(replace(game, cards=cards, tree=tree), [table.T for table in tables]), tables


def known_rows(
    game: Game, strategy: Strategy, cards: ListedCards
) -> tuple[ListedCards, list[npt.NDArray[np.float64]], list[npt.NDArray[np.int32]]]:
    """The cards with the buckets that occur numbered from 0, by block the strategy's rows [slots, n] of these, and the
    buckets themselves [n]."""
    tables, buckets, numbers = [], [], []
    for here in range(cards.streets):
        numbered = np.empty_like(cards.bucket[here])
        for player in range(2):
            held, block = cards.bucket[here][player], 2 * here + player
            known = np.unique(held[held != NO_BUCKET]).astype(np.int32)
            numbered[player] = np.where(held == NO_BUCKET, NO_BUCKET, np.searchsorted(known, held))
            tables.append(some_rows(strategy.blocks[block], row_starts(game, block), known, _BLOCKS))
            numbers.append(known)
        buckets.append(numbered)
    return replace(cards, bucket=buckets), tables, numbers
