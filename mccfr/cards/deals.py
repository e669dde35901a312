"""Draws training deals of games with arrays of all hands and boards.

A worker is one of the processes that train, given by its number. Its deal of iteration k is a pure function of
(seed, worker, k). So results do not depend on the batch size, and a checkpoint stores only the iteration count.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit, part_njit
from mccfr.common.rng import DEALS, below, seed_stream, uniform

NO_BUCKET = -1
"""Bucket of a hand that is impossible on a board."""
MAX_TRIES = 1_000_000
"""Number of rejected pairs of hands after which the deal kernels give up."""


class DealArrays(NamedTuple):
    """Arrays from which compiled code draws deals. H hands, S streets, T boards of all streets.

    accept      [2, H] float64   alias method, by player: probability of keeping the drawn hand
    alias       [2, H] int32     alias method, by player: hand taken otherwise
    hand_mask   [H] uint64       cards of each hand as bits
    board_mask  [T] uint64       cards of each board as bits
    board_child [T] int64        index of the first board of the next street that continues each board; -1: last street
    children    [S] int64        number of boards of street s that continue one of street s-1; children[0]: first boards
    bucket      [T, 2, H] int32  bucket of a player's hand on a board; -1 if impossible
    strength    [B_last, H] int32  showdown rank of each hand on each board of the last street, higher wins
    last_first  [1] int64        index of the first board of the last street
    """

    accept: npt.NDArray[np.float64]
    alias: npt.NDArray[np.int32]
    hand_mask: npt.NDArray[np.uint64]
    board_mask: npt.NDArray[np.uint64]
    board_child: npt.NDArray[np.int64]
    children: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int32]
    last_first: npt.NDArray[np.int64]


class Deals(NamedTuple):
    """Batch of K deals as training reads them: buckets and showdowns. S streets, P players.

    bucket    [K, P·S] int32  bucket of each hand, column P·street + player
    result    [K] float64     showdown of two players: +1 if player 0 wins, -1 if player 1 wins, 0 for a tie
    strength  [K, P] int32    showdown strength of each hand, higher wins; only for three or more players, else [0, 2]
    """

    bucket: npt.NDArray[np.int32]
    result: npt.NDArray[np.float64]
    strength: npt.NDArray[np.int32]


def card_masks(cards: npt.NDArray[np.int16]) -> npt.NDArray[np.uint64]:
    """Return the cards [N, n] of N hands or boards as bit masks [N] uint64; card -1 means no card."""
    bits = np.where(cards >= 0, np.uint64(1) << np.maximum(cards, 0).astype(np.uint64), np.uint64(0))
    return np.bitwise_or.reduce(bits, axis=1, initial=np.uint64(0)).astype(np.uint64)


def alias_table(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return accept [H] and alias [H] of the alias method, to draw an index in proportion to weights [H].

    An index drawn uniformly is kept with probability `accept`, otherwise replaced by `alias` (Vose 1991).
    """
    count = len(weights)
    scaled = weights * (count / weights.sum())
    accept, alias = np.ones(count), np.arange(count, dtype=np.int32)
    small = [i for i in range(count) if scaled[i] < 1]
    large = [i for i in range(count) if scaled[i] >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        accept[low], alias[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        if scaled[high] < 1:
            small.append(large.pop())
    for i in small:  # rounding can leave values just below 1; an index of weight 0 must never be drawn
        if weights[i] == 0:
            accept[i], alias[i] = 0, int(np.argmax(weights))
    return accept, alias


def new_deals(count: int, streets: int, players: int = 2) -> Deals:
    """Allocate a batch of `count` deals: arrays of zeros for so many streets and players."""
    bucket, strengths = np.zeros((count, players * streets), np.int32), count if players > 2 else 0
    return Deals(bucket, np.zeros(count), np.zeros((strengths, players), np.int32))


@part_njit
def draw_alias(state, accept, alias):
    """Draw an index (int64) in proportion to its weight by the alias method.

    state          [4] uint64 random state, advanced in place
    accept, alias  [n] from `alias_table`
    """
    index = below(state, accept.shape[0])
    return np.int64(alias[index]) if uniform(state) >= accept[index] else index


@part_njit
def board_below(arrays, street, above, dead, state):
    """Draw a board of `street` that continues board `above`, uniformly among those without dead cards.

    arrays  `DealArrays`, with the boards of all streets
    above   index of a board of the street before; not used on street 0
    dead    uint64 bit mask of the players' cards
    state   [4] uint64 random state, advanced in place

    If only one board continues `above`, it is returned without a check for dead cards.
    """
    first = arrays.board_child[above] if street > 0 else np.int64(0)
    board = first
    if arrays.children[street] > 1:
        board = first + below(state, arrays.children[street])
        while arrays.board_mask[board] & dead != 0:
            board = first + below(state, arrays.children[street])
    return board


@part_njit
def note_buckets(arrays, street, board, hand_0, hand_1, bucket):
    """Write both players' buckets on a street's board to `bucket` [2·S], entries 2·street + player.

    arrays          `DealArrays`
    board           index of the board
    hand_0, hand_1  indices of the players' hands
    """
    bucket[2 * street] = arrays.bucket[board, 0, hand_0]
    bucket[2 * street + 1] = arrays.bucket[board, 1, hand_1]


@part_njit
def showdown(arrays, board, hand_0, hand_1):
    """Return +1.0 if player 0 wins on a board of the last street, -1.0 if player 1 does, 0.0 for a tie.

    arrays          `DealArrays`
    board           index of the board
    hand_0, hand_1  indices of the players' hands
    """
    last = board - arrays.last_first[0]
    difference = arrays.strength[last, hand_0] - arrays.strength[last, hand_1]
    return np.float64((difference > 0) - (difference < 0))


@nogil_njit
def draw_deals(arrays, seed, worker, first_iteration, count, state, deals):
    """Draw the deals of iterations first_iteration .. +count-1 into `deals` [K >= count], in place.

    arrays        `DealArrays`
    seed, worker  choose the random stream, together with the iteration
    state         [4] uint64, scratch for random numbers

    Pairs of hands that share a card are rejected, so that disjoint pairs have probability proportional to the product
    of their range weights. Each street's board is uniform among those disjoint from both hands. Returns False if one
    deal has 1,000,000 rejected pairs, else True.
    """
    for k in range(count):
        seed_stream(state, seed, worker, np.uint64(DEALS), np.uint64(first_iteration + k))
        tries = 0
        while True:
            hand_0 = draw_alias(state, arrays.accept[0], arrays.alias[0])
            hand_1 = draw_alias(state, arrays.accept[1], arrays.alias[1])
            if arrays.hand_mask[hand_0] & arrays.hand_mask[hand_1] == 0:
                break
            tries += 1
            if tries == MAX_TRIES:
                return False
        dead = arrays.hand_mask[hand_0] | arrays.hand_mask[hand_1]
        board = np.int64(0)
        for street in range(arrays.children.shape[0]):
            board = board_below(arrays, street, board, dead, state)
            note_buckets(arrays, street, board, hand_0, hand_1, deals.bucket[k])
        deals.result[k] = showdown(arrays, board, hand_0, hand_1)
    return True


class ListedDealer:
    """Draws training deals for one process, if all hands and boards of a game are in arrays.

    The deal of an iteration depends on (seed, number of the process, iteration) alone.
    """

    def __init__(self, arrays: DealArrays, seed: int, worker: int) -> None:
        self._arrays = arrays
        self._seed, self._worker = np.uint64(seed), np.uint64(worker)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the deals of iterations first .. first+count-1 to entries 0 .. count-1 of `deals`.

        Raises `ValueError` after 1,000,000 pairs of hands in a row that share a card.
        """
        if not draw_deals(self._arrays, self._seed, self._worker, first, count, self._state, deals):
            raise ValueError("almost no two hands of the ranges can be dealt together: no deal was found")
