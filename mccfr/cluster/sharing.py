"""Which rank trains which stratum: as even as speeds and memory allow, and moved only where that gains something."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LEAST_SECONDS = 5.0
"""Of training, of each rank, before its speed is believed."""
_LEAST_STEP = 1e-9
LEAST_GAIN = 1.02
"""How many times longer an interval must take as strata lie than it would, for them to be moved."""


class HeldMemory(NamedTuple):
    """What machines have room for.  N strata, R ranks, M machines.

    sizes    [N] bytes of each stratum's rows
    machine  [R] of each rank
    free     [M] bytes that each machine has for rows
    """

    sizes: npt.NDArray[np.int64]
    machine: npt.NDArray[np.int64]
    free: npt.NDArray[np.float64]

    def taken(self, owner: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """[M] bytes of the strata on each machine."""
        return np.bincount(self.machine[owner], self.sizes, minlength=len(self.free)).astype(np.float64)

    def holds(self, owner: npt.NDArray[np.int64]) -> bool:
        """Whether all strata have room where they lie."""
        return bool((self.taken(owner) <= self.free).all())


def shared_out(
    loads: npt.NDArray[np.int64], speeds: Sequence[float], memory: HeldMemory | None = None
) -> npt.NDArray[np.int64]:
    """[N] a rank for each stratum: one of the smallest to each, so that all speeds stay known; then the largest first,
    each to where it would be done first; then single strata change places as long as that ends intervals sooner.

    loads   [N] work of an interval, in any unit, of at least as many strata as ranks
    speeds  of the ranks, in any unit
    memory  what it must fit into: where the above does not, the largest in bytes go first, each to where it has room
            and would be done first, and only what fits changes places.  Where none is found so, it is as without
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
    while _exchanged(loads, speed, owner, None):
        pass
    if memory is None or memory.holds(owner):
        return owner
    for roomiest in (False, True):
        fitting = _fitted(loads, speed, memory, roomiest=roomiest)
        if fitting is not None:
            while _exchanged(loads, speed, fitting, memory):
                pass
            return fitting
    return owner


def _fitted(
    loads: npt.NDArray[np.int64], speed: npt.NDArray[np.float64], memory: HeldMemory, *, roomiest: bool
) -> npt.NDArray[np.int64] | None:
    """A placement that fits, at least a stratum on each rank; None where none is found.

    roomiest  what has room in several places goes to the machine with most of it left, not to where it is done first
    """
    order = np.argsort(-memory.sizes, kind="stable")
    smallest, rest = order[len(order) - len(speed) :], order[: len(order) - len(speed)]
    ranks_on = np.bincount(memory.machine, minlength=len(memory.free))
    owner, free, load = np.zeros(len(loads), np.int64), memory.free.copy(), np.zeros(len(speed))
    owner[smallest] = np.argsort(-(free / np.maximum(ranks_on, 1))[memory.machine], kind="stable")
    for stratum in smallest:
        free[memory.machine[owner[stratum]]] -= memory.sizes[stratum]
        load[owner[stratum]] += loads[stratum]
    for stratum in rest:
        left = free[memory.machine]
        ended = (load + loads[stratum]) / speed
        ranked = np.lexsort((ended, -left)) if roomiest else np.argsort(ended, kind="stable")
        rank = next((rank for rank in ranked.tolist() if left[rank] >= memory.sizes[stratum]), None)
        if rank is None:
            return None
        owner[stratum] = rank
        load[rank] += loads[stratum]
        free[memory.machine[rank]] -= memory.sizes[stratum]
    return owner if memory.holds(owner) else None


def _exchanged(
    loads: npt.NDArray[np.int64],
    speed: npt.NDArray[np.float64],
    owner: npt.NDArray[np.int64],
    memory: HeldMemory | None,
) -> bool:
    """Have a stratum of the rank that is done last change places, in place, with the one with which both are done
    soonest, of those with which both fit; False where no exchange ends sooner."""
    load = np.bincount(owner, loads, minlength=len(speed))
    last = int(np.argmax(load / speed))
    mine, others = np.flatnonzero(owner == last), np.flatnonzero(owner != last)
    given = (loads[mine, None] - loads[None, others]).astype(np.float64)
    taker = owner[others][None]
    ended = np.maximum((load[last] - given) / speed[last], (load[taker] + given) / speed[taker])
    if memory is not None:
        left = memory.free - memory.taken(owner)
        here, there = memory.machine[last], memory.machine[taker]
        more = memory.sizes[mine, None] - memory.sizes[None, others]  # bytes that the other machine takes over
        ended[(here != there) & ((more > left[there]) | (-more > left[here]))] = np.inf
    if not ended.size or ended.min() >= (1 - _LEAST_STEP) * load[last] / speed[last]:
        return False
    one, other = np.unravel_index(int(np.argmin(ended)), ended.shape)
    owner[mine[one]], owner[others[other]] = owner[others[other]], last
    return True


def longest(loads: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], speeds: Sequence[float]) -> float:
    """What an interval takes: the time of the rank that is done last."""
    return float((np.bincount(owner, loads, minlength=len(speeds)) / np.asarray(speeds)).max())


def moved_by_speed(
    loads: npt.NDArray[np.int64],
    owner: npt.NDArray[np.int64],
    speeds: Sequence[float],
    memory: HeldMemory | None = None,
) -> npt.NDArray[np.int64]:
    """[N] owners by measured loads and speeds: as before unless intervals take `LEAST_GAIN` times as long with them."""
    better = shared_out(loads, speeds, memory)
    gains = longest(loads, owner, speeds) >= LEAST_GAIN * longest(loads, better, speeds)
    return better if gains else owner
