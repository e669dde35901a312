"""Deep CFR and Single Deep CFR as an `Algorithm`: tables, solver and both average strategies."""

from typing import Any

import msgspec
import numpy as np

from mccfr.config.game_tables import FlopHoldemGame
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep.averages_as_tables import check_tabulated
from mccfr.solvers.deep.network_strategy import Networks, average_tables, network_tables
from mccfr.solvers.deep.sampled_cards_cfr import (
    SampledCardsCfr,
    SampledCardsState,
    card_network_specs,
    check_options,
    samples_cards,
)
from mccfr.solvers.deep.single_deep_cfr import SingleDeepCfr
from mccfr.solvers.deep.training_state import (
    EXPLAINED,
    LOSS,
    NETWORKS,
    SAMPLES,
    FitState,
    TrainingState,
    keeps_sums,
    listed_specs,
)
from mccfr.solvers.iterative_solver import IterationSolver
from mccfr.solvers.solver import Algorithm, Averages, Share, Traits
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableLayout, TableSet

_FLOPS = 3e10  # floating-point operations a second of one processor in matrix products of these sizes
_FIT_PASSES = 4  # products with all parameters for each sample of a step: forward, two backward, last layer
_LISTED_SECONDS, _DEALT_SECONDS = 1e-6, 2e-5  # for a traversal; measurements: docs/measured/deep.md


class DeepCfr(Algorithm):
    """Trains by Deep CFR or Single Deep CFR in one process, whose threads share the traversals."""

    options = DeepCfrConfig
    unused_dtypes = ("sum_dtype",)
    traits = Traits(axis="iterations", one_process=True, looks_hands_up=False)  # networks see cards

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, DeepCfrConfig)
        self._solver = config.solver

    def completed(self, game: Game) -> Config:
        """Return the configuration, with horizon and iterations filled in if the run keeps all networks.

        `solver.horizon` is the number of iterations for whose networks there is space.  If it is not set, it becomes
        `run.iterations`; if `run.iterations` is not set, it becomes the horizon.

        Raises `ValueError` if a run that keeps all networks has neither, or if `run.iterations` exceeds the horizon.
        Also for options that the game does not support.
        """
        solver, planned, completed = self._solver, self.config.run.iterations, super().completed(game)
        if samples_cards(game):
            check_options(game, solver)
            self._check_evaluation(game)
        if solver.fit == "table" or solver.keep_networks != "all":
            return completed
        horizon = solver.horizon or planned
        if horizon is None:
            raise ValueError(
                "solver.keep_networks = 'all' needs the number of iterations that are planned: give run.iterations (or "
                "--iterations), or solver.horizon"
            )
        if planned is not None and planned > horizon:
            raise ValueError(
                f"run.iterations = {planned:,} goes beyond solver.horizon = {horizon:,}, for whose networks the run "
                "has room: start a new run with a larger horizon"
            )
        run = msgspec.structs.replace(completed.run, iterations=planned or horizon)
        return msgspec.structs.replace(completed, solver=msgspec.structs.replace(solver, horizon=horizon), run=run)

    def _check_evaluation(self, game: Game) -> None:
        """Raise `ValueError` if `[evaluation]` requests evaluations, but the average cannot be a table.

        Evaluations read tables.  The hands of some games have too many classes (hands equal up to suits) for a table.
        """
        points = self.config.evaluation
        try:
            check_tabulated(game)
        except ValueError as error:
            if points.measures:
                raise ValueError(
                    f"{error}: set evaluation.every_checkpoint and at_end to false, and leave at_iterations out"
                ) from None

    @property
    def averages(self) -> "DeepAverages":
        """Return `DeepAverages`, which computes average strategies of both kinds of Deep CFR."""
        return DeepAverages(self, self._solver)

    def options_on(self, game: Game) -> DeepCfrConfig:
        """Return the `[solver]` table for a game, with the horizon filled in."""
        config = self.completed(game).solver
        assert isinstance(config, DeepCfrConfig)
        return config

    def layout(self, game: Game) -> TableLayout:
        """Return the `TableLayout`: names, shapes and dtypes of memories, networks and counters.

        The tables have no padding.
        """
        nothing = np.zeros(2 * game.tree.streets, np.int64)
        make = card_network_specs if samples_cards(game) else listed_specs
        specs = make(game, self.options_on(game), self.config.tables.regret_dtype)
        return TableLayout(specs, nothing)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> IterationSolver:
        """Return the solver whose iterations change `tables` in place.

        share  `Share`: worker number, number of threads and state to continue from; None: a new run with one thread
        """
        share = share or Share()
        kind: Any = SampledCardsCfr if samples_cards(game) else SingleDeepCfr
        resumed = share.state.iterations, share.state.nodes, share.workers
        return IterationSolver(kind(game, self.options_on(game), tables, *resumed), share)

    def planned(self, game: Game, layout: TableLayout) -> dict[str, Any]:
        """Return {field: number} for the plan of a run: sizes and the estimated speed.

        "memories_bytes" and "networks_bytes" are the sizes of both players' sample memories and networks.  "parameters"
        is the number of parameters of one network, the larger of the two.  "seconds_per_iteration" is estimated for one
        processor.

        layout  layout of the planned run's tables
        """
        config, size = self.options_on(game), sum(spec.nbytes for spec in layout.specs if "memory/" in spec.name)
        networks = [spec for spec in layout.specs if spec.name.startswith("network")]
        parameters = max((spec.shape[-1] for spec in networks if spec.name.startswith("network/")), default=0)
        dealt = samples_cards(game)
        rows = int(game.infosets[::2].sum()) if config.batch == "all" else int(config.batch)
        if not dealt:  # samples of the same infoset are merged
            rows = min(rows, int(game.infosets[::2].sum()))
        passes = _FIT_PASSES * config.steps if config.fit == "network" else 0
        fit = passes * rows * 2 * parameters / _FLOPS
        walked = config.traversals * (_DEALT_SECONDS if dealt else _LISTED_SECONDS)
        return {
            "memories_bytes": size,
            "networks_bytes": sum(spec.nbytes for spec in networks),
            "parameters": parameters,
            "seconds_per_iteration": 2 * (walked + fit),
        }


