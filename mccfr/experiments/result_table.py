"""Measurements of an experiment as rows, and means over seeds as curves; both are written as CSV.

A point is a number of iterations, nodes or training seconds at which the experiment measures each run.  The measurement
is at the first iteration boundary at or after the point.  On the axis "seconds" it is when training for that many
seconds has ended.  Points at which a run was not measured have no row, so that variants are compared at common points
only.

Exploitability, NashConv and nodes per iteration are averaged by geometric means over seeds.  The 95 % interval is that
of the logarithms' mean, by Student's t.  Winnings of best responses, which may be negative, have arithmetic means.
"""

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.common.intervals import student95
from mccfr.experiments.definition import AXES, MEASURES, Experiment, ExperimentVariant
from mccfr.experiments.experiment_runs import PAIRS, SUMMARY, TABLE, measured_points, run_path
from mccfr.runs.directory import run as rundir
from storage import durable

_COUNTED = ("iterations", "nodes_touched")
_EXACT = ("exploitability_chips", "exploitability_mbb", "value_chips")
_BOUND = ("mbb", "chips", "low95_chips", "high95_chips")
_BOUNDS = tuple(f"{name}_{key}" for name in ("lbr", "sampled_br") for key in _BOUND)
COLUMNS = ("variant", "seed", "point", *AXES.values(), *_EXACT, "nodes_per_iteration", *_BOUNDS)
SUMMARY_COLUMNS = ("measure", "variant", "point", *AXES.values(), "seeds", "geometric_mean", "low95", "high95", "mean")
PAIR_COLUMNS = ("measure", "variant", "against", "point", "seeds", "ratio", "low95", "high95", "difference")

Row = dict[str, Any]


@dataclass(frozen=True)
class Curve:
    """One measured quantity of one variant at P points of the x axis, as means over seeds.

    measure    name of the quantity, a key of MEASURES, which says if means are geometric or arithmetic
    point      [P] float64  points that at least one seed has reached, ascending
    axes       {name: [P] float64}: geometric means over seeds of "iterations", "nodes_touched" and "training_seconds"
               at which the points were measured
    mean       [P] float64  mean over seeds; a geometric one is 0 if a value is 0 or below
    low, high  [P] float64  95 % interval of the mean; nan for one seed, or a geometric mean of 0
    seeds      [P] int64    number of seeds that have reached the point
    """

    variant: str
    measure: str
    point: npt.NDArray[np.float64]
    axes: dict[str, npt.NDArray[np.float64]]
    mean: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    seeds: npt.NDArray[np.int64]


def read_rows(experiment: Experiment, out: Path) -> list[Row]:
    """Return a row for each variant, seed and measured point, read from an experiment's runs.

    A row is {column of table.csv: value}. With the evaluation method exact it also has "nash_conv_chips".

    out  directory of the experiment's output

    Raises `ValueError` or `OSError` for a damaged run or points.json.
    """
    rows, points = list[Row](), measured_points(out)
    for variant in experiment.variants:
        for seed in experiment.seeds_of(variant):
            directory = run_path(out, variant, seed)
            if rundir.is_run(directory) and (measured := points.get(directory.name)):
                rows.extend(_run_rows(experiment, variant, seed, rundir.open_run(directory), measured))
    return rows


def publish(experiment: Experiment, out: Path) -> list[Curve]:
    """Write an experiment's results as CSV files into its output directory `out`; return the curves.

    table.csv    one row for each variant, seed and measured point
    summary.csv  means over seeds, with 95 % intervals
    pairs.csv    ratios or differences to the first variant, if there are two or more

    Nothing is written before the first measurement. Raises `ValueError` or `OSError` if a run cannot be read, and
    `OSError` if writing fails.
    """
    rows = read_rows(experiment, out)
    all_curves = curves(experiment, rows)
    if rows:
        _write(out / TABLE, COLUMNS, [[row.get(column) for column in COLUMNS] for row in rows])
        _write_summary(all_curves, out / SUMMARY)
        if len(experiment.variants) > 1:
            _write(out / PAIRS, PAIR_COLUMNS, pairs(experiment, rows))
    return all_curves


