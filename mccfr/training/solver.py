"""What every algorithm looks like to a run: batches of iterations on given tables, and a state to go on from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mccfr.config import SolverConfig
from mccfr.games.game import Game
from mccfr.tables import TableArrays

Views = Mapping[str, npt.NDArray[np.generic]]


@dataclass
class WorkerState:
    """What a worker must remember to go on bit for bit: counters, and the words of its stream of actions."""

    iterations: int = 0
    nodes: int = 0
    rng: list[int] = field(default_factory=list)  # four words; none or all 0: not begun


class Solver(Protocol):
    """Runs iterations on tables, batch by batch.  The tables are changed in place; other workers may do so too."""

    state: WorkerState
    busy_seconds: float  # spent in `run` by this object

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes).

        At least one iteration, at most `iteration_limit`, ended by the first that reaches `node_limit` nodes (both
        counted from here).  `total_nodes` is the run's count so far.
        """


def processes(config: SolverConfig, workers: int) -> int:
    """Processes that share a run's work: full-width iterations are split over threads of one."""
    return min(workers, 1) if config.algorithm == "cfr" else workers


def make_solver(
    game: Game,
    config: SolverConfig,
    arrays: TableArrays,
    views: Views,
    worker: int = 0,
    state: WorkerState | None = None,
    workers: int = 1,
) -> Solver:
    """The solver of a `[solver]` table.

    arrays, views  the tables in the kernels' form, and by name; changed in place
    worker         number of the worker: it names its streams of random numbers
    state          to go on from; changed as the solver goes
    workers        that share the run; for full-width iterations, threads of each
    """
    if config.algorithm == "cfr":
        from mccfr.training.full_width import FullWidthSolver

        return FullWidthSolver(game, config, views, state, workers)
    if config.algorithm == "public-chance-sampling":
        from mccfr.training.public_chance import PublicChanceSolver

        return PublicChanceSolver(game, config, views, worker, state, workers)
    from mccfr.training.sampled import SampledSolver

    return SampledSolver(game, config, arrays, worker, state, workers)
