"""Blocks of strata between memory and disk: while one is trained, a thread writes back another and reads the next.

Where there is a frame for every block, all stay in memory, and are written only where a checkpoint asks for it.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt

from mccfr.runs.session.strata.frames import cells_of
from storage.blocks import BlockStore
from storage.checkpoint import Checkpoint


class Resident:
    """Which block is in which frame, and what moves.  Used by one thread, while it may wait for its own other one.

    store            the versions on disk
    moving_seconds   that blocks have taken to move, both ways
    waiting_seconds  that a turn could not begin for want of its block
    """

    def __init__(self, store: BlockStore, tables: Mapping[str, npt.NDArray[Any]], frames: int) -> None:
        self.store = store
        self._tables, self._whole = tables, frames == store.partition.blocks
        self._holds: list[int | None] = [None] * frames
        self._changed: set[int] = set()  # frames whose blocks the disk does not have as they are
        self._moving: Future[None] | None = None
        self._waits_since: float | None = None
        self.moving_seconds = self.waiting_seconds = 0.0
        self._mover = ThreadPoolExecutor(1, "blocks")

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Begin with the blocks of a checkpoint, or with zeros; nothing is in memory yet."""
        self.store.go_on(checkpoint)
        self._holds = [None] * len(self._holds)
        self._changed.clear()

    def fetch(self, block: int) -> bool:
        """Whether a block is in memory; if it is not, it is on its way.

        Raises `OSError` where a block cannot be read or written back, `NotFiniteError` for a cell that is no number.
        """
        if self._moving is not None and self._moving.done():
            moved, self._moving = self._moving, None
            moved.result()
        here = self._moving is None and block in self._holds
        self._note_waiting(here)
        if not here and self._moving is None:
            self._move(self._place(block), block)
        return here

    def _note_waiting(self, here: bool) -> None:
        """Count the time from when a block was first asked for until it is here."""
        now = time.monotonic()
        if self._waits_since is not None:
            self.waiting_seconds += now - self._waits_since
        self._waits_since = None if here else now

    def ahead(self, block: int, beside: int) -> None:
        """Have a block read into a frame that does not hold the block `beside`, whose turn it is."""
        if self._moving is None and block not in self._holds:
            self._move(self._place(block, beside), block)

    def frame(self, block: int) -> int:
        """The frame of a block that is in memory."""
        return self._holds.index(block)

    def note_changed(self, block: int) -> None:
        """Note that a block was trained."""
        self._changed.add(self.frame(block))

    def flush(self) -> None:
        """Wait for what moves, and bring to disk what it does not have; raises as `fetch`."""
        if self._moving is not None:
            moved, self._moving = self._moving, None
            moved.result()
        for frame in sorted(self._changed):
            self._write(frame)

    def close(self) -> None:
        """Wait for what moves, whatever comes of it."""
        self._mover.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _place(self, block: int, beside: int | None = None) -> int:
        """The frame that a block may have: its own, an empty one, or one of a block that is not `beside` it."""
        if self._whole:
            return block
        free = [frame for frame, held in enumerate(self._holds) if held is None or held != beside]
        return min(free, key=lambda frame: (self._holds[frame] is not None, frame in self._changed))

    def _move(self, frame: int, block: int) -> None:
        self._moving = self._mover.submit(self._replace, frame, block)

    def _replace(self, frame: int, block: int) -> None:
        """Write back what a frame holds, as far as the disk does not have it, and read another block in its place."""
        if frame in self._changed:
            self._write(frame)
        self._holds[frame] = None
        with self._timed():
            self.store.read(block, cells_of(self._tables, self.store.partition, frame, block))
        self._holds[frame] = block

    def _write(self, frame: int) -> None:
        block = self._holds[frame]
        assert block is not None
        with self._timed():
            self.store.write(block, cells_of(self._tables, self.store.partition, frame, block))
        self._changed.discard(frame)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.moving_seconds += time.monotonic() - began


class ResidentState:
    """What a checkpoint of a run in turn holds beside its tables: the turns that have ended, and versions of blocks."""

    def __init__(self, resident: Resident, fields: Mapping[str, Any]) -> None:
        self._resident, self._fields = resident, fields

    def write(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Bring all blocks to disk; returns what the checkpoint's state says, and the versions that it names."""
        self._resident.flush()
        store = self._resident.store
        return {**self._fields, **store.state()}, store.names()

    def facts(self) -> dict[str, Any]:
        """What a line of `trends.jsonl` says of the disk, in this session so far."""
        resident = self._resident
        return {
            "disk": {
                "moved_bytes": resident.store.moved,
                "moving_seconds": round(resident.moving_seconds, 3),
                "waiting_seconds": round(resident.waiting_seconds, 3),
            }
        }

    def settle(self) -> None:
        """The checkpoint is there: remove versions that none names any more."""
        self._resident.store.settle()
