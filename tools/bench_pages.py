"""`tools/bench pages`: sampling on tables in huge pages of a process's own against tables in shared memory, in turn."""

import statistics
import tempfile
import time
from pathlib import Path

import rich_click as click

from mccfr.config.file import load_config
from mccfr.runs.session.plan import planned_layout
from mccfr.runs.session.shared_deck import own_buckets, share_buckets
from mccfr.runs.session.worker import map_tables
from mccfr.solvers.configured import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Solver
from mccfr.tables.layout import private_tables
from storage.live import create_live
from storage.pages import huge_bytes, huge_zeros

_NO_LIMIT = 2**62


def _nodes_per_second(solver: Solver, seconds: float) -> float:
    """By processor time of this thread."""
    before, began = solver.state.nodes, time.thread_time()
    while (spent := time.thread_time() - began) < seconds:
        solver.run(solver.state.nodes, _NO_LIMIT, _NO_LIMIT)
    return (solver.state.nodes - before) / spent


@click.command()
@click.argument("config", type=click.Path(exists=True, path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="TABLE.KEY=VALUE", help="Override one key of the config.")
@click.option("--rounds", default=7, show_default=True, help="Pairs that are taken.")
@click.option("--seconds", default=2.0, show_default=True, help="Processor time of each measurement.")
def pages(config: Path, overrides: tuple[str, ...], rounds: int, seconds: float) -> None:
    """Nodes a second of processor time that one worker touches, as in each kind of pool; ratio huge / shared.

    Both solvers train on from where they were, on bucket tables of their own kind of memory. The abstraction must be
    built.
    """
    made = load_config(config, overrides)
    algorithm, game = algorithm_of(made), configured_game(made, config.parent)
    layout = planned_layout(made, game)
    with (
        tempfile.TemporaryDirectory() as folder,
        create_live(layout.specs, format="zarr", link=Path(folder) / "live") as live,
    ):
        tables = private_tables(layout, huge_zeros), map_tables(layout, live.regions)
        shared, _block = share_buckets(game, live.directory, algorithm)
        solvers = algorithm.solver(own_buckets(game, algorithm), tables[0]), algorithm.solver(shared, tables[1])
        for solver, kept in zip(solvers, tables, strict=True):
            solver.warm_up()
            _nodes_per_second(solver, seconds)
            click.echo(
                f"{layout.nbytes / 1e6:,.0f} MB of tables, {huge_bytes(kept.values()) / 1e6:,.0f} MB in huge pages"
            )
        pairs = []
        for number in range(rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {side: _nodes_per_second(solvers[side], seconds) for side in order}
            pairs.append((found[0], found[1]))
    ratios = [huge / shared for huge, shared in pairs]
    speeds = [statistics.median(column) / 1e6 for column in zip(*pairs, strict=True)]
    click.echo(
        f"huge {speeds[0]:.1f}, shared {speeds[1]:.1f} M nodes/s; ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}, {rounds} pairs)"
    )
