"""A spot's tree with its tables in one file: what dump_tree writes and load_tree reads.

MCCFR-TREE 1            8-bit text to the end of the second line
{"game": ..., ...}      JSON: [game], iterations, locked nodes; of each table name, dtype, shape, CRC-32C
cells                   of the tables, one after the other, little-endian
"""

import json
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.upi.solving import SpotEngine, Typed
from storage.checksums import checksum
from storage.damage import reading
from storage.durable import replace_file

_MAGIC = b"MCCFR-TREE 1\n"
_MOST_HEAD = 1 << 24  # bytes
Tables = dict[str, npt.NDArray[Any]]


def write_tree(path: Path, engine: SpotEngine, locked: Sequence[str]) -> None:
    """Write a tree, its tables and the names of locked nodes, durably; `OSError` where the disk fails."""
    tables = {spec.name: np.ascontiguousarray(engine.tables[spec.name]) for spec in engine.spot.layout.specs}
    head = {
        "game": engine.spot.document,
        "iterations": engine.iterations,
        "locked": list(locked),
        "tables": [
            {"name": name, "dtype": str(table.dtype), "shape": table.shape, "crc32c": checksum(_cells(table))}
            for name, table in tables.items()
        ],
    }

    def pieces() -> Iterator[bytes]:
        yield _MAGIC + json.dumps(head).encode() + b"\n"
        for table in tables.values():
            yield bytes(_cells(table))

    replace_file(path, pieces())


def read_tree(path: Path, threads: int) -> tuple[Typed, Tables, int, list[str]]:
    """A file's spot, tables, iterations behind them, locked nodes; `ValueError` where it is damaged or none such."""
    with reading(path), path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(f"{path} is no tree that dump_tree has written here")
        try:
            head = json.loads(file.readline(_MOST_HEAD))
            spot, iterations = Typed(head["game"], threads), int(head["iterations"])
            locked = [str(name) for name in head["locked"]]
            listed = {each["name"]: (each["dtype"], tuple(each["shape"]), each["crc32c"]) for each in head["tables"]}
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: its head says nothing sensible ({error})") from None
        tables = Tables()
        for spec in spot.layout.specs:
            dtype, shape, known = listed.get(spec.name, ("", (), None))
            if (dtype, shape) != (spec.dtype, tuple(spec.shape)):
                raise ValueError(f"{path} is damaged, or of another version: its tables are not those of its tree")
            table = np.fromfile(file, dtype, prod(shape))
            if len(table) != prod(shape) or checksum(_cells(table)) != known:
                raise ValueError(f"{path} is damaged: the table {spec.name} is not what was written")
            tables[spec.name] = table.reshape(shape)
    return spot, tables, iterations, locked


def _cells(table: npt.NDArray[Any]) -> memoryview:
    return memoryview(table.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
