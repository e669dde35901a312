"""A worker process that trains its strata one after the other in every interval.

A stratum is a group of second-street boards (flops) with buckets of its own from that street on. An interval is the
training between two barriers, at which the coordinator adds up the workers' changes of the first street.

The coordinator starts it like `mccfr.runs.session.worker`, with the same assignment. Of W workers, number w trains
strata w, w + W, w + 2·W, ... The distribution does not affect the results.
"""

import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.session import control
from mccfr.runs.session.strata.block_slots import partition, placed
from mccfr.runs.session.worker import map_tables, opened, publish, read_state
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.strata_training import FIRST_STREET, Interval, StratumWorker, first_street_names, with_copies
from storage.mapping import Region, create_regions, map_cells, map_regions, regions_from_json

_NAP_SECONDS = 0.0005


def stratum_worker(
    run: Run, game: Game, regions: Sequence[Region], copies: Path, changes: npt.NDArray[np.int64]
) -> StratumWorker:
    """Return a worker that trains strata (groups of flops) in the run's shared tables.

    regions  where each table lies in shared memory
    copies   path of a new file for the worker's own copy of the first street's tables
    changes  [cells] int64, receives the change of each first-street cell in an interval, times the interval's scale
             (a power of two), rounded
    """
    algorithm, layout = run.algorithm, with_copies(run.layout(game))
    assert isinstance(algorithm, SampledAlgorithm)
    own = [spec for spec in layout.specs if FIRST_STREET in spec.name]
    later = [region for region in regions if FIRST_STREET not in region.name]
    tables = map_tables(layout, (*create_regions(copies, own), *later))
    names = first_street_names(game)
    totals = map_regions([region for region in regions if region.name in names], writable=False, populate=True)
    return StratumWorker(game, algorithm, {name: totals.view(name) for name in names}, tables, changes)


def train_strata(worker: StratumWorker, rows: npt.NDArray[np.int64], strata: Iterable[int], interval: Interval) -> bool:
    """Train strata (groups of flops) for their quotas of iterations; update states in `rows`.

    rows    [N, columns] int64 counters, random states and quotas (iterations in this interval) of all strata
    strata  numbers of the strata to train

    Returns False if a change of the first street did not fit in 64 bits.
    """
    fits = True
    for stratum in strata:
        quota = int(rows[stratum, control.QUOTA])
        if quota:
            state = read_state(rows[stratum])
            fits &= worker.run(stratum, state, quota, interval)
            publish(rows[stratum], state)
    return fits


class Placing:
    """Directs a worker's kernels to the memory frame of the block that trains.

    A block is the table rows of some strata (groups of flops); a frame is memory for the rows of one block.
    It has no effect without `tables.memory_budget`, because all strata are then in memory.
    """

    def __init__(self, run: Run, game: Game, worker: StratumWorker) -> None:
        self._worker, self._at = worker, (-1, -1)
        in_turn = run.config.tables.memory_budget is not None
        self._parts = partition(run.config, game, run.layout(game)) if in_turn else None

    def __call__(self, frame: int, block: int) -> None:
        """Let kernels train on a block of table rows, in the frame of memory that holds it, from now on.

        frame, block  their numbers, from 0
        """
        if self._parts is not None and self._at != (frame, block):
            self._worker.solver.train_on(placed(self._worker.tables, self._parts, frame, block))
            self._at = (frame, block)


def work(
    worker: StratumWorker, place: Placing, cells: npt.NDArray[np.int64], number: int, workers: int, parent: int
) -> None:
    """Carry out the coordinator's orders until it orders QUIT or has ended.

    place    called before each interval as place(frame, block), the numbers of the memory frame and of the block
             of table rows that trains
    cells    [rows, columns] int64 cells of orders, counters and states, shared by the coordinator and the workers: a
             row for the coordinator, for each worker and for each stratum (group of flops)
    number   index of this worker, from 0
    workers  number of workers
    parent   process id of the coordinator
    """
    orders, own_row, strata = cells[0], cells[1 + number], cells[1 + workers :]
    while os.getppid() == parent:
        own_row[control.PROGRESS] = began = time.monotonic_ns()
        epoch, command = int(orders[control.EPOCH]), int(orders[control.COMMAND])
        if command == control.QUIT:
            return
        if own_row[control.RESTING_SINCE] == epoch:
            time.sleep(_NAP_SECONDS)
            continue
        if command == control.RUN:
            scale = orders[control.INTERVAL_SCALE : control.INTERVAL_SCALE + 1].view(np.float64)
            interval = Interval(int(orders[control.BASE_NODES]), float(scale[0]))
            place(int(orders[control.FRAME]), int(orders[control.BLOCK]))
            worker.changes[:] = 0
            for stratum in range(number, len(strata), workers):
                if not train_strata(worker, strata, [stratum], interval):
                    own_row[control.OVERFLOW] = 1
                ended = time.monotonic_ns()
                own_row[control.LONGEST_BATCH] = max(int(own_row[control.LONGEST_BATCH]), ended - began)
                own_row[control.PROGRESS] = began = ended
        own_row[control.RESTING_SINCE] = epoch


def main(assignment: str, number: int) -> None:
    """Run a worker process: read the assignment, build the game, map the tables, and train.

    It trains some strata (groups of flops), until the coordinator orders it to end.

    assignment  path of the JSON file that the coordinator has written for its workers
    number      index of this worker, from 0
    """
    run, (game, _buckets), document = opened(Path(assignment))
    directory, workers = Path(assignment).parent, document["workers"]
    block = map_cells(Path(document["cells"]), document["shape"])
    changes = map_cells(directory / "changes", (workers, document["changes"]))
    regions = regions_from_json(document["regions"])
    worker = stratum_worker(run, game, regions, directory / f"first-street-{number}", changes.cells[number])
    worker.solver.warm_up()
    work(worker, Placing(run, game, worker), block.cells, number, workers, document["coordinator"])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
