"""CFR-BR as a run sees it: each player learns on his buckets against an opponent who knows his real cards.

Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games" (AAAI 2012): while CFR
between two abstracted players goes to strategies that exploit each other's blindness, and may be exploited more the
finer the buckets are, this goes to the least exploitable strategy that the buckets can say.  What iterates is in
`mccfr.solvers.public.public_chance.responding`.
"""

from dataclasses import replace
from math import prod

import msgspec
import numpy as np

from mccfr.config.solvers import CfrBrConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.opponents import opponent_game
from mccfr.solvers.public.public_chance.algorithm import PublicChanceSolver, known_state
from mccfr.solvers.public.public_chance.responding import OPTIONS, RespondedSampling, responding_specs
from mccfr.solvers.public.public_chance.sampling import table_specs
from mccfr.solvers.solver import Algorithm, Share, Traits
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import TableLayout, TableSet

HANDS_A_CELL = 20
"""Hands that walks come to at nodes in a period, for each cell of the players' tables that is swept then."""


def trunk_game(solver: CfrBrConfig, game: Game) -> Game | None:
    """The game on the buckets that opponents have before the last street; None: on those of the players.

    Raises `ValueError` for a game without cards, and for buckets that there are not.
    """
    if not game.cards.dealt:
        raise ValueError(f"solver.algorithm = 'cfr-br' needs a game with cards, and {game.name} has none")
    if solver.trunk == "own":
        return None
    if solver.trunk == "lossless":
        if game.cards.boards is None:
            raise ValueError(
                f"solver.trunk = 'lossless': the hands of {game.name} are too many; name an abstraction that is finer "
                "than the players', or take 'own'"
            )
        return None if game.known_cards is None else replace(game, cards=game.known_cards)
    return opponent_game(solver, game)


class CfrBestResponse(Algorithm):
    """CFR of each abstracted player against a best response that knows its cards, on sampled boards."""

    options = CfrBrConfig
    traits = Traits(sweeps=True)

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, CfrBrConfig)
        self._solver = config.solver

    @property
    def schedule(self) -> Schedule:
        """Of the learners."""
        return replace(OPTIONS.schedule, period_nodes=self._solver.period_nodes or OPTIONS.schedule.period_nodes)

    def completed(self, game: Game) -> Config:
        """With a period so long that sweeps of large tables cost little, unless the configuration has one."""
        cells = sum(prod(spec.shape) for spec in table_specs(game))
        period = HANDS_A_CELL * cells // max(1, game.cards.most_hands)
        if self._solver.period_nodes is not None or period <= OPTIONS.schedule.period_nodes:
            return self.config
        solver = msgspec.structs.replace(self._solver, period_nodes=period)
        return msgspec.structs.replace(self.config, solver=solver)

    def layout(self, game: Game) -> TableLayout:
        """As `Algorithm.layout`: nothing is padded."""
        tables, trunk = self.config.tables, trunk_game(self._solver, game)
        sum_dtype = "float64" if tables.sum_dtype == "float64" else "float32"
        specs = responding_specs(game, trunk or game, tables.regret_dtype, sum_dtype)
        return TableLayout(specs, np.zeros(2 * game.tree.streets, np.int64))

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> PublicChanceSolver:
        """As `Algorithm.solver`."""
        share = share or Share()
        given = trunk_game(self._solver, game), self._solver.seed, share.worker, known_state(share)
        options = replace(OPTIONS, schedule=self.schedule)
        return PublicChanceSolver(RespondedSampling(game, tables, *given, options), share)
