"""Reading a policy directory: rows of probabilities by mapped lookup, and the game rebuilt from its own arrays."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy.layout import DECK, FORMAT, FORMAT_VERSION, META, rebuild_game
from mccfr.policy.quantise import TOTALS, dequantise
from mccfr.policy.source import place
from mccfr.strategy import Strategy, row_starts
from storage import durable
from storage.manifest import read_manifest
from storage.schema import check_relative_name


class Policy:
    """An open policy directory.  Tables stay on the disk and are mapped; the game is in memory.

    Attributes:
        path, meta: the directory and its `meta.json`
        game:       tree and cards, rebuilt from the directory alone
    """

    def __init__(
        self,
        path: Path,
        meta: Mapping[str, Any],
        game: Game,
        shares: Sequence[npt.NDArray[np.uint]],
        weights: Sequence[npt.NDArray[np.float32]],
    ) -> None:
        self.path, self.meta, self.game = path, meta, game
        self._shares, self._weights = shares, weights
        self._total = int(meta["quantisation"]["total"])
        arrays = game.tree.arrays
        # Gathered once, because four look-ups of single cells cost as much as all the rest of one.
        self._places = np.stack([arrays.block, arrays.row, arrays.slot, arrays.count], axis=1, dtype=np.int32)
        self._buckets = game.buckets.tolist()

    def _place(self, node: int, bucket: int) -> list[int]:
        """[block, row, first slot, number of actions], as `place` finds it."""
        if 0 <= node < len(self._places):
            found: list[int] = self._places[node].tolist()
            if found[0] >= 0 and 0 <= bucket < self._buckets[found[0]]:
                return found
        return list(place(self.game, node, bucket))

    @classmethod
    def open(cls, path: Path) -> "Policy":
        """Open a policy: every length is checked, and every byte but those of the tables.

        Raises `FileNotFoundError` where there is no policy or a file is missing, `OSError` where one is damaged,
        `ValueError` for another format or version (with both in the message) and for arrays that do not fit.
        """
        path = Path(path)
        meta = _read_meta(path)
        try:
            return cls._open(path, meta)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{path} is intact but not a policy that can be read: {error!r}") from error

    @classmethod
    def _open(cls, path: Path, meta: Mapping[str, Any]) -> "Policy":
        dtype, tables = meta["quantisation"]["dtype"], set(_table_names(meta))
        mapped = {name for name in meta["files"] if name.startswith(DECK)}
        if TOTALS.get(dtype) != meta["quantisation"]["total"]:
            raise ValueError(f"{path / META} has the quantisation {meta['quantisation']}, which is unknown here")
        for name in meta["files"]:
            _refuse(path, file_problem(path, meta, name, content=name not in tables | mapped))
        arrays, texts = {}, {}
        for name in set(meta["files"]) - tables:
            stem, _, ending = name.rpartition(".")
            if ending == "npy":
                array = np.load(path / name, mmap_mode="r" if name in mapped else None)
                arrays[stem] = np.asarray(array)
            else:
                texts[stem] = json.loads((path / name).read_bytes())
        game = rebuild_game(meta, arrays, texts)
        shares, weights = [], []
        for block in meta["blocks"]:
            buckets, rows, slots = block["buckets"], block["rows"], block["slots"]
            shares.append(_map(path, block["probability"], (buckets, slots), np.dtype(dtype)))
            weights.append(_map(path, block["weight"], (buckets, rows), np.dtype(np.float32)))
        return cls(path, meta, game, shares, weights)

    def probabilities(self, node: int, bucket: int) -> npt.NDArray[np.float64]:
        """[A] probability of each action of a decision, in the order of the node's children; uniform at weight 0.

        Raises `ValueError` for a node that is no decision or an unknown bucket, `OSError` for a damaged row.
        """
        block, row, slot, count = self._place(node, bucket)
        if self._weights[block][bucket, row] == 0:
            return np.full(count, 1 / count)
        shares = self._shares[block][bucket, slot : slot + count].tolist()
        if sum(shares) != self._total:
            raise OSError(f"{self.path}: a row of street {block // 2}, player {block % 2} is damaged: run mccfr verify")
        return np.array(shares) / self._total

    def weight(self, node: int, bucket: int) -> float:
        """Accumulated weight behind a row, in float32; 0: never reached.  Raises `ValueError` as `probabilities`."""
        block, row, _, _ = self._place(node, bucket)
        return float(self._weights[block][bucket, row])

    def strategy(self) -> Strategy:
        """The whole strategy in memory, for evaluation."""
        parts = zip(self._shares, self._weights, strict=True)
        return Strategy(
            tuple(dequantise(s, w, row_starts(self.game, block)) for block, (s, w) in enumerate(parts)),
            tuple(np.asarray(w, np.float64) for w in self._weights),
        )


def _read_meta(path: Path) -> dict[str, Any]:
    if not (path / META).is_file():
        raise FileNotFoundError(f"{path} is not a policy: it has no {META}; give a directory that mccfr export wrote")
    return read_manifest(path / META, FORMAT, FORMAT_VERSION)


def _table_names(meta: Mapping[str, Any]) -> list[str]:
    return [block[kind] for block in meta["blocks"] for kind in ("probability", "weight") if block[kind] is not None]


def _map(path: Path, name: str | None, shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A table mapped for reading; a block without rows has no file."""
    if name is None:
        return np.zeros(shape, dtype)
    # The plain array over the mapping: indexing numpy.memmap itself is several times slower.
    array = np.asarray(np.load(path / check_relative_name(name), mmap_mode="r"))
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{path / name} has shape {array.shape} of {array.dtype}; {shape} of {dtype} is needed")
    return array


