"""Stores compiled kernels in one file for each kernel and argument types, with name and checksum.

The payload, the compiled code, is a pickle of numba's own form.  It is loaded only if the checksum is right and no
other user may write the file.  A file that is empty, truncated, altered or another kernel's counts as absent, and the
kernel is compiled again.
"""

import contextlib
import grp
import os
import pickle
import pwd
import stat
from importlib import import_module
from pathlib import Path
from typing import Any

from storage import durable
from storage.checksums import XXH3, new_sum

_MAGIC = b"mccfr kernel 1\n"
_DIGITS = 32  # length of a checksum in hex digits
_LENGTH_BYTES = 4
_SUFFIX = ".kernel"
_said: set[str] = set()


def say_once(key: str, text: str) -> None:
    """Log a warning to the user, on stderr by default, once for each `key` in a process."""
    import logging

    if key not in _said:
        _said.add(key)
        logging.getLogger("mccfr.kernels").warning("mccfr: %s", text)


def packed(name: str, payload: bytes) -> bytes:
    """Return the content of a kernel file: fixed first line, checksum, `name` and `payload`.

    name     text that identifies the kernel, its argument types and its source
    payload  the compiled code, pickled
    """
    named = name.encode()
    body = len(named).to_bytes(_LENGTH_BYTES, "little") + named + payload
    return _MAGIC + _checksum(body) + body


def unpacked(data: bytes) -> tuple[str, bytes]:
    """Return (name, payload) of a kernel file's content, as given to `packed`.

    Raises `ValueError` if the first line or the checksum is wrong.
    """
    start = len(_MAGIC) + _DIGITS
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _checksum(body):
        raise ValueError("it is not what was written")
    first = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    return body[_LENGTH_BYTES:first].decode(), body[first:]


def _checksum(body: bytes) -> bytes:
    checksum = new_sum(XXH3)
    checksum.update(body)
    return str(checksum.found()).encode()


class KernelStore:
    """Loads and saves one kernel's compiled versions, one file for each set of argument types."""

    def __init__(self, folder: Path, kernel: str, stamp: Any) -> None:
        """Set where the kernel's files are; no file is read yet.

        folder  directory of the files
        kernel  name of the kernel in file names
        stamp   value that changes with the kernel's source; empty if the folder's path changes with it instead
        """
        self._folder, self._kernel, self._stamp = folder, kernel, repr(stamp)

    def load(self, key: Any) -> Any:
        """Return the compiled code saved under `key`, in the form that numba loads, or None.

        The result is None if there is no file, it is damaged, or it was compiled from another source.  `key` is the one
        that numba's cache uses: argument types, processor and hashes of the function's code.
        """
        path, name = self._place(key)
        try:
            stored_name, payload = unpacked(path.read_bytes())
            if stored_name == name:
                return pickle.loads(payload)  # `distrusted` has checked who may write here
            if stored_name.partition("\n")[0] == name.partition("\n")[0]:
                return None  # the source has been edited
            raise ValueError("it is another kernel's")
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged pickle may raise any exception
            kept_at = self._folder.parent
            say_once("damaged", f"{path.name} in {kept_at} is damaged, and what is damaged is compiled again: {error}")
            return None

    def save(self, key: Any, data: Any) -> None:
        """Save compiled code, `data`, under a key of numba's cache; ignore file system errors."""
        path, name = self._place(key)
        payload = import_module("numba.core.serialize").dumps(data)
        with contextlib.suppress(OSError):
            durable.replace_file(path, packed(name, payload))

    def _place(self, key: Any) -> tuple[Path, str]:
        """Return the file of a key of numba's cache, and the name that the file must contain.

        The name holds the kernel, its argument types, the processor, versions and the stamp of the source.
        """
        signature, *options = key
        types = ", ".join(map(_described, signature))
        makers = [f"{name} {import_module(name).__version__}" for name in ("numba", "llvmlite")]
        description = f"{self._kernel} ({types}) {options!r} {makers}"
        short = _checksum(description.encode()).decode()[:16]
        return self._folder / f"{self._kernel}.{short}{_SUFFIX}", f"{description}\n{self._stamp}"


def _described(kind: Any) -> str:
    """Return the text of a numba type, with the module and class names of named tuples.

    numba's own text has class names alone, which two modules may share.
    """
    tuple_class = getattr(kind, "instance_class", None)
    if tuple_class is None:
        return str(kind)
    return f"{tuple_class.__module__}.{tuple_class.__qualname__}({', '.join(map(_described, kind.types))})"


def distrusted(directory: Path) -> str | None:
    """Return why other users could write files in a directory; None if only this user or root can.

    The result is one clause.  Parent folders are checked too, because a user who may rename one can replace it.  A
    writable parent with the sticky bit is trusted, because others cannot rename this user's entries in it.  A group
    with write permission is trusted if it is the user's own group without other members.
    """
    own = directory.resolve()
    for folder in (own, *own.parents):
        try:
            status = folder.stat()
        except FileNotFoundError:
            continue
        mode = status.st_mode
        if status.st_uid not in (0, os.geteuid()):
            return f"{folder} belongs to another user"
        if folder != own and mode & stat.S_ISVTX:
            continue
        if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _own_group(status.st_gid)):
            return f"others may write to {folder}"
    return None


def _own_group(group: int) -> bool:
    """Return whether a group contains only the user, as systems create one for each user."""
    if group == os.geteuid() == 0:
        return True
    try:
        user, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == user and set(entry.gr_mem) <= {user}
