"""Plans of runs: memory, disk, nodes and visits against real runs, and refused plans.

Shows:

* The forecast of visited infosets is within a factor of 1.5 of real runs
  (test_forecasts_are_right_to_a_factor_of_one_and_a_half)
* The planned bytes of a run's checkpoints are within a twentieth of real ones
  (test_planned_bytes_of_checkpoints_are_within_a_twentieth_of_the_real_bytes)
"""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from commands import answer, call, refusal
from places import ROOT, RUNS
from refusals import refused
from sessions import in_form, make, trained

from mccfr.config.toml_files import config_from, load_document
from mccfr.runs.session import plan_trial
from mccfr.runs.session.run_plan import fixed_memory_bytes, make_plan, planned_layout, space_problem
from mccfr.solvers.coverage_estimate import assumed_play, forecast
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.external.external_algorithm import ExternalSampling
from mccfr.tables.table_layout import private_tables, table_name
from mccfr.trees.compiled import CHANCE, DECISION
from storage import free_space, live_tables
from storage.free_space import bytes_text, tree_bytes

RIVER = {"name": "holdem-subgame", "file": "runs/games/river.txt"}
LARGE_MENU = {"first": ["0.5p", "1p", "2p", "allin"], "later": ["0.5p", "1p", "allin"], "max_bets": 3}


LARGE_RECIPE = """
flop.features = "lossless"
turn = {features = "histogram", buckets = 50_000}
river = {features = "ochs", buckets = 50_000}
"""


def config_and_game(document):
    config = config_from(document, "test")
    return config, configured_game(config, ROOT)


def expected_nodes(tree, share, traverser, node=0):
    """Return the expected nodes that a traversal touches below `node`: all actions of its player."""
    arrays = tree.arrays
    total = float(arrays.touched[node])
    for child in tree.children(node):
        walked = arrays.kind[node] == DECISION and arrays.player[node] == traverser
        assert arrays.kind[node] != CHANCE or not walked
        total += (1.0 if walked else share[child]) * expected_nodes(tree, share, traverser, child)
    return total


@pytest.mark.parametrize("game", [{"name": "leduc"}, {"name": "goofspiel", "cards": 3}, RIVER])
def test_the_forecast_is_the_expectation_over_the_tree(game):
    _, built = config_and_game({"game": game})
    share = assumed_play(built.tree)
    for node in built.tree.decisions:
        assert sum(share[child] for child in built.tree.children(int(node))) == pytest.approx(1)
    expected = sum(expected_nodes(built.tree, share, traverser) for traverser in (0, 1))
    assert forecast(built, walks_all=True).nodes == pytest.approx(expected)


def train_in_process(document, nodes):
    """Train in this process; return (game, nodes per iteration, iterations, tables)."""
    config, game = config_and_game({**document, "solver": {"discount": "none"}})
    tables = private_tables(planned_layout(config, game))
    solver = algorithm_of(config).solver(game, tables)
    total = iterations = 0
    while total < nodes:
        done, touched = solver.run(total, nodes - total, 2**62)
        iterations, total = iterations + done, total + touched
    return game, total / iterations, iterations, tables


SPEED = 3e7
"""Assumed nodes per second of plans that do not measure the speed."""


@pytest.fixture(autouse=True)
def short_trials():
    """Override the fixture of conftest.py: plans measure as long as those of users."""


def planned(document, base=ROOT, **options):
    """Return the plan of a configuration at an assumed speed."""
    return make_plan(config_from(document, "test"), base, speed=SPEED, **options)


def visits_of(game, tables):
    """Return the visits of each infoset: without discounting, the strategy sums of its row added up."""
    found, arrays = [], game.tree.arrays
    for block in np.flatnonzero(game.tree.row_count):
        starts = np.unique(arrays.slot[(arrays.kind == DECISION) & (arrays.block == block)])
        cells = tables[table_name("strategy_sum", int(block))][:, : game.tree.row_slots[block]]
        found.append(np.add.reduceat(cells, starts, axis=1, dtype=np.float64).reshape(-1))
    return np.concatenate(found)


