"""States of runs, as `status` gives them.

Shows:

* A session that ends by an error has failed, and the reason is told (test_an_error_is_a_failure_with_its_reason)
* There is a speed of now only while workers train now (test_speeds_of_now_are_of_now)
* A run whose abstraction was moved has a status, and its list too (test_a_moved_abstraction_is_a_line)
"""

import errno
import time

from commands import answer, call, command
from refusals import refused
from sessions import go, make, trained
from small_games import small_recipe

from abstraction.build import Builder
from mccfr.runs.directory.run import METRICS, lock
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.session import pools


def test_an_error_is_a_failure_with_its_reason(tmp_path, monkeypatch, capsys):
    """Before anything was trained, and after a session that ended well; the next one ends the failure."""
    run = trained(make(tmp_path / "run"), iterations=100)
    assert run_status(run)["state"] == "finished"

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device", "/dev/shm/tables")

    monkeypatch.setattr(pools, "create_live", full)
    refused("No space left on device", go, run, iterations=200, error=OSError)
    status = run_status(run)
    assert (status["state"], status["failure"]) == ("failed", "/dev/shm/tables: No space left on device")
    assert (
        "state        failed: /dev/shm/tables: No space left on device\n" in call(capsys, "status", run.directory).out
    )
    assert call(capsys, "status", tmp_path).out.splitlines()[-1] == "run: /dev/shm/tables: No space left on device"
    monkeypatch.undo()
    status = run_status(trained(run, iterations=200))
    assert (status["state"], status["failure"]) == ("finished", None)


def test_speeds_of_now_are_of_now(tmp_path, capsys):
    run, now = trained(make(tmp_path / "run"), iterations=100), time.time()
    assert run_status(run)["nodes_per_second_now"] is None

    def line(seconds_ago, nodes):
        common = {"iterations": 9, "period": 1, "nodes_per_second": 5, "iterations_per_second": 5.0}
        record = {"nodes_touched": nodes, "training_seconds": nodes / 10, "unix_seconds": now - seconds_ago}
        run.append(METRICS, record | common)

    with lock(run):
        run.append("journal.jsonl", {"event": "started", "workers": 1, "unix_seconds": now - 100})
        for seconds_ago, nodes in ((120, 10**5), (80, 2 * 10**5)):
            line(seconds_ago, nodes)
            assert run_status(run)["nodes_per_second_now"] is None  # of the session before; one line; long ago
        line(5, 3 * 10**5)
        assert run_status(run)["nodes_per_second_now"] is None  # a pause lies between
        line(0, 4 * 10**5)
        assert run_status(run)["nodes_per_second_now"] == 10
        assert "; now 10," in call(capsys, "status", run.directory).out
    assert "; now" not in call(capsys, "status", run.directory).out


def test_a_moved_abstraction_is_a_line(tmp_path, capsys):
    recipe = small_recipe(tmp_path / "cards.toml", ranks=3)
    Builder(recipe, tmp_path / "cards").build()
    game = 'name = "poker"\nranks = 3\nsuits = 2\nhole_cards = 1\nboard_cards = [0, 1]\nantes = [1, 1]\nstack = 4\n'
    others = '[abstraction]\npath = "cards"\n[run]\nworkers = 0\niterations = 100\n'
    (tmp_path / "small.toml").write_text(f"[game]\n{game}{others}")
    run = tmp_path / "runs" / "small"
    assert command("solve", tmp_path / "small.toml", "--run", run) == 0
    whole = answer(capsys, "status", run)
    assert whole["abstraction_problem"] is None
    (tmp_path / "cards").rename(tmp_path / "moved")
    found = answer(capsys, "status", run)
    assert f"{tmp_path / 'cards'} is not an abstraction" in found["abstraction_problem"]
    assert found | {"abstraction_problem": None} == whole
    assert f"abstraction  {tmp_path / 'cards'} is not an abstraction" in call(capsys, "status", run).out
    listed = call(capsys, "status", run.parent).out
    assert "finished" in listed and f"small: {tmp_path / 'cards'} is not an abstraction" in listed
    assert call(capsys, "resume", run).status == 2
    assert answer(capsys, "status", run, "--abstraction", tmp_path / "moved") == whole
