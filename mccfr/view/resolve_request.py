"""Re-solves a spot in the background for the page, from the flop on, with real cards and real bets.

`mccfr.play.resolving` documents the methods.  A solve has stages with increasing iterations, each from the beginning,
so that a first result is shown soon.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan
from typing import Any

from mccfr.games.betting import BettingState
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving import METHODS, Effort, Resolver
from mccfr.play.resolving.resolving_table import settings_of
from mccfr.view.expected_values import json_rows
from mccfr.view.spot_view import SpotDecision, Spots

MOST_ITERATIONS = 5_000
MOST_SOLVES = 2
"""Number of strategies whose spots are solved at the same time."""
_STREETS = {3: "flop", 4: "turn", 5: "river"}  # by number of board cards
_METHODS = {"flop": ("resolving", "unsafe"), "turn": METHODS, "river": METHODS}
_ITERATIONS = {"flop": 100, "turn": 200, "river": 200}
_FIRST = 10
_FACTOR = 4


class BusyError(RuntimeError):
    """Too many requests are in progress; the same request may be repeated later."""


@dataclass
class _Job:
    """A spot that is being solved.

    result   `Spots.strategy` of the last stage with `gap_chips`, `excess_chips` and `iterations`; None before the first
    problem  sentence on an error
    """

    line: str
    board: str
    method: str
    iterations: int
    began: float = field(default_factory=time.perf_counter)
    result: dict[str, Any] | None = None
    problem: str = ""
    seconds: float | None = None
    stopped: bool = False

    def document(self) -> dict[str, Any]:
        """Return the job's state."""
        seconds = time.perf_counter() - self.began if self.seconds is None else self.seconds
        return {
            "line": self.line,
            "board": self.board,
            "method": self.method,
            "iterations": self.iterations,
            "seconds": round(seconds, 2),
            "done": self.seconds is not None,
            "problem": self.problem,
            "result": self.result,
        }


class Solving:
    """Re-solves spots of a strategy, one at a time; a new request ends the one before."""

    def __init__(self, spots: Spots, solve_slots: threading.Semaphore | None = None) -> None:
        """Take the semaphore of strategies solved at the same time; None: there is one strategy only."""
        self._spots, self._lock = spots, threading.Lock()
        self._places = solve_slots or threading.Semaphore()
        self._job: _Job | None = None
        self._waiting: Callable[[], None] | None = None  # the next job; only the newest is kept
        self._working = False

    def start(self, line: str, board: str, method: str | None = None, iterations: int | None = None) -> dict[str, Any]:
        """Start to solve a spot; answers as `state`.

        method      one of `METHODS`, by default the first; on a flop "resolving" or "unsafe"
        iterations  by default 100 on a flop, 200 on a turn or river

        Raises `ValueError` as `Spots.spot`, before the flop, for another game than full no-limit hold'em, or for
        invalid arguments; `BusyError` while other strategies are solved.
        """
        at = self._spots.decision(line, board)
        seat = Seat(self._spots.source)
        Resolver(seat)  # raises for other games
        street = _STREETS.get(self._spots.source.game.cards.cards_on(at.state.street))
        if street is None:
            raise ValueError("spots are re-solved from the flop on: before the flop the tree is too large")
        method = _METHODS[street][0] if method is None else method
        iterations = _ITERATIONS[street] if iterations is None else iterations
        if method not in _METHODS[street]:
            allowed = ", ".join(_METHODS[street])
            raise ValueError(f"method = {method!r} is not allowed: on the {street} it must be one of {allowed}")
        if not 1 <= iterations <= MOST_ITERATIONS:
            raise ValueError(f"iterations = {iterations}: they must be from 1 to {MOST_ITERATIONS:,}")
        job = _Job(line, board, method, iterations)
        with self._lock:
            if not self._working and not self._places.acquire(blocking=False):
                raise BusyError("spots of other strategies are being solved: try again when one of them is done")
            if self._job is not None:
                self._job.stopped = True
            self._job, self._waiting = job, partial(self._solve, job, at, seat, street)
            if not self._working:
                self._working = True
                threading.Thread(target=self._work, daemon=True).start()
        return job.document()

    def _work(self) -> None:
        """Solve the waiting jobs until there are none."""
        while True:
            with self._lock:
                work, self._waiting = self._waiting, None
                self._working = work is not None
                if work is None:
                    self._places.release()
                    return
            work()

    def state(self) -> dict[str, Any]:
        """Return the newest job; `ValueError` if there is none.

        The answer has `line`, `board`, `method`, the requested `iterations`, `seconds`, `done`, `problem` and `result`.
        The result is the strategy as `Spots.strategy` returns it, and:

        iterations    completed iterations
        gap_chips     of a turn or river: exploitability of the solution in the gadget game, in chips per hand
        excess_chips  of a flop: chips that can be won more than against the original strategy
        values        [h][A] EV of each action if both players follow the solution, as of `ExpectedValues`

        Values that are not yet known are null; on a flop they are known at the end.
        """
        if self._job is None:
            raise ValueError("no spot has been re-solved yet")
        return self._job.document()

    def stop(self) -> dict[str, Any]:
        """Stop the newest job; answers and raises as `state`."""
        found = self.state()
        if self._job is not None:
            self._job.stopped = True
        return found

    def _solve(self, job: _Job, at: SpotDecision, seat: Seat, street: str) -> None:
        try:
            iterations = min(_FIRST, job.iterations)
            while not job.stopped:
                self._stage(job, at, seat, street, iterations)
                if iterations == job.iterations:
                    break
                iterations = min(_FACTOR * iterations, job.iterations)
        except Exception as error:  # any error is shown on the page, and the next job is solved
            job.problem = " ".join(str(error).split()) or type(error).__name__
        finally:
            job.seconds = time.perf_counter() - job.began

    def _stage(self, job: _Job, at: SpotDecision, seat: Seat, street: str, iterations: int) -> None:
        """Solve with a number of iterations; set the job's result to the strategy and then to its values.

        On a flop the values take two passes over all turns and rivers of some seconds each, so only the last stage has
        them.
        """
        assert isinstance(at.state, BettingState)
        settings = settings_of(f"{street}:{job.method}")
        resolver = Resolver(seat, replace(settings, effort=Effort(iterations, stopped=lambda: job.stopped)))
        acted = [(state, action, board) for state, action, board in at.acted if isinstance(state, BettingState)]
        found = resolver.begin(at.state.player, acted, at.state, at.board)
        if job.stopped:
            return  # stopped within the stage, which has fewer iterations than it would state
        answer = self._spots.strategy(job.line, job.board, found.actions, found.played().T)
        empty: dict[str, Any] = {"gap_chips": None, "excess_chips": None, "values": None}
        job.result = answer = answer | empty | {"iterations": iterations}
        if street == "flop" and iterations < job.iterations:
            return
        each = found.values() if at.reach[1 - at.state.player].any() else None
        values = None if each is None else json_rows(each[:, at.live].T + at.state.put_in[at.state.player])
        if street != "flop":
            bound = {"gap_chips": round(found.gap_chips, 4)}
        else:
            bound = {} if isnan(found.excess_chips) else {"excess_chips": round(found.excess_chips, 4)}
        job.result = answer | bound | {"values": values}
