"""Estimates the memory, network traffic and time of a run on several machines."""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster.assignment import assign_strata
from mccfr.cluster.capacity import (
    check_cluster,
    coordinator_problem,
    first_street_bytes,
    fixed_bytes,
    memory_of_machines,
    ranks_problem,
)
from mccfr.cluster.messages import RankLocation
from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.session.plan_trial import measured_play
from mccfr.runs.session.run_plan import COMMIT_BYTES_PER_SECOND, NODES_PER_SECOND, Room, planned_layout
from mccfr.solvers.game_from_config import planned_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.strata_training import interval_iterations
from mccfr.tables.table_layout import TableLayout
from storage.free_space import available_memory_bytes


def _last_interval(config: Config, game: Game, ranks: int, speed: float) -> dict[str, Any]:
    """Return the iterations and seconds of the last interval; `speed` is nodes per second of a rank.

    Both are None if the run has no limit of nodes or iterations.
    """
    limits, expected = config.run, algorithm_of(config).forecast(game)
    assert game.strata is not None
    iterations = limits.iterations
    if limits.nodes is not None and expected is not None:
        iterations = round(limits.nodes / expected.nodes)
    if iterations is None or expected is None:
        return {"last_interval_iterations": None, "last_interval_seconds": None}
    last = interval_iterations(iterations, game.strata.hottest, limits.interval)
    return {"last_interval_iterations": last, "last_interval_seconds": last * expected.nodes / (speed * ranks)}


def room_of_machines(machines: int) -> Room:
    """Return a check of memory and disk for as many machines as this one, as `space_problem`."""

    def problem(config: Config, game: Game, layout: TableLayout, directory: Path) -> str | None:
        locations = _locations(config, [available_memory_bytes()] * machines)
        owner = _assigned(config, game, layout, locations)
        return coordinator_problem(config, game, layout, directory) or ranks_problem(
            config, game, layout, locations, owner
        )

    return problem


def _locations(config: Config, memory_bytes: Sequence[float]) -> list[RankLocation]:
    """Return the locations of all ranks on machines of so many bytes of memory."""
    return [
        RankLocation(machine, f"machine {machine} of {len(memory_bytes)}", 0, available)
        for machine, available in enumerate(memory_bytes)
        for _ in range(max(1, config.run.workers))
    ]


def _assigned(
    config: Config, game: Game, layout: TableLayout, locations: Sequence[RankLocation]
) -> npt.NDArray[np.int64]:
    assert game.strata is not None
    memory = memory_of_machines(config, game, layout, locations)
    return assign_strata(game.strata.shares, [1.0] * len(locations), memory)


def plan_cluster(
    config: Config, base: Path, machines: int, memory_bytes: Sequence[float], network_bits: float, speed: float | None
) -> dict[str, Any]:
    """Return the estimated memory, network traffic and time of a run on several machines.

    base          directory that the configuration's files are relative to
    memory_bytes  memory of each machine. One number is for all machines; none means unlimited
    network_bits  bandwidth in bits per second
    speed         nodes per second of one worker; None: measured by a short training

    Raises `ValueError` for more ranks than strata, too little memory, other settings that forbid several machines, and
    the wrong number of `memory_bytes`.
    """
    check_cluster(config, machines)
    if len(memory_bytes) not in (0, 1, machines):
        raise ValueError(f"--memory gives {len(memory_bytes)} amounts: give one for all {machines} machines, or each")
    game = planned_game(config, base)
    assert game.strata is not None
    layout, workers = planned_layout(config, game), max(1, config.run.workers)
    first, fixed = first_street_bytes(layout), fixed_bytes(config, game, layout)
    memories = list(memory_bytes) * machines if len(memory_bytes) == 1 else list(memory_bytes) or [inf] * machines
    locations = _locations(config, memories)
    memory, owner = memory_of_machines(config, game, layout, locations), _assigned(config, game, layout, locations)
    problem = ranks_problem(config, game, layout, locations, owner)
    if problem is not None:
        raise ValueError(problem)
    trial = measured_play(config, base, game) if speed is None else None
    speed = speed or (NODES_PER_SECOND if trial is None else trial.nodes_per_second)
    busiest = int(memory.bytes_by_machine(owner).max())
    shares = np.bincount(memory.machine[owner], game.strata.shares)
    ranks, write_speed = machines * workers, COMMIT_BYTES_PER_SECOND[(config.tables.format, "none")]
    return {
        "machines": machines,
        "workers_per_machine": workers,
        "strata": game.strata.count,
        "table_bytes": layout.nbytes,
        "largest_stratum_bytes": int(memory.sizes.max()),
        "machine_bytes": busiest + fixed,
        "coordinator_bytes": first + fixed,
        "barrier_bytes": 2 * first * ranks,
        "barrier_seconds": 2 * first * ranks * 8 / network_bits,
        **_last_interval(config, game, ranks, speed),
        "checkpoint_bytes": busiest,
        "checkpoint_seconds": busiest / min(write_speed, network_bits / 8),
        "idle_workers": max(0, ranks - game.strata.count),
        "unevenness": float(shares.max() * machines / shares.sum()),
    }
