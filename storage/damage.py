"""Damage and failed reads: two kinds of errors that are told apart by their class.

Damage is a property of what was read, so that the artefact may be passed over.  An error of the operating system says
nothing about the content: the artefact may be sound, and another try may read it.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BAD_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)


class DamagedError(OSError):
    """Content was read and does not match its checksum or manifest, or a file that a manifest lists is missing.

    It is a subclass of `OSError`, so that callers who only want to know that an artefact cannot be used catch one
    class.  It never has an `errno`.
    """


class UnreadableError(OSError):
    """The operating system could not read a file of an artefact; nothing was changed.

    Its text is one sentence: the file, the system's error and what to do.  `errno` and `filename` are those of `cause`;
    `number` is that of the checkpoint that the file belongs to, where the reader knows it.
    """

    def __init__(self, cause: OSError, advice: str = "") -> None:
        super().__init__(cause)
        self.errno, self.filename, self.cause, self._advice = cause.errno, cause.filename, cause, advice
        self.number: int | None = None

    def advised(self, advice: str) -> "UnreadableError":
        """The same error with a clause about what to do if it persists; the first clause given stays."""
        return UnreadableError(self.cause, self._advice or advice)

    def __str__(self) -> str:
        where = f"{self.filename}: " if self.filename else ""
        what = self.cause.strerror or str(self.cause)
        return f"{where}{what}: nothing was changed; run the command again{self._advice}"


@contextmanager
def reading(path: Path | None = None) -> Iterator[None]:
    """Raise `UnreadableError` where the system fails to read inside a `with` statement, or in a decorated function.

    A directory in the place of a file is damage.  Absent files, bad names and names that are taken stay the errors that
    they are.  `path` names the file where the system does not.
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


@contextmanager
def decoding(path: Path, what: str) -> Iterator[None]:
    """Raise `DamagedError` where a library fails on the data of the file or directory `path`.

    Errors of the system stay errors of the system, in the form that Python gives them.  `what` begins the sentence.
    """
    try:
        yield
    except DamagedError:
        raise
    except (OSError, RuntimeError, LookupError, TypeError, AttributeError) as error:
        if (found := system_error(error, path)) is not None:
            raise found from error
        text = str(error) if isinstance(error, OSError) else repr(error)
        raise DamagedError(f"{what}: {' '.join(text.split())}") from error


def system_error(error: Exception, path: Path) -> OSError | None:
    """Return the system's error behind a library's, with `path` where it names no file; None where there is none."""
    stated = re.search(r"errno = (\d+)", str(error))  # HDF5
    number = getattr(error, "errno", None) or (int(stated[1]) if stated else None)
    if "start new thread" in str(error):  # Python's text for it
        number = errno.EAGAIN
    if number is None:
        return None
    return OSError(number, os.strerror(number), getattr(error, "filename", None) or str(path))
