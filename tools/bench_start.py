"""`tools/bench start` and `compiling`: what a process of ours costs before it works, and what it compiles first.

Whole commands are measured, by the processor time of the process and of those it waited for, with bytecode and compiled
kernels on disk, as everybody has them from the second time on.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import rich_click as click

from abstraction.kernels.jit import watch_compiling
from mccfr.cli import main

ROOT = Path(__file__).resolve().parent.parent
KUHN = ROOT / "runs" / "kuhn.toml"


def _commands(scratch: Path) -> dict[str, list[str]]:
    """Arguments of each command that is measured, by its name; OUT stands for a fresh path."""
    run, policy = str(scratch / "run"), str(scratch / "policy")
    solve = ["solve", str(KUHN), "--run", "OUT", "--workers"]
    return {
        "--version": ["--version"],
        "--help": ["--help"],
        "status": ["status", run],
        "query": ["query", policy, "", "--hand", "K"],
        "export": ["export", run, "OUT"],
        "evaluate": ["evaluate", run],
        "solve, no worker": [*solve, "0"],
        "solve, one worker": [*solve, "1"],
        "solve, two workers": [*solve, "2"],
    }


def _spent(clone: Path, scratch: Path, arguments: list[str]) -> float:
    """Processor seconds of a command of the program in `clone`, processes of its own included."""
    out = tempfile.mkdtemp(dir=scratch) + "/out"
    environment = {**os.environ, "PYTHONPATH": str(clone), "PYTHONPYCACHEPREFIX": str(scratch / "bytecode")}
    environment |= {"NUMBA_CACHE_DIR": str(scratch / "kernels"), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "mccfr", *(out if argument == "OUT" else argument for argument in arguments)]
    process = subprocess.Popen(command, cwd=scratch, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise click.ClickException(f"{' '.join(command)}: {said.decode()}")
    return usage.ru_utime + usage.ru_stime


def _prepare(clone: Path, scratch: Path) -> dict[str, list[str]]:
    """A run and a policy to look at, and everything on disk that a second call finds there; the commands."""
    scratch.mkdir()
    commands = _commands(scratch)
    _spent(clone, scratch, [*commands["solve, no worker"][:3], str(scratch / "run")])
    _spent(clone, scratch, ["export", str(scratch / "run"), str(scratch / "policy")])
    for arguments in commands.values():
        _spent(clone, scratch, arguments)
    return commands


@click.command()
@click.option("--other", type=click.Path(exists=True, path_type=Path), help="Another clone, to compare with.")
@click.option("--rounds", default=11, show_default=True, help="Times that every command is run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def start(other: Path | None, rounds: int, as_json: bool) -> None:
    """Processor seconds of whole commands on Kuhn poker, most of it starting; in turn with those of another clone."""
    clones = [ROOT, *([] if other is None else [other.resolve()])]
    with tempfile.TemporaryDirectory() as folder:
        scratches = [Path(folder) / str(number) for number in range(len(clones))]
        sides = [_prepare(*side) for side in zip(clones, scratches, strict=True)]
        for name in sides[0]:
            taken: list[list[float]] = [[] for _ in clones]
            for _ in range(rounds):
                for clone, scratch, commands, seconds in zip(clones, scratches, sides, taken, strict=True):
                    seconds.append(_spent(clone, scratch, commands[name]))
            found = {"command": name, "seconds": median(taken[0])}
            text = f"{name:20} {median(taken[0]):5.2f} s ({min(taken[0]):.2f} to {max(taken[0]):.2f})"
            if other is not None:
                ratios = [a / b for a, b in zip(*taken, strict=True)]
                found |= {"other_seconds": median(taken[1]), "ratio": median(ratios)}
                text += f", other {median(taken[1]):5.2f} s, ratio {median(ratios):.2f} ({rounds} pairs)"
            click.echo(json.dumps(found) if as_json else text)


class _Compiled:
    """Hears of every kernel that numba compiles: its name, the types it takes, seconds of its own, and how deep."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, float]] = []
        self._open: list[float] = []  # seconds of those inside, of each compilation under way
        self._began: list[float] = []

    def on_start(self, _: object) -> None:
        """Take the time."""
        self._open.append(0.0)
        self._began.append(time.process_time())

    def on_end(self, ended: Any) -> None:
        """Note what it took without what was compiled inside."""
        spent, inside = time.process_time() - self._began.pop(), self._open.pop()
        if self._open:
            self._open[-1] += spent
        function, taken = ended.data["dispatcher"].py_func, ended.data["args"]
        self.lines.append((f"{function.__module__}.{function.__qualname__}", str(taken), spent - inside))


def _lines(arguments: list[str]) -> Iterator[str]:
    """Run a command of the program in this process; one JSON list for each kernel it compiled."""
    heard = _Compiled()
    watch_compiling(heard.on_start, heard.on_end)
    try:
        main(arguments)
    except SystemExit as ended:
        if ended.code:
            raise
    yield from map(json.dumps, heard.lines)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--types", is_flag=True, help="Show the types of the arguments.")
@click.option("--least", default=0.1, show_default=True, help="Seconds of its own from which a kernel is listed.")
def compiling(arguments: tuple[str, ...], types: bool, least: float) -> None:
    """What a command compiles from an empty cache: every kernel, and processor seconds of its own.

    ARGUMENTS are those of the program.  Only what its first process compiles is seen: give `solve` no workers.

    Example: tools/bench compiling solve runs/kuhn.toml --run kuhn-run --workers 0
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, __file__, *arguments]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise click.ClickException("the command has failed")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    for name, taken, seconds in sorted(found, key=lambda line: -line[2]):
        if seconds >= least:
            click.echo(f"{seconds:6.2f} s  {name}" + (f"  {taken}" if types else ""))
    click.echo(f"{sum(line[2] for line in found):6.2f} s  {len(found)} kernels with their parts, one for each types")


if __name__ == "__main__":
    for line in _lines(sys.argv[1:]):
        print(line)
