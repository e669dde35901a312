"""Re-solving on a flop: hands taken over from another program, and a bot with an empty kernel cache.

Shows:

* Re-solving seats take over hands whose own bets are in no tree
  (test_a_flop_is_resolved_after_own_bets_outside_of_the_tree)
* A bot with an empty cache compiles before it connects (test_a_bot_with_an_empty_cache_compiles_before_it_connects)
"""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from acpc import dealing, plan, scripted
from places import ROOT
from random_policy import policy
from test_resolving_table import CARDS, SMALL

from mccfr.matches.dealer import Clock
from mccfr.matches.programs import PROGRAMS
from mccfr.play.resolving import Effort
from mccfr.play.resolving.resolving_seat import ResolvingSeat
from mccfr.play.resolving.solve import METHODS

FLOP = replace(SMALL, street="flop", effort=Effort(iterations=1), turn_menu=SMALL.menu)


@pytest.mark.parametrize(
    "method", [METHODS[0], *(pytest.param(method, marks=pytest.mark.slow) for method in METHODS[1:])]
)
def test_a_flop_is_resolved_after_own_bets_outside_of_the_tree(method):
    seat = ResolvingSeat(policy(), replace(FLOP, method=method))
    seat.deal(1, "AsKd", 1)
    for action in ("r230", "c"):
        seat.see(action)
    seat.board(CARDS[:6])
    for action in ("c", "r563", "r1340"):
        seat.see(action)
    here = seat.public_state()
    own = here.ranges[1][here.ranges[1] > 0]
    assert here.ranges.any(axis=1).all() and 0 < len(own) < 1326 and np.ptp(own) > 0
    assert seat.choose() in here.actions


BOT = """
import sys
from mccfr.cli import main
from mccfr.matches import bot_sessions
from acpc import opened
from random_policy import policy

bot_sessions.open_player = lambda name, manner, **_: opened(policy(), name, manner.spec(policy()))
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_bot_with_an_empty_cache_compiles_before_it_connects(tmp_path):
    of = plan(hands=4)
    options = "--resolve", "river::20", "--patience", "60s", "--json"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "tests")}
    clock = Clock(response=20, per_hand=60)
    with dealing(of, [scripted(PROGRAMS["min-raise"], of)], ports=[0], clock=clock, wait=1_200) as (port, came, _):
        command = sys.executable, "-c", BOT, "bot", "acpc", "holdem", "127.0.0.1", str(port), *options
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "error" not in came, (ended.stderr, came)
    log = ended.stderr.splitlines()
    compiling = [number for number, line in enumerate(log) if "compiling kernels, once per version" in line]
    connected = [number for number, line in enumerate(log) if "connected to" in line]
    assert len(compiling) == len(connected) == 1 and compiling < connected, log
    assert json.loads(ended.stdout)["hands"] == 4 and any(file.is_file() for file in tmp_path.rglob("*"))
