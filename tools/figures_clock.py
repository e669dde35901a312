"""Compares all algorithms on a game: exploitability over processor seconds.

It measures the processor time of training alone, on one core, so that other programs do not distort it.  Runs record
wall time only, so this tool calls solvers and evaluation directly.  Schedules with a horizon plan for the iterations
that DCFR does in the same time.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mccfr.config.run_tables import Config
from mccfr.config.toml_files import config_from, load_document
from mccfr.evaluation.exact import evaluate_exact
from mccfr.experiments.definition import AXES
from mccfr.experiments.plot import Panel, can_plot, draw
from mccfr.experiments.result_table import Curve, geometric_mean, write_csv
from mccfr.games.game import Game
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.table_layout import private_tables

TWIN = Path(__file__).resolve().parent.parent / "runs" / "twin-20.toml"
SECONDS = {"small": 15.0, "paper": 3600.0}
_FIRST, POINTS = 1.0, 8
_NO_LIMIT = 2**62
_PLANNER = "DCFR(3/2, 0, 2)"

_FULL = {"algorithm": "cfr", "dtype": "float32"}
_PRUNED = {"discount": "linear", "negative_regret_pruning": True, "prune_after_nodes": 10_000_000}
_PRUNE_BELOW, _FLOOR = 15.0, 15.5  # pruning threshold and floor in stacks; hold'em's defaults at 200 big blinds
SOLVERS: Mapping[str, Mapping[str, Any]] = {
    _PLANNER: {**_FULL, "variant": "dcfr"},
    "CFR+": {**_FULL, "variant": "cfr+"},
    "PCFR+": {**_FULL, "variant": "pcfr+"},
    "DCFR+": {**_FULL, "variant": "dcfr+"},
    "HS-DCFR(15)": {**_FULL, "variant": "hs-dcfr"},
    "public chance sampling": {"algorithm": "public-chance-sampling", "discount": "none"},
    "external sampling, linear": {"algorithm": "external-sampling", "discount": "linear"},
    "external sampling, pruning": {**_PRUNED, "algorithm": "external-sampling"},
    "outcome sampling, linear": {"algorithm": "outcome-sampling", "discount": "linear"},
}
LEDUC_12 = {"name": "leduc", "ranks": 12, "raises": 6, "merge_suits": True}
Point = tuple[float, int, int, float]
"""Processor seconds, iterations, nodes touched, exploitability in chips."""


def twin() -> Mapping[str, Any]:
    """Return the `[game]` table of the twenty-card twin of hold'em."""
    game: Mapping[str, Any] = load_document(TWIN)["game"]
    return game


def config_of(
    name: str, game: Mapping[str, Any], horizon: int | None = None, seed: int = 0, stack: float = 200.0
) -> Config:
    """Return the configuration of one of SOLVERS on a game.

    horizon  number of iterations for which schedules plan
    stack    big blinds, or chips in a game without blinds, which set the pruning threshold and the regret floor
    """
    solver = {**SOLVERS[name], "seed": seed}
    if solver.get("negative_regret_pruning"):
        solver |= {"prune_below_bb": _PRUNE_BELOW * stack, "floor_bb": _FLOOR * stack}
    if str(solver.get("variant")).startswith("hs-"):
        solver["horizon"] = horizon
    return config_from({"game": game, "solver": solver}, "the figure")


def trace(config: Config, game: Game, seconds: float, points: int) -> Iterator[Point]:
    """Train for `seconds` of processor time and yield a `Point` at each of `points` log-spaced times.

    A point is measured after the first batch that reaches its time.
    """
    algorithm = algorithm_of(algorithm_of(config).completed(game))
    tables = private_tables(algorithm.layout(game))
    solver = algorithm.solver(game, tables)
    solver.warm_up()
    spent, iterations, nodes = 0.0, 0, 0
    for point in np.geomspace(min(_FIRST, seconds), seconds, points):
        while spent < point:
            began = time.process_time()
            run, touched = solver.run(nodes, _NO_LIMIT, _NO_LIMIT)
            spent += time.process_time() - began
            iterations, nodes = iterations + run, nodes + touched
        strategy = algorithm.averages.strategy(game, tables, nodes, iterations)
        yield spent, iterations, nodes, evaluate_exact(game, strategy).exploitability_chips


