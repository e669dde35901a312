"""Speed of the sampling kernels on a betting tree of hold'em, compared with a C program.

Both do the same work in turn.  Each turn gives a ratio of nodes per second of processor time, so that other programs on
the machine do not distort it.

Simulated deals replace the cards on both sides: buckets follow a hidden strength with noise.  Everything else is
as in a run, with live tables in shared memory, mapped by new processes, and huge pages.  Player 0 is the small blind as
in the C program, because the number of nodes per iteration depends on who traverses first.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import rich_click as click
from bench_pairs import half_width
from bench_processor import compiled, machine, make_kernels_for, march_option

from abstraction.kernels.jit import njit
from mccfr.cards.deals import Deals, new_deals
from mccfr.common.rng import new_stream, uniform
from mccfr.config.game_tables import Menu
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.menu import MenuGame, menu_targets
from mccfr.solvers.sampling.external.external_packed import external_sampling_packed, new_packed_worklist
from mccfr.solvers.sampling.outcome.outcome_algorithm import tree_depth
from mccfr.solvers.sampling.outcome.outcome_packed import outcome_sampling_packed
from mccfr.solvers.sampling.outcome.paths import DEALS_TOGETHER, new_paths
from mccfr.tables.table_layout import TableArrays, TableLayout, kernel_arrays, make_layout
from mccfr.trees.compiled import MAX_PACKED_ACTIONS, CompiledTree, pack
from storage.live_tables import create_live
from storage.mapping import create_cells, map_cells, map_regions, regions_from_json, regions_to_json

STACK, SMALL_BLIND, BIG_BLIND = 20_000, 50, 100
PREFLOP_BUCKETS = 169
EPSILON = 0.5  # as in the C program
BATCH_DEALS, BATCH_NODES = 4096, 200_000  # as in a run
WARM_SECONDS, WATCH_SECONDS = 0.5, 0.03
READY, GO, NODES, ITERATIONS, ROWS, ENDED, PROCESSOR = range(7)  # cells of a process; GO is in the coordinator's row 0
CELLS = 8


@dataclass(frozen=True)
class BettingGame:
    """A betting tree and the buckets [8] of each block: the parts of a game that the table layout needs."""

    tree: CompiledTree
    buckets: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rates:
    """Rates per second over all processes, from the common start to the last end."""

    nodes_per_second: float
    iterations_per_second: float
    rows_updated_per_second: float
    processor_share: float  # processor time over wall time; well below 1 on a busy machine

    @property
    def by_processor(self) -> float:
        """Return nodes per second of processor time, as on an idle machine, over all processes."""
        return self.nodes_per_second / self.processor_share


def betting_game(buckets: int) -> BettingGame:
    """Return the game of menu M, as the C program calls it, with unlimited numbers of bets.

    The first bet of a street is half the pot, the pot or all-in; later ones are the pot or all-in.
    """
    targets = menu_targets(Menu(first=("0.5p", "1p", "allin"), later=("1p", "allin")), MenuGame(STACK, BIG_BLIND))
    rules = BettingRules((SMALL_BLIND, BIG_BLIND), (0, 1, 1, 1), targets, STACK, BIG_BLIND, (0, 3, 1, 1))
    return BettingGame(build_tree(rules), np.array([PREFLOP_BUCKETS] * 2 + [buckets] * 6, np.int64))


def table_layout(game: BettingGame) -> TableLayout:
    """Return the layout of the tables, with float32 strategy sums as in the C program."""
    return make_layout(game)  # type: ignore[arg-type]


@njit
def _reflected(x):
    x = -x if x < 0 else x
    return 1.9999999 - x if x >= 1 else x


@njit
def simulated_deals(rng, buckets, deals):
    """Fill a batch of deals in place: a hidden strength for each player, with noise on earlier streets."""
    players = deals.strength.shape[1]
    for k in range(deals.bucket.shape[0]):
        result = 0.0
        for player in range(players):
            seen = uniform(rng)
            if players == 2:
                result = seen if player == 0 else result - seen
            else:
                deals.strength[k, player] = np.int32(seen * 1e9)
            for street in range(3, -1, -1):
                block = players * street + player
                if street < 3:
                    seen = _reflected(seen + (0.3 if street > 0 else 0.4) * (uniform(rng) - 0.5))
                deals.bucket[k, block] = np.int32(seen * buckets[block])
        deals.result[k] = np.sign(result)


@njit
def random_numbers(rng, cells):
    """Fill a table in place with numbers in [-1000, 500), of which two thirds are negative."""
    for i in range(cells.shape[0]):
        cells[i] = uniform(rng) * 1500.0 - 1000.0


class TimedPlayer:
    """Runs batches of iterations on given tables, as a worker of a run does."""

    def __init__(self, sampling: str, game: BettingGame, arrays: TableArrays, worker: int) -> None:
        self._tree, self._arrays, self._buckets = pack(game.tree), arrays, game.buckets
        dtype = arrays.regret.dtype
        if sampling == "external":
            self._kernel: Any = external_sampling_packed
            self._scratch: Any = new_packed_worklist(game.tree, dtype)
            self._extra: tuple[float, ...] = ()
        else:
            self._kernel = outcome_sampling_packed
            self._scratch = new_paths(DEALS_TOGETHER, tree_depth(game.tree), MAX_PACKED_ACTIONS, 8, dtype)
            self._extra = (EPSILON,)
        self._rng, self._deal_rng = new_stream(1, worker), new_stream(2, worker)
        self._deals: Deals = new_deals(BATCH_DEALS, 4, game.tree.players)
        self._next = BATCH_DEALS
        self._weight = 1.0

    def run(self) -> npt.NDArray[np.int64]:
        """Run one batch; return [3] nodes touched, iterations, table rows updated."""
        if self._next == BATCH_DEALS:
            simulated_deals(self._deal_rng, self._buckets, self._deals)
            self._next = 0
        limits, rows = np.array([self._next, BATCH_DEALS, BATCH_NODES]), int(self._scratch.updated[0])
        iterations, nodes = self._kernel(
            self._tree, self._arrays, self._deals, limits, self._weight, self._rng, self._scratch, *self._extra
        )
        self._next += iterations
        return np.array([nodes, iterations, self._scratch.updated[0] - rows])


def work(assignment: str, worker: int) -> None:
    """Run one measured process, from mapping the tables to its results in the shared cells.

    It warms up, and waits for the common start before it measures.
    """
    document = json.loads(Path(assignment).read_text())
    game = betting_game(document["buckets"])
    mapping = map_regions(regions_from_json(document["regions"]), writable=True, populate=True)
    arrays = kernel_arrays(table_layout(game), {"float32": mapping.flat}, mapping.offsets)
    player, total = TimedPlayer(document["sampling"], game, arrays, worker), np.zeros(3, np.int64)
    player.run()  # compiles the kernels
    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        player.run()
    block = map_cells(Path(document["cells"]), document["shape"])
    mine, orders = block.cells[1 + worker], block.cells[0]
    mine[READY] = 1
    while not orders[GO]:
        if os.getppid() != document["parent"]:
            sys.exit("the coordinator has ended")
    processor, stop = time.process_time_ns(), orders[GO] + int(document["seconds"] * 1e9)
    while (now := time.perf_counter_ns()) < stop:
        total += player.run()
    mine[NODES], mine[ITERATIONS], mine[ROWS] = total
    mine[ENDED], mine[PROCESSOR] = now, time.process_time_ns() - processor


def run_together(command: Sequence[str], processes: int, cells: npt.NDArray[np.int64]) -> float:
    """Run measured processes from a common start to their end; return the start in nanoseconds."""
    workers = [subprocess.Popen([*command, str(i)]) for i in range(processes)]
    try:
        while not cells[1:, READY].all():
            if any(worker.poll() is not None for worker in workers):
                raise RuntimeError("a measured process died")
            time.sleep(0.001)
        cells[0, GO] = time.perf_counter_ns()
        ends = [worker.wait() for worker in workers]
        if any(ends):
            raise RuntimeError("a measured process died")
    finally:
        for worker in workers:
            worker.kill()
    return int(cells[0, GO])


def ours(sampling: str, buckets: int, seconds: float, processes: int) -> Rates:
    """Measure this project's kernels on new tables of random numbers."""
    specs = table_layout(betting_game(buckets)).specs
    shape = (1 + processes, CELLS)
    with (
        tempfile.TemporaryDirectory() as directory,
        create_live(specs, format="zarr", link=Path(directory) / "live") as live,
    ):
        tables = map_regions(live.regions, writable=True, populate=True)
        random_numbers(new_stream(0, 0), tables.flat)
        block = create_cells(live.directory / "cells", shape)
        document = {
            **{"sampling": sampling, "buckets": buckets, "seconds": seconds, "parent": os.getpid()},
            **{"regions": regions_to_json(live.regions), "cells": str(block.path), "shape": shape},
        }
        assignment = Path(directory) / "assignment.json"
        assignment.write_text(json.dumps(document))
        command = [sys.executable, str(Path(__file__).resolve()), str(assignment)]
        began = run_together(command, processes, block.cells)
        took, total = (int(block.cells[1:, ENDED].max()) - began) / 1e9, block.cells[1:].sum(axis=0)
        block.close()
        tables.close()
    nodes, iterations, rows = (float(total[cell]) / took for cell in (NODES, ITERATIONS, ROWS))
    return Rates(nodes, iterations, rows, float(total[PROCESSOR]) / 1e9 / took / processes)


