"""Speed of full-width CFR on hold'em endgames: seconds an iteration, threads, memory, and where the time goes.

With a C program that does the same (`--yardstick`), the two take turns, and each turn gives a ratio of processor times.
`--march` makes the code of both sides for another processor than this one: what would be run where AVX-512 is not.

Processor time is quoted for one worker, time on the clock for several.  Workers take turns, so that a drift of the
machine meets all of them; the least time is the machine's at its best, the median what a user sees.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import rich_click as click
from bench_pairs import half_width

from abstraction.kernels.jit import njit
from mccfr.config.games import HoldemSubgame
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.solvers.public.public_walk import train
from mccfr.solvers.public.street_arrays import BettingRound, Traversal, new_scratch
from mccfr.solvers.public.street_walk import ascend, descend, terminals
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
    street = public.boards.weight.shape[0] - 1
    for tree in range(public.trees.street.shape[0]):
        if public.trees.street[tree] == street:
            for board in range(boards[0], boards[1]):
                here = BettingRound(street, tree, board)
                descend(public, traversal, step, here, scratch)
                if phases == 2:
                    terminals(public, traversal.player, here, scratch)
                elif phases > 2:  # which begins with the terminals
                    ascend(public, traversal, step, here, scratch)


def profile(cfr: VectorCfr, rounds: int) -> dict[str, float]:
    """Processor seconds that the phases of an iteration take on the last street, each less the one before.

    Every street tree is given the whole ranges.  Tables are changed.
    """
    public, last = cfr._field, cfr.public.streets - 1
    scratch = new_scratch(public, range(cfr.public.streets), public.reach.dtype)
    boards, step = (public.boards.last[0, 0], public.boards.last[-1, 1]), cfr.variant.step(cfr.iteration + 1)
    seconds = []
    for phases in range(1, 1 + len(PHASES)):
        least = np.inf
        for _ in range(rounds + 1):  # the first one compiles
            began = time.process_time()
            for player in range(2):
                for side in range(2):
                    scratch.by_hand.reach[side, last] = public.reach[player if side == 0 else 1 - player]
                traversal = Traversal(player, cfr.in_place, cfr._views[player], cfr._views[1 - player].basis)
                _last_street(public, traversal, step, scratch, boards, phases)
            least = min(least, time.process_time() - began)
        seconds.append(least)
    return dict(zip(PHASES, np.diff(seconds, prepend=0).tolist(), strict=True))


# --- the C program ---

NATIVE = "native"
"""The name of the processor that this is."""
C_NAMES = {
    **{"cfr": "CFR", "cfr+": "CFR+", "lcfr": "LCFR", "lcfr+": "LCFR+", "lcfr+quadratic": "LCFR+g2"},
    **{"dcfr": "DCFR_1.5_0_2", "dcfr-pruning": "DCFR_1.5_0.5_2", "nh-lcfr": "NH-LCFR", "nh-dcfr": "NH-DCFR_1.5_0_2"},
    **{"optimistic-lcfr": "Opt-LCFR", "optimistic-dcfr": "Opt-DCFR_1.5_0_2"},
}
"""Our variants by the C program's names."""


def compiler(march: str) -> tuple[str, ...]:
    """What makes the C program, for a processor by gcc's name."""
    return "gcc", "-O3", f"-march={march}", "-mprefer-vector-width=512", "-ffast-math"


def make_kernels_for(march: str) -> None:
    """Have kernels made for a processor by LLVM's name, in this process and those it starts; `native`: as in any run.

    ValueError once numba has been imported, which reads the name then.
    """
    if march == NATIVE:
        return
    if "numba" in sys.modules:
        raise ValueError(f"--march {march} comes too late: numba has been imported and makes code for this processor")
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = march, "-prefer-256-bit"  # widest, as shipped


