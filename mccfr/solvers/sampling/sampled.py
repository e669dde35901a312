"""Common parts of external and outcome sampling: the algorithm, its solver, deals and batches."""

import time
from abc import ABC, abstractmethod
from math import inf
from typing import Any, ClassVar

import numpy as np

from mccfr.cards.board_strata import stratum_dealers
from mccfr.cards.deals import new_deals
from mccfr.common.rng import new_stream
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import SampledConfig
from mccfr.config.table_base import first_refused
from mccfr.games.game import Game
from mccfr.solvers.coverage_estimate import CoverageEstimate, forecast
from mccfr.solvers.dcfr_discount import DcfrDiscount
from mccfr.solvers.locked_tables import LockedCells, check_locks
from mccfr.solvers.solver import Algorithm, Share, Traits, WorkerState
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import TableArrays, TableLayout, TableSet, make_layout
from mccfr.trees.compiled import can_pack, pack

PERIOD_NODES = 10_000_000
"""Default length of a discount period (Brown & Sandholm 2019, section 5)."""
_BATCH_DEALS = 4096
_BATCH_NODES = 200_000  # about 10 ms: bounds the overrun of a limit and the delay until a signal is noticed
_NO_LIMIT = 2**62
_UNSWEPT = "'none', 'linear' or 'initial' with run.strata: tables are swept under 'dcfr'"
BATCH_SHARE = 0.2  # of a period, in one batch of all workers together: bounds the overrun of its end


def schedule_of(solver: SampledConfig) -> Schedule:
    """Return the discount Schedule that `[solver]` sets; default of its period: `PERIOD_NODES` nodes."""
    return Schedule(
        solver.discount,
        PERIOD_NODES if solver.period_nodes is None else solver.period_nodes,
        solver.discount_until_nodes,
    )


def batch_nodes(schedule: Schedule, workers: int) -> int | None:
    """Return the largest number of nodes in a batch; None, for a single worker: no limit.

    A batch is the iterations that a worker runs in one call of compiled code.

    workers  number of workers of the run

    A worker learns only after a batch that the others have ended a period.  Until then it trains on with the old
    weight.  So the batches of all workers together have at most `BATCH_SHARE` of a period, and each at least 1 node.
    The result of a single worker does not depend on batches.
    """
    return None if workers == 1 else max(1, int(BATCH_SHARE * schedule.period_nodes / workers))


