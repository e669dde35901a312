"""External-sampling MCCFR as a subclass of `Algorithm`, with its settings, floors and solver.

Regrets are kept above a floor if actions of very negative regret are skipped (pruning).
"""

from math import inf

from mccfr.config.solver_tables import ExternalSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.sampling.external.external_general import external_sampling_general, new_worklist
from mccfr.solvers.sampling.external.external_packed import Pruning, external_sampling_packed, new_packed_worklist
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver


class ExternalSolver(SampledSolver):
    """Solver of external sampling for one worker of a run.

    With sampled pruning it skips actions of very negative regret on most traversals.
    """

    _config: ExternalSamplingConfig

    def _choose_kernel(self, game: Game, packed: bool) -> None:
        self._kernel = external_sampling_packed if packed else external_sampling_general
        self._floored = self._config.negative_regret_pruning
        self._unit_chips = game.big_blind_chips or 1.0
        self._scratch = (new_packed_worklist if packed else new_worklist)(game.tree, self._tables.regret.dtype)

    def _own(self, total_nodes: int) -> tuple[Pruning, ...]:
        config = self._config
        if not config.negative_regret_pruning:
            return ()  # selects the kernel compiled without pruning
        active = int(total_nodes >= config.prune_after_nodes)
        below, floor = config.prune_below_bb * self._unit_chips, config.floor_bb * self._unit_chips
        # In strata the floor of the first street is applied to the totals and not to the copies.
        return (Pruning(active, below, floor, inf if self._strata is not None else floor),)

    def _next_change(self, total_nodes: int) -> int | None:
        config = self._config
        begins = config.negative_regret_pruning and total_nodes < config.prune_after_nodes
        return config.prune_after_nodes if begins else None


class ExternalSampling(SampledAlgorithm):
    """Trains by external sampling: all actions of the traverser, a sampled one of others and chance."""

    options = ExternalSamplingConfig
    walks_all = True
    iterates = ExternalSolver

    def first_floor(self, game: Game, total_nodes: int) -> float:
        """Return the least regret that is kept on the first street; -inf if there is no limit.

        It is in chips times the discount weight, as regrets are.  There is a limit only while actions of very negative
        regret are pruned.

        total_nodes  nodes that the run has touched so far
        """
        assert isinstance(self.config.solver, ExternalSamplingConfig)
        solver = self.config.solver
        prunes = solver.negative_regret_pruning and total_nodes >= solver.prune_after_nodes
        floor = solver.floor_bb * (game.big_blind_chips or 1.0)
        return -floor * self.schedule.weight(total_nodes) if prunes else -inf
