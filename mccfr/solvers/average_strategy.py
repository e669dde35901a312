"""Average strategy sampling as a run sees it; which actions it walks: `mccfr.solvers.sampling.average_strategy`."""

from mccfr.config.solvers import AverageStrategyConfig
from mccfr.games.game import Game
from mccfr.solvers.partial import PartialAlgorithm
from mccfr.solvers.sampling.partial import BY_AVERAGE, Rule, whole_rule


class AverageStrategySampling(PartialAlgorithm):
    """Actions of the traverser by his average strategy, one of everybody else."""

    options = AverageStrategyConfig

    def rule(self, game: Game) -> Rule:
        """As `PartialAlgorithm.rule`."""
        solver = self.config.solver
        assert isinstance(solver, AverageStrategyConfig)
        streets = game.tree.streets
        return whole_rule(streets, BY_AVERAGE, epsilon=solver.epsilon, tau=solver.threshold, beta=solver.bonus)
