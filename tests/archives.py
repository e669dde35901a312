"""Fixtures of older formats, which are kept as archives."""

import tarfile
from pathlib import Path

_DATA = Path(__file__).parent / "data"
_AS_DATA = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4


def unpack(name: str, directory: Path) -> Path:
    """Unpack tests/data/NAME.tar.xz; returns the folder that was in it."""
    with tarfile.open(_DATA / f"{name}.tar.xz") as archive:
        archive.extractall(directory, **_AS_DATA)
    return directory / name
