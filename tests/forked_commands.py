"""Runs `mccfr` commands in processes that are forked from one that has all modules loaded."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from places import ROOT

WARM = """
[game]
name = "leduc"
[run]
workers = 0
nodes = 1000
[export]
out = "policy"
"""


class Forking:
    """Context manager of a process that forks one command after the other.

    warm  also compile or load the kernels that training needs
    """

    def __init__(self, *, warm: bool = True) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # tests/ has a folder mccfr as well
        self._process = subprocess.Popen(
            [sys.executable, __file__, *["warm"] * warm],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> "Forking":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(self, arguments: Sequence[str], folder: Path, errors: Path) -> int:
        """Start a command in a folder, with its messages in a file; return its process id."""
        assert self._process.stdin is not None
        print(json.dumps([arguments, str(folder), str(errors)]), file=self._process.stdin, flush=True)
        return self._number()

    def status(self) -> int:
        """Wait for the command; return its exit status."""
        return self._number()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def _warm_up(cli: ModuleType) -> None:
    """Train and evaluate a run."""
    with TemporaryDirectory() as folder, chdir(folder):
        config = Path(folder, "leduc.toml")
        config.write_text(WARM)
        out, null = [os.dup(number) for number in (1, 2)], os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        for arguments in (["solve", str(config), "--run", f"{folder}/run"], ["evaluate", f"{folder}/run"]):
            with suppress(SystemExit):
                cli.main(arguments)
        os.dup2(out[0], 1), os.dup2(out[1], 2)


def main() -> None:
    """Load all modules, then fork a command for each line of standard input."""
    from mccfr import cli, view  # noqa: F401 - loaded before processes are forked

    if sys.argv[1:]:
        _warm_up(cli)
    for line in sys.stdin:
        arguments, folder, errors = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            for number in (1, 2):
                os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
            sys.argv = ["mccfr", *arguments]
            cli.main()  # ends this process
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
