"""Holds a directory open, which gives a path that leads to it even after it is renamed.

Paths below `/proc/PID/fd/N` go through the open descriptor, so there is no race between checking a directory and
writing into it. A moved directory is followed, and nothing is created under its old name. Creating a file in a removed
directory fails.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from storage.damage import reading

_HELD = re.compile(r"/proc/[0-9]+/fd/[0-9]+(?![0-9])")
_held: dict[str, "OpenDirectory"] = {}


class OpenDirectory:
    """A directory held open, to write into safely, until `close` or the end of a `with` statement.

    Attributes:
        descriptor: file descriptor of the directory
        path:       path to the directory while it is open, for this and other processes of the same user
    """

    def __init__(self, directory: Path) -> None:
        """Open a directory.

        Raises `OSError` where there is none, or `/proc` is not mounted; `UnreadableError` where it cannot be opened.
        """
        outer = _held.get(str(directory))
        self._given: Path = Path(directory) if outer is None else outer._given
        with reading(directory):
            self.descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.path = self._own_path(directory)
        except OSError:
            os.close(self.descriptor)
            raise
        _held[str(self.path)] = self

    def _own_path(self, directory: Path) -> Path:
        with reading(directory):
            opened = os.fstat(self.descriptor)
        try:
            path = Path("/proc", Path("/proc/self").readlink(), "fd", str(self.descriptor))
            status = path.stat()
        except OSError:
            advice = "/proc is not mounted, and open directories are written to through it: mount it"
            raise OSError(errno.ENOSYS, advice, str(directory)) from None
        if not os.path.samestat(status, opened):
            raise OSError(errno.ENOSYS, "/proc shows other processes than this one's: mount it anew", str(directory))
        return path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; a second call does nothing."""
        if _held.pop(str(self.path), None) is not None:
            os.close(self.descriptor)

    def current_path(self) -> Path:
        """Return the path given on opening if it still leads to this directory, otherwise its present path."""
        if self._is_at(self._given):
            return self._given
        return Path(str(self.path.readlink()).removesuffix(_REMOVED))

    def is_removed(self) -> bool:
        """Return whether the directory was removed; False if it was only moved."""
        name = str(self.path.readlink())
        return name.endswith(_REMOVED) and not self._is_at(Path(name))

    def _is_at(self, path: Path) -> bool:
        try:
            return os.path.samestat(path.stat(), os.fstat(self.descriptor))
        except OSError:
            return False


_REMOVED = " (deleted)"  # the kernel's suffix for the name of a removed directory


def shown(text: str) -> str:
    """Return a text in which paths through open directories (/proc/PID/fd/N) are replaced by real paths.

    Only directories that this process holds open as `OpenDirectory` are replaced.
    """

    def name(match: re.Match[str]) -> str:
        directory = _held.get(match[0])
        return match[0] if directory is None else str(directory.current_path())

    return _HELD.sub(name, text)


@contextlib.contextmanager
def errors_shown() -> Iterator[None]:
    """Replace paths through open directories (/proc/PID/fd/N) by real names in errors of a `with` block."""
    try:
        yield
    except Exception as error:
        error.args = tuple(shown(part) if isinstance(part, str) else part for part in error.args)
        if isinstance(error, OSError):
            for field in ("strerror", "filename", "filename2"):
                if (value := getattr(error, field)) is not None:
                    setattr(error, field, shown(str(value)))
        raise
