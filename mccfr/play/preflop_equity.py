"""Preflop equities of hole cards against a range, from a table of all showdowns by preflop class.

The table counts every board. A preflop class contains the hands that differ only by suits, such as AKs. An entry is
the mean over the suits of both hands. So results are exact only against ranges in which all hands of a class have
equal weight, as with preflop buckets.
"""

from functools import cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

from abstraction.boards import PREFLOP_CLASSES, preflop_classes
from abstraction.cards import CARD_COUNT, combo_table


@cache
def preflop_equities() -> npt.NDArray[np.float32]:
    """Return [169, 169] float32: the share of the pot (0 to 1) that a preflop class wins against another.

    Entry [i, j] is that of class i against class j; `preflop_classes` returns each hand's class. Ties count half. All
    callers get the same array, so do not change it.
    """
    with as_file(files("mccfr.play").joinpath("data", "preflop_equity.npy")) as path:
        equity: npt.NDArray[np.float32] = np.load(path, allow_pickle=False)
    return equity


def preflop_won(other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return [1326] for each hand its weighted share of the pot when all-in preflop.

    It is the sum, over opposing hands that share no card with the hand, of weight times share of the pot (0 to 1).

    other  [1326] weight of each opposing hand
    """
    classes, hole = preflop_classes().astype(np.int64), combo_table().astype(np.int64)
    card_weight = np.zeros((CARD_COUNT, PREFLOP_CLASSES))  # weight of each class's hands that contain a card
    for side in range(2):
        np.add.at(card_weight, (hole[:, side], classes), other)
    opponent_weight = np.bincount(classes, other, PREFLOP_CLASSES) - card_weight[hole[:, 0]] - card_weight[hole[:, 1]]
    opponent_weight[np.arange(len(hole)), classes] += other  # the hand itself was subtracted twice
    return np.asarray((opponent_weight * preflop_equities()[classes]).sum(axis=1))
