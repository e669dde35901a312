"""Estimates the time of a planned run, the visits of its infosets and its disk traffic."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.session.plan_trial import MeasuredPlay
from mccfr.runs.session.strata.block_slots import first_street_bytes, frame_blocks, live_specs, partition
from mccfr.solvers.coverage_estimate import CoverageEstimate
from mccfr.solvers.out_of_core import block_bounds, turns_of
from mccfr.solvers.strata_training import interval_count
from mccfr.tables.table_layout import TableLayout
from mccfr.trees.compiled import DECISION
from storage.disk_speed import DiskSpeed, disk_speed

FEW_CYCLES = 300
"""Number of out-of-core cycles in a run below which a warning is given (docs/measured/strata.md)."""
WEAR_BYTES = 100e12
"""Bytes written by a run above which a warning is given: a sixth of the typical rating of a 1 TB disk."""
MOST_WORKERS = 1024
"""Most workers of a machine (`run.workers`)."""

_BARRIER_SECONDS = 5e-4  # a barrier of workers on one machine
_MESSAGE_SECONDS = 2e-3  # assumed time of a barrier of several machines besides the time to move its bytes
_NETWORK_BITS = 1e9  # assumed bits per second between machines
_DISK_MARGIN = 1.2  # training over moving time of a proposed cycle: disks are not always as fast as measured
_HALVINGS = 100


@dataclass(frozen=True)
class Pace:
    """Speed of a planned run's training; converts between nodes, workers and seconds.

    A run may divide the boards of the second street into strata: groups with buckets of their own. Each is trained by
    one worker at a time. Out of core, strata are trained in blocks; the tables of other blocks may be on disk.

    layout    layout of the run's tables
    expected  expected nodes and visits of one iteration; None: not known
    speed     nodes touched per second by one worker
    disk      bytes per second of the disk on which the blocks are; None: all tables stay in memory
    machines  number of machines on which the workers are; only barriers depend on it
    """

    config: Config
    game: Game
    layout: TableLayout
    expected: CoverageEstimate | None
    speed: float
    disk: DiskSpeed | None
    machines: int = 1

    @property
    def block_bytes(self) -> list[int]:
        """Return the bytes of the tables of each block of boards, which is trained in one turn.

        Returns [] without `tables.memory_budget`, because all tables are then in memory.
        """
        if self.config.tables.memory_budget is None:
            return []
        parts = partition(self.config, self.game, self.layout)
        return [parts.nbytes(block) for block in range(parts.blocks)]

    @property
    def moving_seconds(self) -> float:
        """Return the seconds to write and read all blocks on disk once; 0 if they stay in memory."""
        moved = sum(self.block_bytes)
        return 0.0 if self.disk is None else moved / self.disk.write + moved / self.disk.read

    def useful_workers(self, workers: int) -> float:
        """Return the mean number of workers that train at the same time.

        Without strata (groups of boards, each trained by one worker at a time) all do. With strata, workers with little
        work wait for the busiest one.

        workers  number of workers of all machines together
        """
        if self.game.strata is None:
            return workers
        shares = self.game.strata.shares
        blocks = 1 if self.config.tables.memory_budget is None else turns_of(self.config)[0]
        bounds = block_bounds(len(shares), blocks)
        ends = [_longest(shares[first:last], workers) for first, last in pairwise(bounds)]
        return float(shares.sum() / sum(ends))

    def barrier_bytes(self, workers: int) -> int:
        """Return the bytes that the coordinator sends to all workers and receives from them at a barrier.

        Each of `workers` workers on all machines sends the first street's tables and receives them.
        """
        return 2 * first_street_bytes(self.layout) * workers

    def barrier_seconds(self, workers: int) -> float:
        """Return the seconds that a barrier of `workers` workers takes, without waiting for the slowest."""
        if self.machines == 1:
            return _BARRIER_SECONDS
        sent = self.barrier_bytes(workers) * (self.machines - 1) / self.machines  # the coordinator is on one of them
        return _MESSAGE_SECONDS + 8 * sent / _NETWORK_BITS

    def seconds(self, nodes: float, workers: int) -> float:
        """Return the seconds in which `workers` workers touch the first `nodes` nodes of the run.

        If the boards are divided into strata, they include the barriers, at which all workers wait for the slowest. Out
        of core they are at least the time to move tables between memory and disk. Barriers and moves are left out if
        `expected` is None.
        """
        training = nodes / self.speed / self.useful_workers(workers)
        if self.game.strata is None or self.expected is None:
            return training
        iterations = nodes / self.expected.nodes
        barriers = interval_count(iterations, self.game.strata.hottest, self.config.run.interval)
        training += barriers * self.barrier_seconds(workers)
        if self.disk is None:
            return training
        return max(training, self.moving_seconds * iterations / turns_of(self.config)[1])

    def nodes(self, seconds: float, workers: int) -> float:
        """Return the nodes that `workers` workers touch in the run's first `seconds` seconds.

        It is the inverse of the method `seconds`, found by bisection.
        """
        least, most = 0.0, max(0.0, seconds) * self.speed * workers
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if self.seconds(middle, workers) <= seconds else (least, middle)
        return most


def _longest(loads: npt.NDArray[np.int64], workers: int) -> int:
    """Return the load of the busiest worker after a greedy assignment of strata to workers.

    A stratum is a group of boards, trained by one worker at a time. The largest stratum comes first. Each goes to the
    worker with the least load so far.

    loads  [N] each stratum's share of the iterations; the result has the same unit
    """
    ends = np.zeros(min(workers, len(loads)), np.int64)
    for load in np.sort(loads)[::-1].tolist():
        ends[np.argmin(ends)] += load
    return int(ends.max())


def planned_time(
    config: Config,
    game: Game,
    layout: TableLayout,
    found: Mapping[str, Any],
    expected: CoverageEstimate | None,
    play: MeasuredPlay,
    deadline: tuple[int, float | None],
) -> dict[str, Any]:
    """Return {field: value} of a plan on time, visits, checkpoints and out-of-core cycles.

    layout    layout of the run's tables
    found     fields of the plan found so far, such as `stored_bytes` and `abstraction_seconds`
    expected  expected nodes and visits of one iteration; None: not known
    play      training speed of one worker, measured by a short training or assumed
    deadline  number of machines, and seconds in which the run must end (None: no deadline)
    """
    machines, budget = deadline
    speed = play.nodes_per_second
    workers, disk = machines * max(1, config.run.workers), None
    if config.tables.memory_budget is not None:
        parts = partition(config, game, layout)
        disk = disk_speed(Path()) if len(frame_blocks(config, layout, parts)) < parts.blocks else None
    pace = Pace(config, game, layout, expected, speed, disk, machines)
    nodes = _limit(pace, workers, None if budget is None else budget - found["abstraction_seconds"])
    seconds = None if nodes is None else pace.seconds(nodes, workers)
    iterations = config.run.iterations if nodes is None or expected is None else round(nodes / expected.nodes, 3)
    if nodes is None and iterations is not None and "seconds_per_iteration" in found:
        seconds = iterations * found["seconds_per_iteration"]
    together = nodes / seconds if nodes and seconds else speed * pace.useful_workers(workers)
    kept = {"permanent_checkpoints": permanent_checkpoints(config, nodes, iterations)}
    fields = {
        "machines": machines,
        "workers": workers,
        "seconds": seconds,
        "nodes_per_second_assumed": together,
        "nodes_per_iteration": None if expected is None else expected.nodes,
        "iterations_per_second": None if expected is None else together / expected.nodes,
        "run_nodes": nodes,
        "iterations": iterations,
        **_visits(game, expected, iterations),
        **kept,
        **_checkpoints(config, {**found, **kept}, _stored_share(config, play, machines), seconds),
        **_cycles(pace, workers, iterations),
    }
    if machines > 1:
        fields |= {"barrier_bytes": pace.barrier_bytes(workers), "barrier_seconds": pace.barrier_seconds(workers)}
    if expected is not None and "seconds_per_iteration" in found:
        fields["seconds_per_iteration"] = expected.nodes / speed
    return fields | _deadline(pace, {**found, **fields}, budget)


def _limit(pace: Pace, workers: int, left: float | None) -> float | None:
    """Return the nodes touched when the run reaches the first of its limits.

    Limits are of nodes, iterations and seconds; that of seconds counts from each start or resumption. Returns None
    without any limit, and for a limit of iterations alone if the nodes of an iteration are not known.

    workers  number of workers of all machines together
    left     seconds of training until the deadline, which limits a run without other limits; None: no deadline
    """
    limits, found = pace.config.run, []
    if limits.nodes is not None:
        found.append(float(limits.nodes))
    if limits.iterations is not None and pace.expected is not None:
        found.append(limits.iterations * pace.expected.nodes)
    if limits.seconds is not None:
        found.append(pace.nodes(limits.seconds, workers))
    if not found and limits.iterations is None and left is not None:
        found.append(pace.nodes(left, workers))
    return min(found, default=None)


def _visits(game: Game, expected: CoverageEstimate | None, iterations: float | None) -> dict[str, Any]:
    """Return {field: value} on the expected visits (updates of sums) of an infoset in the run.

    They are the mean on each street, the median and the tenth percentile over all infosets, and the share of infosets
    visited at least once. All but the means are upper estimates, because training makes rarely visited infosets still
    rarer. The fields are None if the visits of an iteration, or `iterations`, are not known.

    iterations  iterations of the run
    """
    names = ("visits_per_infoset_per_street", "visits_median", "visits_tenth_percentile", "visited_share")
    if expected is None or not len(expected.visits) or iterations is None:
        return dict.fromkeys(names)
    arrays = game.tree.arrays
    decisions = np.flatnonzero(arrays.kind == DECISION)
    block = arrays.block[decisions].astype(np.int64)
    key, row = np.unique(np.stack([block, arrays.slot[decisions]]), axis=1, return_inverse=True)
    visits = iterations * np.bincount(row.reshape(-1), expected.visits[decisions])
    means = np.bincount(block // game.tree.players, iterations * expected.visits[decisions], game.tree.streets)
    infosets = np.maximum(1, game.infosets.reshape(-1, game.tree.players).sum(axis=1))
    buckets = game.buckets[key[0]]
    order = np.argsort(visits / buckets)
    share = np.cumsum(buckets[order]) / buckets.sum()
    median, tenth = ((visits / buckets)[order][np.searchsorted(share, part)] for part in (0.5, 0.1))
    visited = float(buckets @ -np.expm1(-visits / buckets) / buckets.sum())
    return dict(zip(names, ((means / infosets).tolist(), float(median), float(tenth), visited), strict=True))


def _stored_share(config: Config, play: MeasuredPlay, machines: int) -> float:
    """Return the size of the last checkpoint's tables as a share of their largest size on disk.

    It is 1 if tables are not compressed: without compression in the configuration, out of core, or on several machines.

    play  result of a short training, with the estimated share
    """
    raw = config.tables.checkpoint_compression == "none" or config.tables.memory_budget is not None or machines > 1
    return 1.0 if raw else min(1.0, play.compressed)


def _checkpoints(config: Config, found: Mapping[str, Any], share: float, seconds: float | None) -> dict[str, Any]:
    """Return {field: value} of a plan on checkpoints: number, bytes, and time of the whole run.

    found    fields of the plan so far
    share    size of the last checkpoint's tables as a share of their largest size on disk
    seconds  seconds of training; None: no limit, or not known; all these fields are then None
    """
    if seconds is None:
        return dict.fromkeys(("checkpoints", "checkpoint_traffic_bytes", "left_bytes", "total_seconds"))
    permanent = found["permanent_checkpoints"]
    count = int(seconds / config.run.checkpoint_seconds) + 1 + permanent
    kept = min(count, config.run.keep_checkpoints + permanent)
    return {
        "checkpoints": count,
        "checkpoint_traffic_bytes": count * found["stored_bytes"],
        "left_bytes": kept * (int(share * found["stored_bytes"]) + found["description_bytes"]),
        "total_seconds": found["abstraction_seconds"] + seconds + count * found["checkpoint_pause_seconds"],
    }


def permanent_checkpoints(config: Config, nodes: float | None = None, iterations: float | None = None) -> int:
    """Return the number of checkpoints that a run keeps for good; 0 without `evaluation.keep`.

    With that key it keeps one at each count in `evaluation.at_nodes` and `evaluation.at_iterations` before the run's
    end.

    nodes, iterations  counts at the end of the run; None: not known or no end, so the run is taken to reach every such
                       count
    """
    points = config.evaluation
    both = (points.at_nodes, nodes), (points.at_iterations, iterations)
    found = sum(end is None or point < end for all_points, end in both for point in set(all_points))
    return found if points.keep else 0


def _deadline(pace: Pace, plan: Mapping[str, Any], budget: float | None) -> dict[str, Any]:
    """Return {field: value} on a deadline: workers and machines that meet it, nodes touched by then.

    `budget_workers` is the fewest workers of one machine that end in time. `budget_machines` is the fewest machines
    that do, each of as many workers as planned. Both are None if no usable number is enough, and for a run that is
    limited by `run.seconds`. `budget_nodes` are the nodes that the planned workers touch until the deadline. Only runs
    in strata can use several machines.

    plan    fields of the plan so far, on time and checkpoints
    budget  seconds in which the run must end; None: no deadline

    Returns {} without a deadline, or if the training time is not known.
    """
    if budget is None or plan["seconds"] is None:
        return {}
    nodes, config, strata = plan["run_nodes"], pace.config, pace.game.strata
    left, each = budget - (plan["total_seconds"] - plan["seconds"]), max(1, config.run.workers)
    workers = range(1, 1 + (MOST_WORKERS if strata is None else strata.count))
    machines = range(1, 2)
    if strata is not None and config.tables.memory_budget is None:
        machines = range(1, 1 + min(strata.count // each, config.cluster.machines[1]))

    def ends_in_time(workers: int, machines: int) -> bool:
        return replace(pace, machines=machines).seconds(nodes, workers) <= left

    if config.run.seconds is not None or nodes is None:
        workers = machines = range(0)
    return {
        "budget_seconds": budget,
        "budget_workers": next((count for count in workers if ends_in_time(count, 1)), None),
        "budget_machines": next((count for count in machines if ends_in_time(count * each, count)), None),
        "budget_nodes": pace.nodes(left, plan["workers"]),
    }


def _cycles(pace: Pace, workers: int, total: float | None) -> dict[str, Any]:
    """Return {field: value} on out-of-core cycles; {} without `tables.memory_budget`.

    Out of core, blocks of boards are trained in turns, so that other blocks' tables may be on disk. A cycle trains
    every block once.

    workers  workers of all machines
    total    iterations of the run; None: not known
    """
    sizes = pace.block_bytes
    if not sizes:
        return {}
    assert pace.expected is not None  # algorithms that train in strata have an estimate
    (blocks, iterations), moving, disk = turns_of(pace.config), pace.moving_seconds, pace.disk
    trained = iterations * pace.expected.nodes / (pace.speed * pace.useful_workers(workers))
    cycles = None if total is None else total / iterations
    proposed = None if disk is None else _two_digits(_DISK_MARGIN * moving * iterations / trained)
    found: dict[str, Any] = {
        "blocks": blocks,
        "largest_block_bytes": max(sizes),
        "resident_bytes": sum(spec.nbytes for spec in live_specs(pace.config, pace.game, pace.layout)),
        "cycle_iterations": iterations,
        "cycle_training_seconds": trained,
        "cycle_moving_seconds": moving,
        "cycle_seconds": max(trained, moving),
        "proposed_cycle_iterations": proposed,
        "cycles": cycles,
        "written_bytes": None if cycles is None else sum(sizes) * (1 if disk is None else ceil(cycles)),
        "disk_write_bytes_per_second": None if disk is None else disk.write,
        "disk_read_bytes_per_second": None if disk is None else disk.read,
    }
    return {**found, "turn_warnings": _turn_warnings(found)}


def _two_digits(number: float) -> int:
    """Return a number rounded up to two significant digits; below 10, to a whole number."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return ceil(number / unit) * unit


