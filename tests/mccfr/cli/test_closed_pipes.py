"""Commands whose output pipe is closed by its reader, as in `mccfr evaluate RUN | true`.

Shows:

* Commands exit with status 0 when their output's pipe is closed (test_a_closed_output_pipe_is_no_error,
  test_a_closed_pipe_in_a_shell_is_no_error)
"""

import os
import subprocess
import sys

import pytest
from commands import command
from places import RUNS

from mccfr.common import signals


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unread") / "run"
    assert command("solve", RUNS / "kuhn.toml", "--run", folder, "--iterations", 10, "--workers", 0) == 0
    assert command("export", folder, folder.with_name("policy")) == 0
    return folder


PRINTING = (
    "--help",
    "abstraction --help",
    "plan kuhn",
    "status RUN",
    "evaluate RUN --json",
    "query POLICY b --hand K",
    "compare CONFIG OUT --set compare.last=4",
)


@pytest.mark.parametrize("line", PRINTING)
def test_a_closed_output_pipe_is_no_error(run, tmp_path, monkeypatch, capsys, line):
    places = {"RUN": run, "POLICY": run.with_name("policy"), "CONFIG": RUNS / "kuhn.toml", "OUT": tmp_path / "out"}
    ours, its = os.pipe()
    os.close(ours)
    with monkeypatch.context() as patch, os.fdopen(its, "w", buffering=1) as piped:
        patch.setattr(sys, "stdout", piped)
        try:
            assert command(*(places.get(word, word) for word in line.split())) == 0
            assert signals.is_unread(piped)
        finally:
            os.dup2(nowhere := os.open(os.devnull, os.O_WRONLY), its)  # buffered output goes there
            os.close(nowhere)
    assert "Broken pipe" not in capsys.readouterr().err


def test_a_closed_pipe_in_a_shell_is_no_error(run):
    """Run the whole process in a shell; a full disk remains an error."""
    program = f"{sys.executable} -m mccfr status {run}"
    for behind, status, text in (("| true", "0", ""), ("2>&1 | true", "0", ""), ("> /dev/full", "1", "No space left")):
        script = f"{program} {behind}; echo status ${{PIPESTATUS[0]}}"
        ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert ended.stdout == f"status {status}\n" and text in ended.stderr, ended
        assert bool(text) is bool(ended.stderr)