class DeepAverages(Averages):
    """Computes a run's average strategies: Single Deep CFR's ("sd"), Deep CFR's ("network").

    "sd" is the weighted mean of the strategies of all iterations, or of the networks kept if these are fewer.  A run
    that lists its infosets, and keeps all networks or fits tables, adds the strategies to strategy sums during
    training.  Otherwise the mean is computed from the networks.  "network" is fitted to samples of the strategies when
    it is requested.
    """

    def __init__(self, algorithm: DeepCfr, solver: DeepCfrConfig) -> None:
        dealt = isinstance(algorithm.config.game, FlopHoldemGame)
        self._algorithm, self._keeps_sums = algorithm, keeps_sums(solver) and not dealt
        self.names = tuple(solver.averages)
        self.of_sums = self._keeps_sums and self.names[0] == "sd"
        self.keeps_networks = solver.fit == "network"

    def takes(self, table: str) -> bool:
        """Return whether `table`, a table's name, is needed for average strategies or `figures`.

        The networks are used only if the run keeps no strategy sums.  The memories of regrets are not used.
        """
        names = {"counters", "figures", "strategy_sum", "strategy_memory"}
        return table.partition("/")[0] in (names if self._keeps_sums else names | {"networks"})

    def strategy(self, game: Game, tables: TableSet, nodes: int, iterations: int, name: str | None = None) -> Strategy:
        """Return one average strategy as a table; for "network" this may fit a network first.

        nodes       not used
        iterations  iterations of the run until it had these tables
        name        "sd" (Single Deep CFR) or "network" (Deep CFR); None: the first of `solver.averages`

        Raises `ValueError` for another name, and if hands have too many classes for a table.
        """
        if samples_cards(game):
            check_tabulated(game)
            return self.networks(game, tables, iterations, name).strategy()
        state = TrainingState(game, self._algorithm.options_on(game), tables)
        return state.average(self._named(name), iterations)

    def networks(self, game: Game, tables: TableSet, iterations: int, name: str | None = None) -> Networks:
        """Return the `Networks` of one average strategy; Deep CFR's network is fitted here.

        iterations  iterations of the run until it had these tables
        name        "sd" (Single Deep CFR) or "network" (Deep CFR); None: the first of `solver.averages`

        Raises `ValueError` for another name, and if the run fits no networks.
        """
        if not self.keeps_networks:
            super().networks(game, tables, iterations, name)
        options, name = self._algorithm.options_on(game), self._named(name)
        if name == "sd":
            return Networks(game, options, network_tables(tables))
        kind: type[FitState] = SampledCardsState if samples_cards(game) else TrainingState
        state = kind(game, options, tables)
        fitted = [state.fit_average(player, iterations) for player in range(2)]
        return Networks(game, options, average_tables(fitted, iterations), shares=True)

    def figures(self, tables: TableSet) -> dict[str, Any]:
        """Return {field: [player 0's number, player 1's]} for evaluation records.

        "loss" is the weighted mean squared error of the newest fit, on samples of the memory of regrets in squared
        chips.  "explained" is 1 minus that error over the mean square of the regrets.  "samples" counts the samples
        offered to the memory of regrets so far.  "networks" counts the networks or strategies added to the average.
        """
        figures, counters = (
            [tables[f"{kind}/player{player}"] for player in range(2)] for kind in ("figures", "counters")
        )
        return {
            "loss": [float(found[LOSS]) for found in figures],
            "explained": [float(found[EXPLAINED]) for found in figures],
            "samples": [int(found[SAMPLES]) for found in counters],
            "networks": [int(found[NETWORKS]) for found in counters],
        }

    def _named(self, name: str | None) -> str:
        """Return the name of an average: `name`, or if None the first of `solver.averages`.

        Raises `ValueError` for an average that the run does not have.
        """
        name = name or self.names[0]
        if name not in self.names:
            raise ValueError(f"solver.averages of the run are {', '.join(self.names)}: {name!r} is not among them")
        return name
