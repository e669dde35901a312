"""Memory layout of blocks of strata: *frames*, each with room for the tables of one block.

A stratum is a group of second-street boards (flops) with buckets of its own from that street on. A block is the rows of
one or more strata in all tables. Buckets after the first street are numbered across all strata, and kernels find a row
by its number. A frame has the rows of one block only, so a kernel gets the address at which row 0 of the whole table
would lie.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.config.memory_sizes import bytes_of
from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.solvers.out_of_core import block_bounds, least_cycle_iterations, turns_of
from mccfr.solvers.strata_training import FIRST_STREET
from mccfr.tables.table_layout import TableArrays, TableLayout, TableSet, players_of, table_name
from storage.block_tables import Partition
from storage.schema import ArraySpec

_CELL_BYTES = 8  # of a message
_FEWEST = 2  # one block to train, one to move
_FIELDS = {
    "regret_base": ("regret", "regret"),
    "sum_base": ("strategy_sum", "strategy_sum"),
}


def first_specs(layout: TableLayout) -> list[ArraySpec]:
    """Return specs (name, shape, dtype) of the first street's tables, which all strata share.

    A stratum is a group of flops with rows of its own after the first street.
    """
    return [spec for spec in layout.specs if FIRST_STREET in spec.name]


def first_street_bytes(layout: TableLayout) -> int:
    """Return the bytes of the first street's regrets and strategy sums in a message.

    On several machines, training processes exchange such messages with the coordinator. Each cell takes 8 bytes.
    """
    kinds = ("regret/", "strategy_sum/")
    shared = [spec for spec in first_specs(layout) if spec.name.startswith(kinds)]
    return sum(int(np.prod(spec.shape)) * _CELL_BYTES for spec in shared)


def partition(config: Config, game: Game, layout: TableLayout) -> Partition:
    """Return the `Partition` of the table rows after the first street into the configured blocks.

    A block is the rows of some strata (groups of flops); a cycle trains every block once. Raises `ValueError` if a
    cycle has too few iterations to give every stratum one.
    """
    assert game.strata is not None
    (blocks, iterations), least = turns_of(config), least_cycle_iterations(game.strata.shares.tolist())
    if iterations < least:
        raise ValueError(
            f"run.cycle_iterations = {iterations} is not allowed: it must be at least {least:,}, so that every one of "
            f"{game.strata.count} strata has some"
        )
    return divided(game, layout, blocks)


def divided(game: Game, layout: TableLayout, blocks: int) -> Partition:
    """Return the `Partition` of the tables' rows after the first street into `blocks` blocks.

    A block is the rows of consecutive strata (groups of flops); all have about equally many strata.
    """
    assert game.strata is not None
    strata = np.array(block_bounds(game.strata.count, blocks))
    later = tuple(spec for spec in layout.specs if FIRST_STREET not in spec.name)
    first = {}
    for spec in later:
        _, street, player = spec.name.split("/")
        place = int(street.removeprefix("street")), int(player.removeprefix("player"))
        first[spec.name] = game.strata.first[strata, *place].tolist()
    return Partition(later, first)


def frame_blocks(config: Config, layout: TableLayout, parts: Partition) -> list[range]:
    """Return, for each frame of memory, the range of blocks that it may hold.

    A frame is memory for one block of table rows. If all tables fit in `tables.memory_budget`, each block has a frame
    of its own; else there are two frames, each for any block.

    Raises `ValueError`, with the bytes given and needed, if `tables.memory_budget` is too small.

    parts  division of the tables into blocks
    """
    assert config.tables.memory_budget is not None
    resident, shared = bytes_of(config.tables.memory_budget), sum(spec.nbytes for spec in first_specs(layout))
    least = shared + _FEWEST * sum(spec.nbytes for spec in _frame(parts, range(parts.blocks)))
    if layout.nbytes <= resident:
        return [range(block, block + 1) for block in range(parts.blocks)]
    if resident < least:
        raise ValueError(
            f"tables.memory_budget = {config.tables.memory_budget!r} are {resident:,} bytes, and two of the largest of "
            f"{parts.blocks} blocks and the first street take {least:,}: raise it, or run.blocks"
        )
    return [range(parts.blocks)] * _FEWEST


def _frame(parts: Partition, blocks: range) -> list[ArraySpec]:
    """Return specs (name, shape, dtype) of a frame's tables, in which each of `blocks` has room.

    A frame is memory for one block of table rows. Each table has as many rows as the block with most rows of it, and at
    least one.

    parts   division of the tables into blocks
    blocks  numbers of the blocks
    """
    rows = {name: int(np.diff(first)[blocks].max()) for name, first in parts.first.items()}
    return [msgspec.structs.replace(spec, shape=(max(1, rows[spec.name]), *spec.shape[1:])) for spec in parts.arrays]


def frame_name(frame: int, name: str) -> str:
    """Return the name, such as "frame0/TABLE", of a frame's table among the run's tables in memory.

    A frame is memory for one block of table rows.
    """
    return f"frame{frame}/{name}"


def live_specs(config: Config, game: Game, layout: TableLayout) -> list[ArraySpec]:
    """Return the specs (name, shape, dtype) of a run's tables in memory.

    Without `tables.memory_budget` these are all tables. With it, they are the tables of the first street and those of
    each frame. A frame is memory for one block of table rows.

    Raises `ValueError` if `tables.memory_budget` or `run.cycle_iterations` is too small.
    """
    if config.tables.memory_budget is None:
        return list(layout.specs)
    parts = partition(config, game, layout)
    return first_specs(layout) + [
        msgspec.structs.replace(spec, name=frame_name(frame, spec.name))
        for frame, blocks in enumerate(frame_blocks(config, layout, parts))
        for spec in _frame(parts, blocks)
    ]


def cells_of(
    tables: Mapping[str, npt.NDArray[Any]], parts: Partition, frame: int, block: int
) -> dict[str, npt.NDArray[Any]]:
    """Return {table name: view of a block's rows} from the frame of memory that holds the block.

    Tables of which the block has no rows are left out.

    tables        the run's tables in memory, those of frames under the names that `frame_name` returns
    parts         division of the tables into blocks
    frame, block  their numbers
    """
    return {spec.name: tables[frame_name(frame, spec.name)][: spec.shape[0]] for spec in parts.parts(block)}


def placed(tables: TableSet, parts: Partition, frame: int, block: int) -> TableArrays:
    """Return the tables in the form for compiled kernels, so that these find a block's rows in its frame.

    A frame is memory for one block of table rows. Kernels reach a row from a start index and the row's number in the
    whole table. The result has start indices such that the numbers of the block's rows lead into the frame. The start
    indices of the first street's tables stay the same.

    tables        the run's tables in memory
    parts         division of the tables into blocks
    frame, block  their numbers
    """
    kernel = tables.kernel
    assert kernel is not None
    bases = {field: getattr(kernel, field).copy() for field in _FIELDS}

    players = players_of(tables)

    def place(field: str, kind: str, number: int, flat: npt.NDArray[Any]) -> None:
        name = table_name(kind, number, players)
        if name in parts.first:
            table = tables[frame_name(frame, name)]
            ahead = (table.ctypes.data - flat.ctypes.data) // flat.itemsize
            bases[field][number] = ahead - parts.first[name][block] * table.shape[1]

    for number in range(players, len(kernel.width)):
        for field, (kind, flat) in _FIELDS.items():
            place(field, kind, number, getattr(kernel, flat))
    return kernel._replace(**bases)
