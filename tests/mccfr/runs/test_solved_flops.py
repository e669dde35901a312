"""Reports of a spot solved on many flops: values of `mccfr spot`, resuming after `kill -9`, refusals."""

import contextlib
import csv
import io
import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import call, command, refusal

from abstraction.cards import cards_text
from mccfr.evaluation.flop_values import Flops, some_flops
from mccfr.runs.results.solved_flops import solved_flops, typed_spot

SPOT = ["--oop", "AA,QJs", "--ip", "KK,T9s", "--pot", "40", "--stack", "20", "--bets", "allin", "--raises", ""]


KILLED = """
import os, signal, sys
from mccfr.cli import main
from mccfr.runs.results.solved_flops import SolvedFlops
play, done = SolvedFlops.play, []

def die(self, unit):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(unit)
    return play(self, unit)

SolvedFlops.play = die
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Solve a spot; return its run directory and the JSON output of the command."""
    folder = tmp_path_factory.mktemp("spot")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
        assert command("spot", "QsJh2h", *SPOT, "--workers", 0, "--to", "2%", "--run", "there", "--json") == 0
    return folder / "there", json.loads(out.getvalue())


@pytest.fixture
def spot(solved, tmp_path, monkeypatch):
    """Copy the spot's run to the current directory; return the JSON output."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(solved[0], "there")
    return solved[1]


def test_a_solved_flop_has_the_values_of_the_spot_command(spot, tmp_path):
    game = typed_spot(tmp_path / "there")
    assert game is not None and "board" not in game
    flops = Flops(np.array([[9 * 4 + 2, 10 * 4 + 3, 2]], np.int8), np.ones(1))
    assert sorted(cards_text(flops.cards[0].tolist())) == sorted("JhQs2h")
    found, reached = solved_flops(game, flops, 0.02)
    here = np.array([0])
    assert reached[0] <= 0.02
    for player in range(2):
        assert found.equity(here, player) == pytest.approx(spot["equity"][player], abs=1e-6)
        assert found.value(here, player).mean == pytest.approx(spot["ev_chips"][player], abs=0.8)
    assert found.actions == ["c", "b20"] and found.value(here, 0).within == 0


def test_a_killed_report_continues_from_the_saved_flops(spot, tmp_path, capsys):
    arguments = ["report", "there", "out.csv", "--spots", "", "--flops", 2, "--to", "5%", "--keep", "kept"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *map(str, arguments)], check=False)
    assert killed.returncode == -signal.SIGKILL
    stopped = (tmp_path / "kept").stat().st_size
    assert call(capsys, *arguments).status == 0
    first = (tmp_path / "out.csv").read_text()
    rows = list(csv.DictReader(first.splitlines()))
    assert len(rows) == 2 and all(float(row["exploitability_pot"]) <= 0.05 for row in rows)
    assert [float(row["ev_oop"]) + float(row["ev_ip"]) for row in rows] == pytest.approx([40, 40], abs=1e-3)
    size = (tmp_path / "kept").stat().st_size
    assert 0 < stopped < size  # one flop was saved before the kill
    assert call(capsys, *arguments).status == 0
    assert (tmp_path / "out.csv").read_text() == first and (tmp_path / "kept").stat().st_size == size
    assert "a spot is reported where it begins" in call(capsys, *arguments[:4], "c", *arguments[5:]).err
    assert some_flops(2).weight.sum() == 22_100


def test_flops_that_leave_a_range_no_hand_are_left_out_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    chosen = [cards_text(cards[::-1].tolist()) for cards in some_flops(8).cards]
    blocked = chosen[3][:2], chosen[5][:2]
    ranges = ["--oop", f"{blocked[0]}{blocked[1]}", "--ip", "KK,QQ,T9s"]
    board = next(text for text in chosen if blocked[0] not in text and blocked[1] not in text)
    assert call(capsys, "spot", board, *ranges, *SPOT[4:], "--to", "5%", "--workers", 0, "--run", "there").status == 0
    ended = call(capsys, "report", "there", "out.csv", "--spots", "", "--flops", 8, "--to", "5%")
    assert ended.status == 0, ended.err
    kept = [row["flop"] for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())]
    out = [text for text in chosen if blocked[0] in text or blocked[1] in text]
    assert sorted(kept + out) == sorted(chosen) and all(text in ended.err for text in out)


def test_a_report_names_flops_that_miss_the_required_exploitability(spot, capsys, monkeypatch):
    monkeypatch.setattr("mccfr.config.spot_table.MOST_ITERATIONS", 20)
    ended = call(capsys, "report", "there", "out.csv", "--spots", "", "--flops", 1, "--to", "0.000001%")
    assert ended.status == 3 and "not solved to --to" in ended.err


@pytest.mark.parametrize("option", ["--run-outs", "--seed", "--checkpoint"])
def test_options_without_effect_are_refused(spot, capsys, option):
    message = refusal(capsys, "report", "there", "out.html", "--spots", "", option, 9)
    assert f"{option} has no effect on the report of a spot" in message


def test_a_spot_of_a_later_street_is_not_reported_on_flops(tmp_path, monkeypatch, capsys):
    """A spot of a later street has bet sizes for its own streets only."""
    monkeypatch.chdir(tmp_path)
    assert call(capsys, "spot", "QsJh2h3c4c", *SPOT, "--workers", 0, "--to", "9%", "--run", "there").status == 0
    message = refusal(capsys, "report", "there", "out.csv", "--spots", "", "--flops", 1)
    assert "give a spot that begins on a flop" in message
