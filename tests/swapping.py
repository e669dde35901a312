"""Replaces files by others of the same name and length."""

from collections.abc import Iterator
from pathlib import Path


def swaps(ours: Path, theirs: Path) -> Iterator[str]:
    """Replace each file of `ours` by that of the same name in `theirs`, if lengths agree and bytes differ.

    Yield the name of each, and restore the file afterwards.
    """
    for path in sorted(file for file in ours.rglob("*") if file.is_file() and not file.is_symlink()):
        name, data = path.relative_to(ours).as_posix(), path.read_bytes()
        other = theirs / name
        if other.is_file() and other.stat().st_size == len(data) and (content := other.read_bytes()) != data:
            path.write_bytes(content)
            yield name
            path.write_bytes(data)
