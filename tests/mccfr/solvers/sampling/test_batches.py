"""How far several workers run past the end of a period: each learns what the others have done between its batches."""

from pathlib import Path

import pytest

from mccfr.config.file import config_from
from mccfr.games.catalogue import build_game
from mccfr.runs.plan import planned_layout
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampled import BATCH_SHARE, batch_nodes
from mccfr.solvers.solver import Share
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import private_tables

EXTERNAL = {"discount": "linear", "period_nodes": 1_000_000}
OUTCOME = {**EXTERNAL, "algorithm": "outcome-sampling"}
PUBLIC = {**EXTERNAL, "algorithm": "public-chance-sampling"}


def late_nodes(solver, workers):
    """(nodes that `workers` trained in a period after its end, of the worst of three; most nodes of an iteration).

    All workers begin a batch at the same moment and publish together: none can know less of the others.
    """
    config = config_from({"game": {"name": "leduc"}, "solver": solver}, "test")
    game = build_game(config.game, Path())
    layout, schedule = planned_layout(config, game), algorithm_of(config).schedule
    tables = private_tables(layout)
    made = [algorithm_of(config).solver(game, tables, Share(worker, workers)) for worker in range(workers)]
    single = max(made[0].run(0, 1, 1)[1] for _ in range(200))
    for _ in range(12):  # batches bounded by time grow to their size
        made[0].run(0, 10**12, 10**12)
    total, worst = 0, 0
    while total < 3 * schedule.period_nodes:
        end = schedule.period_end(total)
        total += sum(one.run(total, 10**12, 10**12)[1] for one in made)
        worst = max(worst, total - end)
    return worst, single


@pytest.mark.parametrize("solver", [EXTERNAL, OUTCOME, PUBLIC], ids=["external", "outcome", "public-chance"])
@pytest.mark.parametrize("workers", [4, 64])
def test_workers_together_run_past_a_period_by_a_share_of_it(solver, workers):
    late, single = late_nodes(solver, workers)
    print(f"{late:,} nodes late of a period of 1,000,000; an iteration has up to {single:,}")
    assert late <= BATCH_SHARE * 1_000_000 + workers * single
    assert BATCH_SHARE <= 0.25


def test_a_batch_is_bounded_by_the_workers_of_the_run():
    schedule = Schedule("linear", 10_000_000)
    assert batch_nodes(schedule, 1) is None  # alone, it knows all there is to know
    assert batch_nodes(schedule, 64) * 64 <= BATCH_SHARE * 10_000_000
    assert batch_nodes(Schedule("linear", 3), 64) == 1  # at least one iteration, whatever the period
