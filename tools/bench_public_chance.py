"""Processor time to a given exploitability on hold'em endgames: public chance sampling beside the other algorithms.

Everything runs in one process, on the kernels and tables of a run.  Strategies are measured exactly, in the real game,
at processor times that grow by a constant factor; measuring does not count.
"""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import rich_click as click

from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.listed import ListedCards
from mccfr.config.file import config_from
from mccfr.config.tables import Config
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.runs.session.plan import planned_layout
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.layout import private_tables

ROOT = Path(__file__).resolve().parent.parent
SOLVERS: dict[str, dict[str, Any]] = {
    "public-chance": {"algorithm": "public-chance-sampling", "discount": "none"},
    "public-chance-dcfr": {"algorithm": "public-chance-sampling", "discount": "dcfr"},
    "public-chance-linear": {"algorithm": "public-chance-sampling", "discount": "linear"},
    "full-width-dcfr": {"algorithm": "cfr", "variant": "dcfr", "dtype": "float32"},
    "full-width-lcfr": {"algorithm": "cfr", "variant": "lcfr", "dtype": "float32"},
    "external": {"algorithm": "external-sampling", "discount": "linear"},
    "external-initial": {"algorithm": "external-sampling", "discount": "initial"},
    "outcome": {"algorithm": "outcome-sampling", "discount": "linear"},
}
FIRST_SECONDS, FACTOR = 0.02, 1.2


@dataclass(frozen=True)
class Point:
    """A strategy on the way: processor seconds and nodes spent, exploitability in the real game."""

    seconds: float
    nodes: int
    exploitability_mbb: float


def share_hands(game: Game, count: int) -> Game:
    """The game with `count` buckets a street and player: on each board, hands are ranked by how many rivers they win.

    A hand's rank on a board is its place among all hands there by the mean of its order on the rivers to come; buckets
    are equal parts of the ranks, the same on every board of a street.
    """
    cards = game.cards
    assert isinstance(cards, ListedCards)
    place = np.argsort(np.argsort(cards.strength, axis=1, kind="stable"), axis=1).astype(np.float64)
    buckets, rivers = [], np.arange(len(cards.board_cards[-1]))
    for street, lossless in enumerate(cards.bucket):
        above = rivers
        for parents in cards.board_parent[:street:-1]:
            above = parents[above]
        numbers = np.full_like(lossless, NO_BUCKET)
        for board in range(lossless.shape[1]):
            mean = place[above == board].mean(axis=0)
            for player in range(2):
                live = np.flatnonzero(lossless[player, board] != NO_BUCKET)
                rank = np.argsort(np.argsort(mean[live], kind="stable"))
                numbers[player, board, live] = rank * count // max(1, len(live))
        buckets.append(numbers)
    counts = np.array([numbers.max(axis=(1, 2)) + 1 for numbers in buckets], np.int64)
    return replace(game, cards=replace(cards, bucket=buckets, buckets=counts))


def _config(file: Path, name: str, seed: int) -> Config:
    document = {"game": {"name": "holdem-subgame", "file": str(file.resolve())}, "solver": SOLVERS[name]}
    return config_from(document | {"solver": SOLVERS[name] | {"seed": seed}}, "the benchmark")


def curve(game: Game, config: Config, target: float, limit: float) -> Iterator[Point]:
    """Solve on fresh tables up to the first strategy at the target or the time limit, in processor seconds."""
    algorithm = algorithm_of(algorithm_of(config).completed(game))
    layout = planned_layout(algorithm.config, game)
    tables = private_tables(layout)
    solver = algorithm.solver(game, tables)
    solver.warm_up()
    spent, nodes, stop = 0.0, 0, FIRST_SECONDS
    while True:
        while spent < stop:
            began = time.process_time()
            nodes += solver.run(nodes, 2**62, 1 if algorithm.traits.axis == "iterations" else 2**62)[1]
            spent += time.process_time() - began
        strategy = algorithm.averages.strategy(game, tables, nodes, solver.state.iterations)
        point = Point(spent, nodes, float(evaluate_exact(game, strategy).exploitability_mbb or math.nan))
        yield point
        if point.exploitability_mbb <= target or spent >= limit:
            return
        stop = spent * FACTOR


def seconds_to(points: list[Point], target: float) -> float | None:
    """Processor seconds at which a curve first meets the target, straight lines between logarithms; None: never."""
    for before, after in zip([None, *points], points, strict=False):
        if after.exploitability_mbb > target:
            continue
        if before is None:
            return after.seconds
        here, there = math.log(before.exploitability_mbb / target), math.log(after.exploitability_mbb / target)
        return before.seconds * (after.seconds / before.seconds) ** (here / (here - there))
    return None


@click.command(name="public-chance")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--target", type=float, required=True, help="Exploitability in mbb/g at which a solver is done.")
@click.option("--limit", default=120.0, show_default=True, help="Processor seconds after which a solver is stopped.")
@click.option(
    "--solver",
    "names",
    type=click.Choice(list(SOLVERS)),
    multiple=True,
    default=("public-chance", "full-width-dcfr", "external"),
    show_default=True,
    help="May be repeated; the first one is what the others are compared with.",
)
@click.option("--buckets", type=click.IntRange(1), help="Hands share so many buckets a street; default: none do.")
@click.option("--seed", "seeds", type=int, multiple=True, default=(0,), show_default=True, help="Of sampled solvers.")
@click.option("--curves", is_flag=True, help="Print every point.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def public_chance(
    file: Path,
    target: float,
    limit: float,
    names: tuple[str, ...],
    buckets: int | None,
    seeds: tuple[int, ...],
    curves: bool,
    as_json: bool,
) -> None:
    """Processor seconds to an exploitability on a hold'em endgame: public chance sampling and other algorithms."""
    game = build_game(_config(file, names[0], 0).game, ROOT)
    if buckets is not None:
        game = share_hands(game, buckets)
    first: dict[int, float | None] = {}
    for name in names:
        for seed in seeds if SOLVERS[name]["algorithm"] != "cfr" else seeds[:1]:
            points = list(curve(game, _config(file, name, seed), target, limit))
            found = seconds_to(points, target)
            first.setdefault(seed, found)
            if as_json:
                row = {"file": file.name, "solver": name, "seed": seed, "buckets": buckets, "target_mbb": target}
                click.echo(json.dumps(row | {"seconds": found, "points": [vars(point) for point in points]}))
                continue
            last = points[-1]
            text = f"{found:.2f} s to {target:,.0f} mbb/g" if found is not None else f"not at {target:,.0f} mbb/g"
            text += f" ({last.exploitability_mbb:,.0f} mbb/g after {last.seconds:.1f} s, {last.nodes:,} nodes)"
            beside = first[seed]
            if beside is not None and name != names[0]:
                text += f", {(found or last.seconds) / beside:.2f} times {'' if found else 'at least '}{names[0]}"
            click.echo(f"{name}, seed {seed}: {text}")
            if curves:
                for point in points:
                    click.echo(
                        f"  {point.seconds:9.3f} s {point.nodes:15,} nodes {point.exploitability_mbb:12.2f} mbb/g"
                    )
