"""What an algorithm must answer, and what a worker runs: an `Algorithm` is made from a config, a `Solver` by it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from mccfr.config.solvers import SolverConfig
from mccfr.config.table import first_refused
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.averages import Averages
from mccfr.solvers.forecast import Forecast
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import TableLayout, TableSet


@dataclass
class WorkerState:
    """What a worker must remember to go on bit for bit: counters, and the words of its stream of actions.

    Of a stratum also what rounding has left it of its share of the iterations so far; of the worker that sweeps tables
    the period ends for which it has.
    """

    iterations: int = 0
    nodes: int = 0
    rng: list[int] = field(default_factory=list)  # four words; none or all 0: not begun
    due: int = 0
    ends: int = 0


@dataclass
class Share:
    """Which part of a run a solver does.

    worker   number of the worker: it names its streams of random numbers
    workers  that share the run; threads of each iteration where one process does all
    state    to go on from; changed as the solver goes
    """

    worker: int = 0
    workers: int = 1
    state: WorkerState = field(default_factory=WorkerState)


class Solver(Protocol):
    """Runs iterations on tables, batch by batch.  The tables are changed in place; other workers may do so too."""

    state: WorkerState
    busy_seconds: float  # spent in `run` by this object

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without changing anything."""

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Run one batch and return its (iterations, nodes).

        At least one iteration, at most `iteration_limit`, ended by the first that reaches `node_limit` nodes (both
        counted from here).  `total_nodes` is the run's count so far.
        """


@dataclass(frozen=True)
class Traits:
    """What the rest of the program must know of an algorithm beforehand.

    seeded               False: every seed gives the same result
    axis                 what curves run over: "nodes_touched" or "iterations"
    over_histories       cards must be in the tree, as chance nodes and hidden moves
    one_process          workers are threads of one process; False: processes that change the same tables
    sweeps               worker 0 changes whole tables at the end of a period
    looks_hands_up       traversals need the bucket tables of whole hold'em
    counts_lost_updates  strategy sums of games with cards say how many updates workers have lost of each other's
    takes_rake           it pays each player apart, so that the two need not sum to nothing
    takes_locks          rows that are locked do not learn
    """

    seeded: bool = True
    axis: str = "nodes_touched"
    over_histories: bool = False
    one_process: bool = False
    sweeps: bool = False
    looks_hands_up: bool = True
    counts_lost_updates: bool = False
    takes_rake: bool = False
    takes_locks: bool = False

    def processes(self, workers: int) -> int:
        """Processes that share a run's work; 0: this one."""
        return min(workers, 1) if self.one_process else workers


class Algorithm(ABC):
    """The algorithm of one configuration: everything that the rest of the program asks about it.

    `layout` and `solver` make one; what most algorithms answer alike has an answer here.
    """

    options: ClassVar[type[SolverConfig]]
    """The `[solver]` table it takes; the struct's tag is the algorithm's name."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def name(self) -> str:
        """As `solver.algorithm` has it."""
        return str(self.options.__struct_config__.tag)

    @property
    def traits(self) -> Traits:
        """What must be known of it beforehand."""
        return Traits()

    @property
    def schedule(self) -> Schedule:
        """Periods and weights by nodes touched: none where the algorithm weighs iterations itself."""
        return Schedule()

    @property
    def averages(self) -> Averages:
        """What average strategies a run has, and how they are made of its tables."""
        return Averages()

    def completed(self, game: Game) -> Config:
        """The configuration with what was left to the algorithm written out, for this game."""
        del game
        return self.config

    def problem(self) -> str | None:
        """Why runs of the configuration are not trained, in a sentence; None: they are.

        `run.strata` is refused here, which is for algorithms that sample actions.
        """
        allowed = f"left out with solver.algorithm = {self.name!r}, which draws no deals of one stratum"
        checks = [("run.strata", self.config.run.strata is None, allowed)]
        return first_refused(self.config, checks)

    def warnings(self) -> list[str]:
        """Sentences about settings that are allowed but rarely meant."""
        return []

    @abstractmethod
    def layout(self, game: Game) -> TableLayout:
        """Return the tables of a run; raise `ValueError` where the algorithm does not suit the game."""

    @abstractmethod
    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> Solver:
        """What iterates on the tables of `layout`, changed in place; `share` None: a whole run from its start."""

    def forecast(self, game: Game) -> Forecast | None:
        """What one iteration visits, as far as that can be said beforehand."""
        del game
        return None

    def planned(self, game: Game, layout: TableLayout) -> dict[str, Any]:
        """What `plan` says besides: numbers by name, `seconds_per_iteration` among them where nodes do not tell it."""
        del game, layout
        return {}
