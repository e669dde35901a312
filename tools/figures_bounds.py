"""Plots lower bounds of exploitability of finished runs, over nodes touched."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mccfr import Evaluation, Run
from mccfr.experiments.definition import AXES
from mccfr.experiments.plot import Panel, can_plot, draw
from mccfr.experiments.result_table import Curve, write_csv

BOUNDS = "bounds"
MEASURES = {"lbr": "lbr_mbb", "sampled-br": "sampled_br_mbb"}


def make_bounds(runs: Sequence[Path], out: Path) -> list[str]:
    """Write bounds.csv, and bounds.png with a panel for each method; return lines of text.

    runs  directories with evaluations by the methods of `MEASURES`; each is a curve named after the directory

    Raises `ValueError` if a run has no such evaluation or two have one name, and the errors of `mccfr.Run`.
    """
    names = [run.absolute().name for run in runs]
    if not runs or len(set(names)) < len(names):
        raise ValueError("bounds need runs with names of their own: give each directory with --run DIR")
    found = {name: _points(run) for name, run in zip(names, runs, strict=True)}
    table, lines = [["run", "method", "nodes_touched", "mbb", "low", "high"]], []
    for name, points in found.items():
        for method, curve in points.items():
            nodes, columns = curve.axes["nodes_touched"], zip(curve.mean, curve.low, curve.high, strict=True)
            rows = [[f"{value:.6g}" for value in (count, *row)] for count, row in zip(nodes, columns, strict=True)]
            table += [[name, method, *row] for row in rows]
            lines += [f"{name}: {method}, {row[0]} nodes: {row[1]} mbb/g ({row[2]} to {row[3]})" for row in rows]
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / f"{BOUNDS}.csv", table)
    if can_plot():
        panels = [
            Panel(method, "nodes", measure, [points[method] for points in found.values() if method in points])
            for method, measure in MEASURES.items()
        ]
        draw([panel for panel in panels if panel.curves], out / f"{BOUNDS}.png", 2)
    return lines


def _points(run: Path) -> dict[str, Curve]:
    """Return the curve of each method from a run's evaluations; of repeated ones, the last counts."""
    name, lines = run.absolute().name, Run(run).evaluations()
    found = {}
    for method, measure in MEASURES.items():
        last = {line.nodes_touched: line for line in lines if line.method == method and line.ci95_chips is not None}
        if last:
            found[method] = _curve(name, measure, [last[nodes] for nodes in sorted(last)])
    if not found:
        raise ValueError(f"{run} has no evaluation by {' or '.join(MEASURES)}: name them in [evaluation] method")
    return found


def _curve(name: str, measure: str, lines: Sequence[Evaluation]) -> Curve:
    nodes = np.array([line.nodes_touched for line in lines], np.float64)
    mean, (low, high) = (np.array([line.record[key] for line in lines]).T for key in ("exploitability_mbb", "ci95_mbb"))
    axes = dict.fromkeys(AXES.values(), nodes)
    return Curve(name, measure, nodes, axes, mean, low, high, np.ones(len(nodes), np.int64))
