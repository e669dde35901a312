"""Errors of reading: `DamagedError` for bad content, `UnreadableError` for failures of the system.

Artefacts are the files that runs write, such as checkpoints and policies. A damaged one may be skipped in favour of
another. After a system error the artefact may be valid, and a retry may succeed.
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
    """The system could not read a file, such as one of a checkpoint; nothing was changed.

    The text is one sentence: the file, the system's error and what to do. `cause` is the system's `OSError`; `errno`
    and `filename` are copied from it. `number` is the number of the file's checkpoint, if known.
    """

    def __init__(self, cause: OSError, advice: str = "") -> None:
        super().__init__(cause)
        self.errno, self.filename, self.cause, self._advice = cause.errno, cause.filename, cause, advice
        self.number: int | None = None

    def advised(self, advice: str) -> "UnreadableError":
        """Return a copy, without `number`, whose message ends with advice; earlier advice is kept instead.

        advice  text that the message has after "run the command again", such as ", or restore the file"
        """
        return UnreadableError(self.cause, self._advice or advice)

    def __str__(self) -> str:
        where = f"{self.filename}: " if self.filename else ""
        reason = self.cause.strerror or str(self.cause)
        return f"{where}{reason}: nothing was changed; run the command again{self._advice}"


class UnsyncedError(OSError):
    """A folder could not be opened for fsync, so that a power cut may remove a new name in it.

    It is not raised as `PermissionError`, because the command line reports that as bad input of the user.
    """


@contextmanager
def reading(path: Path | None = None) -> Iterator[None]:
    """Convert system errors of reading to `UnreadableError`; a context manager and decorator.

    A directory in place of a file raises `DamagedError`. These errors stay as they are: absent files, bad names, names
    that are taken, and locks that are held. `path` is the file name for errors that have none.
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
    """Raise `DamagedError` if `path` is a pipe, socket or device, whose opening may wait."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DamagedError(f"{path} is a pipe or a device, where a file is needed")


def walk(path: Path, *, topdown: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Return `os.walk(path)`; unlike it, raise the error of a folder that cannot be listed.

    topdown  False: yield a folder after the folders in it
    """
    return os.walk(path, topdown, _raise)


def _raise(error: OSError) -> NoReturn:
    raise error


@contextmanager
def decoding(path: Path, library_data: str) -> Iterator[None]:
    """Raise `DamagedError` if h5py or zarr fails in a `with` block on the data of a file or directory.

    If a system error, such as a failing disk, caused the failure, it is raised as `OSError` with its `errno`.

    path          the file or directory, for messages
    library_data  beginning of the message, such as "PATH cannot be read"
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
    """Return the system error that caused a library's error; None if there is none.

    The result names the error's file, or `path` if the error names none.
    """
    stated = re.search(r"errno = (\d+)", str(error))  # form of HDF5's messages
    number = getattr(error, "errno", None) or (int(stated[1]) if stated else None)
    if "start new thread" in str(error):  # Python's message for a thread that could not start
        number = errno.EAGAIN
    if number is None:
        return None
    return OSError(number, os.strerror(number), getattr(error, "filename", None) or str(path))
