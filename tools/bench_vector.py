"""Speed of full-width CFR on hold'em endgames: seconds per iteration, threads and memory.

`--yardstick` names a C program that does the same.  Then the two are measured in turn, and each turn gives a ratio of
processor times.  `--march` compiles both sides for another processor, for example one without AVX-512.

One worker is measured in processor time, several in wall time.  Numbers of workers take turns, so that a drift of the
machine affects all of them.  The output has the median and the smallest time.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import rich_click as click
from bench_pairs import half_width
from bench_processor import compiled, machine, make_kernels_for, march_option

from mccfr.config.game_tables import HoldemSubgame
from mccfr.games.game import Game
from mccfr.games.registry import build_game
from mccfr.solvers.public.public_walk import train
from mccfr.solvers.public.vector_cfr import DTYPES, VectorCfr
from mccfr.solvers.variants import PRESETS, variant

ROOT = Path(__file__).resolve().parent.parent
ENDGAME = ROOT / "runs" / "games" / "river.txt"


# --- the C program ---

C_NAMES = {
    **{"cfr": "CFR", "cfr+": "CFR+", "lcfr": "LCFR", "lcfr+": "LCFR+"},
    **{"dcfr": "DCFR_1.5_0_2", "dcfr-pruning": "DCFR_1.5_0.5_2", "nh-lcfr": "NH-LCFR", "nh-dcfr": "NH-DCFR_1.5_0_2"},
    **{"optimistic-lcfr": "Opt-LCFR", "optimistic-dcfr": "Opt-DCFR_1.5_0_2"},
}
"""Names of variants in the C program, by this project's names."""


def c_options(march: str) -> tuple[str, ...]:
    """Return gcc's options for a processor, by gcc's name of it."""
    return f"-march={march}", "-mprefer-vector-width=512", "-ffast-math"


def c_program(source: Path, directory: Path, dtype: str, march: str) -> Path:
    """Compile the C program for a dtype and processor into `directory`; `ValueError` if gcc fails."""
    real = {"float32": "float", "float64": "double"}[dtype]
    return compiled(source, directory / f"yardstick-{dtype}", (*c_options(march), f"-DREAL={real}"))


