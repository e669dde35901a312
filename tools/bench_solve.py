"""`tools/bench solve`: speed of whole `solve` runs divided by that of their kernels alone.

Both do the same work in turn.  The kernels' side has the run's live tables, cards, bucket tables and number of
processes.  Its processes draw deals and call the kernel until they have touched the given number of nodes together.  A
`solve` has in addition a coordinator, counters, a watchdog and a checkpoint.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import rich_click as click
from bench_kernel import CELLS, ENDED, GO, NODES, READY, run_together
from bench_pairs import half_width, solved

from mccfr.config.toml_files import load_config
from mccfr.runs.session.run_plan import planned_layout
from mccfr.runs.session.shared_deck import map_buckets, share_buckets
from mccfr.runs.session.worker import map_tables
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Share
from storage.live_tables import create_live
from storage.mapping import create_cells, map_cells, regions_from_json, regions_to_json

_NO_LIMIT = 2**62
_WARM_SHARE = 0.1  # share of the nodes of a first run, which compiles kernels and caches files


def work(assignment: str, worker: int) -> None:
    """Run one measured process: map the tables as a worker does, wait for the common start, train."""
    document = json.loads(Path(assignment).read_text())
    loaded = load_config(Path(document["config"]), document["overrides"])
    algorithm, game = algorithm_of(loaded), configured_game(loaded, Path(document["config"]).parent)
    layout = planned_layout(loaded, game)
    game, _buckets = map_buckets(game, Path(assignment).parent, algorithm)
    tables = map_tables(layout, regions_from_json(document["regions"]))
    solver = algorithm.solver(game, tables, Share(worker, document["workers"]))
    solver.warm_up()
    block = map_cells(Path(document["cells"]), document["shape"])
    mine, orders, counts = block.cells[1 + worker], block.cells[0], block.cells[1:, NODES]
    mine[READY] = 1
    while not orders[GO]:
        if os.getppid() != document["parent"]:
            sys.exit("the coordinator has ended")
    while (total := int(counts.sum())) < document["nodes"]:
        solver.run(total, document["nodes"] - total, _NO_LIMIT)
        mine[NODES] = solver.state.nodes
    mine[ENDED] = time.perf_counter_ns()


def kernels_alone(config: Path, overrides: tuple[str, ...], nodes: int, workers: int) -> float:
    """Train new tables without a run; return nodes per second of wall time over all processes."""
    loaded = load_config(config, overrides)
    algorithm, game = algorithm_of(loaded), configured_game(loaded, config.parent)
    layout, shape = planned_layout(loaded, game), (1 + workers, CELLS)
    with (
        tempfile.TemporaryDirectory() as directory,
        create_live(layout.specs, format="zarr", link=Path(directory) / "live") as live,
    ):
        _shared = share_buckets(game, live.directory, algorithm)
        block = create_cells(live.directory / "cells", shape)
        document = {
            **{"config": str(config), "overrides": overrides, "nodes": nodes, "workers": workers},
            **{"regions": regions_to_json(live.regions), "cells": str(block.path), "shape": shape},
            **{"parent": os.getpid()},
        }
        assignment = live.directory / "assignment.json"
        assignment.write_text(json.dumps(document))
        began = run_together([sys.executable, str(Path(__file__).resolve()), str(assignment)], workers, block.cells)
        took, total = (int(block.cells[1:, ENDED].max()) - began) / 1e9, int(block.cells[1:, NODES].sum())
        block.close()
    return total / took


@click.command()
@click.argument("config", type=click.Path(exists=True, path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
@click.option("--nodes", default=1_000_000_000, show_default=True, help="Nodes of each run.")
@click.option("--rounds", type=click.IntRange(2), default=5, show_default=True, help="Number of measured pairs.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True)
def solve(config: Path, overrides: tuple[str, ...], nodes: int, rounds: int, workers: int) -> None:
    """Measure the speed of `solve` of CONFIG divided by that of its kernels alone, in wall time.

    The machine must be idle. Both train from zero, and their order alternates. The configuration's abstraction must be
    built.
    """
    solved(config, overrides, max(1, round(_WARM_SHARE * nodes)), workers)
    ratios: list[float] = []
    for number in range(rounds):
        found: dict[str, float] = {}
        for side in ("run", "alone") if number % 2 == 0 else ("alone", "run"):
            if side == "run":
                found[side] = nodes / solved(config, overrides, nodes, workers)[1]
            else:
                found[side] = kernels_alone(config, overrides, nodes, workers)
        ratios.append(found["run"] / found["alone"])
        click.echo(
            f"{number + 1} of {rounds}: {found['run'] / 1e6:.1f} of {found['alone'] / 1e6:.1f} M nodes/s", err=True
        )
    spread = f"{min(ratios):.3f} to {max(ratios):.3f}, {rounds} pairs"
    click.echo(f"a solve / its kernels alone: {median(ratios):.3f} ± {half_width(ratios):.3f} ({spread})")


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
