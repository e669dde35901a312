"""Full-width CFR as an `Algorithm`: its variant, its tables, and its solver.

The solver visits all histories, or a public tree with all hands at once, as the game and the options require.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from mccfr.config import plugins
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import FullWidthConfig
from mccfr.games.game import Game
from mccfr.solvers.histories.history_cfr import HistoryCfr, history_tables
from mccfr.solvers.histories.pruned_cfr import PrunedCfr, pruned_tables
from mccfr.solvers.iterative_solver import Iteration, IterationSolver
from mccfr.solvers.public import vector_cfr
from mccfr.solvers.solver import Algorithm, Averages, Share, Traits
from mccfr.solvers.variants import PRESETS, Variant, variant, warnings
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableLayout, TableSet
from storage.schema import ArraySpec


def variant_of(config: FullWidthConfig) -> Variant:
    """Return the CFR variant of a `[solver]` table: a preset or a user's variant, with changes.

    The keys alpha, beta, averaging_power, updates and horizon of the table replace parts of it, where given.

    Raises `ValueError` for an unknown name, and for parts that are invalid alone or together.
    """
    try:
        return variant(
            _named_variant(config.variant or "cfr"),
            alpha=config.alpha,
            beta=config.beta,
            averaging_power=config.averaging_power,
            updates=config.updates,
            horizon=config.horizon,
        )
    except ValueError as error:
        raise ValueError(f"solver.{error}") from None


def _named_variant(name: str) -> str | Variant:
    """Return a user's variant (plug-in) by its name; return any other name unchanged.

    Raises `ValueError` if the user's object of this name is no `Variant`.
    """
    loaded = None if name in PRESETS else plugins.find(plugins.VARIANTS, name)
    if loaded is None:
        return name
    if not isinstance(loaded, Variant):
        raise ValueError(f"variant = {name!r} is a {type(loaded).__name__}: an mccfr.Variant is needed")
    return loaded


def table_specs(game: Game, config: FullWidthConfig) -> tuple[ArraySpec, ...]:
    """Return names, shapes and dtypes of a run's tables.

    Shapes are [slots, buckets], where a slot is one action of a decision; tables with one value per decision are
    [decisions, buckets]. If the tree has every history, a decision is an infoset, and the second axis has length 1.

    Raises `ValueError` for options that the game does not allow.
    """
    chosen = variant_of(config)
    if config.best_response != "none" and config.pruning == "regret-based":
        raise ValueError(
            "solver.best_response = 'zero-reach' with solver.pruning = 'regret-based', which plays best responses of "
            "its own: choose pruning = 'partial' or 'none'"
        )
    if config.dtype == vector_cfr.NARROW and (config.pruning != "none" or not game.cards.dealt):
        raise ValueError(
            f"solver.dtype = {config.dtype!r} is for games with cards, all hands at once and without pruning: take "
            "'float32'"
        )
    if config.pruning == "regret-based":
        return pruned_tables(game, chosen)
    if not game.cards.dealt:
        return history_tables(game, chosen, config.dtype)
    return vector_cfr.table_specs(game, chosen, config.dtype)


def make_full_width(
    game: Game, config: FullWidthConfig, tables: Mapping[str, Any], iteration: int = 0, nodes: int = 0, threads: int = 1
) -> Iteration:
    """Return an object that runs full-width CFR on tables, over histories or a public tree.

    tables     {name: array} of `table_specs`, which iterations change in place
    iteration  iterations that are already done
    nodes      nodes already touched; over public trees not used, as they follow from the iterations
    threads    number of threads; used over public trees only
    """
    chosen = variant_of(config)
    state: dict[str, Any] = {"tables": tables, "iteration": iteration, "nodes_touched": nodes}
    if config.pruning == "regret-based":
        return PrunedCfr(game, chosen, threshold=float(config.prune_threshold), **state)
    if not game.cards.dealt:
        options: dict[str, Any] = {
            "partial_pruning": config.pruning == "partial",
            "zero_reach": config.best_response != "none",
        }
        return HistoryCfr(game, chosen, config.dtype, **options, **state)
    return vector_cfr.VectorCfr(game, chosen, config.dtype, threads, tables, iteration)


class FullWidth(Algorithm):
    """Trains full-width CFR over public trees or histories; threads share work in public trees."""

    options = FullWidthConfig
    unused_dtypes = ("regret_dtype", "sum_dtype")

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, FullWidthConfig)
        self._solver = config.solver

    @property
    def traits(self) -> Traits:
        """Return the properties of the algorithm; pruning and best responses need a tree of histories."""
        over_histories = self._solver.pruning != "none" or self._solver.best_response != "none"
        return Traits(
            seeded=False,
            axis="iterations",
            over_histories=over_histories,
            one_process=True,
            takes_rake=not over_histories,
            takes_locks=not over_histories,
            takes_seats=self._solver.pruning != "regret-based" and self._solver.best_response == "none",
        )

    @property
    def averages(self) -> Averages:
        """Return the object that computes the average strategy.

        Regret-based pruning needs all tables for it.
        """
        pruned = self._solver.pruning == "regret-based"
        return PrunedAverages(self._solver) if pruned else super().averages

    def completed(self, game: Game) -> Config:
        """Return the configuration, with `solver.horizon` filled in if the variant needs it.

        A variant with a schedule needs it: the iteration at which the schedule ends, by default `run.iterations`.
        A user's regret rule is compiled here, so that its errors are reported at once.

        Raises `ValueError` for an invalid variant, and for a schedule without planned iterations.  Also for a game with
        too many boards to list, and for a regret rule that does not compile.
        """
        if game.cards.dealt and not game.cards.can_list:
            raise ValueError(
                f"solver.algorithm = 'cfr' visits every board, and {game.name} has too many: take "
                "'external-sampling', 'outcome-sampling' or 'public-chance-sampling', which sample boards"
            )
        chosen, config = variant_of(self._solver), super().completed(game)
        _ = chosen.rule
        if self._solver.horizon is not None or not chosen.scheduled:
            return config
        planned = self.config.run.iterations
        if not planned:
            raise ValueError(
                f"solver.variant = {self._solver.variant!r} follows a schedule and needs the number of iterations that "
                "are planned: give run.iterations (or --iterations), or solver.horizon"
            )
        return msgspec.structs.replace(config, solver=msgspec.structs.replace(self._solver, horizon=planned))

    def warnings(self) -> list[str]:
        """Return a list of sentences about unusual exponents, and about iterations beyond the horizon."""
        horizon, last = self._solver.horizon, self.config.run.iterations
        sentences = [f"solver.{sentence}" for sentence in warnings(variant_of(self._solver))]
        if horizon is not None and last is not None and last > horizon:
            sentences.append(
                f"run.iterations = {last:,} goes beyond solver.horizon = {horizon:,}, which the run keeps: powers stay "
                "from there on where the schedule ends"
            )
        return sentences

    def layout(self, game: Game) -> TableLayout:
        """Return names, shapes and dtypes of the run's tables, without padding between buckets.

        Raises `ValueError` for options that the game does not allow, and for a schedule without planned iterations.
        Also for a game with too many boards to list.
        """
        self.completed(game)  # refuses what no run can be
        nothing = np.zeros(len(game.tree.row_slots), np.int64)
        return TableLayout(table_specs(game, self._solver), nothing)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> IterationSolver:
        """Return the solver that iterates on `tables` and changes them in place.

        share  `Share`: worker number, number of threads and state to continue from; None: a new run
        """
        share = share or Share()
        state = share.state
        full_width = make_full_width(game, self._solver, tables, state.iterations, state.nodes, share.workers)
        return IterationSolver(full_width, share)


class PrunedAverages(Averages):
    """Computes the average strategy of a run with regret-based pruning.

    Strategy sums of infosets that an iteration skips are out of date in the tables.  A copy of the tables is brought up
    to date before the sums are normalised.
    """

    of_sums = False

    def __init__(self, options: FullWidthConfig) -> None:
        self._options = options

    def takes(self, table: str) -> bool:
        """Return True: the average needs every table, to update the sums of pruned infosets."""
        del table
        return True

    def strategy(self, game: Game, tables: TableSet, nodes: int, iterations: int, name: str | None = None) -> Strategy:
        """Return the average strategy after updating a copy of the tables, which stay as they are.

        tables      all tables of the run
        iterations  iterations done so far; `nodes` is not used

        Raises `ValueError` for a `name`, because there is one average only.
        """
        if name is not None:
            return super().strategy(game, tables, nodes, iterations, name)
        own = {name: table.copy() for name, table in tables.items()}
        chosen, threshold = variant_of(self._options), float(self._options.prune_threshold)
        return PrunedCfr(game, chosen, threshold=threshold, tables=own, iteration=iterations).average_strategy()
