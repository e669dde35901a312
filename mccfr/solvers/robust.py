"""Robust sampling as a run sees it; which actions it walks: `mccfr.solvers.sampling.robust`."""

from mccfr.config.solvers import RobustSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.partial import PartialAlgorithm
from mccfr.solvers.sampling.partial import EVENLY, Rule, whole_rule


class RobustSampling(PartialAlgorithm):
    """Some actions of the traverser, drawn evenly, one of everybody else."""

    options = RobustSamplingConfig

    def rule(self, game: Game) -> Rule:
        """As `PartialAlgorithm.rule`."""
        solver = self.config.solver
        assert isinstance(solver, RobustSamplingConfig)
        return whole_rule(game.tree.streets, EVENLY, most=solver.most_actions)
