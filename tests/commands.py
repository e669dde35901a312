"""The command line in this process."""

from typing import NamedTuple

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
