"""CFR-BR as an `Algorithm`: training on buckets against an opponent who sees the real cards.

Source: Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games" (AAAI 2012).  CFR
between two abstracted players learns to exploit the other's blindness, and may become more exploitable with finer
buckets.  CFR-BR approaches the least exploitable strategy that the buckets can express.  The iterations are in
`mccfr.solvers.public.public_chance.sampled_board_responses`.
"""

from dataclasses import replace
from math import prod

import msgspec
import numpy as np

from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import CfrBrConfig
from mccfr.games.game import Game
from mccfr.solvers.public.public_chance.public_chance_algorithm import PublicChanceSolver, known_state
from mccfr.solvers.public.public_chance.public_chance_sampling import table_specs
from mccfr.solvers.public.public_chance.sampled_board_responses import OPTIONS, RespondedSampling, responding_specs
from mccfr.solvers.solver import Algorithm, Share, Traits
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import TableLayout, TableSet

HANDS_A_CELL = 20
"""Visits in a discount period for each cell of the players' tables; a visit is one hand at one node.

It bounds the cost of discounts, which change all cells at the end of a period.
"""


def trunk_game(solver: CfrBrConfig, game: Game) -> Game | None:
    """Return the game with the opponents' buckets, or None if they use the players' buckets.

    The opponents learn by CFR on buckets in the trunk, which is all streets but the last.  On the last street they play
    best responses with their real cards.

    Raises `ValueError` for a game without cards, and for a value of `solver.trunk` that does not suit the game.
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
        if game.known_cards is None:
            raise ValueError(
                f"solver.trunk = 'lossless' has no effect on {game.name}, which has no buckets: leave it out"
            )
        return replace(game, cards=game.known_cards)
    if game.opponent_cards is None:
        raise ValueError(f"solver.trunk = {solver.trunk!r}: the game comes without its buckets; set `opponent_cards`")
    return replace(game, cards=game.opponent_cards)


class CfrBestResponse(Algorithm):
    """Trains by CFR-BR on sampled boards: CFR on buckets against a best response that sees the real cards."""

    options = CfrBrConfig
    traits = Traits(sweeps=True)

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, CfrBrConfig)
        self._solver = config.solver

    @property
    def schedule(self) -> Schedule:
        """Return the discount schedule of the players (their opponents have another one)."""
        return replace(OPTIONS.schedule, period_nodes=self._solver.period_nodes or OPTIONS.schedule.period_nodes)

    def completed(self, game: Game) -> Config:
        """Return the configuration with a discount period so long that discounts cost little time.

        It has at least about `HANDS_A_CELL` (20) visits for each cell of the players' tables.  A period that the
        configuration sets is kept.  If the default period (100,000 nodes) is long enough, it stays unset.
        """
        cells = sum(prod(spec.shape) for spec in table_specs(game))
        period = HANDS_A_CELL * cells // max(1, game.cards.most_hands)
        if self._solver.period_nodes is not None or period <= OPTIONS.schedule.period_nodes:
            return self.config
        solver = msgspec.structs.replace(self._solver, period_nodes=period)
        return msgspec.structs.replace(self.config, solver=solver)

    def layout(self, game: Game) -> TableLayout:
        """Return names, shapes [slot, bucket] and dtypes of the tables of players and opponents.

        A slot is one action of a decision.  There is no padding.  Raises `ValueError` for a game without cards, and for
        a value of `solver.trunk` that does not suit the game.
        """
        tables, trunk = self.config.tables, trunk_game(self._solver, game)
        sum_dtype = "float64" if tables.sum_dtype == "float64" else "float32"
        specs = responding_specs(game, trunk or game, tables.regret_dtype, sum_dtype)
        return TableLayout(specs, np.zeros(2 * game.tree.streets, np.int64))

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> PublicChanceSolver:
        """Return the solver that iterates on `tables` and changes them in place.

        share  `Share`: worker number, number of workers and state to continue from; None: a new run
        """
        share = share or Share()
        state = trunk_game(self._solver, game), self._solver.seed, share.worker, known_state(share)
        options = replace(OPTIONS, schedule=self.schedule)
        return PublicChanceSolver(RespondedSampling(game, tables, *state, options), share)
