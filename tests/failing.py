"""Makes single durable steps fail: full disk, failing disk, no free descriptors."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from storage import durable

_OF_FOLDERS = ("make_dir", "fsync_dir", "rename", "exchange", "remove_file", "_remove_empty_dir")
STEPS = (*_OF_FOLDERS, "write_file", "adopt_file", "fsync_file", "append", "append_lines", "cut")
"""Functions of `storage.durable` that do one step each; its other functions call them."""


class Failing:
    """Counts steps; raises `OSError` at step number `at` (from 1), before it or after half of a write."""

    def __init__(self, at: int, number: int) -> None:
        self.at, self.number, self.count, self.synced_again = at, number, 0, False
        self._failed: set[str] = set()

    def wrap(self, name, step):
        def failing(*arguments, **options):
            self.count += 1
            path = str(arguments[0])
            if name == "fsync_file" and path in self._failed:
                self.synced_again = True  # a second fsync does not write what a failed one has dropped
            if name in ("write_file", "rename"):  # the name is a new file from now on
                self._failed.discard(str(arguments[-1]) if name == "rename" else path)
            if self.count != self.at:
                return step(*arguments, **options)
            if name == "fsync_file":
                self._failed.add(path)
            if name == "write_file" and self.number == errno.ENOSPC:
                arguments[0].write_bytes(b"half of what")
            if name == "append":
                arguments[1].write(arguments[2][: len(arguments[2]) // 2])
            raise OSError(self.number, os.strerror(self.number), path)

        return failing


def fails(number: int, path: str | None = None) -> Callable[..., None]:
    """Return a function that raises an `OSError` that names `path`, by default its first argument."""

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number), path or str(arguments[0]))

    return fail


@contextmanager
def failing(at: int, number: int = errno.ENOSPC) -> Iterator[Failing]:
    """Let durable step number `at` fail inside the block; with 0 only count the steps."""
    found, steps = Failing(at, number), {name: getattr(durable, name) for name in STEPS}
    for name, step in steps.items():
        setattr(durable, name, found.wrap(name, step))
    try:
        yield found
    finally:
        for name, step in steps.items():
            setattr(durable, name, step)
