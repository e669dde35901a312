"""Signals to real processes at every stage: exit status, run state, saved work.

Shows:

* A signal ends a session with status 75 if the run can be resumed, else with 128 plus its number
  (test_a_signal_at_any_moment, test_every_signal_at_every_moment)
* Signals to all worker processes, and SIGHUP under `nohup`, do not end a run
  (test_signals_to_workers_and_an_ignored_hangup_end_nothing)
* A closed terminal ends a run with a checkpoint (test_a_terminal_that_goes_away)
* A signal leaves a pending evaluation to the next session (test_a_signal_leaves_an_evaluation_to_the_next_session)
* Other commands end with 128 plus the number of the signal (test_other_commands_end_with_the_number_of_the_signal)
* If threads cannot be started, the exit status is 1, although OpenBLAS raises SIGINT (test_no_threads_is_status_1)
"""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import call
from sessions import go, make, wait_for

from mccfr.common.signals import SIGNALS
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.runs.directory.run import EVALUATIONS, JOURNAL, LOCK, METRICS, is_run, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoint_evaluator import Evaluator
from storage.run_lock import noted

MCCFR = (sys.executable, "-m", "mccfr")
LEDUC = """
[game]
name = "leduc"
[run]
workers = {workers}
checkpoint_seconds = 0.3
nodes = {nodes}
[evaluation]
every_checkpoint = true
at_end = true
[export]
out = "{out}"
"""
STRATA = """
[game]
name = "leduc"
ranks = 12
merge_suits = true
[run]
strata = 4
workers = 1
checkpoint_seconds = 0.3
"""
ENDLESS = 10**12


class Sent(NamedTuple):
    """A process that was signalled: what came of it."""

    status: int
    errors: str
    seconds: float
    run: Path
    tables: list[str]


# --- moments: what is waited for ---


def handled(process, run):
    """From when on the program has signals."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return all(mask >> (number - 1) & 1 for number in SIGNALS)


def mapped(name):
    """From when on a library is there."""
    return lambda process, run: name in Path(f"/proc/{process.pid}/maps").read_text()


def made(process, run):
    return is_run(run)


def phase(text):
    def reached(process, run):
        return (noted(run / LOCK) or "").startswith(text)

    return reached


def line(name, text):
    return lambda process, run: (run / name).exists() and text in (run / name).read_text()


def exists(name):
    return lambda process, run: (run.parent / name).exists()


MOMENTS: dict[str, tuple[str, Callable, float]] = {
    "the first line": ("new", handled, 0.0),
    "after 0.1 s": ("new", handled, 0.1),
    "after 0.5 s": ("new", handled, 0.5),
    "numpy is imported": ("new", mapped("numpy"), 0.0),
    "numpy, 0.2 s later": ("new", mapped("numpy"), 0.2),
    "the run is made": ("new", made, 0.0),
    "looking for checkpoints": ("new", phase("looking"), 0.0),
    "making the tables": ("new", phase("making"), 0.0),
    "starting a worker": ("new", phase("starting"), 0.0),
    "starting, 0.2 s later": ("new", phase("starting"), 0.2),
    "starting, 1 s later": ("new", phase("starting"), 1.0),
    "training": ("new", phase("training"), 0.0),
    "training, 0.2 s later": ("new", phase("training"), 0.2),
    "writing checkpoint 1": ("new", phase("writing checkpoint 1"), 0.0),
    "writing checkpoint 2": ("new", phase("writing checkpoint 2"), 0.01),
    "evaluating": ("new", phase("evaluating"), 0.0),
    "an evaluation is there": ("new", line(EVALUATIONS, "{"), 0.0),
    "in this process": ("inline", phase("training"), 0.1),
    "in this process, a checkpoint": ("inline", phase("writing checkpoint 1"), 0.0),
    "an abstraction begins": ("cards", exists("runs/abstractions/quick"), 0.0),
    "an abstraction, 0.5 s later": ("cards", exists("runs/abstractions/quick"), 0.5),
    "the last checkpoint": ("limit", phase("writing checkpoint"), 0.0),
    "the closing evaluation": ("limit", phase("evaluating"), 0.0),
    "finished": ("limit", line(JOURNAL, "finished"), 0.0),
    "exporting": ("limit", line(JOURNAL, "finished"), 0.03),
    "strata, training": ("strata", phase("training"), 0.0),
    "strata, at a barrier": ("strata", phase("training"), 0.25),
    "strata, a checkpoint": ("strata", phase("writing checkpoint"), 0.0),
    "resume, the first line": ("again", handled, 0.0),
    "resume, numpy": ("again", mapped("numpy"), 0.1),
    "resume, tables are filled": ("again", phase("making"), 0.0),
    "resume, training": ("again", phase("training"), 0.1),
}


def command_of(kind, folder, template):
    """(arguments, run directory) of a kind of session, whose files are written to a folder."""
    run = folder / "run"
    if kind == "again":
        shutil.copytree(template, run)
        return ["resume", run, "--nodes", ENDLESS], run
    if kind == "cards":
        return ["solve", "hunl-quick", "--run", run], run
    if kind == "strata":
        text = STRATA
    else:
        nodes = 300_000 if kind == "limit" else ENDLESS
        text = LEDUC.format(workers=0 if kind in ("inline", "limit") else 1, nodes=nodes, out=folder / "policy")
    (folder / "leduc.toml").write_text(text)
    return ["solve", folder / "leduc.toml", "--run", run], run


def send(folder, template, moment, numbers, wait=0.3):
    """Start the session of a moment, and send it signals then."""
    kind, reached, delay = MOMENTS[moment]
    arguments, run = command_of(kind, folder, template)
    process = subprocess.Popen([*MCCFR, *map(str, arguments)], stderr=subprocess.PIPE, text=True, cwd=folder)
    until = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < until:
        try:
            if reached(process, run):
                break
        except OSError:
            break
        time.sleep(0.003)
    time.sleep(delay)
    tables = [str((run / "live").readlink())] if (run / "live").is_symlink() else []
    sent = time.monotonic()
    for number in numbers:
        process.send_signal(number)
        time.sleep(wait if len(numbers) > 1 else 0)
    try:
        errors = process.communicate(timeout=300)[1]
    finally:
        process.kill()
    return Sent(process.returncode, errors, time.monotonic() - sent, run, tables)


def check(sent, numbers):
    """What the page says of it; the state of the run, "none" where there is none."""
    text = f"{sent.status}: {sent.errors}"
    assert "Traceback" not in sent.errors and "Exception ignored" not in sent.errors, text
    assert not any(Path(path).exists() for path in sent.tables), text
    assert not [path.name for path in sent.run.parent.iterdir() if path.name.startswith(".tmp-")], text
    if not is_run(sent.run):
        first = sent.status - 128  # of signals that wait together, Python calls the handler of the lowest first
        assert first in numbers, text
        assert f"mccfr: stopped by signal {first} before there was a run in {sent.run}" in sent.errors, text
        return "none"
    run = open_run(sent.run)
    status, said = run_status(run), sent.errors.splitlines()
    assert not (sent.run / "live").is_symlink() and status["process"] is None, text
    if sent.status == 0:
        assert status["state"] == "finished", text
    else:
        assert sent.status == 75, text
        assert any(f"mccfr: stopped by signal {int(number)}" in said[-1] for number in numbers), text
        assert f"continue with: mccfr resume {sent.run}" in said[-1], text
        assert status["state"] in ("stopped", "finished"), (status["state"], text)
    reported = max((record["nodes_touched"] for record in run.read(METRICS)), default=0)
    assert status["nodes_touched"] >= reported, (reported, status, text)
    assert problems_of(sent.run) == [], text
    return status["state"]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A run that goes on."""
    run = make(tmp_path_factory.mktemp("template") / "run", workers=1, checkpoint_seconds=0.3)
    go(run, workers=0, nodes=200_000)
    return run.directory


