"""CFR-BR as a run sees it; the algorithm: `mccfr.solvers.public.cfr_br`."""

import numpy as np
import numpy.typing as npt

from mccfr.config.solvers import CfrBrConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.iterating import IterationSolver
from mccfr.solvers.public.cfr_br import CfrBr, listed_cards
from mccfr.solvers.public.vector_cfr import table_specs
from mccfr.solvers.solver import Algorithm, Share, Traits
from mccfr.solvers.variants import Variant, variant
from mccfr.tables.layout import TableLayout, TableSet


class CfrBestResponse(Algorithm):
    """Full-width CFR of each abstracted player against a best response that knows its cards; in one process."""

    options = CfrBrConfig
    traits = Traits(seeded=False, axis="iterations", one_process=True)

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, CfrBrConfig)
        self._solver = config.solver

    @property
    def _variant(self) -> Variant:
        found = variant(self._solver.variant)
        if found.scheduled:
            raise ValueError(
                f"solver.variant = {self._solver.variant!r} follows a schedule, which 'cfr-br' has none of: take "
                "'cfr', 'cfr+', 'lcfr' or 'dcfr'"
            )
        return found

    def completed(self, game: Game) -> Config:
        """As `Algorithm.completed`; `ValueError` for a game of boards that are not listed."""
        listed_cards(game)
        _ = self._variant
        return super().completed(game)

    def layout(self, game: Game, wide: npt.NDArray[np.uint8] | None = None) -> TableLayout:
        """As `Algorithm.layout`: nothing is padded."""
        if wide is None:
            self.completed(game)
        nothing = np.zeros(2 * game.tree.streets, np.int64)
        return TableLayout(table_specs(game, self._variant, "float64"), nothing, nothing)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> IterationSolver:
        """As `Algorithm.solver`."""
        share = share or Share()
        return IterationSolver(CfrBr(game, self._variant, tables, share.state.iterations), share)
