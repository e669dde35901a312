"""What the coordinator and the ranks that train tell each other: orders and answers, each one run of 64-bit cells.

An order holds all that what a rank does follows from, but for the rows of its strata: their states and quotas, and
the first street as it is at the barrier.  So a rank remembers nothing of the intervals before.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mccfr.runs.session import control

RUN, WRITE, READ, COPY, RESTORE, QUIT = range(1, 7)
"""Train an interval; write the rows of all strata as versions; read the rows of those that are moved; copy a checkpoint
to each machine's own directory; put back from there what is damaged; end."""
COMMAND, EPOCH, NODES, SCALE, CHECKPOINT = range(5)
ANSWERED, OVERFLOW, BUSY_NANOSECONDS, TRAINED_NODES = range(4)
_HEAD = 5
VERSION_CELLS = 5
"""Of a version of a stratum's rows: its number (0: there is none) and the 256 bits of its hash."""


class Order:
    """An order to all ranks.  N strata, C cells of the first street.

    cells     the whole message, int64
    head      [5] COMMAND; EPOCH, a number of its own for each order; NODES and SCALE of the interval, a float64 in
              bits; CHECKPOINT that is copied, or whose own tables hold what has no version, 0: rows of zeros; of
              RESTORE the machine whose turn it is
    owner     [N] the rank that has each stratum; moved [N] 1 where it must read the stratum's rows
    keeper    [N] the machine that has the second copy of each stratum's rows
    versions  [N, 5] where those are: cells that `version_of` reads
    rows      [N, columns] states and quotas, as `mccfr.runs.session.control` has them
    first     [C] float64: totals of the first street, table by table
    """

    def __init__(self, strata: int, first_cells: int) -> None:
        lengths = [0, _HEAD, strata, strata, strata, strata * VERSION_CELLS, strata * control.COLUMNS, first_cells]
        ends = np.cumsum(lengths).tolist()
        self.cells = np.zeros(ends[-1], np.int64)
        parts = (self.cells[begin:end] for begin, end in pairwise(ends))
        self.head, self.owner, self.moved, self.keeper, versions, rows, first = parts
        self.versions = versions.reshape(strata, VERSION_CELLS)
        self.rows = rows.reshape(strata, control.COLUMNS)
        self.first = first.view(np.float64)

    def totals(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, npt.NDArray[np.float64]]:
        """Views of `first` as tables: names and shapes in their order."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())]).tolist()
        return {
            name: self.first[begin:end].reshape(shape)
            for (name, shape), (begin, end) in zip(shapes.items(), pairwise(ends), strict=True)
        }


class RankAnswer:
    """What a rank answers when it has trained an interval.

    cells    the whole message, int64
    head     [4] ANSWERED, the order's epoch; OVERFLOW, 1 where a change did not fit; nanoseconds of training, and nodes
    rows     [N, columns] as the order's; 0 for strata of other ranks
    changes  [C] what its strata have changed on the first street, in whole numbers
    """

    def __init__(self, strata: int, first_cells: int) -> None:
        ends = np.cumsum([0, _HEAD, strata * control.COLUMNS, first_cells]).tolist()
        self.cells = np.zeros(ends[-1], np.int64)
        self.head, rows, self.changes = (self.cells[begin:end] for begin, end in pairwise(ends))
        self.rows = rows.reshape(strata, control.COLUMNS)


def version_cells(version: tuple[int, str] | None) -> npt.NDArray[np.int64]:
    """[5] a version, its number and the hash of its manifest, as cells; zeros for none."""
    number, content_hash = version or (0, "0" * 64)
    words = np.frombuffer(bytes.fromhex(content_hash), np.int64)
    return np.concatenate([[number], words]).astype(np.int64)


def version_of(cells: npt.NDArray[np.int64]) -> tuple[int, str] | None:
    """The version in such cells; None where there is none."""
    return (int(cells[0]), cells[1:].tobytes().hex()) if cells[0] else None
