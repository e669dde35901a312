"""Runs of algorithms that are trained no longer: what they have learnt is read as ever.

They were measured and won nothing (docs/algorithms.md); the gallery has each of them.  Tables and averages were those
of external sampling.
"""

from mccfr.games.game import Game
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.solver import Share
from mccfr.tables.layout import TableSet


class FormerSampling(SampledAlgorithm):
    """An algorithm of `mccfr.config.solvers.FORMER`."""

    walks_all = None

    @property
    def name(self) -> str:
        """As `Algorithm.name`."""
        return str(self.config.solver.__struct_config__.tag)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> SampledSolver:
        """Raise `ValueError`."""
        raise ValueError(self.problem())
