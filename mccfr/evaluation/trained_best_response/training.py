"""Training of both seats' responders, one after the other or in two processes, with stop and resume."""

import mmap
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.compiling import working_seconds
from mccfr.common.signals import SIGNALS
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.responder import best, matched, responder, responder_layout, responder_tables
from mccfr.solvers.solver import Solver, WorkerState
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import TableSet, table_name
from storage.free_space import available_memory_bytes

WAYS = {"regret matching": matched, "the largest regret": best}
"""Ways for a responder to play by its regrets, by their names in records."""
_MOST = 2**62
_REPORT_SECONDS = 0.2
_MEMORY_SHARE = 0.8
_GB = 1e9
_NODES, _ITERATIONS, _RNG, _STOP = 0, 1, 2, 6  # indices into the array shared by two processes
NodesCallback = Callable[[int], None]
"""Called with the number of nodes touched by both seats so far."""


class Training:
    """A responder for each seat of a policy.

    Attributes:
        bytes_needed: memory in bytes
        busy_seconds: time spent in `train`, without compilation
    """

    def __init__(self, own: Game, policy: Profile, seed: int, sampler: str) -> None:
        """Take the responders' game `own`: the policy's game with their buckets.

        sampler  one of `mccfr.solvers.responder.SAMPLERS`

        Raises as `Cards.with_opponent`, and `ValueError` for too little memory.
        """
        cards = own.cards.with_opponent(policy.game.cards), policy.game.cards.with_opponent(own.cards)
        self._games = [replace(own, cards=each) for each in cards]
        self.bytes_needed = self._checked_bytes(own, policy.game, sampler)
        self._tables: list[TableSet] = []
        self._shared = [_shared_cells(8, "uint64") for _ in range(2)]
        self._seed, self._sampler, self.busy_seconds = seed, sampler, 0.0
        blocks = range(2 * own.tree.streets)
        theirs = [row_starts(policy.game, block) for block in blocks]
        for seat, game in enumerate(self._games):
            self._tables.append(responder_tables(sampler, game, seat, policy.strategy, theirs, _shared_cells))
        self._solvers = [self._solver(seat, WorkerState()) for seat in range(2)]
        self._starts = [row_starts(own, block) for block in blocks]

    def _solver(self, seat: int, state: WorkerState) -> Solver:
        return responder(self._sampler, self._games[seat], seat, self._tables[seat], self._seed, state)

    def _checked_bytes(self, own: Game, policy: Game, sampler: str) -> int:
        """Return the bytes of all tables of both seats; `ValueError` if they exceed the free memory.

        Counted are regrets, the best responders so far, and bucket tables.
        """
        tables = sum(responder_layout(sampler, each).nbytes for each in self._games)
        decks = {id(game.cards): game.cards.shared_bytes for game in (own, policy)}
        needed, free = 2 * tables + sum(decks.values()), available_memory_bytes()
        if needed > _MEMORY_SHARE * free:
            raise ValueError(
                f"such a responder needs {needed / _GB:.2g} GB of memory and {free / _GB:.2g} GB are free: give a "
                "coarser abstraction by --responder-abstraction"
            )
        return needed

    @property
    def tree_nodes(self) -> int:
        """Number of nodes of both seats' betting trees."""
        return sum(int(game.tree.arrays.touched.sum()) for game in self._games)

    @property
    def nodes(self) -> int:
        """Number of nodes touched by both seats."""
        return sum(solver.state.nodes for solver in self._solvers)

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels and fill lookup tables."""
        for solver in self._solvers:
            solver.warm_up()

    def train(
        self, goal: int, workers: int, stop: Callable[[], bool], progress: NodesCallback = lambda _: None
    ) -> None:
        """Train until each seat has touched `goal` nodes or `stop` returns True.

        Results do not depend on stops.

        workers  2 or more: one process for each seat

        Raises `RuntimeError` if the other process dies.
        """
        began = working_seconds()
        left = [solver for solver in self._solvers if solver.state.nodes < goal]
        if workers > 1 and len(left) == 2 and "fork" in multiprocessing.get_all_start_methods():
            self._train_two(goal, stop, progress)
        else:
            for solver in left:
                _train(solver, goal, stop, lambda _: progress(self.nodes))
        self.busy_seconds += working_seconds() - began

    def _train_two(self, goal: int, stop: Callable[[], bool], progress: NodesCallback) -> None:
        """Train the first seat in this process and the second in a child process with shared tables."""
        first, second = self._solvers
        shared, parent = self._shared[1], os.getpid()
        shared[_NODES], shared[_STOP] = second.state.nodes, 0
        # A fork shares the policy and the tables without copies.
        other = multiprocessing.get_context("fork").Process(target=_train_apart, args=(second, goal, shared, parent))
        other.start()
        try:
            _train(first, goal, stop, lambda nodes: progress(nodes + int(shared[_NODES])))
            while other.is_alive():
                other.join(_REPORT_SECONDS)
                shared[_STOP] = stop()
                progress(first.state.nodes + int(shared[_NODES]))
        finally:
            shared[_STOP] = 1
            other.join()
        if other.exitcode != 0:
            raise RuntimeError("a process that trained died, killed from outside or out of memory")
        stream = [int(word) for word in shared[_RNG : _RNG + 4]]
        self._solvers[1] = self._solver(1, WorkerState(int(shared[_ITERATIONS]), int(shared[_NODES]), stream))

    def learnt(self, way: str) -> list[npt.NDArray[np.float32]]:
        """Return a copy of each block's cells: both responders' play by one of the WAYS."""
        cells = []
        for block, starts in enumerate(self._starts):
            regrets = self._tables[block % 2].rows("regret", block)
            none = np.zeros((int(self._games[block % 2].buckets[block]), 0), np.float32)
            cells.append(none if regrets is None else WAYS[way](regrets, starts))
        return cells

    # --- checkpoints ---

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the regret tables of both responders by name; they are not copies."""
        return {name: self._tables[seat][name] for seat in range(2) for name in self._own(seat)}

    def _own(self, seat: int) -> list[str]:
        names = [table_name("regret", block) for block in range(seat, len(self._starts), 2)]
        return [name for name in names if name in self._tables[seat]]

    def states(self) -> list[dict[str, Any]]:
        """Return counters and random states of both responders for JSON."""
        states = [solver.state for solver in self._solvers]
        return [{"iterations": s.iterations, "nodes": s.nodes, "rng": s.rng} for s in states]

    def go_on_from(self, states: Sequence[dict[str, Any]]) -> None:
        """Continue from `states`; the caller fills `arrays`."""
        self._solvers = [
            self._solver(seat, WorkerState(state["iterations"], state["nodes"], list(state["rng"])))
            for seat, state in enumerate(states)
        ]


