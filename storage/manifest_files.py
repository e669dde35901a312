"""Checks the files that a manifest lists: regular files of the stated length and checksum.

A manifest is a JSON file that lists all files of an artefact, such as a checkpoint (`storage.manifest`). Symbolic links
below a manifest are errors. A link could change an artefact without its manifest, or expose other users' files.
"""

import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from storage import durable
from storage.checksums import CRC32C, Checksum, is_checksum
from storage.damage import reading
from storage.schema import check_relative_name
from storage.threads import ordered


class ListedFile(NamedTuple):
    """Length in bytes, checksum and its kind (`CRC32C` or `XXH3`) of a file, from its manifest."""

    length_bytes: int
    checksum: Checksum
    kind: str = CRC32C

    def shown(self, checksum: Checksum) -> str:
        """Return a checksum as hexadecimal text for messages."""
        return checksum if isinstance(checksum, str) else f"{checksum:08x}"


def file_entries(files: Mapping[str, tuple[int, Checksum]], kind: str = CRC32C) -> dict[str, dict[str, Checksum]]:
    """Return a manifest's field `files`: {name: {"length_bytes": length, kind: checksum}}.

    files  {name relative to the manifest: (length in bytes, checksum of the kind)}
    kind   kind of all checksums, `CRC32C` or `XXH3`
    """
    return {name: {"length_bytes": length, kind: checksum} for name, (length, checksum) in files.items()}


def listed_files(entries: Any) -> dict[str, ListedFile]:
    """Parse a manifest's field `files`; return {name relative to the manifest: `ListedFile`}.

    entries  value of the field, of the form that `file_entries` returns

    Raises `ValueError` for a name that leaves the directory, and for an entry without a length and one checksum.
    """
    if not isinstance(entries, Mapping):
        raise ValueError(f"'files' is a {type(entries).__name__}; an object is needed")
    listed = {}
    for name, entry in entries.items():
        stated = dict(entry) if isinstance(entry, Mapping) else {}
        length = stated.pop("length_bytes", None)
        kind, checksum = stated.popitem() if stated else (CRC32C, None)
        if type(length) is not int or length < 0 or stated or not is_checksum(checksum, kind):
            raise ValueError(f"the entry of {name!r} in 'files' has no length and one of the checksums: {entry!r}")
        listed[check_relative_name(name)] = ListedFile(length, checksum, kind)
    return listed


def link_problem(root: Path, name: str) -> str | None:
    """Return a sentence if `name`, or a folder between `root` and it, is a symbolic link; otherwise None."""
    path = root
    for component in Path(name).parts:
        path /= component
        if path.is_symlink():
            return f"{path.relative_to(root).as_posix()} is a symbolic link, which nothing below a manifest may be"
    return None


@reading()
def file_problem(root: Path, name: str, stated: ListedFile, *, content: bool = True) -> str | None:
    """Return a sentence on the problem of a file that a manifest lists, or None for a valid file.

    root, name  directory of the manifest, and the file's name relative to it
    stated      length and checksum by the manifest
    content     False: do not compare the checksum

    A file has a problem if it is a symbolic link, not a regular file, missing, or of another length or checksum than
    `stated`. Raises `UnreadableError` if the system cannot read it.
    """
    linked = link_problem(root, name)
    if linked:
        return linked
    file = root / name
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"{name} is missing"
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would block
        return f"{name} is missing"
    if status.st_size != stated.length_bytes:
        return f"{name} has {status.st_size} bytes; the manifest states {stated.length_bytes}"
    if content and (checksum := durable.checksum_file(file, stated.kind)[1]) != stated.checksum:
        return f"{name} has checksum {stated.shown(checksum)}; the manifest states {stated.shown(stated.checksum)}"
    return None


def file_problems(root: Path, files: Mapping[str, ListedFile], unread: Iterable[str] = ()) -> list[str]:
    """Check the files that a manifest lists in threads; return a sentence for each problem.

    root    directory of the manifest
    files   {name relative to `root`: its length and checksum}
    unread  names of files whose checksum is not compared

    Raises `UnreadableError` if the system cannot read a file.
    """
    skipped = set(unread)

    def problem(item: tuple[str, ListedFile]) -> str | None:
        return file_problem(root, *item, content=item[0] not in skipped)

    size_bytes = sum(stated.length_bytes for stated in files.values())
    return [fault for fault in ordered(problem, files.items(), size_bytes=size_bytes) if fault]
