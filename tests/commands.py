"""Runs `mccfr` commands in this process and in child processes."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from forked_commands import Forking

from mccfr.cli import main
from mccfr.cli.group import cli

REMOVED = re.compile(r"^mccfr: removed the live tables of a process that died: /dev/shm/.*\n", re.MULTILINE)


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
    """Run a command; return its exit status and output, without messages about removed live tables."""
    status = command(*arguments)
    out, err = capsys.readouterr()
    return Ended(status, out, REMOVED.sub("", err))


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
    """Run a command that must fail, and raise its message; for rows of `refusals`."""
    raise ValueError(refusal(capsys, *arguments).strip())


def options(group: click.Group = cli, names: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Option]]:
    """Yield (command, option) of each option of all commands."""
    for name, each in group.commands.items():
        if isinstance(each, click.Group):
            yield from options(each, (*names, name))
        else:
            found = (one for one in each.get_params(click.Context(each)) if isinstance(one, click.Option))
            yield from ((" ".join((*names, name)), option) for option in found)


@contextmanager
def processes(folder: Path) -> Iterator[Callable[..., int]]:
    """Yield a function that runs a command as a forked process in a folder and prints its output."""
    printed = folder / "printed"
    with Forking(warm=False) as forking:

        def run(*arguments: object) -> int:
            printed.unlink(missing_ok=True)
            forking.start([str(argument) for argument in arguments], folder, printed)
            status = forking.status()
            print(printed.read_text(encoding="utf-8"))
            return status

        yield run
