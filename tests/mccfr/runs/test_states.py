"""States of runs in `status`: failed sessions, moved abstractions, speed.

Shows:

* Sessions that end by an error have state failed and the reason (test_status_of_a_failed_session_has_the_reason)
"""

import errno
import time

from commands import answer, call
from failing import fails
from refusals import refused
from sessions import go, make, new_run, trained
from small_games import small_recipe

from abstraction.build import Builder
from mccfr.runs.directory.run import JOURNAL, METRICS, lock
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.session import pools


def test_status_of_a_failed_session_has_the_reason(tmp_path, monkeypatch, capsys):
    """A session fails after a successful one; the next successful session clears the failure."""
    run = trained(make(tmp_path / "run"), iterations=100)
    assert run_status(run)["state"] == "finished"
    monkeypatch.setattr(pools, "create_live", fails(errno.ENOSPC, "/dev/shm/tables"))
    refused("No space left on device", go, run, iterations=200, error=OSError)
    status = run_status(run)
    assert (status["state"], status["failure"]) == ("failed", "/dev/shm/tables: No space left on device")
    line = "state        failed: /dev/shm/tables: No space left on device\n"
    assert line in call(capsys, "status", run.directory).out
    assert call(capsys, "status", tmp_path).out.splitlines()[-1] == "run: /dev/shm/tables: No space left on device"
    monkeypatch.undo()
    status = run_status(trained(run, iterations=200))
    assert (status["state"], status["failure"]) == ("finished", None)


def test_status_reports_a_moved_abstraction(tmp_path, capsys):
    Builder(small_recipe(tmp_path / "cards.toml", ranks=3), tmp_path / "cards").build()
    document = {"game": {"name": "leduc"}, "abstraction": {"path": str(tmp_path / "cards")}, "run": {"workers": 0}}
    run = trained(new_run(tmp_path / "runs/small", document), iterations=100).directory
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


def test_status_says_which_time_its_speed_covers(tmp_path, capsys):
    """A session that starts shows no speed of earlier ones; only a running one has a recent speed."""
    run = trained(make(tmp_path / "run"), iterations=200)

    def shown():
        text = call(capsys, "status", run.directory).out
        return run_status(run), next(line[13:] for line in text.splitlines() if line.startswith("speed"))

    status, speed = shown()
    assert status["nodes_per_second"] > 0 and status["nodes_per_second_recent"] is None
    assert f"{status['nodes_per_second']:,} nodes/s in the newest session, up to " in speed
    last = run.read(METRICS)[-1]
    with lock(run):
        assert shown()[0]["nodes_per_second"] is None
        run.append(JOURNAL, {"event": "started", "workers": 0, "unix_seconds": time.time()})
        status, speed = shown()
        assert (status["nodes_per_second"], status["speed_unix_seconds"]) == (None, None)
        assert speed.startswith("not measured yet;")
        for seconds in (5, 10):
            more = {"nodes_touched": last["nodes_touched"] + 200 * seconds, "nodes_per_second": 300}
            run.append(METRICS, last | more | {"training_seconds": seconds, "unix_seconds": time.time()})
        assert shown()[1].startswith("300 nodes/s in the newest session, 200 in its last minutes of training, up to ")
    status, speed = shown()
    assert status["state"] == "interrupted" and status["nodes_per_second_recent"] is None
    assert speed.startswith("300 nodes/s in the newest session, up to ")
