"""External-sampling MCCFR as a run sees it; the kernels: `packed` and `general` beside it."""

from dataclasses import replace
from math import inf

from mccfr.config.solvers import ExternalSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.sampling.external.general import external_sampling_general, new_worklist
from mccfr.solvers.sampling.external.packed import Pruning, external_sampling_packed, new_packed_worklist
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.solver import Traits


class ExternalSolver(SampledSolver):
    """Iterations of external sampling, with or without sampled pruning."""

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
            return ()  # a kernel with nothing of pruning in it
        active = int(total_nodes >= config.prune_after_nodes)
        floor = float(config.floor_chips)
        # Copies of the first street are added up before anything keeps their regrets above a floor.
        return (Pruning(active, float(config.prune_below_chips), floor, inf if self._strata is not None else floor),)

    def _next_change(self, total_nodes: int) -> int | None:
        config = self._config
        begins = config.negative_regret_pruning and total_nodes < config.prune_after_nodes
        return config.prune_after_nodes if begins else None


class ExternalSampling(SampledAlgorithm):
    """All actions of the traverser, one of everybody else."""

    options = ExternalSamplingConfig
    walks_all = True
    iterates = ExternalSolver

    def first_floor(self, total_nodes: int) -> float:
        """As `SampledAlgorithm.first_floor`."""
        assert isinstance(self.config.solver, ExternalSamplingConfig)
        solver = self.config.solver
        prunes = solver.negative_regret_pruning and total_nodes >= solver.prune_after_nodes
        return -solver.floor_chips * self.schedule.weight(total_nodes) if prunes else -inf

    @property
    def traits(self) -> Traits:
        """Lost updates show in sums that neither fade nor miss what was skipped."""
        solver, sweeps = self.config.solver, self.schedule.sweeps
        assert isinstance(solver, ExternalSamplingConfig)
        locks = getattr(self.config.game, "locks", None)  # whose sums are no sums
        whole = not (solver.negative_regret_pruning or sweeps or locks)
        return replace(super().traits, counts_lost_updates=whole)