def compiled(source: Path, directory: Path, dtype: str, march: str) -> Path:
    """The C program for a dtype and a processor, compiled into `directory`; ValueError where gcc does not know it."""
    program = directory / f"yardstick-{dtype}"
    real = {"float32": "float", "float64": "double"}[dtype]
    command = [*compiler(march), f"-DREAL={real}", str(source), "-o", str(program), "-lm"]
    made = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if made.returncode:
        errors = [line for line in made.stderr.splitlines() if "error:" in line] or made.stderr.splitlines()
        raise ValueError(f"{' '.join(command[:-4])} ended with status {made.returncode}: {' '.join(errors[:1])}")
    return program


def theirs(program: Path, file: Path, name: str, iterations: int) -> float:
    """Processor seconds an iteration takes the C program: its own figure, without evaluations."""
    command = [str(program), str(file), C_NAMES[name], str(iterations), "0"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(out.splitlines()[-1].split(",")[4]) / iterations


def against(
    program: Path, file: Path, game: Game, name: str, dtype: str, rounds: int, seconds: float
) -> dict[str, Any]:
    """One thread of ours and the C program in turn: medians of processor seconds, and of the ratios of pairs."""
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


def machine() -> str:
    """The processor, its vectors, and whether huge pages are given, as text."""
    facts = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    vectors = [flag for flag in ("avx2", "avx512f") if flag in facts.get("flags", "").split()]
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    huge = pages.read_text().strip() if pages.exists() else "unknown"
    return f"{facts.get('model name', 'unknown processor')} ({', '.join(vectors) or 'no AVX2'}), huge pages: {huge}"


# --- iterations ---


class Times(NamedTuple):
    """Seconds an iteration took, round by round."""

    clock: list[float]
    processor: list[float]


def _timed(cfr: VectorCfr, seconds: float) -> tuple[float, float]:
    """(clock, processor) seconds an iteration takes, over iterations of so many seconds or one."""
    began, processor, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - began < seconds:
        more = max(1, count // 4)  # several at a call, as in a run
        cfr.iterate(more)
        count += more
    return (time.perf_counter() - began) / count, (time.process_time() - processor) / count


def _side_by_side(solvers: Sequence[VectorCfr], seconds: float) -> float:
    """Clock seconds an iteration takes solvers of one thread each that run at the same time, all together."""
    with ThreadPoolExecutor(len(solvers)) as pool:
        taken = pool.map(lambda cfr: _timed(cfr, seconds)[0], solvers)
        return 1 / sum(1 / one for one in taken)


def measure(game: Game, name: str, dtype: str, workers: tuple[int, ...], rounds: int, seconds: float) -> dict[str, Any]:
    """Memory, seconds an iteration by number of workers (taking turns), and the profile of one worker.

    Beside several workers stand so many solvers of one thread each, at the same time: what the processors give.
    """
    made = variant(name)
    needed = memory(game, made, dtype, max(workers))
    click.echo(
        f"  {dtype}: {needed.total_bytes / 1e6:,.1f} MB for {max(workers)} workers, {needed.table_bytes / 1e6:,.1f} MB "
        f"of them tables",
        err=True,
    )
    solvers = {count: VectorCfr(game, made, dtype, count) for count in workers}
    times = {count: Times([], []) for count in workers}
    singles = [VectorCfr(game, made, dtype) for _ in range(max(workers) if len(workers) > 1 else 0)]
    apart: dict[int, list[float]] = {count: [] for count in workers[1:]}
    for cfr in [*solvers.values(), *singles]:
        cfr.iterate(2)
    for _ in range(rounds):
        for count, cfr in solvers.items():
            for kept, one in zip(times[count], _timed(cfr, seconds), strict=True):
                kept.append(one)
            if count in apart:
                apart[count].append(_side_by_side(singles[:count], seconds))
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
        for kind, others in (("speedup", times[workers[0]].clock), ("of_singles", apart[count])):
            ratios = [other / several for other, several in zip(others, times[count].clock, strict=True)]
            found["workers"][count][kind] = {"median": median(ratios), "lowest": min(ratios), "highest": max(ratios)}
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
            share = taken["of_singles"]
            line += f", {share['median']:.2f} of {count} solvers side by side"
            line += f" ({share['lowest']:.2f} to {share['highest']:.2f})"
        yield line
    whole = sum(found["profile"].values())
    parts = [f"{name} {spent / whole:.0%}" for name, spent in found["profile"].items()]
    yield f"    last street {whole * 1e3:.3f} ms: {', '.join(parts)}"


# --- compiling ---


def _compile(kind: str) -> None:
    """What a fresh process does to compile the kernels of a solver, and no others; prints its processor seconds.

    `assembly` prints the training kernel's machine code instead.
    """
    game = build_game(HoldemSubgame(file=str(ENDGAME)), ROOT)
    if kind in ("vector", "assembly"):
        cfr = VectorCfr(game, variant("dcfr"))
        began = time.process_time()
        cfr.iterate(0)
    else:
        from mccfr.solvers.public.public_chance.sampling import PublicChanceSampling

        sampler = PublicChanceSampling(game)
        began = time.process_time()
        sampler.warm_up()
    if kind == "assembly":
        print("\n".join(train.dispatcher.inspect_asm().values()))
    else:
        print(time.process_time() - began)


def compiled_alone(kind: str) -> str:
    """What `_compile` prints in a process of its own with an empty cache."""
    with tempfile.TemporaryDirectory() as directory:
        environment = os.environ | {"NUMBA_CACHE_DIR": directory}
        command = [sys.executable, str(Path(__file__).resolve()), kind]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT).stdout


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--variant", "name", type=click.Choice(list(PRESETS)), default="dcfr", show_default=True)
@click.option("--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, default=DTYPES, show_default=True)
@click.option("--workers", type=click.IntRange(1), multiple=True, default=(1, 2), show_default=True, help="Threads.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Turns of each number of workers.")
@click.option("--seconds", default=1.0, show_default=True, help="Length of each measurement.")
@click.option(
    "--compile", "with_compiling", is_flag=True, help="Also time the compilation of the kernels, cache empty."
)
@click.option("--yardstick", type=click.Path(exists=True, path_type=Path), help="A C program; needs gcc.")
@click.option(
    "--march",
    default=NATIVE,
    show_default=True,
    help="Processor that code is made for on both sides, as gcc and LLVM call it: haswell has AVX2 and no AVX-512.",
)
@click.option("--assembly", is_flag=True, help="Print the machine code of the training kernel (float32) and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def vector(
    files: tuple[Path, ...],
    name: str,
    dtypes: tuple[str, ...],
    workers: tuple[int, ...],
    rounds: int,
    seconds: float,
    with_compiling: bool,
    yardstick: Path | None,
    march: str,
    assembly: bool,
    as_json: bool,
) -> None:
    """Seconds an iteration of full-width CFR on hold'em endgames (LibratusEndgames files) of all hands at once."""
    try:
        make_kernels_for(march)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if assembly:
        click.echo(compiled_alone("assembly"))
        return
    if with_compiling:
        spent = {kind: float(compiled_alone(kind)) for kind in ("vector", "public-chance")}
        text = ", ".join(f"{kind} {one:.1f} s" for kind, one in spent.items())
        click.echo(json.dumps({"compile_seconds": spent}) if as_json else f"compiling: {text}")
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
    """Print what the two sides took, file by file."""
    if name not in C_NAMES or rounds < 2:
        raise click.UsageError(f"--yardstick takes two --rounds at least, and one of {', '.join(C_NAMES)}")
    if not as_json:
        click.echo(f"{machine()}; one thread; both for {march}; C: {' '.join(compiler(march))}")
    with tempfile.TemporaryDirectory() as directory:
        for dtype in dtypes:
            try:
                program = compiled(source, Path(directory), dtype, march)
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
                ratio, needed = found["ratio"], memory(game, variant(name), dtype).total_bytes
                ours, other = found["processor_seconds"] * 1e3, found["yardstick_seconds"] * 1e3
                click.echo(
                    f"{file.name}, {dtype}: {ours:.3f} ms an iteration, C {other:.3f} ms, "
                    f"ratio {ratio['median']:.3f} ± {ratio['half_width']:.3f} "
                    f"({rounds} pairs); {needed / 1e6:,.1f} MB"
                )


if __name__ == "__main__":
    _compile(sys.argv[1])
