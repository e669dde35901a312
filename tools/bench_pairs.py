"""`tools/bench pairs`: compares two settings of one configuration by alternate runs.

Other benchmarks use `half_width` and `solved`.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from mccfr.runs.directory.run import METRICS


def half_width(ratios: Sequence[float]) -> float:
    """Return half of a 95 % interval of the median, 1.57·IQR/√n (McGill, Tukey & Larsen 1978)."""
    low, _, high = statistics.quantiles(ratios, method="inclusive")
    return float(1.57 * (high - low) / len(ratios) ** 0.5)


def solved(config: Path, overrides: tuple[str, ...], nodes: int, workers: int) -> tuple[float, float]:
    """Run one `solve` without evaluations in its own processes; return (processor, training) seconds."""
    quiet = ("evaluation.at_nodes=[]", "evaluation.at_end=false", "evaluation.keep=false")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mccfr", "solve", str(config), "--run", f"{folder}/run"]
        command += [
            "--workers",
            str(workers),
            "--nodes",
            str(nodes),
            *(part for o in (*quiet, *overrides) for part in ("--set", o)),
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stderr is not None
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise click.ClickException(errors.decode())
        last = json.loads((Path(folder) / "run" / METRICS).read_text().splitlines()[-1])
    return usage.ru_utime + usage.ru_stime, float(last["training_seconds"])


@click.command()
@click.argument("config", type=click.Path(exists=True, path_type=Path))
@click.option("--one", multiple=True, metavar="TABLE.KEY=VALUE", help="Settings of one side; may be repeated.")
@click.option("--other", multiple=True, metavar="TABLE.KEY=VALUE", help="Settings of the other side.")
@click.option("--nodes", default=200_000_000, show_default=True, help="Nodes of each run.")
@click.option("--rounds", type=click.IntRange(2), default=30, show_default=True, help="Number of measured pairs.")
@click.option("--workers", default=1, show_default=True)
def pairs(config: Path, one: tuple[str, ...], other: tuple[str, ...], nodes: int, rounds: int, workers: int) -> None:
    """Run `solve` of CONFIG under two settings in turn, and print ratios of their times, one / other.

    They are of training time, and of processor time without that of a run of one node. The order of the two alternates.
    The configuration's abstraction must be built.
    """
    sides = (one, other)
    for side in sides:
        solved(config, side, max(1, nodes // 10), workers)  # compiles kernels and caches files before measuring
    start = [statistics.median(solved(config, side, 1, workers)[0] for _ in range(3)) for side in sides]
    ratios: list[tuple[float, float]] = []
    for number in range(rounds):
        found: dict[int, tuple[float, float]] = {}
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            found[side] = solved(config, sides[side], nodes, workers)
        (cpu, trained), (other_cpu, other_trained) = found[0], found[1]
        ratios.append(((cpu - start[0]) / (other_cpu - start[1]), trained / other_trained))
        click.echo(f"{number + 1} of {rounds}: {ratios[-1][0]:.3f} of processor time", err=True)
    for name, column in zip(("processor time", "training time"), zip(*ratios, strict=True), strict=True):
        click.echo(f"{name}: {statistics.median(column):.3f} ± {half_width(column):.3f} ({len(column)} pairs)")
