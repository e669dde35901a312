"""What older versions wrote, kept as archives in tests/data/formats: tests/data/README.md says what each holds."""

import tarfile
from pathlib import Path

from places import DATA

_AS_DATA = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4


def unpack(name: str, directory: Path) -> Path:
    """Unpack tests/data/formats/NAME.tar.xz; returns the folder that was in it."""
    with tarfile.open(DATA / "formats" / f"{name}.tar.xz") as archive:
        archive.extractall(directory, **_AS_DATA)
    return directory / name
