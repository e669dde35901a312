"""Deep CFR and Single Deep CFR as a run sees them: their tables, what iterates, and their two averages."""

import time
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.config.games import FlopHoldemGame
from mccfr.config.solvers import DeepCfrConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.deep.asked import Asked, asked_tables, average_tables
from mccfr.solvers.deep.averages import Averages, fit_figures
from mccfr.solvers.deep.dealt_cfr import Dealt, DealtCfr, check_options, dealt_specs, is_dealt
from mccfr.solvers.deep.learned import keeps_sums
from mccfr.solvers.deep.single_deep_cfr import Iterations, SingleDeepCfr, listed_specs
from mccfr.solvers.deep.tabulated import check_tabulated
from mccfr.solvers.solver import Algorithm, Share
from mccfr.tables.layout import TableLayout, TableSet
from mccfr.tables.strategy import Strategy

_FLOPS = 3e10  # a second of one processor in products of these sizes
_FIT_PASSES = 4  # products with all parameters for each sample of a step: forward, two back, and the last layer's pass
_LISTED_SECONDS, _DEALT_SECONDS = 1e-6, 2e-5  # of a traversal; docs/deep.md has measurements


class DeepCfr(Algorithm):
    """Deep CFR; traversals are shared by threads of one process, in which networks are fitted."""

    options = DeepCfrConfig
    axis = "iterations"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        assert isinstance(config.solver, DeepCfrConfig)
        self._solver = config.solver

    def completed(self, game: Game) -> Config:
        """With a horizon where all networks are kept: the iterations that are planned, unless another one is given.

        `ValueError` where there is neither, and for iterations beyond the horizon.
        """
        solver, planned, completed = self._solver, self.config.run.iterations, super().completed(game)
        if is_dealt(game):
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
        """Raise `ValueError` for evaluations of a run whose average strategy is no table."""
        points = self.config.evaluation
        try:
            check_tabulated(game)
        except ValueError as error:
            if points.every_checkpoint or points.at_end or points.at_nodes or points.at_iterations:
                raise ValueError(
                    f"{error}: set evaluation.every_checkpoint and at_end to false, and leave at_iterations out"
                ) from None

    def _options(self, game: Game) -> DeepCfrConfig:
        """The `[solver]` table, completed."""
        config = self.completed(game).solver
        assert isinstance(config, DeepCfrConfig)
        return config

    def layout(self, game: Game, wide: npt.NDArray[np.uint8] | None = None) -> TableLayout:
        """As `Algorithm.layout`: memories, networks and counters, nothing padded."""
        nothing = np.zeros(2 * game.tree.streets, np.int64)
        make = dealt_specs if is_dealt(game) else listed_specs
        specs = make(game, self._options(game), self.config.tables.regret_dtype)
        return TableLayout(specs, nothing, nothing)

    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> "DeepCfrSolver":
        """As `Algorithm.solver`."""
        return DeepCfrSolver(game, self._options(game), tables, share or Share())

    def processes(self, workers: int) -> int:
        """One: workers are threads in it."""
        return min(workers, 1)

    def looks_hands_up(self, game: Game) -> bool:
        """Never: networks see cards."""
        return False

    def is_averaged(self, name: str) -> bool:
        """Sums where they are kept, memories and networks where averages are made of those; counters for records."""
        kind = name.partition("/")[0]
        wanted = {"counters", "figures", "strategy_sum", "strategy_memory"}
        return kind in (wanted if self._keeps_sums else wanted | {"networks"})

    @property
    def _keeps_sums(self) -> bool:
        """Whether the explicit average is kept up as the run goes: nowhere but in a list of infosets."""
        dealt = isinstance(self.config.game, FlopHoldemGame) and self.config.abstraction is None
        return keeps_sums(self._solver) and not dealt

    @property
    def averages_sums(self) -> bool:
        """As `Algorithm.averages_sums`."""
        return self._keeps_sums and self._solver.averages[0] == "sd"

    @property
    def averages(self) -> tuple[str, ...]:
        """As `Algorithm.averages`."""
        return tuple(self._solver.averages)

    def average(self, game: Game, tables: TableSet, nodes: int, iterations: int) -> Strategy:
        """As `Algorithm.average`."""
        return self.named_average(self.averages[0], game, tables, iterations)

    def named_average(self, name: str, game: Game, tables: TableSet, iterations: int) -> Strategy:
        """As `Algorithm.named_average`; `ValueError` for an average that the run does not keep."""
        name, options = self._named(name), self._options(game)
        if is_dealt(game):
            check_tabulated(game)
            return self.asked(game, tables, iterations, name).strategy()
        return Averages(game, options, tables, iterations).average(name)

    @property
    def keeps_networks(self) -> bool:
        """As `Algorithm.keeps_networks`: unless tables are fitted in their place."""
        return self._solver.fit == "network"

    def is_asked(self, name: str, average: str | None) -> bool:
        """As `Algorithm.is_asked`."""
        wanted = {"networks", "strategy_sum", "counters"}
        return name.partition("/")[0] in (wanted if self._named(average) == "sd" else {"strategy_memory", "counters"})

    def asked(self, game: Game, tables: TableSet, iterations: int, average: str | None = None) -> Asked:
        """As `Algorithm.asked`; Deep CFR's network of the average strategy is fitted here."""
        if not self.keeps_networks:
            return super().asked(game, tables, iterations, average)
        options, name = self._options(game), self._named(average)
        if name == "sd":
            return Asked(game, options, asked_tables(tables))
        if is_dealt(game):
            dealt = Dealt.of(game, options, tables)
            made = [dealt.average_network(player, iterations) for player in range(2)]
        else:
            averages = Averages(game, options, tables, iterations)
            made = [averages.average_network(player) for player in range(2)]
        return Asked(game, options, average_tables(made, iterations), shares=True)

    def planned(self, game: Game, layout: TableLayout) -> dict[str, Any]:
        """As `Algorithm.planned`: bytes of memories and of networks, and time at speeds measured on one processor."""
        config, size = self._options(game), sum(spec.nbytes for spec in layout.specs if "memory/" in spec.name)
        networks = [spec for spec in layout.specs if spec.name.startswith("network")]
        parameters = max((spec.shape[-1] for spec in networks if spec.name.startswith("network/")), default=0)
        dealt = is_dealt(game)
        rows = int(game.infosets[::2].sum()) if config.batch == "all" else int(config.batch)
        if not dealt:  # samples of one infoset are merged
            rows = min(rows, int(game.infosets[::2].sum()))
        passes = _FIT_PASSES * config.steps if config.fit == "network" else 0
        fit = passes * rows * 2 * parameters / _FLOPS
        walked = config.traversals * (_DEALT_SECONDS if dealt else _LISTED_SECONDS)
        return {
            "memories_bytes": size,
            "networks_bytes": sum(spec.nbytes for spec in networks),
            "parameters": parameters,
            "seconds_per_iteration": 2 * (walked + fit + self._baseline_seconds(layout)),
        }

    def _baseline_seconds(self, layout: TableLayout) -> float:
        """Of a fit of the learned baseline."""
        size = sum(spec.shape[0] for spec in layout.specs if spec.name == "baseline/parameters")
        return (_FIT_PASSES - 1) * self._solver.baseline_steps * self._solver.baseline_batch * 2 * size / _FLOPS

    def _named(self, average: str | None) -> str:
        """One of the run's averages, the first by itself; `ValueError` for others."""
        name = average or self.averages[0]
        if name not in self.averages:
            raise ValueError(f"solver.averages of the run are {', '.join(self.averages)}: {name!r} is not among them")
        return name

    def figures(self, tables: TableSet) -> dict[str, Any]:
        """As `Algorithm.figures`: of each player's newest fit, and what memories and B^M have been offered."""
        return fit_figures(tables)


class DeepCfrSolver:
    """Runs iterations on tables, which are changed in place; its state is the number of iterations."""

    def __init__(self, game: Game, config: DeepCfrConfig, tables: TableSet, share: Share) -> None:
        self.state = share.state
        self.state.rng = [0, 0, 0, 0]
        self.busy_seconds = 0.0
        kind: type[Iterations] = DealtCfr if is_dealt(game) else SingleDeepCfr
        self._cfr = kind(game, config, tables, self.state.iterations, self.state.nodes, share.workers)

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""
        self._cfr.warm_up()

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run an iteration and return its (iterations, nodes); see `Solver.run`."""
        began, before = time.perf_counter(), self._cfr.nodes_touched
        self._cfr.iterate(1)
        touched = self._cfr.nodes_touched - before
        self.state.iterations += 1
        self.state.nodes += touched
        self.busy_seconds += time.perf_counter() - began
        return 1, touched
