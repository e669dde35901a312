"""Writing a policy directory: whole under its final name, or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy.layout import FORMAT, FORMAT_VERSION, META, block_file, game_arrays, game_fields, game_texts
from mccfr.policy.quantise import TOTALS, quantise
from mccfr.strategy import Strategy, row_starts
from storage import durable
from storage.json_files import read_json
from storage.manifest import write_manifest
from storage.npy import npy_pieces
from storage.outputs import output

_FLOAT32 = np.finfo(np.float32)


def is_policy(path: Path) -> bool:
    """Whether a directory says of itself that it is a policy, of whatever version."""
    try:
        content = read_json(path / META)
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def write_policy(
    out: Path,
    game: Game,
    game_document: Mapping[str, Any],
    strategy: Strategy,
    *,
    quantise: str = "uint16",
    provenance: Mapping[str, Any],
    abstraction: str | None = None,
) -> None:
    """Write `strategy` as a policy directory at `out`; see `mccfr.policy.layout` for what is in it.

    game_document  the `[game]` table of the run's configuration
    quantise       "uint8" or "uint16"
    provenance     JSON that says where the strategy comes from: checkpoint, nodes touched, iterations, source identity
    abstraction    content hash of the abstraction's files; None: lossless

    A policy that is at `out` already is replaced in one step.  Raises `FileExistsError` where there is something else,
    `ValueError` where the strategy does not fit the game or the values are not JSON, `OSError` where the disk fails;
    `out` is then as it was.
    """
    tables = _table_arrays(game, strategy, quantise)
    fields = {
        "game": _plain(game_document, "the game's configuration"),
        **_plain(game_fields(game), "the game's description"),
        "abstraction": abstraction,
        "quantisation": {"dtype": quantise, "total": TOTALS[quantise], "rounding": "largest remainder"},
        "provenance": _plain(provenance, "the provenance"),
    }
    with output(out, is_policy) as temporary:
        durable.make_dir(temporary)
        files = {}
        for name, array in game_arrays(game).items():
            files[f"{name}.npy"] = durable.write_file(temporary / f"{name}.npy", npy_pieces(array))
        for name, texts in game_texts(game).items():
            files[f"{name}.json"] = durable.write_file(temporary / f"{name}.json", _text_lines(texts))
        for name, array in tables.items():
            files[name] = durable.write_file(temporary / name, npy_pieces(array))
        listed = {name: {"length_bytes": length, "crc32c": crc} for name, (length, crc) in files.items()}
        write_manifest(temporary / META, FORMAT, FORMAT_VERSION, {**fields, "files": listed})
        durable.fsync_dir(temporary)


def _plain(value: Any, what: str) -> Any:
    """A value as JSON reads it back: tuples become lists."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot be written as JSON: {error}") from error


def _text_lines(texts: list[str]) -> bytes:
    """A JSON list with one text on each line."""
    return ("[\n" + ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts) + "\n]\n").encode()


def _table_arrays(game: Game, strategy: Strategy, dtype: str) -> dict[str, npt.NDArray[Any]]:
    """Shares and weights of every block that has rows, by file name."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    blocks = 2 * game.tree.streets
    if len(strategy.probability) != blocks or len(strategy.weight) != blocks:
        raise ValueError(f"the strategy has {len(strategy.probability)} tables; the game needs {blocks}")
    for block in range(blocks):
        buckets, rows, slots = (int(n[block]) for n in (game.buckets, game.tree.row_count, game.tree.row_slots))
        probability, weight = strategy.probability[block], strategy.weight[block]
        if probability.shape != (buckets, slots) or weight.shape != (buckets, rows):
            raise ValueError(
                f"the strategy of street {block // 2}, player {block % 2} has shapes {probability.shape} and "
                f"{weight.shape}; the game needs {(buckets, slots)} and {(buckets, rows)}"
            )
        if rows:
            arrays[block_file("probability", block)] = quantise(probability, row_starts(game, block), dtype)
            arrays[block_file("weight", block)] = _narrow(weight)
    return arrays


def _narrow(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Weights in float32; what is not zero stays so, and what is too large becomes the largest number."""
    if not np.all(weight >= 0):
        raise ValueError("the strategy holds a negative weight or one that is not a number")
    return np.where(weight > 0, np.clip(weight, _FLOAT32.tiny, _FLOAT32.max), 0).astype(np.float32)
