"""What hole cards are worth against each other before the flop, from a table of all showdowns by class of hands.

`tools/preflop_equity.py` has made the table: every board is counted.  A class is a mean over the suits of its hands, so
what is found here is exact against ranges that hold all suits of a hand alike, as those of preflop buckets do.
"""

from functools import cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

from abstraction.boards import PREFLOP_CLASSES, preflop_classes
from abstraction.cards import CARD_COUNT, combo_table


@cache
def preflop_equities() -> npt.NDArray[np.float32]:
    """[169, 169] float32: what a class of hole cards wins of the pot from another one; ties are half.  Shared."""
    with as_file(files("mccfr.view").joinpath("data", "preflop_equity.npy")) as path:
        found: npt.NDArray[np.float32] = np.load(path, allow_pickle=False)
    return found


def preflop_won(other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[1326] weight [1326] of the other player's hands times what each hand wins of the pot from them.

    Hands that share a card do not meet.
    """
    classes, hole = preflop_classes().astype(np.int64), combo_table().astype(np.int64)
    held = np.zeros((CARD_COUNT, PREFLOP_CLASSES))  # weight of the hands of each class that hold a card
    for side in range(2):
        np.add.at(held, (hole[:, side], classes), other)
    opponent_weight = np.bincount(classes, other, PREFLOP_CLASSES) - held[hole[:, 0]] - held[hole[:, 1]]
    opponent_weight[np.arange(len(hole)), classes] += other  # a hand itself, which was taken away twice
    return np.asarray((opponent_weight * preflop_equities()[classes]).sum(axis=1))
