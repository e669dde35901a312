"""Merges hands that are alike up to suits into one column, so that rows can be updated in place.

A row is the regrets or strategy sums of one bucket at one decision; updates in place change it during the walk.  A row
can be updated when it is visited if its bucket occurs on one walked board only.  Boards that differ by a renaming of
suits are walked once (`mccfr.cards.suit_symmetry`), so this holds for buckets of one hand up to renamings.  On its
board a bucket may still hold several hands.  These have one strategy, and

* equal deal weights, if no renaming that takes them to each other changes the ranges;
* equal reach, since earlier play is alike too;
* equal values, against an opponent, boards and showdowns that the renaming leaves unchanged.

So the walk has one column for each bucket of a board and uses the first hand's reach and value for all.  Single hands
are listed only at terminals and where ranges and values pass from board to board.  Up to rounding this is exact if

* updates alternate: simultaneous ones need the other player's strategy from before the iteration;
* the buckets of a board are adjacent columns, and no other walked board has them;
* hands of a bucket are alike by renamings that change no range, bucket or showdown; all are compared cell by cell.

A row's sums and regrets count each of its hands, and each board that its walked board stands for.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards
from mccfr.cards.suit_symmetry import alike_hands
from mccfr.games.game import Game
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.range_sums import Ranges, make_ranges


def tree_by_rows(game: Game, public: PublicTree | None = None) -> PublicTree | None:
    """Return the game's public tree with one column for each bucket of a board, for updates in place.

    public  the game's public tree if it exists already; returned unchanged if it has such columns

    Returns None if updates in place would not be exact.  Raises `ValueError` for cards in the tree, a hand without a
    bucket, and boards or hands that are not dealt uniformly.
    """
    if public is not None and public.ranges.merged:
        return public
    public = public or public_tree(game, merge=True)
    cards = game.listed_cards()
    if not _rows_apart(public, cards):
        return None
    shared = [_shared(public.ranges, player) for player in range(2)]
    if not any(len(entries) for entries in shared):
        return public
    if not any(_all_alike(public, cards, shared, swaps) for swaps in (False, True)):
        return None
    if not public.ranges.merged:
        public = public._replace(ranges=make_ranges(cards, public.copies.times > 0, merge=True))
    return public._replace(row_weight=_row_weight(public))


def in_dtype(public: PublicTree, dtype: npt.DTypeLike) -> PublicTree:
    """Return the tree with deal weights of another dtype.

    dtype  float32 or float64

    Each player's weights are scaled by a power of two, so that the largest is from 1 to 2.  This is exact and keeps
    float32 far from its limits.  `joint_weight` is scaled too.
    """
    scale = 2.0 ** -np.floor(np.log2(public.reach.max(axis=1, keepdims=True)))
    row_weight = public.row_weight.copy()
    if row_weight.size:
        row_weight[1] *= np.repeat(scale[:, 0], np.diff(public.ranges.first[:, [0, -1]])[:, 0])
    return public._replace(
        reach=(public.reach * scale).astype(dtype),
        row_weight=row_weight.astype(dtype),
        joint_weight=public.joint_weight * float(scale.prod()),
        locks=public.locks and public.locks._replace(share=public.locks.share.astype(dtype)),
    )


def _row_weight(public: PublicTree) -> npt.NDArray[np.float64]:
    """Return [2, E] weights of E columns in their rows' strategy sums (0) and in their regrets (1).

    A column is one hand on a board, or several hands that share a bucket.  It counts its hands, times the boards that
    its board stands for; in regrets also times the deal weight.
    """
    ranges, every = public.ranges, public.ranges.every
    boards = np.tile(np.arange(ranges.first.shape[1] - 1), 2)
    columns, hands = np.diff(ranges.first).ravel(), np.diff(every.first).ravel()
    times = public.copies.times[np.repeat(boards, columns)]
    player = np.repeat(np.arange(2), np.diff(ranges.first[:, [0, -1]]).ravel())
    count = np.bincount(np.repeat(ranges.first[:, :-1].ravel(), hands) + every.column)
    return np.stack([times * count, times * count * public.reach[player, ranges.hand]])


def _board_of(ranges: Ranges, player: int) -> npt.NDArray[np.int64]:
    """Return, for each of a player's columns in their order, the index of its board.

    A column is one hand on a board, or several hands that share a bucket.
    """
    return np.repeat(np.arange(ranges.first.shape[1] - 1), np.diff(ranges.first[player]))


def _rows_apart(public: PublicTree, cards: ListedCards) -> bool:
    """Return whether no two walked boards of a street share a bucket.

    The buckets of a board must also be consecutive numbers.

    cards  ListedCards of the game of `public`
    """
    ranges, starts = public.ranges, np.cumsum([0, *(len(boards) for boards in cards.board_cards)])
    for player, first in enumerate(ranges.first):
        bucket, board = ranges.bucket[first[0] : first[-1]], _board_of(ranges, player)
        if np.any((np.diff(bucket) > 1) & (np.diff(board) == 0)):
            return False
        for street in pairwise(np.searchsorted(board, starts).tolist()):
            buckets = bucket[slice(*street)]
            new = np.flatnonzero(np.diff(board[slice(*street)], prepend=-1))
            low, high = buckets[new], buckets[np.append(new[1:], len(buckets))[: len(new)] - 1]
            order = np.argsort(low)
            if np.any(low[order][1:] <= high[order][:-1]):
                return False
    return True


def _shared(ranges: Ranges, player: int) -> npt.NDArray[np.int64]:
    """Return indices into `ranges.every` of a player's hands that share the preceding hand's bucket.

    `ranges.every` lists the single hands of each board; hands of different boards are not compared.
    """
    every, entries = ranges.every, slice(*ranges.every.first[player, [0, -1]].tolist())
    board = np.repeat(np.arange(len(every.first[player]) - 1), np.diff(every.first[player]))
    bucket = ranges.bucket[ranges.first[player][board] + every.column[entries]]
    return entries.start + 1 + np.flatnonzero((np.diff(bucket) == 0) & (np.diff(board) == 0))


def _all_alike(public: PublicTree, cards: ListedCards, shared: list[npt.NDArray[np.int64]], swaps: bool) -> bool:
    """Return whether hands that share a bucket on a board are equivalent there up to suits.

    shared  [2] × indices of each player's hands that share the preceding hand's bucket, from `_shared`
    swaps   whether exchanges of two cards of one rank also make hands equivalent
    """
    every, starts = public.ranges.every, np.cumsum([0, *(len(boards) for boards in cards.board_cards)])
    boards_of = [np.searchsorted(every.first[player], entries, "right") - 1 for player, entries in enumerate(shared)]
    boards = np.unique(np.concatenate(boards_of))
    streets = [boards[(boards >= low) & (boards < high)] - low for low, high in pairwise(starts.tolist())]
    alike = np.concatenate(alike_hands(cards, streets, swaps=swaps))
    for entries, board in zip(shared, boards_of, strict=True):
        row = np.searchsorted(boards, board)
        one, other = (alike[row, every.hand[places]] for places in (entries, entries - 1))
        if np.any(one != other):
            return False
    return True