FEW = {
    "the first line": (signal.SIGHUP,),
    "resume, numpy": (signal.SIGINT,),
}
"""One moment while modules are imported, one in a later session; the tests below have moments in a session."""


@pytest.mark.parametrize("moment", FEW)
def test_a_signal_at_any_moment(tmp_path, template, moment):
    check(send(tmp_path, template, moment, FEW[moment]), FEW[moment])


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True])
def test_every_signal_at_every_moment(tmp_path, template, twice):
    """Prints a table; run with -s to see it."""
    others = cycle(SIGNALS[1:] + SIGNALS[:1] + SIGNALS)
    print(f"\n{'':30}" + "".join(f"{each.name:>16}" for each in SIGNALS))
    for moment in MOMENTS:
        cells = []
        for number in SIGNALS:
            folder = tmp_path / f"{moment}-{number}".replace(" ", "-")
            folder.mkdir()
            numbers = (number, next(others)) if twice else (number,)
            sent = send(folder, template, moment, numbers)
            cells.append(f"{sent.status} {check(sent, numbers)}")
            shutil.rmtree(folder)
        print(f"{moment:30}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


# --- who gets a signal ---


def running(folder, reached, *, workers=1, **how):
    """A session of Leduc that has come to a moment: (process, run directory)."""
    run = folder / "run"
    (folder / "leduc.toml").write_text(LEDUC.format(workers=workers, nodes=ENDLESS, out=folder / "policy"))
    command = [*MCCFR, "solve", "leduc.toml", "--run", str(run)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, **how)
    wait_for(lambda: reached(process, run) or process.poll() is not None, 300)
    return process, run


def test_signals_to_workers_and_an_ignored_hangup_end_nothing(tmp_path):
    """Slurm and systemd may signal all processes of a job, also while workers start; `nohup` has SIGHUP ignored."""
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process, run = running(tmp_path, phase("starting"), **ignoring)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(lambda: children.read_text().split(), 300)
    for number in SIGNALS:
        os.kill(int(children.read_text().split()[0]), number)
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: phase("training")(process, run) or phase("writing")(process, run), 300)
    tables = [str((run / "live").readlink())]
    for number in (signal.SIGUSR1, signal.SIGTERM):
        process.send_signal(number)
        time.sleep(0.3)
    errors = process.communicate(timeout=300)[1]
    assert process.returncode == 75 and "died" not in errors and "stopped by signal 10" in errors, errors
    assert check(Sent(75, errors, 0.0, run, tables), (signal.SIGUSR1,)) == "stopped"


