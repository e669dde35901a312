"""Runs that continue with other limits and settings, and requests to stop.

Shows:

* `resume` alone continues with the limits, workers and checkpoint interval of the session before
  (test_resume_alone_continues_an_extension)
* `resume --set` refuses, by name, keys of a run's identity (test_resume_refuses_keys_of_the_identity)
* `stop --after-checkpoint` ends a run at its next regular checkpoint
  (test_a_request_to_stop_waits_for_the_regular_checkpoint)
"""

import errno
import os
import signal

import pytest
from commands import call, refusal
from failing import fails
from sessions import Listener, go, make, newest

from mccfr.runs.directory.run import STOP, open_run
from mccfr.runs.session import training_session
from mccfr.runs.session.checkpointing import Saver
from mccfr.runs.session.start import changed_run


def test_resume_alone_continues_an_extension(tmp_path, capsys, monkeypatch):
    run, original = make(tmp_path / "run", nodes=20_000), Saver.is_checkpoint_time
    go(run)

    def stop(self):
        monkeypatch.setattr(Saver, "is_checkpoint_time", original)
        os.kill(os.getpid(), signal.SIGTERM)
        return False

    monkeypatch.setattr(Saver, "is_checkpoint_time", stop)
    extension = ("--nodes", 3_000_000, "--workers", 0, "--set", "run.checkpoint_seconds=7")
    ended = call(capsys, "resume", run.directory, *extension)
    assert ended.status == 75 and f"continue with: mccfr resume {run.directory}" in ended.err
    settings = open_run(run.directory).config.run
    assert (settings.nodes, settings.workers, settings.checkpoint_seconds) == (3_000_000, 0, 7.0)
    ended = call(capsys, "resume", run.directory)
    assert ended.status == 0 and "done: 3,000," in ended.err


def test_a_full_disk_does_not_keep_an_extension_from_training(tmp_path, monkeypatch):
    run, listener = make(tmp_path / "run", nodes=20_000), Listener()
    monkeypatch.setattr(training_session, "save_settings", fails(errno.ENOSPC, "config.toml"))
    assert go(run, listener, nodes=30_000).totals.nodes >= 30_000
    assert any("later sessions do not know this session's limits" in text for text in listener.told)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("solver.seed=4", "solver may not change within a run"),
        ("game.ranks=4", "game may not change within a run"),
        ("tables.regret_dtype=float64", "tables.regret_dtype may not change within a run"),
        ("run.strata=3", "run.strata may not change within a run"),
        ("run.cheeckpoint_seconds=4", "did you mean 'checkpoint_seconds'"),
        ("run.checkpoint_seconds=0", "run.checkpoint_seconds = 0 is not allowed: it must be above 0"),
    ],
)
def test_resume_refuses_keys_of_the_identity(tmp_path, capsys, text, reason):
    run = make(tmp_path / "run", nodes=20_000)
    assert reason in refusal(capsys, "resume", run.directory, "--set", text)
    assert open_run(run.directory).config == run.config


@pytest.mark.parametrize("texts", [("keep=true", "at_nodes=[9e4]"), ("at_nodes=[9e4]", "keep=true")])
def test_keys_that_depend_on_each_other_are_set_in_any_order(tmp_path, texts):
    run = make(tmp_path / "run", nodes=20_000)
    evaluation = changed_run(run, [f"evaluation.{text}" for text in texts]).config.evaluation
    assert evaluation.keep and evaluation.at_nodes == [90_000]


def test_a_request_to_stop_waits_for_the_regular_checkpoint(tmp_path, monkeypatch):
    run = make(tmp_path / "run", nodes=400_000, checkpoint_nodes=100_000)

    def request_stop(self):
        run.path(STOP).touch()
        return False

    monkeypatch.setattr(Saver, "is_checkpoint_time", request_stop)
    outcome = go(run)
    assert outcome.signal == signal.SIGTERM and 100_000 <= outcome.totals.nodes < 200_000
    assert newest(run) == outcome.checkpoint == 1
    monkeypatch.undo()
    run.path(STOP).touch()  # of a session that was killed
    assert go(run).signal is None and not run.path(STOP).exists()


def test_a_session_reports_the_removed_live_tables_of_a_killed_process(tmp_path, monkeypatch):
    """storage/test_live_sweep.py tests which tables are removed."""
    monkeypatch.setattr(training_session, "sweep_live", lambda _: [tmp_path / "mccfr-1-2"])
    listener = Listener()
    go(make(tmp_path / "run"), listener, iterations=10)
    assert f"removed the live tables of a process that died: {tmp_path}/mccfr-1-2" in listener.told
