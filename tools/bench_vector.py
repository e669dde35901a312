"""Speed of full-width CFR on hold'em endgames: seconds an iteration, threads, memory, and where the time goes.

Processor time is quoted for one worker, time on the clock for several.  Workers take turns, so that a drift of the
machine meets all of them; the least time is the machine's at its best, the median what a user sees.
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
from typing import Any, NamedTuple

import numpy as np
import rich_click as click

from abstraction.jit import njit
from mccfr.config.tables import HoldemSubgame
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.solvers.public.street_walk import Traversal, ascend, descend, new_scratch, terminals
from mccfr.solvers.public.vector_cfr import DTYPES, VectorCfr, memory
from mccfr.solvers.variants import PRESETS, variant

ROOT = Path(__file__).resolve().parent.parent
ENDGAME = ROOT / "runs" / "games" / "river.txt"
PHASES = ("way down", "terminals", "way up")
"""Strategies, averages and ranges; sums of ranges, folds and showdowns; values and regrets."""


# --- where the time goes ---


@njit
def _last_street(public, traversal, step, scratch, boards, phases):
    """The first so many phases of a walk of all street trees of the last street on boards[0] .. boards[1]-1."""
    street = public.weight.shape[0] - 1
    for tree in range(public.trees.street.shape[0]):
        if public.trees.street[tree] == street:
            for board in range(boards[0], boards[1]):
                descend(public, traversal, step, street, tree, board, scratch)
                if phases == 2:
                    terminals(public, traversal.player, street, tree, board, scratch)
                elif phases > 2:  # which begins with the terminals
                    ascend(public, traversal, step, street, tree, board, scratch)


def profile(cfr: VectorCfr, rounds: int) -> dict[str, float]:
    """Processor seconds that the phases of an iteration take on the last street, each less the one before.

    Every street tree is given the whole ranges.  Tables are changed.
    """
    public, last = cfr._field, cfr.public.streets - 1
    scratch = new_scratch(public, range(cfr.public.streets), public.reach.dtype)
    boards, step = (public.last_boards[0, 0], public.last_boards[-1, 1]), cfr.variant.step(cfr.iteration + 1)
    seconds = []
    for phases in range(1, 1 + len(PHASES)):
        least = np.inf
        for _ in range(rounds + 1):  # the first one compiles
            began = time.process_time()
            for player in range(2):
                for side in range(2):
                    scratch.hand_reach[side, last] = public.reach[player if side == 0 else 1 - player]
                traversal = Traversal(player, cfr.in_place, cfr._views[player], cfr._views[1 - player].basis)
                _last_street(public, traversal, step, scratch, boards, phases)
            least = min(least, time.process_time() - began)
        seconds.append(least)
    return dict(zip(PHASES, np.diff(seconds, prepend=0).tolist(), strict=True))


# --- iterations ---


class Times(NamedTuple):
    """Seconds an iteration took, round by round."""

    clock: list[float]
    processor: list[float]


def _timed(cfr: VectorCfr, seconds: float) -> tuple[float, float]:
    """(clock, processor) seconds an iteration takes, over iterations of so many seconds or one."""
    began, processor, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - began < seconds:
        cfr.iterate()
        count += 1
    return (time.perf_counter() - began) / count, (time.process_time() - processor) / count


def measure(game: Game, name: str, dtype: str, workers: tuple[int, ...], rounds: int, seconds: float) -> dict[str, Any]:
    """Memory, seconds an iteration by number of workers (taking turns), and the profile of one worker."""
    made = variant(name)
    needed = memory(game, made, dtype, max(workers))
    click.echo(
        f"  {dtype}: {needed.total_bytes / 1e6:,.1f} MB for {max(workers)} workers, {needed.table_bytes / 1e6:,.1f} MB "
        f"of them tables",
        err=True,
    )
    solvers = {count: VectorCfr(game, made, dtype, count) for count in workers}
    times = {count: Times([], []) for count in workers}
    for cfr in solvers.values():
        cfr.iterate(2)
    for _ in range(rounds):
        for count, cfr in solvers.items():
            for kept, one in zip(times[count], _timed(cfr, seconds), strict=True):
                kept.append(one)
    found: dict[str, Any] = {"variant": name, "dtype": dtype, "memory_bytes": needed.total_bytes}
    found["workers"] = {
        count: {
            "clock_seconds": median(taken.clock),
            "least_clock_seconds": min(taken.clock),
            "least_processor_seconds": min(taken.processor),
        }
        for count, taken in times.items()
    }
    for count in workers[1:]:
        ratios = [one / several for one, several in zip(times[workers[0]].clock, times[count].clock, strict=True)]
        found["workers"][count]["speedup"] = {"median": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    found["profile"] = profile(solvers[workers[0]], rounds)
    return found


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """A measurement as lines of text."""
    for count, taken in found["workers"].items():
        line = f"  {found['dtype']}, {count} worker{'s' if count > 1 else ''}: {taken['clock_seconds'] * 1e3:.3f} ms an"
        line += f" iteration (least {taken['least_clock_seconds'] * 1e3:.3f} ms"
        line += f", of processor time {taken['least_processor_seconds'] * 1e3:.3f} ms)"
        if "speedup" in taken:
            speedup = taken["speedup"]
            line += f", {speedup['median']:.2f} times as fast ({speedup['lowest']:.2f} to {speedup['highest']:.2f})"
        yield line
    whole = sum(found["profile"].values())
    parts = [f"{name} {spent / whole:.0%}" for name, spent in found["profile"].items()]
    yield f"    last street {whole * 1e3:.3f} ms: {', '.join(parts)}"


# --- compiling ---


def _compile(kind: str) -> None:
    """What a fresh process does to compile the kernels of a solver, and no others; prints its processor seconds."""
    game = build_game(HoldemSubgame(file=str(ENDGAME)), ROOT)
    if kind == "vector":
        cfr = VectorCfr(game, variant("dcfr"))
        began = time.process_time()
        cfr.iterate(0)
    else:
        from mccfr.solvers.public.public_chance import PublicChanceSampling

        sampler = PublicChanceSampling(game)
        began = time.process_time()
        sampler.warm_up()
    print(time.process_time() - began)


def compile_seconds(kind: str) -> float:
    """Processor seconds that a solver's kernels take to compile, with an empty cache and for one dtype."""
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"NUMBA_CACHE_DIR": directory}
        command = [sys.executable, str(Path(__file__).resolve()), kind]
        out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT).stdout
    return float(out)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--variant", "name", type=click.Choice(list(PRESETS)), default="dcfr", show_default=True)
