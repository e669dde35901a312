"""Experiments: their runs, tables, resuming, refused input.

Shows:

* Experiments compare variants by the ratios of runs with the same seed
  (test_pairs_are_ratios_to_the_first_variant_seed_by_seed)
"""

import csv
import math
import os
import shutil
import signal
import sys
from itertools import product

import numpy as np
import pytest
import tomli_w
from commands import call, refusal
from places import ROOT, RUNS
from refusals import refusals, refused

from mccfr.experiments.definition import experiment_from, load_experiment, merged
from mccfr.experiments.experiment_runs import run_experiment, run_path, trained_seconds
from mccfr.experiments.result_table import arithmetic_mean, curves, geometric_mean, publish, read_rows
from mccfr.runs.directory import run as rundir
from mccfr.runs.reporter import Silent

VARIANTS = [
    {"name": "no discount", "set": ["solver.discount=none"]},
    {"name": "DCFR", "set": ["solver.discount=dcfr", "solver.period_nodes=500"]},
]
COMPARE = {"last": 400, "points": 4, "seeds": [3, 4], "variant": VARIANTS}
KUHN = {"game": {"name": "kuhn"}, "run": {"workers": 0}, "compare": COMPARE}
RECIPE = f'abstraction.recipe="{RUNS / "abstractions/quick.toml"}"'
WHOLE_BOARDS = "game.name=flop-holdem", "game.board_cards=5", "abstraction.path=not-built", RECIPE
EXPERIMENT = tomli_w.dumps(KUHN)


def changed(**compare):
    return merged(KUHN, {"compare": compare})


def experiment_of(document, folder=ROOT):
    return experiment_from(document, folder, "the test")


def published(document, out):
    """Run the experiment of a document to its end; return it and its curves."""
    experiment = experiment_of(document)
    assert run_experiment(experiment, out, Silent()) is None
    return experiment, publish(experiment, out)


