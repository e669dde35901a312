"""Signals to sessions and commands in this process: what they leave to the next session, and what they must not break.

Shows:

* A signal leaves a pending evaluation or export to the next session
  (test_a_signal_leaves_an_evaluation_to_the_next_session,
  test_a_signal_between_the_limit_and_the_export_leaves_the_export)
* A signal during an evaluation loses no work, however long the last checkpoint takes
  (test_a_checkpoint_is_awaited_although_an_evaluation_is_left)
* A signal between two phases does not hang a command
  (test_a_signal_while_a_late_line_is_withdrawn_hangs_nothing)
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
    """A signal while zarr writes leaves some, and asyncio logs an error and a traceback for each."""

    async def leave():
        asyncio.get_running_loop().create_task(asyncio.sleep(100))
        await asyncio.sleep(0)

    def messages():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave())
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


def signalled_in_evaluations(monkeypatch, wait):
    """Send this process a signal at the beginning of each evaluation; then wait."""
    evaluate = Evaluator.evaluate

    def signalled(self, strategy):
        os.kill(os.getpid(), signal.SIGTERM)
        wait()
        return evaluate(self, strategy)

    monkeypatch.setattr(Evaluator, "evaluate", signalled)


@pytest.mark.parametrize("tells", [True, False], ids=["in steps", "in one step"])
def test_a_signal_leaves_an_evaluation_to_the_next_session(tmp_path, capsys, monkeypatch, tells):
    """The stop waits neither for one that counts its steps nor for one that is in a long kernel."""
    run, began = make(tmp_path / "run", nodes=50_000, evaluation={"at_end": True}), []

    def slow():
        began.append(time.monotonic())
        for step in range(600):
            time.sleep(0.1)
            if tells:
                report_step("board", step, 600)

    signalled_in_evaluations(monkeypatch, slow)
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
    """The message has the command that exports, and the next session exports."""
    policy, document = tmp_path / "policy", {"game": {"name": "leduc"}, "run": {"workers": 0, "nodes": 50_000}}
    run = new_run(tmp_path / "run", document | {"export": {"out": str(policy)}})
    signalled_in_evaluations(monkeypatch, lambda: None)
    ended = call(capsys, "resume", run.directory)
    monkeypatch.undo()
    assert ended.status == 75 and not policy.exists()
    left = "the export was not done: the next session does it, or do it now with: mccfr export"
    assert f"{left} {run.directory}" in ended.err
    assert call(capsys, "resume", run.directory).status == 0
    assert Policy.open(policy).query("", hand="Kc")["actions"]


def test_a_checkpoint_is_awaited_although_an_evaluation_is_left(tmp_path, monkeypatch):
    """The evaluation is in a long step, and the last checkpoint takes longer than that step is awaited."""
    points = {"at_nodes": [20_000], "at_end": False, "every_checkpoint": False}
    run, over, commit = make(tmp_path / "run", evaluation=points), threading.Event(), checkpoint_writer.commit

    def slow(*arguments, **options):
        time.sleep(0.5)
        return commit(*arguments, **options)

    signalled_in_evaluations(monkeypatch, lambda: over.wait(60))
    monkeypatch.setattr(checkpoint_writer, "commit", slow)
    monkeypatch.setattr(training_session, "_LEAVE_SECONDS", 0.1)
    outcome = go(run)
    over.set()
    assert outcome.signal == signal.SIGTERM and outcome.evaluation_due and outcome.totals.nodes >= 20_000
    assert run_status(run)["nodes_touched"] == outcome.totals.nodes and run_status(run)["state"] == "stopped"


def test_what_a_signal_left_incomplete_is_not_reported(capsys):
    """Python would print a warning or a traceback below the sentence on the signal, as of zarr's event loop."""

    class Loop:
        def __del__(self):
            raise AttributeError("no socket yet")

    async def opened():
        pass

    left = [opened(), Loop()]
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
    """As of zarr's thread, which a signal can interrupt before it is started."""
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_a_signal_while_a_late_line_is_withdrawn_hangs_nothing(monkeypatch):
    """`Condition.__enter__` is Python code: the exception of a handler there leaves the condition's lock taken."""
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
def test_no_threads_is_status_1(tmp_path, threads):
    """Exit with 1 if OpenBLAS raises SIGINT during numpy's import; status 75 would repeat the command.

    If numpy needs no threads, the command's own are the first to fail.
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
