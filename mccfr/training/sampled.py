"""One worker's share of a run: batches of iterations of the configured algorithm on given tables."""

import time
from dataclasses import dataclass, field

import numpy as np

from mccfr.config import SolverConfig
from mccfr.deal import deal_arrays, draw_deals, new_deals, no_deal_arrays
from mccfr.discount import Discount, Schedule
from mccfr.games.game import Game
from mccfr.rng import new_stream
from mccfr.sampling.common import Path, Worklist, new_path, new_worklist
from mccfr.sampling.external import external_sampling_general, external_sampling_packed
from mccfr.sampling.outcome import outcome_sampling_general, outcome_sampling_packed
from mccfr.tables import TableArrays
from mccfr.tree import DECISION, MAX_PACKED_ACTIONS, NO_PARENT, CompiledTree, can_pack, pack

_BATCH_DEALS = 4096
_BATCH_NODES = 200_000  # about 10 ms: how far several workers may run past a limit, and how soon a signal is seen


@dataclass
class WorkerState:
    """What a worker must remember to go on bit for bit: counters, and the words of its stream of actions."""

    iterations: int = 0
    nodes: int = 0
    rng: list[int] = field(default_factory=list)


def schedule_of(solver: SolverConfig) -> Schedule:
    """The discounting schedule of a `[solver]` table."""
    return Schedule(
        solver.discount,
        solver.period_nodes,
        solver.discount_until_nodes,
        solver.alpha,
        solver.beta,
        solver.gamma,
    )


def tree_depth(tree: CompiledTree) -> int:
    """Most decisions on a path from the root."""
    depth = np.zeros(len(tree.parent), np.int64)
    for node, parent in enumerate(tree.parent):
        depth[node] = (0 if parent == NO_PARENT else depth[parent]) + (tree.arrays.kind[node] == DECISION)
    return int(depth.max())


class Solver:
    """Runs iterations on tables, batch by batch.  The tables are changed in place; other workers may do so too."""

    def __init__(
        self, game: Game, config: SolverConfig, tables: TableArrays, worker: int = 0, state: WorkerState | None = None
    ) -> None:
        self._schedule = schedule_of(config)
        self._tables = tables
        self._seed, self._worker = np.uint64(config.seed), np.uint64(worker)
        self.state = state or WorkerState()
        if not self.state.rng:
            self.state.rng = [int(word) for word in new_stream(config.seed, worker)]
        self._rng = np.array(self.state.rng, np.uint64)
        self._deal_arrays = no_deal_arrays() if game.cards is None else deal_arrays(game.cards)
        self._deals = new_deals(_BATCH_DEALS, game.tree.streets)
        self._deal_state = np.zeros(4, np.uint64)
        self._drawn = (0, 0)  # first iteration of the deals at hand, and one past the last
        self._discount: Discount | None = None
        self.busy_seconds = 0.0  # spent in `run` by this object
        self._choose_kernel(game, config)

    def _choose_kernel(self, game: Game, config: SolverConfig) -> None:
        packed, blocks, dtype = can_pack(game.tree), 2 * game.tree.streets, self._tables.regret.dtype
        self._tree = pack(game.tree) if packed else game.tree.arrays
        nodes = len(self._tree) if packed else len(game.tree.arrays.kind)
        if config.algorithm == "external-sampling":
            self._kernel = external_sampling_packed if packed else external_sampling_general
            self._scratch: Worklist | Path = new_worklist(
                nodes, nodes * (MAX_PACKED_ACTIONS if packed else 1), blocks, dtype
            )
            self._extra: tuple[float, ...] = ()
        else:
            self._kernel = outcome_sampling_packed if packed else outcome_sampling_general
            most = MAX_PACKED_ACTIONS if packed else int(game.tree.arrays.count.max())
            self._scratch = new_path(tree_depth(game.tree), most, blocks, dtype)
            self._extra = (config.epsilon,)

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""
        self._call(0, 0, 0, self._schedule.at(0))
        draw_deals(self._deal_arrays, self._seed, self._worker, 0, 0, self._deal_state, self._deals)

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes).

        At least one iteration, at most `iteration_limit`, ended by the first that reaches `node_limit` nodes (both
        counted from here) or the end of the discounting period.  `total_nodes` is the run's count so far.
        """
        began, first = time.perf_counter(), self.state.iterations
        if not self._drawn[0] <= first < self._drawn[1]:
            self._draw(first)
        start = first - self._drawn[0]
        stop = min(self._drawn[1] - self._drawn[0], start + iteration_limit)
        self._discount = self._schedule.at(total_nodes, self._discount)
        limit = min(node_limit, self._schedule.period_end(total_nodes) - total_nodes, _BATCH_NODES)
        iterations, nodes = self._call(start, stop, limit, self._discount)
        self.state.iterations += iterations
        self.state.nodes += nodes
        self.state.rng = [int(word) for word in self._rng]
        self.busy_seconds += time.perf_counter() - began
        return iterations, nodes

    def _call(self, start: int, stop: int, node_limit: int, discount: Discount) -> tuple[int, int]:
        limits = np.array([start, stop, node_limit], np.int64)
        iterations, nodes = self._kernel(
            self._tree, self._tables, self._deals, limits, discount, self._rng, self._scratch, *self._extra
        )
        return int(iterations), int(nodes)

    def _draw(self, first: int) -> None:
        """Draw the deals of the next iterations; as each is a function of its number, how many does not matter."""
        if not draw_deals(
            self._deal_arrays, self._seed, self._worker, first, _BATCH_DEALS, self._deal_state, self._deals
        ):
            raise ValueError("the two ranges hardly hold two hands that can be dealt together: no deal was found")
        self._drawn = (first, first + _BATCH_DEALS)
