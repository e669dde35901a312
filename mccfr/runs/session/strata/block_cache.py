"""Moves blocks of strata between memory and disk: a thread writes and reads blocks during training.

A stratum is a group of second-street boards (flops) with buckets of its own from that street on. A block is the rows of
one or more strata, in all tables from the second street on. A frame is memory for the rows of one block. If there is a
frame for every block, all blocks stay in memory and are written only at checkpoints.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy.typing as npt

from mccfr.runs.session.strata.block_slots import cells_of
from storage.block_tables import BlockStore
from storage.checkpoint import Checkpoint


class BlockCache:
    """Keeps blocks of table rows in frames of memory; a thread moves them from and to disk.

    A block is the rows of some strata (groups of flops); a frame is memory for one block. The out-of-core pool asks
    this object for the block to train next. It is created with the tables in memory and the number of frames.

    store            files of the blocks on disk; checkpoints name versions of them
    moving_seconds   seconds spent on moving blocks, both ways, in this session
    waiting_seconds  seconds that training waited for a block
    """

    def __init__(self, store: BlockStore, tables: Mapping[str, npt.NDArray[Any]], frames: int) -> None:
        self.store = store
        self._tables, self._whole = tables, frames == store.partition.blocks
        self._holds: list[int | None] = [None] * frames
        self._changed: set[int] = set()  # frames whose blocks differ from the disk
        self._moving: Future[None] | None = None
        self._waits_since: float | None = None
        self.moving_seconds = self.waiting_seconds = 0.0
        self._mover = ThreadPoolExecutor(1, "blocks")

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Start from a checkpoint's blocks of table rows (None: zeros), none of them in memory.

        Raises `ValueError` if the checkpoint divides the tables into other blocks.
        """
        self.store.go_on(checkpoint)
        self._holds = [None] * len(self._holds)
        self._changed.clear()

    def fetch(self, block: int) -> bool:
        """Return True if a block of table rows is in memory; else begin to load it, and return False.

        While any block is moving, the result is False, and no other move starts. The caller calls it again until the
        result is True.

        block  number of the block

        Raises `OSError` if an earlier move could not read or write a block, and `NotFiniteError` if it met a NaN or
        infinite cell.
        """
        if self._moving is not None and self._moving.done():
            move, self._moving = self._moving, None
            move.result()
        is_present = self._moving is None and block in self._holds
        self._note_waiting(is_present)
        if not is_present and self._moving is None:
            self._move(self._frame_for(block), block)
        return is_present

    def _note_waiting(self, is_present: bool) -> None:
        """Add the time since the last call to `waiting_seconds` if the block was missing then.

        is_present  whether the wanted block of table rows is in memory now
        """
        now = time.monotonic()
        if self._waits_since is not None:
            self.waiting_seconds += now - self._waits_since
        self._waits_since = None if is_present else now

    def ahead(self, block: int, training_block: int) -> None:
        """Start to load the block of table rows that trains next, while another block trains.

        block           number of the block to load
        training_block  number of the block that trains, whose frame of memory is not used

        No effect while another block is moving, or if the block is in memory.
        """
        if self._moving is None and block not in self._holds:
            self._move(self._frame_for(block, training_block), block)

    def frame(self, block: int) -> int:
        """Return the number of the memory frame that holds a loaded block of table rows."""
        return self._holds.index(block)

    def note_changed(self, block: int) -> None:
        """Record that a block of table rows is trained, so it is written before it is replaced."""
        self._changed.add(self.frame(block))

    def flush(self) -> None:
        """Wait until no block of table rows moves, and write all changed blocks to disk.

        Raises `OSError` if a block cannot be read or written, and `NotFiniteError` for a NaN or infinite cell.
        """
        if self._moving is not None:
            move, self._moving = self._moving, None
            move.result()
        for frame in sorted(self._changed):
            self._write(frame)

    def close(self) -> None:
        """Wait until no block of table rows moves, or is removed from disk; ignore errors of moves."""
        self._mover.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _frame_for(self, block: int, training_block: int | None = None) -> int:
        """Return the number of the frame of memory into which to load a block of table rows.

        If all blocks have frames, it is the block's own. Otherwise it is an empty frame, else one whose block does not
        train, preferably an unchanged one.

        training_block  number of the block in training, whose frame must be kept; None: no block trains
        """
        if self._whole:
            return block
        free = [frame for frame, held in enumerate(self._holds) if held is None or held != training_block]
        return min(free, key=lambda frame: (self._holds[frame] is not None, frame in self._changed))

    def _move(self, frame: int, block: int) -> None:
        self._moving = self._mover.submit(self._replace, frame, block)

    def _replace(self, frame: int, block: int) -> None:
        """Write the block of table rows in a memory frame to disk if it has changed; read another.

        frame  number of the frame
        block  number of the block to read into it
        """
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
