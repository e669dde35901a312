"""Public chance sampling as an `Algorithm`; the iterations are in `public_chance_sampling`."""

import time

import msgspec
import numpy as np

from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import PublicChanceConfig
from mccfr.games.game import Game
from mccfr.solvers.locked_tables import LockedCells, check_locks
from mccfr.solvers.public.public_chance.public_chance_sampling import (
    PublicChanceOptions,
    PublicChanceSampling,
    PublicChanceState,
    period_nodes,
    table_specs,
)
from mccfr.solvers.sampling.sampled import batch_nodes, schedule_of
from mccfr.solvers.solver import Algorithm, Share, Traits
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import TableLayout, TableSet

_BATCH_SECONDS = 0.05


class PublicChance(Algorithm):
    """Trains by public chance sampling: an iteration draws one board, for all hands of both players."""

    options = PublicChanceConfig

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, PublicChanceConfig)
        self._solver = config.solver

    @property
    def traits(self) -> Traits:
        """Return the properties of the algorithm.

        With the discount `dcfr`, `sweeps` is True: whole tables are multiplied at the ends of periods.
        """
        return Traits(sweeps=self.schedule.sweeps, takes_locks=True)

    @property
    def schedule(self) -> Schedule:
        """Return the discount schedule of `[solver]`."""
        return schedule_of(self._solver)

    def completed(self, game: Game) -> Config:
        """Return the configuration, with a default length of discount periods if it sets none.

        A period has the nodes of one round of all boards, but of at most 100 boards.  If boards are not listed, it has
        the nodes of 48 boards.
        """
        if self._solver.period_nodes is not None:
            return self.config
        solver = msgspec.structs.replace(self._solver, period_nodes=period_nodes(game))
        return msgspec.structs.replace(self.config, solver=solver)

    def layout(self, game: Game) -> TableLayout:
        """Return names, shapes [slot, bucket] and dtypes of the tables; a slot is a decision's action.

        Raises `ValueError` for a game without cards, and for infosets with only some actions locked (fixed).
        """
        if not game.cards.dealt:
            raise ValueError(
                f"solver.algorithm = 'public-chance-sampling' needs a game with cards, and {game.name} has none"
            )
        check_locks(game)
        nothing = np.zeros(2 * game.tree.streets, np.int64)
        is_wide = self.config.tables.sum_dtype == "float64"
        specs = table_specs(game, self.config.tables.regret_dtype, "float64" if is_wide else "float32")
        return TableLayout(specs, nothing)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> "PublicChanceSolver":
        """Return the solver that iterates on `tables` and changes them in place.

        share  `Share`: worker number, number of workers and state to continue from; None: a new run
        """
        share, config = share or Share(), self._solver
        given = game, options_of(config), tables, config.seed, share.worker, known_state(share)
        return PublicChanceSolver(PublicChanceSampling(*given), share)


def options_of(config: PublicChanceConfig) -> PublicChanceOptions:
    """Return the `PublicChanceOptions` of a `[solver]` table: weights and discounts of updates."""
    schedule = schedule_of(config)
    return PublicChanceOptions(schedule, schedule.kind == "none")


def known_state(share: Share) -> PublicChanceState:
    """Return the sampler's state of a worker: counts of iterations, nodes, discounted periods.

    share  `Share` of the worker

    The last count is kept in the first word of `share.state.rng`, which is set to four zeros if it is empty.
    """
    state = share.state
    state.rng = state.rng or [0, 0, 0, 0]  # no random words are needed: the first counts the period ends swept
    return PublicChanceState(state.iterations, state.nodes, state.rng[0])


class PublicChanceSolver:
    """Runs iterations of public chance sampling or CFR-BR in batches; locked strategies stay fixed.

    The constructor takes the sampler that runs the iterations, and the worker's `Share` with its state.  It writes the
    regrets and sums of locked rows into the tables.  `run` changes the tables in place.
    """

    def __init__(self, sampler: PublicChanceSampling, share: Share) -> None:
        self.state, self._sampler, options = share.state, sampler, sampler.options
        self._locked = LockedCells(sampler.game)
        self._locked.write(sampler.tables)
        self._moves_locked = options.schedule.sweeps or options.plus
        self.busy_seconds = 0.0
        self._batch = 1
        self._batch_nodes = batch_nodes(sampler.options.schedule, share.workers)

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache, without changing anything."""
        self._sampler.warm_up()

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes touched).

        total_nodes      number of nodes that the whole run has touched before
        node_limit       nodes of this batch: the batch ends with the iteration that reaches it
        iteration_limit  most iterations of this batch

        The batch also ends after about 0.05 seconds, by the speed of earlier batches.  With several workers
        `node_limit` counts as at most a part of a discount period (`batch_nodes`).  A batch has at least one iteration.
        """
        began = time.perf_counter()
        if self._locked and self._moves_locked:
            self._locked.write(self._sampler.tables)
        limit = node_limit if self._batch_nodes is None else min(node_limit, self._batch_nodes)
        iterations, nodes = self._sampler.run(min(self._batch, iteration_limit), limit, total_nodes)
        seconds = time.perf_counter() - began
        self._batch = max(1, min(2 * self._batch, int(iterations * _BATCH_SECONDS / max(seconds, 1e-9))))
        self.state.iterations += iterations
        self.state.nodes += nodes
        self.state.rng[0] = self._sampler.state.ends
        self.busy_seconds += seconds
        return iterations, nodes
