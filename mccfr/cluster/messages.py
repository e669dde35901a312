"""What the coordinator and the ranks that train tell each other: orders and answers, each one run of 64-bit cells.

An order holds all that what a rank does follows from, but for the rows of its strata: their states and quotas, and
the first street as it is at the barrier.  So a rank remembers nothing of the intervals before.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mccfr.runs import control

RUN, COLLECT, PLACE, QUIT = 1, 2, 3, 4
"""Train an interval; send the rows of all strata; take over the rows of those that are moved; end."""
COMMAND, EPOCH, NODES, SCALE = range(4)
ANSWERED, OVERFLOW, BUSY_NANOSECONDS, TRAINED_NODES = range(4)
_HEAD = 4


class Order:
    """An order to all ranks.  N strata, C cells of the first street.

    cells   the whole message, int64
    head    [4] COMMAND; EPOCH, a number of its own for each order; NODES and SCALE of the interval, a float64 in bits
    owner   [N] the rank that has each stratum; moved [N] 1 where it must take over the stratum's rows
    rows    [N, columns] states and quotas, as `mccfr.runs.control` has them
    first   [C] float64: totals of the first street, table by table
    """

    def __init__(self, strata: int, first_cells: int) -> None:
        ends = np.cumsum([0, _HEAD, strata, strata, strata * control.COLUMNS, first_cells]).tolist()
        self.cells = np.zeros(ends[-1], np.int64)
        self.head, self.owner, self.moved, rows, first = (self.cells[begin:end] for begin, end in pairwise(ends))
        self.rows = rows.reshape(strata, control.COLUMNS)
        self.first = first.view(np.float64)

    def totals(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, npt.NDArray[np.float64]]:
        """Views of `first` as tables: names and shapes in their order."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes.values())]).tolist()
        return {
            name: self.first[begin:end].reshape(shape)
            for (name, shape), (begin, end) in zip(shapes.items(), pairwise(ends), strict=True)
        }


class Answer:
    """What a rank answers when it has trained an interval, or all ranks together.

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
