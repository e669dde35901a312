"""What tables an algorithm needs for a game: the one place that knows all of them."""

import numpy as np
import numpy.typing as npt

from mccfr.config import Config
from mccfr.fullwidth import configured
from mccfr.games.game import Game
from mccfr.tables import AUTO_WIDE_BYTES, NO_SUMS, TableLayout, choose_wide, make_layout
from mccfr.vector import public_chance


def table_layout(config: Config, game: Game, wide: npt.NDArray[np.uint8] | None = None) -> TableLayout:
    """The tables of a run of `config`.

    wide  [B] which blocks keep sums in float64 under external and outcome sampling; None: wherever that is cheap
    Raises `ValueError` where the algorithm does not suit the game.
    """
    match config.solver.algorithm:
        case "cfr":
            return configured.table_layout(game, config.solver)
        case "public-chance-sampling":
            return _public_chance(config, game)
    lazy = config.solver.discount == "dcfr"
    if config.tables.strategy_sums == "preflop":
        wide = _first_street_only(game, choose_wide(game, config.tables.sum_dtype) if wide is None else wide)
    return make_layout(game, lazy=lazy, regret_dtype=config.tables.regret_dtype, wide=wide)


def _first_street_only(game: Game, wide: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """`wide` [B] with NO_SUMS after the first street."""
    if game.tree.streets < 2:
        raise ValueError(
            f"tables.strategy_sums = 'preflop' needs a game of several streets, and {game.name} has one: use 'all'"
        )
    return np.where(np.arange(len(wide)) < 2, wide, NO_SUMS).astype(np.uint8)


def _public_chance(config: Config, game: Game) -> TableLayout:
    """Sums in float64 where all of them are small."""
    if game.cards is None:
        raise ValueError(
            f"solver.algorithm = 'public-chance-sampling' needs a game with cards, and {game.name} has none"
        )
    cells = int((game.tree.row_slots * game.buckets).sum())
    small = "float64" if cells * 8 <= AUTO_WIDE_BYTES else "float32"
    sums = small if config.tables.sum_dtype == "auto" else config.tables.sum_dtype
    nothing = np.zeros(2 * game.tree.streets, np.int64)
    specs = public_chance.table_specs(game, config.tables.regret_dtype, sums)
    return TableLayout(specs, nothing, nothing, nothing.astype(np.uint8))
