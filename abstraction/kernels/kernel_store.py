"""Compiled kernels as files: one for each kernel and types of arguments, with its name and a checksum of all of it.

What is kept is numba's own form, which is a pickle: it is opened only where the checksum is right and nobody else may
write.  Whatever is not wholly what was written - emptied by a power cut, cut short, flipped, another kernel's - counts
as not there: the kernel is compiled again.  numba by itself keeps an index beside such files, without checksums, and
writes neither durably.
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
_DIGITS = 32  # of a checksum
_LENGTH_BYTES = 4
_SUFFIX = ".kernel"
_said: set[str] = set()


def say_once(what: str, text: str) -> None:
    """Tell the user a sentence, once in a process of each kind: on stderr, unless logging is told otherwise."""
    import logging

    if what not in _said:
        _said.add(what)
        logging.getLogger("mccfr.kernels").warning("mccfr: %s", text)


def packed(name: str, payload: bytes) -> bytes:
    """The content of a file."""
    named = name.encode()
    body = len(named).to_bytes(_LENGTH_BYTES, "little") + named + payload
    return _MAGIC + _checksum(body) + body


def unpacked(data: bytes) -> tuple[str, bytes]:
    """(name, payload) of a file's content; `ValueError` where that is not wholly what `packed` has made."""
    start = len(_MAGIC) + _DIGITS
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _checksum(body):
        raise ValueError("it is not what was written")
    first = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    return body[_LENGTH_BYTES:first].decode(), body[first:]


def _checksum(body: bytes) -> bytes:
    taken = new_sum(XXH3)
    taken.update(body)
    return str(taken.found()).encode()


class KernelStore:
    """Files of one kernel; takes the place of numba's index and data files."""

    def __init__(self, folder: Path, kernel: str, stamp: Any) -> None:
        """`kernel`: its name in file names; `stamp`: what its source was, where the folder's name does not say so."""
        self._folder, self._kernel, self._stamp = folder, kernel, repr(stamp)

    def load(self, key: Any) -> Any:
        """What was saved of the same key and source; None where nothing of it is there, or it is damaged."""
        path, name = self._place(key)
        try:
            kept, payload = unpacked(path.read_bytes())
            if kept == name:
                return pickle.loads(payload)  # what it is trusted for: see `distrusted`
            if kept.partition("\n")[0] == name.partition("\n")[0]:
                return None  # of a source that was edited since
            raise ValueError("it is another kernel's")
        except FileNotFoundError:
            return None
        except Exception as error:  # a pickle fails in any way
            kept_at = self._folder.parent
            say_once("damaged", f"{path.name} in {kept_at} is damaged, and what is damaged is compiled again: {error}")
            return None

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled for a key, durably; a disk that does not take it costs compiling it once more."""
        path, name = self._place(key)
        payload = import_module("numba.core.serialize").dumps(data)
        with contextlib.suppress(OSError):
            durable.replace_file(path, packed(name, payload))

    def _place(self, key: Any) -> tuple[Path, str]:
        """(file, name) of a key: types of arguments, processor, code."""
        signature, *rest = key
        types = ", ".join(map(_described, signature))
        makers = [f"{name} {import_module(name).__version__}" for name in ("numba", "llvmlite")]
        known = f"{self._kernel} ({types}) {rest!r} {makers}"
        short = _checksum(known.encode()).decode()[:16]
        return self._folder / f"{self._kernel}.{short}{_SUFFIX}", f"{known}\n{self._stamp}"


def _described(kind: Any) -> str:
    """A type of numba's; named tuples by their classes' full names, of which two may be alike."""
    made = getattr(kind, "instance_class", None)
    if made is None:
        return str(kind)
    return f"{made.__module__}.{made.__qualname__}({', '.join(map(_described, kind.types))})"


def distrusted(directory: Path) -> str | None:
    """Why files in a directory may be somebody else's, in one clause; None where only this user, or root, may write.

    Folders above it count too: who may rename one puts another in its place.  There a sticky bit is enough.  A group
    that may write is trusted if it is the user's own: of his name, and nobody else's.
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
    """Whether a group is the user's alone, as systems make one for each user."""
    if group == os.geteuid() == 0:
        return True
    try:
        user, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == user and set(found.gr_mem) <= {user}
