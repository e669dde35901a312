"""Tolerances below which a difference of sums counts as a rounding error and becomes 0.

Regret matching ignores scale.  If all regrets of a row should be 0, rounding errors would turn a uniform strategy into
a pure one.  Differences below a share of a reference quantity are therefore set to 0:

| share                                  | float32 | float64 | reference quantity                                      |
|----------------------------------------|---------|---------|---------------------------------------------------------|
| `CARD_REMOVAL`                         | 1e-6    | 1e-13   | total weight of the opponent's range                    |
| `GAIN`                                 | 1e-6    | 1e-12   | value of the current strategy                           |
| `SETTLED`                              |         | 1e-12   | sum of the absolute terms of a pruning catch-up         |

* `CARD_REMOVAL`: weight of a range without the hands that share a card with a given hand, if all of them do.
  Each of some thousand additions rounds by up to 1e-16 (float64) or 6e-8 (float32) of the total.
* `GAIN`: gain of an action if all actions have the same value, for example against an opponent who folds every hand.
  The tolerance is a few times the largest error observed.
* `SETTLED`: regret-based pruning skips an action in some iterations.  Afterwards it adds the regrets of all these
  iterations at once (the catch-up), as a difference of sums over them, in float64 only.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from abstraction.kernels.jit import intrinsic, types

CARD_REMOVAL = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}
GAIN = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
SETTLED = 1e-12


def _share(table: Mapping[np.dtype[Any], float], array: Any) -> Any:
    """Return (numba signature, LLVM code generator) of a function that returns a tolerance.

    table  {dtype: tolerance}
    array  numba's type of the array whose dtype selects the tolerance
    """
    share = table[np.dtype(str(array.dtype))]

    def codegen(context, builder, signature, arguments):
        return context.get_constant(types.float64, share)

    return types.float64(array), codegen


@intrinsic
def card_removal_share(typing_context, array):
    """Return the tolerance of card removal for an array's dtype: 1e-6 for float32, 1e-13 for float64.

    It is a share of the total weight of a range.  A hand that shares a card with all hands of the range should leave
    weight 0; a smaller share counts as 0.  In compiled code it is a float64 constant.
    """
    return _share(CARD_REMOVAL, array)


@intrinsic
def gain_share(typing_context, array):
    """Return the tolerance of an action's gain for an array's dtype: 1e-6 for float32, 1e-12 for float64.

    It is a share of the current strategy's value.  A smaller gain of an action over this value counts as 0. In compiled
    code it is a float64 constant.
    """
    return _share(GAIN, array)
