"""Detects numbers that tables cannot hold: payoffs too large for their dtype, and overflowed rows."""

import numpy as np

from mccfr.games.game import Game
from mccfr.tables.int16_cells import number_dtype
from mccfr.tables.table_layout import TableLayout
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import TERMINAL
from storage.table_formats import NotFiniteError

_ADDITIONS = 1e9
"""Number of additions to a cell, with weights, that a table should be able to hold."""


def overflow_warning(game: Game, layout: TableLayout) -> str | None:
    """Return a sentence if payoffs are so large that regrets may overflow; None otherwise."""
    arrays = game.tree.arrays
    ends = arrays.kind == TERMINAL
    largest = float((np.abs(arrays.fixed[ends]) + np.abs(arrays.showdown[ends])).max(initial=0.0))
    dtype = next((spec.dtype for spec in layout.specs if spec.name.startswith("regret/")), None)
    if dtype is None:
        return None
    limit = float(np.finfo(number_dtype(np.dtype(dtype))).max)  # 16-bit cells have the same range, or a scale
    if 2 * largest <= limit / _ADDITIONS:
        return None
    return (
        f"payoffs of up to {largest:.3g} chips: regrets in {dtype}, at most {limit:.2g}, may overflow after "
        f"{limit / (2 * largest):,.0f} additions; scale the payoffs down{_advice(dtype)}"
    )


def _advice(dtype: str) -> str:
    return ", or keep regrets in float64 (tables.regret_dtype; solver.dtype under cfr)" if dtype == "float32" else ""


def not_finite_text(
    game: Game, layout: TableLayout, error: NotFiniteError, checkpoint: int | None, user_code: str | None = None
) -> str:
    """Return a sentence on a NaN or infinite cell: table, row, remaining checkpoint, and possible cause.

    user_code  name of the user's code that may have caused it
    """
    kept = f"checkpoint {checkpoint} stays" if checkpoint is not None else "there is no checkpoint"
    dtype = next(spec.dtype for spec in layout.specs if spec.name == error.name)
    cause = f"{user_code} may have made it, or " if user_code is not None else ""
    return (
        f"{error}{_row_text(game, error)}: nothing of it is committed, and {kept}; {cause}payoffs times weights have "
        f"grown beyond {dtype}: start a new run with smaller payoffs{_advice(dtype)}"
    )


def _row_text(game: Game, error: NotFiniteError) -> str:
    """Return the line or infoset and the action of a cell as text; "" if it belongs to no row."""
    place, parts = dict(zip(error.axes, error.index, strict=True)), error.name.split("/")
    if len(parts) != 3 or not parts[1].startswith("street"):  # not a table of a block
        return ""
    _, street, player = parts
    block = 2 * int(street.removeprefix("street")) + int(player.removeprefix("player"))
    arrays, decisions = game.tree.arrays, game.tree.decisions
    decisions = decisions[arrays.block[decisions] == block]
    if "row" in place:
        found = decisions[arrays.row[decisions] == place["row"]]
    else:
        first, slot = arrays.slot[decisions], place.get("slot", -1)
        found = decisions[(first <= slot) & (slot < first + arrays.count[decisions])]
    if not len(found):
        return ""
    node = int(found[0])
    names = game.tree.infoset_names
    if names is None:
        text = f"line {line_text(game.tree, node)!r}"
    else:
        text = f"infoset {names[int(arrays.player[node])][int(arrays.row[node])]!r}"
    if "slot" in place:
        text += f", action {game.tree.label[int(arrays.first[node]) + place['slot'] - int(arrays.slot[node])]!r}"
    return f" ({text})"
