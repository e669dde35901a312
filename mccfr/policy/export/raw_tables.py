"""Writes raw tables as Zarr or HDF5, with the betting tree that gives the meaning of each cell."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy.overwrite import provenance_in
from mccfr.tables.table_layout import TableSet
from storage.plain_arrays import read_description, write_arrays

_TREE_FIELDS = ("kind", "player", "block", "count", "first", "slot", "row")


def write_tables(
    out: Path,
    game: Game,
    game_document: Mapping[str, Any],
    tables: TableSet,
    format: str,  # noqa: A002 - the name of the command's option
    provenance: Mapping[str, Any],
    replaceable: Callable[[Path], bool],
) -> None:
    """Write raw tables under their names, and the betting tree under `tree/`, to a group or file.

    The axes of tables depend on the algorithm, ("bucket", "slot") or ("slot", "bucket"), and are written with each
    table. `tree/kind`, `player`, `block`, `count`, `first`, `slot`, `row`, `parent` [N] int32 are as in `TreeArrays`.
    `tree/label` [N, L] uint8 is the action into each node in UTF-8, padded with zeros.

    The cells of a decision are slot .. slot+count-1 on the axis "slot" of its table.  That table has street block // 2
    and player block % 2.  Cells after the last slot are padding.

    The attribute `description` is JSON: the game's configuration and the provenance.  `replaceable` and errors are
    those of `write_arrays`.
    """
    arrays: dict[str, npt.NDArray[Any]] = {name: np.asarray(table) for name, table in tables.items()}
    axes = dict(tables.axes)
    columns = {field: getattr(game.tree.arrays, field).astype(np.int32) for field in _TREE_FIELDS}
    columns["parent"] = np.asarray(game.tree.parent)
    for field, column in columns.items():
        arrays[f"tree/{field}"], axes[f"tree/{field}"] = column, ("node",)
    arrays["tree/label"], axes["tree/label"] = _label_bytes(game.tree.label), ("node", "byte")
    description = {"game": game_document, "provenance": provenance}
    write_arrays(out, arrays, format, axes=axes, description=description, replaceable=replaceable)


def tables_provenance(path: Path, format: str) -> Mapping[str, Any] | None:  # noqa: A002 - as above
    """Return the provenance of a group or file by `write_tables`; None if there is none."""
    description = read_description(path, format)
    return None if description is None or "provenance" not in description else provenance_in(description)


def _label_bytes(labels: Any) -> npt.NDArray[np.uint8]:
    """Return labels as UTF-8 [N, L] uint8, padded with zeros to the longest."""
    encoded = [label.encode() for label in labels]
    width = max(1, *map(len, encoded))
    return np.frombuffer(b"".join(text.ljust(width, b"\0") for text in encoded), np.uint8).reshape(len(encoded), width)
