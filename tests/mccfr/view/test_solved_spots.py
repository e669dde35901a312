"""Solved spots, which are runs, in the page's list: opened, solved again, deleted.

Shows:

* The page lists and opens solved spots, and fills its form with their settings
  (test_a_solved_spot_is_listed_with_the_form_that_solves_it, test_spots_are_deleted_unless_they_are_being_solved)
"""

import json
import shutil
from pathlib import Path

import pytest
from pages_server import ask, serve_strategies
from refusals import refused

from mccfr.runs.directory.run import lock, open_to_look
from mccfr.view import open_strategies
from mccfr.view.solved_spots import RUNS, delete_spot, find_spot, solved_spots
from mccfr.view.spot_requests import spot_request
from mccfr.view.spot_worker import solve_spot

SPOT = {"board": "QsJh2h7c", "oop": "TT+,AQs+", "ip": "77+,KQs", "pot": "180", "stack": "180", "to": "5%"}
SPOT |= {"bets": "50%/33%,allin", "raises": "60%", "rake": "5%", "rake_cap": "9", "locks": "=c TT+"}


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A folder with a run of the spot."""
    folder = tmp_path_factory.mktemp("solved")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        solve_spot(spot_request(SPOT), lambda _: None)
    return folder


def test_a_solved_spot_is_listed_with_the_form_that_solves_it(solved, monkeypatch):
    """The form's fields lead to the same run, so no setting is lost; broken runs are not listed."""
    monkeypatch.chdir(solved)
    (RUNS / "broken").mkdir()
    for name in ("manifest.json", "config.toml"):
        (RUNS / "broken" / name).write_text("x")
    (found,) = solved_spots()
    assert found["run"].startswith("spot-QsJh2h7c-") and 0 < found["gap_pot"] <= 0.05 and found["iterations"] > 0
    for key in ("board", "oop", "ip", "pot", "rake_cap", "locks"):
        assert found["asked"][key] == SPOT[key]
    told = []
    solve_spot(spot_request(found["asked"]), told.append)
    assert next(one["run"] for one in told if "run" in one) == str(RUNS / found["run"])


def test_the_link_of_a_solved_spot_works_in_another_process(solved, monkeypatch):
    """Its address names the run, and not a number of the process that solved it."""
    monkeypatch.chdir(solved)
    (found,), strategies = solved_spots(), open_strategies(None)
    with serve_strategies(strategies) as server:
        status, _, body = ask(server, f"/api/spot?line=&of={found['run']}")
        assert status == 200 and json.loads(body)["board"] == SPOT["board"]
        about = json.loads(ask(server, f"/api/game?of={found['run']}")[2])
        assert (about["of"], about["asked"]) == (found["run"], found["asked"])
        assert about["strategies"] == [[found["run"], found["run"]]]
        for of, text in (("moon", "no solved spot in runs/ is named 'moon'"), ("0", "no strategies: type a spot")):
            status, _, body = ask(server, f"/api/spot?line=&of={of}")
            assert status == 400 and text in json.loads(body)["error"]


def test_spots_are_deleted_unless_they_are_being_solved(solved, tmp_path, monkeypatch):
    shutil.copytree(solved / RUNS, tmp_path / RUNS)
    monkeypatch.chdir(tmp_path)
    name = solved_spots()[0]["run"]
    with lock(open_to_look(find_spot(name))):
        refused("is being solved: stop it before", delete_spot, name)
    refused("no solved spot in runs/ is named '../runs'", delete_spot, "../runs")
    assert delete_spot(name) == {"spots": []}
    assert not (RUNS / name).exists() and Path(solved / RUNS / name).exists()
