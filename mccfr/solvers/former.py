"""Reads runs of algorithms that this version no longer trains.

The runs are evaluated and exported as before; their tables and averages have the form of external sampling.  The
algorithms gained nothing in measurements (docs/algorithms.md); `mccfr.gallery` has plain versions of them.
"""

from mccfr.games.game import Game
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.solver import Share
from mccfr.tables.layout import TableSet


class FormerSampling(SampledAlgorithm):
    """An algorithm named in `mccfr.config.solvers.FORMER`."""

    walks_all = None

    @property
    def name(self) -> str:
        """Return `solver.algorithm` of the configuration."""
        return str(self.config.solver.__struct_config__.tag)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> SampledSolver:
        """Raise `ValueError`: the algorithm is not trained any more."""
        raise ValueError(self.problem())
