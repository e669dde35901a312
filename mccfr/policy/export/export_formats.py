"""Lists the export formats and writes each of them."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy import Profile, write_policy
from mccfr.policy.export.explanation import card_arrays, explanation
from mccfr.policy.export.openspiel_policy import openspiel_provenance, write_openspiel
from mccfr.policy.export.strategy_rows import csv_provenance, parquet_provenance, write_csv, write_parquet
from mccfr.policy.overwrite import FindProvenance, provenance_in
from mccfr.policy.policy_values import PolicyValues
from mccfr.policy.writer import policy_provenance
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableSet
from storage.plain_arrays import read_description, write_arrays

FORMATS = ("policy", "zarr", "hdf5", "csv", "openspiel", "parquet")
RAW = ("zarr", "hdf5")
"""Formats of raw tables, which need no strategy."""
BY_HAND = ("csv", "parquet")
"""Formats whose rows may be hands on a board in place of buckets."""
LISTS = ("csv", "parquet", "openspiel")
"""Formats that list every infoset and action, and can also be written from a policy."""
_TREE_FIELDS = ("kind", "player", "block", "count", "first", "slot", "row")


def tables_provenance(path: Path, format: str) -> Mapping[str, Any] | None:  # noqa: A002 - as above
    """Return the provenance in an export of raw tables: the run and checkpoint it is from.

    path    of the export, a file or directory
    format  "zarr" or "hdf5"

    Returns None if the path holds no such export.
    """
    description = read_description(path, format)
    return None if description is None or "provenance" not in description else provenance_in(description)


PROVENANCE: Mapping[str, FindProvenance] = {
    "policy": policy_provenance,
    "csv": csv_provenance,
    "openspiel": openspiel_provenance,
    "parquet": parquet_provenance,
    **{raw: partial(tables_provenance, format=raw) for raw in RAW},
}
"""Functions that return the provenance of an export at a path, by format."""


def check_format(game: Game, format: str) -> None:  # noqa: A002 - the name of the command's option
    """Raise `ValueError` if an export in `format`, such as "openspiel", does not support this game."""
    if format == "openspiel" and game.tree.players > 2:
        raise ValueError(f"the format openspiel is for two players, and {game.name} has {game.tree.players}: take csv")
    if format == "policy" and not game.cards.fits_policies:
        raise ValueError(
            "a policy cannot hold strata on the turn and the river, whose buckets depend on the flop: leave "
            f"[export] out and choose another format of mccfr export, one of {', '.join(FORMATS[1:])}"
        )


def export(
    game: Game,
    game_document: Mapping[str, Any],
    strategy: Strategy | None,
    tables: TableSet,
    out: Path,
    format: str,  # noqa: A002 - the name of the command's option
    quantise: str,
    provenance: Mapping[str, Any],
    abstraction: Mapping[str, Any] | None = None,
    values: PolicyValues | None = None,
    *,
    board: str | None = None,
    replaceable: Callable[[Path], bool] | None = None,
) -> None:
    """Write an average strategy, or the run's tables that it comes from, to `out`, complete or not at all.

    game_document  the `[game]` table of the run's configuration
    strategy       may be None for zarr and hdf5
    tables         the run's raw tables, for zarr and hdf5
    format         policy (a directory, see `mccfr.policy`); zarr, hdf5 (the raw tables); csv, parquet (a row for each
                   infoset and action); openspiel (a TabularPolicy as JSON)
    quantise       policy only: "uint8" or "uint16"
    provenance     JSON with the origin of the strategy
    abstraction    policy only: origin of its buckets (`Abstraction.origin`); None: no card abstraction
    values         policy only: expected values of buckets at the first decisions of streets; None: not written
    board          csv, parquet: write a row for each hand on this board ("" for no board); None: for each bucket
    replaceable    returns whether an existing path may be replaced; None: an export of this format may

    Raises `ValueError` for an unknown format, and for one that this game or installation does not support.  Raises
    `FileExistsError` if `out` may not be replaced, and `OSError` if the disk fails.
    """
    check_format(game, format)
    if format not in PROVENANCE:
        raise ValueError(f"export format {format!r} is not one of {', '.join(FORMATS)}")
    may = replaceable or (lambda path: PROVENANCE[format](path) is not None)
    if format in RAW:
        write_tables(out, game, game_document, tables, format, provenance, may)
        return
    assert strategy is not None, format
    source = Profile(game, strategy)
    match format:
        case "policy":
            write_policy(
                out,
                game,
                game_document,
                strategy,
                quantise=quantise,
                provenance=provenance,
                abstraction=abstraction,
                values=values,
                replaceable=may,
            )
        case "csv":
            write_csv(out, source, board, may)
        case "parquet":
            write_parquet(out, source, board, {"game": game_document, "provenance": provenance}, may)
        case "openspiel":
            write_openspiel(out, game_document, source, provenance, may)


def write_tables(
    out: Path,
    game: Game,
    game_document: Mapping[str, Any],
    tables: TableSet,
    format: str,  # noqa: A002 - the name of the command's option
    provenance: Mapping[str, Any],
    replaceable: Callable[[Path], bool],
) -> None:
    """Write raw tables under their names, the tree under `tree/` and the buckets of hands under `cards/`.

    The axes of tables depend on the algorithm, ("bucket", "slot") or ("slot", "bucket"), and are written with each
    table.  `tree/kind`, `player`, `block`, `count`, `first`, `slot`, `row`, `parent` [N] int32 describe the nodes: a
    node's children have the numbers first .. first+count-1, `row` is the index of a decision in its table, `slot` its
    first cell there. `tree/label` [N, L] uint8 is the action into each node in UTF-8, padded with zeros.  `tree/put_in`
    [N, P] has the chips that each of P players has put in over the whole hand, in betting trees.

    The cells of a decision are slot .. slot+count-1 on the axis "slot" of its table.  That table is the one of street
    block // P and player block % P.  Cells after the last slot are padding.

    The attribute `description` is JSON: the game's configuration, the provenance, and the meaning of all arrays
    (`mccfr.policy.export.explanation`).  `replaceable` takes a path at which something exists, and returns whether it
    may be replaced.

    Raises `ValueError` for an unknown format, and `FileExistsError` if `out` may not be replaced.
    """
    arrays: dict[str, npt.NDArray[Any]] = {name: np.asarray(table) for name, table in tables.items()}
    axes = dict(tables.axes)
    columns = {field: getattr(game.tree.arrays, field).astype(np.int32) for field in _TREE_FIELDS}
    columns["parent"] = np.asarray(game.tree.parent)
    for field, column in columns.items():
        arrays[f"tree/{field}"], axes[f"tree/{field}"] = column, ("node",)
    arrays["tree/label"], axes["tree/label"] = _label_bytes(game.tree.label), ("node", "byte")
    if game.tree.put_in is not None:
        arrays["tree/put_in"], axes["tree/put_in"] = game.tree.put_in, ("node", "player")
    for name, array, labels in card_arrays(game):
        arrays[name], axes[name] = array, labels
    description = {"game": game_document, "provenance": provenance, **explanation(game)}
    write_arrays(out, arrays, format, axes=axes, description=description, replaceable=replaceable)


def _label_bytes(labels: Any) -> npt.NDArray[np.uint8]:
    """Return the N nodes' labels (texts) as UTF-8 [N, L] uint8; shorter ones are padded with zeros."""
    encoded = [label.encode() for label in labels]
    width = max(1, *map(len, encoded))
    return np.frombuffer(b"".join(text.ljust(width, b"\0") for text in encoded), np.uint8).reshape(len(encoded), width)
