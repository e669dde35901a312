"""Pious, a client of PioSOLVER, with `mccfr upi` as its solver.

Shows:

* The PioSOLVER client `pious` works unchanged with `mccfr upi`: trees, solves, locks and files
  (test_pious_builds_solves_reads_and_locks_trees)
* Its aggregation reports state the frequencies and EVs of the solver (test_pious_aggregates_a_saved_tree)
* Its equity calculator returns exact equities (test_pious_calculates_equities)
"""

import gc
import subprocess
import sys
import warnings

import numpy as np
import pytest
from places import ROOT

pytest.importorskip("pious", reason="the extra test is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings of pious itself, as Python compiles it
    from pious.conf import pious_conf
    from pious.pio import EquityCalculator, get_all_lines, make_solver
    from pious.pio.aggregate import AggregationConfig, aggregate_files_in_dir
    from pious.range import Range
    from pious.util import PIO_HAND_ORDER

from abstraction.cards import combo_text

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pious leaves pipes open
OOP, IP = "AA,KQs,JTs", "QQ,AJs,T9s:0.5"


@pytest.fixture(autouse=True)
def _its_pipes():
    """Close the pipes that the client leaves open."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def pio_program(tmp_path_factory):
    """Install `mccfr upi` as PioSOLVER's program; yield make_solver of pious and the folder."""
    place = tmp_path_factory.mktemp("pio")
    program = place / f"{pious_conf.get_pio_solver_name()}.exe"
    program.write_text(f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec '{sys.executable}' -m mccfr upi\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pious_conf, "pio_install_directory", str(place))
        yield make_solver, place


@pytest.fixture(scope="module")
def turn(pio_program):
    solver = pio_program[0]()
    solver._run("set_threads", "1")
    solver.set_range("OOP", OOP)
    solver.set_range("IP", Range(IP))
    solver.set_board("QsJh2h7c")
    solver.set_pot(0, 0, 40)
    solver.set_eff_stack(100)
    for line in ([20, 60], [0, 0, 20], [0, 100]):
        solver.add_line(line)
    solver.build_tree()
    solver.set_accuracy(0.5)
    yield solver, solver.go(quiet=True)
    end(solver)


def end(solver):
    solver.process.stdin.write("exit\n")
    solver.process.stdin.close()
    assert solver.process.wait(30) == 0 and solver.process.stderr.read() == ""


def test_hands_have_the_order_of_pious():
    assert tuple(combo_text(hand) for hand in range(1326)) == PIO_HAND_ORDER


def test_pious_builds_solves_reads_and_locks_trees(turn):
    solver, output = turn
    assert "go ok!" in output and "SOLVER: stopped (required accuracy reached)" in output
    results = dict(line.split(": ") for line in solver.calc_results().split("\n"))
    assert float(results["Exploitable for"]) <= 0.5
    root = solver.show_node("r:0")
    assert (root.get_position(), root.board, root.pot) == ("OOP", ("Qs", "Jh", "2h", "7c"), (0, 0, 40))
    assert solver.show_children_actions("r:0") == ["c", "b20"] and root.num_children == 2
    assert [child.node_type for child in solver.show_children("r:0:c:c")] == ["OOP_DEC"] * 48
    assert {str(line) for line in get_all_lines(solver)} >= {"r:0", "r:0:b20:b60:c", "r:0:c:c:b20:f", "r:0:c:b100"}
    for position in ("OOP", "IP"):
        value, matchups = solver.calc_ev(position, "r:0")
        assert np.nansum(value * matchups) / matchups.sum() == pytest.approx(float(results[f"EV {position}"]), abs=1e-3)
    weights = solver.show_range("IP", "r:0")
    assert weights["AsJs"] == 1 and weights["Ts9s"] == 0.5 and weights["QsQh"] == 0
    assert solver.calc_global_freq("r:0:c") + solver.calc_global_freq("r:0:b20") == pytest.approx(1)
    fold = [1.0] * 1326 + [0.0] * 2652
    assert "ok!" in solver.set_strategy("r:0:b20", fold)
    assert solver.show_strategy("r:0:b20")[0][PIO_HAND_ORDER.index("AsJs")] == 1
    assert solver.calc_global_freq("r:0:b20:c") == 0
    assert "lock_node ok!" in solver.lock_node("r:0:b20")
    solver.go(30, "steps", quiet=True)
    assert solver.calc_global_freq("r:0:b20:c") == 0
    assert "unlock_node ok!" in solver.unlock_node("r:0:b20")
    solver.set_accuracy(0.5)
    solver.go(quiet=True)
    assert solver.calc_global_freq("r:0:b20:c") > 0


def test_pious_aggregates_a_saved_tree(turn, pio_program, tmp_path):
    """Compare the report of a folder with the solver's figures of each node, over all river cards."""
    solver, _ = turn
    assert "ok!" in solver.dump_tree(str(tmp_path / "QsJh2h7c.cfr"))
    (tmp_path / "script.txt").write_text("#QsJh2h7c:1\n")
    conf = AggregationConfig(global_freq=True)
    found = {
        str(line): table for line, table in aggregate_files_in_dir(str(tmp_path), ["r:0", "r:0:c:c"], conf).items()
    }
    assert set(found) == {"r:0", "r:0:c:c"}
    row = found["r:0"].iloc[0]
    results = dict(line.split(": ") for line in solver.calc_results().split("\n"))
    assert row["OOP EV"] == pytest.approx(float(results["EV OOP"]), abs=1e-3)
    assert row["Check Freq"] + row["Bet 20 Freq"] == pytest.approx(100) and row["Global Freq"] == 1
    cards = found["r:0:c:c"]
    assert len(cards) == 48 and cards["Global Freq"].sum() == pytest.approx(solver.calc_global_freq("r:0:c:c"))
    assert (cards["OOP EV"] + cards["IP EV"]).to_numpy() == pytest.approx(np.full(48, 40.0))


def test_pious_calculates_equities(pio_program):
    """Aces and king-queen suited against queens and jack-ten suited on a turn: 25 against 23 of 48."""
    calculator = EquityCalculator("QsJh2h7c", "AA,KQs", "QQ,JTs")
    assert calculator.compute_equities() == pytest.approx((0.52083333, 0.47916667))
    end(calculator.solver)


def test_the_program_ends_at_the_end_of_its_input():
    command = [sys.executable, "-m", "mccfr", "upi"]
    ended = subprocess.run(command, input="is_ready\n", capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("is_ready ok!\n", 0)
