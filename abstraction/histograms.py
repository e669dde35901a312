"""Equity histograms: exact counts of a hand's river strength over its run-outs.

Bins divide the river strengths 0..1,980 (2·wins + ties, `abstraction.strength`) into equal widths.  Strength v is in
bin v·bins // 1,981.  A hand has 46 unordered run-outs on the turn, 1,081 on the flop and 2,118,760 preflop.

The earth mover's distance of two such histograms is the L1 distance of their cumulative distributions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import board_tables, canonical_boards, used_slots
from abstraction.cards import COMBO_COUNT
from abstraction.kernels.jit import nogil_allocating_njit
from abstraction.strength import BLOCKED, BOARD_RUNOUTS, RUNOUTS, STRENGTH_LIMIT, list_runouts

DEFAULT_BINS = 50
COUNT_DTYPES = {3: np.uint16, 4: np.uint8}
"""Dtype of the counts, by number of board cards (1,081 and 46 run-outs)."""


@nogil_allocating_njit
def fill_histograms(tables, boards, river, bin_of, start, stop, out):
    """Count the river strengths (2·wins + ties) of each hand over the run-outs of boards [start, stop).

    tables  `BoardTables`, which map boards to canonical boards (one for each suit-isomorphism class)
    boards  [N, 3 or 4] int8 canonical boards
    river   [134459, 1326] uint16 river strengths by canonical board and combination
    bin_of  [65536] bin of each strength
    out     [stop − start, 1326, bins] counts, added to in place

    Run-outs that share a card with the hand are counted in bin_of[65535], which saves a branch; the caller subtracts
    them.
    """
    rivers, permutations, cards = np.empty(1176, np.int64), np.empty(1176, np.int64), np.empty(5, np.int64)
    hole_permutation = tables.hole_permutation
    for index in range(start, stop):
        for runout in range(list_runouts(tables, boards[index], cards, rivers, permutations)):
            row, permutation = rivers[runout], permutations[runout]
            for combo in range(COMBO_COUNT):
                strength = river[row, np.uint16(hole_permutation[permutation, combo])]
                out[index - start, combo, bin_of[strength]] += 1


def strength_bins(bins: int) -> NDArray[np.int64]:
    """Return the histogram bin of each river strength 0..1,980, [1981] int64; `bins` is 2 to 1,981."""
    return np.arange(STRENGTH_LIMIT + 1) * bins // (STRENGTH_LIMIT + 1)


def equity_histograms(
    river: NDArray[np.uint16], cards: int, start: int, stop: int, *, bins: int = DEFAULT_BINS
) -> NDArray[Any]:
    """Return the equity histograms of all hands on canonical boards [start, stop) of 3 or 4 cards.

    The result is [stop − start, 1326, bins] counts of run-outs by river strength.  Each hand's counts sum to 1,081 on
    the flop (uint16) or 46 on the turn (uint8).  They are 0 if hand and board share a card.  With 50 bins all flops
    take 233 MB, all turn boards 1.09 GB, so work in ranges.

    river  [134459, 1326] uint16 river strengths (2·wins + ties) on all canonical boards of five cards
    cards  number of cards on the board, 3 or 4
    bins   number of bins, 2 to 1,981
    """
    bin_of = np.zeros(BLOCKED + 1, np.uint16)
    bin_of[: STRENGTH_LIMIT + 1] = strength_bins(bins)
    boards, dtype = canonical_boards(cards), COUNT_DTYPES[cards]
    counts = np.zeros((stop - start, COMBO_COUNT, bins), dtype)
    fill_histograms(board_tables(), boards, river, bin_of, start, stop, counts)
    counts[:, :, 0] -= dtype(BOARD_RUNOUTS[cards] - RUNOUTS[cards])
    counts[~used_slots(boards[start:stop])] = 0
    return counts


def preflop_histograms(strengths: NDArray[np.int64], bins: int = DEFAULT_BINS) -> NDArray[np.int64]:
    """Return the equity histograms of the 169 preflop classes, [169, bins] int64.

    `strengths` [169, 1981] counts how often each class has each river strength (2·wins + ties).  Each pair of a river
    board and a combination of the class counts once: rows sum to 2,118,760 times 4, 6 or 12.
    """
    return np.add.reduceat(strengths, np.searchsorted(strength_bins(bins), np.arange(bins)), axis=1)