@click.option("--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, default=DTYPES, show_default=True)
@click.option("--workers", type=click.IntRange(1), multiple=True, default=(1, 2), show_default=True, help="Threads.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Turns of each number of workers.")
@click.option("--seconds", default=1.0, show_default=True, help="Length of each measurement.")
@click.option("--compile", "compiled", is_flag=True, help="Also time the compilation of the kernels, cache empty.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def vector(
    files: tuple[Path, ...],
    name: str,
    dtypes: tuple[str, ...],
    workers: tuple[int, ...],
    rounds: int,
    seconds: float,
    compiled: bool,
    as_json: bool,
) -> None:
    """Seconds an iteration of full-width CFR on hold'em endgames (LibratusEndgames files) of all hands at once."""
    if compiled:
        spent = {kind: compile_seconds(kind) for kind in ("vector", "public-chance")}
        text = ", ".join(f"{kind} {one:.1f} s" for kind, one in spent.items())
        click.echo(json.dumps({"compile_seconds": spent}) if as_json else f"compiling: {text}")
    for file in files:
        click.echo(file.name, err=as_json)
        game = build_game(HoldemSubgame(file=str(file.resolve())), ROOT)
        for dtype in dtypes:
            found = measure(game, name, dtype, workers, rounds, seconds)
            click.echo(json.dumps({"file": file.name} | found) if as_json else "\n".join(_lines(found)))


if __name__ == "__main__":
    _compile(sys.argv[1])
