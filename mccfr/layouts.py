"""What tables an algorithm needs for a game: the one place that knows all of them."""

import numpy as np
import numpy.typing as npt

from mccfr.config import Config
from mccfr.fullwidth import configured
from mccfr.games.game import Game
from mccfr.tables import NO_SUMS, TableLayout, make_layout, sum_forms
from mccfr.vector import public_chance

_SMALL_BYTES = 64 << 20


def table_layout(config: Config, game: Game, wide: npt.NDArray[np.uint8]) -> TableLayout:
    """The tables of a run of `config`.

    wide  [B] which blocks keep sums in float64, where the algorithm is not "cfr" (`mccfr.tables.sum_forms`)
    Raises `ValueError` where the algorithm does not suit the game.
    """
    match config.solver.algorithm:
        case "cfr":
            return configured.table_layout(game, config.solver)
        case "public-chance-sampling":
            return _public_chance(config, game, wide)
    if config.tables.strategy_sums == "preflop":
        wide = _first_street_only(game, wide)
    lazy = config.solver.discount == "dcfr"
    return make_layout(game, lazy=lazy, regret_dtype=config.tables.regret_dtype, wide=wide)


def _first_street_only(game: Game, wide: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """`wide` [B] with NO_SUMS after the first street."""
    if game.tree.streets < 2:
        raise ValueError(
            f"tables.strategy_sums = 'preflop' needs a game of several streets, and {game.name} has one: use 'all'"
        )
    return np.where(np.arange(len(wide)) < 2, wide, NO_SUMS).astype(np.uint8)


def _public_chance(config: Config, game: Game, wide: npt.NDArray[np.uint8]) -> TableLayout:
    """All sums in one dtype."""
    if game.cards is None:
        raise ValueError(
            f"solver.algorithm = 'public-chance-sampling' needs a game with cards, and {game.name} has none"
        )
    nothing = np.zeros(2 * game.tree.streets, np.int64)
    specs = public_chance.table_specs(game, config.tables.regret_dtype, "float64" if wide.any() else "float32")
    return TableLayout(specs, nothing, nothing, wide)


def forms_of_version_1(config: Config, game: Game, wide: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """[B] which blocks keep sums in float64 in a run of format version 1, whose manifest lists `wide` [B].

    For public chance sampling it does not say: with "auto" all sums were in float64 where those fitted into 64 MiB.
    """
    if config.solver.algorithm != "public-chance-sampling":
        return wide
    small = int((game.tree.row_slots * game.buckets).sum()) * 8 <= _SMALL_BYTES
    sum_dtype = config.tables.sum_dtype
    return sum_forms(len(wide), "float64" if sum_dtype == "auto" and small else sum_dtype)
