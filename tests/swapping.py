"""Replaces files by others of the same name and length."""

from collections.abc import Iterator
from pathlib import Path


def swaps(ours: Path, theirs: Path) -> Iterator[str]:
    """Replace each file of `ours` in turn by the file of the same name and length in `theirs`.

    Yield the name while the file is replaced, then restore it; files with equal bytes are left out.
    """
    for path in sorted(file for file in ours.rglob("*") if file.is_file() and not file.is_symlink()):
        name, data = path.relative_to(ours).as_posix(), path.read_bytes()
        other = theirs / name
        if other.is_file() and other.stat().st_size == len(data) and (content := other.read_bytes()) != data:
            path.write_bytes(content)
            yield name
            path.write_bytes(data)
