"""Speed of the sampling kernels and of whole runs, as ratios taken in one sitting.

Machines drift: every comparison alternates its sides and quotes medians.  Run on an otherwise idle machine.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import rich_click as click
from bench_abstraction import abstraction
from bench_blocks import blocks
from bench_checkpoint import checkpoint, lost_updates
from bench_deep import deep
from bench_evaluation import evaluation
from bench_kernel import kernel
from bench_pages import pages
from bench_play import play
from bench_public_chance import public_chance
from bench_resolving import resolving
from bench_settings import settings
from bench_solve import solve
from bench_start import compiling, start
from bench_turns import turns
from bench_vector import vector

from mccfr.config.file import config_from
from mccfr.config.tables import Config
from mccfr.games.catalogue import build_game
from mccfr.runs.directory.run import METRICS
from mccfr.runs.reporter import Silent
from mccfr.runs.session.plan import planned_layout
from mccfr.runs.session.session import train
from mccfr.runs.session.start import start_run
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Solver
from mccfr.tables.layout import private_tables

ROOT = Path(__file__).resolve().parent.parent
ENDGAME = ROOT / "runs" / "games" / "river.txt"


def _config(game: dict[str, Any], **tables: Any) -> Config:
    return config_from({"game": game, **tables}, "the benchmark")


def _subgame(path: Path) -> dict[str, Any]:
    return {"name": "holdem-subgame", "file": str(path.resolve())}


def _solver(game: dict[str, Any], algorithm: str) -> Solver:
    """A warm solver on tables of its own: what one worker does, without processes and files."""
    config = _config(game, solver={"algorithm": algorithm, "discount": "linear"})
    built = build_game(config.game, ROOT)
    solver = algorithm_of(config).solver(built, private_tables(planned_layout(config, built)))
    solver.warm_up()
    _rates(solver, 0.5)
    return solver


def _rates(solver: Solver, seconds: float) -> tuple[float, float]:
    """(nodes, iterations) per second of processor time."""
    nodes = iterations = 0
    began = time.process_time()
    while (spent := time.process_time() - began) < seconds:
        done, touched = solver.run(nodes, 2**62, 2**62)
        nodes, iterations = nodes + touched, iterations + done
    return nodes / spent, iterations / spent


def _alternate(rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """Figures of every side, taken in turn."""
    figures: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, taken in zip(sides, figures, strict=True):
            taken.append(side())
    return figures


def _report(name: str, ours: list[float], other: list[float], unit: str, labels: tuple[str, str]) -> None:
    """Medians of both, and the median, lowest and highest ratio of the pairs."""
    ratios = [a / b for a, b in zip(ours, other, strict=True)]
    click.echo(
        f"{name}: {labels[0]} {median(ours):,.0f} {unit}, {labels[1]} {median(other):,.0f} {unit}, "
        f"ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} pairs)"
    )


rounds_option = click.option("--rounds", default=5, show_default=True, help="Pairs that are taken.")
seconds_option = click.option("--seconds", default=3.0, show_default=True, help="Length of each measurement.")
game_option = click.option(
    "--game", type=click.Path(exists=True, path_type=Path), default=ENDGAME, help="A LibratusEndgames file."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Benchmarks as ratios in one sitting; see docs/performance.md for figures and what they mean."""


@bench.command()
@rounds_option
@seconds_option
def leduc(rounds: int, seconds: float) -> None:
    """External sampling on Leduc: iterations per second of processor time, ours against OpenSpiel's C++."""
    import pyspiel

    solver = _solver({"name": "leduc"}, "external-sampling")
    other = pyspiel.ExternalSamplingMCCFRSolver(pyspiel.load_game("leduc_poker"), seed=1)

    def openspiel() -> float:
        iterations, began = 0, time.process_time()
        while (spent := time.process_time() - began) < seconds:
            for _ in range(100):
                other.run_iteration()
            iterations += 100
        return iterations / spent

    ours, theirs = _alternate(rounds, lambda: _rates(solver, seconds)[1], openspiel)
    _report("Leduc, external sampling", ours, theirs, "iterations/s", ("ours", "OpenSpiel C++"))


@bench.command()
@game_option
@click.option(
    "--yardstick", type=click.Path(exists=True, path_type=Path), required=True, help="The yardstick's C file."
)
@click.option("--sampling", type=click.Choice(["external", "outcome"]), default="external", show_default=True)
@click.option("--tree", default="M", show_default=True, help="The yardstick's betting tree.")
@click.option("--buckets", default=330, show_default=True, help="The yardstick's buckets on each street.")
@rounds_option
@seconds_option
def subgame(game: Path, yardstick: Path, sampling: str, tree: str, buckets: int, rounds: int, seconds: float) -> None:
    """Nodes per second on a hold'em endgame, against a C program that does the same work on its own tree."""
    solver = _solver(_subgame(game), f"{sampling}-sampling")
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "yardstick"
        subprocess.run(["gcc", "-O3", "-march=native", str(yardstick), "-o", str(program)], check=True)
        options = ["--tree", tree, "--buckets", str(buckets), "--seconds", str(seconds), "--sampling", sampling]

        def other() -> float:
            out = subprocess.run([str(program), *options], check=True, capture_output=True, text=True).stdout
            return float(json.loads(out)["nodes_per_second"])

        ours, theirs = _alternate(rounds, lambda: _rates(solver, seconds)[0], other)
    _report(f"{game.name}, {sampling} sampling", ours, theirs, "nodes/s", ("ours", f"C on tree {tree}"))


def _run_rate(document: dict[str, Any]) -> float:
    """Nodes per second of training time of a whole run with processes, tables in shared memory and a checkpoint."""
    config = config_from(document, "the benchmark")
    directory = Path(tempfile.mkdtemp(prefix="mccfr-bench-"))
    try:
        run, game = start_run(config, ROOT, directory / "run", Silent())
        train(run, game, Silent())
        return float(run.read(METRICS)[-1]["nodes_per_second"])
    finally:
        shutil.rmtree(directory)


def _run_document(game: Path, workers: int, seconds: float, table_format: str = "zarr") -> dict[str, Any]:
    return {
        "game": _subgame(game),
        "tables": {"format": table_format},
        "run": {"workers": workers, "seconds": seconds},
        "evaluation": {"every_checkpoint": False, "at_end": False},
    }


@bench.command()
@game_option
@rounds_option
@seconds_option
def workers(game: Path, rounds: int, seconds: float) -> None:
    """Nodes per second of a run with two workers against one, on shared tables without locks."""
    two, one = _alternate(
        rounds,
        lambda: _run_rate(_run_document(game, 2, seconds)),
        lambda: _run_rate(_run_document(game, 1, seconds)),
    )
    _report(f"{game.name}, whole runs", two, one, "nodes/s", ("two workers", "one"))


@bench.command()
@game_option
@rounds_option
@seconds_option
def formats(game: Path, rounds: int, seconds: float) -> None:
    """Nodes per second of a run on HDF5 tables against Zarr."""
    hdf5, zarr = _alternate(
        rounds,
        lambda: _run_rate(_run_document(game, 1, seconds, "hdf5")),
        lambda: _run_rate(_run_document(game, 1, seconds, "zarr")),
    )
    _report(f"{game.name}, table formats", hdf5, zarr, "nodes/s", ("HDF5", "Zarr"))


for command in (
    abstraction,
    kernel,
    vector,
    deep,
    public_chance,
    checkpoint,
    lost_updates,
    settings,
    solve,
    start,
    compiling,
    evaluation,
    pages,
    play,
    resolving,
    turns,
    blocks,
):
    bench.add_command(command)


if __name__ == "__main__":
    bench()
