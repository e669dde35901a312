"""Solves an endgame with given ranges in a background thread, until accurate or stopped."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.spot_table import MOST_ITERATIONS, spot_document
from mccfr.config.toml_files import config_from
from mccfr.games.game import Game
from mccfr.games.holdem_subgame import holdem_subgame
from mccfr.solvers.public.best_response import values
from mccfr.solvers.public.street_arrays import FOLLOW, RESPOND
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share, WorkerState
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableLayout, private_tables, table_name
from mccfr.trees.compiled import Locks
from mccfr.upi.node_names import SpotTree
from storage.free_space import available_memory_bytes

_MEMORY_SHARE = 0.8
_FIRST_MEASURED = 10
_MEASURED_EVERY = 5  # measured again after a fifth more iterations, as in `mccfr spot`
FREE = -1.0
"""Marks a probability that is not locked."""
Floats = npt.NDArray[np.float64]
LockedRows = tuple[int, npt.NDArray[np.integer], Floats]
"""(decision, buckets [n], their probabilities [n, A])."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """Exact EVs in chips of a strategy in an endgame, for OOP and IP (out of and in position).

    An EV is the chips won from the pot, less the chips put in since the root.

    ev    EV of each player if both follow the strategy
    best  EV of each player's best response to the other's strategy
    """

    ev: tuple[float, float]
    best: tuple[float, float]

    @property
    def exploitable(self) -> float:
        """Exploitability in chips: the gain of a best response, averaged over both players."""
        return (sum(self.best) - sum(self.ev)) / 2

    def text(self, seconds: float) -> str:
        """Return the EVs and the exploitability as text, in lines of PioSOLVER's protocol.

        seconds  time of solving, for the first line
        """
        return "\n".join(
            [
                f"running time: {seconds:.3f}",
                *(f"EV {name}: {chips:.3f}" for name, chips in zip(("OOP", "IP"), self.ev, strict=True)),
                *(f"{name}'s MES: {chips:.3f}" for name, chips in zip(("OOP", "IP"), self.best, strict=True)),
                f"Exploitable for: {self.exploitable:.3f}",
            ]
        )


def measure(game: Game, strategy: Strategy, threads: int) -> Measured:
    """Compute the exact EVs in chips of a strategy in an endgame, and of best responses to it.

    game     the endgame: two players, a given board and ranges
    threads  number of threads of the computation
    """
    both = values(game, strategy, threads=threads) + game.pot_chips / 2
    ev, best = both[:, FOLLOW].tolist(), both[:, RESPOND].tolist()
    return Measured((ev[0], ev[1]), (best[0], best[1]))


class SpotProblem:
    """A spot to solve: an endgame with given ranges, its betting tree and CFR algorithm.

    document  {key: value} of the configuration's `[game]` table, without its key `name`
    """

    def __init__(self, document: Mapping[str, Any], threads: int) -> None:
        """Build the tree and algorithm of an endgame with given ranges.

        document  {key: value} of the configuration's `[game]` table, without its key `name`
        threads   number of threads of the solver

        Raises `ValueError` for keys or values of `document` that are not allowed.
        """
        self.document, self.threads = dict(document), threads
        config = config_from(spot_document(document, 1.0, threads), "the tree")
        assert isinstance(config.game, HoldemSubgame)
        self.algorithm = algorithm_of(config)
        self.tree = SpotTree(
            holdem_subgame(config.game, Path(), merge_suits=False), float(config.game.effective_stack or 0)
        )

    @property
    def layout(self) -> TableLayout:
        """Layout of the solver's tables (regrets, strategy sums): name, shape and dtype of each."""
        return self.algorithm.layout(self.tree.game)


