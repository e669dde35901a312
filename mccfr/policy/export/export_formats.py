"""Lists the export formats and writes each of them."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mccfr.games.game import Game
from mccfr.policy import Profile, write_policy
from mccfr.policy.export.openspiel_policy import openspiel_provenance, write_openspiel
from mccfr.policy.export.raw_tables import tables_provenance, write_tables
from mccfr.policy.export.strategy_rows import csv_provenance, parquet_provenance, write_csv, write_parquet
from mccfr.policy.overwrite import FindProvenance
from mccfr.policy.policy_values import PolicyValues
from mccfr.policy.writer import policy_provenance
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableSet

FORMATS = ("policy", "zarr", "hdf5", "csv", "openspiel", "parquet")
RAW = ("zarr", "hdf5")
"""Formats of raw tables, which need no strategy."""
BY_HAND = ("csv", "parquet")
"""Formats whose rows may be hands on a board in place of buckets."""
LISTS = ("csv", "parquet", "openspiel")
"""Formats that list every infoset and action, and can also be written from a policy."""
PROVENANCE: Mapping[str, FindProvenance] = {
    "policy": policy_provenance,
    "csv": csv_provenance,
    "openspiel": openspiel_provenance,
    "parquet": parquet_provenance,
    **{raw: partial(tables_provenance, format=raw) for raw in RAW},
}
"""Functions that return the provenance of an export at a path, by format."""


def check_format(game: Game, format: str) -> None:  # noqa: A002 - the name of the command's option
    """Raise `ValueError` for a format that does not support this game."""
    if format == "policy" and not game.cards.fits_policies:
        raise ValueError(
            "a policy has no place for strata on the turn and the river, where buckets depend on the flop: choose "
            f"another format of mccfr export, one of {', '.join(FORMATS[1:])}"
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
    """Write an average strategy, or the tables behind it, to `out`, complete or not at all.

    game_document  the `[game]` table of the run's configuration
    strategy       may be None for zarr and hdf5
    tables         the run's raw tables, for zarr and hdf5
    format         policy (a directory, see `mccfr.policy`); zarr, hdf5 (the raw tables); csv, parquet (a row for each
                   infoset and action); openspiel (a TabularPolicy as JSON)
    quantise       policy only: "uint8" or "uint16"
    provenance     JSON with the origin of the strategy
    abstraction    policy only: origin of its buckets (`Abstraction.origin`); None: lossless
    values         policy only: values at the first decisions of streets; None: not written
    board          csv, parquet: rows of hands on this board, as in `strategy_rows`; None: rows of buckets
    replaceable    returns whether the path may be replaced, which happens in one step; None: exports of this format may

    Raises `ValueError` for an unknown format, and for one that this game or installation does not support.  Raises
    `FileExistsError` if `out` may not be replaced.
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
            write_parquet(out, source, board, provenance, may)
        case "openspiel":
            write_openspiel(out, game_document, source, provenance, may)
