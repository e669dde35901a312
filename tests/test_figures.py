"""The catalogue of figures: every entry is a valid experiment; one small figure is drawn.

Shows:

* Distances between averages, by street and depth, equal those of a loop over infosets
  (test_distances_are_weighted_means_by_street_and_depth)
"""

import csv
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import figures
import figures_bounds
import figures_catalogue as catalogue
import figures_clock
from figures_averages import distances

from mccfr.api.api_types import evaluation_of
from mccfr.config.game_tables import LeducGame
from mccfr.experiments.definition import AXES, experiment_from
from mccfr.experiments.result_table import Curve
from mccfr.games.poker import leduc
from mccfr.tables.strategy import Strategy, uniform_strategy

KUHN = {
    "game": {"name": "kuhn"},
    "run": {"workers": 0},
    "compare": {
        "at": [10, 100, 400],
        "seeds": [0, 1],
        "variant": [{"name": "a"}, {"name": "b", "set": ["solver.discount=none"]}],
    },
}
SMALL = catalogue.PaperFigure(
    "Kuhn",
    {"poker": KUHN},
    [
        catalogue.FigureView("poker", "iterations", "exploitability_chips"),
        catalogue.FigureView("poker", "nodes", "exploitability_chips"),
    ],
    [catalogue.Comparison("a", "b", 100, 400)],
)


@pytest.mark.parametrize("size", catalogue.SIZES)
@pytest.mark.parametrize("name", catalogue.CATALOGUE)
def test_every_entry_has_experiments_for_its_views_and_comparisons(name, size):
    figure = catalogue.CATALOGUE[name].make(catalogue.Request(size, None, None))
    made = {part: experiment_from(document, ROOT, name) for part, document in figure.experiments.items()}
    names = {variant.name for experiment in made.values() for variant in experiment.variants}
    assert {side for one in figure.comparisons for side in (one.better, one.worse)} <= names
    assert {view.experiment for view in figure.views} == set(made)
    for view in figure.views:
        assert view.measure in (made[view.experiment].measures or {"exploitability_mbb", "exploitability_chips"})
        assert view.axis in AXES
    points = [point for experiment in made.values() for point in experiment.points]
    for one in figure.comparisons:
        assert sum(one.first <= point * 1.001 and point <= one.last * 1.001 for point in points) >= 3


def curve(variant, points, means):
    points, none = np.array(points, float), np.full(len(points), np.nan)
    axes = dict.fromkeys(AXES.values(), points)
    return Curve(
        variant, "exploitability_mbb", points, axes, np.array(means, float), none, none, np.ones(len(points), int)
    )


def test_ratio_is_the_geometric_mean_over_common_points():
    curves = [curve("a", [1, 2, 4, 8], [9, 2, 1, 4]), curve("b", [2, 4, 8, 16], [8, 9, 4, 1])]
    wanted = catalogue.Comparison("a", "b", 2, 8)
    assert figures.ratio(wanted, curves, "exploitability_mbb") == pytest.approx((4 * 9 * 1) ** (1 / 3))
    assert figures.ratio(wanted, curves, "exploitability_chips") is None
    assert figures.ratio(catalogue.Comparison("a", "b", 20, 30), curves, "exploitability_mbb") is None
    assert figures.ratio(catalogue.Comparison("a", "c", 2, 8), curves, "exploitability_mbb") is None


def test_a_figure_is_drawn_and_redrawn_without_new_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(catalogue.CATALOGUE, "small", catalogue.FigureEntry("small", lambda request: SMALL))
    request = catalogue.Request("small", None, None)
    figures.make("small", request, tmp_path)
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "poker" / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12
    with (tmp_path / figures.RATIOS).open() as file:
        (line,) = csv.DictReader(file)
    assert (line["better"], line["worse"], line["first"], line["last"]) == ("a", "b", "100", "400")
    assert f"b / a = {float(line['ratio']):.3g}" in capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "poker" / "runs").rglob("*")}
    figures.make("small", request, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "poker" / "runs").rglob("*")} == before


