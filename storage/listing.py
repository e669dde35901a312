"""Files that a manifest lists: regular files below it, reached through no link, of the length and checksum it states.

A link would let an artefact change under its manifest, or show files of somebody else: there are none below a manifest.
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


class Listed(NamedTuple):
    """What a manifest states about a file."""

    length_bytes: int
    checksum: Checksum
    kind: str = CRC32C

    def shown(self, checksum: Checksum) -> str:
        """A checksum of its kind, for people."""
        return checksum if isinstance(checksum, str) else f"{checksum:08x}"


def file_entries(files: Mapping[str, tuple[int, Checksum]], kind: str = CRC32C) -> dict[str, dict[str, Checksum]]:
    """A manifest's `files`, of {name: (length in bytes, checksum of the kind)}."""
    return {name: {"length_bytes": length, kind: checksum} for name, (length, checksum) in files.items()}


def listed_files(entries: Any) -> dict[str, Listed]:
    """The manifest's `files`: {name relative to the manifest: what is stated}.

    Raises `ValueError` for names that leave the directory and for entries that state no length and one checksum.
    """
    if not isinstance(entries, Mapping):
        raise ValueError(f"'files' is a {type(entries).__name__}; an object is needed")
    found = {}
    for name, entry in entries.items():
        stated = dict(entry) if isinstance(entry, Mapping) else {}
        length = stated.pop("length_bytes", None)
        kind, checksum = stated.popitem() if stated else (CRC32C, None)
        if type(length) is not int or length < 0 or stated or not is_checksum(checksum, kind):
            raise ValueError(f"the entry of {name!r} in 'files' has no length and one of the checksums: {entry!r}")
        found[check_relative_name(name)] = Listed(length, checksum, kind)
    return found


def link_problem(root: Path, name: str) -> str | None:
    """A sentence where `name`, or a folder on the way there from `root`, is a symbolic link; else None."""
    path = root
    for component in Path(name).parts:
        path /= component
        if path.is_symlink():
            return f"{path.relative_to(root).as_posix()} is a symbolic link, which nothing below a manifest may be"
    return None


@reading()
def file_problem(root: Path, name: str, stated: Listed, *, content: bool = True) -> str | None:
    """Return what is wrong with a listed file: a link, missing, of another length, with `content` another checksum.

    None for a sound file.  Raises `UnreadableError` where the system cannot read it: nothing can be said of it then.
    """
    linked = link_problem(root, name)
    if linked:
        return linked
    file = root / name
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"{name} is missing"
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for ever
        return f"{name} is missing"
    if status.st_size != stated.length_bytes:
        return f"{name} has {status.st_size} bytes; the manifest states {stated.length_bytes}"
    if content and (checksum := durable.checksum_file(file, stated.kind)[1]) != stated.checksum:
        return f"{name} has checksum {stated.shown(checksum)}; the manifest states {stated.shown(stated.checksum)}"
    return None


def file_problems(root: Path, files: Mapping[str, Listed], unread: Iterable[str] = ()) -> list[str]:
    """What is wrong with the listed files, several read at a time; of those in `unread` only the length is compared."""
    skipped = set(unread)

    def problem(item: tuple[str, Listed]) -> str | None:
        return file_problem(root, *item, content=item[0] not in skipped)

    size_bytes = sum(stated.length_bytes for stated in files.values())
    return [found for found in ordered(problem, files.items(), size_bytes=size_bytes) if found]
