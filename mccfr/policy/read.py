"""Reading a policy directory: rows of probabilities by mapped lookup, and the game rebuilt from its own arrays."""

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.arguments import checked
from mccfr.games.game import Game
from mccfr.games.locks import with_stated_locks
from mccfr.games.real_rules import rules_of_document
from mccfr.policy.checks import MetaFields, check_meta, row_problem
from mccfr.policy.layout import DECK, FORMAT, FORMAT_VERSION, LINES, META, block_file
from mccfr.policy.profile import Behaviour, Profile, place
from mccfr.policy.query import query
from mccfr.policy.rebuild import Guards, rebuild_game
from mccfr.policy.replacing import RUN_ID, replaceable
from mccfr.policy.row_checksums import ROW_CHECKSUMS_FILE, GuardedTable, row_checksum_problem
from mccfr.policy.values import find_values, is_value_file
from mccfr.tables.layout import TableSet
from mccfr.tables.strategy import BlockRows, Strategy, row_starts
from mccfr.trees.lines import all_lines
from storage.damage import DamagedError, reading
from storage.directory_lock import read_directory
from storage.json_files import read_json
from storage.listing import file_problems, listed_files
from storage.manifest import read_manifest
from storage.npy import read_npy
from storage.outputs import check_output

_MAX_TEXT_BYTES = 1 << 31  # of a list of labels or infosets' names
_LINES_FILE = f"{LINES}.json"
_SUM_TOLERANCE = 1e-9


