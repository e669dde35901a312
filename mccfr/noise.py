"""What is taken for rounding: differences too small to mean anything, and where they come from.

Regrets know no scale.  Where a difference ought to be 0, what rounding leaves of it would be the only preference of its
row, and turn uniform play into pure play.  So differences below a share of what they are the difference of are 0:

| share                                  | float32 | float64 | of                                                      |
|----------------------------------------|---------|---------|---------------------------------------------------------|
| `CARD_REMOVAL`                         | 1e-6    | 1e-13   | the total of the range that a hand meets                |
| `GAIN`                                 | 1e-6    | 1e-12   | the value of the strategy that an action gains over     |
| `SETTLED`                              |         | 1e-12   | the terms, their sizes added, of a settlement's sums    |

* `CARD_REMOVAL`: a range less the hands that share a card, where those are all of it.  Some thousand additions leave
  1e-16 (float64) or 6e-8 (float32) of the total each time they round, of either sign.
* `GAIN`: all that may follow is worth the same, as where the opponent folds every hand.  Values have been through card
  removal and a street or more of sums; a few times what was seen to remain.
* `SETTLED`: regret-based pruning takes differences of sums over a whole interval of iterations, in float64 only.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from abstraction.kernels.jit import intrinsic, types

CARD_REMOVAL = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}
GAIN = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
SETTLED = 1e-12


def _share(table: Mapping[np.dtype[Any], float], array: Any) -> Any:
    """Type and code of an intrinsic that gives the entry of an array's dtype as a float64 constant."""
    share = table[np.dtype(str(array.dtype))]

    def codegen(context, builder, signature, arguments):
        return context.get_constant(types.float64, share)

    return types.float64(array), codegen


@intrinsic
def card_removal_share(typing_context, array):
    """`CARD_REMOVAL` for the dtype of an array, known when a kernel is compiled."""
    return _share(CARD_REMOVAL, array)


@intrinsic
def gain_share(typing_context, array):
    """`GAIN` for the dtype of an array, known when a kernel is compiled."""
    return _share(GAIN, array)
