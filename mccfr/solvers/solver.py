"""Interfaces of training: the `Algorithm` of a configuration creates the `Solver` that a worker runs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import SolverConfig
from mccfr.config.table_base import first_refused
from mccfr.games.game import Game
from mccfr.solvers.coverage_estimate import CoverageEstimate
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableLayout, TableSet


@dataclass
class WorkerState:
    """Counters and random state of a worker; with them its training continues bit for bit.

    If strata (groups of boards) are trained apart, each stratum has a WorkerState.

    iterations  iterations done so far
    nodes       nodes touched so far
    rng         four words of the generator that samples actions; none, or all 0, before the first iteration. Algorithms
                that sample no actions use the words for other numbers, or not at all
    due         of a stratum: the part of an iteration that it is owed, since its number of iterations is rounded down.
                The unit is one iteration divided by the sum of all strata's shares
    ends        number of period ends at which this worker has discounted the tables (`mccfr.solvers.dcfr_discount`)
    """

    iterations: int = 0
    nodes: int = 0
    rng: list[int] = field(default_factory=list)  # four words; none or all 0: not begun
    due: int = 0
    ends: int = 0


@dataclass
class Share:
    """The part of a run that one solver does.

    worker   number of the worker, from 0 on, which seeds its random streams
    workers  number of workers of the run; for an algorithm of one process, the number of its threads
    state    state to continue from; the solver changes it in place
    """

    worker: int = 0
    workers: int = 1
    state: WorkerState = field(default_factory=WorkerState)


class Solver(Protocol):
    """Trains in one worker of a run: runs iterations in batches and changes the run's tables in place.

    Other workers may change the tables at the same time.
    """

    state: WorkerState
    busy_seconds: float  # spent in `run` by this object

    def warm_up(self) -> None:
        """Compile the kernels (numba functions), or load them from the cache; change nothing."""

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch of iterations and return its (iterations, nodes touched).

        A batch has at least one and at most `iteration_limit` iterations.  It ends after the first iteration that
        brings it to `node_limit` nodes.

        total_nodes      nodes that all workers of the run have touched before this batch
        node_limit       nodes of this worker in this batch
        iteration_limit  iterations of this worker in this batch
        """


@dataclass(frozen=True)
class Traits:
    """Properties of an algorithm that the rest of the program must know before it runs.

    seeded               whether the result depends on the seed
    axis                 x axis of convergence curves: "nodes_touched" or "iterations"
    over_histories       whether the tree must have every history, with cards as chance nodes and hidden moves as nodes
    one_process          whether workers are threads of one process; else they are processes that share the tables
    sweeps               whether worker 0 discounts whole tables at the end of a period
    looks_hands_up       whether traversals need the bucket tables of whole hold'em
    takes_rake           whether it supports rake, with which the players' payoffs do not add up to zero
    takes_locks          whether it supports locked rows, which keep a fixed strategy
    takes_seats          whether it supports three and more players if cards are chance nodes of the tree
    takes_pots           whether it supports three and more players if cards are dealt apart from a betting tree
    """

    seeded: bool = True
    axis: str = "nodes_touched"
    over_histories: bool = False
    one_process: bool = False
    sweeps: bool = False
    looks_hands_up: bool = True
    takes_rake: bool = False
    takes_locks: bool = False
    takes_seats: bool = False
    takes_pots: bool = False

    def processes(self, workers: int) -> int:
        """Return the number of worker processes that train; 0: the calling process trains.

        workers  number of workers that the configuration sets, 0 or more
        """
        return min(workers, 1) if self.one_process else workers


