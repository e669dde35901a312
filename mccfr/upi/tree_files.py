"""Reads and writes the files of load_tree and dump_tree: a spot and its solution as NPZ archives.

A spot is a game of two players that begins on a given board.  The array `head` is JSON: the spot's `[game]` table of
settings, the number of iterations, and the names of locked nodes.  The other arrays are the solver's tables by name:
regrets and strategy sums.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from zipfile import BadZipFile

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.upi.background_solver import SpotEngine, SpotProblem
from storage.atomic_outputs import output
from storage.damage import reading
from storage.durable import adopt_file
from storage.json_files import parse_json, typed


class _HeadFields(msgspec.Struct, frozen=True):
    game: dict[str, Any]
    iterations: Annotated[int, msgspec.Meta(ge=0)]
    locked: list[str]


Tables = dict[str, npt.NDArray[Any]]


def write_tree(path: Path, engine: SpotEngine, locked: Sequence[str]) -> None:
    """Write a spot's settings, its regrets and strategy sums, and the names of locked nodes to a file.

    path    path of the file; any file there is replaced
    engine  the spot and its tables
    locked  names of the decisions whose strategy is fixed, such as r:0:c

    Raises `OSError` if writing fails.
    """
    head = json.dumps({"game": engine.spot.document, "iterations": engine.iterations, "locked": list(locked)})
    arrays: dict[str, Any] = {spec.name: engine.tables[spec.name] for spec in engine.spot.layout.specs}
    arrays["head"] = np.frombuffer(head.encode(), np.uint8)
    with output(path, lambda _: True) as temporary:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        adopt_file(temporary)


def read_tree(path: Path, threads: int) -> tuple[SpotProblem, Tables, int, list[str]]:
    """Return the spot, the tables, the number of iterations and the names of locked nodes of a file.

    The tables are {name: array} of regrets and strategy sums.  Locked nodes are decisions with a fixed strategy.
    `threads` is the number of threads for further solving.

    Raises `ValueError` if the file is damaged, which its CRC-32s show, or of another kind.  Raises `FileNotFoundError`
    without a file, and `UnreadableError` if the system cannot read it.
    """
    with reading(path):
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                head = typed(parse_json(archive["head"].tobytes(), "it"), _HeadFields, "it")
                spot = SpotProblem(head.game, threads)
                tables: Tables = {spec.name: archive[spec.name] for spec in spot.layout.specs}
        except (AttributeError, BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged, or no tree that dump_tree has written: {error}") from None
    if any(
        (tables[spec.name].dtype, tables[spec.name].shape) != (spec.dtype, spec.shape) for spec in spot.layout.specs
    ):
        raise ValueError(f"{path} is damaged, or of another version: its tables are not those of its tree")
    return spot, tables, head.iterations, head.locked
