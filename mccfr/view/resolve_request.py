"""Re-solves a spot, a decision with both players' ranges, in the background for the page.

Spots are on the flop, turn or river. Hands are grouped in buckets only on turn and river after a flop, and bets made
before keep their true size. Both players begin with the ranges that the page shows. Safe re-solving, which bots use,
would show EVs against another range: the hands with which the opponent enters its gadget game. A solve has stages with
increasing iterations, each from the beginning, so that a first result is shown soon.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import isnan
from typing import Any

from mccfr.games.betting import BettingState
from mccfr.games.translation import Translation
from mccfr.play.expected_value import action_means, hand_ev
from mccfr.play.resolving import Effort
from mccfr.play.resolving.solved_street import SolvedSpot
from mccfr.view.expected_values import json_rows
from mccfr.view.spot_view import SpotDecision, Spots

MOST_ITERATIONS = 5_000
MOST_SOLVES = 2
"""Number of strategies whose spots are solved at the same time."""
_STREETS = {3: "flop", 4: "turn", 5: "river"}  # by number of board cards
_ITERATIONS = {"flop": 100, "turn": 200, "river": 200}
_FIRST = 10
_DIGITS = 4
_FACTOR = 4


class BusyError(RuntimeError):
    """Too many requests are in progress; the same request may be repeated later."""


@dataclass
class _Job:
    """A re-solve of one decision with both ranges: the request, its progress and its result so far.

    iterations  number of iterations to run
    began       time of the request, by `time.perf_counter` in seconds
    result      strategy and EVs after the last completed stage, as JSON; None before the first
    problem     sentence on an error; "" for none
    seconds     duration of the ended solve; None before its end
    stopped     True if the user or a newer request has stopped it
    """

    line: str
    board: str
    iterations: int
    began: float = field(default_factory=time.perf_counter)
    result: dict[str, Any] | None = None
    problem: str = ""
    seconds: float | None = None
    stopped: bool = False

    def document(self) -> dict[str, Any]:
        """Return the request, progress and result as JSON for the page; `Solving.state` lists the fields."""
        seconds = time.perf_counter() - self.began if self.seconds is None else self.seconds
        return {
            "line": self.line,
            "board": self.board,
            "iterations": self.iterations,
            "seconds": round(seconds, 2),
            "done": self.seconds is not None,
            "problem": self.problem,
            "result": self.result,
        }


class Solving:
    """Re-solves spots (decisions with both ranges) of a strategy in a thread, one at a time.

    A new request stops the previous solve.
    """

    def __init__(self, spots: Spots, solve_slots: threading.Semaphore | None = None) -> None:
        """Prepare for requests; nothing is re-solved yet.

        spots        the strategy whose decisions are re-solved
        solve_slots  semaphore that limits how many solves run at the same time in the server; None: a new one that
                     allows one solve
        """
        self._spots, self._lock = spots, threading.Lock()
        self._places = solve_slots or threading.Semaphore()
        self._job: _Job | None = None
        self._waiting: Callable[[], None] | None = None  # the next job; only the newest is kept
        self._working = False

    def start(self, line: str, board: str, iterations: int | None = None) -> dict[str, Any]:
        """Start to re-solve the decision after a line on a board; return its progress as `state` does.

        iterations  number of iterations; None: 100 on a flop, 200 on a turn or river

        Raises `ValueError` for an invalid line, board or number, before the flop, and for another game than full
        no-limit hold'em. Raises `BusyError` if the server already runs as many other solves as it allows.
        """
        at, game = self._spots.decision(line, board), self._spots.source.game
        if not isinstance(self._spots.betting, Translation) or game.cards.boards is not None:
            raise ValueError(f"re-solving needs a policy of whole no-limit hold'em; {game.name} is not")
        street = _STREETS.get(game.cards.cards_on(at.state.street))
        if street is None:
            raise ValueError("spots are re-solved from the flop on: before the flop the tree is too large")
        iterations = _ITERATIONS[street] if iterations is None else iterations
        if not 1 <= iterations <= MOST_ITERATIONS:
            raise ValueError(f"iterations = {iterations}: they must be from 1 to {MOST_ITERATIONS:,}")
        job = _Job(line, board, iterations)
        with self._lock:
            if not self._working and not self._places.acquire(blocking=False):
                raise BusyError("spots of other strategies are being solved: try again when one of them is done")
            if self._job is not None:
                self._job.stopped = True
            self._job, self._waiting = job, partial(self._solve, job, at, street)
            if not self._working:
                self._working = True
                threading.Thread(target=self._work, daemon=True).start()
        return job.document()

    def _work(self) -> None:
        """Run the requested re-solve in this thread, then the newest one requested meanwhile, and so on."""
        while True:
            with self._lock:
                work, self._waiting = self._waiting, None
                self._working = work is not None
                if work is None:
                    self._places.release()
                    return
            work()

    def state(self) -> dict[str, Any]:
        """Return progress and result of the newest solve; `ValueError` if there is none.

        The answer has `line`, `board`, the requested `iterations`, and `seconds` so far.  It also has `done` (True once
        the solve has ended), `problem` (text of an error, or "") and `result` (None at first).  The result has the
        actions and their probabilities (`Spots.strategy`), and for h hands and A actions:

        iterations  completed iterations
        gap_chips   sum of both players' best-response gains in chips per hand, on a turn or river; None on a flop
        values      [h][A] EV of each action in chips if both players follow the solution
        taken       [A] mean EV of the hands that take each action

        `values` and `taken` are None until they are computed; on a flop this happens at the end.
        """
        if self._job is None:
            raise ValueError("no spot has been re-solved yet")
        return self._job.document()

    def stop(self) -> dict[str, Any]:
        """Stop the newest solve; return its progress so far as `state` does, `ValueError` if there is none."""
        found = self.state()
        if self._job is not None:
            self._job.stopped = True
        return found

    def _solve(self, job: _Job, at: SpotDecision, street: str) -> None:
        """Solve in stages of 10, 40, 160, ... iterations, up to the requested number, a stop or an error."""
        try:
            iterations = min(_FIRST, job.iterations)
            while not job.stopped:
                self._stage(job, at, street, iterations)
                if iterations == job.iterations:
                    break
                iterations = min(_FACTOR * iterations, job.iterations)
        except Exception as error:  # any error is shown on the page, and the next job is solved
            job.problem = " ".join(str(error).split()) or type(error).__name__
        finally:
            job.seconds = time.perf_counter() - job.began

    def _stage(self, job: _Job, at: SpotDecision, street: str, iterations: int) -> None:
        """Solve a spot from the beginning with `iterations`; store the strategy, then its EVs, as the result.

        job     the request, whose result is set
        at      the decision, with both ranges
        street  its street, "flop", "turn" or "river"

        On a flop the EVs are computed only once all requested iterations are done: they take some seconds. Nothing is
        stored if the solve is stopped before `iterations` are done.
        """
        betting, state = self._spots.betting, at.state
        assert isinstance(state, BettingState) and isinstance(betting, Translation)
        effort = Effort(iterations, stopped=lambda: job.stopped)
        solved = SolvedSpot(
            betting.rules, state, list(at.board), at.reach, self._spots.source.game.cards, effort=effort
        )
        if job.stopped:
            return  # stopped within the stage, which has fewer iterations than it would state
        played = solved.played()
        answer = self._spots.strategy(job.line, job.board, solved.actions, played.T)
        answer |= {"gap_chips": None if isnan(solved.gap_chips) else round(solved.gap_chips, _DIGITS)}
        job.result = answer | {"values": None, "taken": None, "iterations": iterations}
        if street == "flop" and iterations < job.iterations:
            return
        met = solved.opposing(state.player, solved.ranges)
        ev = hand_ev(solved.won()[0], met, state.put_in[state.player])
        taken = [one for _, one in action_means(ev, played, solved.ranges[state.player] * met)]
        job.result = job.result | {
            "values": json_rows(ev[:, at.live].T),
            "taken": [None if one is None else round(one, _DIGITS) for one in taken],
        }
