"""Messages between the coordinator and the training processes: orders and answers, as int64 arrays.

Training processes are called ranks; the coordinator is one more process, which leads them. A stratum is a group of
flops with the table rows that belong to them. Ranks train their strata for an interval, each on a copy of the first
street's tables. At the end, a barrier, the coordinator adds up the changes of that street.

An order contains everything that determines a rank's work except the table rows of its strata: the states of the
strata, their quotas of iterations, and the first street at the start of the interval. A rank therefore keeps nothing
else from earlier intervals.

The rows of a stratum are saved as versions: folders of files, each with a number and the hash of its manifest.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.runs.session import control

RUN, WRITE, READ, COPY, RESTORE, QUIT = range(1, 7)
"""Commands: train an interval; write the rows of all strata as versions; read the rows of moved strata; copy a
checkpoint to each machine's own directory; restore damaged files from there; end.
"""
COMMAND, EPOCH, NODES, SCALE, CHECKPOINT = range(5)
ANSWERED, OVERFLOW, BUSY_NANOSECONDS, TRAINED_NODES = range(4)
_HEAD = 5
VERSION_CELLS = 5
"""Cells of a version of a stratum's rows: its number (0: none) and the 256 bits of its hash."""


class RankLocation(NamedTuple):
    """Machine, host and process id of a rank, one of a run's training processes.

    machine       number of its machine, from 0; one host may simulate several
    host          name of its host
    pid           its process id; 0: not yet known
    memory_bytes  available memory of its machine, for all ranks there, in bytes; infinite: not known
    """

    machine: int
    host: str
    pid: int
    memory_bytes: float = inf


def copy_machines(locations: Sequence[RankLocation]) -> list[int | None]:
    """Return for each training process its machine's number if it keeps backup copies, else None.

    The first process of each machine keeps them: copies of checkpoints, and of table rows that another machine trains.
    """
    machines = [location.machine for location in locations]
    return [machine if machine not in machines[:rank] else None for rank, machine in enumerate(machines)]


class Order:
    """An order from the coordinator (the leading process) to all training processes (ranks).

    N strata (groups of flops with their table rows), C cells in the tables of the first street.

    cells     the whole message, int64
    head      [5] COMMAND, such as RUN: train an interval, until the next exchange of the first street; EPOCH, unique
              for each order; NODES, the nodes touched before the interval; SCALE, the factor of first-street changes
              before they are rounded to integers, as float64 bits; CHECKPOINT, a number. For COPY it is the checkpoint
              to copy, for RESTORE the machine that restores. For READ it is the checkpoint that holds the rows of
              strata without a version; 0: rows of zeros
    owner     [N] rank of each stratum
    moved     [N] 1 if that rank must read the stratum's rows from files
    copy_at   [N] machine that keeps the backup copy of each stratum's rows
    versions  [N, 5] newest saved version of each stratum's rows: its number, and the hash of its manifest
    rows      [N, columns] counters, random state and quota of each stratum, in the columns of
              `mccfr.runs.session.control`
    first     [C] float64 totals of the first street, table by table
    """

    def __init__(self, strata: int, first_cells: int) -> None:
        lengths = [0, _HEAD, strata, strata, strata, strata * VERSION_CELLS, strata * control.COLUMNS, first_cells]
        ends = np.cumsum(lengths).tolist()
        self.cells = np.zeros(ends[-1], np.int64)
        parts = (self.cells[begin:end] for begin, end in pairwise(ends))
        self.head, self.owner, self.moved, self.copy_at, versions, rows, first = parts
        self.versions = versions.reshape(strata, VERSION_CELLS)
        self.rows = rows.reshape(strata, control.COLUMNS)
        self.first = first.view(np.float64)

    def totals(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, npt.NDArray[np.float64]]:
        """Return {table name: view of `first`} of the first street's tables.

        shapes  {table name: shape}, in the order in which `first` has the tables
        """
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())]).tolist()
        return {
            name: self.first[begin:end].reshape(shape)
            for (name, shape), (begin, end) in zip(shapes.items(), pairwise(ends), strict=True)
        }


class RankAnswer:
    """Answer of a training process (rank) after it has trained an interval.

    N strata (groups of flops with their table rows), C cells in the tables of the first street. The order is the
    `Order` to train this interval.

    cells    the whole message, int64
    head     [5] ANSWERED, the order's EPOCH; OVERFLOW, 1 if a change did not fit in 64 bits, an error of the run;
             BUSY_NANOSECONDS of training; TRAINED_NODES; one cell is unused
    rows     [N, columns] counters, random state and quota of each of the rank's strata; 0 for strata of other ranks
    changes  [C] changes of the first-street tables by this rank's strata, times the order's SCALE, as integers
    """

    def __init__(self, strata: int, first_cells: int) -> None:
        ends = np.cumsum([0, _HEAD, strata * control.COLUMNS, first_cells]).tolist()
        self.cells = np.zeros(ends[-1], np.int64)
        self.head, rows, self.changes = (self.cells[begin:end] for begin, end in pairwise(ends))
        self.rows = rows.reshape(strata, control.COLUMNS)


def version_cells(version: tuple[int, str] | None) -> npt.NDArray[np.int64]:
    """Return a version of table rows as five int64 cells of a message; zeros for None.

    version  (number, SHA-256 of its manifest in hexadecimal digits) of a folder of saved rows
    """
    number, content_hash = version or (0, "0" * 64)
    words = np.frombuffer(bytes.fromhex(content_hash), np.int64)
    return np.concatenate([[number], words]).astype(np.int64)


def version_of(cells: npt.NDArray[np.int64]) -> tuple[int, str] | None:
    """Return the version of table rows that five int64 cells of a message contain; None for zeros.

    A version is (number, SHA-256 of its manifest in hexadecimal digits) of a folder of saved rows.
    """
    return (int(cells[0]), cells[1:].tobytes().hex()) if cells[0] else None
