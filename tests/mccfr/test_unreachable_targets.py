"""Solves that cannot reach their accuracy.

Shows:

* Solves by UPI and re-solved spots end at their limits and state what they reached
  (test_upi_states_the_exploitability_if_a_tree_does_not_reach_its_accuracy,
  test_a_resolved_spot_ends_at_its_iteration_limit_and_states_its_gap)
"""

import re

from small_games import game_of
from upi_client import spot

from mccfr.play.resolving import Effort, all_spots
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.play.resolving.solve import resolve
from mccfr.tables.strategy import uniform_strategy
from mccfr.upi import background_solver


def test_upi_states_the_exploitability_if_a_tree_does_not_reach_its_accuracy(monkeypatch):
    monkeypatch.setattr(background_solver, "MOST_ITERATIONS", 30)
    client = spot("QsJh2h7c3d", "90")
    client.ask("set_accuracy 0", "go", "wait_for_solver")
    assert "SOLVER: stopped (30 iterations)" in client.all_answers()
    assert float(re.findall(r"Exploitable for: (\S+)", client.all_answers())[-1]) > 0


def test_a_resolved_spot_ends_at_its_iteration_limit_and_states_its_gap():
    game = game_of("leduc")
    here = Spot(game, all_spots.roots(game, 1)[0], 0)
    ranges = here.ranges(uniform_strategy(game))
    found = resolve(here, 0, ranges, None, "unsafe", Effort(30, precision_chips=1e-12))
    assert found.iterations == 30 and found.gap_chips > 1e-12
