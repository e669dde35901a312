"""Makes single reads of a command fail with a preloaded library that counts calls.

`sweep` runs commands in processes that are forked from one that has the library and the program's modules loaded.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import cycle, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

ERRORS = (errno.ESTALE, errno.EIO, errno.EACCES, errno.EMFILE)
TIMES = (1, 3, -1)
"""How many times a call fails; -1: always."""
SECONDS = 600
"""Time limit of a trial: the system ends a process that takes longer."""


class Case(msgspec.Struct):
    """A command, and the directory below which its calls fail.

    arguments  `{}` in them is a directory with a fresh copy of the folder of `before` that `watched` begins with
    watched    path in that directory: reads below it fail
    exact      True: the output is the same each time; False: compare only a digest of the newest checkpoint
    run        path in that directory: the run that the command trains, or the abstraction that it builds
    """

    name: str
    arguments: list[str]
    watched: str
    exact: bool = True
    run: str | None = None


class Trial(msgspec.Struct):
    """The result of a command with failing calls: from call `at`, `times` times, with an errno.

    lost  earlier files that are gone or changed
    """

    name: str
    at: int
    times: int
    number: int
    status: int
    out: str
    err: str
    digest: str
    lost: list[str]


class Swept(NamedTuple):
    """Results of one case: without failures, the number of calls, and the trials."""

    sound: Trial
    calls: int
    trials: list[Trial]


def compiled(name: str, folder: Path) -> Path:
    """Compile a preloaded library, `NAME.c`, and return its path; skip the test without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = Path(__file__).with_name(f"{name}.c"), folder / f"{name}.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def sweep(library: Path, before: Path, cases: Sequence[Case], most: int) -> dict[str, Swept]:
    """Let one call of each case fail in each trial: every call, or `most` drawn with a fixed seed.

    The ways to fail, `TIMES` and `ERRORS`, take turns from trial to trial.
    """
    with tempfile.TemporaryDirectory() as folder:
        task = json.dumps([str(before), msgspec.to_builtins(cases), most, folder])
        places = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(places)}
        ended = subprocess.run(
            [sys.executable, __file__], input=task, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        found = json.loads((Path(folder) / "found.json").read_text())
    return {name: Swept(*msgspec.convert(each, tuple[Trial, int, list[Trial]])) for name, each in found.items()}


# --- in the process that has the library loaded ---


def main() -> None:
    """Run all trials of the cases given on standard input."""
    from mccfr import cli  # noqa: F401 - loaded once, before processes are forked

    for module in MODULES:
        import_module(module)
    import_module("in_this_process").install()
    saving = import_module("mccfr.runs.session.checkpointing")
    saving.FINAL_WAITS_SECONDS = (0.0,) * len(saving.FINAL_WAITS_SECONDS)
    before, cases, most, folder = json.load(sys.stdin)
    found, loaded = {}, list[list[str]]()
    drawn, turns = Random(0), cycle(product(TIMES, ERRORS))
    for case in msgspec.convert(cases, list[Case]):
        bench = _Bench(case, Path(before), Path(folder))
        if case.arguments not in loaded:
            bench.load()
            loaded.append(case.arguments)
        sound, calls = bench.tried(0, 0, 0)
        numbers = sorted(drawn.sample(range(1, calls + 1), min(most, calls)))
        trials = [bench.tried(number, *next(turns))[0] for number in numbers]
        found[case.name] = msgspec.to_builtins((sound, calls, trials))
    (Path(folder) / "found.json").write_text(json.dumps(found))


def _status(case: Case, folder: Path) -> int:
    """Run a case's command on the files of a folder, and return its exit status."""
    from mccfr.cli import main as command

    try:
        command([argument.replace("{}", str(folder)) for argument in case.arguments])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


MODULES = (
    "h5py",
    "zarr",
    "mccfr.runs.session.start",
    "mccfr.runs.session.train_and_export",
    "mccfr.runs.session.restoring",
    "mccfr.api.evaluating",
    "mccfr.api.exploiting",
    "mccfr.runs.results.run_export",
    "mccfr.runs.results.tensorboard",
    "mccfr.runs.directory.verification",
    "mccfr.experiments.experiment_runs",
    "storage.zarr_format",
    "storage.hdf5_format",
)


class _Bench:
    """Runs the trials of one case."""

    def __init__(self, case: Case, before: Path, folder: Path) -> None:
        top = Path(case.watched).parts[0]
        self.case, self._before, self._folder, self._work = case, before / top, folder, folder / "work"
        self._saved: dict[str, bytes] = {}
        self._pristine = {f"{top}/{name}": data for name, data in _content(self._before).items()}
        self._library = ctypes.CDLL(None)

    def load(self) -> None:
        """Run the command on a copy in this process, to load modules and kernels before forks."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self._before, Path(folder, self._before.name))
            with contextlib.chdir(folder), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                _status(self.case, Path(folder))

    def tried(self, at: int, times: int, number: int) -> tuple[Trial, int]:
        """Return the trial and its number of calls."""
        if not self._work.exists() or _content(self._work) != self._pristine:
            shutil.rmtree(self._work, ignore_errors=True)
            shutil.copytree(self._before, self._work / self._before.name)
        shutil.rmtree(self._folder / "out", ignore_errors=True)
        (self._folder / "out").mkdir()
        child = os.fork()
        if child == 0:
            self._child(at, times, number)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = {name: (self._folder / f"out/{name}").read_text() for name in ("out", "err")}
        said = self._folder / "out/said"
        calls, digest = json.loads(said.read_text()) if said.exists() else (0, "")
        after = _content(self._work)
        if at == 0 and self.case.run:  # a session writes its limits to its configuration
            self._saved = {name: data for name, data in after.items() if name.endswith("/config.toml")}
        kept = {name: (self._pristine[name], self._saved.get(name)) for name in _kept(self._pristine)}
        lost = sorted(name for name, contents in kept.items() if name not in after or after[name] not in contents)
        return Trial(self.case.name, at, times, number, status, **texts, digest=digest, lost=lost), calls

    def _child(self, at: int, times: int, number: int) -> None:
        status = 99
        signal.alarm(SECONDS)
        try:
            os.chdir(self._folder / "out")
            for descriptor, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
            status = self._run(at, times, number)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _run(self, at: int, times: int, number: int) -> int:
        watched = str(self._work / self.case.watched).encode()
        self._library.shim_arm(watched, ctypes.c_long(at), ctypes.c_long(times), number)
        status = _status(self.case, self._work)
        calls = self._library.shim_count()
        self._library.shim_arm(b"", ctypes.c_long(0), ctypes.c_long(0), 0)
        digest = _digest(self._work / self.case.run) if self.case.run and status == 0 else ""
        Path("said").write_text(json.dumps([calls, digest]))
        return status


def _content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _kept(files: Mapping[str, bytes]) -> Iterator[str]:
    """Return the files that commands never change: no journals, locks, logs, tables, build states or runs."""
    changed = (".jsonl", ".lock", ".txt", "last-evaluation.json", ".csv", ".png", "points.json")
    passing = re.compile(r"/unfinished-|/out/runs/")
    return (name for name in files if not name.endswith(changed) and not passing.search(name))


def _digest(run: Path) -> str:
    """Return the digest of an abstraction, or of the tables and counts of a run's newest checkpoint."""
    from abstraction.buckets import Abstraction, is_abstraction
    from mccfr.runs.directory.run import open_run
    from mccfr.runs.results.checkpoints import find_checkpoint, read_tables

    if is_abstraction(run):
        return str(Abstraction(run).content_hashes())
    checkpoint = find_checkpoint(open_run(run), None)
    tables, found = read_tables(checkpoint), hashlib.sha256()
    for name in sorted(tables):
        found.update(tables[name].tobytes())
    return f"{found.hexdigest()} {checkpoint.state['iterations']}"


def described(trial: Any) -> str:
    """Return a trial as text for messages of assertions."""
    return f"{trial.name}, call {trial.at}, {trial.times} times, {errno.errorcode.get(trial.number)}: {trial}"


if __name__ == "__main__":
    main()
