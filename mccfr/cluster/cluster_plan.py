"""Estimates the memory of a run on several machines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mccfr.cluster.assignment import assign_strata
from mccfr.cluster.capacity import (
    check_cluster,
    coordinator_problem,
    fixed_bytes,
    memory_of_machines,
    ranks_problem,
)
from mccfr.cluster.messages import RankLocation
from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.session.strata.block_slots import first_street_bytes
from mccfr.tables.table_layout import TableLayout
from storage.free_space import available_memory_bytes


class ClusterSpace:
    """Callable that checks the memory and disk of several machines for a run.

    figures  {name: number} of estimates for `mccfr plan`, set by each call. `machine_bytes`: memory of the fullest
             machine. `coordinator_bytes`: memory of the process that leads the others, with `fixed_bytes`.
             `unevenness`: most work of a machine divided by the mean of all machines
    """

    def __init__(self, config: Config, machines: int, memory_bytes: Sequence[float] = ()) -> None:
        """Store the machines, after checking that `config` can be trained on so many.

        memory_bytes  bytes of memory of each machine, or one number for all. Empty: each has as much as is available
                      on this machine, whose disk is then checked too

        Raises `ValueError` for settings that forbid so many machines, and a wrong number of `memory_bytes`.
        """
        check_cluster(config, machines)
        if len(memory_bytes) not in (0, 1, machines):
            raise ValueError(
                f"--memory gives {len(memory_bytes)} amounts: give one for all {machines} machines, or each"
            )
        self._machines, self._memory = machines, memory_bytes
        self.figures: dict[str, Any] = {}

    def __call__(self, config: Config, game: Game, layout: TableLayout, directory: Path) -> str | None:
        """Return a sentence if the machines have too little memory for the run, or None.

        Without given memory sizes, the disk of `directory` and the memory of this machine are checked too.
        """
        assert game.strata is not None
        each, workers = self._memory or [available_memory_bytes()], max(1, config.run.workers)
        locations = [
            RankLocation(machine, f"machine {machine} of {self._machines}", 0, each[machine % len(each)])
            for machine in range(self._machines)
            for _ in range(workers)
        ]
        memory = memory_of_machines(config, game, layout, locations)
        owner = assign_strata(game.strata.shares, [1.0] * len(locations), memory)
        first, fixed = first_street_bytes(layout), fixed_bytes(config, game, layout)
        shares = np.bincount(memory.machine[owner], game.strata.shares)
        self.figures = {
            "machine_bytes": int(memory.bytes_by_machine(owner).max()) + fixed,
            "coordinator_bytes": first + fixed,
            "unevenness": float(shares.max() * self._machines / shares.sum()),
        }
        problem = None if self._memory else coordinator_problem(config, game, layout, directory)
        return problem or ranks_problem(config, game, layout, locations, owner)
