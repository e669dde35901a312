"""Out-of-core pool: trains blocks of strata in turn, with two in memory, or all if they fit.

A stratum is a group of second-street boards (flops) with buckets of its own from that street on; a block is the table
rows of one or more strata, from the second street on. The loop is `StrataPool._wait_for_barriers` of `strata_pool`, the
base class. Once all workers rest, its `_advance` calls `BlockIntervals.ready`, which fetches the next block: each cycle
has a new random order (`mccfr.solvers.out_of_core`).  A turn is the training of one block, in several intervals:
`BlockSchedule.begin` gives the next interval, `end` records its end, and `between` is true between two turns. While a
block trains, `start` has the one after it loaded.  `BlockCache` of `block_cache` moves blocks in a thread: `_frame_for`
chooses the one that leaves, and `_replace` writes it if it has changed, and reads the new one.

Limits of nodes and iterations take effect at the end of a cycle, in which each block trains once. The clock and signals
take effect after the present block. A checkpoint holds the tables of the first street and names the versions of all
blocks on disk. The number of blocks trained gives the position from which to resume.
"""

import errno
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.run_tables import Config
from mccfr.config.table_base import first_refused
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.session import control
from mccfr.runs.session.strata.block_cache import BlockCache
from mccfr.runs.session.strata.block_slots import first_specs, frame_blocks, partition
from mccfr.runs.session.strata.strata_pool import Intervals, StrataPool
from mccfr.solvers.out_of_core import BlockSchedule, Position, turns_of
from mccfr.solvers.strata_training import Interval
from mccfr.tables.table_layout import TableSet
from storage.block_tables import BlockStore
from storage.checkpoint import Checkpoint
from storage.durable import error_text
from storage.open_directory import shown
from storage.table_formats import NotFiniteError

TURNS = "turns"
"""Key of a checkpoint's state, with the progress of the schedule.

Its value is {"ended": blocks trained since the run began, "cycle_nodes": nodes touched before the present cycle}.
"""


ROOM_SECONDS = 30.0
"""Seconds between checks of a full disk."""


