"""Potential-aware features: describes hands by their distribution over next-street buckets.

The kernel does what `abstraction.clustering.potential_aware.potential_points` does for a list of next-street buckets;
the distance is documented there.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import STREET_CARDS, board_tables, canonical_boards, locate_river, locate_turn
from abstraction.cards import CARD_COUNT, COMBO_COUNT, combo_table
from abstraction.clustering.potential_aware import VALUES, bucket_positions
from abstraction.kernels.jit import nogil_allocating_njit, part_njit
from abstraction.street_features import Features, StandardStreet


class NextStreet(NamedTuple):
    """The buckets of the next street."""

    table: NDArray[Any]
    """[boards, 1326] bucket of each slot"""
    equity: NDArray[np.float64]
    """[K] mean equity of each bucket"""
    hands: NDArray[np.int64]
    """[K] number of dealt hands in each bucket"""
    centres: NDArray[np.float32] | None
    """[K, D] centre of each bucket; None if the buckets were not clustered"""
    distance: str
    """distance between the centres: l2 or emd"""


@part_njit
def _list_next(tables, board, locations):
    """List the next boards of a board; return their number.

    Writes card, canonical index and suit permutation of each to locations [49, 3].
    """
    count = 0
    for card in range(CARD_COUNT):
        taken = False
        for held in board:
            taken |= held == card
        if taken:
            continue
        a, b, c = np.int64(board[0]), np.int64(board[1]), np.int64(board[2])
        if board.shape[0] == 3:
            index, permutation = locate_turn(tables, a, b, c, card)
        else:
            index, permutation = locate_river(tables, a, b, c, np.int64(board[3]), card)
        locations[count, 0], locations[count, 1], locations[count, 2] = card, index, permutation
        count += 1
    return count


@part_njit
def _sort(values):
    """Sort a short array in place by insertion."""
    for i in range(1, values.shape[0]):
        value = values[i]
        place = i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@nogil_allocating_njit
def fill_next_rows(tables, combos, boards, table, scaled, starts, out):
    """Write the points of all slots of boards [N, 3 or 4] to out [N, 1326, S·Q] float32.

    Slots that share a card with the board get 0.

    table   [next boards, 1326] next-street buckets
    scaled  [S, K] float32 bucket positions over the number of next boards
    starts  [Q + 1] bounds of the runs of sorted positions that are summed
    """
    locations = np.empty((CARD_COUNT, 3), np.int64)
    buckets = np.empty(CARD_COUNT, np.int64)
    values = np.empty(starts[-1], np.float32)
    kept = starts.shape[0] - 1
    for index in range(boards.shape[0]):
        count = _list_next(tables, boards[index], locations)
        for combo in range(COMBO_COUNT):
            found = 0
            for i in range(count):
                card = locations[i, 0]
                buckets[found] = table[locations[i, 1], tables.hole_permutation[locations[i, 2], combo]]
                found += card != combos[combo, 0] and card != combos[combo, 1]
            if found != starts[-1]:  # the hand shares a card with the board
                out[index, combo] = 0
                continue
            for direction in range(scaled.shape[0]):
                for i in range(found):
                    values[i] = scaled[direction, buckets[i]]
                _sort(values)
                for q in range(kept):
                    total = np.float32(0.0)
                    for i in range(starts[q], starts[q + 1]):
                        total += values[i]
                    out[index, combo, direction * kept + q] = total


def potential_features(street: str, following: NextStreet) -> Features:
    """Return potential-aware features of the flop or turn.

    A bucket's position is its centre projected on several directions, or its mean equity if it has no centre.
    """
    cards = STREET_CARDS[street]
    count = CARD_COUNT - cards - 2
    if following.centres is None:
        positions = following.equity[:, None]
    else:
        positions = bucket_positions(following.centres, following.hands, following.distance)
    scaled = np.ascontiguousarray((positions.astype(np.float64) / count).astype(np.float32).T)
    kept = min(VALUES, count)
    starts = np.arange(kept + 1) * count // kept
    tables, combos, boards = board_tables(), combo_table().astype(np.int64), canonical_boards(cards)
    dimensions = kept * len(scaled)

    def rows(first: int, last: int) -> NDArray[np.float32]:
        out = np.empty((last - first, COMBO_COUNT, dimensions), np.float32)
        fill_next_rows(tables, combos, boards[first:last], following.table, scaled, starts, out)
        return out

    weakest, strongest = int(following.equity.argmin()), int(following.equity.argmax())
    towards = np.repeat(np.sign(scaled[:, strongest] - scaled[:, weakest]), kept).astype(np.float64)
    return Features(
        StandardStreet(cards),
        dimensions,
        np.dtype(np.float32),
        rows,
        np.ascontiguousarray,
        lambda centres: centres.astype(np.float64) @ towards,
    )