def _shared_cells(count: int, dtype: str) -> npt.NDArray[Any]:
    """Return a zeroed array that processes forked from this one share."""
    bytes_needed = max(1, count) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, bytes_needed), dtype, count)


def _train(solver: Solver, goal: int, stop: Callable[[], bool], progress: NodesCallback) -> None:
    """Run batches until a seat has touched `goal` nodes or `stop` returns True, with progress reports."""
    last = 0.0
    while (nodes := solver.state.nodes) < goal and not stop():
        solver.run(nodes, goal - nodes, _MOST)
        if (now := time.monotonic()) - last >= _REPORT_SECONDS:
            last = now
            progress(solver.state.nodes)


def _train_apart(solver: Solver, goal: int, shared: npt.NDArray[np.uint64], parent: int) -> None:
    """Run `_train` in a child process until the parent stops it or ends; write the state to `shared`."""
    for number in SIGNALS:  # the terminal signals all processes; only the parent handles them
        signal.signal(number, signal.SIG_IGN)

    def report(nodes: int) -> None:
        shared[_NODES] = nodes
        if os.getppid() != parent:
            os._exit(1)

    _train(solver, goal, lambda: bool(shared[_STOP]), report)
    state = solver.state
    shared[_NODES], shared[_ITERATIONS] = state.nodes, state.iterations
    shared[_RNG : _RNG + 4] = state.rng
