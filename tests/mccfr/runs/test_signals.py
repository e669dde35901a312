"""Signals to real processes at many moments: exit status, state of the run, saved work.

Shows:

* A signal ends a session with status 75 if it can be resumed, else 128 plus its number
  (test_a_signal_while_modules_are_imported, test_every_signal_at_every_moment)
* Signals to all worker processes, and SIGHUP under `nohup`, do not end a run
  (test_signals_to_workers_and_an_ignored_hangup_do_not_end_the_run)
"""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import pytest
from forked_commands import Forking
from sessions import go, make, wait_for

from mccfr.runs.directory.run import EVALUATIONS, JOURNAL, LOCK, METRICS, is_run, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from storage.deferred_signals import SIGNALS
from storage.run_lock import noted

MCCFR = (sys.executable, "-m", "mccfr")
LEDUC = """
game = {{name = "leduc"}}
run = {{workers = {workers}, checkpoint_seconds = 0.3, nodes = {nodes}}}
evaluation = {{every_checkpoint = true, at_end = true}}
"""
EXPORT = 'export.out = "policy"\n'
STRATA = """
game = {name = "leduc", ranks = 12, merge_suits = true}
run = {strata = 4, workers = 1, checkpoint_seconds = 0.3}
"""
COMPARED = 'compare = {points = 2, last = 1_000_000_000, variant = [{name = "a", set = []}]}\n'
ENDLESS = 10**12
STOPS_SECONDS = 60.0
"""Longest time from a signal to the end, on a loaded machine."""


class Sent(NamedTuple):
    """The result of a process that was signalled, and live tables that it had."""

    status: int
    errors: str
    seconds: float
    run: Path
    tables: list[str]


# --- conditions that a moment waits for ---


