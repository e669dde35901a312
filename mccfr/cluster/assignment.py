"""Assigns strata to ranks: as evenly as speeds and memory allow, and moved only for a gain."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LEAST_SECONDS = 5.0
"""Seconds of training on each rank before its speed is used."""
_LEAST_STEP = 1e-9
LEAST_GAIN = 1.02
"""Smallest ratio of an interval's time without to that with new owners for which strata are moved."""


class MachineCapacity(NamedTuple):
    """Memory of the machines for strata. N strata, R ranks, M machines.

    sizes    [N] bytes of each stratum's rows
    machine  [R] machine of each rank
    free     [M] bytes for rows on each machine
    """

    sizes: Ints
    machine: Ints
    free: Floats

    def bytes_by_machine(self, owner: Ints) -> Floats:
        """Return the bytes of the strata on each machine, [M] float64."""
        return np.bincount(self.machine[owner], self.sizes, minlength=len(self.free)).astype(np.float64)

    def holds(self, owner: Ints) -> bool:
        """Return whether all strata fit in memory where they are assigned."""
        return bool((self.bytes_by_machine(owner) <= self.free).all())


def shared_out(loads: Ints, speeds: Sequence[float], memory: MachineCapacity | None = None) -> Ints:
    """Return a rank for each stratum, [N] int64, by a greedy assignment with local search.

    Each rank first gets one of the smallest strata, so that all speeds are measured. The others follow, largest first,
    each to the rank that would finish it first. Then single strata are exchanged as long as the interval gets shorter.

    loads   [N] work of an interval, in any unit; at least as many strata as ranks
    speeds  [R] of the ranks, in any unit
    memory  memory to fit into. If the result does not fit, the strata are assigned by size in bytes to ranks with room,
            and only exchanges that fit are made. If that fails too, the result is the one without `memory`
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


def _fitted(loads: Ints, speed: Floats, memory: MachineCapacity, *, roomiest: bool) -> Ints | None:
    """Return an assignment that fits in memory, with a stratum on each rank; None if none is found.

    roomiest  choose the machine with the most memory left, instead of the rank that finishes first
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


def _exchanged(loads: Ints, speed: Floats, owner: Ints, memory: MachineCapacity | None) -> bool:
    """Exchange a stratum of the slowest rank with another, in place; False if no exchange is faster.

    Of the exchanges that fit in memory, it takes the one after which both ranks finish earliest.
    """
    load = np.bincount(owner, loads, minlength=len(speed))
    last = int(np.argmax(load / speed))
    mine, others = np.flatnonzero(owner == last), np.flatnonzero(owner != last)
    given = (loads[mine, None] - loads[None, others]).astype(np.float64)
    taker = owner[others][None]
    ended = np.maximum((load[last] - given) / speed[last], (load[taker] + given) / speed[taker])
    if memory is not None:
        left = memory.free - memory.bytes_by_machine(owner)
        here, there = memory.machine[last], memory.machine[taker]
        more = memory.sizes[mine, None] - memory.sizes[None, others]  # bytes that move to the other machine
        ended[(here != there) & ((more > left[there]) | (-more > left[here]))] = np.inf
    if not ended.size or ended.min() >= (1 - _LEAST_STEP) * load[last] / speed[last]:
        return False
    one, other = np.unravel_index(int(np.argmin(ended)), ended.shape)
    owner[mine[one]], owner[others[other]] = owner[others[other]], last
    return True


def longest(loads: Ints, owner: Ints, speeds: Sequence[float]) -> float:
    """Return the time of an interval, that of the slowest rank."""
    return float((np.bincount(owner, loads, minlength=len(speeds)) / np.asarray(speeds)).max())


def moved_by_speed(loads: Ints, owner: Ints, speeds: Sequence[float], memory: MachineCapacity | None = None) -> Ints:
    """Return owners [N] for measured loads and speeds; unchanged unless the gain is at least `LEAST_GAIN`."""
    better = shared_out(loads, speeds, memory)
    gains = longest(loads, owner, speeds) >= LEAST_GAIN * longest(loads, better, speeds)
    return better if gains else owner
