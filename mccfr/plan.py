"""What a run will need, computed before anything is created or allocated."""

import math
from pathlib import Path
from typing import Any

from mccfr.config import Config
from mccfr.games.build import configured_game
from mccfr.games.game import Game
from mccfr.games.histories import count_histories
from mccfr.tables import TableLayout, choose_wide, expected_adds, make_layout
from storage.live import live_bytes

NODES_PER_SECOND = 3e7
"""Nodes a second of one worker that times are estimated with; docs/performance.md has measurements."""

_PROCESS_BYTES = 200 << 20  # interpreter, libraries and compiled kernels of one process


def planned_layout(config: Config, game: Game) -> TableLayout:
    """The tables that a new run of `config` would have."""
    adds = None
    if config.run.nodes is not None:
        # A traversal visits far fewer nodes than the tree has; taken low, so that sums are rather too wide.
        adds = expected_adds(game, config.run.nodes, max(4.0, math.sqrt(game.tree.nodes)))
    return make_layout(
        game,
        lazy=config.solver.discount == "dcfr",
        regret_dtype=config.tables.regret_dtype,
        wide=choose_wide(game, config.tables.sum_dtype, adds),
    )


def make_plan(config: Config, base: Path) -> dict[str, Any]:
    """Sizes of tree and tables, memory, disk and time of a run; files are relative to `base`."""
    game = configured_game(config, base)
    layout = planned_layout(config, game)
    tables = live_bytes(layout.specs, format=config.tables.format)
    per_street = [
        sum(spec.nbytes for spec in layout.specs if f"/street{street}/" in spec.name)
        for street in range(game.tree.streets)
    ]
    workers = max(1, config.run.workers)
    seconds = None if config.run.nodes is None else config.run.nodes / (NODES_PER_SECOND * workers)
    return {
        "game": game.name,
        **game.counts(),
        "histories": count_histories(game),
        "buckets_per_street": [[int(game.buckets[2 * s + p]) for p in (0, 1)] for s in range(game.tree.streets)],
        "float64_sums_per_street": [[bool(layout.wide[2 * s + p]) for p in (0, 1)] for s in range(game.tree.streets)],
        "table_bytes": tables,
        "bytes_per_street": per_street,
        "memory_bytes": 2 * tables + (workers + 1) * _PROCESS_BYTES,  # the tables, and a copy while they are saved
        "checkpoint_bytes": layout.nbytes,  # before compression
        "disk_bytes": (config.run.keep_checkpoints + 1) * layout.nbytes,
        "seconds": seconds,
        "nodes_per_second_assumed": NODES_PER_SECOND * workers,
    }