def file_problem(path: Path, meta: Mapping[str, Any], name: str, *, content: bool) -> str | None:
    """What is wrong with one file of a policy, its length or with `content` every byte; None if nothing is."""
    stated = meta["files"][name]
    file = path / check_relative_name(name)
    if file.is_symlink() or not file.is_file():
        return f"{name} is missing"
    length = file.stat().st_size
    if length != stated["length_bytes"]:
        return f"{name} has {length} bytes; {META} states {stated['length_bytes']}"
    if content and (checksum := durable.checksum_file(file)[1]) != stated["crc32c"]:
        return f"{name} has checksum {checksum:08x}; {META} states {stated['crc32c']:08x}"
    return None


def _refuse(path: Path, problem: str | None) -> None:
    if problem:
        kind = FileNotFoundError if problem.endswith("is missing") else OSError
        raise kind(f"policy {path} is damaged: {problem}; export it again")


def verify_policy(path: Path) -> list[str]:
    """Check every byte of a policy directory, and that every row is one.

    Returns one sentence for each thing that is wrong: files missing, extra, of another length or checksum, arrays that
    do not fit each other, rows with a wrong sum, weights that are negative or not finite.  Empty for a sound policy.
    """
    path = Path(path)
    try:
        meta = _read_meta(path)
        problems = [file_problem(path, meta, name, content=True) for name in meta["files"]]
        extra = sorted({entry.name for entry in path.iterdir()} - {META, *meta["files"]})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{path}: {error}"]
    problems += [f"{name} is not in {META}" for name in extra]
    found = [f"{path}: {problem}" for problem in problems if problem]
    if found:
        return found
    try:
        policy = Policy.open(path)
    except (OSError, ValueError) as error:
        return [f"{path}: {error}"]
    return [f"{path}: {problem}" for problem in _row_problems(policy)]


def _row_problems(policy: Policy) -> Iterable[str]:
    for number, block in enumerate(policy.meta["blocks"]):
        if block["probability"] is None:
            continue
        sums = np.add.reduceat(policy._shares[number], row_starts(policy.game, number)[:-1], axis=1, dtype=np.int64)
        if np.any(sums != policy._total):
            yield f"{block['probability']} has a row that does not sum to {policy._total}"
        weights = policy._weights[number]
        if not (np.all(weights >= 0) and np.all(np.isfinite(weights))):
            yield f"{block['weight']} has a weight that is negative or not finite"