def theirs(program: Path, file: Path, name: str, iterations: int) -> float:
    """Return the C program's processor seconds per iteration, without evaluations."""
    command = [str(program), str(file), C_NAMES[name], str(iterations), "0"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(out.splitlines()[-1].split(",")[4]) / iterations


def against(
    program: Path, file: Path, game: Game, name: str, dtype: str, rounds: int, seconds: float
) -> dict[str, Any]:
    """Measure one thread of ours and the C program in turn; return median processor seconds and ratio."""
    cfr = VectorCfr(game, variant(name), dtype)
    cfr.iterate(2)
    iterations = max(1, round(seconds / _timed(cfr, 0.1)[1]))
    ours, other = [], []
    for _ in range(rounds):
        began = time.process_time()
        cfr.iterate(iterations)
        ours.append((time.process_time() - began) / iterations)
        other.append(theirs(program, file, name, iterations))
    ratios = [one / c for one, c in zip(ours, other, strict=True)]
    ratio = {"median": median(ratios), "half_width": half_width(ratios), "pairs": rounds}
    return {"dtype": dtype, "processor_seconds": median(ours), "yardstick_seconds": median(other), "ratio": ratio}


# --- iterations ---


class Times(NamedTuple):
    """Seconds per iteration of each round."""

    clock: list[float]
    processor: list[float]


def _timed(cfr: VectorCfr, seconds: float) -> tuple[float, float]:
    """Return (wall, processor) seconds per iteration, over at least one iteration and `seconds`."""
    began, processor, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - began < seconds:
        more = max(1, count // 4)  # several iterations a call, as in a run
        cfr.iterate(more)
        count += more
    return (time.perf_counter() - began) / count, (time.process_time() - processor) / count


def array_bytes(solver: VectorCfr) -> int:
    """Return the bytes of all arrays that a solver holds, each counted once."""
    sizes, todo = dict[int, int](), [*vars(solver).values()]
    for one in todo:  # grows while it is walked
        if isinstance(one, np.ndarray):
            whole = one.base if isinstance(one.base, np.ndarray) else one
            sizes[id(whole)] = whole.nbytes
        elif isinstance(one, Mapping | tuple | list):
            todo.extend(one.values() if isinstance(one, Mapping) else one)
    return sum(sizes.values())


def measure(game: Game, name: str, dtype: str, workers: tuple[int, ...], rounds: int, seconds: float) -> dict[str, Any]:
    """Return memory, and seconds per iteration for each number of workers, measured in turn."""
    solvers = {count: VectorCfr(game, variant(name), dtype, count) for count in workers}
    needed = array_bytes(solvers[max(workers)])
    click.echo(f"  {dtype}: {needed / 1e6:,.1f} MB for {max(workers)} workers", err=True)
    times = {count: Times([], []) for count in workers}
    for cfr in solvers.values():
        cfr.iterate(2)
    for _ in range(rounds):
        for count, cfr in solvers.items():
            for kept, one in zip(times[count], _timed(cfr, seconds), strict=True):
                kept.append(one)
    found: dict[str, Any] = {"variant": name, "dtype": dtype, "memory_bytes": needed}
    found["workers"] = {
        count: {
            "clock_seconds": median(taken.clock),
            "least_clock_seconds": min(taken.clock),
            "least_processor_seconds": min(taken.processor),
        }
        for count, taken in times.items()
    }
    for count in workers[1:]:
        pairs = zip(times[workers[0]].clock, times[count].clock, strict=True)
        ratios = [one / several for one, several in pairs]
        found["workers"][count]["speedup"] = {"median": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    return found


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield a measurement as lines of text."""
    for count, taken in found["workers"].items():
        line = f"  {found['dtype']}, {count} worker{'s' if count > 1 else ''}: {taken['clock_seconds'] * 1e3:.3f} ms an"
        line += f" iteration (least {taken['least_clock_seconds'] * 1e3:.3f} ms"
        line += f", of processor time {taken['least_processor_seconds'] * 1e3:.3f} ms)"
        if "speedup" in taken:
            speedup = taken["speedup"]
            line += f", {speedup['median']:.2f} times as fast ({speedup['lowest']:.2f} to {speedup['highest']:.2f})"
        yield line


def _assembly() -> None:
    """Print the machine code of the training kernel; call it in a new process, where no other is compiled."""
    cfr = VectorCfr(build_game(HoldemSubgame(file=str(ENDGAME)), ROOT), variant("dcfr"))
    cfr.iterate(0)
    print("\n".join(train.dispatcher.inspect_asm().values()))


def assembly_alone() -> str:
    """Return the output of `_assembly` from a new process with an empty cache."""
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"NUMBA_CACHE_DIR": directory}
        command = [sys.executable, str(Path(__file__).resolve())]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT).stdout


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--variant", "name", type=click.Choice(list(PRESETS)), default="dcfr", show_default=True)
@click.option("--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, default=DTYPES, show_default=True)
@click.option("--workers", type=click.IntRange(1), multiple=True, default=(1, 2), show_default=True, help="Threads.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Measurements of each number.")
@click.option("--seconds", default=1.0, show_default=True, help="Length of each measurement.")
@click.option("--yardstick", type=click.Path(exists=True, path_type=Path), help="C source to compare with; needs gcc.")
@march_option
@click.option("--assembly", is_flag=True, help="Print the machine code of the training kernel (float32) and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def vector(
    files: tuple[Path, ...],
    name: str,
    dtypes: tuple[str, ...],
    workers: tuple[int, ...],
    rounds: int,
    seconds: float,
    yardstick: Path | None,
    march: str,
    assembly: bool,
    as_json: bool,
) -> None:
    """Measure seconds per iteration of full-width CFR on hold'em endgames (LibratusEndgames files)."""
    try:
        make_kernels_for(march)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if assembly:
        click.echo(assembly_alone())
        return
    if yardstick is not None:
        _beside(yardstick, march, files, name, dtypes, rounds, seconds, as_json)
        return
    for file in files:
        click.echo(file.name, err=as_json)
        game = build_game(HoldemSubgame(file=str(file.resolve())), ROOT)
        for dtype in dtypes:
            found = measure(game, name, dtype, workers, rounds, seconds)
            click.echo(json.dumps({"file": file.name} | found) if as_json else "\n".join(_lines(found)))


def _beside(
    source: Path,
    march: str,
    files: tuple[Path, ...],
    name: str,
    dtypes: tuple[str, ...],
    rounds: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Print the times of both sides, file by file."""
    if name not in C_NAMES or rounds < 2:
        raise click.UsageError(f"--yardstick takes two --rounds at least, and one of {', '.join(C_NAMES)}")
    if not as_json:
        click.echo(f"{machine()}; one thread; both for {march}; C: gcc -O3 {' '.join(c_options(march))}")
    with tempfile.TemporaryDirectory() as directory:
        for dtype in dtypes:
            try:
                program = c_program(source, Path(directory), dtype, march)
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            for file in files:
                game = build_game(HoldemSubgame(file=str(file.resolve())), ROOT)
                found = against(program, file, game, name, dtype, rounds, seconds)
                if as_json:
                    click.echo(
                        json.dumps({"file": file.name, "variant": name, "machine": machine(), "march": march} | found)
                    )
                    continue
                ratio, needed = found["ratio"], array_bytes(VectorCfr(game, variant(name), dtype))
                ours, other = found["processor_seconds"] * 1e3, found["yardstick_seconds"] * 1e3
                click.echo(
                    f"{file.name}, {dtype}: {ours:.3f} ms an iteration, C {other:.3f} ms, "
                    f"ratio {ratio['median']:.3f} ± {ratio['half_width']:.3f} "
                    f"({rounds} pairs); {needed / 1e6:,.1f} MB"
                )


if __name__ == "__main__":
    _assembly()
