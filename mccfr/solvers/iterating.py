"""Whatever goes from iteration to iteration on given tables, as a run drives it: `Iteration`, and its `Solver`."""

import time
from typing import Protocol

from mccfr.solvers.solver import Share

_BATCH_SECONDS = 0.05


class Iteration(Protocol):
    """An algorithm on given tables, changed in place."""

    iteration: int  # iterations done: with the tables, the whole state

    @property
    def nodes_touched(self) -> int:
        """Nodes touched so far."""

    def iterate(self, count: int) -> None:
        """Run iterations; 0 compiles the kernels, and changes nothing."""


class IterationSolver:
    """Runs iterations on tables, which are changed in place; its state is the number of iterations."""

    def __init__(self, iterates: Iteration, share: Share) -> None:
        self.state = share.state
        self.state.rng = [0, 0, 0, 0]
        self.busy_seconds = 0.0
        self._iterates = iterates
        self._batch = 1
        self._nodes = 0  # of an iteration, the last ones; 0: none was yet

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""
        self._iterates.iterate(0)

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes); see `Solver.run`."""
        began, nodes, first = time.perf_counter(), self._iterates.nodes_touched, self._iterates.iteration
        left, to_touch = min(self._batch, iteration_limit), node_limit
        while left > 0 and to_touch > 0:
            before = self._iterates.nodes_touched
            # Several at a call, which has its price, and half of what the nodes allow: iterations may grow.
            count = max(1, min(left, to_touch // (2 * self._nodes))) if self._nodes else 1
            self._iterates.iterate(count)
            touched = self._iterates.nodes_touched - before
            left, to_touch, self._nodes = left - count, to_touch - touched, -(-touched // count)
        seconds = time.perf_counter() - began
        iterations, touched = self._iterates.iteration - first, self._iterates.nodes_touched - nodes
        self._batch = max(1, min(2 * self._batch, int(iterations * _BATCH_SECONDS / max(seconds, 1e-9))))
        self.state.iterations += iterations
        self.state.nodes += touched
        self.busy_seconds += seconds
        return iterations, touched