def test_clock_figures_average_over_seeds(tmp_path, monkeypatch):
    """Write a line for each seed and point of samplers, and one for each point of full width.

    Means and intervals are those of the lines.
    """
    names = ("CFR+", "external sampling, linear")
    monkeypatch.setattr(figures_clock, "SOLVERS", {name: figures_clock.SOLVERS[name] for name in names})
    monkeypatch.setattr(figures_clock, "_PLANNER", "CFR+")
    lines = figures_clock.make_clock("kuhn", {"name": "kuhn"}, "Kuhn", 0.02, tmp_path, seeds=3)
    rows = [row.split(",") for row in (tmp_path / "kuhn.csv").read_text().splitlines()[1:]]
    seeds = [{row[-5] for row in rows if ",".join(row[:-5]).strip('"') == name} for name in names]
    assert seeds == [{"0"}, {"0", "1", "2"}] and len(rows) == 4 * figures_clock.POINTS
    last = [float(row[-1]) for row in rows if "external" in row[0]][figures_clock.POINTS - 1 :: figures_clock.POINTS]
    mean = np.exp(np.log(last).mean())
    assert lines[0].startswith("CFR+: ") and f"{mean:.3g} chips (" in lines[1].split(", ")[-1 - 3]


class Measured:
    """A run with invented evaluations; the run named `bare` has no bounds."""

    def __init__(self, path):
        self.bare = path.name == "bare"

    def evaluations(self):
        """Return `lbr` at two points, the first one repeated, and `sampled-br` at the last point."""
        lines = [("lbr", 1000, 9.0), ("lbr", 1000, 2.0), ("lbr", 3000, 1.0), ("sampled-br", 3000, 0.5)]
        return [
            evaluation_of(
                {
                    "method": "exact" if self.bare else method,
                    "nodes_touched": nodes,
                    "exploitability_mbb": mbb,
                    "ci95_mbb": [mbb - 0.25, mbb + 0.25],
                    "ci95_chips": [0.0, 1.0],
                }
            )
            for method, nodes, mbb in lines
        ]


def test_bounds_of_runs_are_drawn_and_printed(tmp_path, monkeypatch):
    """Both methods of both runs are drawn. Refused: a run without bounds, equal names, no run."""
    monkeypatch.setattr(figures_bounds, "Run", Measured)
    named = ["--run", str(tmp_path / "one"), "--run", str(tmp_path / "other")]
    done = CliRunner().invoke(figures.main, ["bounds", *named, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "one: lbr, 1000 nodes: 2 mbb/g (1.75 to 2.25)" in done.output
    rows = [list(row.values()) for row in csv.DictReader((tmp_path / "out" / "bounds.csv").read_text().splitlines())]
    measured = [["lbr", "1000", "2"], ["lbr", "3000", "1"], ["sampled-br", "3000", "0.5"]]
    assert [row[:4] for row in rows] == [[run, *row] for run in ("one", "other") for row in measured]
    assert (tmp_path / "out" / "bounds.png").stat().st_size > 10_000
    for arguments, said in (
        (["--run", str(tmp_path / "bare")], "has no evaluation"),
        (2 * named[:2], "names of their own"),
        ([], "names of their own"),
    ):
        done = CliRunner().invoke(figures.main, ["bounds", *arguments, "--out", str(tmp_path / "out")])
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.output.replace("│", " ").split())


def test_distances_are_weighted_means_by_street_and_depth():
    game = leduc(LeducGame(merge_suits=True))
    tree, random, even = game.tree, np.random.default_rng(0), uniform_strategy(game)
    weights = tuple(random.uniform(size=weight.shape) for weight in even.weight)
    moved = [np.array(table) for table in even.probability]
    for node in tree.decisions.tolist():
        block, slot = int(tree.arrays.block[node]), int(tree.arrays.slot[node])
        step = random.uniform(0, 0.3, len(moved[block]))
        moved[block][:, slot] += step
        moved[block][:, slot + 1] -= step
    found = distances(game, [(Strategy(even.probability, weights), Strategy(tuple(moved), even.weight))])
    sums = {}
    for node in tree.decisions.tolist():
        block, slot, row = (int(column[node]) for column in (tree.arrays.block, tree.arrays.slot, tree.arrays.row))
        for bucket, weight in enumerate(weights[block][:, row]):
            gap = abs(moved[block][bucket, slot] - even.probability[block][bucket, slot])
            sums.setdefault((block // 2, len(tree.path(node)) - 1), []).append((weight, weight * gap))
    assert sorted(found) == sorted(sums)
    for where, (infosets, mean) in found.items():
        mass, gaps = np.sum(sums[where], axis=0)
        assert infosets == len(sums[where]) and mean == pytest.approx(gaps / mass, rel=1e-12)