def _run_rows(
    experiment: Experiment, variant: ExperimentVariant, seed: int, run: rundir.Run, points: Sequence[float]
) -> list[Row]:
    """Return a run's rows of the result table, one for each measured point of the experiment.

    variant, seed  variant and seed of the run
    points         ascending points of the x axis at which the run was or will be measured; those that the experiment
                   does not have give no row
    """
    metrics = [{"nodes_touched": 0, "training_seconds": 0.0}, *run.read(rundir.METRICS)]
    nodes, seconds = ([record[key] for record in metrics] for key in ("nodes_touched", "training_seconds"))
    column = AXES[experiment.axis]
    rows: dict[float, Row] = {}
    before = {"nodes_touched": 0, "iterations": 0}
    for record in run.read(rundir.EVALUATIONS):
        columns: Row = {"variant": variant.name, "seed": seed} | {key: record[key] for key in _COUNTED}
        # Metrics are written every five seconds and at the end of a session; between them time is interpolated.
        columns["training_seconds"] = round(float(np.interp(record["nodes_touched"], nodes, seconds)), 6)
        if (iterations := record["iterations"] - before["iterations"]) > 0:
            touched = record["nodes_touched"] - before["nodes_touched"]
            columns["nodes_per_iteration"] = touched / iterations
            before = record
        point = _point_of(experiment.axis, points, columns[column])
        if point not in experiment.points:
            continue
        row = rows.setdefault(point, columns | {"point": point})
        if row["nodes_touched"] == record["nodes_touched"]:  # else a later measurement that maps to the same point
            rows[point] = _measured(_of_average(record, variant.average)) | row
    return list(rows.values())


def _of_average(record: Mapping[str, Any], average: str | None) -> Mapping[str, Any]:
    """Return the part of an evaluation record that is about one average strategy.

    A record has several parts if the algorithm keeps several averages.

    average  name of the average strategy; None: the run's first
    """
    if average is None or average == record["average"]:
        return record
    of_average: Mapping[str, Any] = record["other_averages"][average]
    return of_average


def _measured(record: Mapping[str, Any]) -> Row:
    """Return {name: value} of an evaluation's results, such as "exploitability_mbb".

    Names are columns of the result table, and "nash_conv_chips".

    record  {name: value}, a line of evaluations.jsonl or its part about one average strategy
    """
    if record["method"] == "exact":
        gains = record.get("gains_chips") or [record["exploitability_chips"]] * 2  # of two players
        return {key: record[key] for key in _EXACT} | {"nash_conv_chips": sum(gains)}
    cells = record["exploitability_mbb"], record["exploitability_chips"], *record["ci95_chips"]
    name = record["method"].replace("-", "_")
    return {f"{name}_{key}": cell for key, cell in zip(_BOUND, cells, strict=True)}


def _point_of(axis: str, points: Sequence[float], value: float) -> float | None:
    """Return the x-axis point to which a measurement belongs, given its place on that axis.

    It is the last of `points` at or before `value`; None if there is none.  In seconds it is the nearest by ratio.

    axis    "iterations", "nodes" or "seconds"
    points  ascending points of this axis
    value   iterations, nodes or seconds of the measurement
    """
    if axis == "seconds":
        return min(points, key=lambda point: abs(math.log(max(value, 1e-9) / point)))
    place = bisect_right(points, value)
    return points[place - 1] if place else None


def curves(experiment: Experiment, rows: Sequence[Row]) -> list[Curve]:
    """Return the curves of all measured quantities and variants, as means over seeds.

    They are in order of the quantities, then of the variants. A variant without rows of a quantity has no curve.

    rows  rows of the result table, {column: value}
    """
    all_curves = [
        _curve(measure, variant.name, rows)
        for measure in _measures(experiment, rows)
        for variant in experiment.variants
    ]
    return [curve for curve in all_curves if len(curve.point)]


def _measures(experiment: Experiment, rows: Sequence[Row]) -> Sequence[str]:
    """Return the names of the quantities to plot: those of the experiment, else exploitability.

    Names are keys of MEASURES, such as "exploitability_mbb". Exploitability is in mbb/g if all rows have it, else in
    chips.
    """
    if experiment.measures:
        return experiment.measures
    mbb = all(row.get("exploitability_mbb") is not None for row in rows)
    return ("exploitability_mbb" if mbb else "exploitability_chips",)


