"""Describes the axes of a checkpoint's tables for programs that read them directly."""

from typing import Any

from mccfr.games.game import Game


def table_attributes(game: Game) -> dict[str, Any]:
    """Return attributes that explain a run's tables, to store in their Zarr group or HDF5 file.

    "description", "cells", "bucket", "slot" and "row" are texts.  A row is one decision, a slot is one action of a
    decision.  "slots" and "rows" are {"streetS/playerP": used length of this axis}; cells beyond are padding.
    """
    blocks = [block for block, count in enumerate(game.tree.row_count.tolist()) if count]
    return {
        "description": (
            f"Tables of a run of {game.name}, one of each kind for every street and player: regret (summed and "
            "discounted), strategy_sum (a row of it, divided by its total, is the average strategy)"
        ),
        "cells": (
            "int16 cells of regret and strategy_sum are in units of 2^(scale - 128) of their row, with the scale in "
            "regret_scale or strategy_sum_scale"
        ),
        "bucket": "hands that are played alike on that street; where hands are not merged, one for each hand and board",
        "slot": (
            "one action of one decision, the actions of a decision side by side; mccfr export DIR OUT --format zarr "
            "writes the betting tree beside the tables: tree/block is players*street + player, and a decision's cells "
            "are tree/slot .. tree/slot + tree/count - 1"
        ),
        "row": "one decision: tree/row",
        "slots": {_name(block, game): int(game.tree.row_slots[block]) for block in blocks},
        "rows": {_name(block, game): int(game.tree.row_count[block]) for block in blocks},
    }


def _name(block: int, game: Game) -> str:
    street, player = divmod(block, game.tree.players)
    return f"street{street}/player{player}"
