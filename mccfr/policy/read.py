"""Reading a policy directory: rows of probabilities by mapped lookup, and the game rebuilt from its own arrays."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.policy.checks import MetaFields, check_meta, row_problem
from mccfr.policy.layout import DECK, FORMAT, FORMAT_VERSION, META, block_file, rebuild_game
from mccfr.policy.quantise import dequantise
from mccfr.policy.source import place
from mccfr.strategy import Strategy, row_starts
from storage.json_files import read_json
from storage.listing import file_problems, listed_files
from storage.manifest import read_manifest
from storage.npy import read_npy

_MAX_TEXT_BYTES = 1 << 31  # of a list of labels or infosets' names


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
        self._rows_checked = False
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
    def open(cls, path: Path, *, check: bool = True) -> "Policy":
        """Open a policy.

        check  True: length and checksum of every file, and the sum of every row, are compared, which reads all of it
               once.  False, for programs that open one policy often: of the tables of probabilities, weights and a
               deck's buckets only the lengths, so that opening takes no longer for large ones; look-ups then refuse a
               row that does not sum to its total, and nothing else of those tables is noticed.

        Raises `FileNotFoundError` where there is no policy or a file is missing, `OSError` where one is damaged or a
        link, `ValueError` for another format or version (with both in the message) and for arrays that do not fit;
        every message names the file.
        """
        path = Path(path)
        meta = _read_meta(path)
        with _named(path):
            fields, files = check_meta(meta), listed_files(meta.get("files"))
            unread = [name for name in files if name in fields.tables or name.startswith(DECK)]
            for problem in file_problems(path, files, () if check else unread):
                kind = FileNotFoundError if problem.endswith("is missing") else OSError
                raise kind(f"policy {path} is damaged: {problem}; export it again")
            policy = cls._read(path, meta, fields, check=check)
        for problem in policy.row_problems() if check else ():
            raise OSError(f"policy {path} is damaged: {problem}; export it again")
        policy._rows_checked = check
        return policy

    @classmethod
    def _read(cls, path: Path, meta: Mapping[str, Any], fields: MetaFields, *, check: bool) -> "Policy":
        """A policy whose files are what `meta` states; `check` as in `rebuild_game`."""
        arrays, texts = {}, {}
        for name in set(meta["files"]) - fields.tables:
            stem, _, ending = name.rpartition(".")
            if ending == "npy":
                arrays[stem] = read_npy(path / name, mapped=name.startswith(DECK))
            else:
                texts[stem] = read_json(path / name, _MAX_TEXT_BYTES)
        game = rebuild_game(fields, arrays, texts, check=check)
        shares, weights = [], []
        for number, block in enumerate(fields.blocks):
            for name, kind in ((block.probability, "probability"), (block.weight, "weight")):
                if name is not None and (name != block_file(kind, number) or name not in meta["files"]):
                    raise ValueError(f"{META} does not list {name} as the {kind} file of block {number}")
            dtype = np.dtype(fields.quantisation.dtype)
            shares.append(_map(path, block.probability, (block.buckets, block.slots), dtype))
            weights.append(_map(path, block.weight, (block.buckets, block.rows), np.dtype(np.float32)))
        return cls(path, meta, game, shares, weights)

    def row_problems(self) -> list[str]:
        """One sentence for each block's first row that does not sum to its total, or whose weight is none."""
        problems = []
        for block, (shares, weights) in enumerate(zip(self._shares, self._weights, strict=True)):
            if weights.size:
                files = block_file("probability", block), block_file("weight", block)
                problems.append(row_problem(shares, weights, row_starts(self.game, block), files))
        return [problem for problem in problems if problem]

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
        """The whole strategy in memory, for evaluation; `OSError` where a row is damaged, however it was opened."""
        for problem in () if self._rows_checked else self.row_problems():
            raise OSError(f"policy {self.path} is damaged: {problem}; export it again")
        parts = zip(self._shares, self._weights, strict=True)
        return Strategy(
            tuple(dequantise(s, w, row_starts(self.game, block)) for block, (s, w) in enumerate(parts)),
            tuple(np.asarray(w, np.float64) for w in self._weights),
        )


def _read_meta(path: Path) -> dict[str, Any]:
    if not (path / META).is_file():
        raise FileNotFoundError(f"{path} is not a policy: it has no {META}; give a directory that mccfr export wrote")
    return read_manifest(path / META, FORMAT, FORMAT_VERSION)


def _map(path: Path, name: str | None, shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A table mapped for reading; a block without rows has no file."""
    if name is None:
        return np.zeros(shape, dtype)
    array = read_npy(path / name, mapped=True)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} has shape {array.shape} of {array.dtype}; {shape} of {dtype} is needed")
    return array


def verify_policy(path: Path) -> list[str]:
    """Check every byte of a policy directory, and that every row is one.

    Returns one sentence for each thing that is wrong: files missing, extra, links, of another length or checksum,
    arrays that do not fit each other, rows with a wrong sum, weights that are negative or not finite.  Empty for a
    sound policy.
    """
    path = Path(path)
    try:
        meta = _read_meta(path)
        with _named(path):
            fields, files = check_meta(meta), listed_files(meta.get("files"))
            found = file_problems(path, files)
            extra = sorted({entry.name for entry in path.iterdir()} - {META, *files})
            found += [f"{name} is not in {META}" for name in extra]
            if not found:
                found = Policy._read(path, meta, fields, check=True).row_problems()
    except (OSError, ValueError) as error:
        return [f"{path}: {error}"]
    return [f"{path}: {problem}" for problem in found]


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What is wrong with a policy's arrays is said with its name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} is intact but not a policy that can be read: {error}") from None