def _curve(name: str, found: list[list[Point]]) -> Curve:
    """Return the curve of an algorithm's traces, with geometric means over seeds.

    found  one trace for each seed
    """
    seconds, chips = (
        np.array([geometric_mean([run[point][column] for run in found]) for point in range(len(found[0]))]).T
        for column in (0, 3)
    )
    count = np.full(chips.shape[1], len(found))
    return Curve(name, "exploitability_chips", seconds[0], dict.fromkeys(AXES.values(), seconds[0]), *chips, count)


def _traced(
    document: Mapping[str, Any], seconds: float, seeds: int, points: int, names: Sequence[str]
) -> dict[str, list[list[Point]]]:
    """Return the traces of each algorithm by name, one for each seed; one if it is deterministic."""
    game, horizon = configured_game(config_of(_PLANNER, document), TWIN.parent), None
    stack = 1.0 if game.tree.put_in is None else float(game.tree.put_in.max()) / (game.big_blind_chips or 1.0)
    found: dict[str, list[list[Point]]] = {}
    for solver in names:
        tried = range(seeds) if algorithm_of(config_of(solver, document, horizon)).traits.seeded else range(1)
        found[solver] = [
            list(trace(config_of(solver, document, horizon, seed, stack), game, seconds, points)) for seed in tried
        ]
        if solver == _PLANNER:
            horizon = found[solver][0][-1][1]
    return found


def make_clock(
    name: str,
    document: Mapping[str, Any],
    title: str,
    seconds: float,
    out: Path,
    seeds: int = 1,
    *,
    points: int = POINTS,
    only: str | None = None,
) -> list[str]:
    """Write NAME.csv and NAME.png into `out`; return lines of text.

    seconds  processor time of each algorithm
    only     text that the names of the algorithms must contain; `ValueError` if none does
    """
    names = [solver for solver in SOLVERS if only is None or only in solver]
    if not names:
        raise ValueError(f"no algorithm has {only!r} in its name; they are {', '.join(SOLVERS)}")
    out.mkdir(parents=True, exist_ok=True)
    found = _traced(document, seconds, seeds, points, names)
    rows = [
        [solver, seed, f"{spent:.4g}", run, nodes, f"{chips:.6g}"]
        for solver, runs in found.items()
        for seed, one in enumerate(runs)
        for spent, run, nodes, chips in one
    ]
    columns = "algorithm", "seed", "processor_seconds", "iterations", "nodes_touched", "exploitability_chips"
    write_csv(out / f"{name}.csv", [columns, *rows])
    curves = {solver: _curve(solver, runs) for solver, runs in found.items()}
    if can_plot():
        panel = Panel(f"{title}, processor time of one core", "seconds", "exploitability_chips", [*curves.values()])
        draw([panel], out / f"{name}.png")
    return [_line(solver, found[solver], curve) for solver, curve in curves.items()]


def _line(solver: str, runs: list[list[Point]], curve: Curve) -> str:
    """Return chips at the first, middle and last point, with intervals if there are several seeds."""
    shown = []
    for point in (0, len(curve.point) // 2, len(curve.point) - 1):
        spread = f" ({curve.low[point]:.3g} to {curve.high[point]:.3g})" if len(runs) > 1 else ""
        shown.append(f"{curve.mean[point]:.3g} chips{spread} after {curve.point[point]:.2g} s")
    _, iterations, nodes, _ = runs[0][-1]
    return f"{solver}: {', '.join(shown)}; {iterations:,} iterations, {nodes:,} nodes"
