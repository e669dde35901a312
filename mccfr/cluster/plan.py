"""What a run takes on several machines, before one of them is asked for."""

from pathlib import Path
from typing import Any

import numpy as np

from mccfr.cluster.session import check_cluster
from mccfr.cluster.sharing import shared_out
from mccfr.config.tables import Config
from mccfr.runs.plan import COMMIT_BYTES_PER_SECOND, beside_bytes, planned_layout
from mccfr.solvers.configured import configured_game
from mccfr.solvers.strata import FIRST_STREET, stratum_buckets

_CELL_BYTES = 8


def plan_cluster(
    config: Config, base: Path, machines: int, memory_bytes: float | None, network_bits: float
) -> dict[str, Any]:
    """Bytes and seconds of a run on so many machines; files are relative to `base`.

    memory_bytes  of each machine;  network_bits  that the network carries in a second

    Raises `ValueError` where the run cannot be trained so: more machines than strata, or more on one than its memory.
    """
    check_cluster(config, machines)
    game = configured_game(config, base)
    assert game.strata is not None
    layout, workers = planned_layout(config, game), max(1, config.run.workers)
    strata = np.zeros(game.strata.count, np.int64)
    first = 0
    for spec in layout.specs:
        if FIRST_STREET in spec.name:
            first += int(np.prod(spec.shape)) * _CELL_BYTES * ("stamp" not in spec.name)
        else:
            strata += np.diff(stratum_buckets(game, spec.name)) * (spec.nbytes // spec.shape[0])
    owner = shared_out(game.strata.shares, [1.0] * (machines * workers)) // workers
    rows = np.bincount(owner, strata, minlength=machines)
    fixed = beside_bytes(config, game) + workers * 3 * first  # the copy, the order and the answer
    most = int(rows.max()) + fixed
    if memory_bytes is not None and most > memory_bytes:
        raise ValueError(
            f"the largest of {machines} machines needs {most:,} bytes ({int(strata.max()):,} of them for the largest "
            f"stratum) and has {memory_bytes:,.0f}: take more machines or more strata, or a smaller abstraction"
        )
    ranks, kind = machines * workers, (config.tables.format, config.tables.checkpoint_compression)
    return {
        "machines": machines,
        "workers_per_machine": workers,
        "strata": game.strata.count,
        "table_bytes": layout.nbytes,
        "largest_stratum_bytes": int(strata.max()),
        "machine_bytes": most,
        "coordinator_bytes": layout.nbytes + fixed,
        "barrier_bytes": 2 * first * ranks,
        "barrier_seconds": 2 * first * ranks * 8 / network_bits,
        "collect_seconds": int(strata.sum()) * 8 / network_bits,
        "checkpoint_seconds": layout.nbytes / COMMIT_BYTES_PER_SECOND[kind],
        "idle_workers": max(0, ranks - game.strata.count),
        "unevenness": float(np.bincount(owner, game.strata.shares).max() * machines / game.strata.shares.sum()),
    }
