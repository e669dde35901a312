"""Batches of sampled training: periods, and updates between workers.

Shows:

* An outcome-sampling run may stop at any limit and gives the same tables
  (test_a_run_of_outcome_sampling_may_be_cut_anywhere)
* Deals of one batch do not see each other's updates (test_deals_of_a_group_do_not_see_what_the_others_learn)
"""

from pathlib import Path

import numpy as np
import pytest

from mccfr.config.toml_files import config_from
from mccfr.games.registry import build_game
from mccfr.runs.session.run_plan import planned_layout
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.outcome.paths import DEALS_TOGETHER, deals_together
from mccfr.solvers.sampling.sampled import BATCH_SHARE, batch_nodes
from mccfr.solvers.solver import Share
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import private_tables

PERIOD = 250_000
EXTERNAL = {"discount": "linear", "period_nodes": PERIOD}
OUTCOME = {**EXTERNAL, "algorithm": "outcome-sampling"}
PUBLIC = {**EXTERNAL, "algorithm": "public-chance-sampling"}


def late_nodes(solver, workers):
    """Return (nodes that `workers` trained after a period's end, worst of three; most of an iteration).

    All workers begin a batch together and publish together, so no worker can know less of the others.
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
@pytest.mark.parametrize("workers", [4, 16])
def test_workers_together_run_past_a_period_by_a_share_of_it(solver, workers):
    late, single = late_nodes(solver, workers)
    assert late <= BATCH_SHARE * PERIOD + workers * single


def test_a_batch_is_bounded_by_the_workers_of_the_run():
    schedule = Schedule("linear", 10_000_000)
    assert batch_nodes(schedule, 1) is None  # alone, it knows all there is to know
    assert batch_nodes(schedule, 64) * 64 <= BATCH_SHARE * 10_000_000
    assert batch_nodes(Schedule("linear", 3), 64) == 1  # at least one iteration, whatever the period


def outcome_sampler(game="leduc"):
    config = config_from({"game": {"name": game}, "solver": {**OUTCOME, "period_nodes": 20_000}}, "test")
    built = build_game(config.game, Path())
    tables = private_tables(planned_layout(config, built))
    return algorithm_of(config).solver(built, tables, Share()), tables


def test_a_run_of_outcome_sampling_may_be_cut_anywhere():
    """A limit inside of a group is passed, so that groups are the same ones however a run is cut."""
    (whole, tables), (parts, others) = outcome_sampler(), outcome_sampler()
    while whole.state.iterations < 200 * DEALS_TOGETHER:
        whole.run(whole.state.nodes, 10**12, 200 * DEALS_TOGETHER - whole.state.iterations)
    for limit in [1, 5, DEALS_TOGETHER, 1_000, 77, 10**6] * 100:
        if parts.state.iterations < whole.state.iterations:
            before = parts.state.iterations
            parts.run(parts.state.nodes, 10**12, min(limit, whole.state.iterations - before))
            assert parts.state.iterations % DEALS_TOGETHER == 0
            assert parts.state.iterations - before < limit + DEALS_TOGETHER
    assert parts.state == whole.state
    assert all(np.array_equal(tables[name], others[name]) for name in tables)


def test_groups_are_small_where_infosets_are_few():
    """In a group of 32 Kuhn poker learns less by a node: 1.3 times the exploitability (docs/measured)."""
    assert [deals_together(infosets) for infosets in (1, 12, 80, 288, 10**7)] == [1, 1, 10, 32, 32]
    assert outcome_sampler("kuhn")[0].run(0, 10**12, 1)[0] == 1