def handles_signals(pid, run):
    """Return True once the program has installed its signal handlers."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
    return all(mask >> (number - 1) & 1 for number in SIGNALS)


def has_loaded(name):
    """Return a condition: the process has loaded a library."""
    return lambda pid, run: name in Path(f"/proc/{pid}/maps").read_text()


def exists_run(pid, run):
    return is_run(run)


def phase(text):
    """Return a condition: the session is in a phase, or past a short phase that occurs only once."""
    once = ("looking", "making", "starting", "loading", "training")
    texts = once[once.index(text) :] if text in once[:3] else (text,)
    return lambda pid, run: (noted(run / LOCK) or "").startswith(texts)


def line(name, text):
    return lambda pid, run: (run / name).exists() and text in (run / name).read_text()


def exists(*names, text=""):
    """Return a condition: a file beside the run matches one of the patterns, and contains a text."""

    def found(pid, run):
        there = [path for name in names for path in run.parent.glob(name)]
        return bool(there) and (not text or text in there[0].read_text())

    return found


class Moment(NamedTuple):
    """The moment at which a command gets its signals.

    kind     the command: see `command_of`
    reached  condition to wait for: (process id, run directory) -> bool
    delay    seconds to wait after the condition
    imports  True: the command imports its modules; else it is forked from a process that has imported them
    """

    kind: str
    reached: Callable[[int, Path], bool]
    delay: float = 0.0
    imports: bool = False


MOMENTS = {
    "the first line": Moment("new", handles_signals, imports=True),
    "after 0.1 s": Moment("new", handles_signals, 0.1, imports=True),
    "after 0.5 s": Moment("new", handles_signals, 0.5, imports=True),
    "numpy is imported": Moment("new", has_loaded("numpy"), imports=True),
    "numpy, 0.2 s later": Moment("new", has_loaded("numpy"), 0.2, imports=True),
    "the run is made": Moment("new", exists_run),
    "looking for checkpoints": Moment("new", phase("looking")),
    "making the tables": Moment("new", phase("making")),
    "training": Moment("new", phase("training")),
    "training, 0.1 s later": Moment("new", phase("training"), 0.1),
    "a checkpoint": Moment("new", phase("writing checkpoint")),
    "evaluating": Moment("new", phase("evaluating")),
    "an evaluation is there": Moment("new", line(EVALUATIONS, "{")),
    "starting a worker": Moment("worker", phase("starting")),
    "starting, 0.2 s later": Moment("worker", phase("starting"), 0.2),
    "starting, 1 s later": Moment("worker", phase("starting"), 1.0),
    "a worker trains": Moment("worker", phase("training"), 0.1),
    "a checkpoint beside a worker": Moment("worker", phase("writing checkpoint 1")),
    "evaluating beside a worker": Moment("worker", phase("evaluating")),
    "an abstraction begins": Moment("cards", exists("runs/abstractions/quick")),
    "an abstraction, 0.3 s later": Moment("cards", exists("runs/abstractions/quick"), 0.3),
    "the last checkpoint": Moment("limit", phase("writing checkpoint")),
    "the closing evaluation": Moment("limit", phase("evaluating")),
    "finished": Moment("limit", line(JOURNAL, "finished")),
    "exporting": Moment("limit", line(JOURNAL, "finished"), 0.01),
    "strata, training": Moment("strata", phase("training")),
    "strata, at a barrier": Moment("strata", phase("training"), 0.15),
    "strata, a checkpoint": Moment("strata", phase("writing checkpoint")),
    "resume, the first line": Moment("again", handles_signals, imports=True),
    "resume, numpy": Moment("again", has_loaded("numpy"), 0.1, imports=True),
    "resume, tables are filled": Moment("again", phase("making")),
    "resume, training": Moment("again", phase("training"), 0.05),
    "export, the first line": Moment("export", handles_signals, imports=True),
    "export, it writes": Moment("export", exists("policy", ".tmp-policy-*")),
    "evaluate, 0.02 s": Moment("evaluate", handles_signals, 0.02),
    "view, it serves": Moment("view", exists("errors", text="http")),
    "exploit, 0.3 s": Moment("exploit", handles_signals, 0.3),
    "exploit, 2 s": Moment("exploit", handles_signals, 2.0),
    "match, 0.3 s": Moment("match", handles_signals, 0.3),
    "match, 2 s": Moment("match", handles_signals, 2.0),
    "compare, the first line": Moment("compare", handles_signals, imports=True),
    "compare, training": Moment("compare", phase("training"), 0.1),
    "compare, a measurement": Moment("compare", line(EVALUATIONS, "{")),
    "build, it begins": Moment("build", exists("run/build.lock")),
    "build, 1 s later": Moment("build", exists("run/build.lock"), 1.0),
}
ENDS = {"none": "128 + N", "stopped": "75", "finished": "75 or 0", "read": "128 + N or 0", "built": "128 + N"}
"""Exit statuses by the state of the run afterwards, as in docs/server.md; "read": commands without training."""
READING = {
    "export": ["policy"],
    "exploit": ["policy", "--share", "50%", "--to", "0.00001%"],
    "evaluate": [],
    "match": ["always-call", "--hands", 5_000_000],
    "view": ["--no-browser", "--port", "0"],
}
"""Commands that train nothing, and their arguments after the run."""


def command_of(kind, folder, template):
    """Write the files of a kind of command to a folder; return (arguments, run directory)."""
    run = folder / "run"
    if kind in READING or kind == "again":
        shutil.copytree(template, run)
        more = READING.get(kind, ["--nodes", ENDLESS])
        return ["resume" if kind == "again" else kind, run, *more], run
    if kind == "cards":
        return ["solve", "hunl-quick", "--run", run], run
    if kind == "build":
        return ["abstraction", "build", "quick", "--out", run], run
    if kind == "strata":
        text = STRATA
    else:
        nodes = 100_000 if kind == "limit" else ENDLESS
        text = LEDUC.format(workers=int(kind == "worker"), nodes=nodes)
        text += COMPARED if kind == "compare" else EXPORT
    (folder / "leduc.toml").write_text(text)
    if kind == "compare":
        return ["compare", folder / "leduc.toml", folder / "out"], folder / "out/runs/a-0"
    return ["solve", folder / "leduc.toml", "--run", run], run


def send(folder, template, moment, numbers, forking=None):
    """Start the command of a moment, and send it signals 0.3 s apart when the moment is reached."""
    moment = MOMENTS[moment]
    arguments, run = command_of(moment.kind, folder, template)
    arguments, process, errors = [*map(str, arguments)], None, folder / "errors"
    if forking is None or moment.imports:
        with errors.open("w") as file:
            process = subprocess.Popen([*MCCFR, *arguments], stdout=file, stderr=file, cwd=folder)
    pid = forking.start(arguments, folder, errors) if process is None else process.pid
    until = time.monotonic() + 300
    while is_running(pid) and time.monotonic() < until and not reached(moment, pid, run):
        time.sleep(0.003)
    time.sleep(moment.delay)
    tables = []
    with suppress(FileNotFoundError):  # before the tables are made or after they are removed
        tables.append(str((run / "live").readlink()))
    sent = time.monotonic()
    for number in numbers:
        if is_running(pid):
            os.kill(pid, number)
        time.sleep(0.3 if len(numbers) > 1 else 0)
    status = forking.status() if process is None else process.wait(timeout=300)
    return Sent(status, errors.read_text(), time.monotonic() - sent, run, tables)


def reached(moment, pid, run):
    """Return True if a moment is reached; files may be removed while this reads them."""
    try:
        return moment.reached(pid, run)
    except OSError:
        return False


def is_running(pid):
    """Return True if a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check(sent, numbers, kind="new"):
    """Check the statements of docs/server.md; return the run's state, or "none" without a run."""
    text = f"{sent.status}: {sent.errors}"
    assert "Traceback" not in sent.errors and "Exception ignored" not in sent.errors, text
    assert not any(Path(path).exists() for path in sent.tables), text
    assert not [*sent.run.parent.glob(".tmp-*")], text
    if kind in READING:
        return check_command_without_training(sent, numbers, kind)
    if kind == "build":
        assert sent.status - 128 in numbers and f"stopped by signal {sent.status - 128}\n" in sent.errors, text
        assert not [*sent.run.rglob(".tmp-*")], text
        return "built"
    given, by = sent.run, f"mccfr resume {sent.run}"
    if kind == "compare":
        given, by = sent.run.parents[1], "the same command"
    if not is_run(sent.run):
        first = sent.status - 128  # Python handles the lowest of pending signals first
        assert first in numbers, text
        assert f"mccfr: stopped by signal {first} before there was a run in {given}" in sent.errors, text
        return "none"
    run = open_run(sent.run)
    status, lines = run_status(run), sent.errors.splitlines()
    assert not (sent.run / "live").is_symlink() and status["process"] is None, text
    if sent.status == 0:
        assert status["state"] == "finished", text
    else:
        assert sent.status == 75, text
        assert any(f"mccfr: stopped by signal {int(number)}" in lines[-1] for number in numbers), text
        assert f"continue with: {by}" in lines[-1], text
        assert status["state"] in ("stopped", "finished"), (status["state"], text)
    reported = max((record["nodes_touched"] for record in run.read(METRICS)), default=0)
    assert status["nodes_touched"] >= reported, (reported, status, text)
    assert problems_of(sent.run) == [], text
    return status["state"]


