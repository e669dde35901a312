"""Equity histograms: exact counts of a hand's river strength over its run-outs.

Bins divide the river strengths 0..1,980 (2·wins + ties, `abstraction.strength`) into equal widths.  Strength v is in
bin v·bins // 1,981.  A hand has 46 unordered run-outs on the turn, 1,081 on the flop and 2,118,760 preflop.

The earth mover's distance of two such histograms is the L1 distance of their cumulative distributions.
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
"""Dtype of the counts, by number of board cards (1,081 and 46 run-outs)."""

_CHUNKS = {3: 4, 4: 64}  # boards in one call of the kernel


@nogil_allocating_njit
def fill_histograms(tables, boards, river, bin_of, start, stop, out):
    """Count river strengths over the run-outs of boards [start, stop) of boards [N, 3 or 4].

    Adds to out [stop − start, 1326, bins].  `river` is [134459, 1326] uint16, and bin_of [65536] is the bin of each
    strength.  Run-outs that share a card with the hand are counted in bin_of[65535], which saves a branch; the caller
    subtracts them.
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
    """Return the bin of each river strength, [1981] int64; `ValueError` unless 2 <= bins <= 1,981."""
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
    """Return the equity histograms of canonical boards [start, stop) of 3 or 4 cards.

    The result is [stop − start, 1326, bins] counts of run-outs.  Each slot sums to 1,081 on the flop (uint16) or 46 on
    the turn (uint8).  Slots that share a card with the board are 0.  With 50 bins all flops take 233 MB, all turn
    boards 1.09 GB. `river` is the full array of `river_strengths`.  `out`, if given, is overwritten and returned.

    Raises `ValueError` for arguments out of range, or arrays of another shape or dtype.
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
    """Return the equity histograms of the 169 preflop classes, [169, bins] int64.

    `strengths` [169, 1981] are those of `preflop_strengths`.  Counts are pairs of a board and a combination of the
    class: rows sum to 2,118,760 times 4, 6 or 12.  Raises `ValueError` for another shape, or bins outside 2..1,981.
    """
    bin_of = strength_bins(bins)
    if strengths.ndim != 2 or strengths.shape[1] != STRENGTH_LIMIT + 1:
        raise ValueError(f"strengths have shape {strengths.shape}: counts of all 1,981 river strengths are needed")
    first = np.searchsorted(bin_of, np.arange(bins))
    return np.add.reduceat(strengths, first, axis=1)
