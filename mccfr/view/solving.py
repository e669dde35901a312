"""Solving a spot again while a page waits: from the flop on, on real hands and with the bets really made.

`mccfr.play.resolving` says what is solved; nothing is kept of it but what every hand plays at the spot, and wins.
Solving is done in stages of more and more iterations, each from the beginning, so that there is something to look at
soon.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan
from typing import Any

from mccfr.games.betting import BettingState
from mccfr.play.resolving import METHODS, Effort, Resolver
from mccfr.play.resolving.table import settings_of
from mccfr.play.seat import Seat
from mccfr.view.spots import SpotDecision, Spots
from mccfr.view.values import json_rows

MOST_ITERATIONS = 5_000
MOST_SOLVES = 2
"""Strategies whose spots are solved at a time."""
_STREETS = {3: "flop", 4: "turn", 5: "river"}  # by cards on the board
_METHODS = {"flop": ("resolving", "unsafe"), "turn": METHODS, "river": METHODS}
_ITERATIONS = {"flop": 100, "turn": 200, "river": 200}
_FIRST = 10
_FACTOR = 4


class BusyError(RuntimeError):
    """There is too much to do: the same may be asked for again later."""


@dataclass
class _Job:
    """A spot that is being solved.

    result   what `Spots.strategy` tells of the last stage, and its `gap_chips`, `excess_chips` and `iterations`; None:
             none has ended
    problem  what went wrong, in a sentence
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
        """The job as it stands."""
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
    """Spots of a strategy that are solved again, one at a time: a new one ends the one before."""

    def __init__(self, spots: Spots, places: threading.Semaphore | None = None) -> None:
        """`places` are those of all strategies that are solved at a time; None: this one is alone."""
        self._spots, self._lock = spots, threading.Lock()
        self._places = places or threading.Semaphore()
        self._job: _Job | None = None
        self._waiting: Callable[[], None] | None = None  # what is solved next; only the newest is worth it
        self._working = False

    def start(self, line: str, board: str, method: str | None = None, iterations: int | None = None) -> dict[str, Any]:
        """Begin; answers as `state`.

        method      of `METHODS`, the first by default; of a flop "resolving" or "unsafe"
        iterations  100 of a flop and 200 of a turn or a river by default

        Raises `ValueError` for a line or board as `Spots.spot` does, before the flop, another game than whole no-limit
        hold'em, an unknown method and a number of iterations out of bounds; `BusyError` while others are solved.
        """
        at = self._spots.decision(line, board)
        seat = Seat(self._spots.source)
        Resolver(seat)  # refuses other games
        street = _STREETS.get(self._spots.source.game.cards.cards_on(at.state.street))
        if street is None:
            raise ValueError("spots are solved again from the flop on: before it too much follows")
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
        """Solve what waits, one job after the other, until nothing does."""
        while True:
            with self._lock:
                work, self._waiting = self._waiting, None
                self._working = work is not None
                if work is None:
                    self._places.release()
                    return
            work()

    def state(self) -> dict[str, Any]:
        """The newest job: `line`, `board`, `method`, `iterations` asked for, `seconds`, `done`, `problem`, `result`.

        Of the result: what every hand plays, as a spot tells it, `iterations` done, `gap_chips`, of a flop in its place
        `excess_chips`, what may be won there more than from the strategy as it is, `values` [h][A], what its actions
        win from here on if both go on by the solution, as of `ShownValues`: all null until they are known, which of a
        flop is at the end.
        Raises `ValueError` where nothing was begun.
        """
        if self._job is None:
            raise ValueError("no spot has been solved again yet")
        return self._job.document()

    def stop(self) -> dict[str, Any]:
        """End the newest job; answers and raises as `state`."""
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
        except Exception as error:  # whatever it is, the page is told, and the next job is worked on
            job.problem = " ".join(str(error).split()) or type(error).__name__
        finally:
            job.seconds = time.perf_counter() - job.began

    def _stage(self, job: _Job, at: SpotDecision, seat: Seat, street: str, iterations: int) -> None:
        """Have the job tell what is found after so many iterations: what is played, then what it is worth.

        Of a flop that is all turns and rivers, twice and some seconds each time: of its last stage alone.
        """
        assert isinstance(at.state, BettingState)
        settings = settings_of(f"{street}:{job.method}")
        resolver = Resolver(seat, replace(settings, effort=Effort(iterations, stopped=lambda: job.stopped)))
        acted = [(state, action, board) for state, action, board in at.acted if isinstance(state, BettingState)]
        found = resolver.begin(at.state.player, acted, at.state, at.board)
        if job.stopped:
            return  # within the stage, which tells of fewer iterations
        told = self._spots.strategy(job.line, job.board, found.actions, found.played().T)
        empty: dict[str, Any] = {"gap_chips": None, "excess_chips": None, "values": None}
        job.result = told = told | empty | {"iterations": iterations}
        if street == "flop" and iterations < job.iterations:
            return
        each = found.values() if at.reach[1 - at.state.player].any() else None
        values = None if each is None else json_rows(each[:, at.live].T + at.state.put_in[at.state.player])
        if street != "flop":
            bound = {"gap_chips": round(found.gap_chips, 4)}
        else:
            bound = {} if isnan(found.excess_chips) else {"excess_chips": round(found.excess_chips, 4)}
        job.result = told | bound | {"values": values}
