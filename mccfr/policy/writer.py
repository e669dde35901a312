"""Writes a policy directory, which appears complete under its final name or not at all."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy.overwrite import provenance_of
from mccfr.policy.policy_layout import (
    DECK,
    FORMAT,
    FORMAT_VERSION,
    META,
    block_file,
    game_arrays,
    game_fields,
    game_texts,
)
from mccfr.policy.policy_values import PolicyValues
from mccfr.policy.quantise import TOTALS, quantise
from mccfr.policy.row_checksums import ROW_CHECKSUMS_FILE, RowChecksums
from mccfr.tables.strategy import Strategy, row_starts
from storage import durable
from storage.atomic_outputs import output
from storage.checksums import Checksum
from storage.manifest import write_manifest
from storage.manifest_files import file_entries
from storage.npy import npy_pieces

_FLOAT32 = np.finfo(np.float32)


def policy_provenance(path: Path) -> Mapping[str, Any] | None:
    """Return the provenance of a policy directory: the run and checkpoint that it is from.

    Policies in any version of the format have one. Returns None if the path holds no policy. Raises `UnreadableError`
    if the system cannot read its manifest.
    """
    return provenance_of(path, META, FORMAT)


def is_policy(path: Path) -> bool:
    """Return whether a directory's manifest declares a policy, of any version of the format."""
    return policy_provenance(path) is not None


def write_policy(
    out: Path,
    game: Game,
    game_document: Mapping[str, Any],
    strategy: Strategy,
    *,
    quantise: str = "uint16",
    provenance: Mapping[str, Any],
    abstraction: Mapping[str, Any] | None = None,
    values: PolicyValues | None = None,
    replaceable: Callable[[Path], bool] = is_policy,
) -> None:
    """Write `strategy` as a policy directory at `out`; `mccfr.policy.policy_layout` describes the files.

    game_document  the `[game]` table of the run's configuration
    quantise       "uint8" or "uint16"
    provenance     JSON: checkpoint, nodes touched, iterations and identity of the run
    abstraction    origin of the buckets (`abstraction.buckets.Abstraction.origin`); None: no card abstraction
    values         expected values of buckets at the first decisions of streets; None: not written
    replaceable    takes a path at which something exists, and returns whether it may be replaced

    Raises `FileExistsError` if `out` may not be replaced, and `OSError` if the disk fails.  Raises `ValueError` if the
    strategy does not fit the game or a value is not JSON.  `out` is then unchanged.
    """
    tables = _table_arrays(game, strategy, quantise)
    fields = {
        "game": _plain(game_document, "the game's configuration"),
        **_plain(game_fields(game), "the game's description"),
        "abstraction": _plain(abstraction, "the abstraction's description"),
        "quantisation": {"dtype": quantise, "total": TOTALS[quantise], "rounding": "largest remainder"},
        "provenance": _plain(provenance, "the provenance"),
    }
    if values is not None:
        fields["values"] = values.fields()
    with output(out, replaceable) as temporary:
        durable.make_dir(temporary)
        writer = _Writer(temporary)
        for name, array in game_arrays(game):
            writer.array(f"{name}.npy", array, cut=name.startswith(DECK))
        for name, texts in game_texts(game).items():
            writer.texts(f"{name}.json", texts)
        for name, array in tables.items():
            writer.array(name, array, cut=True)
        for name, array in ({} if values is None else values.arrays()).items():
            writer.array(name, array)
        fields |= writer.finish()
        write_manifest(temporary / META, FORMAT, FORMAT_VERSION, fields)
        durable.fsync_dir(temporary)


class _Writer:
    """Writes the files of one policy and collects their entries for meta.json."""

    def __init__(self, directory: Path) -> None:
        """Take the existing directory in which the files are written."""
        self._directory = directory
        self._files: dict[str, tuple[int, Checksum]] = {}
        self._checksums = RowChecksums()

    def array(self, name: str, array: npt.NDArray[Any], *, cut: bool = False) -> None:
        """Write an array as a .npy file.

        name  of the file
        cut   True: also record the checksums of pieces of about 64 KiB of its rows, as for large tables
        """
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if cut:
            self._checksums.add(name, array)
        self._files[name] = durable.write_file(self._directory / name, npy_pieces(array))

    def texts(self, name: str, texts: list[str]) -> None:
        """Write a list of texts as a JSON file."""
        self._files[name] = durable.write_file(self._directory / name, _text_lines(texts))

    def finish(self) -> dict[str, Any]:
        """Write the checksums of large tables; return meta.json's fields `row_checksums` and `files`."""
        self.array(ROW_CHECKSUMS_FILE, self._checksums.array())
        return {"row_checksums": self._checksums.fields(ROW_CHECKSUMS_FILE), "files": file_entries(self._files)}


def _plain(value: Any, what: str) -> Any:
    """Return a copy of a value with JSON's types, such as lists for tuples.

    what  name of the value in the message of the `ValueError` that is raised if it is not JSON
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be written as JSON: {error}") from error


def _text_lines(texts: list[str]) -> bytes:
    """Return a JSON list with one text on each line."""
    return ("[\n" + ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts) + "\n]\n").encode()


def _table_arrays(game: Game, strategy: Strategy, dtype: str) -> dict[str, npt.NDArray[Any]]:
    """Return {file name: array} of the quantised probabilities and the weights of every block.

    A block is the tables of one street and player; those without decisions are left out.

    dtype  "uint8" or "uint16": of the quantised probabilities

    Raises `ValueError` if the strategy does not fit the game, for another dtype and for invalid probabilities.
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    blocks, players = len(game.tree.row_slots), game.tree.players
    if len(strategy.probability) != blocks or len(strategy.weight) != blocks:
        raise ValueError(f"the strategy has {len(strategy.probability)} tables; the game needs {blocks}")
    for block in range(blocks):
        buckets, rows, slots = (int(n[block]) for n in (game.buckets, game.tree.row_count, game.tree.row_slots))
        probability, weight = strategy.probability[block], strategy.weight[block]
        if probability.shape != (buckets, slots) or weight.shape != (buckets, rows):
            raise ValueError(
                f"the strategy of street {block // players}, player {block % players} has shapes {probability.shape} "
                f"and {weight.shape}; the game needs {(buckets, slots)} and {(buckets, rows)}"
            )
        if rows:
            arrays[block_file("probability", block, players)] = quantise(probability, row_starts(game, block), dtype)
            arrays[block_file("weight", block, players)] = _narrow(weight)
    return arrays


def _narrow(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return weights in float32, clipped so that positive ones stay positive and finite.

    Raises `ValueError` for a negative weight or NaN.
    """
    if not np.all(weight >= 0):
        raise ValueError("the strategy holds a negative weight or one that is not a number")
    return np.where(weight > 0, np.clip(weight, _FLOAT32.tiny, _FLOAT32.max), 0).astype(np.float32)
