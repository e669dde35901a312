"""Which rank trains which stratum: as even as their speeds allow, and moved only where that gains something."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

LEAST_SECONDS = 5.0
"""Of training, of each rank, before its speed is believed."""
_LEAST_STEP = 1e-9
LEAST_GAIN = 1.02
"""How many times longer an interval must take as strata lie than it would, for them to be moved."""


def shared_out(loads: npt.NDArray[np.int64], speeds: Sequence[float]) -> npt.NDArray[np.int64]:
    """[N] a rank for each stratum: one of the smallest to each, so that all speeds stay known; then the largest first,
    each to where it would be done first; then single strata change places as long as that ends intervals sooner.

    loads  [N] work of an interval, in any unit, of at least as many strata as ranks;  speeds  of the ranks, in any unit
    """
    speed = np.asarray(speeds, np.float64)
    order = np.argsort(-loads, kind="stable")
    smallest, rest = order[len(order) - len(speed) :], order[: len(order) - len(speed)]
    owner = np.zeros(len(loads), np.int64)
    owner[smallest] = np.argsort(-speed, kind="stable")
    load = loads[smallest][np.argsort(owner[smallest])].astype(np.float64)
    for stratum in rest:
        owner[stratum] = rank = int(np.argmin((load + loads[stratum]) / speed))
        load[rank] += loads[stratum]
    while _exchanged(loads, speed, owner):
        pass
    return owner


def _exchanged(loads: npt.NDArray[np.int64], speed: npt.NDArray[np.float64], owner: npt.NDArray[np.int64]) -> bool:
    """Have a stratum of the rank that is done last change places, in place, with the one with which both are done
    soonest; False where no exchange ends sooner."""
    load = np.bincount(owner, loads, minlength=len(speed))
    last = int(np.argmax(load / speed))
    mine, others = np.flatnonzero(owner == last), np.flatnonzero(owner != last)
    given = (loads[mine, None] - loads[None, others]).astype(np.float64)
    taker = owner[others][None]
    ended = np.maximum((load[last] - given) / speed[last], (load[taker] + given) / speed[taker])
    if not ended.size or ended.min() >= (1 - _LEAST_STEP) * load[last] / speed[last]:
        return False
    one, other = np.unravel_index(int(np.argmin(ended)), ended.shape)
    owner[mine[one]], owner[others[other]] = owner[others[other]], last
    return True


def longest(loads: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], speeds: Sequence[float]) -> float:
    """What an interval takes: the time of the rank that is done last."""
    return float((np.bincount(owner, loads, minlength=len(speeds)) / np.asarray(speeds)).max())


def moved_by_speed(
    loads: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], speeds: Sequence[float]
) -> npt.NDArray[np.int64]:
    """[N] owners by measured loads and speeds: as before unless intervals take `LEAST_GAIN` times as long with them."""
    better = shared_out(loads, speeds)
    gains = longest(loads, owner, speeds) >= LEAST_GAIN * longest(loads, better, speeds)
    return better if gains else owner
