"""Assigns strata to ranks, the training processes of a cluster, by their speeds and free memory.

A stratum is a group of boards of the second street (flops), with the table rows that belong to them. An interval is
the training between two barriers, at which all ranks wait for the slowest. A stratum is moved only if that shortens an
interval.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LEAST_SECONDS = 5.0
"""Seconds that each rank must train before the speeds of all ranks are compared."""
_LEAST_STEP = 1e-9  # relative gain of an exchange; smaller ones are rounding errors
LEAST_GAIN = 1.02
"""Smallest speed-up of an interval, old time over new time, for which strata are moved."""


class MachineCapacity(NamedTuple):
    """Memory that each machine has for the tables of strata (groups of flops).

    N strata, R ranks (training processes), M machines.

    sizes    [N] bytes of each stratum's rows
    machine  [R] number of the machine of each rank
    free     [M] bytes available for strata on each machine
    """

    sizes: Ints
    machine: Ints
    free: Floats

    def bytes_by_machine(self, owner: Ints) -> Floats:
        """Return [M] float64 the table bytes that each machine needs.

        owner  [N] number of the training process (rank) that has each stratum, a group of flops
        """
        return np.bincount(self.machine[owner], self.sizes, minlength=len(self.free)).astype(np.float64)

    def holds(self, owner: Ints) -> bool:
        """Return True if each machine has enough memory for its groups of flops (strata).

        owner  [N] number of the training process (rank) that has each stratum
        """
        return bool((self.bytes_by_machine(owner) <= self.free).all())


def assign_strata(loads: Ints, speeds: Sequence[float], memory: MachineCapacity | None = None) -> Ints:
    """Return the rank of each stratum, [N] int64, by a greedy assignment with local search.

    Ranks are training processes, numbered from 0; strata are groups of flops with their table rows. All ranks train for
    an interval, and then wait for the slowest. Each rank first gets one of the smallest strata, so that all speeds are
    measured. The others follow, largest first, each to the rank that would finish it first. Then a stratum of the
    slowest rank is swapped with one of another rank, as long as both then finish earlier than the slowest did.

    loads   [N] work of each stratum in an interval, in any unit; at least as many strata as ranks
    speeds  [R] speed of each rank, in any unit
    memory  bytes of each stratum, and free bytes of each machine; None: no limits. If the result does not fit, strata
            are assigned by size in bytes to ranks with room, and only swaps that fit are made. If that fails too, the
            result is the one without limits, which does not fit
    """
    speed = np.asarray(speeds, np.float64)
    order = np.argsort(-loads, kind="stable")
    smallest, larger = order[len(order) - len(speed) :], order[: len(order) - len(speed)]
    owner = np.zeros(len(loads), np.int64)
    owner[smallest] = np.argsort(-speed, kind="stable")
    load = loads[smallest][np.argsort(owner[smallest])].astype(np.float64)
    for stratum in larger:
        owner[stratum] = rank = int(np.argmin((load + loads[stratum]) / speed))
        load[rank] += loads[stratum]
    while _exchange(loads, speed, owner, None):
        pass
    if memory is None or memory.holds(owner):
        return owner
    for roomiest in (False, True):
        fitting = _assign_within_memory(loads, speed, memory, roomiest=roomiest)
        if fitting is not None:
            while _exchange(loads, speed, fitting, memory):
                pass
            return fitting
    return owner


def _assign_within_memory(loads: Ints, speed: Floats, memory: MachineCapacity, *, roomiest: bool) -> Ints | None:
    """Return [N] the rank of each stratum within the limits of memory; None if no assignment is found.

    Ranks are training processes; strata are groups of flops with their table rows. Each rank first gets one of the
    smallest strata. The others follow by size in bytes, largest first, each to a rank whose machine has room for it.

    loads     [N] work of each stratum in an interval (until all ranks wait for the slowest)
    speed     [R] speed of each rank
    memory    bytes of each stratum, and free bytes of each machine
    roomiest  True: prefer the machine with the most memory left; False: prefer the rank that finishes first
    """
    order = np.argsort(-memory.sizes, kind="stable")
    smallest, larger = order[len(order) - len(speed) :], order[: len(order) - len(speed)]
    ranks_on = np.bincount(memory.machine, minlength=len(memory.free))
    owner, free, load = np.zeros(len(loads), np.int64), memory.free.copy(), np.zeros(len(speed))
    owner[smallest] = np.argsort(-(free / np.maximum(ranks_on, 1))[memory.machine], kind="stable")
    for stratum in smallest:
        free[memory.machine[owner[stratum]]] -= memory.sizes[stratum]
        load[owner[stratum]] += loads[stratum]
    for stratum in larger:
        free_of_rank = free[memory.machine]
        end_times = (load + loads[stratum]) / speed
        ranked = np.lexsort((end_times, -free_of_rank)) if roomiest else np.argsort(end_times, kind="stable")
        rank = next((rank for rank in ranked.tolist() if free_of_rank[rank] >= memory.sizes[stratum]), None)
        if rank is None:
            return None
        owner[stratum] = rank
        load[rank] += loads[stratum]
        free[memory.machine[rank]] -= memory.sizes[stratum]
    return owner if memory.holds(owner) else None


def _exchange(loads: Ints, speed: Floats, owner: Ints, memory: MachineCapacity | None) -> bool:
    """Swap a stratum of the slowest rank with one of another rank; return whether a swap was made.

    Ranks are training processes; strata are groups of flops with their table rows. Of the swaps that fit in memory, it
    takes the one after which both ranks have finished earliest. It makes none if that is no earlier than the slowest
    rank finishes now.

    loads   [N] work of each stratum in an interval
    speed   [R] speed of each rank
    owner   [N] rank of each stratum, changed in place
    memory  bytes of each stratum, and free bytes of each machine; None: no limits
    """
    load = np.bincount(owner, loads, minlength=len(speed))
    slowest = int(np.argmax(load / speed))
    own, others = np.flatnonzero(owner == slowest), np.flatnonzero(owner != slowest)
    moved_load = (loads[own, None] - loads[None, others]).astype(np.float64)
    taker = owner[others][None]
    ends = np.maximum((load[slowest] - moved_load) / speed[slowest], (load[taker] + moved_load) / speed[taker])
    if memory is not None:
        left = memory.free - memory.bytes_by_machine(owner)
        machine, target = memory.machine[slowest], memory.machine[taker]
        more = memory.sizes[own, None] - memory.sizes[None, others]  # bytes that move to the other machine
        ends[(machine != target) & ((more > left[target]) | (-more > left[machine]))] = np.inf
    if not ends.size or ends.min() >= (1 - _LEAST_STEP) * load[slowest] / speed[slowest]:
        return False
    row, column = np.unravel_index(int(np.argmin(ends)), ends.shape)
    owner[own[row]], owner[others[column]] = owner[others[column]], slowest
    return True


def interval_time(loads: Ints, owner: Ints, speeds: Sequence[float]) -> float:
    """Return the time that the slowest rank needs for its strata, in units of `loads` / `speeds`.

    Ranks are training processes; strata are groups of flops with their table rows.

    loads   [N] work of each stratum
    owner   [N] rank of each stratum
    speeds  [R] work that each rank does in a unit of time
    """
    return float((np.bincount(owner, loads, minlength=len(speeds)) / np.asarray(speeds)).max())


def reassign(loads: Ints, owner: Ints, speeds: Sequence[float], memory: MachineCapacity | None = None) -> Ints:
    """Return [N] a better rank for each stratum by measured speeds; `owner` if the gain is small.

    Ranks are training processes; strata are groups of flops with their table rows. All ranks train for an interval, and
    then wait for the slowest. A gain is small if an interval gets less than 1.02 times as fast (`LEAST_GAIN`).

    loads   [N] work of each stratum in an interval, in any unit
    owner   [N] present rank of each stratum
    speeds  [R] measured speed of each rank, in any unit
    memory  bytes of each stratum, and free bytes of each machine; None: no limits. The result exceeds them if no
            assignment that fits is found
    """
    better = assign_strata(loads, speeds, memory)
    gains = interval_time(loads, owner, speeds) >= LEAST_GAIN * interval_time(loads, better, speeds)
    return better if gains else owner
