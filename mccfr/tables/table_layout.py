"""Schema and memory layout of regret and strategy tables, and their flat form for kernels.

`regret` and `strategy_sum` are arrays [bucket, slot] for each block P·street + player of P players. The bucket axis
comes first, so that all rows of one hand on a street are adjacent: 1.3 to 2 times faster than node first. A bucket's
cells are padded to a cache line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.int16_cells import numbers
from storage.schema import ArraySpec

_LINE_CELLS = 16  # float32 cells of a cache line

NO_SUMS = -(2**62)
"""Value in `TableArrays.sum_base` for a block without strategy sums."""

SLOT_FIRST = ("slot", "bucket")
ROW_FIRST = ("row", "bucket")
"""Axes of full-width tables: all buckets of a slot are adjacent."""

_KINDS = ("regret", "strategy_sum")
_BLOCK_NAME = re.compile(r"/street\d+/player(\d+)$")


class TableArrays(NamedTuple):
    """Tables in the form that kernels take, for B blocks (street and player).

    regret        [.] float32 or float64  all regret tables in one flat array
    strategy_sum  [.]                     all strategy sums in one flat array
    regret_base, sum_base  [B] int64      first cell of each block in its flat array; NO_SUMS: no strategy sums
    width         [B] int64               cells from one bucket to the next
    """

    regret: npt.NDArray[np.floating]
    strategy_sum: npt.NDArray[np.floating]
    regret_base: npt.NDArray[np.int64]
    sum_base: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableLayout:
    """Layout of a run's tables, for B blocks (street and player).

    specs  ArraySpec of each table: name, shape, dtype and axes
    width  [B] cells from one bucket to the next in a block's tables; 0 where no sampling kernel takes the tables
    """

    specs: tuple[ArraySpec, ...]
    width: npt.NDArray[np.int64]  # [B]

    @property
    def nbytes(self) -> int:
        """Size of all tables in bytes."""
        return sum(spec.nbytes for spec in self.specs)


def table_name(kind: str, block: int, players: int = 2) -> str:
    """Return the name of a block's table, such as "regret/street0/player1".

    kind   first part of the name, such as "regret"
    block  number of the block: street · players + player
    """
    return f"{kind}/street{block // players}/player{block % players}"


def players_of(names: Iterable[str]) -> int:
    """Return the number of players by the largest player number in table names; at least 2.

    Names are such as "regret/street0/player2", which shows three players.
    """
    found = (_BLOCK_NAME.search(name) for name in names)
    return max([2, *(1 + int(match[1]) for match in found if match)])


def make_layout(
    game: Game,
    *,
    regret_dtype: str = "float32",
    sum_dtype: str = "float32",
    summed_streets: int | None = None,
    first_dtype: str | None = None,
) -> TableLayout:
    """Return the layout of the regret and strategy-sum tables of `game`.

    regret_dtype, sum_dtype  dtypes of the cells
    summed_streets           number of streets, from the first on, that have strategy sums; None: all
    first_dtype              dtype of the tables of the first street, if different
    """
    width = -(-game.tree.row_slots // _LINE_CELLS) * _LINE_CELLS  # rounded up to a whole cache line
    specs, players = [], game.tree.players
    for block in map(int, np.flatnonzero(game.tree.row_count)):
        shape, kinds = (int(game.buckets[block]), int(width[block])), {"regret": regret_dtype}
        if summed_streets is None or block // players < summed_streets:
            kinds["strategy_sum"] = sum_dtype
        for kind, chosen in kinds.items():
            dtype = first_dtype if first_dtype is not None and block < players else chosen
            name = table_name(kind, block, players)
            specs.append(ArraySpec(name, shape, dtype, ("bucket", "slot")))
    return TableLayout(tuple(specs), width.astype(np.int64))


class TableSet(Mapping[str, npt.NDArray[np.generic]]):
    """Tables of regrets, strategy sums and others by name, with the names of their axes.

    `rows` and `numbers` return a table by buckets first, in whatever order its axes are stored.

    Attributes:
        axes:   axis names of each table that has a spec
        kernel: flat form of the same memory for the sampling kernels, or None if they do not train these tables
    """

    def __init__(
        self,
        arrays: Mapping[str, npt.NDArray[np.generic]],
        specs: Iterable[ArraySpec] = (),
        kernel: TableArrays | None = None,
    ) -> None:
        """Store tables `arrays` {name: array}; a table whose spec is not in `specs` has axes [bucket, slot].

        specs   schemas of some or all tables, which name their axes
        kernel  flat form of the same memory, or None
        """
        self._arrays, self.kernel, self._players = arrays, kernel, players_of(arrays)
        self.axes = {spec.name: spec.axes for spec in specs}

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def rows(self, kind: str, block: int) -> npt.NDArray[Any] | None:
        """Return a view [buckets, slots or rows] of a block's table, or None if there is none.

        kind  first part of the table's name, such as "regret"

        16-bit cells are as stored (`mccfr.tables.int16_cells`); `numbers` converts them.
        """
        name = table_name(kind, block, self._players)
        table = self._arrays.get(name)
        return (
            table.T if table is not None and self.axes.get(name, ())[:1] in (SLOT_FIRST[:1], ROW_FIRST[:1]) else table
        )

    def numbers(self, kind: str, block: int, starts: npt.NDArray[np.int64]) -> npt.NDArray[Any] | None:
        """Return a block's table [buckets, slots or more] for reading, or None if there is none.

        16-bit cells are converted to a float32 copy.

        kind    first part of the table's name, such as "regret"
        starts  [rows+1] first slot of each row, and the end of the last
        """
        cells = self.rows(kind, block)
        return cells if cells is None else numbers(cells, self.rows(f"{kind}_scale", block), starts)


def kernel_arrays(
    layout: TableLayout, flat: Mapping[str, npt.NDArray[np.generic]], offsets: Mapping[str, int]
) -> TableArrays | None:
    """Return tables in the form TableArrays, which kernels take.

    layout   layout of the tables, which lie one after the other in flat arrays
    flat     {dtype: flat array}
    offsets  {table name: index of its first cell in the flat array of its dtype}

    Returns None if there are no regret tables.  Returns None also if the tables of one kind (regrets or strategy sums)
    have several dtypes.  That may be so if groups of boards (strata) are trained apart
    (`mccfr.solvers.strata_training`).
    """
    dtypes = {kind: {spec.dtype for spec in layout.specs if spec.name.startswith(f"{kind}/")} for kind in _KINDS}
    if len(dtypes["regret"]) != 1 or len(dtypes["strategy_sum"]) > 1:
        return None
    (dtype,) = dtypes["regret"]
    (sum_dtype,) = dtypes["strategy_sum"] or {"float32"}

    def cells(dtype: str) -> npt.NDArray[Any]:
        return flat.get(dtype, np.zeros(1, dtype))

    players = players_of(offsets)

    def base(kind: str, missing: int = 0) -> npt.NDArray[np.int64]:
        starts = [offsets.get(table_name(kind, block, players), missing) for block in range(len(layout.width))]
        return np.array(starts, np.int64)

    return TableArrays(
        cells(dtype),
        cells(sum_dtype),
        base("regret"),
        base("strategy_sum", NO_SUMS),
        layout.width,
    )


def private_tables(layout: TableLayout, allocate: Callable[[int, str], npt.NDArray[np.generic]] = np.zeros) -> TableSet:
    """Allocate a TableSet of zeros in the memory of this process, with its flat form for kernels.

    layout    names, shapes and dtypes of the tables
    allocate  function of (number of cells, dtype) that returns zeroed cells
    """
    flat: dict[str, npt.NDArray[np.generic]] = {}
    offsets: dict[str, int] = {}
    for dtype in sorted({spec.dtype for spec in layout.specs}):
        cells = 0
        for spec in (s for s in layout.specs if s.dtype == dtype):
            offsets[spec.name] = cells
            cells += prod(spec.shape)
        flat[dtype] = allocate(cells, dtype)
    views = {
        spec.name: flat[spec.dtype][offsets[spec.name] : offsets[spec.name] + prod(spec.shape)].reshape(spec.shape)
        for spec in layout.specs
    }
    return TableSet(views, layout.specs, kernel_arrays(layout, flat, offsets))
