"""Estimates the time of a planned run, the visits of its infosets and its disk traffic."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.session.plan_trial import MeasuredPlay
from mccfr.runs.session.strata.block_slots import frame_blocks, live_specs, partition
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

_BARRIER_SECONDS = 4e-4  # a barrier of workers on one machine
_DISK_MARGIN = 1.2  # training over moving time of a proposed cycle: disks are not always as fast as measured
_HALVINGS = 100


@dataclass(frozen=True)
class Pace:
    """The speed at which a run trains.

    expected  expected nodes and visits of one iteration; None: not known
    speed     nodes per second of one worker
    disk      speeds of the disk that holds blocks out of core; None: all tables stay in memory
    """

    config: Config
    game: Game
    layout: TableLayout
    expected: CoverageEstimate | None
    speed: float
    disk: DiskSpeed | None

    @property
    def block_bytes(self) -> list[int]:
        """Return the bytes of each out-of-core block; [] without `tables.memory_budget`."""
        if self.config.tables.memory_budget is None:
            return []
        parts = partition(self.config, self.game, self.layout)
        return [parts.nbytes(block) for block in range(parts.blocks)]

    @property
    def moving_seconds(self) -> float:
        """Return the seconds of moving all blocks once to disk and once to memory, as a cycle does."""
        moved = sum(self.block_bytes)
        return 0.0 if self.disk is None else moved / self.disk.write + moved / self.disk.read

    def useful_workers(self, workers: int) -> float:
        """Return how many of `workers` workers train at a time, on average; without strata all do."""
        if self.game.strata is None:
            return workers
        shares = self.game.strata.shares
        blocks = 1 if self.config.tables.memory_budget is None else turns_of(self.config)[0]
        bounds = block_bounds(len(shares), blocks)
        ends = [_longest(shares[first:last], workers) for first, last in pairwise(bounds)]
        return float(shares.sum() / sum(ends))

    def seconds(self, nodes: float, workers: int) -> float:
        """Return the seconds in which the workers touch so many nodes, from the start of the run."""
        training = nodes / self.speed / self.useful_workers(workers)
        if self.game.strata is None or self.expected is None:
            return training
        iterations = nodes / self.expected.nodes
        barriers = interval_count(iterations, self.game.strata.hottest, self.config.run.interval)
        training += barriers * _BARRIER_SECONDS
        if self.disk is None:
            return training
        return max(training, self.moving_seconds * iterations / turns_of(self.config)[1])

    def nodes(self, seconds: float, workers: int) -> float:
        """Return the nodes that the workers touch in the first `seconds` seconds of the run."""
        least, most = 0.0, max(0.0, seconds) * self.speed * workers
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if self.seconds(middle, workers) <= seconds else (least, middle)
        return most


def _longest(loads: npt.NDArray[np.int64], workers: int) -> int:
    """Return the load of the busiest worker after a greedy assignment of strata.

    The largest stratum comes first. Each goes to the worker with the least load so far.

    loads  [N] work of each stratum
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
    """Return the fields of a plan on time, visits, checkpoints and out-of-core cycles.

    found     fields of the plan on checkpoints and the abstraction
    expected  expected nodes and visits of one iteration; None: not known
    play      speed that a short training measured, or an assumed one
    deadline  number of machines, and seconds in which the run must end (None: no deadline)
    """
    machines, budget = deadline
    speed = play.nodes_per_second
    workers, disk = machines * max(1, config.run.workers), None
    if config.tables.memory_budget is not None:
        parts = partition(config, game, layout)
        disk = disk_speed(Path()) if len(frame_blocks(config, layout, parts)) < parts.blocks else None
    pace = Pace(config, game, layout, expected, speed, disk)
    nodes = _limit(pace, workers, None if budget is None else budget - found["abstraction_seconds"])
    seconds = None if nodes is None else pace.seconds(nodes, workers)
    iterations = config.run.iterations if nodes is None or expected is None else round(nodes / expected.nodes, 3)
    if nodes is None and iterations is not None and "seconds_per_iteration" in found:
        seconds = iterations * found["seconds_per_iteration"]
    together = speed * pace.useful_workers(workers)
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
    if expected is not None and "seconds_per_iteration" in found:
        fields["seconds_per_iteration"] = expected.nodes / speed
    return fields | _deadline(pace, {**found, **fields}, budget)


def _limit(pace: Pace, workers: int, left: float | None) -> float | None:
    """Return the nodes of the run, or of its first session, at its first limit; None if it has none.

    left  seconds of training until the deadline, which limits a run without other limits; None: no deadline
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
    """Return the visits of an infoset: means by street, median, tenth percentile, and share visited.

    All but the means are upper estimates, because training makes rare infosets rarer.
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

    Tables larger than memory, or of several machines, are not compressed.
    """
    raw = config.tables.checkpoint_compression == "none" or config.tables.memory_budget is not None or machines > 1
    return 1.0 if raw else min(1.0, play.compressed)


def _checkpoints(config: Config, found: Mapping[str, Any], share: float, seconds: float | None) -> dict[str, Any]:
    """Return the number of checkpoints, their bytes and the time of the whole run; None without a limit.

    share  size of the last checkpoint's tables as a share of their largest size on disk
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
    """Return the number of permanently kept checkpoints: one per evaluation point with `evaluation.keep`.

    nodes, iterations  counts at the end of the run, whose own checkpoint does not count; None: not known, or no end
    """
    points = config.evaluation
    both = (points.at_nodes, nodes), (points.at_iterations, iterations)
    found = sum(end is None or point < end for all_points, end in both for point in set(all_points))
    return found if points.keep else 0


def _deadline(pace: Pace, plan: Mapping[str, Any], budget: float | None) -> dict[str, Any]:
    """Return the fewest workers that end in time, their machines, and the present workers' nodes by then.

    Only runs in strata have several machines. Workers do not shorten a run that is limited by `run.seconds`.

    plan    fields of the plan so far, on time and checkpoints
    budget  seconds in which the run must end; None: no deadline, and {} is returned
    """
    if budget is None or plan["seconds"] is None:
        return {}
    nodes, each, needed = plan["run_nodes"], max(1, pace.config.run.workers), None
    left, strata = budget - (plan["total_seconds"] - plan["seconds"]), pace.game.strata
    most = MOST_WORKERS if strata is None else strata.count
    if pace.config.run.seconds is None and nodes is not None and pace.seconds(nodes, most) <= left:
        least = 0
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if pace.seconds(nodes, middle) <= left else (middle, most)
        needed = most
    machines = None if needed is None else ceil(needed / each)
    possible = machines is not None and (machines == 1 or (strata is not None and machines * each <= strata.count))
    return {
        "budget_seconds": budget,
        "budget_workers": needed,
        "budget_machines": machines if possible else None,
        "budget_nodes": pace.nodes(left, plan["workers"]),
    }


def _cycles(pace: Pace, workers: int, total: float | None) -> dict[str, Any]:
    """Return length, number and bytes of out-of-core cycles; {} without `tables.memory_budget`.

    A cycle trains every block once.

    total  iterations of the run, if they are known
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
    """Return warnings on out-of-core cycles that are too short, too few or write too much.

    A length of cycles is advised only if the disk keeps up with it, and enough cycles remain.
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