def check_forecast(document, nodes):
    game, per_iteration, iterations, tables = train_in_process(document, nodes)
    plan = planned({**document, "run": {"nodes": nodes}})
    assert 1 / 1.5 < plan["nodes_per_iteration"] / per_iteration < 1.5
    assert 1 / 1.5 < plan["iterations"] / iterations < 1.5
    infosets = game.infosets.reshape(-1, 2).sum(axis=1)
    for street, expected in enumerate(plan["visits_per_infoset_per_street"]):
        added = sum(tables[name].sum(dtype=np.float64) for name in tables if f"strategy_sum/street{street}/" in name)
        assert 0.5 < expected / (added / infosets[street]) < 2
    found = visits_of(game, tables)
    assert len(found) == game.infosets.sum()
    for name, part in (("visits_median", 0.5), ("visits_tenth_percentile", 0.1)):
        assert np.quantile(found, part) < 1.5 * plan[name]  # training visits rare infosets less often
        assert len(found) > 12 or plan[name] < 1.5 * np.quantile(found, part)
    config = config_from({**document, "solver": {"discount": "none"}, "run": {"nodes": nodes}}, "test")
    measured = make_plan(config, ROOT)
    assert measured["measured"] and not plan["measured"] and measured["nodes_per_second_assumed"] > 0
    if infosets.sum() < 1e4:  # measured in short training; the assumption for Leduc is 20 % off
        assert measured["nodes_per_iteration"] == pytest.approx(per_iteration, rel=0.1)


class FakeSolver:
    """Has 10,000 nodes/s, or half with pruning; the first batch takes 100 s, as if it compiled."""

    seconds, pruning = 0.0, None

    def __init__(self, algorithm):
        solver = algorithm.config.solver
        if solver.negative_regret_pruning:
            FakeSolver.pruning = solver
        self.each = 2e-4 if solver.negative_regret_pruning else 1e-4

    def warm_up(self):
        pass

    def run(self, total_nodes, node_limit, iteration_limit):
        nodes = min(1000, node_limit)
        FakeSolver.seconds += nodes * self.each + 100 * (total_nodes == 0)
        return nodes // 10 if total_nodes else 1, nodes


@pytest.mark.parametrize(("game", "known"), [("kuhn", True), ("leduc", False)])
def test_a_plan_measures_speed_with_and_without_pruning_and_no_compilation(monkeypatch, game, known):
    """The plan measures nodes per iteration in Kuhn (12 infosets), and estimates them in Leduc (936).

    The second half of the run of 3,000 nodes prunes. Thresholds scale with the trial's length over 2,250 nodes.
    """
    monkeypatch.setattr(ExternalSampling, "solver", lambda algorithm, *_: FakeSolver(algorithm))
    monkeypatch.setattr(plan_trial.time, "thread_time", lambda: FakeSolver.seconds)
    monkeypatch.setattr(plan_trial, "SECONDS", 5.0)

    def both(**solver):
        document = {"game": {"name": game}, "solver": solver, "run": {"nodes": 3000}}
        return make_plan(config_from(document, "test"), ROOT), planned(document)["nodes_per_iteration"]

    (plain, assumed), (pruned, _) = both(), both(negative_regret_pruning=True, prune_after_nodes=1500)
    assert plain["nodes_per_second_assumed"] == pytest.approx(10_000)
    assert pruned["nodes_per_second_assumed"] == pytest.approx(10_000 / 1.5)
    assert plain["nodes_per_iteration"] == pytest.approx(10 if known else assumed)
    assert FakeSolver.pruning.prune_after_nodes == 0
    assert FakeSolver.pruning.prune_below_bb == pytest.approx(3_000 * 2 * 3_000 / 2_250)


def test_the_share_of_zero_cells_falls_as_a_power_of_the_nodes():
    """If half of them are left after twice the nodes, a quarter is left after four times the nodes."""
    assert plan_trial.zeros_left(0.5, 2.0, 4.0) == pytest.approx(0.25)
    assert plan_trial.zeros_left(1.0, 2.0, 4.0) == plan_trial.zeros_left(0.0, 2.0, 4.0) == 1


