"""Outcome-sampling MCCFR as a subclass of `Algorithm`: one sampled path per player and deal."""

import numpy as np

from mccfr.config.solver_tables import OutcomeSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.sampling.outcome.outcome_general import new_seat_paths, outcome_sampling_general
from mccfr.solvers.sampling.outcome.outcome_packed import outcome_sampling_packed
from mccfr.solvers.sampling.outcome.paths import deals_together, new_paths
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.trees.compiled import DECISION, MAX_PACKED_ACTIONS, NO_PARENT, CompiledTree


def tree_depth(tree: CompiledTree) -> int:
    """Return the largest number of decisions on a path from the root of a game tree, without chance nodes."""
    depth = np.zeros(len(tree.parent), np.int64)
    for node, parent in enumerate(tree.parent):
        depth[node] = (0 if parent == NO_PARENT else depth[parent]) + (tree.arrays.kind[node] == DECISION)
    return int(depth.max())


class OutcomeSolver(SampledSolver):
    """Solver of outcome sampling for one worker of a run: runs batches of iterations."""

    _config: OutcomeSamplingConfig
    _packs_pots = False

    def _choose_kernel(self, game: Game, packed: bool) -> None:
        self._kernel = outcome_sampling_packed if packed else outcome_sampling_general
        most = MAX_PACKED_ACTIONS if packed else int(game.tree.arrays.count.max())
        depth, dtype = tree_depth(game.tree), self._tables.regret.dtype
        self._together = deals_together(int(game.infosets.sum()))
        self._scratch = (
            new_paths(self._together, depth, most, 2 * game.tree.streets, dtype)
            if packed
            else new_seat_paths(self._together, depth, most, game.tree, dtype)
        )

    def _own(self, total_nodes: int) -> tuple[float]:
        del total_nodes
        return (self._config.epsilon,)


class OutcomeSampling(SampledAlgorithm):
    """Trains by outcome sampling: one sampled path through the tree for each player and deal."""

    options = OutcomeSamplingConfig
    walks_all = False
    iterates = OutcomeSolver
