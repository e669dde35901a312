"""Opens policy directories: maps the tables, rebuilds the game and reads rows."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.common.arguments import checked
from mccfr.games.full_betting import rules_of_document
from mccfr.games.game import Game
from mccfr.games.locks import with_stated_locks
from mccfr.policy.checks import MetaFields, check_meta, row_problem
from mccfr.policy.game_from_policy import Guards, rebuild_game
from mccfr.policy.overwrite import RUN_ID, replaceable
from mccfr.policy.policy_layout import DECK, FORMAT, FORMAT_VERSION, LINES, META, block_file
from mccfr.policy.policy_values import find_values, is_value_file
from mccfr.policy.query import query
from mccfr.policy.row_checksums import ROW_CHECKSUMS_FILE, GuardedTable, row_checksum_problem
from mccfr.policy.strategy_profile import Behaviour, infoset_position
from mccfr.tables.strategy import BlockRows, Strategy, row_starts
from mccfr.tables.table_layout import TableSet
from mccfr.trees.betting_lines import all_lines
from storage.atomic_outputs import check_output
from storage.damage import DamagedError, reading
from storage.directory_lock import read_directory
from storage.json_files import read_json
from storage.manifest import read_manifest
from storage.manifest_files import file_problems, listed_files
from storage.npy import read_npy

_MAX_TEXT_BYTES = 1 << 31  # largest file of labels or infoset names
_LINES_FILE = f"{LINES}.json"
_SUM_TOLERANCE = 1e-9


class Policy(Behaviour):
    """An open policy directory: gives action probabilities and weights of infosets.

    Tables are mapped from the disk; the game is in memory.

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
        """Take the parts of a policy that `open` has read.

        path     directory of the policy
        meta     content of its meta.json
        game     tree and cards, rebuilt from the directory
        tables   stored probabilities and weights of each block (street and player)
        values   {file: array} of expected values at the first decisions of streets; may be empty
        checked  True if all rows of the tables have been checked
        """
        self.path, self.meta, self.game = path, meta, game
        self._tables, self._values, self._checked = tables, values, checked
        self._shares = [shares.rows for shares, _ in tables]
        self._weights = [weights.rows for _, weights in tables]
        self._total = int(meta["quantisation"]["total"])
        arrays = game.tree.arrays
        # Stacked once, because reading four single cells takes half of the time of a look-up.
        self._places = np.stack([arrays.block, arrays.row, arrays.slot, arrays.count], axis=1, dtype=np.int32)
        self._buckets = game.buckets.tolist()
        # For each block and bucket: 1 if its pieces of the tables have been compared with their checksums.
        self._compared = [bytearray(b"\1" if checked else b"\0") * count for count in self._buckets]

    def _place(self, node: int, bucket: int) -> list[int]:
        """Return [block, row, first slot, number of actions] of the infoset of a node and bucket.

        A block is the tables of one street and player.  Row and first slot are columns of its weights and
        probabilities.  Raises `ValueError` if there is no such infoset.
        """
        if type(node) is type(bucket) is int and 0 <= node < len(self._places):
            position: list[int] = self._places[node].tolist()
            if position[0] >= 0 and 0 <= bucket < self._buckets[position[0]]:
                return position
        return list(infoset_position(self.game, node, bucket))

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> "Policy":
        """Open a policy.

        check  True: compare length and checksum of every file, and the sum of every row.  A deck's buckets are
               compressed; they are validated when they are unpacked.
               False: compare only the lengths of the large tables, so that opening a large policy is fast.  A look-up
               then compares the checksum of the part that it reads (about 64 KiB), once, and the sum of its row.

        The large tables are those of probabilities, weights and a deck's buckets.  An export that replaces the
        directory later does not change an open policy.

        Raises `FileNotFoundError` if there is no policy, and `DamagedError` for a missing or damaged file or a link.
        Raises `UnreadableError` if the system cannot read a file.  Raises `ValueError` for another format or version,
        and for arrays that do not fit.  Every message names the file.
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
    def _read(
        cls,
        path: Path,
        inside: Path,
        meta: Mapping[str, Any],
        fields: MetaFields,
        *,
        checked: bool,
        thorough: bool = False,
    ) -> "Policy":
        """Return a policy from the files in the directory `inside`.

        Their lengths and checksums have been compared with `meta`; of large tables perhaps only the lengths.

        path      of the policy, which messages name
        checked   True if the checksums of large tables have been compared too
        thorough  validate the buckets of all boards
        """
        arrays, texts, values = {}, {}, {}
        for name in set(meta["files"]) - fields.tables - {_LINES_FILE}:
            stem, _, ending = name.rpartition(".")
            if is_value_file(name):
                values[name] = read_npy(inside / name, mapped=True)
            elif ending == "npy":
                arrays[stem] = read_npy(inside / name, mapped=name.startswith(DECK))
            else:
                texts[stem] = read_json(inside / name, _MAX_TEXT_BYTES)
        guards = Guards(path, fields, _row_checksums(fields, arrays), checked, thorough)
        game = rebuild_game(arrays, texts, guards)
        game = replace(game, real_rules=rules_of_document(meta["game"], f"{path}/{META}"))
        game = with_stated_locks(game, meta["game"])
        tables = []
        for number, block in enumerate(fields.blocks):
            for name, kind in ((block.probability, "probability"), (block.weight, "weight")):
                if name is not None and (
                    name != block_file(kind, number, game.tree.players) or name not in meta["files"]
                ):
                    raise ValueError(f"{META} does not list {name} as the {kind} file of block {number}")
            dtype = np.dtype(fields.quantisation.dtype)
            shares = _map(guards, inside, block.probability, (block.buckets, block.slots), dtype)
            weights = _map(guards, inside, block.weight, (block.buckets, block.rows), np.dtype(np.float32))
            tables.append((shares, weights))
        return cls(path, meta, game, tables, values, checked)

    def row_problems(self) -> list[str]:
        """Return a list of one sentence for the first invalid row of each street and player that has one.

        A row is invalid if its probabilities have a wrong sum, or its weight is negative or not finite.
        """
        problems = []
        for block, (shares, weights) in enumerate(zip(self._shares, self._weights, strict=True)):
            if weights.size:
                players = self.game.tree.players
                files = block_file("probability", block, players), block_file("weight", block, players)
                problems.append(row_problem(shares, weights, row_starts(self.game, block), files))
        return [problem for problem in problems if problem]

    def _require_rows(self) -> None:
        """Raise `OSError` if a row of the tables is invalid: a wrong sum of probabilities, or a wrong weight."""
        for problem in self.row_problems():
            raise DamagedError(f"policy {self.path} is damaged: {problem}; export it again")

    def _check_row(self, block: int, bucket: int) -> None:
        """Compare the parts of a block's two tables that hold row `bucket` with their checksums.

        A part is about 64 KiB of a table's rows (`mccfr.policy.row_checksums`).  A block is the tables of one street
        and player.  Raises `OSError` if a checksum differs.
        """
        for table in self._tables[block]:
            table.check(bucket)
        self._compared[block][bucket] = 1

    def _damaged_row(self, block: int) -> DamagedError:
        street, player = divmod(block, self.game.tree.players)
        where = f"street {street}, player {player}"
        return DamagedError(f"{self.path}: a row of {where} is damaged: run mccfr verify")

    def probabilities(self, node: int, bucket: int) -> npt.NDArray[np.float64]:
        """Return the probability [A] of each action at an infoset, in the order of the node's children.

        The probabilities are uniform if the infoset's weight is 0.

        Raises `OSError` for a damaged row, and `ValueError` for an infoset that does not exist.
        """
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
        """Return the probabilities [n, A] of a decision's A actions, and weights [n], by bucket.

        buckets  [n] the buckets of n hands

        Rows of weight 0 are uniform; a bucket below 0 (impossible hand) gets 0.  Raises `OSError` for a damaged row,
        and `ValueError` for a node that is no decision, or an unknown bucket.
        """
        known, dead = np.maximum(buckets, 0), buckets < 0
        block, row, slot, count = self._place(node, int(known.max(initial=0)))
        if not self._checked:
            for bucket in np.unique(known).tolist():
                if not self._compared[block][bucket]:
                    self._check_row(block, bucket)
        probabilities = _gathered(self._shares[block], known, slice(slot, slot + count)) / self._total
        weight = _gathered(self._weights[block], known, row).astype(np.float64)
        probabilities[weight == 0] = 1 / count
        if not self._checked and (np.abs(probabilities.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
            raise self._damaged_row(block)
        probabilities[dead], weight[dead] = 0, 0
        return probabilities, weight

    def weight(self, node: int, bucket: int) -> float:
        """Return an infoset's weight, accumulated in training and stored as float32; 0: never reached.

        Raises `OSError` for a damaged row, and `ValueError` for an infoset that does not exist.
        """
        block, row, _, _ = self._place(node, bucket)
        if not self._compared[block][bucket]:
            self._check_row(block, bucket)
        return float(self._weights[block][bucket, row])

    @checked
    def query(self, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
        """Return the strategy at a line's decision as a dict (`mccfr.policy.query.query`).

        line   actions before the decision, such as "b300c/"
        hand   one hand; None: every hand of the player's range
        board  board cards at the decision

        Raises `ValueError` for an invalid line, hand or board, and `OSError` for a damaged row.
        """
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
        """Write the strategy as "csv", "parquet" or "openspiel" (`mccfr.policy.export`); return `out`.

        board    csv, parquet: write a row for each hand on this board ("" for no board); None: for each bucket
        replace  True: an export of another run or solver may be replaced

        Raises `ValueError` for another format, or one that this game or installation does not support.  Raises
        `FileExistsError` if `out` holds something else, or without `replace` an export of another or an unknown run.
        The run of a CSV file is unknown.
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only path and content hash, so that another process maps the same files."""
        return _reopened, (self.path.absolute(), self.meta["content_hash"])

    def __repr__(self) -> str:
        return f"<policy {self.path}: {self.game.name}, {int(self.game.infosets.sum()):,} infosets>"

    def values(self, node: int, player: int) -> npt.NDArray[np.float32]:
        """Return a player's expected values [buckets] at a node that begins a street.

        A value is the mean of chips won over the whole hand, if both players follow the policy.  It is NaN if the
        opponent's strategy never gets to the node, or no sampled board has the bucket.

        player  0 or 1

        Raises `ValueError` for a policy without values, and for another node.
        """
        return find_values(self.path, self.meta, self._values, self.game.tree, node, player)

    def strategy(self) -> Strategy:
        """Return the whole strategy; its tables stay mapped, and become floats only while they are read.

        Raises `OSError` if a row is damaged; all rows are checked, unless they have been.
        """
        if not self._checked:
            for block in self._tables:
                for table in block:
                    table.all_rows()
            self._require_rows()
            self._checked = True
        blocks = [BlockRows(shares, weights) for shares, weights in zip(self._shares, self._weights, strict=True)]
        return Strategy.stored(self.game, blocks)


def _reopened(path: Path, content_hash: str) -> Policy:
    """Open a policy that was pickled as path and hash; `ValueError` if the path now holds another one."""
    policy = Policy.open(path, check=False)
    if policy.meta["content_hash"] != content_hash:
        raise ValueError(f"{path} holds another policy now than when this one was pickled: export it to another place")
    return policy


def _gathered(table: npt.NDArray[Any], rows: npt.NDArray[np.integer], columns: slice | int) -> npt.NDArray[Any]:
    """Return `table[rows, columns]`, computed by the faster of two numpy operations.

    It is `take` if the table has at most twice as many rows as `rows` has entries, otherwise indexing.
    """
    return table[:, columns].take(rows, axis=0) if len(table) <= 2 * len(rows) else table[rows, columns]


def _read_meta(path: Path) -> dict[str, Any]:
    with reading(path):
        found = (path / META).is_file()
    if not found:
        raise FileNotFoundError(f"{path} is not a policy: it has no {META}; give a directory that mccfr export wrote")
    return read_manifest(path / META, FORMAT, FORMAT_VERSION)


def _row_checksums(fields: MetaFields, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.uint32]:
    """Return [P] uint32, the stored CRC-32C of all parts of large tables.

    A part is about 64 KiB of a table's rows. Raises `ValueError` if the array is missing, or of another shape or dtype.
    """
    found = arrays.get(ROW_CHECKSUMS_FILE.removesuffix(".npy"))
    if found is None or found.ndim != 1 or found.dtype != np.uint32:
        raise ValueError(f"{ROW_CHECKSUMS_FILE} is missing from {META}, or is no list of uint32")
    return found


def _map(guards: Guards, inside: Path, name: str | None, shape: tuple[int, int], dtype: np.dtype[Any]) -> GuardedTable:
    """Return a policy's table [buckets, rows or slots], mapped for reading.

    inside  directory from which the policy's files are read
    name    file name; None for a street and player without decisions, for which the table is empty

    Raises `ValueError` if the file's array has another `shape` or `dtype`, or meta.json states no row checksums of it.
    """
    if name is None:
        return GuardedTable("", np.zeros(shape, dtype), None, guards.checksums)
    array = read_npy(inside / name, mapped=True)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{name} has shape {array.shape} of {array.dtype}; {shape} of {dtype} is needed")
    return guards.table(name, array)


def verify_policy(path: Path) -> list[str]:
    """Check every byte and every row of a policy directory; return one sentence for each problem.

    Problems are files that are missing, extra, links, or of another length or checksum, and arrays that do not fit.
    Further problems are invalid rows, row checksums that differ from the tables, and betting lines that differ from the
    tree.  The list is empty for a valid policy.

    Raises `UnreadableError` if the system cannot read a file.
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
                policy = Policy._read(path, inside, meta, fields, checked=True, thorough=True)
                found = policy.row_problems() + _derived_problems(policy, inside, fields)
        return found

    try:
        found = read_directory(path, read)
    except (DamagedError, FileNotFoundError, ValueError) as error:
        return [f"{path}: {error}"]
    return [f"{path}: {problem}" for problem in found]


def _derived_problems(policy: Policy, inside: Path, fields: MetaFields) -> list[str]:
    """Compare stored row checksums and betting lines with tables and tree; return a text on each problem.

    inside  directory from which the policy's files are read
    """
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
    """Begin the message of a `ValueError` that is raised in the `with` block with the policy's `path`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} is intact but not a policy that can be read: {error}") from None
