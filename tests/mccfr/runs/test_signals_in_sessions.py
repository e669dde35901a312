"""Signals to sessions and commands in this process: unfinished evaluations and exports, clean ends.

Shows:

* A signal leaves a pending evaluation or export to the next session
  (test_a_signal_leaves_an_evaluation_to_the_next_session,
  test_a_signal_between_the_limit_and_the_export_leaves_the_export)
* Signals during evaluations lose no work, however long the checkpoint takes
  (test_a_stop_waits_for_the_checkpoint_but_not_for_the_evaluation)
* A signal between two phases does not hang a command
  (test_a_signal_while_a_delayed_line_is_cancelled_does_not_hang_the_command)
"""

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
from click.exceptions import Exit
from commands import call
from sessions import go, make, new_run

from mccfr.cli import stopping
from mccfr.cli.progress_display import DelayedLine
from mccfr.common import signals
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.policy import Policy
from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.results.checkpoint_evaluator import Evaluator
from mccfr.runs.session import training_session
from storage import checkpoint_writer


def test_nothing_is_printed_of_tasks_that_a_signal_has_left_pending(caplog, monkeypatch):
    """A signal while zarr writes leaves tasks, and asyncio would log an error with a traceback for each."""

    async def leave_task():
        asyncio.get_running_loop().create_task(asyncio.sleep(100))
        await asyncio.sleep(0)

    def messages():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave_task())
        loop.close()
        del loop
        gc.collect()
        return [record.message for record in caplog.records]

    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", False)
    monkeypatch.setattr(signals, "_silent", False)
    with warnings.catch_warnings():
        assert any("was destroyed" in message for message in messages())
        caplog.clear()
        signals.silence()
        assert messages() == []


def send_signal_in_evaluations(monkeypatch, wait):
    """Make each evaluation send this process a signal at its start, and call `wait`."""
    evaluate = Evaluator.evaluate

    def signalled(self, strategy):
        os.kill(os.getpid(), signal.SIGTERM)
        wait()
        return evaluate(self, strategy)

    monkeypatch.setattr(Evaluator, "evaluate", signalled)


@pytest.mark.parametrize("reports_steps", [True, False], ids=["in steps", "in one step"])
def test_a_signal_leaves_an_evaluation_to_the_next_session(tmp_path, capsys, monkeypatch, reports_steps):
    """The stop waits neither for an evaluation that reports its steps nor for one inside a long kernel."""
    run, began = make(tmp_path / "run", nodes=50_000, evaluation={"at_end": True}), []

    def slow():
        began.append(time.monotonic())
        for step in range(600):
            time.sleep(0.1)
            if reports_steps:
                report_step("board", step, 600)

    send_signal_in_evaluations(monkeypatch, slow)
    ended = call(capsys, "resume", run.directory)
    took = time.monotonic() - began[0]
    monkeypatch.undo()
    assert ended.status == 75 and took < 50, (took, ended.err)
    left = "the evaluation that is due was not done: the next session does it, or do it now with: mccfr evaluate"
    assert f"{left} {run.directory}" in ended.err
    assert run_status(run)["state"] == "stopped" and run.read(EVALUATIONS) == []
    nodes = run_status(run)["nodes_touched"]
    outcome = go(run)
    assert outcome.evaluated and [each["nodes_touched"] for each in run.read(EVALUATIONS)] == [nodes]
    assert run_status(run)["state"] == "finished"


def test_a_signal_between_the_limit_and_the_export_leaves_the_export(tmp_path, capsys, monkeypatch):
    """The message has the export command, and the next session exports."""
    policy, document = tmp_path / "policy", {"game": {"name": "leduc"}, "run": {"workers": 0, "nodes": 50_000}}
    run = new_run(tmp_path / "run", document | {"export": {"out": str(policy)}})
    send_signal_in_evaluations(monkeypatch, lambda: None)
    ended = call(capsys, "resume", run.directory)
    monkeypatch.undo()
    assert ended.status == 75 and not policy.exists()
    left = "the export was not done: the next session does it, or do it now with: mccfr export"
    assert f"{left} {run.directory}" in ended.err
    assert call(capsys, "resume", run.directory).status == 0
    assert Policy.open(policy).query("", hand="Kc")["actions"]


