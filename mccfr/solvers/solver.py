"""What an algorithm must answer, and what a worker runs: an `Algorithm` is made from a config, a `Solver` by it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from mccfr.config.solvers import LAST_TRAINED, SolverConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.forecast import Forecast
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import TableLayout, TableSet
from mccfr.tables.strategy import Strategy, average_strategy


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


class Algorithm(ABC):
    """The algorithm of one configuration: everything that the rest of the program asks about it.

    What most algorithms answer alike has an answer here.
    """

    options: ClassVar[type[SolverConfig]]
    """The `[solver]` table it takes; the struct's tag is the algorithm's name."""
    seeded: ClassVar[bool] = True
    """False: every seed gives the same result."""
    axis: ClassVar[str] = "nodes_touched"
    """What curves run over, or "iterations"."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def name(self) -> str:
        """As `solver.algorithm` has it."""
        return str(self.options.__struct_config__.tag)

    @property
    def schedule(self) -> Schedule:
        """Periods and weights by nodes touched: none where the algorithm weighs iterations itself."""
        return Schedule()

    @property
    def over_histories(self) -> bool:
        """Whether cards must be in the tree, as chance nodes and hidden moves."""
        return False

    def completed(self, game: Game) -> Config:
        """The configuration with what was left to the algorithm written out, for this game."""
        del game
        return self.config

    def problem(self, wide: npt.NDArray[np.uint8] | None = None) -> str | None:
        """Why runs of the configuration are trained no longer, in a sentence; None: they are.

        wide  [B] as of `layout`, of a run of a former version
        """
        del wide
        former = self.config.solver.former or self.config.tables.former
        return None if former is None else self.last_trained(former)

    @staticmethod
    def last_trained(what: str) -> str:
        """The sentence that refuses to go on with something."""
        return (
            f"{what} was last trained by mccfr {LAST_TRAINED}: runs of it are evaluated and exported, and do not go on"
        )

    def warnings(self) -> list[str]:
        """Sentences about settings that are allowed but rarely meant."""
        return []

    @abstractmethod
    def layout(self, game: Game, wide: npt.NDArray[np.uint8] | None = None) -> TableLayout:
        """The tables of a run.

        wide  [B] which blocks keep sums in float64, as the manifest of a run of format version 1 or 2 has it
        Raises `ValueError` where the algorithm does not suit the game.
        """

    @abstractmethod
    def solver(self, game: Game, tables: TableSet, share: Share | None = None) -> Solver:
        """What iterates on the tables of `layout`, changed in place; `share` None: a whole run from its start."""

    def forms_of_version_1(self, game: Game, wide: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """[B] form of the sums of a run of format version 1, whose manifest lists `wide` [B]."""
        del game
        return wide

    def first_words(self, worker: int) -> list[int]:
        """The random words with which a worker begins; zeros where the algorithm needs none."""
        del worker
        return [0, 0, 0, 0]

    def sweeps(self) -> bool:
        """Whether worker 0 changes whole tables at the end of a period."""
        return False

    def processes(self, workers: int) -> int:
        """Processes that share a run's work."""
        return workers

    def looks_hands_up(self, game: Game) -> bool:
        """Whether traversals need the bucket tables of whole hold'em."""
        del game
        return True

    def is_averaged(self, name: str) -> bool:
        """Whether the average strategy is made from a table."""
        return name.startswith("strategy_sum")

    @property
    def averages_sums(self) -> bool:
        """Whether the average strategy is what `average` makes here: each row of the strategy sums, normalised."""
        return type(self).average is Algorithm.average

    def average(self, game: Game, tables: TableSet, nodes: int, iterations: int) -> Strategy:
        """The average strategy of tables with sums on all streets; `ValueError` for sums no run writes."""
        del iterations
        return average_strategy(game, tables, partial(self.schedule.faded, nodes=nodes))

    @property
    def averages(self) -> tuple[str, ...]:
        """Names of a run's average strategies where there may be several kinds; the first is what `average` makes."""
        return ()

    def named_average(self, name: str, game: Game, tables: TableSet, iterations: int) -> Strategy:
        """One of `averages`, from the tables that `is_averaged` names."""
        raise ValueError(f"{self.name!r} has no average of the name {name!r}")

    @property
    def keeps_networks(self) -> bool:
        """Whether a run's strategy is that of networks it keeps, which `asked` gives."""
        return False

    def is_asked(self, name: str, average: str | None) -> bool:
        """Whether `asked` needs a table, for one of `averages` (None: the first)."""
        del average
        return self.is_averaged(name)

    def asked(self, game: Game, tables: TableSet, iterations: int, average: str | None = None) -> Any:
        """The networks behind one of `averages` (None: the first), as a `mccfr.solvers.deep.asked.Asked`."""
        raise ValueError(f"{self.name!r} keeps no networks: what it has learnt is a table")

    def figures(self, tables: TableSet) -> dict[str, Any]:
        """What lines of evaluations.jsonl say besides, from the tables that `is_averaged` names."""
        del tables
        return {}

    def forecast(self, game: Game) -> Forecast | None:
        """What one iteration visits, as far as that can be said beforehand."""
        del game
        return None

    def planned(self, game: Game, layout: TableLayout) -> dict[str, Any]:
        """What `plan` says besides: numbers by name, `seconds_per_iteration` among them where nodes do not tell it."""
        del game, layout
        return {}

    def counts_lost_updates(self, game: Game) -> bool:
        """Whether the strategy sums of a run say how many updates workers have lost of each other's."""
        del game
        return False