def theirs(program: Path, sampling: str, buckets: int, seconds: float, processes: int) -> float:
    """Return the C program's nodes per second of processor time on the same tree, over all processes."""
    options = {"tree": "M", "buckets": buckets, "seconds": seconds, "processes": processes, "sampling": sampling}
    command = [str(program), *(text for name, value in options.items() for text in (f"--{name}", str(value)))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        share = _share_of_workers(running, seconds)
        assert running.stdout is not None
        found = json.loads(running.stdout.read())
    return float(found["nodes_per_second"]) / share


def _share_of_workers(running: subprocess.Popen[str], seconds: float) -> float:
    """Return mean processor time over wall time of the C program's processes.

    It covers the last `seconds` before they end, and reads the system's counters while they run.
    """
    seen: dict[str, list[tuple[float, float]]] = {}
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    while running.poll() is None:
        with contextlib.suppress(OSError):  # a process may just have ended
            for child in children.read_text().split():
                spent = float(Path(f"/proc/{child}/schedstat").read_text().split()[0])
                seen.setdefault(child, []).append((time.perf_counter(), spent * 1e-9))
        time.sleep(WATCH_SECONDS)
    if running.returncode or not seen:
        raise RuntimeError("the C program died")
    shares = []
    for samples in seen.values():
        last, ended = samples[-1]
        first, began = next(sample for sample in samples if sample[0] >= last - seconds)
        shares.append((ended - began) / (last - first))
    return sum(shares) / len(shares)


def _ratios(some: Sequence[float], others: Sequence[float]) -> dict[str, float | int]:
    ratios = [a / b for a, b in zip(some, others, strict=True)]
    spread = {"lowest": min(ratios), "highest": max(ratios), "half_width": half_width(ratios)}
    return {"median": median(ratios), **spread, "pairs": len(ratios)}


def measure(
    program: Path | None, sampling: str, buckets: int, seconds: float, processes: int, rounds: int
) -> dict[str, Any]:
    """Measure both sides in turn for `rounds` rounds; return medians and ratios.

    With several processes it also measures one process of this project's kernels.

    program  the C program; None: no comparison
    """
    rates: list[Rates] = []
    other: list[float] = []
    single: list[float] = []
    for _ in range(rounds):
        rates.append(ours(sampling, buckets, seconds, processes))
        if program is not None:
            other.append(theirs(program, sampling, buckets, seconds, processes))
        if processes > 1:
            single.append(ours(sampling, buckets, seconds, 1).by_processor)
    columns = [asdict(rate) for rate in rates]
    found: dict[str, Any] = {"sampling": sampling, "buckets": buckets, "processes": processes}
    found["table_bytes"] = table_layout(betting_game(buckets)).nbytes
    found |= {name: median(column[name] for column in columns) for name in columns[0]}
    nodes = [rate.by_processor for rate in rates]
    if other:
        found["yardstick_nodes_per_processor_second"] = median(other)
        found["ratio_to_yardstick"] = _ratios(nodes, other)
    if single:
        found["ratio_to_one_process"] = _ratios(nodes, single)
    return found


def _sentence(found: dict[str, Any]) -> str:
    """Return a measurement as one line of text."""
    plural = "es" if found["processes"] > 1 else ""
    parts = [
        f"{found['sampling']} sampling, tables of {found['table_bytes'] / 1e9:.1f} GB, {found['processes']} process"
        f"{plural}: {found['nodes_per_second'] / 1e6:.1f} M nodes/s, "
        f"{found['iterations_per_second'] / 1e3:.0f} k iterations/s, "
        f"{found['rows_updated_per_second'] / 1e6:.1f} M rows updated/s"
    ]
    for key, name in (("ratio_to_yardstick", "C"), ("ratio_to_one_process", "one process")):
        if key in found:
            ratio = found[key]
            spread = f"{ratio['lowest']:.2f} to {ratio['highest']:.2f}, {ratio['pairs']} pairs"
            parts.append(f"ratio to {name} {ratio['median']:.3f} ± {ratio['half_width']:.3f} ({spread})")
    if found["processor_share"] < 0.97:
        parts.append(f"the machine is busy: the kernels had only {found['processor_share']:.0%} of the time")
    return "; ".join(parts)


@click.command()
@click.option(
    "--yardstick", type=click.Path(exists=True, path_type=Path), help="The C program to compare with; needs gcc."
)
@click.option("--sampling", type=click.Choice(["external", "outcome"]), default="external", show_default=True)
@click.option(
    "--buckets",
    multiple=True,
    default=(330, 3_300, 26_000),
    show_default=True,
    help="Buckets on flop, turn and river: tables of 0.1, 1 and 8 GB.  May be repeated.",
)
@click.option("--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="On one set of tables.")
@click.option("--rounds", type=click.IntRange(2), default=5, show_default=True, help="Number of measured pairs.")
@click.option("--seconds", default=3.0, show_default=True, help="Length of each measurement.")
@march_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def kernel(
    yardstick: Path | None,
    sampling: str,
    buckets: tuple[int, ...],
    processes: int,
    rounds: int,
    seconds: float,
    march: str,
    as_json: bool,
) -> None:
    """Measure nodes per second of the kernels on a tree of hold'em, in turn with a C program."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            make_kernels_for(march)
            program = yardstick and compiled(yardstick, Path(directory) / "yardstick", (f"-march={march}",))
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        if not as_json:
            click.echo(f"{machine()}; both for {march}")
        for count in buckets:
            found = measure(program, sampling, count, seconds, processes, rounds)
            click.echo(json.dumps(found) if as_json else _sentence(found))


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
