"""Opens checkpoints with a lock, so that no other process removes them during reading."""

from collections.abc import Iterator
from pathlib import Path

from storage.block_tables import open_with_blocks
from storage.checkpoint import Checkpoint, checkpoint_path, list_checkpoints
from storage.directory_lock import ReadLock


def open_locked(root: Path, number: int | None = None) -> Checkpoint | None:
    """Open and lock the newest checkpoint in `root`, or checkpoint `number`; None if it does not exist.

    Where the file system has locks, the lock keeps the checkpoint on disk, and with it the parts of its tables in other
    directories (blocks). The lock lasts as long as the caller keeps the result or its attribute `lock`.

    Raises `DamagedError` if the checkpoint is damaged; no older one is tried. Raises `UnreadableError` if the system
    cannot read it, and `ValueError` for another format.
    """
    while True:
        numbers = list_checkpoints(root)
        if not numbers or number not in (None, *numbers):
            return None
        path = checkpoint_path(root, numbers[-1] if number is None else number)
        try:
            lock = ReadLock(path)
        except FileNotFoundError:  # retention removed it after the listing
            continue
        try:
            checkpoint = open_with_blocks(path)
        except (OSError, ValueError):
            if lock.is_held or lock.is_in_place():
                raise
            continue
        checkpoint.lock = lock
        return checkpoint


def lock_each(root: Path) -> Iterator[ReadLock]:
    """Lock one checkpoint in `root` after another, ascending, and yield each lock.

    A lock is released when the next is requested. Checkpoints removed meanwhile are left out; if all were removed, the
    directory is listed again.
    """
    complete = False
    while not complete and (numbers := list_checkpoints(root)):
        for number in numbers:
            try:
                lock = ReadLock(checkpoint_path(root, number))
            except FileNotFoundError:
                continue
            with lock:
                yield lock
                complete = complete or lock.is_held or lock.is_in_place()
