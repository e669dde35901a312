"""Workers that are threads of this process, on tables in memory of its own.

Such memory gets huge pages where shared memory is refused them (`storage.pages`).  What it costs: nobody else can read
the tables while the run goes on; a worker that hangs cannot be ended without the session, which then ends without a
checkpoint; and one that crashes takes the session with it, which goes on from its last checkpoint.  A worker trains as
a process would, to the last bit; kernels let the others run meanwhile.
"""

import threading
import time
import traceback
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.config.table import first_refused
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.session import control
from mccfr.runs.session.pool import WorkerPool
from mccfr.runs.session.shared_deck import own_buckets
from mccfr.runs.session.watch import Watch, thread_stat
from mccfr.runs.session.worker import publish, read_state, work
from mccfr.solvers.solver import Share
from mccfr.tables.layout import private_tables
from storage.pages import huge_zeros

_END_SECONDS = 10.0
_KILL_SECONDS = 2.0


class ThreadPool(WorkerPool):
    """Worker threads on tables in this process's own memory."""

    _ended_text: ClassVar[str] = "cannot be ended, being a thread"

    @classmethod
    def problem(cls, config: Config) -> str | None:
        """As `AllInMemory.problem`: the tables are whole, and lie in no directory."""
        checks = [
            ("run.pool", config.run.strata is None, "'processes' where run.strata is given"),
            ("tables.live_dir", config.tables.live_dir == "auto", "'auto' with run.pool = 'threads'"),
        ]
        return super().problem(config) or first_refused(config, checks)

    def __init__(self, run: Run, game: Game) -> None:
        super().__init__(run)
        self.tables = private_tables(run.layout(game), huge_zeros)
        self.game = own_buckets(game, run.algorithm)
        self._threads: list[threading.Thread] = []
        self._causes: dict[int, str] = {}  # of death, by worker

    def _new_cells(self, rows: int) -> npt.NDArray[np.int64]:
        return np.zeros((rows, control.COLUMNS), np.int64)

    def _begin_workers(self, workers: int) -> None:
        self._ordered_at = time.monotonic()
        # Daemons: a second signal ends the process whatever they do.
        self._threads = [
            threading.Thread(target=self._train, args=(worker,), name=f"worker {worker}", daemon=True)
            for worker in range(workers)
        ]
        for thread in self._threads:
            thread.start()
        stats, lost = [thread_stat(thread.native_id or 0) for thread in self._threads], self._lost
        self._watch = Watch(self._cells[1:], stats, lambda worker: worker not in lost)  # as in `ProcessPool`

    def _train(self, worker: int) -> None:
        """What a worker's thread does."""
        run, mine = self._run, self._cells[1 + worker]
        try:
            share = Share(worker, run.config.run.workers, read_state(mine))
            solver = run.algorithm.solver(self.game, self.tables, share)
            solver.warm_up()
            publish(mine, solver.state)
            work(solver, run.algorithm.schedule, self._cells, worker, lambda: True)
        except BaseException as error:  # whatever it is, the session must know, and not this thread alone
            with self._log.open("a") as log:
                traceback.print_exc(file=log)
            self._causes[worker] = type(error).__name__

    def _find_dead(self) -> bool:
        dead = {worker: cause for worker, cause in self._causes.items() if worker not in self._lost}
        for worker, cause in dead.items():
            self._lost[worker] = f"worker {worker} died ({cause}; its last words are in {self._log})"
        return bool(dead)

    def _count(self) -> int:
        return len(self._threads)

    def can_save(self) -> bool:
        # Tables that a thread may still be changing are not worth a checkpoint.
        return super().can_save() and not any(self._threads[worker].is_alive() for worker in self._lost)

    def _end(self, worker: int) -> None:
        """Threads cannot be ended; this one is told to end by itself, as all are when the pool is closed."""

    def kill(self) -> None:
        left = [worker for worker in range(len(self._threads)) if worker not in self._lost]
        self._quit(left, _KILL_SECONDS)
        for worker in left:
            self._ended.add(worker)
            self._lost[worker] = f"worker {worker} was ended"

    def close(self) -> None:
        self._quit([worker for worker in range(len(self._threads)) if worker not in self._lost], _END_SECONDS)

    def _quit(self, workers: list[int], seconds: float) -> None:
        """Tell all workers to end, and wait for some of them."""
        if self._threads:
            self._order(control.QUIT)
        end = time.monotonic() + seconds
        for worker in workers:
            self._threads[worker].join(max(0.1, end - time.monotonic()))
