"""External-sampling MCCFR as an `Algorithm`; the kernels are in `packed` and `general`."""

from dataclasses import replace
from math import inf

import msgspec

from mccfr.config.solvers import ExternalSamplingConfig
from mccfr.config.table import first_refused
from mccfr.games.game import Game
from mccfr.solvers.forecast import Forecast
from mccfr.solvers.opponents import OPPONENT, opponent_game, seated_cards
from mccfr.solvers.sampling.external.general import external_sampling_general, new_worklist
from mccfr.solvers.sampling.external.packed import Pruning, external_sampling_packed, new_packed_worklist
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.solver import Share, Traits
from mccfr.tables.layout import NO_SUMS, TableArrays, TableLayout, TableSet, make_layout, table_name

GROUP = 512
"""Consecutive iterations of one learner in training against opponents on other buckets."""


class ExternalSolver(SampledSolver):
    """Runs iterations of external sampling, with or without sampled pruning."""

    _config: ExternalSamplingConfig

    def _choose_kernel(self, game: Game, packed: bool) -> None:
        nodes = len(self._tree) if packed else len(game.tree.arrays.kind)
        self._kernel = external_sampling_packed if packed else external_sampling_general
        new_scratch = new_packed_worklist if packed else new_worklist
        self._floored = self._config.negative_regret_pruning
        self._scratch = new_scratch(nodes, 2 * game.tree.streets, self._tables.regret.dtype)

    def _own(self, total_nodes: int) -> tuple[Pruning, ...]:
        config = self._config
        if not config.negative_regret_pruning:
            return ()  # selects the kernel compiled without pruning
        active = int(total_nodes >= config.prune_after_nodes)
        floor = float(config.floor_chips)
        # In strata the floor of the first street is applied to the totals and not to the copies.
        return (Pruning(active, float(config.prune_below_chips), floor, inf if self._strata is not None else floor),)

    def _next_change(self, total_nodes: int) -> int | None:
        config = self._config
        begins = config.negative_regret_pruning and total_nodes < config.prune_after_nodes
        return config.prune_after_nodes if begins else None


class AgainstOpponents(ExternalSolver):
    """Runs iterations against opponents on other buckets.

    Groups of iterations alternate between the two learners.

    In a learner's groups, that player has the run's buckets and rows, and the other seat has the opponent's.
    """

    def __init__(
        self, game: Game, opponents: Game, algorithm: SampledAlgorithm, tables: TableSet, share: Share
    ) -> None:
        super().__init__(game, algorithm, tables, share)
        self._of_learner = [_learner_arrays(tables, learner) for learner in range(2)]
        seed = algorithm.config.solver.seed
        self._dealers = [cards.dealer(seed, share.worker) for cards in seated_cards(game, opponents)]
        self._dealer = self._dealers[0]
        if self._sweep is not None:
            self._sweep.also([table for name, table in tables.items() if name.startswith(OPPONENT)], self._schedule)

    def _draw(self, first: int) -> None:
        """Draw the deals for the rest of a group, from the cards of the group's learner."""
        group, learner = first // GROUP, first // GROUP % 2
        self._tables, self._drawn = self._of_learner[learner], (first, (group + 1) * GROUP)
        self._dealers[learner].draw(first, self._drawn[1] - first, self._deals)


def _learner_arrays(tables: TableSet, learner: int) -> TableArrays:
    """Return the kernel arrays for a learner's groups: its own tables, and the opponent's regrets."""
    assert tables.kernel is not None
    regret, regrets, sums = tables.kernel.regret, tables.kernel.regret_base.copy(), tables.kernel.sum_base.copy()
    for block in range(1 - learner, len(regrets), 2):
        sums[block] = NO_SUMS
        if (table := tables.get(table_name(OPPONENT, block))) is not None:
            regrets[block] = (table.ctypes.data - regret.ctypes.data) // regret.itemsize
    return tables.kernel._replace(regret_base=regrets, sum_base=sums)


class ExternalSampling(SampledAlgorithm):
    """External sampling: all actions of the traverser, one sampled action of the opponent and of chance."""

    options = ExternalSamplingConfig
    walks_all = True
    iterates = ExternalSolver

    def problem(self) -> str | None:
        """Return why the configuration cannot be trained, or None.

        Strata do not support opponents on other buckets.
        """
        apart = self.config.run.strata is None or self.config.solver.opponents is None
        checks = [("run.strata", apart, "left out with solver.opponent_abstraction")]
        return super().problem() or first_refused(self.config, checks)

    def layout(self, game: Game) -> TableLayout:
        """Return the layout of the run's tables, with the opponents' regrets if they have other buckets."""
        layout, opponents = super().layout(game), opponent_game(self.config.solver, game)
        if opponents is None:
            return layout
        theirs = make_layout(opponents, regret_dtype=self.config.tables.regret_dtype, summed_streets=0).specs
        named = [msgspec.structs.replace(spec, name=spec.name.replace("regret", OPPONENT)) for spec in theirs]
        return replace(layout, specs=(*layout.specs, *named))

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> ExternalSolver:
        """Return the solver that iterates on the tables."""
        opponents = opponent_game(self.config.solver, game)
        given = self, tables, share or Share()
        return ExternalSolver(game, *given) if opponents is None else AgainstOpponents(game, opponents, *given)

    def forecast(self, game: Game) -> Forecast | None:
        """Return the expected counts of one iteration; visits are halved with opponents on other buckets."""
        found = super().forecast(game)
        if found is None or found.visits is None or self.config.solver.opponents is None:
            return found
        return replace(found, visits=found.visits / 2)

    def first_floor(self, total_nodes: int) -> float:
        """Return the floor of first-street regrets at a count of nodes; minus infinity if there is none."""
        assert isinstance(self.config.solver, ExternalSamplingConfig)
        solver = self.config.solver
        prunes = solver.negative_regret_pruning and total_nodes >= solver.prune_after_nodes
        return -solver.floor_chips * self.schedule.weight(total_nodes) if prunes else -inf

    @property
    def traits(self) -> Traits:
        """Return the traits.

        Lost updates can be counted only if strategy sums are not discounted and no part of a traversal is skipped.
        """
        solver, sweeps = self.config.solver, self.schedule.sweeps
        assert isinstance(solver, ExternalSamplingConfig)
        locks = getattr(self.config.game, "locks", None)  # strategy sums of locked rows do not count visits
        apart = solver.opponents is not None
        whole = not (solver.negative_regret_pruning or sweeps or locks or apart)
        traits = super().traits
        return replace(traits, counts_lost_updates=whole, takes_locks=traits.takes_locks and not apart)
