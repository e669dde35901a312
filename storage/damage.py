"""Errors of reading: `DamagedError` for bad content, `UnreadableError` for failures of the system.

A damaged artefact may be skipped in favour of another. After a system error the artefact may be valid, and a retry may
succeed.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

_BAD_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)


class DamagedError(OSError):
    """Content that does not match its checksum or manifest, or a listed file that is missing.

    A subclass of `OSError`, so that callers can catch both kinds as one class. `errno` is always None.
    """


class UnreadableError(OSError):
    """The operating system could not read a file of an artefact; nothing was changed.

    The text is one sentence: the file, the system's error and what to do. `errno` and `filename` are those of `cause`.
    `number` is the number of the file's checkpoint, if known.
    """

    def __init__(self, cause: OSError, advice: str = "") -> None:
        super().__init__(cause)
        self.errno, self.filename, self.cause, self._advice = cause.errno, cause.filename, cause, advice
        self.number: int | None = None

    def advised(self, advice: str) -> "UnreadableError":
        """Return the same error with a clause on what to do if it persists; the first clause given is kept."""
        return UnreadableError(self.cause, self._advice or advice)

    def __str__(self) -> str:
        where = f"{self.filename}: " if self.filename else ""
        reason = self.cause.strerror or str(self.cause)
        return f"{where}{reason}: nothing was changed; run the command again{self._advice}"


class UnsyncedError(OSError):
    """A folder could not be opened to sync a new name in it, which a power cut may remove.

    A class of its own, because a `PermissionError` of a folder means bad input to the command line.
    """


@contextmanager
def reading(path: Path | None = None) -> Iterator[None]:
    """Convert system errors of reading to `UnreadableError`; a context manager and decorator.

    A directory in place of a file raises `DamagedError`. Errors for absent files, bad names and names that are taken
    stay as they are. `path` is the file name for errors that have none.
    """
    try:
        yield
    except (UnreadableError, FileNotFoundError, NotADirectoryError, FileExistsError, BlockingIOError):
        raise
    except IsADirectoryError as error:
        raise DamagedError(f"{error.filename or path} is a directory, where a file is needed") from None
    except OSError as error:
        if error.errno is None or error.errno in _BAD_NAMES:
            raise
        if error.filename is None and path is not None:
            error.filename = str(path)
        raise UnreadableError(error) from error


def check_openable(path: Path) -> None:
    """Raise `DamagedError` for a pipe, a socket or a device: opening a pipe waits for its writer."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DamagedError(f"{path} is a pipe or a device, where a file is needed")


def walk(path: Path, *, topdown: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Return `os.walk(path)`, which raises the error of a folder that cannot be listed."""
    return os.walk(path, topdown, _raise)


def _raise(error: OSError) -> NoReturn:
    raise error


@contextmanager
def decoding(path: Path, library_data: str) -> Iterator[None]:
    """Raise `DamagedError` if a library fails on the data of the file or directory `path`.

    System errors are raised as Python's own `OSError`. `library_data` is the beginning of the message.
    """
    try:
        yield
    except DamagedError:
        raise
    except (OSError, RuntimeError, LookupError, TypeError, AttributeError) as error:
        if (failure := system_error(error, path)) is not None:
            raise failure from error
        text = str(error) if isinstance(error, OSError) else repr(error)
        raise DamagedError(f"{library_data}: {' '.join(text.split())}") from error


def system_error(error: Exception, path: Path) -> OSError | None:
    """Return the system error behind a library's error, with `path` if it names no file; None if none."""
    stated = re.search(r"errno = (\d+)", str(error))  # form of HDF5's messages
    number = getattr(error, "errno", None) or (int(stated[1]) if stated else None)
    if "start new thread" in str(error):  # Python's message for a thread that could not start
        number = errno.EAGAIN
    if number is None:
        return None
    return OSError(number, os.strerror(number), getattr(error, "filename", None) or str(path))
