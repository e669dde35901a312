"""Rounds probabilities to integer shares of 255 or 65,535 by largest remainders (Hamilton's method).

Every infoset's shares sum to the total exactly.  The error of an entry is below 1/255 or 1/65,535, and a probability of
0 stays 0.
"""

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit

TOTALS = {"uint8": 255, "uint16": 65535}
"""Sum of a row by the dtype of its entries."""

_SUM_TOLERANCE = 1e-6


@njit
def _quantise_rows(probability, starts, total, out):
    """Write integer shares of `total` for all infosets to `out`; return the largest |sum - 1|.

    The sum is that of an infoset's probabilities.

    probability  [buckets, slots] float64; the actions of decision r are in slots starts[r] .. starts[r+1]-1
    starts       [decisions+1] int64
    out          [buckets, slots] uint16, filled in place
    """
    worst = 0.0
    for bucket in range(probability.shape[0]):
        for row in range(starts.shape[0] - 1):
            first, stop = starts[row], starts[row + 1]
            whole = 0.0
            for slot in range(first, stop):
                whole += probability[bucket, slot]
            worst = max(worst, abs(whole - 1.0))
            left = total
            if whole > 0.0:
                for slot in range(first, stop):
                    share = np.int64(np.floor(probability[bucket, slot] / whole * total))
                    out[bucket, slot] = share
                    left -= share
            for _ in range(left):
                chosen, largest = first, -2.0
                for slot in range(first, stop):
                    # Remainders sum to `left`, so one of them is positive and a probability of 0 is never raised.
                    remainder = probability[bucket, slot] / whole * total - out[bucket, slot]
                    if remainder > largest:
                        chosen, largest = slot, remainder
                out[bucket, chosen] += 1
    return worst


def quantise(probability: npt.NDArray[np.float64], starts: npt.NDArray[np.int64], dtype: str) -> npt.NDArray[np.uint]:
    """Return integer shares [buckets, slots] of probabilities; each infoset's sum is 255 or 65,535.

    probability  [buckets, slots] float64; an infoset is a bucket and a decision r, in slots starts[r] .. starts[r+1]-1,
                 with sum 1
    starts       [decisions+1] int64
    dtype        "uint8" or "uint16": shares of 255 or of 65,535

    Raises `ValueError` for another dtype and for a negative, infinite or NaN probability. Raises it too if the sum of
    an infoset differs from 1 by more than 1e-6.
    """
    if dtype not in TOTALS:
        raise ValueError(f"quantise = {dtype!r} is not one of {', '.join(TOTALS)}")
    if not (np.all(probability >= 0) and np.all(np.isfinite(probability))):
        raise ValueError("the strategy holds a negative or infinite probability; every row must sum to 1")
    out = np.zeros(probability.shape, np.uint16)
    worst = _quantise_rows(np.ascontiguousarray(probability, np.float64), starts, TOTALS[dtype], out)
    if worst > _SUM_TOLERANCE:
        raise ValueError(f"the strategy has a row whose probabilities are off 1 by {worst:g}; every row must sum to 1")
    return out.astype(dtype, copy=False)
