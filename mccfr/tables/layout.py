"""Regret and strategy tables: their schema, their layout, and the flat form that kernels take.

`regret` and `strategy_sum` are arrays [bucket, slot] for each street and player (a *block*: 2·street + player), bucket
first, so that all rows of one hand on one street lie together: measured 1.3 to 2 times faster than node first.  A
bucket's cells are padded to a cache line.  Lazy discounting adds stamps [bucket, row]: how many period ends a row has
seen.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.narrow import is_narrow, numbers, stored_dtype
from storage.schema import ArraySpec

_LINE_CELLS = 16  # float32 cells of a cache line

NO_SUMS = 3
"""In `TableArrays.wide`: a block without strategy sums.  (1 + it) & 3 is 0, which spares outcome sampling a branch."""

SLOT_FIRST = ("slot", "bucket")
ROW_FIRST = ("row", "bucket")
"""Axes of full-width tables: hands of a slot lie together."""


class TableArrays(NamedTuple):
    """Tables as kernels take them.  B blocks; `*_base` are element offsets of each block in the flat array.

    regret      [.] float32 or float64  all regret tables in one flat array; or int16 cells (`mccfr.tables.narrow`)
    narrow_sum  [.] float32             strategy sums of the blocks that keep them in float32, or in int16
    wide_sum    [.] float64             strategy sums of the other blocks
    stamp       [.] uint32              stamps of both kinds; untouched unless discounting is lazy
    regret_base, sum_base, regret_stamp_base, sum_stamp_base  [B] int64
    width       [B] int64               cells from one bucket to the next
    rows        [B] int64               stamps from one bucket to the next
    wide        [B] uint8               1: the block's sums are in wide_sum, 0: in narrow_sum, NO_SUMS: it keeps none
    scale       [.] uint8               scales of rows of 16-bit cells, if they have any
    regret_scale_base, sum_scale_base  [B] int64
    """

    regret: npt.NDArray[np.floating]
    narrow_sum: npt.NDArray[np.float32]
    wide_sum: npt.NDArray[np.float64]
    stamp: npt.NDArray[np.uint32]
    regret_base: npt.NDArray[np.int64]
    sum_base: npt.NDArray[np.int64]
    regret_stamp_base: npt.NDArray[np.int64]
    sum_stamp_base: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    wide: npt.NDArray[np.uint8]
    scale: npt.NDArray[np.uint8]
    regret_scale_base: npt.NDArray[np.int64]
    sum_scale_base: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableLayout:
    """What tables a run needs: the schema, and the sizes behind it.  B blocks."""

    specs: tuple[ArraySpec, ...]
    width: npt.NDArray[np.int64]  # [B]
    rows: npt.NDArray[np.int64]  # [B]
    wide: npt.NDArray[np.uint8]  # [B]

    @property
    def nbytes(self) -> int:
        """Bytes of all tables."""
        return sum(spec.nbytes for spec in self.specs)


def table_name(kind: str, block: int) -> str:
    """Name of one block's table: "regret/street0/player1"."""
    return f"{kind}/street{block // 2}/player{block % 2}"


def sum_forms(blocks: int, sum_dtype: str) -> npt.NDArray[np.uint8]:
    """[blocks] which blocks keep their strategy sums in float64: all of them, or with "auto" and "float32" none.

    Sums in float32 are as good as they need to be at any length, because they are rounded stochastically
    (`mccfr.rounding`), and take half the memory.
    """
    return np.full(blocks, sum_dtype == "float64", np.uint8)