def pairs(experiment: Experiment, rows: Sequence[Row]) -> list[list[Any]]:
    """Return the rows of pairs.csv: each variant's ratio or difference to the first variant.

    There is a row for each measured quantity, other variant and common point. Ratios and differences are computed seed
    by seed and averaged over the seeds that both have, with a 95 % interval. Effects that a seed has on both, such as
    its sampled deals, cancel.  Ratios leave out values of 0 or below.
    """
    first, lines = experiment.variants[0].name, []
    for measure in _measures(experiment, rows):
        linear = MEASURES[measure].linear
        values: dict[tuple[str, float], dict[int, float]] = {}
        for row in rows:
            if (value := _value(row, measure)) is not None and (linear or value > 0):
                values.setdefault((row["variant"], row["point"]), {})[row["seed"]] = value
        for (variant, point), own in values.items():
            others = values.get((first, point), {})
            both = sorted(own.keys() & others.keys())
            if variant != first and both:
                apart = [own[seed] - others[seed] if linear else own[seed] / others[seed] for seed in both]
                lines.append([measure, variant, first, point, len(both), *_cells(linear, *_mean(linear, apart))])
    return lines


def _mean(linear: bool, values: Sequence[float]) -> tuple[float, float, float]:
    return arithmetic_mean(values) if linear else geometric_mean(values)


def _cells(linear: bool, mean: float, low: float, high: float) -> list[float | None]:
    """Return a mean and its 95 % interval as the last four cells of a row in a CSV file.

    The files are summary.csv and pairs.csv. Numbers that are nan become None, an empty cell.

    linear  True: (None, low, high, arithmetic mean or difference). False: (geometric mean or ratio, low, high, None)
    """
    middle, low95, high95 = (None if math.isnan(n) else float(f"{n:.8g}") for n in (mean, low, high))
    return [None, low95, high95, middle] if linear else [middle, low95, high95, None]


def _value(row: Row, measure: str) -> float | None:
    value = row.get(measure)
    return None if value is None else float(value)


def _curve(measure: str, variant: str, rows: Sequence[Row]) -> Curve:
    points: dict[float, list[Row]] = {}
    for row in rows:
        if row["variant"] == variant and _value(row, measure) is not None:
            points.setdefault(row["point"], []).append(row)
    ordered = sorted(points)
    linear = MEASURES[measure].linear
    intervals = [_mean(linear, [_value(row, measure) or 0.0 for row in points[point]]) for point in ordered]
    axes = {
        column: np.array([geometric_mean([row[column] for row in points[point]])[0] for point in ordered])
        for column in AXES.values()
    }
    columns = np.array(intervals).reshape(-1, 3).T
    counts = np.array([len(points[point]) for point in ordered], np.int64)
    return Curve(variant, measure, np.array(ordered), axes, columns[0], columns[1], columns[2], counts)


def geometric_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """Return (mean, low, high): the geometric mean of some values, and the ends of its 95 % interval.

    The ends are nan for one value. If some value is 0 or below, the mean is 0 and the ends are nan.
    """
    if min(values) <= 0:
        return 0.0, math.nan, math.nan
    logs = np.log(values)
    mean = float(np.exp(logs.mean()))
    if len(values) == 1:
        return mean, math.nan, math.nan
    width = student95(len(values) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(values))
    return mean, mean * math.exp(-width), mean * math.exp(width)


def arithmetic_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """Return (mean, low, high): the mean of some values, and the ends of its 95 % interval.

    The ends are nan for one value.
    """
    mean = float(np.mean(values))
    if len(values) == 1:
        return mean, math.nan, math.nan
    width = student95(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, mean - width, mean + width


def _write_summary(curves: Sequence[Curve], path: Path) -> None:
    """Write curves as CSV, one row for each point of a curve; replace the file atomically."""
    lines = []
    for curve in curves:
        for place, point in enumerate(curve.point.tolist()):
            axes = [float(f"{curve.axes[column][place]:.10g}") for column in AXES.values()]
            interval = (float(values[place]) for values in (curve.mean, curve.low, curve.high))
            shown = _cells(MEASURES[curve.measure].linear, *interval)
            lines.append([curve.measure, curve.variant, point, *axes, int(curve.seeds[place]), *shown])
    _write(path, SUMMARY_COLUMNS, lines)


def _write(path: Path, columns: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
    write_csv(path, [columns, *([_short(cell) for cell in line] for line in lines)])


def write_csv(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as CSV; None is an empty cell. Replaces the file atomically."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    durable.replace_file(path, text.getvalue().encode())


def _short(cell: Any) -> Any:
    """Return a float that is a whole number below 2^53 as int, any other value unchanged."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else cell
