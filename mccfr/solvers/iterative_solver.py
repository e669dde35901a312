"""Runs iterations of an algorithm in batches: `Iteration` (interface) and `IterationSolver`."""

import time
from typing import Protocol

from mccfr.solvers.solver import Share

_BATCH_SECONDS = 0.05


class Iteration(Protocol):
    """Interface of an algorithm that iterates on given tables and changes them in place."""

    iteration: int  # iterations done: with the tables, the whole state

    @property
    def nodes_touched(self) -> int:
        """Return the number of tree nodes visited so far."""

    def iterate(self, count: int) -> None:
        """Run `count` iterations; 0 compiles the kernels and changes nothing."""


class IterationSolver:
    """Runs an `Iteration` in batches of about 0.05 seconds, and counts its iterations and nodes."""

    def __init__(self, iterates: Iteration, share: Share) -> None:
        self.state = share.state
        self.state.rng = [0, 0, 0, 0]
        self.busy_seconds = 0.0
        self._iterates = iterates
        self._batch = 1
        self._nodes = 0  # per iteration, in the last call; 0 before the first

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache, without changing anything."""
        self._iterates.iterate(0)

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes touched).

        The batch ends after `iteration_limit` iterations, or after about 0.05 seconds by the speed of earlier batches.
        It also ends with the call of `iterate` that reaches `node_limit` nodes of this batch.  `total_nodes` is
        ignored.
        """
        began, nodes, first = time.perf_counter(), self._iterates.nodes_touched, self._iterates.iteration
        remaining, to_touch = min(self._batch, iteration_limit), node_limit
        while remaining > 0 and to_touch > 0:
            before = self._iterates.nodes_touched
            # A call has a fixed cost, so it runs several iterations: half of the limit, because they may grow.
            count = max(1, min(remaining, to_touch // (2 * self._nodes))) if self._nodes else 1
            self._iterates.iterate(count)
            touched = self._iterates.nodes_touched - before
            remaining, to_touch, self._nodes = remaining - count, to_touch - touched, -(-touched // count)
        seconds = time.perf_counter() - began
        iterations, touched = self._iterates.iteration - first, self._iterates.nodes_touched - nodes
        self._batch = max(1, min(2 * self._batch, int(iterations * _BATCH_SECONDS / max(seconds, 1e-9))))
        self.state.iterations += iterations
        self.state.nodes += touched
        self.busy_seconds += seconds
        return iterations, touched
