"""From a `[solver]` table with `algorithm = "cfr"` to a variant, its tables and the object that iterates."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mccfr.config import SolverConfig
from mccfr.fullwidth import vector_cfr
from mccfr.fullwidth.history_cfr import HistoryCfr, check_best_response, history_tables
from mccfr.fullwidth.pruned_cfr import PrunedCfr, pruned_tables
from mccfr.fullwidth.variants import Variant, variant, warnings
from mccfr.games.game import Game
from mccfr.strategy import Strategy
from mccfr.tables import TableLayout
from storage.schema import ArraySpec

Tables = Mapping[str, npt.NDArray[Any]]


class FullWidth(Protocol):
    """Full-width CFR on given tables, changed in place."""

    iteration: int  # iterations done: with the tables, the whole state

    @property
    def nodes_touched(self) -> int:
        """Nodes touched so far."""

    def iterate(self, count: int) -> None:
        """Run iterations."""

    def average_strategy(self) -> Strategy:
        """The average strategy of the iterations so far."""


def variant_of(config: SolverConfig) -> Variant:
    """The variant of a `[solver]` table: a preset, its parts overridden; `ValueError` for parts that make no sense."""
    try:
        return variant(
            config.variant or "cfr",
            regret_minimiser=config.regret_minimiser,
            optimistic=config.optimistic,
            alpha=config.alpha,
            beta=config.beta,
            averaging_power=config.averaging_power,
            updates=config.updates,
        )
    except ValueError as error:
        raise ValueError(f"solver.{error}") from None


def variant_warnings(config: SolverConfig) -> list[str]:
    """Sentences about settings that are allowed but rarely meant."""
    return [f"solver.{sentence}" for sentence in warnings(variant_of(config))] if config.algorithm == "cfr" else []


def table_specs(game: Game, config: SolverConfig) -> tuple[ArraySpec, ...]:
    """Names, shapes (slots first) and dtypes of the tables; `ValueError` for what the game does not allow."""
    chosen = variant_of(config)
    _check_best_response(game, config)
    if config.pruning == "regret-based":
        return pruned_tables(game, chosen)
    if game.cards is None:
        return history_tables(game, chosen, config.dtype)
    return vector_cfr.table_specs(game, chosen, config.dtype)


def _check_best_response(game: Game, config: SolverConfig) -> None:
    """`ValueError` for best responses where they do not go together with the rest, or where none would be played."""
    try:
        check_best_response(config.best_response, variant_of(config))
    except ValueError as error:
        raise ValueError(f"solver.{error}") from None
    if config.best_response == "none":
        return
    if config.pruning == "regret-based":
        raise ValueError(
            f"solver.best_response = {config.best_response!r} with solver.pruning = 'regret-based', which plays best "
            "responses of its own: choose pruning = 'partial' or 'none'"
        )
    if game.cards is not None:
        raise ValueError(
            f"solver.best_response = {config.best_response!r} goes over histories, and {game.name} deals cards beside "
            "its tree: set solver.pruning = 'partial', which puts them into it and changes no result"
        )


def table_layout(game: Game, config: SolverConfig) -> TableLayout:
    """The tables of a full-width run as runs keep them: nothing is padded."""
    blocks = 2 * game.tree.streets
    return TableLayout(
        table_specs(game, config), np.zeros(blocks, np.int64), np.zeros(blocks, np.int64), np.zeros(blocks, np.uint8)
    )


def make_full_width(
    game: Game, config: SolverConfig, tables: Tables, iteration: int = 0, nodes: int = 0, threads: int = 1
) -> FullWidth:
    """What iterates on `tables`, by the names of `table_specs`, going on after `iteration` with `nodes` touched."""
    chosen = variant_of(config)
    if config.pruning == "regret-based":
        threshold = float(config.prune_threshold)
        return PrunedCfr(game, chosen, threshold=threshold, tables=tables, iteration=iteration, nodes_touched=nodes)
    if game.cards is None:
        return HistoryCfr(
            game,
            chosen,
            config.dtype,
            partial_pruning=config.pruning == "partial",
            best_response=config.best_response,
            tables=tables,
            iteration=iteration,
            nodes_touched=nodes,
        )
    return vector_cfr.VectorCfr(game, chosen, config.dtype, threads, tables, iteration)


def pruned_average(game: Game, config: SolverConfig, tables: Tables, iteration: int) -> Strategy:
    """The average strategy of a run with regret-based pruning, whose sums lag behind where nobody has been."""
    own = {name: table.copy() for name, table in tables.items()}
    return make_full_width(game, config, own, iteration).average_strategy()