def test_a_stop_waits_for_the_checkpoint_but_not_for_the_evaluation(tmp_path, monkeypatch):
    """The session waits 0.1 s for the evaluation, and 0.5 s for its last checkpoint."""
    points = {"at_nodes": [20_000], "at_end": False, "every_checkpoint": False}
    run, over, commit = make(tmp_path / "run", evaluation=points), threading.Event(), checkpoint_writer.commit

    def slow(*arguments, **options):
        time.sleep(0.5)
        return commit(*arguments, **options)

    send_signal_in_evaluations(monkeypatch, lambda: over.wait(60))
    monkeypatch.setattr(checkpoint_writer, "commit", slow)
    monkeypatch.setattr(training_session, "_LEAVE_SECONDS", 0.1)
    outcome = go(run)
    over.set()
    assert outcome.signal == signal.SIGTERM and outcome.evaluation_due and outcome.totals.nodes >= 20_000
    assert run_status(run)["nodes_touched"] == outcome.totals.nodes and run_status(run)["state"] == "stopped"


def test_objects_that_a_signal_left_incomplete_are_not_reported(capsys):
    """Python would print a warning or traceback below the message, for example for zarr's event loop."""

    class Loop:
        def __del__(self):
            raise AttributeError("no socket yet")

    async def unawaited():
        pass

    left = [unawaited(), Loop()]
    with warnings.catch_warnings(record=True) as reported, signals.command_line():
        with pytest.raises(Exit):
            stopping._end(75, "stopped")
        left.clear()
    assert not reported and "no socket yet" not in capsys.readouterr().err


ENDING = """
import atexit
from mccfr.common import signals
atexit.register(lambda: print(1 / 0))
with signals.command_line():
    signals.silence()
    signals.end(130)
"""


def test_a_failure_at_the_end_of_a_stopped_process_is_not_reported():
    """An example is zarr's thread, if a signal interrupts its start."""
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_a_signal_while_a_delayed_line_is_cancelled_does_not_hang_the_command(monkeypatch):
    """If a signal handler raises inside `Condition.__enter__`, the condition's lock stays locked."""
    line, enter, entered = DelayedLine(), threading.Condition.__enter__, list[bool]()

    def signalled(condition):
        found = enter(condition)
        entered.append(True)
        os.kill(os.getpid(), signal.SIGTERM)
        return found

    line.say("a long phase")
    with signals.signals_collected(ignored=0), monkeypatch.context() as patch:
        patch.setattr(threading.Condition, "__enter__", signalled)
        with pytest.raises(signals.SignalInterrupt):
            line.say(None)
    assert entered
    again = threading.Thread(target=line.say, args=(None,), daemon=True)
    again.start()
    again.join(10)
    assert not again.is_alive()


@pytest.mark.parametrize("threads", ["2", pytest.param("1", marks=pytest.mark.slow)])
def test_a_process_limit_that_allows_no_threads_exits_with_status_1(tmp_path, threads):
    """OpenBLAS raises SIGINT during numpy's import; with status 75 a job would repeat the command.

    With one OpenBLAS thread, the command's own threads are the first that fail.
    """
    able = ["--inh-caps=+dac_read_search,+dac_override", "--ambient-caps=+dac_read_search,+dac_override"]
    other_user = ["setpriv", "--reuid=65534", "--clear-groups", *able] if os.geteuid() == 0 else []
    if other_user and subprocess.run([*other_user, "true"], capture_output=True, check=False).returncode:
        pytest.skip("another user cannot be had here")
    command = ["bash", "-c", 'ulimit -u 1; exec "$@"', "-", *other_user, sys.executable, "-m", "mccfr", "solve", "kuhn"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "mccfr: no thread can be started: the limit on processes" in ended.stderr, ended.stderr
    assert "ulimit -u: 1" in ended.stderr