def test_plausible_cells_keep_padding_and_fill_zeros():
    random, cells = np.random.default_rng(0), np.zeros((1000, 4), np.float32)
    cells[::2, 0] = 1.0  # the trial reached half of the first column and none of the second
    found = plan_trial.plausible(cells, 2, 0.5, random)
    assert not found[:, 2:].any() and np.count_nonzero(found[:, :2]) == pytest.approx(1250, rel=0.05)
    assert found[found != 0] == pytest.approx(1.0, rel=0.01) and len(np.unique(found)) == 17
    assert plan_trial.plausible(cells, 2, 1.0, random) is cells


@pytest.mark.parametrize("solver", [{"algorithm": "cfr"}, {"algorithm": "deep-cfr", "fit": "table"}], ids=str)
def test_iterations_of_other_algorithms_are_timed(solver):
    """Without a measurement, the plan does not estimate their nodes."""
    document = {"game": {"name": "kuhn"}, "solver": solver, "run": {"iterations": 40}}
    plan = make_plan(config_from(document, "test"), ROOT)
    assert plan["measured"] and plan["iterations"] == pytest.approx(40)
    assert plan["seconds"] == pytest.approx(40 / plan["iterations_per_second"])
    plan = planned(document)
    assert plan["nodes_per_iteration"] is None and plan["visits_per_infoset_per_street"] is None


def test_a_plan_of_a_run_of_zero_nodes_measures_the_speed():
    plan = make_plan(config_from({"game": {"name": "kuhn"}, "run": {"nodes": 0}}, "test"), ROOT)
    assert plan["seconds"] == 0 and plan["nodes_per_second_assumed"] > 0


@pytest.mark.parametrize("game", [{"name": "kuhn"}, {"name": "leduc"}, RIVER], ids=lambda game: game["name"])
def test_forecasts_are_right_to_a_factor_of_one_and_a_half(game):
    """The tree's size, or its square root, would differ by a factor of 2 to 4."""
    check_forecast({"game": game}, 5_000_000)


@pytest.mark.slow
def test_a_forecast_of_whole_holdem(slot_abstractions):
    menu = {"first": ["1p", "allin"], "later": ["1p", "allin"]}
    document = {"game": {"name": "holdem", "menu": menu}, "abstraction": {"path": str(slot_abstractions[0])}}
    check_forecast(document, 200_000_000)