def check_command_without_training(sent, numbers, kind):
    """Check that a command that trains nothing wrote its whole result, or nothing."""
    text, exported = f"{sent.status}: {sent.errors}", (sent.run.parent / "policy").exists()
    if sent.status == 0:
        assert kind != "view" and exported == (kind in ("export", "exploit")), text
    else:
        first = sent.status - 128
        assert first in numbers and not exported, text
        assert sent.errors.splitlines()[-1].startswith(f"mccfr: stopped by signal {first}"), text
    assert problems_of(sent.run) == [] and run_status(open_run(sent.run))["state"] == "finished", text
    return "read"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Return the directory of a run that can continue."""
    run = make(tmp_path_factory.mktemp("template") / "run", workers=0, checkpoint_seconds=0.3)
    go(run, nodes=20_000)
    return run.directory


def test_a_signal_while_modules_are_imported(tmp_path):
    assert check(send(tmp_path, None, "the first line", (signal.SIGHUP,)), (signal.SIGHUP,)) == "none"


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True])
def test_every_signal_at_every_moment(tmp_path, template, twice):
    """The test prints a table of exit statuses; run it with -s to see it."""

    def run_task(task):
        moment, place = task
        numbers = (SIGNALS[place], SIGNALS[(place + len(moment)) % len(SIGNALS)])[: 1 + twice]
        folder = tmp_path / f"{moment}-{place}".replace(" ", "-")
        folder.mkdir()
        forking = idle.get()
        try:
            sent = send(folder, template, moment, numbers, forking)
        finally:
            idle.put(forking)
        state = check(sent, numbers, MOMENTS[moment].kind)
        assert sent.seconds < STOPS_SECONDS, (moment, sent)
        shutil.rmtree(folder)
        return "128 + N" if sent.status > 128 else str(sent.status), state, sent.status

    idle, tasks = Queue(), [(moment, place) for moment in MOMENTS for place in range(len(SIGNALS))]
    print(f"\n{'':30}" + "".join(f"{each.name:>16}" for each in SIGNALS))
    seen, cells = set(), list[str]()
    with Forking() as one, Forking() as other, ThreadPoolExecutor(2) as pool:
        for each in (one, other):
            idle.put(each)
        for (moment, place), (kind, state, status) in zip(tasks, pool.map(run_task, tasks), strict=True):
            seen.add((kind, state))
            cells.append(f"{status} {state}")
            if place + 1 == len(SIGNALS):
                print(f"{moment:30}" + "".join(f"{cell:>16}" for cell in cells[-len(SIGNALS) :]), flush=True)
    assert seen <= {(kind, state) for state, kinds in ENDS.items() for kind in kinds.split(" or ")}, seen
    assert {kind for kind, _ in seen} == {"128 + N", "75", "0"}


# --- other receivers of signals, and terminals ---


def running(folder, reached, *, workers=1, **how):
    """Start a session of Leduc and wait for a condition; return (process, run directory)."""
    run = folder / "run"
    (folder / "leduc.toml").write_text(LEDUC.format(workers=workers, nodes=ENDLESS) + EXPORT)
    command = [*MCCFR, "solve", "leduc.toml", "--run", str(run)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, **how)
    wait_for(lambda: reached(process.pid, run) or process.poll() is not None, 300)
    return process, run


def test_signals_to_workers_and_an_ignored_hangup_do_not_end_the_run(tmp_path):
    """Signal all processes, as Slurm and systemd may, also during startup; `nohup` ignores SIGHUP."""
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process, run = running(tmp_path, phase("starting"), **ignoring)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(lambda: children.read_text().split(), 300)
    for number in SIGNALS:
        os.kill(int(children.read_text().split()[0]), number)
    process.send_signal(signal.SIGHUP)
    wait_for(lambda: phase("training")(None, run) or phase("writing")(None, run), 300)
    tables = [str((run / "live").readlink())]
    for number in (signal.SIGUSR1, signal.SIGTERM):
        process.send_signal(number)
        time.sleep(0.3)
    errors = process.communicate(timeout=300)[1]
    assert process.returncode == 75 and "worker 0 died" not in errors and "stopped by signal 10" in errors, errors
    assert check(Sent(75, errors, 0.0, run, tables), (signal.SIGUSR1,)) == "stopped"


def test_a_terminal_that_goes_away(tmp_path):
    """Writes to the closed terminal fail, which neither ends the session nor changes its exit status."""
    (tmp_path / "leduc.toml").write_text(LEDUC.format(workers=0, nodes=ENDLESS))
    run, (child, terminal) = tmp_path / "run", pty.fork()
    if child == 0:
        os.execv(sys.executable, [*MCCFR, "solve", str(tmp_path / "leduc.toml"), "--run", str(run)])
    wait_for(lambda: line(JOURNAL, '"manifest"')(None, run), 300)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 75
    status = run_status(open_run(run))
    assert status["state"] == "stopped" and status["checkpoint"] and problems_of(run) == []
