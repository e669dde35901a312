"""Improvement of a run since its last evaluation, measured on the same boards.

Shows:

* The improvement between two checkpoints is estimated on the same boards (test_paired)
"""

from itertools import pairwise

import numpy as np
import pytest
from sessions import go, make

from mccfr.cli.progress_display import evaluation_text
from mccfr.common.intervals import ratio95
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.evaluation.samples import Effort
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint

POINTS = {"method": "head-to-head", "at_iterations": [100, 200, 300, 400, 500], "keep": True, "boards": 5}
NO_MORE = {"every_checkpoint": False, "at_end": False}


@pytest.fixture
def run(tmp_path):
    return make(tmp_path / "run", evaluation=POINTS | NO_MORE)


def boards_won(run, number, against):
    """[boards, 2] of a checkpoint against another one."""
    game, seen = run.build_game(), []
    sides = [Profile(game, checkpoint_average(game, run.config, find_checkpoint(run, n))) for n in (number, against)]
    head_to_head(*sides, boards=5, effort=Effort(note=seen.append))
    return seen[0]


def test_a_gain_is_the_difference_on_the_same_boards_in_one_session(run):
    go(run, iterations=500)
    records = run.read(EVALUATIONS)
    assert [record["against"] for record in records] == ["uniform", *["checkpoint 1"] * 4]
    # The first is against uniform play, the second against the first: nothing to compare either with.
    assert [record["gain_chips"] is None for record in records] == [True, True, False, False, False]
    won = {record["checkpoint"]: boards_won(run, record["checkpoint"], 1) for record in records[1:]}
    for before, record in pairwise(records[1:]):
        now, then = won[record["checkpoint"]], won[before["checkpoint"]]
        mean, interval = ratio95(now[:, 0] - then[:, 0], now[:, 1], 6)
        assert record["gain_chips"] == pytest.approx(mean, rel=1e-12)
        assert record["gain_ci95_chips"] == pytest.approx(interval, rel=1e-12)
        assert record["gain_from_nodes"] == before["nodes_touched"]
        assert record["gain_chips"] == pytest.approx(record["value_chips"] - before["value_chips"], rel=1e-9)
        apart = np.diff(record["ci95_chips"]) + np.diff(before["ci95_chips"])
        assert np.diff(record["gain_ci95_chips"]) < 0.8 * apart  # what pairing is for
    text = evaluation_text(records[-1])
    assert f"{records[-1]['gain_chips']:+.4g} since {records[-2]['nodes_touched']:,} nodes, on the same boards" in text


def test_the_first_evaluation_of_a_session_has_no_gain(run):
    go(run, iterations=300)
    go(run, iterations=500)
    assert [record["gain_chips"] is None for record in run.read(EVALUATIONS)] == [True, True, False, True, False]
