"""Runs `mccfr` commands in this process and in child processes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mccfr.cli import main


class Ended(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: str
    err: str


def command(*arguments: object) -> int:
    """Run `mccfr ARGUMENTS` and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code or 0


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ended:
    """Run a command and return its exit status and output."""
    status = command(*arguments)
    return Ended(status, *capsys.readouterr())


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """Run a command and return its JSON output."""
    capsys.readouterr()
    ended = call(capsys, *arguments, "--json")
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must fail, and return its error message."""
    capsys.readouterr()
    ended = call(capsys, *arguments)
    assert ended.status == 2 and not ended.out and ended.err.count("\n") == 1, ended
    return ended.err


def refusing(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command that must fail, as the call of rows of `refusals`."""
    raise ValueError(refusal(capsys, *arguments).strip())


_FORKING = """
import json, os, sys
import mccfr.cli.group
from mccfr.cli import main

for line in sys.stdin:
    sys.argv = ["mccfr", *json.loads(line)]
    if (child := os.fork()) == 0:
        file = os.open("printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(file, stream)
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@contextmanager
def processes(folder: Path) -> Iterator[Callable[..., int]]:
    """Run each command as a forked process in a folder, without user modules; print its output here.

    One process, which has imported the program only, is forked for each, because a start is slow.
    """
    python = [sys.executable, "-P", "-c", _FORKING]  # -P: the folder is no place where modules are found
    with subprocess.Popen(python, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None

        def run(*arguments: object) -> int:
            print(json.dumps([str(argument) for argument in arguments]), file=process.stdin, flush=True)
            status = int(process.stdout.readline())
            print((folder / "printed").read_text(encoding="utf-8"))
            return status

        yield run
        process.stdin.close()
