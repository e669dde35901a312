"""Targeted CFR as a run sees it; what a traversal is for: `mccfr.solvers.sampling.targeted`."""

import numpy as np

from mccfr.config.solvers import TargetedSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.partial import PartialAlgorithm
from mccfr.solvers.sampling.partial import Rule, whole_rule


class TargetedSampling(PartialAlgorithm):
    """All actions of the traverser on some streets, one on others and of everybody else."""

    options = TargetedSamplingConfig

    def rule(self, game: Game) -> Rule:
        """As `PartialAlgorithm.rule`."""
        solver, streets = self.config.solver, game.tree.streets
        assert isinstance(solver, TargetedSamplingConfig)
        if solver.full_share == 1:
            return whole_rule(streets)
        targets = solver.targets or (range(streets // 2, streets),)
        above = [street for target in targets for street in target if street >= streets]
        if above:
            raise ValueError(
                f"solver.targets names street {above[0]}, and {game.name} has {streets}: streets count from 0"
            )
        sets = np.zeros((1 + len(targets), streets), np.uint8)
        sets[0] = 1
        for row, target in zip(sets[1:], targets, strict=True):
            row[list(target)] = 1
        shares = np.array(solver.target_shares or [1.0] * len(targets))
        ends = np.concatenate(
            [[solver.full_share], solver.full_share + (1 - solver.full_share) * np.cumsum(shares / shares.sum())]
        )
        return whole_rule(streets)._replace(close=solver.close_chips, targets=sets, ends=ends)
