from itertools import combinations

import numpy as np
import pytest

from abstraction.boards import canonical_boards, hole_permutations, locate_board, used_slots
from abstraction.histograms import equity_histograms, preflop_histograms
from abstraction.strength import BLOCKED, preflop_strengths, runout_sums

RUNOUTS = {3: 1081, 4: 46}


def naive_histograms(river, board, bins):
    """Return counts per bin of a board's hands, run-out by run-out.

    Run-outs of a flop are ordered, so counts are halved.
    """
    live = [card for card in range(52) if card not in board]
    counts = np.zeros((1326, bins), np.int64)
    for runout in combinations(live, 5 - len(board)):
        index, permutation = locate_board([*board, *runout])
        strength = river[index, hole_permutations()[permutation]].astype(np.int64)
        for combo in np.flatnonzero(strength != BLOCKED):
            counts[combo, strength[combo] * bins // 1981] += 1
    return counts


@pytest.mark.parametrize(("cards", "bins", "indices"), [(4, 50, (0, 7, 5000, 16431)), (4, 7, (99,)), (3, 50, (1200,))])
def test_histograms_equal_counting(river, cards, bins, indices):
    for index in indices:
        found = equity_histograms(river, cards, index, index + 1, bins=bins)
        assert np.array_equal(found[0], naive_histograms(river, canonical_boards(cards)[index].tolist(), bins))


@pytest.mark.parametrize(("cards", "dtype"), [(3, np.uint16), (4, np.uint8)])
def test_histograms_hold_every_runout_once(river, cards, dtype):
    start, stop = 300, 340
    found = equity_histograms(river, cards, start, stop)
    assert found.dtype == dtype and found.shape == (stop - start, 1326, 50)
    used = used_slots(canonical_boards(cards)[start:stop])
    assert np.array_equal(found.sum(axis=2), np.where(used, RUNOUTS[cards], 0))


def test_the_finest_histograms_give_both_sums(river):
    found = equity_histograms(river, 4, 42, 44, bins=1981).astype(np.int64)
    sums, squares = runout_sums(river, 4, 42, 44)
    used = sums >= 0
    assert np.array_equal((found @ np.arange(1981))[used], sums[used])
    assert np.array_equal((found @ np.arange(1981) ** 2)[used], squares[used])


def test_preflop_histograms_are_counts_by_bin():
    strengths = preflop_strengths(0, 300)
    for bins in (2, 50, 1981):
        expected = np.zeros((169, bins), np.int64)
        for value in range(1981):
            expected[:, value * bins // 1981] += strengths[:, value]
        assert np.array_equal(preflop_histograms(strengths, bins), expected)