class Averages:
    """Computes the usual average strategy: the strategy sums of each row (infoset), normalised.

    Algorithms with other averages derive a class from this one.
    """

    names: tuple[str, ...] = ()
    """Names of the averages if there are several; the first is the run's strategy."""
    of_sums: bool = True
    """Whether the first average is the normalised strategy sums.

    Single rows can then be read from the tables.
    """
    keeps_networks: bool = False
    """Whether the run's strategy is given by networks, which `networks` returns."""

    def takes(self, table: str) -> bool:
        """Return whether the averages, or the numbers that `figures` returns, need a table.

        table  name of the table, such as "strategy_sum/street0/player1"
        """
        return table.startswith("strategy_sum")

    def strategy(self, game: Game, tables: TableSet, nodes: int, iterations: int, name: str | None = None) -> Strategy:
        """Return one average strategy, computed from a run's tables.

        tables      the tables; this class reads the strategy sums, which must exist on all streets
        nodes       nodes that the run had touched when it had these tables; this class does not use it
        iterations  iterations of the run until then; this class does not use it
        name        one of `names`; None: the first

        Raises `ValueError` for a negative or infinite sum, and for an unknown name.
        """
        del nodes, iterations
        if name is not None:
            raise ValueError(f"average = {name!r}: the run has one average strategy, of its sums; leave the name out")
        return average_strategy(game, tables)

    def networks(self, game: Game, tables: TableSet, iterations: int, name: str | None = None) -> Any:
        """Return the neural networks of an average; this class has none and raises `ValueError`.

        name  one of `names`; None: the first

        A derived class returns `mccfr.solvers.deep.network_strategy.Networks`.
        """
        raise ValueError("the run keeps no networks: its strategy is a table")

    def figures(self, tables: TableSet) -> dict[str, Any]:
        """Return {name: value} of further measurements of the tables; none by default.

        An evaluation of the run adds them to its line in evaluations.jsonl.
        """
        del tables
        return {}


class Algorithm(ABC):
    """The training algorithm of one configuration: creates its table layout, solver and averages.

    A subclass implements `layout` and `solver` and overrides the defaults where it differs.
    """

    options: ClassVar[type[SolverConfig]]
    """Struct of its `[solver]` table; the struct's tag is the algorithm's name."""
    unused_dtypes: ClassVar[tuple[str, ...]] = ()
    """Keys of `[tables]` that its tables do not depend on."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def name(self) -> str:
        """Return the algorithm's name, as `solver.algorithm` gives it."""
        return str(self.options.__struct_config__.tag)

    @property
    def traits(self) -> Traits:
        """Return the algorithm's properties that the rest of the program must know before it runs."""
        return Traits()

    @property
    def schedule(self) -> Schedule:
        """Return the discount Schedule: weights and discounts of updates by the nodes touched.

        The default has no discounts; algorithms that weight by iteration, not by nodes, keep it.
        """
        return Schedule()

    @property
    def averages(self) -> Averages:
        """Return the object that computes the run's average strategies from its tables."""
        return Averages()

    def completed(self, game: Game) -> Config:
        """Return `config` with all values filled in that the algorithm chooses for a game.

        The default returns it unchanged.

        Raises `ValueError` (in derived classes) if no run of the configuration is possible with this game.
        """
        del game
        return self.config

    def problem(self) -> str | None:
        """Return a sentence that says why `config` cannot be trained, or None if no such reason is found.

        The default refuses `run.strata` (groups of boards are trained apart), which only algorithms that sample actions
        support. It refuses dtypes in `[tables]` on which its tables do not depend (`unused_dtypes`). It also refuses a
        seed other than 0 if the algorithm draws no random numbers.
        """
        where = f"with solver.algorithm = {self.name!r}, "
        allowed = f"left out {where}which draws no deals of one stratum"
        unused = self.config.tables.unused(True, f"{where}which has no such tables", *self.unused_dtypes)
        checks = [(f"tables.{key}", good, phrase) for key, good, phrase in unused]
        seeded = self.traits.seeded or self.config.solver.seed == 0
        checks += [("solver.seed", seeded, f"left out {where}which draws nothing")]
        return first_refused(self.config, [("run.strata", self.config.run.strata is None, allowed), *checks])

    def warnings(self) -> list[str]:
        """Return a list of sentences about settings that are allowed but rarely intended."""
        return []

    @abstractmethod
    def layout(self, game: Game) -> TableLayout:
        """Return the layout of the run's tables: name, shape and dtype of each.

        Raises `ValueError` if the algorithm does not suit the game.
        """

    @abstractmethod
    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> Solver:
        """Return the solver that iterates on tables of `layout`, which it changes in place.

        share  part of the run that it does; None: a whole run from the start
        """

    def forecast(self, game: Game) -> CoverageEstimate | None:
        """Return a CoverageEstimate of one iteration, or None (the default) if there is no estimate.

        It has the expected nodes touched and the expected updates of strategy sums at each decision.
        """
        del game
        return None

    def planned(self, game: Game, layout: TableLayout) -> dict[str, Any]:
        """Return {name: value} of the algorithm's own numbers for the plan of a run; {} by default.

        An algorithm whose speed does not follow from the nodes touched includes "seconds_per_iteration".

        layout  layout of the planned run's tables
        """
        del game, layout
        return {}
