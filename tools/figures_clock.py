"""A game by every algorithm: exploitability against processor seconds.

Processor time of training alone, in this process and on one core: what else the machine does moves no curve.  Runs note
wall time, so these are no runs; solvers and evaluation are those of runs.  Schedules plan for the iterations that DCFR
does in the same time.
"""

import csv
import io
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mccfr.config.file import config_from, load_document
from mccfr.config.tables import Config
from mccfr.evaluation.exact import evaluate_exact
from mccfr.experiments.definition import AXES
from mccfr.experiments.plot import Panel, can_plot, draw
from mccfr.experiments.table import Curve
from mccfr.games.game import Game
from mccfr.solvers.configured import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.layout import private_tables
from storage import durable

TWIN = Path(__file__).resolve().parent.parent / "runs" / "twin-20.toml"
SECONDS = {"small": 15.0, "paper": 3600.0}
_FIRST, _POINTS = 1.0, 8
_NO_LIMIT = 2**62
_PLANNER = "DCFR(3/2, 0, 2)"

_FULL = {"algorithm": "cfr", "dtype": "float32"}
_SAMPLED = {"discount": "linear", "baseline_rate": 0.5}
SOLVERS: Mapping[str, Mapping[str, Any]] = {
    _PLANNER: {**_FULL, "variant": "dcfr"},
    "CFR+": {**_FULL, "variant": "cfr+"},
    "PCFR+": {**_FULL, "variant": "pcfr+"},
    "DCFR+": {**_FULL, "variant": "dcfr+"},
    "HS-DCFR(15)": {**_FULL, "variant": "hs-dcfr"},
    "public chance sampling": {"algorithm": "public-chance-sampling", "discount": "none"},
    "external sampling, linear": {"algorithm": "external-sampling", "discount": "linear"},
    "outcome sampling, linear": {"algorithm": "outcome-sampling", "discount": "linear"},
    "average strategy sampling": {"algorithm": "average-strategy-sampling", "discount": "linear"},
    "robust sampling, 2 actions": {"algorithm": "robust-sampling", "discount": "linear"},
    "targeted sampling": {"algorithm": "targeted-sampling", "discount": "linear"},
    "external sampling, baselines": {**_SAMPLED, "algorithm": "external-sampling"},
    "outcome sampling, baselines": {**_SAMPLED, "algorithm": "outcome-sampling"},
}
LEDUC_12 = {"name": "leduc", "ranks": 12, "raises": 6, "merge_suits": True}
Point = tuple[float, int, int, float]
"""Processor seconds, iterations, nodes touched, exploitability in chips."""


def twin() -> Mapping[str, Any]:
    """The `[game]` table of the twenty-card twin of hold'em."""
    game: Mapping[str, Any] = load_document(TWIN)["game"]
    return game


def config_of(name: str, game: Mapping[str, Any], horizon: int | None = None) -> Config:
    """The configuration of one of SOLVERS on a game; schedules plan for `horizon` iterations."""
    solver = dict(SOLVERS[name])
    if str(solver.get("variant")).startswith("hs-"):
        solver["horizon"] = horizon
    return config_from({"game": game, "solver": solver}, "the figure")


def trace(config: Config, game: Game, seconds: float, points: int) -> Iterator[Point]:
    """Train for so many processor seconds, and measure at log-spaced points at the first batch that reaches each."""
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
        strategy = algorithm.average(game, tables, nodes, iterations)
        yield spent, iterations, nodes, evaluate_exact(game, strategy).exploitability_chips


def _curve(name: str, found: list[Point]) -> Curve:
    seconds, _, _, chips = (np.array(column, np.float64) for column in zip(*found, strict=True))
    none = np.full(len(found), np.nan)
    ones = np.ones(len(found), np.int64)
    return Curve(name, "exploitability_chips", seconds, dict.fromkeys(AXES.values(), seconds), chips, none, none, ones)


def make_clock(name: str, document: Mapping[str, Any], title: str, seconds: float, out: Path) -> list[str]:
    """Write NAME.csv and NAME.png into `out` after so many processor seconds of each; returns lines for people."""
    out.mkdir(parents=True, exist_ok=True)
    game, horizon = configured_game(config_of(_PLANNER, document), TWIN.parent), None
    found: dict[str, list[Point]] = {}
    for solver in SOLVERS:
        found[solver] = list(trace(config_of(solver, document, horizon), game, seconds, _POINTS))
        if solver == _PLANNER:
            horizon = found[solver][-1][1]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["algorithm", "processor_seconds", "iterations", "nodes_touched", "exploitability_chips"])
    for solver, points in found.items():
        writer.writerows([solver, f"{spent:.4g}", run, nodes, f"{chips:.6g}"] for spent, run, nodes, chips in points)
    durable.replace_file(out / f"{name}.csv", text.getvalue().encode())
    if can_plot():
        curves = [_curve(solver, points) for solver, points in found.items()]
        panel = Panel(f"{title}, processor time of one core", "seconds", "exploitability_chips", curves)
        draw([panel], out / f"{name}.png")
    return [
        f"{solver}: {chips:.4g} chips after {run:,} iterations, {nodes:,} nodes"
        for solver, points in found.items()
        for _, run, nodes, chips in points[-1:]
    ]
