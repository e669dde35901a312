"""Reads and writes the files of dump_tree and load_tree: a spot's tree with its tables.

MCCFR-TREE 1            8-bit text to the end of the second line
{"game": ..., ...}      JSON: [game], iterations, locked nodes; of each table name, dtype, shape, CRC-32C
cells                   of the tables, one after the other, little-endian
"""

import json
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.upi.background_solver import SpotEngine, SpotProblem
from storage.checksums import checksum
from storage.damage import reading
from storage.durable import replace_file
from storage.json_files import parse_json, typed


class _TableFields(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    crc32c: int


class _HeadFields(msgspec.Struct, frozen=True):
    """The JSON of the second line."""

    game: dict[str, Any]
    iterations: Annotated[int, msgspec.Meta(ge=0)]
    locked: list[str]
    tables: list[_TableFields]


_MAGIC = b"MCCFR-TREE 1\n"
_MOST_HEAD = 1 << 24  # bytes
Tables = dict[str, npt.NDArray[Any]]


def write_tree(path: Path, engine: SpotEngine, locked: Sequence[str]) -> None:
    """Write a tree, its tables and the names of locked nodes durably; `OSError` if writing fails."""
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


def read_tree(path: Path, threads: int) -> tuple[SpotProblem, Tables, int, list[str]]:
    """Return spot, tables, number of iterations and locked nodes of a file.

    Raises `ValueError` if the file is damaged or of another kind.
    """
    with reading(path), path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(f"{path} is no tree that dump_tree has written here")
        try:
            head = typed(parse_json(file.readline(_MOST_HEAD), "it"), _HeadFields, "it")
            spot = SpotProblem(head.game, threads)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: its head says nothing sensible ({error})") from None
        tables, listed = Tables(), {each.name: (each.dtype, each.shape, each.crc32c) for each in head.tables}
        for spec in spot.layout.specs:
            dtype, shape, known = listed.get(spec.name, ("", (), None))
            if (dtype, shape) != (spec.dtype, tuple(spec.shape)):
                raise ValueError(f"{path} is damaged, or of another version: its tables are not those of its tree")
            table = np.fromfile(file, dtype, prod(shape))
            if len(table) != prod(shape) or checksum(_cells(table)) != known:
                raise ValueError(f"{path} is damaged: the table {spec.name} is not what was written")
            tables[spec.name] = table.reshape(shape)
    return spot, tables, head.iterations, head.locked


def _cells(table: npt.NDArray[Any]) -> memoryview:
    return memoryview(table.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
