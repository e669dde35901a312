"""Public chance sampling as a run sees it: batches of iterations on tables that several workers share."""

import time

import msgspec

from mccfr.config import Config, SolverConfig
from mccfr.games.game import Game
from mccfr.training.sampled import batch_nodes, schedule_of
from mccfr.training.solver import Views, WorkerState
from mccfr.vector.public_chance import (
    PublicChanceOptions,
    PublicChanceSampling,
    PublicChanceState,
    round_nodes,
)

_BATCH_SECONDS = 0.05


def with_period(config: Config, game: Game) -> Config:
    """The configuration with the period's length written out where public chance sampling is left to choose it."""
    if config.solver.algorithm != "public-chance-sampling" or config.solver.period_nodes is not None:
        return config
    solver = msgspec.structs.replace(config.solver, period_nodes=round_nodes(game))
    return msgspec.structs.replace(config, solver=solver)


def options_of(config: SolverConfig) -> PublicChanceOptions:
    """How a `[solver]` table weights updates."""
    schedule = schedule_of(config)
    return PublicChanceOptions(schedule, config.floored_regrets and schedule.kind == "none", config.skip_below)


class PublicChanceSolver:
    """Runs iterations on tables, which are changed in place."""

    def __init__(
        self,
        game: Game,
        config: SolverConfig,
        views: Views,
        worker: int = 0,
        state: WorkerState | None = None,
        workers: int = 1,
    ) -> None:
        self.state = state or WorkerState()
        self.state.rng = self.state.rng or [0, 0, 0, 0]  # needs no words: the first holds the period ends swept so far
        own = PublicChanceState(self.state.iterations, self.state.nodes, self.state.rng[0])
        self._sampler = PublicChanceSampling(game, options_of(config), views, config.seed, worker, own)
        self.busy_seconds = 0.0
        self._batch = 1
        self._batch_nodes = batch_nodes(schedule_of(config), workers)

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""
        self._sampler.warm_up()

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes); see `Solver.run`."""
        began = time.perf_counter()
        limit = node_limit if self._batch_nodes is None else min(node_limit, self._batch_nodes)
        iterations, nodes = self._sampler.run(min(self._batch, iteration_limit), limit, total_nodes)
        seconds = time.perf_counter() - began
        self._batch = max(1, min(2 * self._batch, int(iterations * _BATCH_SECONDS / max(seconds, 1e-9))))
        self.state.iterations += iterations
        self.state.nodes += nodes
        self.state.rng[0] = self._sampler.state.ends
        self.busy_seconds += seconds
        return iterations, nodes