class Policy(Behaviour):
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
        tables: Sequence[tuple[GuardedTable, GuardedTable]],
        values: Mapping[str, npt.NDArray[Any]],
        checked: bool,
    ) -> None:
        """
        tables   shares and weights of each block
        values   {file: array} of what buckets win where streets begin
        checked  all rows of the tables are known to be sound
        """
        self.path, self.meta, self.game = path, meta, game
        self._tables, self._values, self._checked = tables, values, checked
        self._shares = [shares.rows for shares, _ in tables]
        self._weights = [weights.rows for _, weights in tables]
        self._total = int(meta["quantisation"]["total"])
        arrays = game.tree.arrays
        # Gathered once, because four look-ups of single cells cost as much as all the rest of one.
        self._places = np.stack([arrays.block, arrays.row, arrays.slot, arrays.count], axis=1, dtype=np.int32)
        self._buckets = game.buckets.tolist()
        # Of each block and bucket, whether its pieces of the tables have been compared with their checksums.
        self._compared = [bytearray(b"\1" if checked else b"\0") * count for count in self._buckets]

    def _place(self, node: int, bucket: int) -> list[int]:
        """[block, row, first slot, number of actions], as `place` finds it."""
        if type(node) is type(bucket) is int and 0 <= node < len(self._places):
            found: list[int] = self._places[node].tolist()
            if found[0] >= 0 and 0 <= bucket < self._buckets[found[0]]:
                return found
        return list(place(self.game, node, bucket))

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> "Policy":
        """Open a policy.

        check  True: length and checksum of every file, and the sum of every row, are compared, which reads all of it
               once.  False, for programs that open one policy often: of the tables of probabilities, weights and a
               deck's buckets only the lengths, so that opening takes no longer for large ones; look-ups then compare
               the checksum of the piece of a table that they touch, once, and refuse a row that does not sum to its
               total.

        Raises `FileNotFoundError` where there is no policy, `DamagedError` where a file is missing, damaged or a link,
        `UnreadableError` where the system cannot read one, `ValueError` for another format or version (with both in the
        message) and for arrays that do not fit; every message names the file.

        All is of the version that has the name now: an export that takes its place does not change an open policy.
        """

        def read(inside: Path) -> Policy:
            meta = _read_meta(inside)
            with _named(inside):
                fields, files = check_meta(meta), listed_files(meta.get("files"))
                unread = {*fields.tables, _LINES_FILE, *(name for name in files if name.startswith(DECK))}
                for problem in file_problems(inside, files, () if check else unread):
                    raise DamagedError(f"policy {inside} is damaged: {problem}; export it again")
                return cls._read(Path(path), inside, meta, fields, checked=check)

        policy = read_directory(Path(path), read)
        if check:
            policy._require_rows()
        return policy

    @classmethod
    def _read(cls, path: Path, inside: Path, meta: Mapping[str, Any], fields: MetaFields, *, checked: bool) -> "Policy":
        """A policy whose files, which lie `inside`, are what `meta` states; `checked`: those of the tables too."""
        arrays, texts, values = {}, {}, {}
        for name in set(meta["files"]) - fields.tables - {_LINES_FILE}:
            stem, _, ending = name.rpartition(".")
            if is_value_file(name):
                values[name] = read_npy(inside / name, mapped=True)
            elif ending == "npy":
                arrays[stem] = read_npy(inside / name, mapped=name.startswith(DECK))
            else:
                texts[stem] = read_json(inside / name, _MAX_TEXT_BYTES)
        guards = Guards(path, fields, _row_checksums(fields, arrays), checked)
        game = rebuild_game(arrays, texts, guards)
        game = replace(game, real_rules=rules_of_document(meta["game"], f"{path}/{META}"))
        game = with_stated_locks(game, meta["game"])
        tables = []
        for number, block in enumerate(fields.blocks):
            for name, kind in ((block.probability, "probability"), (block.weight, "weight")):
                if name is not None and (name != block_file(kind, number) or name not in meta["files"]):
                    raise ValueError(f"{META} does not list {name} as the {kind} file of block {number}")
            dtype = np.dtype(fields.quantisation.dtype)
            shares = _map(guards, inside, block.probability, (block.buckets, block.slots), dtype)
            weights = _map(guards, inside, block.weight, (block.buckets, block.rows), np.dtype(np.float32))
            tables.append((shares, weights))
        return cls(path, meta, game, tables, values, checked)

    def row_problems(self) -> list[str]:
        """One sentence for each block's first row that does not sum to its total, or whose weight is none."""
        problems = []
        for block, (shares, weights) in enumerate(zip(self._shares, self._weights, strict=True)):
            if weights.size:
                files = block_file("probability", block), block_file("weight", block)
                problems.append(row_problem(shares, weights, row_starts(self.game, block), files))
        return [problem for problem in problems if problem]

    def _require_rows(self) -> None:
        """Raise `OSError` where a row is none."""
        for problem in self.row_problems():
            raise DamagedError(f"policy {self.path} is damaged: {problem}; export it again")

    def _check_row(self, block: int, bucket: int) -> None:
        """Compare what a look-up touches of a block with its checksums."""
        for table in self._tables[block]:
            table.check(bucket)
        self._compared[block][bucket] = 1

    def _damaged_row(self, block: int) -> DamagedError:
        where = f"street {block // 2}, player {block % 2}"
        return DamagedError(f"{self.path}: a row of {where} is damaged: run mccfr verify")

    def probabilities(self, node: int, bucket: int) -> npt.NDArray[np.float64]:
        """As `Behaviour.probabilities`; `OSError` for a damaged row."""
        block, row, slot, count = self._place(node, bucket)
        if not self._compared[block][bucket]:
            self._check_row(block, bucket)
        if self._weights[block][bucket, row] == 0:
            return np.full(count, 1 / count)
        shares = self._shares[block][bucket, slot : slot + count].tolist()
        if not self._checked and sum(shares) != self._total:
            raise self._damaged_row(block)
        return np.array(shares) / self._total

    def rows(
        self, node: int, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """As `Behaviour.rows`; `OSError` for a damaged row."""
        known, dead = np.maximum(buckets, 0), buckets < 0
        block, row, slot, count = self._place(node, int(known.max(initial=0)))
        if not self._checked:
            for bucket in np.unique(known).tolist():
                if not self._compared[block][bucket]:
                    self._check_row(block, bucket)
        found = _gathered(self._shares[block], known, slice(slot, slot + count)) / self._total
        weight = _gathered(self._weights[block], known, row).astype(np.float64)
        found[weight == 0] = 1 / count
        if not self._checked and (np.abs(found.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
            raise self._damaged_row(block)
        found[dead], weight[dead] = 0, 0
        return found, weight

    def weight(self, node: int, bucket: int) -> float:
        """As `Behaviour.weight`, in float32; `OSError` for a damaged row."""
        block, row, _, _ = self._place(node, bucket)
        if not self._compared[block][bucket]:
            self._check_row(block, bucket)
        return float(self._weights[block][bucket, row])

    @checked
    def query(self, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
        """The strategy at the decision that a line leads to: `mccfr.policy.query.query` of this policy."""
        return query(self, line, hand, board)

    @checked
    def export(
        self,
        out: str | os.PathLike[str],
        *,
        format: str = "csv",  # noqa: A002 - the command's name
        board: str | None = None,
        replace: bool = False,
    ) -> Path:
        """Write the strategy as "csv", "parquet" or "openspiel" (`mccfr.policy.export`); returns what was written.

        board    csv, parquet: rows of hands on this board, "" for none; None: of buckets
        replace  whether an export of another run or solver may be replaced

        Raises `ValueError` for another format, and for one that this game or installation has not; `FileExistsError`
        where something else is at `out`.
        """
        from mccfr.policy.export import BY_HAND, LISTS, PROVENANCE, export  # which is above what reads policies

        if format not in LISTS:
            raise ValueError(f"export format {format!r} is not one of {', '.join(LISTS)}, which a policy is written as")
        if board is not None and format not in BY_HAND:
            raise ValueError(f"{format} has no rows that could be of hands: choose {' or '.join(BY_HAND)}")
        origin = self.meta["provenance"]
        may = replaceable(PROVENANCE[format], origin.get(RUN_ID), replace=replace)
        check_output(path := Path(out), may)
        document = self.meta["game"]
        nothing = TableSet({})
        export(self.game, document, self.strategy(), nothing, path, format, "", origin, board=board, replaceable=may)
        return path

    @checked
    def frame(self, board: str | None = None) -> Any:
        """The strategy as a pandas DataFrame: a row for each infoset and action, columns as of `export`.

        board  rows of hands on this board, "" for none; None: of buckets

        Raises `ValueError` without pandas, and for what is no board of the game.
        """
        from mccfr.policy.export.rows import COLUMNS, strategy_rows

        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ValueError("Policy.frame needs pandas: pip install pandas, or export csv or parquet") from None
        rows = strategy_rows(Profile(self.game, self.strategy()), board)
        return pandas.DataFrame.from_records(list(rows), columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        """For notebooks: what hands do at the first decision, where the game has hands."""
        from mccfr.policy.html import first_decision_html

        try:
            return first_decision_html(self, repr(self))
        except ValueError:
            return f"<p>{escape(repr(self))}</p>"

    def __repr__(self) -> str:
        return f"<policy {self.path}: {self.game.name}, {int(self.game.infosets.sum()):,} infosets>"

    def values(self, node: int, player: int) -> npt.NDArray[np.float32]:
        """[buckets] what a player's buckets win at a decision that begins a street (`mccfr.policy.values`)."""
        return find_values(self.path, self.meta, self._values, self.game.tree, node, player)

    def strategy(self) -> Strategy:
        """The whole strategy as it lies on the disk: a block is made dense while it is asked for, and no longer.

        Raises `OSError` where a row is damaged, however the policy was opened.
        """
        if not self._checked:
            for block in self._tables:
                for table in block:
                    table.whole()
            self._require_rows()
            self._checked = True
        blocks = [BlockRows(shares, weights) for shares, weights in zip(self._shares, self._weights, strict=True)]
        return Strategy.stored(self.game, blocks)


def _gathered(table: npt.NDArray[Any], rows: npt.NDArray[np.integer], columns: slice | int) -> npt.NDArray[Any]:
    """Columns of rows: by `take`, which copies them of all rows first, where these are few, and else by indices."""
    return table[:, columns].take(rows, axis=0) if len(table) <= 2 * len(rows) else table[rows, columns]


def _read_meta(path: Path) -> dict[str, Any]:
    with reading(path):
        found = (path / META).is_file()
    if not found:
        raise FileNotFoundError(f"{path} is not a policy: it has no {META}; give a directory that mccfr export wrote")
    return read_manifest(path / META, FORMAT, FORMAT_VERSION)


def _row_checksums(fields: MetaFields, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint32]:
    """Return the checksums of pieces of tables, [P]."""
    found = arrays.get(ROW_CHECKSUMS_FILE.removesuffix(".npy"))
    if found is None or found.ndim != 1 or found.dtype != np.uint32:
        raise ValueError(f"{ROW_CHECKSUMS_FILE} is missing from {META}, or is no list of uint32")
    return found


def _map(guards: Guards, inside: Path, name: str | None, shape: tuple[int, int], dtype: np.dtype[Any]) -> GuardedTable:
    """A table mapped for reading; a block without rows has no file."""
    if name is None:
        return GuardedTable("", np.zeros(shape, dtype), None, guards.checksums)
    array = read_npy(inside / name, mapped=True)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} has shape {array.shape} of {array.dtype}; {shape} of {dtype} is needed")
    return guards.table(name, array)


def verify_policy(path: Path) -> list[str]:
    """Check every byte of a policy directory, and that every row is one.

    Returns one sentence for each thing that is wrong: files missing, extra, links, of another length or checksum,
    arrays that do not fit each other, rows with a wrong sum, weights that are negative or not finite, row checksums
    that are not those of the tables, lines that are not those of the tree.  Empty for a sound policy.

    Raises `UnreadableError` where the system cannot read a file.
    """
    path = Path(path)

    def read(inside: Path) -> list[str]:
        meta = _read_meta(inside)
        with _named(inside):
            fields, files = check_meta(meta), listed_files(meta.get("files"))
            found = file_problems(inside, files)
            with reading(inside):
                extra = sorted({entry.name for entry in inside.iterdir()} - {META, *files})
            found += [f"{name} is not in {META}" for name in extra]
            if not found:
                policy = Policy._read(path, inside, meta, fields, checked=True)
                found = policy.row_problems() + _derived_problems(policy, inside, fields)
        return found

    try:
        found = read_directory(path, read)
    except (DamagedError, FileNotFoundError, ValueError) as error:
        return [f"{path}: {error}"]
    return [f"{path}: {problem}" for problem in found]


def _derived_problems(policy: Policy, inside: Path, fields: MetaFields) -> list[str]:
    """What is wrong with files that say again, for other readers, what others hold."""
    files = policy.meta["files"]
    known = {name for name in files if name in fields.tables or (name.startswith(DECK) and name.endswith(".npy"))}
    if set(fields.row_checksums.tables) != known:
        return [f"{META} does not state row checksums of exactly the large tables"]
    tables = {name: read_npy(inside / name, mapped=True) for name in known}
    checksums = read_npy(inside / ROW_CHECKSUMS_FILE)
    problems = [row_checksum_problem(tables, fields.row_checksums, checksums)]
    if _LINES_FILE not in files:
        problems.append(f"{_LINES_FILE} is missing from {META}")
    elif read_json(inside / _LINES_FILE, _MAX_TEXT_BYTES) != all_lines(policy.game.tree):
        problems.append(f"{_LINES_FILE} does not hold the lines of the tree")
    return [problem for problem in problems if problem]


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What is wrong with a policy's arrays is said with its name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} is intact but not a policy that can be read: {error}") from None