def test_a_plan_of_an_abstraction_that_is_not_built(tmp_path):
    (tmp_path / "recipe.toml").write_text(LARGE_RECIPE)
    document = {
        "game": {"name": "holdem", "menu": LARGE_MENU},
        "abstraction": {"path": "buckets", "recipe": "recipe.toml"},
        "run": {"nodes": 10**14, "workers": 64, "keep_checkpoints": 2},
        "evaluation": {
            "method": "head-to-head",
            "at_nodes": [10**9, 10**12, 10**15],
            "at_iterations": [5],
            "keep": True,
        },
    }
    plan = planned(document, tmp_path)
    # Menu L of test_tree.py: the counts are from an independent implementation.
    assert (plan["nodes"], plan["decision_nodes_per_street"]) == (298_498, [40, 1504, 16888, 92352])
    assert plan["actions_per_street"] == [117, 4_436, 47_732, 246_212]
    buckets = [169, 1_286_792, 50_000, 50_000]
    assert [pair[0] for pair in plan["buckets_per_street"]] == buckets
    assert plan["infosets"] == sum(b * d for b, d in zip(buckets, plan["decision_nodes_per_street"], strict=True))
    # Each action has a regret and a strategy sum of 4 bytes each, with little padding.
    for street, stored in enumerate(plan["bytes_per_street"]):
        cells = plan["actions_per_street"][street] * buckets[street]
        assert 8 * cells <= stored <= 1.3 * 8 * cells
    assert sum(plan["bytes_per_table"].values()) == plan["checkpoint_bytes"] == sum(plan["bytes_per_street"])
    assert plan["stored_bytes"] == plan["checkpoint_bytes"] > 1000 * plan["description_bytes"]
    assert plan["disk_bytes"] == (2 + 1 + 4) * (plan["stored_bytes"] + plan["description_bytes"])
    assert plan["permanent_checkpoints"] == 3  # the run ends before 10^15 nodes
    assert plan["copy_bytes"] == plan["checkpoint_bytes"]
    boards = {"flop": 1755 * 4, "turn": 16_432 * 2, "river": 134_459 * 2}  # the flop's buckets take 4 bytes
    assert plan["bucket_table_bytes"] >= 1326 * sum(boards.values())
    assert plan["least_memory_bytes"] > plan["table_bytes"] + plan["bucket_table_bytes"]
    assert plan["memory_bytes"] >= plan["least_memory_bytes"] + plan["copy_bytes"]
    assert plan["seconds"] == 10**14 / (64 * SPEED)
    assert 40 < 2 * plan["abstraction_seconds"] * 64 < 800 and plan["total_seconds"] > plan["seconds"]
    visits = plan["visits_per_infoset_per_street"]
    assert plan["visits_tenth_percentile"] < plan["visits_median"] < visits[0]
    assert visits[0] > 1e6 and all(0 < count < visits[0] for count in visits[1:])
    assert plan["checkpoint_seconds"] > plan["checkpoint_pause_seconds"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


@pytest.mark.parametrize("form", ["zarr", "blocks", "kuhn"])
def test_planned_bytes_of_checkpoints_are_within_a_twentieth_of_the_real_bytes(tmp_path, form):
    """Cases: compressed cells, uncompressed cells of blocks out of core, and tables of a few cells."""
    settings = {"nodes": 3_000_000 if form == "zarr" else 50_000, "keep_checkpoints": 1}
    path = tmp_path / "run"
    run = trained(make(path, game="kuhn", **settings) if form == "kuhn" else in_form(path, form, **settings))
    plan = make_plan(run.config, tmp_path)
    kept = sum(tree_bytes(run.path(name)) for name in ("checkpoints", "blocks") if run.path(name).exists())
    assert plan["checkpoints"] == 1 and plan["left_bytes"] == pytest.approx(kept, rel=0.05)


@pytest.fixture
def holdem(slot_abstractions):
    game = {"name": "holdem", "menu": {"first": ["1p", "allin"], "later": ["allin"]}}
    return {"game": game, "abstraction": {"path": str(slot_abstractions[0])}, "run": {"workers": 2}}


def test_needed_memory_includes_buckets_and_processes_but_no_copy_of_the_tables(holdem, tmp_path, monkeypatch):
    config, game = config_and_game(holdem)
    layout = planned_layout(config, game)
    needed = live_tables.live_bytes(layout.specs, format="zarr") + fixed_memory_bytes(config, game)
    assert needed > layout.nbytes + 400_000_000  # bucket tables of 0.4 GB
    assert planned(holdem)["least_memory_bytes"] == needed
    alone = planned({**holdem, "run": {"workers": 0}, "tables": {"checkpoint_compression": "none"}})
    assert alone["least_memory_bytes"] < layout.nbytes + 800_000_000  # bucket tables are in memory once
    computed = replace(game, cards=replace(game.cards, read_into=None))
    assert fixed_memory_bytes(config, computed) > 800_000_000  # they are copied
    assert alone["stored_bytes"] >= layout.nbytes
    monkeypatch.setattr(free_space, "available_memory_bytes", lambda *_: int(needed / 0.8) + 1)
    assert space_problem(config, game, layout, tmp_path / "run") is None
    monkeypatch.setattr(free_space, "available_memory_bytes", lambda *_: int(needed / 0.8) - 1)
    problem = space_problem(config, game, layout, tmp_path / "run")
    assert bytes_text(needed) in problem and bytes_text(fixed_memory_bytes(config, game)) in problem


@pytest.fixture
def leduc(tmp_path):
    path = tmp_path / "leduc.toml"
    path.write_text('game.name = "leduc"\nrun = {workers = 0, iterations = 200, keep_checkpoints = 4}\n')
    return path


def test_too_little_disk_is_refused_and_force_overrides(capsys, tmp_path, leduc, monkeypatch):
    plan = answer(capsys, "plan", leduc, "--speed", SPEED)
    assert plan["disk_bytes"] == 5 * (plan["checkpoint_bytes"] + plan["description_bytes"])
    real, free = free_space.free_bytes, [plan["disk_bytes"] - 1]
    monkeypatch.setattr(free_space, "free_bytes", lambda path: real(path) if "shm" in str(path) else free[0])
    before = sorted(tmp_path.rglob("*"))
    code, out, err = call(capsys, "solve", leduc, "--run", tmp_path / "deep" / "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{plan['disk_bytes']:,} bytes" in err and f"{free[0]:,} bytes free" in err
    assert sorted(tmp_path.rglob("*")) == before
    code, _, err = call(capsys, "solve", leduc, "--run", tmp_path / "deep" / "run", "--force")
    assert code == 0 and "--force" in err and f"{free[0]:,} bytes free" in err
    # The existing checkpoint, one of five, needs no more room.
    assert call(capsys, "resume", tmp_path / "deep" / "run")[0] == 0
    free[0] = plan["checkpoint_bytes"]
    assert f"{free[0]:,} bytes free" in refusal(capsys, "resume", tmp_path / "deep" / "run", "--iterations", 3000)
    assert call(capsys, "resume", tmp_path / "deep" / "run", "--iterations", 3000, "--force")[0] == 0


def test_too_little_memory_is_refused_before_building_buckets_and_force_overrides(capsys, tmp_path, leduc, monkeypatch):
    monkeypatch.setattr(free_space, "available_memory_bytes", lambda *_: 1000)
    monkeypatch.chdir(tmp_path)
    assert "1 kB of memory are available" in refusal(capsys, "solve", "hunl-quick")
    assert list(tmp_path.iterdir()) == [leduc]
    code, _, err = call(capsys, "solve", leduc, "--run", tmp_path / "run", "--force")
    assert code == 0 and "1 kB of memory are available" in err


def test_a_small_deck_is_planned_before_its_recipe_is_built(tmp_path):
    """The plan has the recipe's bucket counts, and builds no abstraction."""
    document = {"game": load_document(RUNS / "twin-20.toml")["game"]}
    document["abstraction"] = {"path": str(tmp_path / "twin"), "recipe": str(RUNS / "abstractions/twin.toml")}
    plan = make_plan(config_from(document, "test"), ROOT)
    assert plan["buckets_per_street"] == [[25, 25], [50, 50], [100, 100], [100, 100]]
    assert not (tmp_path / "twin").exists() and plan["measured"]
    document["game"] = {"name": "goofspiel", "cards": 3}
    refused("neither a small deck", make_plan, config_from(document, "test"), ROOT)


def test_an_unfinished_abstraction_is_planned_by_its_recipe(holdem, slot_abstractions, tmp_path):
    """The river's stage is missing: sizes are the recipe's, and the speed is measured on random buckets."""
    shutil.copytree(slot_abstractions[0], tmp_path / "buckets")
    shutil.rmtree(tmp_path / "buckets" / "river")
    recipe = LARGE_RECIPE.replace("50_000", "70").replace('"lossless"', '"ehs"\nflop.buckets = 9')
    (tmp_path / "recipe.toml").write_text(recipe)
    document = holdem | {"abstraction": {"path": "buckets", "recipe": "recipe.toml"}, "run": {"nodes": 1e9}}
    plan = make_plan(config_from(document, "test"), tmp_path)
    assert [pair[0] for pair in plan["buckets_per_street"]] == [169, 9, 70, 70]
    assert plan["measured"] and 1e5 < plan["nodes_per_second_assumed"] < 1e9