class SampledAlgorithm(Algorithm):
    """Common part of external and outcome sampling as an Algorithm: settings, tables, traits."""

    walks_all: ClassVar[bool]
    """Whether the traverser walks all actions at its own decisions (external sampling), or a sampled one."""
    iterates: "ClassVar[type[SampledSolver]]"
    """Class that `solver` returns."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, SampledConfig)
        self._solver = config.solver
        self._schedule = schedule_of(config.solver)

    @property
    def schedule(self) -> Schedule:
        """Return the discount Schedule of the settings: weights and discounts by nodes touched."""
        return self._schedule

    def problem(self) -> str | None:
        """Return the sentence that says why the configuration cannot be trained, or None if it can.

        The only reason here is `run.strata` (groups of boards are trained apart) together with the discount `dcfr`.
        This discount multiplies whole tables at the ends of periods.
        """
        whole = self.config.run.strata is None or not self.schedule.sweeps
        return first_refused(self.config, [("solver.discount", whole, _UNSWEPT)])

    def layout(self, game: Game) -> TableLayout:
        """Return the layout of the run's tables: name, shape and dtype of each.

        Raises `ValueError` for rows in which only some actions have a fixed probability (a lock).

        Strategy sums of the dtype "auto" are float32, which stochastic rounding keeps exact enough at any length.
        """
        check_locks(game)
        return make_layout(
            game,
            regret_dtype=self.config.tables.regret_dtype,
            sum_dtype="float32" if self.config.tables.sum_dtype == "auto" else self.config.tables.sum_dtype,
            first_dtype=None if game.strata is None else "float64",  # totals of changes, which are added up at barriers
        )

    @property
    def traits(self) -> Traits:
        """Return the algorithm's Traits.

        Rows with a fixed strategy (locks) are supported, but not if groups of boards (strata) are trained apart.
        """
        locks = self.config.run.strata is None
        return Traits(sweeps=self.schedule.sweeps, takes_locks=locks, takes_seats=True, takes_pots=True)

    def first_floor(self, game: Game, total_nodes: int) -> float:
        """Return the least regret that is kept on the first street: here -inf, no limit.

        Algorithms that skip actions of very negative regret override it.

        total_nodes  nodes that the run has touched so far
        """
        del game, total_nodes
        return -inf

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> "SampledSolver":
        """Return the solver that iterates on `tables` and changes them in place.

        share  worker number, number of workers and state to continue from; None: a new run
        """
        return self.iterates(game, self, tables, share or Share())

    def first_words(self, worker: int) -> list[int]:
        """Return the four words (uint64 as int) at which the random generator of a worker's actions starts.

        worker  number of the worker, or of the stratum (group of boards) that is trained
        """
        return [int(word) for word in new_stream(self.config.solver.seed, worker)]

    def forecast(self, game: Game) -> CoverageEstimate | None:
        """Return a CoverageEstimate: expected nodes touched and visits of decisions in one iteration.

        Visits are updates of strategy sums.  All players are assumed to play by fixed guesses, such as folding with
        probability 0.4 when facing a bet.
        """
        return forecast(game, self.walks_all)


class SampledSolver(ABC):
    """Solver of external and outcome sampling: runs iterations in batches on tables, in place.

    A batch is the iterations of one call of compiled code.  Each worker of a run has a solver object of its own.
    Several workers may change the same tables at the same time.
    """

    _config: SampledConfig
    _kernel: Any  # compiled, for packed trees or general records
    _scratch: Any
    _packs_pots = True  # whether the kernel for packed trees knows pots of three and more players
    _floored = False  # whether regrets are kept above a floor
    _together = 1  # iterations of a group, which all read the regrets from before the group

    def __init__(self, game: Game, algorithm: SampledAlgorithm, tables: TableSet, share: Share) -> None:
        assert tables.kernel is not None
        assert isinstance(algorithm.config.solver, SampledConfig)
        self._schedule, self._tables, self._config = algorithm.schedule, tables.kernel, algorithm.config.solver
        self._batch_nodes = min(_BATCH_NODES, batch_nodes(self._schedule, share.workers) or _BATCH_NODES)
        self.state = share.state
        if not any(self.state.rng):
            self.state.rng = algorithm.first_words(share.worker)
        self._rng = np.array(self.state.rng, np.uint64)
        self._strata, seed = game.strata, algorithm.config.solver.seed
        self._dealers = [] if game.strata is None else stratum_dealers(game.cards, game.strata, seed)
        self._dealer = self._dealers[0] if self._dealers else game.cards.dealer(seed, share.worker)
        self._deals = new_deals(_BATCH_DEALS, game.tree.streets, game.tree.players)
        self._drawn = (0, 0)  # first iteration of the deals in memory, and one past the last
        regrets, sums = ([t for n, t in tables.items() if n.startswith(k)] for k in ("regret/", "strategy_sum/"))
        sweeps = self._schedule.sweeps and share.worker == 0
        self._locked, self._locked_tables = LockedCells(game), tables
        self._locked.write(tables)
        self._sweep = DcfrDiscount(regrets, sums, self._schedule, (seed, share.worker)) if sweeps else None
        self.busy_seconds = 0.0  # spent in `run` by this object
        packed = can_pack(game.tree) and (self._packs_pots or game.tree.pots is None)
        self._tree = pack(game.tree) if packed else game.tree.arrays
        self._choose_kernel(game, packed)

    @abstractmethod
    def _choose_kernel(self, game: Game, packed: bool) -> None:
        """Set the compiled code `_kernel` and its scratch arrays `_scratch`.

        game    the game that is trained
        packed  True: for a packed betting tree; False: for general records, one for each node of any tree
        """

    @abstractmethod
    def _own(self, total_nodes: int) -> tuple[Any, ...]:
        """Return a tuple of the last arguments of the kernel, which only this algorithm has.

        total_nodes  nodes that the run has touched before the batch

        They are (Pruning,) of external sampling, or () if it does not prune, and (epsilon,) of outcome sampling.
        """

    def _next_change(self, total_nodes: int) -> int | None:
        """Return the next number of nodes of the run at which the result of `_own` changes; None: never.

        total_nodes  nodes that the run has touched before the batch
        """
        del total_nodes
        return None

    def warm_up(self) -> None:
        """Compile the kernels (numba functions), or load them from the cache; change nothing."""
        self._call(0, 0, 0, self._schedule.weight(0), 0)
        self._dealer.draw(0, 0, self._deals)
        if self._sweep is not None:
            self._sweep.warm_up()

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes touched).

        total_nodes      number of nodes that the run has touched before, by all workers
        node_limit       nodes of this batch: it ends after the first iteration that reaches them
        iteration_limit  most iterations of this batch, which has at least one

        A batch also ends at the end of a discount period, and when the kernel's arguments change.  It ends after about
        200,000 nodes (fewer with several workers, see `batch_nodes`), and after the last of the deals drawn in advance.
        Outcome sampling plays whole groups of deals and may pass a limit within one.
        """
        began, first = time.perf_counter(), self.state.iterations
        if self._sweep is not None:
            self.state.ends = self._sweep.run(self.state.ends, total_nodes)
        if self._locked and (self._schedule.sweeps or self._floored):
            self._locked.write(self._locked_tables)
        if not self._drawn[0] <= first < self._drawn[1]:
            self._draw(first)
        start = first - self._drawn[0]
        whole_groups = -(-(first + iteration_limit) // self._together) * self._together
        stop = min(self._drawn[1], whole_groups) - self._drawn[0]
        limit = min(node_limit, self._schedule.period_end(total_nodes) - total_nodes, self._batch_nodes)
        change = self._next_change(total_nodes)
        if change is not None:
            limit = min(limit, change - total_nodes)
        iterations, nodes = self._call(start, stop, limit, self._schedule.weight(total_nodes), total_nodes)
        self.state.iterations += iterations
        self.state.nodes += nodes
        self.state.rng = [int(word) for word in self._rng]
        self.busy_seconds += time.perf_counter() - began
        return iterations, nodes

    def train_on(self, tables: TableArrays) -> None:
        """Use other tables, instead of the constructor's, in all later iterations.

        tables  TableArrays of the same dtypes, changed in place
        """
        self._tables = tables

    def run_stratum(self, stratum: int, state: WorkerState, total_nodes: int, iterations: int) -> int:
        """Run `iterations` iterations on deals of one stratum and return the nodes touched.

        A stratum is a set of boards that is trained separately.

        stratum      number of the stratum, from 0
        state        the stratum's state, changed in place
        total_nodes  number of nodes touched in the run that determines the discount weight of all these updates
        """
        before = state.nodes
        self._rng[:] = state.rng
        due, weight = iterations, self._schedule.weight(total_nodes)
        while due > 0:
            count = min(due, _BATCH_DEALS)
            self._dealers[stratum].draw(state.iterations, count, self._deals)
            deals, nodes = self._call(0, count, _NO_LIMIT, weight, total_nodes)
            state.iterations, state.nodes, due = state.iterations + deals, state.nodes + nodes, due - deals
        state.rng = [int(word) for word in self._rng]
        return state.nodes - before

    def _call(self, start: int, stop: int, node_limit: int, weight: float, total_nodes: int) -> tuple[int, int]:
        limits = np.array([start, stop, node_limit], np.int64)
        iterations, nodes = self._kernel(
            self._tree, self._tables, self._deals, limits, weight, self._rng, self._scratch, *self._own(total_nodes)
        )
        return int(iterations), int(nodes)

    def _draw(self, first: int) -> None:
        """Draw 4,096 deals in advance, for the iterations from number `first` on.

        Each deal is a function of its iteration number, so it does not matter how many are drawn together.
        """
        self._dealer.draw(first, _BATCH_DEALS, self._deals)
        self._drawn = (first, (first + _BATCH_DEALS) // self._together * self._together)
