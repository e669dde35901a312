"""Equity histograms: how the river strength of a hand is distributed over its run-outs, as exact counts.

Bins cut the river strengths 0..1,980 (2·wins + ties, `abstraction.strength`) into equal widths: strength v is in bin
v·bins // 1,981.  A flop hand has 1,081 unordered run-outs (each stands for two orders of turn and river), a turn hand
46; before the flop there are 2,118,760.

For one-dimensional histograms the earth mover's distance is the sum of absolute differences of their cumulative
distributions, which is what `cumulative` gives.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import BOARD_COUNTS, board_tables, canonical_boards, used_slots
from abstraction.cards import COMBO_COUNT
from abstraction.kernels.jit import nogil_allocating_njit
from abstraction.kernels.parallel import checked_range, kernel_array, run_ranges
from abstraction.strength import (
    BLOCKED,
    BOARD_RUNOUTS,
    RUNOUTS,
    STRENGTH_LIMIT,
    checked_river,
    list_runouts,
)

DEFAULT_BINS = 50
COUNT_DTYPES = {3: np.uint16, 4: np.uint8}
"""Types of the counts by number of board cards: 1,081 and 46 run-outs."""

_CHUNKS = {3: 4, 4: 64}  # boards per call of the kernel


@nogil_allocating_njit
def fill_histograms(tables, boards, river, bin_of, start, stop, out):
    """Count river [134459, 1326] uint16 over the run-outs of boards [start, stop) of boards [N, 3 or 4].

    Adds to out [stop − start, 1326, bins] at bin_of [65536] of each strength.  Blocked run-outs are counted in
    bin_of[65535]: the caller takes them off, which spares a branch for each of two billion look-ups.
    """
    rivers, permutations = np.empty(1176, np.int64), np.empty(1176, np.int64)
    hole_permutation = tables.hole_permutation
    for index in range(start, stop):
        for runout in range(list_runouts(tables, boards, index, rivers, permutations)):
            row, permutation = rivers[runout], permutations[runout]
            for combo in range(COMBO_COUNT):
                strength = river[row, np.uint16(hole_permutation[permutation, combo])]
                out[index - start, combo, bin_of[strength]] += 1


def strength_bins(bins: int) -> NDArray[np.int64]:
    """[1981] int64: the bin of each river strength, equal widths; ValueError unless 2 <= bins <= 1,981."""
    if not 2 <= bins <= STRENGTH_LIMIT + 1:
        raise ValueError(f"bins is {bins}: 2 to {STRENGTH_LIMIT + 1} bins of river strength are supported")
    return np.arange(STRENGTH_LIMIT + 1) * bins // (STRENGTH_LIMIT + 1)


def equity_histograms(
    river: NDArray[np.uint16],
    cards: int,
    start: int = 0,
    stop: int | None = None,
    *,
    bins: int = DEFAULT_BINS,
    out: NDArray[Any] | None = None,
    workers: int = 1,
) -> NDArray[Any]:
    """Equity histograms of canonical boards [start, stop) of 3 or 4 cards: [stop − start, 1326, bins].

    `river` is all of `river_strengths`.  Counts of run-outs, uint16 on the flop (each slot sums to 1,081) and uint8 on
    the turn (46); all 0 where the slot shares a card with the board.  With 50 bins 233 MB for all flops and 1.09 GB for
    all turn boards, and less than 1 MB besides.  Overwrites `out` if it is given.  Raises ValueError for another number
    of cards, a range outside the boards, an array of another shape or dtype, bins outside 2..1,981, or workers < 1.
    """
    if cards not in COUNT_DTYPES:
        raise ValueError(f"histograms were asked for boards of {cards} cards: 3 and 4 are supported")
    river = checked_river(river)
    start, stop = checked_range(start, stop, BOARD_COUNTS[cards], "boards")
    bin_of = np.zeros(BLOCKED + 1, np.uint16)
    bin_of[: STRENGTH_LIMIT + 1] = strength_bins(bins)
    shape, dtype = (stop - start, COMBO_COUNT, bins), COUNT_DTYPES[cards]
    counts = np.empty(shape, dtype) if out is None else kernel_array(out, shape, dtype, "out")
    tables, boards = board_tables(), canonical_boards(cards)
    blocked = dtype(BOARD_RUNOUTS[cards] - RUNOUTS[cards])

    def fill(first: int, last: int) -> None:
        part = counts[first - start : last - start]
        part[:] = 0
        fill_histograms(tables, boards, river, bin_of, first, last, part)
        part[:, :, 0] -= blocked
        part[~used_slots(boards[first:last])] = 0

    for _ in run_ranges(fill, start, stop, _CHUNKS[cards], workers):
        pass
    return counts


def preflop_histograms(strengths: NDArray[np.int64], bins: int = DEFAULT_BINS) -> NDArray[np.int64]:
    """Equity histograms [169, bins] int64 of the classes of hole cards, from `preflop_strengths` [169, 1981].

    Counts of boards and combinations of the class: rows sum to 2,118,760 times 4, 6 or 12.  ValueError for another
    shape, or bins outside 2..1,981.
    """
    bin_of = strength_bins(bins)
    if strengths.ndim != 2 or strengths.shape[1] != STRENGTH_LIMIT + 1:
        raise ValueError(f"strengths have shape {strengths.shape}: counts of all 1,981 river strengths are needed")
    first = np.searchsorted(bin_of, np.arange(bins))
    return np.add.reduceat(strengths, first, axis=1)
