"""Which rank trains which stratum: as even as their speeds allow, and moved only where that gains something."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

LEAST_SECONDS = 5.0
"""Of training, of each rank, before its speed is believed."""
LEAST_GAIN = 1.1
"""How many times longer an interval must take as strata lie than it would, for them to be moved."""


def shared_out(shares: npt.NDArray[np.int64], speeds: Sequence[float]) -> npt.NDArray[np.int64]:
    """[N] a rank for each stratum: one of the smallest to each, so that all speeds stay known; then the largest first,
    each to where it would be done first.

    shares  [N] parts of the iterations, at least as many as ranks;  speeds  of the ranks, in any unit
    """
    speed = np.asarray(speeds, np.float64)
    order = np.argsort(-shares, kind="stable")
    smallest, rest = order[len(order) - len(speed) :], order[: len(order) - len(speed)]
    owner = np.zeros(len(shares), np.int64)
    owner[smallest] = np.argsort(-speed, kind="stable")
    load = shares[smallest][np.argsort(owner[smallest])].astype(np.float64)
    for stratum in rest:
        owner[stratum] = rank = int(np.argmin((load + shares[stratum]) / speed))
        load[rank] += shares[stratum]
    return owner


def longest(shares: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], speeds: Sequence[float]) -> float:
    """What an interval takes: the time of the rank that is done last."""
    return float((np.bincount(owner, shares, minlength=len(speeds)) / np.asarray(speeds)).max())


def moved_by_speed(
    shares: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], speeds: Sequence[float]
) -> npt.NDArray[np.int64]:
    """[N] owners by measured speeds: the same as before unless intervals take `LEAST_GAIN` times as long with them."""
    better = shared_out(shares, speeds)
    gains = longest(shares, owner, speeds) >= LEAST_GAIN * longest(shares, better, speeds)
    return better if gains else owner
