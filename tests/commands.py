"""The command line in this process."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from mccfr.cli import main


class Ended(NamedTuple):
    """How a command ended: exit status, and what it wrote."""

    status: int
    out: str
    err: str


def command(*arguments: object) -> int:
    """Exit status of `mccfr ARGUMENTS`."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code or 0


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ended:
    """The same, with what the command wrote."""
    status = command(*arguments)
    return Ended(status, *capsys.readouterr())


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """What a command answers in JSON."""
    capsys.readouterr()
    ended = call(capsys, *arguments, "--json")
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence with which a command refuses, all that it says."""
    capsys.readouterr()
    ended = call(capsys, *arguments)
    assert ended.status == 2 and not ended.out and ended.err.count("\n") == 1, ended
    return ended.err


def refusing(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> None:
    """What a command refuses as an error: the call of rows of `refusals`."""
    raise ValueError(refusal(capsys, *arguments).strip())