def lines(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the experiment of KUHN, run to its end, and its directory."""
    out = tmp_path_factory.mktemp("experiment")
    return published(KUHN, out)[0], out


def test_command_writes_runs_tables_and_plot(capsys, tmp_path):
    path, out = tmp_path / "kuhn.toml", tmp_path / "out"
    path.write_text(EXPERIMENT)
    code, text, err = call(capsys, "compare", path, out, "--set", "compare.seeds=[3]")
    assert code == 0 and "2 of 2: DCFR, seed 3" in err
    assert [line.split("  ")[0].strip() for line in text.splitlines()] == ["no discount", "DCFR"]
    rows = lines(out / "table.csv")
    found = [(row["variant"], row["point"]) for row in rows]
    assert found == list(product(("no discount", "DCFR"), ("1", "7", "54", "400")))
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG") and (out / "plot.png").stat().st_size < 80_000
    assert sorted(p.name for p in (out / "runs").iterdir()) == ["dcfr-3", "no-discount-3"]


def test_table_equals_the_evaluations_of_the_runs(finished):
    experiment, out = finished
    rows = lines(out / "table.csv")
    assert [row["seed"] for row in rows] == (["3"] * 4 + ["4"] * 4) * 2
    run = rundir.open_run(run_path(out, experiment.variants[1], 4))
    assert run.config.solver.seed == 4 and run.config.solver.discount == "dcfr"
    records = run.read(rundir.EVALUATIONS)
    assert [record["iterations"] for record in records] == [1, 7, 54, 400]
    for row, record in zip(rows[-4:], records, strict=True):
        assert float(row["exploitability_chips"]) == record["exploitability_chips"]
        assert int(row["nodes_touched"]) == record["nodes_touched"] and row["exploitability_mbb"] == ""
    touched = records[2]["nodes_touched"] - records[1]["nodes_touched"]
    assert float(rows[-2]["nodes_per_iteration"]) == pytest.approx(touched / 47)


def test_summary_is_the_geometric_mean_over_seeds_with_its_interval(finished):
    _, out = finished
    rows, summary = lines(out / "table.csv"), lines(out / "summary.csv")
    assert len(summary) == 8 and {row["measure"] for row in summary} == {"exploitability_chips"}
    last = next(row for row in summary if row["variant"] == "DCFR" and row["point"] == "400")
    pair = [float(r["exploitability_chips"]) for r in rows if r["variant"] == "DCFR" and r["point"] == "400"]
    assert len(pair) == 2 and last["seeds"] == "2"
    assert float(last["geometric_mean"]) == pytest.approx(math.sqrt(pair[0] * pair[1]), rel=1e-7)
    half = 12.706205 * abs(math.log(pair[0] / pair[1])) / 2
    assert float(last["high95"]) / float(last["geometric_mean"]) == pytest.approx(math.exp(half), rel=1e-6)


@pytest.mark.parametrize("players", [2, 3])
def test_nash_conv_is_the_sum_of_all_players_gains(tmp_path, players):
    compare = {"last": 100, "points": 1, "seeds": [3], "y": "nash_conv_chips", "variant": [{"name": "one"}]}
    _, (curve,) = published({**KUHN, "game": {"name": "kuhn", "players": players}, "compare": compare}, tmp_path)
    (row,) = lines(tmp_path / "table.csv")
    assert curve.mean.tolist() == [pytest.approx(players * float(row["exploitability_chips"]))]


def test_pairs_are_ratios_to_the_first_variant_seed_by_seed(finished):
    _, out = finished
    rows, found = lines(out / "table.csv"), lines(out / "pairs.csv")
    assert [(row["variant"], row["against"], row["seeds"]) for row in found] == [("DCFR", "no discount", "2")] * 4
    value = {(row["variant"], row["seed"]): float(row["exploitability_chips"]) for row in rows if row["point"] == "400"}
    ratios = [value["DCFR", seed] / value["no discount", seed] for seed in ("3", "4")]
    assert float(found[-1]["ratio"]) == pytest.approx(math.sqrt(ratios[0] * ratios[1]), rel=1e-6)
    half = 12.706205 * abs(math.log(ratios[0] / ratios[1])) / 2
    assert float(found[-1]["high95"]) / float(found[-1]["ratio"]) == pytest.approx(math.exp(half), rel=1e-5)


def test_other_averages_of_the_same_runs_have_their_own_curves(tmp_path):
    solver = {"algorithm": "deep-cfr", "fit": "table", "traversals": 20, "averages": ["network", "sd"], "memory": 500}
    variants = [{"name": "Deep CFR"}, {"name": "SD-CFR", "of": "Deep CFR", "average": "sd"}]
    experiment = experiment_of(merged(changed(last=None, at=[1, 3], variant=variants, points=30), {"solver": solver}))
    assert run_experiment(experiment, tmp_path, Silent()) is None
    assert sorted(run.name for run in (tmp_path / "runs").iterdir()) == ["deep-cfr-3", "deep-cfr-4"]
    found = {(row["variant"], row["seed"], row["point"]): row for row in read_rows(experiment, tmp_path)}
    assert len(found) == 8
    for seed in (3, 4):
        records = list(rundir.open_run(tmp_path / "runs" / f"deep-cfr-{seed}").read(rundir.EVALUATIONS))
        for record, point in zip(records, (1, 3), strict=True):
            for name, wanted in (("Deep CFR", record), ("SD-CFR", record["other_averages"]["sd"])):
                row = found[name, seed, point]
                assert row["exploitability_chips"] == wanted["exploitability_chips"]
                assert (row["iterations"], row["nodes_touched"]) == (point, record["nodes_touched"])


BLINDS = {
    "game": {"name": "poker", "blinds": [2, 1], "stack": 8, "first_player": [2, 1]},
    "run": {"workers": 0},
    "evaluation": {"setting": "2"},
    "compare": {"y": ["lbr_chips", "exploitability_chips", "sampled_br_chips"], "at": [20, 400], "seeds": [3, 4]}
    | {"variant": [{"name": "linear"}, {"name": "none", "set": ["solver.discount=none"]}]},
}


def test_lbr_and_sampled_br_are_compared_by_means_and_differences(tmp_path):
    """Both stay below exact exploitability, which is measured on the same strategies."""
    published(BLINDS, tmp_path)
    rows = lines(tmp_path / "table.csv")
    assert len(rows) == 8
    for row in rows:
        exact, lbr, sampled = (float(row[f"{name}_chips"]) for name in ("exploitability", "lbr", "sampled_br"))
        assert lbr < exact and sampled < exact  # sampled-br over all boards, from the last street
        assert float(row["lbr_low95_chips"]) == float(row["lbr_high95_chips"]) == lbr  # over every deal
    value = {(row["variant"], row["seed"]): float(row["lbr_chips"]) for row in rows if row["point"] == "400"}
    last = next(r for r in lines(tmp_path / "summary.csv") if (r["measure"], r["point"]) == ("lbr_chips", "400"))
    assert last["geometric_mean"] == ""
    assert float(last["mean"]) == pytest.approx((value["linear", "3"] + value["linear", "4"]) / 2)
    pair = next(r for r in lines(tmp_path / "pairs.csv") if (r["measure"], r["point"]) == ("lbr_chips", "400"))
    apart = [value["none", seed] - value["linear", seed] for seed in ("3", "4")]
    assert pair["ratio"] == "" and float(pair["difference"]) == pytest.approx(sum(apart) / 2, rel=1e-6)
    assert float(pair["high95"]) - float(pair["difference"]) == pytest.approx(12.706205 * abs(apart[0] - apart[1]) / 2)


def test_intervals_agree_with_scipy():
    from scipy import stats

    plain = np.random.default_rng(0).normal(size=12)
    mean, low, high = arithmetic_mean(plain.tolist())
    expected = stats.t.interval(0.95, 11, loc=plain.mean(), scale=stats.sem(plain))
    assert np.allclose([low, high], expected, rtol=1e-3) and mean == pytest.approx(plain.mean())
    assert math.isnan(arithmetic_mean([2.0])[1])
    values = np.exp(plain)
    mean, low, high = geometric_mean(values.tolist())
    expected = stats.t.interval(0.95, 11, loc=np.log(values).mean(), scale=stats.sem(np.log(values)))
    assert np.allclose(np.log([low, high]), expected, rtol=1e-3) and mean == pytest.approx(stats.gmean(values))
    assert geometric_mean([1.0, 0.0])[0] == 0 and math.isnan(geometric_mean([2.0])[1])


class Stopper(Silent):
    """Sends the process a signal in the second run, at its first progress report or before it."""

    def __init__(self, stop_at=2, early=False):
        self.runs, self.stop_at, self.early = [], stop_at, early

    def message(self, text):
        self.runs.append(text.split(":")[0])
        if self.early:
            self.stop()

    def progress(self, progress):
        if not self.early:
            self.stop()

    def stop(self):
        if len(self.runs) == self.stop_at:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("early", [False, True])
def test_a_stopped_experiment_resumes_and_keeps_finished_runs_unchanged(finished, tmp_path, early):
    experiment = experiment_of(KUHN)
    assert run_experiment(experiment, tmp_path / "out", stopper := Stopper(early=early)) == signal.SIGTERM
    assert stopper.runs == ["1 of 4", "2 of 4"]
    first = run_path(tmp_path / "out", experiment.variants[0], 3)
    before = {path: path.stat().st_mtime_ns for path in first.rglob("*")}
    again = Stopper(stop_at=None)
    assert run_experiment(experiment, tmp_path / "out", again) is None
    assert again.runs == ["2 of 4", "3 of 4", "4 of 4"]
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*")} == before
    keys = ("variant", "seed", "point", "iterations", "nodes_touched", "exploitability_chips")
    values = [[row[key] for key in keys] for row in read_rows(experiment, tmp_path / "out")]
    assert values == [[row[key] for key in keys] for row in read_rows(*finished)]


def test_variants_are_compared_only_at_points_measured_for_both(tmp_path, capsys):
    """Compare six points, then three of which one is new, with one more variant of the same algorithm."""
    path, out = tmp_path / "kuhn.toml", tmp_path / "out"
    path.write_text(measured_at([1, 3, 10, 40, 120, 400], FIRST))
    assert call(capsys, "compare", path, out).status == 0
    path.write_text(measured_at([10, 60, 400], [*FIRST, AGAIN]))
    ended = call(capsys, "compare", path, out)
    assert ended.status == 0
    assert "1 of 2: linear, seed 3: the run was not measured at 60 iterations: the tables have no rows" in ended.err
    found = {(row["variant"], row["point"]): row["exploitability_chips"] for row in lines(out / "table.csv")}
    assert sorted(found) == [("again", "10"), ("again", "400"), ("again", "60"), ("linear", "10"), ("linear", "400")]
    assert found["again", "10"] == found["linear", "10"] and found["again", "400"] == found["linear", "400"]
    pairs = lines(out / "pairs.csv")
    assert [(row["point"], float(row["ratio"])) for row in pairs] == [("10", 1), ("400", 1)]
    assert [line.split(" at ")[1] for line in ended.out.splitlines()] == ["400 iterations"] * 2


def measured_at(points, variants):
    return tomli_w.dumps({**KUHN, "compare": {"at": points, "seeds": [3], "variant": variants}})


FIRST = [{"name": "linear", "set": ["solver.discount=linear"]}]
AGAIN = {"name": "again", "set": ["solver.discount=linear"]}


def test_every_seed_is_checked_before_the_first_run(finished, tmp_path):
    """A later seed's directory holds another run."""
    experiment, out = finished
    shutil.copytree(run_path(out, experiment.variants[1], 3), tmp_path / "runs/dcfr-9")
    seeds = experiment_of(changed(seeds=[8, 9]))
    refused("runs/dcfr-9 holds another run: .*another output", run_experiment, seeds, tmp_path, Silent())
    assert [run.name for run in (tmp_path / "runs").iterdir()] == ["dcfr-9"]


def test_points_in_nodes_and_in_seconds(tmp_path):
    nodes = experiment_of(changed(x="nodes", first=100, last=1000, points=2, seeds=[0], variant=[]))
    assert run_experiment(nodes, tmp_path / "nodes", Silent()) is None
    rows = read_rows(nodes, tmp_path / "nodes")
    assert [row["point"] for row in rows] == [100, 1000]
    assert all(row["point"] <= row["nodes_touched"] < row["point"] + 30 for row in rows)
    assert curves(nodes, rows)[0].axes["nodes_touched"] == pytest.approx([row["nodes_touched"] for row in rows])
    seconds = experiment_of(changed(x="seconds", at=[0.1, 0.3], last=None, points=1, seeds=[0], variant=[]))
    assert run_experiment(seconds, tmp_path / "seconds", Silent()) is None
    rows = read_rows(seconds, tmp_path / "seconds")
    assert [row["point"] for row in rows] == [0.1, 0.3]
    assert 0.1 < rows[1]["training_seconds"] < 0.6 and rows[0]["training_seconds"] < rows[1]["training_seconds"]
    run = rundir.open_run(run_path(tmp_path / "seconds", seconds.variants[0], 0))
    before = trained_seconds(run)
    assert run_experiment(seconds, tmp_path / "seconds", Silent()) is None and trained_seconds(run) == before


def test_variants_in_strata_are_trained_in_strata(tmp_path):
    """All variants share one game; each has its own settings and result."""
    in_turn = ["run.strata=2", "run.cycle_iterations=40", "tables.memory_budget=1MB"]
    settings = {"ordinary": [], "strata": ["run.strata=2"], "in turn": in_turn}
    variants = [{"name": name, "set": keys} for name, keys in settings.items()]
    experiment = experiment_of({**changed(last=80, points=1, seeds=[3], variant=variants), "game": {"name": "leduc"}})
    run_experiment(experiment, tmp_path / "out", Silent())
    found = [rundir.open_run(run_path(tmp_path / "out", variant, 3)).config.run for variant in experiment.variants]
    assert [(run.strata, run.cycle_iterations) for run in found] == [(None, None), (2, None), (2, 40)]
    assert len({row["exploitability_chips"] for row in read_rows(experiment, tmp_path / "out")}) == 3


def test_full_width_runs_have_one_seed_and_base_configs_are_merged(tmp_path):
    (tmp_path / "base").mkdir()
    game = 'game = {name = "holdem-subgame", file = "river.txt", stack = 900}'
    (tmp_path / "base" / "base.toml").write_text(f"{game}\nrun = {{workers = 2, nodes = 5, checkpoint_nodes = 3}}\n")
    document = {"game": {"stack": 1000}, "compare": {"base": "base/base.toml", "last": 8, "seeds": [0, 1], "y": []}}
    document["compare"]["variant"] = [{"name": "CFR+", "set": ["solver.algorithm=cfr", "solver.variant=cfr+"]}]
    experiment = experiment_of(document, tmp_path)
    (variant,) = experiment.variants
    assert experiment.seeds_of(variant) == (0,) and variant.directory == "cfr-plus"
    config = experiment.run_config(variant, 0)
    assert config.game.file == str(tmp_path / "base" / "river.txt") and config.game.stack == 1000
    assert config.run.workers == 2 and config.run.nodes is config.run.checkpoint_nodes is None
    assert config.run.iterations == 8
    assert config.evaluation.at_iterations == tuple(range(1, 9)) and config.solver.variant == "cfr+"


def variants(*keys):
    return changed(variant=[{"name": name} | more for name, more in zip("ab", keys, strict=False)])


test_invalid_experiments_are_refused = refusals(
    ("has no [compare] table", {"game": {"name": "kuhn"}}),
    ("unknown key 'lats' in compare; allowed: at, base, first", changed(lats=3)),
    ("compare.x = 'time' is not one of: 'iterations'", changed(x="time")),
    ("compare.last is missing", changed(last=None)),
    ("compare.first = 500, compare.last = 400", changed(first=500)),
    ("at is given beside first or last", changed(at=[1, 2])),
    ("compare.points = 0 is not allowed: it must be at least 1", changed(points=0)),
    ("compare.seeds = [] is not allowed", changed(seeds=[])),
    ("names a seed twice", changed(seeds=[1, 1])),
    ("compare.seeds[0] = -1 is not allowed: it must be at least 0", changed(seeds=[-1])),
    ("variant 'a' is there twice", changed(variant=[{"name": "a"}, {"name": "a"}])),
    ("compare.y = 'nashconv' is not one of: exploitability_mbb", changed(y="nashconv")),
    ("points in seconds must be further apart", changed(x="seconds", first=1, last=2, points=30)),
    ("compare.variant[0] needs the key 'name'", changed(variant=[{"set": []}])),
    ("variant 'a': solver.discount = 'some'", variants({"set": ["solver.discount=some"]})),
    ("variant 'a': set discount: expected table.key", variants({"set": ["discount"]})),
    ("names need letters or digits that tell them apart", changed(variant=[{"name": "a b"}, {"name": "A-B"}])),
    ("absent.toml: no such file", changed(base="absent.toml")),
    ("of = 'b' must name a variant before it (none", variants({"of": "b", "average": "sd"})),
    ("of = None must name .* \\('a'\\)", variants({}, {"average": "sd"})),
    ("of 'a' have: one average", variants({}, {"of": "a", "average": "sd"})),
    call=experiment_of,
)


def run_without_output(document, tmp_path):
    try:
        run_experiment(experiment_of(document), tmp_path / "out", Silent())
    finally:
        assert not (tmp_path / "out").exists()


def run_in_a_finished_directory(finished):
    linear = changed(variant=[{"name": "DCFR", "set": ["solver.discount=linear"]}])
    run_experiment(experiment_of(linear), finished[1], Silent())


test_refusals_before_anything_is_written = refusals(
    ("kuhn has no big blind", run_without_output, changed(y="exploitability_mbb")),
    ("'lbr_mbb', and kuhn has no big blind: choose of exploitability_chips", run_without_output, changed(y="lbr_mbb")),
    ("variant 'a': solver.", run_without_output, variants({"set": ["solver.algorithm=cfr", "solver.variant=x"]})),
    ("too large for exact exploitability", run_without_output, variants({"set": WHOLE_BOARDS})),
    ("holds another run: solver.discount = 'dcfr' there .*another output", run_in_a_finished_directory),
)


def test_command_refuses_a_foreign_directory(capsys, tmp_path):
    path, out = tmp_path / "kuhn.toml", tmp_path / "out"
    path.write_text(EXPERIMENT)
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    assert "not an earlier output of the same kind" in refusal(capsys, "compare", path, out)
    assert call(capsys, "compare", tmp_path / "none.toml", out)[0] == 2
    assert [entry.name for entry in out.iterdir()] == ["thesis.txt"]


def test_without_matplotlib_tables_are_written_with_a_message(capsys, tmp_path, monkeypatch, finished):
    import importlib.util

    find, none = importlib.util.find_spec, {"matplotlib": None}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: none.get(name, find(name, *rest)))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path, out = tmp_path / "kuhn.toml", tmp_path / "out"
    path.write_text(EXPERIMENT)
    code, _, err = call(capsys, "compare", path, out, "--set", "compare.seeds=[3]", "--set", "compare.last=10")
    assert code == 0 and "plots need matplotlib" in err
    assert (out / "summary.csv").is_file() and not (out / "plot.png").exists()


@pytest.mark.parametrize("path", sorted((RUNS / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_experiments_are_valid(path):
    experiment = load_experiment(path)
    assert len(experiment.variants) > 1 and len(experiment.points) * len(experiment.seeds) > 1
