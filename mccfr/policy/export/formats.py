"""One function for all export formats."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mccfr.games.game import Game
from mccfr.policy import StrategySource, write_policy
from mccfr.policy.export.openspiel import write_openspiel
from mccfr.policy.export.rows import write_csv, write_parquet
from mccfr.policy.export.tables import write_tables
from mccfr.policy.values import PolicyValues
from mccfr.tables.layout import TableSet
from mccfr.tables.strategy import Strategy

FORMATS = ("policy", "zarr", "hdf5", "csv", "openspiel", "parquet")
RAW = ("zarr", "hdf5")
"""Of tables as they are: these need no strategy."""


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
) -> None:
    """Write an average strategy, or the tables it comes from, to `out`: whole, or not at all.

    game_document  the `[game]` table of the run's configuration
    strategy       None will do for zarr and hdf5
    tables         the run's tables as they are, for zarr and hdf5
    format         policy (a directory, see `mccfr.policy`); zarr, hdf5 (the raw tables); csv, parquet (a row for each
                   infoset and action); openspiel (a TabularPolicy as JSON)
    quantise       policy only: "uint8" or "uint16"
    provenance     JSON that says where the strategy comes from
    abstraction    policy only: what made its buckets (`Abstraction.origin`); None: lossless
    values         policy only: what buckets win where streets begin; None: left out

    An earlier export of the same format at `out` is replaced in one step.  Raises `ValueError` for an unknown format
    and for one that this game or installation has not, `FileExistsError` where `out` is something else.
    """
    if format in RAW:
        write_tables(out, game, game_document, tables, format, provenance)
        return
    assert strategy is not None, format
    source = StrategySource(game, strategy)
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
            )
        case "csv":
            write_csv(out, source)
        case "parquet":
            write_parquet(out, source)
        case "openspiel":
            write_openspiel(out, game_document, source, provenance)
        case _:
            raise ValueError(f"export format {format!r} is not one of {', '.join(FORMATS)}")