def make_layout(
    game: Game,
    *,
    lazy: bool,
    regret_dtype: str = "float32",
    wide: npt.NDArray[np.uint8] | None = None,
    first_regrets: str | None = None,
    sum_dtype: str = "float32",
) -> TableLayout:
    """Schema of the tables of `game`; dtypes may be int16 as well (`mccfr.tables.narrow`).

    lazy           with stamps
    sum_dtype      of the sums that are not in float64
    wide           [B] where sums are in float64, or NO_SUMS; None: nowhere
    first_regrets  dtype of the first street's regrets, if it is another one
    """
    buckets, rows = game.buckets, game.tree.row_count
    width = -(-game.tree.row_slots // _LINE_CELLS) * _LINE_CELLS  # up to a whole cache line, of 16 bits half a one
    wide = sum_forms(len(rows), "auto") if wide is None else wide
    specs = []
    for block in map(int, np.flatnonzero(rows)):
        shape, stamps = (int(buckets[block]), int(width[block])), (int(buckets[block]), int(rows[block]))
        kinds = {"regret": first_regrets or regret_dtype if block < 2 else regret_dtype}
        if wide[block] != NO_SUMS:
            kinds["strategy_sum"] = "float64" if wide[block] else sum_dtype
        for kind, dtype in kinds.items():
            specs.append(ArraySpec(table_name(kind, block), shape, stored_dtype(dtype), ("bucket", "slot")))
            if is_narrow(dtype):
                specs.append(ArraySpec(table_name(f"{kind}_scale", block), stamps, "uint8", ("bucket", "row")))
        if lazy:
            names = [table_name(f"{kind}_stamp", block) for kind in kinds]
            specs += [ArraySpec(name, stamps, "uint32", ("bucket", "row")) for name in names]
    return TableLayout(tuple(specs), width.astype(np.int64), rows.astype(np.int64), wide)


class TableSet(Mapping[str, npt.NDArray[np.generic]]):
    """Tables by name, as their algorithm has them; it knows which axis of each lies first, so that readers need not.

    Attributes:
        axes:   names of the axes of each table that has a spec
        kernel: the sampling kernels' form of the same memory, where tables are trained on; None for other tables
    """

    def __init__(
        self,
        arrays: Mapping[str, npt.NDArray[np.generic]],
        specs: Iterable[ArraySpec] = (),
        kernel: TableArrays | None = None,
    ) -> None:
        """`specs` name the axes of the tables; those without one are [bucket, slot]."""
        self._arrays, self.kernel = arrays, kernel
        self.axes = {spec.name: spec.axes for spec in specs}

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def rows(self, kind: str, block: int) -> npt.NDArray[Any] | None:
        """[buckets, slots or rows] of a block, whichever axis lies first; None where it has no such table.

        A view: what is written into it is written into the table.  16-bit cells are those of the file
        (`mccfr.tables.narrow`); `numbers` has what they mean.
        """
        name = table_name(kind, block)
        table = self._arrays.get(name)
        return (
            table.T if table is not None and self.axes.get(name, ())[:1] in (SLOT_FIRST[:1], ROW_FIRST[:1]) else table
        )

    def numbers(self, kind: str, block: int, starts: npt.NDArray[np.int64]) -> npt.NDArray[Any] | None:
        """`rows` of regrets or sums, to be read: 16-bit cells as float32, a copy.

        starts  [rows+1] first slot of each row, and the end of the last
        """
        cells = self.rows(kind, block)
        return cells if cells is None else numbers(cells, self.rows(f"{kind}_scale", block), starts)


def kernel_arrays(
    layout: TableLayout, flat: Mapping[str, npt.NDArray[np.generic]], offsets: Mapping[str, int]
) -> TableArrays | None:
    """The kernels' form: `flat` holds one flat array for each dtype, `offsets` each table's first element in it.

    None for an algorithm that keeps no regrets by bucket, and for those that are in several dtypes: totals of strata.
    """
    blocks = len(layout.width)
    dtypes = {spec.dtype for spec in layout.specs if spec.name.startswith("regret/")}
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes
    kept = {spec.dtype for spec in layout.specs if spec.name.startswith("strategy_sum/")} - {"float64"}
    sum_dtype = kept.pop() if kept else "float32"

    def cells(dtype: str) -> npt.NDArray[Any]:
        return flat.get(dtype, np.zeros(1, dtype))

    def base(kind: str) -> npt.NDArray[np.int64]:
        return np.array([offsets.get(table_name(kind, block), 0) for block in range(blocks)], np.int64)

    return TableArrays(
        cells(dtype),
        cells(sum_dtype),
        cells("float64"),
        cells("uint32"),
        base("regret"),
        base("strategy_sum"),
        base("regret_stamp"),
        base("strategy_sum_stamp"),
        layout.width,
        layout.rows,
        layout.wide,
        cells("uint8"),
        base("regret_scale"),
        base("strategy_sum_scale"),
    )


def private_tables(layout: TableLayout, allocate: Callable[[int, str], npt.NDArray[np.generic]] = np.zeros) -> TableSet:
    """Zeroed tables in this process's own memory, in the kernels' form too.

    allocate  makes the zeroed cells, of their number and dtype
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