def test_a_terminal_that_goes_away(tmp_path):
    """Its lines are errors from then on, which end neither the session nor change its exit status."""
    (tmp_path / "leduc.toml").write_text(LEDUC.format(workers=0, nodes=ENDLESS, out=tmp_path / "policy"))
    run, (child, terminal) = tmp_path / "run", pty.fork()
    if child == 0:
        os.execv(sys.executable, [*MCCFR, "solve", str(tmp_path / "leduc.toml"), "--run", str(run)])
    wait_for(lambda: line(JOURNAL, '"manifest"')(None, run), 300)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 75
    status = run_status(open_run(run))
    assert status["state"] == "stopped" and status["checkpoint"] and problems_of(run) == []


# --- what a signal leaves undone ---


@pytest.mark.parametrize("tells", [True, False], ids=["in steps", "in one step"])
def test_a_signal_leaves_an_evaluation_to_the_next_session(tmp_path, capsys, monkeypatch, tells):
    """The stop waits neither for one that counts its steps nor for one that is in a long kernel."""
    run, began, evaluate = make(tmp_path / "run", nodes=50_000, evaluation={"at_end": True}), [], Evaluator.evaluate

    def slow(self, strategy):
        began.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)
        for step in range(600):
            time.sleep(0.1)
            if tells:
                report_step("board", step, 600)
        return evaluate(self, strategy)

    monkeypatch.setattr(Evaluator, "evaluate", slow)
    ended = call(capsys, "resume", run.directory)
    took = time.monotonic() - began[0]
    monkeypatch.undo()
    assert ended.status == 75 and took < 50, (took, ended.err)
    assert f"was not done: the next session does it, or do it now with: mccfr evaluate {run.directory}" in ended.err
    assert run_status(run)["state"] == "stopped" and run.read(EVALUATIONS) == []
    nodes = run_status(run)["nodes_touched"]
    outcome = go(run)
    assert outcome.evaluated and [each["nodes_touched"] for each in run.read(EVALUATIONS)] == [nodes]
    assert run_status(run)["state"] == "finished"


def test_an_evaluation_at_a_point_is_made_up_for(tmp_path, monkeypatch):
    run = make(
        tmp_path / "run", nodes=60_000, evaluation={"at_nodes": [20_000], "at_end": False, "every_checkpoint": False}
    )
    evaluate = Evaluator.evaluate

    def stopped(self, strategy):
        os.kill(os.getpid(), signal.SIGTERM)
        wait_for(lambda: report_step("board", 0, 1))

    monkeypatch.setattr(Evaluator, "evaluate", stopped)
    assert go(run).evaluation_due and run.read(EVALUATIONS) == []
    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    assert go(run).signal is None
    assert [20_000 <= each["nodes_touched"] < 22_000 for each in run.read(EVALUATIONS)] == [True]


# --- other commands ---


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "run", "policy"],
        pytest.param(["evaluate", "run"], marks=pytest.mark.slow),
        pytest.param(["status", "run", "--watch"], marks=pytest.mark.slow),
    ],
)
def test_other_commands_end_with_the_number_of_the_signal(tmp_path, template, arguments):
    shutil.copytree(template, tmp_path / "run")
    number = signal.SIGHUP if arguments[0] == "export" else signal.SIGINT
    process = subprocess.Popen(
        [*MCCFR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    wait_for(lambda: handled(process, None), 300)
    process.send_signal(number)
    out, errors = process.communicate(timeout=300)
    assert (process.returncode, out, errors) == (128 + number, "", f"mccfr: stopped by signal {int(number)}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("threads", ["2", pytest.param("1", marks=pytest.mark.slow)])
def test_no_threads_is_status_1(tmp_path, threads):
    """OpenBLAS raises SIGINT then, while numpy is imported: status 75 would start the command again for ever.

    Where numpy needs no threads, the command's own are the first that cannot be started.
    """
    able = ["--inh-caps=+dac_read_search,+dac_override", "--ambient-caps=+dac_read_search,+dac_override"]
    other_user = ["setpriv", "--reuid=65534", "--clear-groups", *able] if os.geteuid() == 0 else []
    if other_user and subprocess.run([*other_user, "true"], capture_output=True, check=False).returncode:
        pytest.skip("another user cannot be had here")
    command = ["bash", "-c", 'ulimit -u 1; exec "$@"', "-", *other_user, *MCCFR, "solve", "kuhn"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "mccfr: no thread can be started: the limit on processes" in ended.stderr, ended.stderr
    assert "ulimit -u: 1" in ended.stderr
