"""One worker's share of a sampled run: batches of iterations of external or outcome sampling on given tables."""

import time

import numpy as np

from mccfr.config import SolverConfig
from mccfr.deal import new_deals
from mccfr.discount import Discount, Schedule
from mccfr.games.game import Game
from mccfr.rng import new_stream
from mccfr.sampling.common import Path, Pruning, Worklist, new_path, new_worklist
from mccfr.sampling.external import external_sampling_general, external_sampling_packed
from mccfr.sampling.outcome import outcome_sampling_general, outcome_sampling_packed
from mccfr.tables import TableArrays
from mccfr.training.dealing import make_dealer
from mccfr.training.solver import WorkerState
from mccfr.tree import DECISION, MAX_PACKED_ACTIONS, NO_PARENT, CompiledTree, can_pack, pack

PERIOD_NODES = 10_000_000
_BATCH_DEALS = 4096
_BATCH_NODES = 200_000  # about 10 ms: how far several workers may run past a limit, and how soon a signal is seen
BATCH_SHARE = 0.2  # of a period, in the batches of all workers together: how far they run past its end


def schedule_of(solver: SolverConfig) -> Schedule:
    """The discounting schedule of a `[solver]` table."""
    return Schedule(
        solver.discount,
        PERIOD_NODES if solver.period_nodes is None else solver.period_nodes,
        solver.discount_until_nodes,
        1.5 if solver.alpha is None else solver.alpha,
        0.0 if solver.beta is None else solver.beta,
        solver.gamma,
    )


def first_words(solver: SolverConfig, worker: int) -> list[int]:
    """The random words with which a worker of a `[solver]` table begins; zeros where the algorithm needs none."""
    if solver.algorithm not in ("external-sampling", "outcome-sampling"):
        return [0, 0, 0, 0]
    return [int(word) for word in new_stream(solver.seed, worker)]


def batch_nodes(schedule: Schedule, workers: int) -> int | None:
    """Most nodes of a batch, ended by the first iteration that reaches them; None for a worker that is alone.

    A worker learns at the end of a batch what the others have done, and with it that a period is over.  So it may train
    on in the old one for what is under way: the batches of all workers, together `BATCH_SHARE` of a period.  What a
    single worker does never depends on batches.
    """
    return None if workers == 1 else max(1, int(BATCH_SHARE * schedule.period_nodes / workers))


def tree_depth(tree: CompiledTree) -> int:
    """Most decisions on a path from the root."""
    depth = np.zeros(len(tree.parent), np.int64)
    for node, parent in enumerate(tree.parent):
        depth[node] = (0 if parent == NO_PARENT else depth[parent]) + (tree.arrays.kind[node] == DECISION)
    return int(depth.max())


class SampledSolver:
    """Runs iterations on tables, batch by batch.  The tables are changed in place; other workers may do so too."""

    def __init__(
        self,
        game: Game,
        config: SolverConfig,
        tables: TableArrays,
        worker: int = 0,
        state: WorkerState | None = None,
        workers: int = 1,
    ) -> None:
        self._config, self._schedule = config, schedule_of(config)
        self._batch_nodes = min(_BATCH_NODES, batch_nodes(self._schedule, workers) or _BATCH_NODES)
        self._tables = tables
        self.state = state or WorkerState()
        if not any(self.state.rng):
            self.state.rng = first_words(config, worker)
        self._rng = np.array(self.state.rng, np.uint64)
        self._dealer = make_dealer(game, config.seed, worker)
        self._deals = new_deals(_BATCH_DEALS, game.tree.streets)
        self._drawn = (0, 0)  # first iteration of the deals at hand, and one past the last
        self._discount: Discount | None = None
        self.busy_seconds = 0.0  # spent in `run` by this object
        self._prunes = config.algorithm == "external-sampling" and config.negative_regret_pruning
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
        else:
            self._kernel = outcome_sampling_packed if packed else outcome_sampling_general
            most = MAX_PACKED_ACTIONS if packed else int(game.tree.arrays.count.max())
            self._scratch = new_path(tree_depth(game.tree), most, blocks, dtype)

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""
        self._call(0, 0, 0, self._schedule.at(0), 0)
        self._dealer.draw(0, 0, self._deals)

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes).

        At least one iteration, at most `iteration_limit`, ended by the first that reaches `node_limit` nodes (both
        counted from here), the end of the discounting period or the count at which pruning begins.  `total_nodes` is
        the run's count so far.
        """
        began, first = time.perf_counter(), self.state.iterations
        if not self._drawn[0] <= first < self._drawn[1]:
            self._draw(first)
        start = first - self._drawn[0]
        stop = min(self._drawn[1] - self._drawn[0], start + iteration_limit)
        self._discount = self._schedule.at(total_nodes, self._discount)
        limit = min(node_limit, self._schedule.period_end(total_nodes) - total_nodes, self._batch_nodes)
        if self._prunes and total_nodes < self._config.prune_after_nodes:
            limit = min(limit, self._config.prune_after_nodes - total_nodes)
        iterations, nodes = self._call(start, stop, limit, self._discount, total_nodes)
        self.state.iterations += iterations
        self.state.nodes += nodes
        self.state.rng = [int(word) for word in self._rng]
        self.busy_seconds += time.perf_counter() - began
        return iterations, nodes

    def _call(self, start: int, stop: int, node_limit: int, discount: Discount, total_nodes: int) -> tuple[int, int]:
        limits = np.array([start, stop, node_limit], np.int64)
        iterations, nodes = self._kernel(
            self._tree, self._tables, self._deals, limits, discount, self._rng, self._scratch, *self._own(total_nodes)
        )
        return int(iterations), int(nodes)

    def _own(self, total_nodes: int) -> tuple[float | Pruning, ...]:
        """What only this run's kernel takes."""
        config = self._config
        if config.algorithm == "outcome-sampling":
            return (config.epsilon,)
        if not self._prunes:
            return ()  # a kernel with nothing of pruning in it
        active = int(total_nodes >= config.prune_after_nodes)
        return (Pruning(active, float(config.prune_below_chips), float(config.floor_chips)),)

    def _draw(self, first: int) -> None:
        """Draw the deals of the next iterations; as each is a function of its number, how many does not matter."""
        self._dealer.draw(first, _BATCH_DEALS, self._deals)
        self._drawn = (first, first + _BATCH_DEALS)
