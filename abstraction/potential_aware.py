"""Potential-aware abstraction: describes a hand by its distribution over next-street buckets.

Source: Ganzfried & Sandholm (AAAI 2014, algorithms 1 and 2), "Potential-Aware Imperfect-Recall Abstraction with
Earth Mover's Distance in Imperfect-Information Games".  With M next cards a hand is M next-street buckets of mass 1/M
each.  The distance of two hands is the earth mover's distance of these distributions, with the distance of bucket
centres as ground distance.  The paper approximates it greedily (algorithm 2), because it is a transport problem for
each pair.

Our method uses sliced transport (Rabin et al. 2011) with chosen instead of random directions.  Bucket centres are
projected on a few directions.  On each, the exact one-dimensional distance is the L1 distance of the M sorted
projections.  To shorten points, each direction's sorted projections are divided into `VALUES` runs.  A run is replaced
by its sum, which makes the distance approximate.  A hand is then a point, and k-medians clusters such points by their
L1 distance ("emd"), with exact centres and exact pruning.  The greedy distance is no metric and allows neither.

`fill_next_rows` computes the points of hold'em's flop or turn.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.boards import STREET_CARDS, board_tables, canonical_boards, locate
from abstraction.cards import CARD_COUNT, COMBO_COUNT, combo_table
from abstraction.clustering.metric import EMD, distance_code
from abstraction.kernels.jit import nogil_allocating_njit, part_njit
from abstraction.street_features import Features, standard_hands

DIRECTIONS = 8
"""Default number of directions.  More reduce the error slowly: 16 by a tenth to a fifth."""
VALUES = 8
"""Default number of values for each direction; each is the sum of a run of the sorted projections."""


class NextStreet(NamedTuple):
    """The K buckets of the next street, by which potential-aware features describe a hand.

    The features are the hand's distribution over these buckets.
    """

    table: NDArray[Any]
    """[boards, slots] bucket of each hand"""
    equity: NDArray[np.float64]
    """[K] mean equity of each bucket"""
    hands: NDArray[np.int64]
    """[K] number of dealt hands in each bucket"""
    centres: NDArray[np.float32] | None
    """[K, D] centre of each bucket; None if the buckets were not clustered"""
    distance: str
    """distance between the centres: l2 or emd"""

    def positions(self) -> NDArray[np.float64]:
        """Return the projections [K, S] of the K bucket centres on S directions.

        If the buckets were not clustered, the result is their mean equities, [K, 1].
        """
        if self.centres is None:
            return self.equity[:, None]
        return bucket_positions(self.centres, self.hands, self.distance)


# --- positions of next-street buckets ---


def bucket_axes(centres: NDArray[Any], weights: ArrayLike | None = None, axes: int = 3) -> NDArray[np.float64]:
    """Return [K, S] float64: coordinates of bucket centres [K, D] on their first S principal axes.

    S is `axes`, or D if that is smaller.  Coordinates are relative to the mean of the centres, with weights [K]
    (None: equal).  The largest component of each axis is positive.
    """
    masses = np.ones(len(centres)) if weights is None else np.asarray(weights, dtype=np.float64)
    rows = centres.astype(np.float64)
    rows -= masses @ rows / masses.sum()
    _, vectors = np.linalg.eigh(rows.T @ (rows * masses[:, None]))
    chosen = vectors[:, ::-1][:, : min(axes, rows.shape[1])]
    largest = chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])]
    return rows @ (chosen * np.sign(largest))


def bucket_positions(
    centres: NDArray[Any], weights: ArrayLike | None = None, distance: str = "l2", directions: int = DIRECTIONS
) -> NDArray[np.float64]:
    """Return the projections of next-street bucket centres [K, D] on S directions, [K, S] float64.

    distance    "l2" or "emd"; `ValueError` for another
    weights     [K] of the centres, used for "l2"; None: equal weights
    directions  largest number S

    For "emd" the directions are S coordinates at even steps, or all D if D is smaller.  For "l2" they are spread evenly
    over a half-sphere of the first three principal axes (half-circle or line if D is smaller).  The mean distance of
    two projections over all directions then approximates the Euclidean distance up to a factor.
    """
    if distance_code(distance) == EMD:
        dimensions = centres.shape[1]
        steps = min(directions, dimensions)
        return centres[:, [(2 * i + 1) * dimensions // (2 * steps) for i in range(steps)]].astype(np.float64)
    axes = bucket_axes(centres, weights, 3)
    if axes.shape[1] == 1:
        return axes
    number = np.arange(directions)
    if axes.shape[1] == 2:
        angle = number * (math.pi / directions)
        return axes @ np.stack([np.cos(angle), np.sin(angle)])
    height = (number + 0.5) / directions
    angle = number * (math.pi * (3 - math.sqrt(5)))  # the golden angle spreads any number of directions evenly
    radius = np.sqrt(1 - np.square(height))
    return axes @ np.stack([height, radius * np.cos(angle), radius * np.sin(angle)])


# --- points of hands ---


@part_njit
def _list_next(tables, board, cards, locations):
    """List the boards that follow `board` [3 or 4 cards] by one card; return their number.

    tables     `BoardTables`, which map boards to canonical boards (one for each suit-isomorphism class)
    cards      [n + 1] int64, scratch for a board of n cards
    locations  [>= 49, 3] int64, receives each next board's new card, canonical index and suit permutation to it
    """
    board_count, count = board.shape[0], 0
    for i in range(board_count):
        cards[i] = board[i]
    for card in range(CARD_COUNT):
        if card in board:
            continue
        cards[board_count] = card
        location = tables.turn if board_count == 3 else tables.river
        index, permutation = locate(tables.choose, location, cards)
        locations[count, 0], locations[count, 1], locations[count, 2] = card, index, permutation
        count += 1
    return count


@part_njit
def _sort(values):
    """Sort a short array in place by insertion."""
    for i in range(1, values.shape[0]):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@nogil_allocating_njit
def fill_next_rows(tables, combos, boards, table, scaled, starts, out):
    """Write the point of every hand on boards [N, 3 or 4] to out [N, 1326, S·Q] float32.

    A point is the vector of features by which hands are clustered.  Each next card gives the hand a next-street bucket.
    A bucket has one coordinate on each of S directions.  For each direction, the hand's coordinates are sorted and
    divided into Q consecutive groups; the point holds the sum of each.  It is 0 if hand and board share a card.

    tables  `BoardTables`, which map boards to canonical boards (one for each suit-isomorphism class)
    combos  [1326, 2] cards of each combination (two hole cards)
    table   [next boards, 1326] next-street bucket of each hand on each canonical board
    scaled  [S, K] float32 coordinates of the K buckets, divided by the number of next cards of a hand
    starts  [Q + 1] index of each group's first coordinate, then the number of next cards of a hand
    """
    locations, cards = np.empty((CARD_COUNT, 3), np.int64), np.empty(boards.shape[1] + 1, np.int64)
    buckets = np.empty(CARD_COUNT, np.int64)
    values = np.empty(starts[-1], np.float32)
    value_count = starts.shape[0] - 1
    for index in range(boards.shape[0]):
        count = _list_next(tables, boards[index], cards, locations)
        for combo in range(COMBO_COUNT):
            next_count = 0
            for i in range(count):
                card = locations[i, 0]
                buckets[next_count] = table[locations[i, 1], tables.hole_permutation[locations[i, 2], combo]]
                next_count += card != combos[combo, 0] and card != combos[combo, 1]
            if next_count != starts[-1]:  # the hand shares a card with the board
                out[index, combo] = 0
                continue
            for direction in range(scaled.shape[0]):
                for i in range(next_count):
                    values[i] = scaled[direction, buckets[i]]
                _sort(values)
                for q in range(value_count):
                    total = np.float32(0.0)
                    for i in range(starts[q], starts[q + 1]):
                        total += values[i]
                    out[index, combo, direction * value_count + q] = total


def potential_features(street: str, following: NextStreet) -> Features:
    """Return a `Features`, which computes potential-aware features of hold'em's flop or turn.

    They describe a hand by its distribution over the next street's buckets.

    street     "flop" or "turn"
    following  the buckets of the next street, with their centres and mean equities

    Buckets made by these features are numbered by strength.  It is the sum of their centres' coordinates, each with the
    sign of the step from the weakest to the strongest next-street bucket.
    """
    cards, positions = STREET_CARDS[street], following.positions()
    count = CARD_COUNT - cards - 2
    scaled = np.ascontiguousarray((positions / count).astype(np.float32).T)
    value_count = min(VALUES, count)
    starts = np.arange(value_count + 1) * count // value_count
    tables, combos, boards = board_tables(), combo_table().astype(np.int64), canonical_boards(cards)

    def rows(first: int, last: int) -> NDArray[np.float32]:
        out = np.empty((last - first, COMBO_COUNT, value_count * len(scaled)), np.float32)
        fill_next_rows(tables, combos, boards[first:last], following.table, scaled, starts, out)
        return out

    weakest, strongest = int(following.equity.argmin()), int(following.equity.argmax())
    towards = np.repeat(np.sign(positions[strongest] - positions[weakest]), value_count)
    return Features(
        standard_hands(cards), rows, np.ascontiguousarray, lambda centres: centres.astype(np.float64) @ towards
    )
