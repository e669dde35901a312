"""Full-width CFR as a run sees it: batches of iterations, whose number sets how soon a signal is seen."""

import time

from mccfr.config import SolverConfig
from mccfr.fullwidth.configured import make_full_width
from mccfr.games.game import Game
from mccfr.training.solver import Views, WorkerState

_BATCH_SECONDS = 0.05


class FullWidthSolver:
    """Runs iterations on tables, which are changed in place; its state is the number of iterations."""

    def __init__(
        self, game: Game, config: SolverConfig, views: Views, state: WorkerState | None = None, threads: int = 1
    ) -> None:
        self.state = state or WorkerState()
        self.state.rng = [0, 0, 0, 0]
        self.busy_seconds = 0.0
        self._cfr = make_full_width(game, config, views, self.state.iterations, self.state.nodes, threads)
        self._batch = 1

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""
        self._cfr.iterate(0)

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes); see `Solver.run`."""
        began, nodes, first = time.perf_counter(), self._cfr.nodes_touched, self._cfr.iteration
        count = min(self._batch, iteration_limit)
        while self._cfr.iteration - first < count and self._cfr.nodes_touched - nodes < node_limit:
            self._cfr.iterate(1)
        seconds = time.perf_counter() - began
        iterations, touched = self._cfr.iteration - first, self._cfr.nodes_touched - nodes
        self._batch = max(1, min(2 * self._batch, int(iterations * _BATCH_SECONDS / max(seconds, 1e-9))))
        self.state.iterations += iterations
        self.state.nodes += touched
        self.busy_seconds += seconds
        return iterations, touched
