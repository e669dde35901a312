"""A worker: trains in batches until it is told to pause or end.

The coordinator starts a worker process as `python -m mccfr.runs.session.worker ASSIGNMENT INDEX`, with signals blocked,
because they are for the coordinator. The assignment is a JSON file beside the live tables, which the process maps. A
worker ends by itself when its coordinator has ended.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.compiling import told_of_compiling
from mccfr.config.plugins import grant
from mccfr.runs.directory.run import Run, open_run
from mccfr.runs.session import control
from mccfr.runs.session.shared_deck import SharedGame, map_buckets
from mccfr.solvers.solver import Share, Solver, WorkerState
from mccfr.tables.table_layout import TableLayout, TableSet, kernel_arrays
from storage.mapping import Region, map_cells, map_regions, regions_from_json

_SHORTEST_NAP_SECONDS, _LONGEST_NAP_SECONDS = 0.0005, 0.005
_NAP_SHARE = 0.05  # of the time that it has rested


def map_tables(layout: TableLayout, regions: tuple[Region, ...]) -> TableSet:
    """Map a run's live tables, those in training, into this process for writing.

    The result has the tables as arrays by name, and in the form that compiled kernels take (`kernel`). `kernel` is None
    without regret tables, and if regrets, or strategy sums, have several dtypes.

    regions  where each table lies in shared memory
    """
    mappings = {
        dtype: map_regions([r for r in regions if r.dtype == dtype], writable=True, populate=True)
        for dtype in sorted({region.dtype for region in regions})
    }
    offsets = {name: offset for mapping in mappings.values() for name, offset in mapping.offsets.items()}
    views = {name: mapping.view(name) for mapping in mappings.values() for name in mapping.offsets}
    kernel = kernel_arrays(layout, {dtype: mapping.flat for dtype, mapping in mappings.items()}, offsets)
    return TableSet(views, layout.specs, kernel)


def publish(row: npt.NDArray[np.int64], state: WorkerState, busy_seconds: float = 0.0) -> None:
    """Write a worker's counters and random state into its row of the shared cells.

    The coordinator reads them there.

    row           [columns] int64, changed in place; an unset random state is written as zeros
    state         the counters and random state; its `due` is not written
    busy_seconds  time that the worker has spent on training in this session
    """
    row[control.BUSY_NANOSECONDS] = int(busy_seconds * 1e9)
    row[control.RNG : control.RNG + 4] = np.array(state.rng or [0] * 4, np.uint64).view(np.int64)
    row[control.ENDS] = state.ends
    row[control.ITERATIONS] = state.iterations
    row[control.NODES] = state.nodes


def read_state(row: npt.NDArray[np.int64]) -> WorkerState:
    """Return a worker's counters and random state from its row of the shared cells.

    The row does not have `due`, which is 0 in the result.

    row  [columns] int64, which the coordinator reads too
    """
    stream = row[control.RNG : control.RNG + 4].copy().view(np.uint64)
    counts = int(row[control.ITERATIONS]), int(row[control.NODES])
    return WorkerState(*counts, [int(word) for word in stream], ends=int(row[control.ENDS]))


def work(solver: Solver, cells: npt.NDArray[np.int64], worker: int, led: Callable[[], bool]) -> None:
    """Carry out the coordinator's orders (train, pause) until it orders QUIT or has ended.

    solver  trains the tables in batches
    cells   [rows, columns] int64 cells of orders and counters, shared with the coordinator; row 0 is the coordinator's,
            row 1 + `worker` this worker's
    worker  index of this worker, from 0
    led     returns whether the coordinator is still running
    """
    orders, own_row, all_rows = cells[0], cells[1 + worker], cells[1:]
    rested_since = time.monotonic_ns()
    while led():
        own_row[control.PROGRESS] = began = time.monotonic_ns()
        epoch, command = int(orders[control.EPOCH]), int(orders[control.COMMAND])
        if command == control.QUIT:
            return
        total_nodes = int(orders[control.BASE_NODES] + all_rows[:, control.NODES].sum())
        total_iterations = int(orders[control.BASE_ITERATIONS] + all_rows[:, control.ITERATIONS].sum())
        nodes_left = int(orders[control.STOP_NODES]) - total_nodes
        iterations_left = int(orders[control.STOP_ITERATIONS]) - total_iterations
        if command != control.RUN or nodes_left <= 0 or iterations_left <= 0:
            if orders[control.EPOCH] == epoch:  # otherwise the order changed during reading
                own_row[control.RESTING_SINCE] = epoch
            # Short sleeps for short pauses; longer ones leave the processors to checkpoints and evaluations.
            rested = (began - rested_since) * 1e-9
            time.sleep(min(_LONGEST_NAP_SECONDS, max(_SHORTEST_NAP_SECONDS, _NAP_SHARE * rested)))
            continue
        # A worker's share of the remaining work, so that all end close to the limit.
        share = len(all_rows)
        solver.run(total_nodes, -(-nodes_left // share), -(-iterations_left // share))
        publish(own_row, solver.state, solver.busy_seconds)
        rested_since = time.monotonic_ns()
        own_row[control.LONGEST_BATCH] = max(int(own_row[control.LONGEST_BATCH]), rested_since - began)


def opened(assignment: Path) -> tuple[Run, SharedGame, dict[str, Any]]:
    """Return (run, its game with bucket tables in shared memory, fields of the assignment).

    assignment  path of the JSON file that the coordinator has written for its workers
    """
    document: dict[str, Any] = json.loads(assignment.read_text())
    abstraction = document["abstraction"]
    grant(document["code"])
    run = open_run(Path(document["run"]), None if abstraction is None else Path(abstraction))
    return run, map_buckets(run.build_game(), assignment.parent, run.algorithm), document


def main(assignment: str, worker: int) -> None:
    """Run a worker process: read the assignment, build the game, map the tables, and train.

    assignment  path of the JSON file that the coordinator has written for its workers
    worker      index of this worker, from 0
    """
    run, (game, _buckets), document = opened(Path(assignment))
    tables = map_tables(run.layout(game), regions_from_json(document["regions"]))
    block = map_cells(Path(document["cells"]), document["shape"])
    share = Share(worker, document["workers"], read_state(block.cells[1 + worker]))
    own_row = block.cells[1 + worker]
    with told_of_compiling(lambda seconds: own_row.__setitem__(control.COMPILING, seconds or 0)):
        solver = run.algorithm.solver(game, tables, share)
        solver.warm_up()
    publish(own_row, solver.state)
    coordinator = document["coordinator"]
    work(solver, block.cells, worker, lambda: os.getppid() == coordinator)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
