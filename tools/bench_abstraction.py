"""Speed of card abstractions: every stage apart, k-means beside scikit-learn's, the look-up of a deal's buckets.

Figures of a prototype on an idle machine of two cores stand beside ours.  Compiling (or loading from the cache) comes
first and is timed apart.  k-means and scikit-learn take turns on the same points, weights and first centres.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
import rich_click as click
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from abstraction.boards import BOARD_COUNTS, board_classes, used_slots
from abstraction.cards import COMBO_COUNT
from abstraction.clustering.assign import nearest_centres
from abstraction.clustering.kmeans import start, start_from, step
from abstraction.clustering.points import DistinctPoints, Problem, clustering_problem, distinct_points
from abstraction.histograms import DEFAULT_BINS, cumulative, equity_histograms
from abstraction.lookup import HOLDEM, bucket_tables, fill_buckets, fill_results
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.strength import preflop_strengths, river_strengths
from mccfr.cards.deals import new_deals
from mccfr.cards.deck_deals import draw_cards, draw_holdem_deals, holdem_deal_arrays
from mccfr.rng import DEALS

ROOT = Path(__file__).resolve().parent.parent
PROTOTYPE_SECONDS = {"river strengths": 1.4, "flop histograms": 3.6, "turn histograms": 1.8}
PROTOTYPE_LLOYD_SECONDS = {(1000, "l2"): 0.7}
PROTOTYPE_LOOKUP_NS = 290.0
_OCHS_BOARDS = 1024  # described at a time: 43 MB
_DEALS = 4096

Result = TypeVar("Result")


class Stopwatch:
    """Seconds of each stage, the best of several rounds: on the clock, and of processor time over all threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}

    def time(self, stage: str, work: Callable[[], Result]) -> Result:
        """Do the work and note how long it took, unless an earlier round took less."""
        click.echo(f"{stage} ...", err=True)
        began, cpu_began = time.perf_counter(), time.process_time()
        result = work()
        spent, cpu_spent = time.perf_counter() - began, time.process_time() - cpu_began
        self.seconds[stage] = min(spent, self.seconds.get(stage, spent))
        self.cpu_seconds[stage] = min(cpu_spent, self.cpu_seconds.get(stage, cpu_spent))
        return result

    def rows(self) -> list[dict[str, Any]]:
        """One row for each stage, with its share of all and the prototype's figure where there is one."""
        total = sum(self.seconds.values())
        return [
            {"stage": stage, "seconds": spent, "cpu_seconds": self.cpu_seconds[stage], "share": spent / total}
            | _beside(spent, PROTOTYPE_SECONDS.get(stage))
            for stage, spent in self.seconds.items()
        ]


def _beside(ours: float, prototype: float | None) -> dict[str, float]:
    return {} if prototype is None else {"prototype": prototype, "ratio_to_prototype": ours / prototype}


# --- features ---


