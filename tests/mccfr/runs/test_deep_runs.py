"""Deep CFR runs: resuming, number of workers, exports, all commands, refused options.

Shows:

* Stopped Deep CFR runs resume to the same bits, with any workers (test_a_stopped_deep_run_continues_with_the_same_bits,
  test_a_deep_run_on_sampled_deals_has_the_same_bits_for_any_number_of_workers)
"""

import json

import pytest
import tomli_w
from commands import answer, command, refusal, refusing
from places import RUNS
from refusals import refusals
from sessions import NO_EVALUATION, assert_same, go, make, trained

from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.directory.verification import problems_of

LEDUC = {"name": "leduc", "merge_suits": True}
SMALL = {"algorithm": "deep-cfr", "traversals": 20, "memory": 3000, "units": 8, "layers": 2}
NETWORK = {**SMALL, "steps": 5, "batch": 64, "horizon": 20}
BOTH = {"averages": ["sd", "network"], "strategy_steps": 5}
SOLVERS = {
    "network": NETWORK,
    "branches, both averages": {**NETWORK, **BOTH, "network": "branches", "card_units": 8},
    "few networks": {**SMALL, "steps": 5, "batch": 64, "keep_networks": 2},
    "table": {"algorithm": "deep-cfr", "traversals": 20, "memory": 3000, "fit": "table"},
    "whole memories": {**NETWORK, "batch": "all"},
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_stopped_deep_run_continues_with_the_same_bits(tmp_path, name):
    whole, parts = (make(tmp_path / which, SOLVERS[name], LEDUC, iterations=6) for which in ("whole", "parts"))
    go(whole)
    for last in (1, 2, 5, 6) if name == "network" else (2, 6):
        go(parts, iterations=last)
    assert_same(whole, parts)
    assert problems_of(parts.directory) == []


def test_the_number_of_workers_does_not_change_the_tables(tmp_path):
    solver = {**NETWORK, "traversals": 600}
    assert_same(*(trained(make(tmp_path / str(n), solver, LEDUC, iterations=2, workers=n)) for n in (0, 2)))


FLOP_HOLDEM = {"name": "flop-holdem"}
FIVE = {**FLOP_HOLDEM, "bet": "pot", "limp": False, "max_raises": [1, 2], "board_cards": 5}


def test_a_deep_run_on_sampled_deals_has_the_same_bits_for_any_number_of_workers(tmp_path, capsys):
    """The game is too large to list its infosets; batches have at most 1,024 of the 1,030 traversals."""
    solver = {**NETWORK, **BOTH, "traversals": 1030, "horizon": 2}
    whole, parts = (
        make(tmp_path / str(n), solver, FLOP_HOLDEM, evaluation=NO_EVALUATION, iterations=2, workers=n) for n in (2, 0)
    )
    go(whole)
    for last in (1, 2):
        go(parts, iterations=last)
    assert_same(whole, parts)
    assert problems_of(parts.directory) == []
    assert command("export", parts.directory, tmp_path / "raw", "--format", "zarr") == 0
    capsys.readouterr()
    assert command("export", parts.directory, tmp_path / "networks") == 0
    arguments = [str(tmp_path / "networks"), "b200", "--board", "", "--hand", "AsKs", "--json"]
    found = answer(capsys, "query", *arguments)
    assert (found["networks"], found["reached"]) == (2, True)
    assert found == answer(capsys, "query", parts.directory, *arguments[1:])
    sampled = answer(capsys, "query", *arguments, "--sample", "1")
    assert (sampled["networks"], 0 <= sampled["sampled_iteration"] <= 2) == (1, True)


def refused_export(options, tmp_path, capsys):
    run = trained(make(tmp_path / "run", {**SMALL, "fit": "table", "averages": ["sd", "network"]}, iterations=2))
    message = refusal(capsys, "export", run.directory, tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()
    raise ValueError(message.strip())


test_exports_of_a_run_of_tables_that_are_refused = refusals(
    ("keeps no networks", ["--format", "networks"]),
    ("keeps no networks", ["--format", "networks", "--average", "network"]),
    ("leave --average out", ["--format", "zarr", "--average", "sd"]),
    ("csv is not rounded", ["--format", "csv", "--quantise", "uint8"]),
    call=refused_export,
)


def test_averages_of_unlisted_games_are_compared_on_sampled_deals(tmp_path, capsys):
    """Compare the averages of a run, and those of its exported networks."""
    solver = {**NETWORK, **BOTH, "traversals": 40, "horizon": 2}
    run = trained(make(tmp_path / "run", solver, FIVE, evaluation=NO_EVALUATION, iterations=2))
    assert command("export", run.directory, tmp_path / "shares", "--average", "network") == 0
    capsys.readouterr()
    head_to_head = ["--method", "head-to-head", "--boards", "40", "--json", "--against"]
    arguments = ["--average", "sd", *head_to_head, str(run.directory), "--against-average", "network"]
    found = answer(capsys, "evaluate", run.directory, *arguments)
    assert (found["boards"], found["average"], found["against"]) == (40, "sd", str(run.directory))
    assert found["ci95_chips"][0] < found["value_chips"] < found["ci95_chips"][1]
    again = answer(capsys, "evaluate", tmp_path / "shares", *head_to_head, str(run.directory))
    assert again["value_chips"] == pytest.approx(-found["value_chips"], abs=1e-6)
    for wrong, words in (
        (["--method", "exact"], "cannot be made a table"),
        ([*arguments, "--workers", "2"], "leave workers, budget and keep out"),
    ):
        assert words in refusal(capsys, "evaluate", run.directory, *wrong)
    assert "cannot be made a table" in refusal(capsys, "export", run.directory, tmp_path / "policy", "--tabulate")


def test_every_command_accepts_a_deep_run(tmp_path, capsys):
    config, run, policy = tmp_path / "deep.toml", tmp_path / "run", tmp_path / "policy"
    solver = {"algorithm": "deep-cfr", "traversals": 50, "memory": 5000, "units": 8, "steps": 10, "batch": "all"}
    document = {"game": LEDUC, "solver": {**solver, **BOTH, "strategy_steps": 10}}
    config.write_text(tomli_w.dumps({**document, "run": {"workers": 0, "iterations": 4}}))
    plan = answer(capsys, "plan", config)
    assert plan["bytes_per_table"]["memory/player0/regret"] == 5000 * 3 * 4
    assert plan["bytes_per_table"]["networks/player1/weight"] == 4 * 8
    assert plan["memories_bytes"] == 2 * 5000 * (4 + 4 + 3 * 4) * 2
    assert plan["networks_bytes"] == 2 * (4 * plan["parameters"] * 5 + 4 * 16)
    assert plan["seconds"] == 4 * plan["seconds_per_iteration"] > 0
    assert command("solve", config, "--run", run) == 0
    status = answer(capsys, "status", run)
    assert (status["state"], status["iterations"]) == ("finished", 4)
    line = json.loads((run / EVALUATIONS).read_text().splitlines()[-1])
    assert line["average"] == "sd" and line["networks"] == [4, 4] and min(line["samples"] + line["loss"]) > 0
    assert line["other_averages"]["network"]["exploitability_chips"] > 0
    found = answer(capsys, "evaluate", run)
    assert found["exploitability_chips"] == pytest.approx(line["exploitability_chips"], rel=1e-12)
    assert command("verify", run) == 0
    assert command("export", run, policy, "--tabulate") == 0
    assert command("query", policy, "b2", "--hand", "K") == 0
    network = line["other_averages"]["network"]["exploitability_chips"]
    assert command("export", run, tmp_path / "network", "--average", "network", "--tabulate") == 0
    capsys.readouterr()
    found = answer(capsys, "evaluate", tmp_path / "network")
    assert found["exploitability_chips"] == pytest.approx(network, abs=1e-3)
    assert "sd, network" in refusal(capsys, "export", run, tmp_path / "none", "--average", "median")


BUCKETS = f"\n[abstraction]\npath = 'quick'\nrecipe = '{RUNS}/abstractions/quick.toml'"
KUHN, FLOP, ITERATIONS = 'name = "kuhn"', 'name = "flop-holdem"', "iterations = 4"


def refused_solve(game, solver, run, tmp_path, capsys):
    config = tmp_path / "deep.toml"
    config.write_text(f'[game]\n{game}\n[solver]\nalgorithm = "deep-cfr"\n{solver}\n[run]\nworkers = 0\n{run}\n')
    refusing(("solve", config, "--run", tmp_path / "run"), capsys)


test_configurations_that_deep_cfr_refuses = refusals(
    ("solver.steps = 0", KUHN, "steps = 0", ITERATIONS),
    ("solver.traversals = 0", KUHN, "traversals = 0", ITERATIONS),
    ("solver.units = 0", KUHN, "units = 0", ITERATIONS),
    ("solver.keep_networks = 0", KUHN, "keep_networks = 0", ITERATIONS),
    ("solver.keep_networks", KUHN, "keep_networks = 'some'", ITERATIONS),
    ("'sd', 'network' or both", KUHN, "averages = []", ITERATIONS),
    ("'sd', 'network' or both", KUHN, "averages = ['sd', 'sd']", ITERATIONS),
    ("solver.batch = 0", KUHN, "batch = 0", ITERATIONS),
    ("solver.learning_rate = 0 is", KUHN, "learning_rate = 0.0", ITERATIONS),
    ("run.iterations = 4 goes beyond solver.horizon = 3", KUHN, "horizon = 3", ITERATIONS),
    ("the tables need 288 TB", KUHN, "memory = 9_000_000_000_000", ITERATIONS),
    ("give run.iterations", KUHN, "network = 'branches'", "seconds = 5"),
    ("'plain'", 'name = "openspiel"\ngame = "kuhn_poker"', "network = 'branches'", ITERATIONS),
    ("solver.fit = 'table' needs infosets that can be listed", FLOP, "fit = 'table'", ITERATIONS),
    ("give a number", FLOP, "batch = 'all'", ITERATIONS),
    ("takes no buckets", f"{FLOP}{BUCKETS}", "", ITERATIONS),
    ("takes no buckets", f"name = 'holdem'{BUCKETS}", "", ITERATIONS),
    ("takes no buckets", f"name = 'limit-holdem'{BUCKETS}", "", ITERATIONS),
    ("solver.horizon = 3 is not allowed", KUHN, "fit = 'table'\nhorizon = 3", ITERATIONS),
    ("solver.horizon = 3 is not allowed", KUHN, "keep_networks = 2\nhorizon = 3", ITERATIONS),
    ("set evaluation.every_checkpoint and at_end to false", f"{FLOP}\nboard_cards = 5", "", ITERATIONS),
    call=refused_solve,
)