class SpotEngine:
    """The regrets and strategy sums of an endgame (SpotProblem), and their CFR solver."""

    def __init__(
        self, spot: SpotProblem, initial_tables: Mapping[str, npt.NDArray[Any]] | None = None, iterations: int = 0
    ) -> None:
        """Allocate the tables and prepare the solver.

        spot            the endgame to solve
        initial_tables  {name: table} of regrets and strategy sums, from which training continues; None starts from zero
        iterations      number of iterations that have trained those tables

        Raises `ValueError` if the tables exceed 80 % of the available memory.
        """
        self.spot = spot
        layout, available = spot.layout, available_memory_bytes()
        if layout.nbytes > _MEMORY_SHARE * available:
            raise ValueError(
                f"the tables need {layout.nbytes:,} bytes, more than {_MEMORY_SHARE:.0%} of the {available:,} bytes of "
                "memory that are available: build a smaller tree"
            )
        self.tables = private_tables(layout)
        for name, table in (initial_tables or {}).items():
            self.tables[name][...] = table
        self._begin(iterations)
        self.seconds = 0.0

    def _begin(self, iterations: int) -> None:
        """Create the solver; `iterations` is the number of iterations that have trained the tables."""
        share = Share(workers=self.spot.threads, state=WorkerState(iterations=iterations))
        self._solver = self.spot.algorithm.solver(self.spot.tree.game, self.tables, share)

    def hold(self, locked: Iterable[LockedRows]) -> None:
        """Fix the strategy of some rows, from now on and in the average so far; free all others.

        A row is a decision with a bucket.

        locked  (decision, buckets [n], their fixed probabilities [n, A]) of each decision
        """
        tree, shares = self.spot.tree, dict[int, Floats]()
        for node, buckets, rows in locked:
            block, slot = int(tree.tree.arrays.block[node]), int(tree.tree.arrays.slot[node])
            free = np.full((rows.shape[1], int(tree.game.buckets[block])), FREE)
            shares.setdefault(node, free)[:, buckets] = rows.T
            sums, cells = self.tables[table_name("strategy_sum", block)], slice(slot, slot + rows.shape[1])
            sums[cells, buckets] = rows.T * np.maximum(sums[cells, buckets].sum(axis=0), 1.0)
        tree.tree = replace(tree.tree, locks=Locks(shares, by_hand=False) if shares else None)
        tree.game = replace(tree.game, tree=tree.tree)
        self._begin(self.iterations)

    @property
    def iterations(self) -> int:
        """Number of completed iterations."""
        return self._solver.state.iterations

    def iterate(self, count: int) -> None:
        """Run one batch of at least one and at most `count` iterations."""
        began = time.monotonic()
        self._solver.run(self._solver.state.nodes, 1 << 62, count)
        self.seconds += time.monotonic() - began

    def strategy(self) -> Strategy:
        """Return the current average strategy."""
        state = self._solver.state
        averages = self.spot.algorithm.averages
        return averages.strategy(self.spot.tree.game, self.tables, state.nodes, state.iterations)


@dataclass(frozen=True)
class Goal:
    """Limits of one solve (training until a limit is reached); the first that is reached ends it.

    chips    exploitability in chips, checked only without `steps`
    steps    number of further iterations; None: until `MOST_ITERATIONS` are done, earlier solves included
    seconds  time of this solve; None: no limit
    """

    chips: float
    steps: int | None = None
    seconds: float | None = None


@dataclass
class SpotWork:
    """A solve in a background thread, until its goal is reached or the client stops it.

    engine  tables and solver of the spot
    goal    limits of this solve
    say     function that sends lines on the progress to the client
    """

    engine: SpotEngine
    goal: Goal
    say: Say
    asked_to_stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the solve in its own thread."""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def running(self) -> bool:
        """True while the solve is running."""
        return self.thread is not None and not self.ended.is_set()

    def wait(self) -> None:
        """Wait until the solve has ended."""
        if self.thread is not None:
            self.thread.join()

    def stop(self) -> None:
        """Stop the solve after the current iterations, and wait for its end."""
        self.asked_to_stop.set()
        self.wait()

    def _run(self) -> None:
        """Run the solve, and tell the client that it starts, and at its end why it has ended."""
        try:
            self.say("SOLVER: started")
            reason = self._solve()
        except Exception as error:
            reason = f"ERROR: {' '.join(str(error).split())}"
        self.ended.set()  # set before the client is told, because it may send the next command at once
        self.say(f"SOLVER: stopped ({reason})")

    def _solve(self) -> str:
        """Train until a limit or a stop, and send EVs and exploitability in between; return why it ended."""
        engine, goal = self.engine, self.goal
        first, began = engine.iterations, time.monotonic()
        last = MOST_ITERATIONS if goal.steps is None else first + goal.steps
        while True:
            next_measurement = max(_FIRST_MEASURED, engine.iterations + engine.iterations // _MEASURED_EVERY)
            reason = self._until(min(next_measurement, last), began)
            result = measure(engine.spot.tree.game, engine.strategy(), engine.spot.threads)
            self.say(f"SOLVER:\n{result.text(engine.seconds)}")
            if result.exploitable <= goal.chips and goal.steps is None:
                return "required accuracy reached"
            if reason is not None:
                return reason
            if engine.iterations >= last:
                return f"{engine.iterations} iterations"

    def _until(self, measured: int, began: float) -> str | None:
        """Train until `measured` iterations are done; return why it ended earlier, or None.

        The reason is a text: a stop by the user or the time limit.

        began  start of the solve, by the monotonic clock in seconds
        """
        while self.engine.iterations < measured:
            if self.asked_to_stop.is_set():
                return "stopped by user"
            if self.goal.seconds is not None and time.monotonic() - began >= self.goal.seconds:
                return "time limit reached"
            self.engine.iterate(measured - self.engine.iterations)
        return None
