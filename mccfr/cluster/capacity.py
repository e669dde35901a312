"""Memory that a run needs on each of several machines, and checks that it is available.

Each machine trains some strata: groups of second-street boards (flops), with the table rows that belong to them. N is
the number of strata.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mccfr.cluster.assignment import MachineCapacity
from mccfr.cluster.messages import RankLocation
from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.session.run_plan import fixed_memory_bytes, space_problem
from mccfr.runs.session.strata.block_slots import first_specs, first_street_bytes
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.strata_training import FIRST_STREET, stratum_buckets
from mccfr.tables.table_layout import TableLayout

_COPIES = 3  # of the first street's tables on each rank: the rank's own copy, the order and the answer


def check_cluster(config: Config, machines: int) -> None:
    """Raise `ValueError` if a configuration cannot be trained on this number of machines.

    The key `run.strata`, the number of groups of flops, must be set. It must be at least the number of training
    processes on all machines. `tables.memory_budget` must not be set, and `cluster.machines` must allow this number of
    machines. The algorithm must accept the other settings.
    """
    least, most = config.cluster.machines
    strata, ranks = config.run.strata, machines * max(1, config.run.workers)
    if (problem := algorithm_of(config).problem()) is not None:
        raise ValueError(problem)
    if strata is None:
        raise ValueError("a cluster distributes strata, and run.strata is not set: add --set run.strata=64")
    if config.tables.memory_budget is not None:
        raise ValueError("a cluster keeps all strata in memory: leave tables.memory_budget out, or use one machine")
    if not least <= machines <= most:
        raise ValueError(f"cluster.machines allows {least} to {most} machines, not {machines}: change one of the two")
    if ranks > strata:
        raise ValueError(
            f"{machines} machines of {max(1, config.run.workers)} workers are {ranks} training processes, more than "
            f"run.strata = {strata}: take fewer machines or workers"
        )


def strata_bytes(game: Game, layout: TableLayout) -> npt.NDArray[np.int64]:
    """Return [N] int64 the bytes of each stratum's rows in all tables after the first street.

    N strata are groups of flops.
    """
    assert game.strata is not None
    stratum_bytes = np.zeros(game.strata.count, np.int64)
    for spec in layout.specs:
        if FIRST_STREET not in spec.name:
            stratum_bytes += np.diff(stratum_buckets(game, spec.name)) * (spec.nbytes // spec.shape[0])
    return stratum_bytes


def fixed_bytes(config: Config, game: Game, layout: TableLayout) -> int:
    """Return the bytes that the coordinator's machine needs besides the tables of its strata.

    The coordinator leads the training processes; the other machines need slightly less. Strata are groups of flops. The
    bytes are those of bucket tables and processes, and three copies of the first street's tables for each training
    process.
    """
    return fixed_memory_bytes(config, game, in_cluster=True) + max(
        1, config.run.workers
    ) * _COPIES * first_street_bytes(layout)


def memory_of_machines(
    config: Config, game: Game, layout: TableLayout, locations: Sequence[RankLocation]
) -> MachineCapacity:
    """Return the bytes that each machine has for table rows: those available minus `fixed_bytes`.

    The result also has the bytes of each stratum (a group of flops), and the machine of each training process.

    locations  for each training process its host, and the number and available bytes of its machine
    """
    machines = dict(sorted((location.machine, location) for location in locations)).values()
    free = np.array([location.memory_bytes for location in machines]) - fixed_bytes(config, game, layout)
    return MachineCapacity(strata_bytes(game, layout), np.array([location.machine for location in locations]), free)


def ranks_problem(
    config: Config, game: Game, layout: TableLayout, locations: Sequence[RankLocation], owner: npt.NDArray[np.int64]
) -> str | None:
    """Return a sentence on the first machine with too little memory for its strata; None if all fit.

    N strata are groups of flops with their table rows, each trained by one process (rank).

    locations  for each rank its host, and the number and available bytes of its machine
    owner      [N] rank of each stratum, as `assign_strata` returns it
    """
    memory, fixed = memory_of_machines(config, game, layout, locations), fixed_bytes(config, game, layout)
    largest = int(memory.sizes.max())
    used, names = memory.bytes_by_machine(owner), {location.machine: location.host for location in locations}
    for machine in np.flatnonzero(used > memory.free).tolist():
        more = "take more machines, or a smaller abstraction"
        if largest > memory.free.max():
            more = f"take machines of {largest + fixed:,} bytes or more, or a smaller abstraction"
        return (
            f"{names[machine]} needs {used[machine] + fixed:,.0f} bytes ({largest:,} of them for the largest stratum) "
            f"and has {memory.free[machine] + fixed:,.0f}; no other assignment of the strata fits: {more}"
        )
    return None


def coordinator_problem(
    config: Config, game: Game, layout: TableLayout, directory: Path, machines: int | None = None
) -> str | None:
    """Return a sentence if memory or disk are too small for the coordinator of a run, else None.

    The coordinator, the process that gives orders to the training processes, holds only the first street's tables.

    directory  directory of the run, existing or not
    machines   number of machines, which `check_cluster` checks; None: unknown, not checked

    Raises `ValueError` if the configuration cannot be trained on so many machines, or `tables.live_dir` does not exist.
    """
    if machines is not None:
        check_cluster(config, machines)
    return space_problem(config, game, layout, directory, live=first_specs(layout))