def _points(counts: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Cumulative histograms of all used flop slots, and how many hands each stands for."""
    classes = board_classes(3)
    used = used_slots(classes.boards)
    weights = np.broadcast_to(classes.multiplicity[:, None], used.shape)
    return cumulative(counts[used]), weights[used].astype(np.int64)


def _ochs(clusters: NDArray[np.int16], workers: int, boards: int = BOARD_COUNTS[5]) -> None:
    for first in range(0, boards, _OCHS_BOARDS):
        ochs_features(clusters, first, min(first + _OCHS_BOARDS, boards), workers=workers)


def _features(watch: Stopwatch, workers: int) -> DistinctPoints:
    """Time every kind of feature; returns the distinct flop points."""
    river = watch.time("river strengths", lambda: river_strengths(workers=workers))
    counts = watch.time("flop histograms", lambda: equity_histograms(river, 3, workers=workers))
    watch.time("turn histograms", lambda: equity_histograms(river, 4, workers=workers))
    classes = watch.time(
        "OCHS clusters", lambda: opponent_clusters(preflop_strengths(river=river, workers=workers), 8, 0)
    )
    watch.time("OCHS river", lambda: _ochs(classes, workers))
    points, weights = watch.time("flop points", lambda: _points(counts))
    return watch.time("distinct flop points", lambda: distinct_points(points, weights))


def _compile(workers: int) -> float:
    """Call everything once on little data; seconds."""
    began = time.perf_counter()
    river_strengths(0, 1)
    preflop_strengths(0, 1)
    _ochs(np.arange(169, dtype=np.int16) % 8, workers, 1)
    river = np.zeros((BOARD_COUNTS[5], COMBO_COUNT), np.uint16)
    for cards in (3, 4):
        equity_histograms(river, cards, 0, 1)
    points = np.random.default_rng(0).random((1000, DEFAULT_BINS), np.float32)
    merged = distinct_points(points, np.ones(len(points), np.int64))
    for distance in ("l2", "emd"):
        problem = clustering_problem(merged.points, merged.weights, distance, workers)
        step(problem, start_from(problem, start(problem, 40).centres))
    return time.perf_counter() - began


# --- k-means ---


def _clocks() -> NDArray[np.float64]:
    """Seconds on the clock, and of processor time over all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def _ours_per_iteration(problem: Problem, centres: NDArray[np.float32], iterations: int) -> NDArray[np.float64]:
    """Both kinds of seconds of one of Lloyd's iterations after the first."""
    state = step(problem, start_from(problem, centres))
    began = _clocks()
    for _ in range(iterations):
        state = step(problem, state)
    return (_clocks() - began) / iterations


def _sklearn_per_iteration(problem: Problem, centres: NDArray[np.float32], iterations: int) -> NDArray[np.float64]:
    """The same of scikit-learn, as the difference of two fits: so that what it does once does not count."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    def fit(most: int) -> NDArray[np.float64]:
        model = KMeans(len(centres), init=centres, n_init=1, algorithm="lloyd", max_iter=most, tol=0.0)
        began = _clocks()
        with threadpool_limits(problem.workers):
            model.fit(problem.points, sample_weight=problem.weights)
        return _clocks() - began

    once = fit(1)
    return (fit(1 + iterations) - once) / iterations


def _lloyd(merged: DistinctPoints, k: int, workers: int, rounds: int, iterations: int) -> Iterator[dict[str, Any]]:
    """Seconds of an iteration by L2, beside scikit-learn's in turn, and by EMD."""
    problems = {name: clustering_problem(merged.points, merged.weights, name, workers) for name in ("l2", "emd")}
    click.echo(f"k-means, k = {k} ...", err=True)
    centres = start(problems["l2"], k).centres
    _sklearn_per_iteration(clustering_problem(centres, None, "l2", workers), centres[:2].copy(), 1)  # loads it
    sides = (_ours_per_iteration, _sklearn_per_iteration)
    taken = np.array([[side(problems["l2"], centres, iterations) for side in sides] for _ in range(rounds)])
    ours, theirs = np.median(taken, axis=0).tolist()
    faster = taken[:, 1] / taken[:, 0]
    yield {
        "k": k,
        "distance": "l2",
        "seconds": ours[0],
        "cpu_seconds": ours[1],
        "scikit_learn_seconds": theirs[0],
        "scikit_learn_cpu_seconds": theirs[1],
        "times_as_fast": faster[:, 0].tolist(),
        "times_as_fast_by_cpu": faster[:, 1].tolist(),
    } | _beside(ours[0], PROTOTYPE_LLOYD_SECONDS.get((k, "l2")))
    seconds, cpu_seconds = np.median([sides[0](problems["emd"], centres, iterations) for _ in range(rounds)], axis=0)
    yield {"k": k, "distance": "emd", "seconds": float(seconds), "cpu_seconds": float(cpu_seconds)}


# --- look-up ---


def _random_table(cards: int) -> NDArray[np.uint16]:
    """Buckets [boards, 1326] from little memory: what they are does not matter, where they lie does."""
    boards = BOARD_COUNTS.get(cards, 1)
    values = np.random.default_rng(cards).integers(0, 60_000, boards + COMBO_COUNT, np.uint16)
    return as_strided(values, (boards, COMBO_COUNT), (2, 2), writeable=False)


def _lookup(rounds: int, batches: int = 100) -> dict[str, float]:
    """Nanoseconds of processor time for a deal and its parts, on deals that are new each time; the best round."""
    arrays = holdem_deal_arrays(bucket_tables([_random_table(cards) for cards in HOLDEM]))
    deals, state = new_deals(_DEALS, len(HOLDEM)), np.zeros(4, np.uint64)
    cards = np.zeros((batches, _DEALS, 9), np.int8)

    def draw(batch: int) -> None:
        draw_cards(np.uint64(0), np.uint64(0), DEALS, batch * _DEALS, _DEALS, state, cards[batch])

    def whole(batch: int) -> None:
        draw_holdem_deals(arrays, np.uint64(1), np.uint64(0), batch * _DEALS, _DEALS, state, deals)

    parts: dict[str, Callable[[int], None]] = {
        "nine cards": draw,
        "both strengths": lambda batch: fill_results(arrays.evaluator, cards[batch], _DEALS, 5, deals.result),
        "eight buckets": lambda batch: fill_buckets(arrays.buckets, cards[batch], _DEALS, deals.bucket),
        "whole deal": whole,
    }
    best = dict.fromkeys(parts, float("inf"))
    for work in parts.values():
        work(0)
    for _ in range(rounds):
        for part, work in parts.items():
            began = time.process_time()
            for batch in range(batches):
                work(batch)
            best[part] = min(best[part], (time.process_time() - began) / (batches * _DEALS) * 1e9)
    return best


# --- whole builds ---


def _build(recipe: Path, workers: int) -> list[dict[str, Any]]:
    """Seconds and share of each stage of a build in a process and a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="mccfr-bench-") as directory:
        out = Path(directory) / "abstraction"
        command = [sys.executable, "-m", "mccfr", "abstraction", "build", str(recipe.resolve()), "--out", str(out)]
        began = time.perf_counter()
        subprocess.run([*command, "--workers", str(workers)], cwd=ROOT, check=True)
        total = time.perf_counter() - began
        stages = [json.loads(line) for line in (out / "times.jsonl").read_text().splitlines()]
    other = total - sum(stage["seconds"] for stage in stages)
    stages.append({"stage": "start, imports, compiling", "seconds": other})
    return [{**stage, "share": stage["seconds"] / total} for stage in [*stages, {"stage": "all", "seconds": total}]]


# --- command ---


def _seconds(row: dict[str, Any], name: str) -> str:
    """The columns that stages and iterations share."""
    share = f"{row['share']:7.1%}" if "share" in row else " " * 7
    cpu = f"{row['cpu_seconds']:9.2f} s of processor time" if "cpu_seconds" in row else ""
    prototype = f"   prototype {row['prototype']:.1f} s: {row['ratio_to_prototype']:.2f}" if "prototype" in row else ""
    return f"{name:28}{row['seconds']:9.2f} s{share}{cpu}{prototype}"


def _stage_line(row: dict[str, Any]) -> str:
    return _seconds(row, row["stage"])


def _lloyd_line(row: dict[str, Any]) -> str:
    text = _seconds(row, f"k = {row['k']:,}, {row['distance']}")
    if "times_as_fast" not in row:
        return text
    times, by_cpu = row["times_as_fast"], row["times_as_fast_by_cpu"]
    other = _seconds({"seconds": row["scikit_learn_seconds"], "cpu_seconds": row["scikit_learn_cpu_seconds"]}, "")
    return (
        f"{text}\n{'    scikit-learn':28}{other[28:]}   ours {median(times):.2f} times as fast ({min(times):.2f} to "
        f"{max(times):.2f}, {len(times)} pairs), {median(by_cpu):.2f} by processor time"
    )


def _stages(workers: int, rounds: int, iterations: int, bucket_numbers: tuple[int, ...]) -> dict[str, Any]:
    """Everything but whole builds, as the command's JSON."""
    compiling, watch = _compile(workers), Stopwatch()
    for _ in range(rounds):
        merged = _features(watch, workers)
    lloyd = [row for k in bucket_numbers for row in _lloyd(merged, k, workers, rounds, iterations)]
    problem = clustering_problem(merged.points, merged.weights, "l2", workers)
    k = max(bucket_numbers)
    seeds = watch.time(f"seeding, k = {k:,}", lambda: start(problem, k))
    watch.time(
        f"assignment, k = {k:,}",
        lambda: nearest_centres(problem.points, seeds.centres, problem.metric, problem.workers),
    )
    look_up = _lookup(rounds)
    return {
        "workers": workers,
        "compile_seconds": compiling,
        "stages": watch.rows(),
        "flop_points": len(merged.points),
        "lloyd": lloyd,
        "deal_nanoseconds": look_up | _beside(look_up["eight buckets"], PROTOTYPE_LOOKUP_NS),
    }


@click.command()
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Threads, scikit-learn's too.")
@click.option(
    "--rounds", type=click.IntRange(1), default=2, show_default=True, help="Times that everything is measured."
)
@click.option(
    "--iterations", type=click.IntRange(1), default=5, show_default=True, help="Of Lloyd's algorithm in a measurement."
)
@click.option(
    "--buckets",
    "-k",
    type=click.IntRange(1),
    multiple=True,
    default=(200, 1000),
    show_default=True,
    help="Numbers of buckets.",
)
@click.option("--build", type=click.Path(exists=True, path_type=Path), help="Time a build of this recipe instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def abstraction(
    workers: int, rounds: int, iterations: int, buckets: tuple[int, ...], build: Path | None, as_json: bool
) -> None:
    """Card abstractions stage by stage, k-means against scikit-learn's, and the buckets of a deal in nanoseconds.

    Features and deals: the best of --rounds; k-means: medians, both sides in turn. Ratios to a prototype are of times
    on the clock and mean something on an idle machine only; processor time is summed over threads. Takes some minutes
    and 4 GB.
    """
    if build is not None:
        rows = _build(build, workers)
        click.echo(json.dumps(rows) if as_json else "\n".join(map(_stage_line, rows)))
        return
    found = _stages(workers, rounds, iterations, buckets)
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(f"compiling, or loading what was compiled: {found['compile_seconds']:.1f} s; {workers} threads")
    click.echo("\n".join(map(_stage_line, found["stages"])))
    click.echo(f"an iteration of Lloyd's over {found['flop_points']:,} distinct flop points:")
    click.echo("\n".join(map(_lloyd_line, found["lloyd"])))
    deal = found["deal_nanoseconds"]
    parts = ", ".join(f"{part} {deal[part]:.0f} ns" for part in ("nine cards", "both strengths", "eight buckets"))
    click.echo(
        f"a deal: {deal['whole deal']:.0f} ns; {parts} "
        f"(prototype {PROTOTYPE_LOOKUP_NS:.0f} ns, {deal['ratio_to_prototype']:.2f}x)"
    )


if __name__ == "__main__":
    abstraction()