def _turn_warnings(plan: Mapping[str, Any]) -> list[str]:
    """Return sentences on out-of-core cycles that are too short, too few, or write too many bytes.

    A cycle trains every block of boards once, with its tables in memory.

    plan  fields of `_cycles`

    Each sentence advises a change: a length of cycles, more iterations in all, or a larger `tables.memory_budget`.
    """
    warnings = []
    training, moving, proposed = (
        plan[key] for key in ("cycle_training_seconds", "cycle_moving_seconds", "proposed_cycle_iterations")
    )
    cycles, length = plan["cycles"], plan["cycle_iterations"]
    longest = None if cycles is None else int(cycles * length / FEW_CYCLES)  # cycle that leaves enough of them
    if training is not None and training < moving:
        few = (
            ""
            if longest is None or proposed <= longest
            else f", and {FEW_CYCLES * proposed:,} iterations in all are enough"
        )
        warnings.append(
            f"training waits for the disk: a cycle trains for {training:,.3g} seconds and moves blocks for "
            f"{moving:,.3g}; with run.cycle_iterations = {proposed} training takes longer{few}"
        )
    if longest is not None and cycles < FEW_CYCLES:
        lower = longest > 0 and (proposed is None or longest >= proposed)
        advice = f"set run.cycle_iterations = {longest}" if lower else f"train for {FEW_CYCLES * length:,} iterations"
        warnings.append(
            f"{cycles:,.0f} cycles are few: below {FEW_CYCLES} the order of blocks may show in strategies; {advice}"
        )
    if plan["written_bytes"] is not None and plan["written_bytes"] > WEAR_BYTES:
        calmer = ceil(length * plan["written_bytes"] / WEAR_BYTES)
        fits = longest is not None and calmer <= longest
        warnings.append(
            f"{plan['written_bytes'] / 1e12:,.0f} TB will be written, and a disk of 1 TB is often rated for 600: "
            + (f"set run.cycle_iterations = {calmer}" if fits else "raise tables.memory_budget")
        )
    return warnings
