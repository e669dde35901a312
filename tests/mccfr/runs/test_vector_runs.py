"""Full-width CFR and public chance sampling as ordinary runs: stop, resume, export, query, bad settings."""

import pytest
from commands import command
from places import RUNS

from mccfr.config.solver_tables import ExternalSamplingConfig
from mccfr.config.toml_files import config_from, ignored_keys
from mccfr.policy import Policy
from mccfr.policy.query import query
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables

RIVER = RUNS / "games/river.txt"
GAMES = {
    "kuhn": '[game]\nname = "kuhn"\n',
    "leduc": '[game]\nname = "leduc"\nmerge_suits = true\n',
    "river": f'[game]\nname = "holdem-subgame"\nfile = "{RIVER}"\n',
    "goofspiel": '[game]\nname = "goofspiel"\ncards = 4\n',
}


def solve(tmp_path, game, solver, iterations, *more, name="run"):
    config = tmp_path / "config.toml"
    config.write_text(f"{GAMES[game]}[solver]\n{solver}\n[run]\nworkers = 0\n[evaluation]\nevery_checkpoint = false\n")
    return command("solve", config, "--run", tmp_path / name, "--iterations", iterations, *more)


def tables(run_directory):
    run = open_run(run_directory)
    return {name: table.tobytes() for name, table in read_tables(find_checkpoint(run, None)).items()}


SOLVERS = {
    "dcfr": 'algorithm = "cfr"\nvariant = "dcfr"',
    "optimistic float32": 'algorithm = "cfr"\nvariant = "optimistic-lcfr"\ndtype = "float32"',
    "simultaneous": 'algorithm = "cfr"\nvariant = "cfr+"\nupdates = "simultaneous"',
    "public chance": 'algorithm = "public-chance-sampling"',
    "public chance dcfr": 'algorithm = "public-chance-sampling"\ndiscount = "dcfr"\nperiod_nodes = 1000',
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("game", ["leduc", "river"])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, solver, game):
    assert solve(tmp_path, game, SOLVERS[solver], 30) == 0
    assert solve(tmp_path, game, SOLVERS[solver], 11, name="parts") == 0
    assert command("resume", tmp_path / "parts", "--iterations", 30) == 0
    assert tables(tmp_path / "parts") == tables(tmp_path / "run")
    assert problems_of(tmp_path / "parts") == []


def test_workers_share_an_iteration_and_change_nothing(tmp_path):
    assert solve(tmp_path, "leduc", SOLVERS["dcfr"], 40) == 0
    assert solve(tmp_path, "leduc", SOLVERS["dcfr"], 40, "--workers", 2, name="two") == 0
    assert tables(tmp_path / "two") == tables(tmp_path / "run")


@pytest.mark.parametrize(("game", "value"), [("kuhn", -1 / 18), ("goofspiel", 0.0)])
def test_a_full_width_run_solves_its_game_and_is_queried(tmp_path, game, value):
    assert solve(tmp_path, game, 'algorithm = "cfr"\nvariant = "cfr+"', 400) == 0
    record = open_run(tmp_path / "run").read("evaluations.jsonl")[-1]
    assert record["exploitability_chips"] < (0.002 if game == "kuhn" else 0.01)
    assert record["value_chips"] == pytest.approx(value, abs=0.002)
    assert record["iterations"] == 400
    assert command("export", tmp_path / "run", tmp_path / "policy") == 0
    found = query(Policy.open(tmp_path / "policy"), "", hand="Q" if game == "kuhn" else None)
    assert sum(action["probability"] for action in found["actions"]) == pytest.approx(1)
    assert found["reached"]


@pytest.mark.parametrize("pruning", ["partial", "regret-based"])
def test_pruned_runs_go_on_and_are_measured(tmp_path, pruning):
    solver = f'algorithm = "cfr"\npruning = "{pruning}"\nupdates = "simultaneous"'
    assert solve(tmp_path, "leduc", solver, 300) == 0
    assert solve(tmp_path, "leduc", solver, 120, name="parts") == 0
    assert command("resume", tmp_path / "parts", "--iterations", 300) == 0
    assert tables(tmp_path / "parts") == tables(tmp_path / "run")
    whole, parts = (open_run(tmp_path / name).read("evaluations.jsonl")[-1] for name in ("run", "parts"))
    assert whole["exploitability_chips"] == parts["exploitability_chips"] < 0.12
    assert whole["nodes_touched"] == parts["nodes_touched"]


def test_keys_of_another_algorithm_are_ignored():
    document = {"game": {"name": "kuhn"}, "solver": {"variant": "dcfr", "updates": "alternating"}}
    assert ignored_keys(document) == ["updates", "variant"]
    assert config_from(document, "x").solver == ExternalSamplingConfig()