class BlockIntervals(Intervals):
    """Plans the intervals of an out-of-core run: chooses the block that trains, and moves blocks.

    An interval is the training between two barriers, at which all workers rest. A block is the table rows of some
    strata (groups of flops). This object is also the `ExtraState` of the run's checkpoints, because the blocks have
    files of their own.
    """

    def __init__(self, run: Run, game: Game, tables: TableSet) -> None:
        super().__init__(run, game, tables)
        layout = run.layout(game)
        parts = partition(run.config, game, layout)
        self._turns = BlockSchedule(self._barrier, *turns_of(run.config))
        self._run, self._next_try_at = run, 0.0
        store = BlockStore(
            run.directory,
            parts,
            run.identity,
            format=run.config.tables.format,
            lock=run.lock,
        )
        self._resident = BlockCache(store, tables, len(frame_blocks(run.config, layout, parts)))

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Resume from a checkpoint's blocks of table rows and count of trained blocks.

        checkpoint  checkpoint to resume from; None: a new run

        Raises `ValueError` if the checkpoint divides the tables into other blocks.
        """
        self._resident.go_on(checkpoint)
        if checkpoint is not None:
            ended = checkpoint.state[TURNS]
            self._turns.position = Position(ended["ended"], ended["cycle_nodes"])

    def write(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Write all changed blocks of table rows to disk; return a checkpoint's data on them.

        The result is (fields of the checkpoint, {name of a block's version: content hash}). The fields contain the
        number of blocks trained so far. Call it only between the training of two blocks.

        Raises `OSError` if a block cannot be read or written, and `NotFiniteError` for a NaN or infinite cell.
        """
        self._resident.flush()
        position, store = self._turns.position, self._resident.store
        return {TURNS: {"ended": position.turns, "cycle_nodes": position.nodes}, **store.state()}, store.names()

    def facts(self) -> dict[str, Any]:
        """Return {"disk": {name: number}} of this session so far, for a line of `trends.jsonl`.

        The numbers are bytes of table rows moved between memory and disk, seconds of moving them, and seconds that
        training waited for them.
        """
        resident = self._resident
        disk = {
            "moved_bytes": resident.store.moved,
            "moving_seconds": round(resident.moving_seconds, 3),
            "waiting_seconds": round(resident.waiting_seconds, 3),
        }
        return {"disk": disk}

    def settle(self) -> None:
        """Remove versions of blocks of table rows that no checkpoint names, except each block's newest.

        `Saver` calls it after it has committed a checkpoint.
        """
        self._resident.store.settle()

    def place(self) -> tuple[int, int]:
        """Return (number of the memory frame, number of the block of rows) that trains now."""
        block = self._turns.block()
        return self._resident.frame(block), block

    def pause(self) -> None:
        """Let training pause when the present block of table rows has been trained.

        No effect if the limit of nodes or iterations is reached already: training then ends with the cycle, in which
        each block trains once.
        """
        nodes, iterations = self.totals()
        if nodes < self._stop[0] and iterations < self._stop[1]:
            super().pause()

    def ready(self) -> bool:
        turns = self._turns
        if not turns.between:
            return True
        if time.monotonic() < self._next_try_at:
            return False
        return self._moved(lambda: self._resident.fetch(turns.block()))

    def over(self) -> bool:
        if not self._turns.between:
            return False
        nodes, iterations = self.totals()
        reached = nodes >= self._stop[0] or iterations >= self._stop[1]
        return not self._goes_on or (reached and self._turns.between_cycles)

    def start(self) -> Interval:
        begins = self._turns.between
        self.interval, quotas = self._turns.begin(self.states())
        self.rows[:, control.QUOTA] = quotas
        if begins:
            block = self._turns.block()
            self._resident.note_changed(block)
            self._resident.ahead(self._turns.block(1), block)
        return self.interval

    def _add(self, interval: Interval, changes: npt.NDArray[np.int64]) -> None:
        self._barrier.add(interval, changes)
        self._turns.end()

    def close(self) -> None:
        """Wait until no block of table rows moves, or is removed from disk; ignore errors of moves."""
        self._resident.close()

    def _moved(self, move: Callable[[], bool]) -> bool:
        """Call `move`, which moves a block between memory and disk, and return its result, a bool.

        Returns False if the disk is full; the next attempt is made after `ROOM_SECONDS`, for which training waits.
        Raises `RuntimeError` with one sentence if a block cannot be moved for another reason. Raises
        `LostDirectoryError` if the move fails because the run directory or its lock file was removed or replaced.
        """
        try:
            return move()
        except (OSError, NotFiniteError) as error:
            with suppress(OSError):  # the error of moving is the first
                self._run.check_lock()
            place = shown(str(self._run.directory))
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                self._next_try_at = time.monotonic() + ROOM_SECONDS
                logging.getLogger("mccfr.strata").warning(
                    "mccfr: there is no room for a block of strata on the disk of %s: training waits, and tries again "
                    "in %.0f s; make room, or stop the run",
                    place,
                    ROOM_SECONDS,
                )
                return False
            raise RuntimeError(
                f"a block of strata cannot be moved between memory and disk ({error_text(error)}); training since "
                f"the last checkpoint is lost: remove the cause, and continue with: mccfr resume {place}"
            ) from error


class BlockPool(StrataPool):
    """Pool of workers for `tables.memory_budget`, which train one block of table rows at a time.

    A block is the table rows of some strata (groups of flops); each worker trains some of the block's strata.
    """

    _turns: BlockIntervals

    @classmethod
    def problem(cls, config: Config) -> str | None:
        """Return a sentence if `run.strata` (groups of flops) is unset or below 2, else None."""
        strata, shared = config.run.strata, "left out unless run.strata shares the tables out, such as run.strata = 16"
        return first_refused(
            config,
            [
                ("tables.memory_budget", strata is not None, shared),
                ("run.strata", strata is None or strata >= 2, "at least 2 with tables.memory_budget"),
            ],
        )

    def _make_intervals(self) -> BlockIntervals:
        self._turns = BlockIntervals(self._run, self.game, self.tables)
        layout = self._run.layout(self.game)
        own = {spec.name: self.tables[spec.name] for spec in first_specs(layout)}
        self.tables = TableSet(own, layout.specs)  # the tables that a checkpoint holds itself
        return self._turns

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        self._turns.go_on(checkpoint)

    def extra_state(self) -> BlockIntervals:
        return self._turns

    def _place(self) -> None:
        self._cells[0, control.FRAME], self._cells[0, control.BLOCK] = self._turns.place()

    def close(self) -> None:
        super().close()
        self._turns.close()
