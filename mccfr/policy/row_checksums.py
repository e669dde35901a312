"""Checksums of pieces of large tables, for readers that map a table and read only a few rows.

A piece is as many whole rows (entries of the first axis) as fit into 64 KiB, at least one; the last may be shorter.
`row_checksums.npy` [P] uint32 holds the CRC-32C of every piece's cells, table after table.  `row_checksums` of
meta.json states the rows of a piece and the first checksum of each table.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import crc32c
import msgspec
import numpy as np
import numpy.typing as npt

from storage.damage import DamagedError
from storage.threads import ordered

ROW_CHECKSUMS_FILE = "row_checksums.npy"

_PIECE_BYTES = 1 << 16
_AT_ONCE = 64  # pieces that one thread checks at a time


class Pieces(msgspec.Struct, frozen=True):
    """Division of one table into pieces of about 64 KiB, each with a checksum.

    rows   number of rows (entries of the first axis) of a piece
    first  index of the first piece's checksum among those of all tables
    """

    rows: Annotated[int, msgspec.Meta(ge=1, lt=2**40)]
    first: Annotated[int, msgspec.Meta(ge=0, lt=2**40)]

    def count(self, length: int) -> int:
        """Return the number of pieces in a table of `length` rows; a piece is about 64 KiB."""
        return -(-length // self.rows)


class RowChecksumFields(msgspec.Struct, frozen=True):
    """`row_checksums` in meta.json: the checksums' file, and how each table is divided.

    file    name of the file with the checksums of all tables
    tables  {file name of a table: its division into pieces of about 64 KiB}
    """

    file: str
    tables: dict[str, Pieces]


class RowChecksums:
    """Collects checksums of large tables while a policy is written, one per 64 KiB of rows."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.uint32]] = []
        self._tables: dict[str, Pieces] = {}

    def add(self, name: str, table: npt.NDArray[Any]) -> None:
        """Divide a table [rows, ...] into pieces of about 64 KiB, and add their checksums.

        name  file name of the table
        """
        row_bytes = max(1, table.nbytes // max(1, len(table)))
        pieces = Pieces(max(1, _PIECE_BYTES // row_bytes), sum(map(len, self._parts)))
        self._parts.append(piece_checksums(table, pieces))
        self._tables[name] = pieces

    def array(self) -> npt.NDArray[np.uint32]:
        """Return [P] uint32 the checksums of all pieces of all tables."""
        return np.concatenate(self._parts) if self._parts else np.zeros(0, np.uint32)

    def fields(self, file: str) -> dict[str, Any]:
        """Return the `row_checksums` field of meta.json: the file, and each table's pieces.

        For a table it states the rows of a piece, and the index of its first checksum.

        file  name of the file that will hold the checksums
        """
        found: dict[str, Any] = msgspec.to_builtins(RowChecksumFields(file, self._tables))
        return found


def piece_checksums(table: npt.NDArray[Any], pieces: Pieces) -> npt.NDArray[np.uint32]:
    """Return [P] uint32 the CRC-32C of each piece of a row-major table.

    pieces  division of the table; only the number of rows of a piece is used
    """

    def some(first: int) -> list[int]:
        starts = range(first, min(first + step, len(table)), pieces.rows)
        return [crc32c.crc32c(table[start : start + pieces.rows]) for start in starts]

    step = _AT_ONCE * pieces.rows
    parts = ordered(some, range(0, len(table), step), size_bytes=table.nbytes) if table.size else ()
    return np.array([checksum for part in parts for checksum in part], np.uint32)


class GuardedTable:
    """A table mapped from the disk, whose parts are compared with their checksums when first read.

    Access to `rows` itself compares nothing: before it, callers call `check` or `all_rows`.
    """

    def __init__(
        self, file: str, rows: npt.NDArray[Any], pieces: Pieces | None, checksums: npt.NDArray[np.uint32]
    ) -> None:
        """Take the mapped table `rows` [rows, ...] of `file`, which error messages name.

        pieces     division of the table into pieces, each with a checksum; None: compare nothing, because the table has
                   been checked as a whole
        checksums  [P] uint32 of all tables of the policy

        Raises `ValueError` if there are too few checksums.
        """
        self.file, self.rows = file, rows
        self._pieces = pieces or Pieces(max(1, len(rows)), 0)
        count = self._pieces.count(len(rows)) if rows.size else 0
        self._sound = bytearray(count) if pieces else bytearray(b"\1" * count)
        self._checksums = checksums[self._pieces.first : self._pieces.first + count]
        if pieces and len(self._checksums) < count:
            raise ValueError(f"{ROW_CHECKSUMS_FILE} has {len(checksums)} checksums, too few for those of {file}")

    def check(self, row: int) -> None:
        """Compare the part that holds a row with its checksum, once; `OSError` if it is damaged."""
        piece = row // self._pieces.rows
        if not self._sound[piece]:
            self._compare(piece)

    def all_rows(self) -> npt.NDArray[Any]:
        """Return all rows, after comparing those not yet compared; `OSError` if any are damaged."""
        for row in range(0, len(self.rows) if len(self._sound) else 0, self._pieces.rows):
            self.check(row)
        return self.rows

    def _compare(self, piece: int) -> None:
        first = piece * self._pieces.rows
        found, stated = crc32c.crc32c(self.rows[first : first + self._pieces.rows]), int(self._checksums[piece])
        if found != stated:
            raise DamagedError(
                f"{self.file}: the rows from {first} on have checksum {found:08x}; {ROW_CHECKSUMS_FILE} states "
                f"{stated:08x}"
            )
        self._sound[piece] = 1


def row_checksum_problem(
    tables: Mapping[str, npt.NDArray[Any]], fields: RowChecksumFields, checksums: npt.NDArray[np.uint32]
) -> str | None:
    """Compare tables with their stored checksums; return a text on the first problem, or None.

    tables     {file name: table}; it has every table that `fields` names
    fields     how each table is divided into pieces
    checksums  [P] uint32, those stored for the pieces of all tables
    """
    end = 0
    for name, pieces in sorted(fields.tables.items(), key=lambda item: item[1].first):
        table = tables[name]
        count = pieces.count(len(table)) if table.size else 0
        if pieces.first != end:
            return f"{ROW_CHECKSUMS_FILE}: the checksums of {name} begin at {pieces.first}; {end} is needed"
        end += count
        stated = checksums[pieces.first : end]
        if len(stated) < count or not np.array_equal(piece_checksums(table, pieces), stated):
            return f"{ROW_CHECKSUMS_FILE}: the checksums of {name} are not those of its rows"
    if end != len(checksums):
        return f"{ROW_CHECKSUMS_FILE} has {len(checksums)} checksums; {end} are needed"
    return None
