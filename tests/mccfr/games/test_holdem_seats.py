"""A run of hold'em with three seats: plan, training, resume, export, queries, refusals.

Shows:

* `solve` of hold'em with three seats continues with the same bits (test_a_resumed_run_has_the_same_bits)
* Strata train three seats with the same bits for any number of workers
  (test_strata_have_the_same_bits_for_any_number_of_workers)
"""

import csv

import numpy as np
import pytest
from commands import answer, command, refusal

from mccfr.policy import Policy
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint

GAME = """
[game]
name = "holdem"
seats = 3
stack = 1000
rake = "5%"
rake_cap = 60
flop_players = 2
[game.menu]
first = ["1p"]
later = ["1p", "allin"]
max_bets = 2
limp = "small_blind"
"""
REST = """
[run]
workers = 0
nodes = 200_000
[evaluation]
every_checkpoint = false
at_end = false
"""


def config(path, abstraction, rest=REST):
    (file := path / "three.toml").write_text(f'{GAME}[abstraction]\npath = "{abstraction}"\n{rest}')
    return file


@pytest.fixture(scope="module")
def trained(tmp_path_factory, slot_abstractions, tables_read_once):
    root = tmp_path_factory.mktemp("three")
    file = config(root, slot_abstractions[1], f'{REST}[export]\nout = "{root / "policy"}"\n')
    assert command("solve", file, "--run", root / "run") == 0
    return root


@pytest.fixture(scope="module")
def policy(trained):
    return Policy.open(trained / "policy")


def test_a_plan_counts_decisions_by_players_left(trained, slot_abstractions, capsys, tmp_path):
    found = answer(capsys, "plan", config(tmp_path, slot_abstractions[1]))
    table = np.array(found["decision_nodes_by_players_left"])
    assert table.sum(axis=1).tolist() == found["decision_nodes_per_street"]
    assert table.shape == (4, 2) and table[0].min() > 0
    assert table[1:, 1].max() == 0  # two players see the flop
    assert command("plan", config(tmp_path, slot_abstractions[1])) == 0
    assert "by players left, each by street: 2: [" in capsys.readouterr().out


def test_a_resumed_run_has_the_same_bits(trained, slot_abstractions, tmp_path):
    file = config(tmp_path, slot_abstractions[1])
    assert command("solve", file, "--run", tmp_path / "run", "--set", "run.nodes=90_000") == 0
    assert command("resume", tmp_path / "run", "--nodes", 200_000) == 0
    same_averages(trained / "run", tmp_path / "run")


def same_averages(*runs):
    """Assert that both runs are sound and have the same average strategy."""
    assert [problems_of(run) for run in runs] == [[], []]
    opened = [open_run(run) for run in runs]
    one, other = (checkpoint_average(run.build_game(), run.config, find_checkpoint(run, None)) for run in opened)
    for name in ("probability", "weight"):
        for first, second in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(first, second)


def test_queries_name_the_positions(policy, trained, capsys):
    assert problems_of(trained / "policy") == []
    first = policy.query("")
    assert (first["role"], first["pot_chips"]) == ("button", 150)
    assert [action["action"] for action in first["actions"]] == ["f", "b350"]
    small = policy.query("f")
    assert small["role"] == "small blind" and [action["action"] for action in small["actions"]][:2] == ["f", "c"]
    assert policy.query("b350f")["role"] == "big blind"
    flop = policy.query("fcc/", "AsKd", "Qs7h2d")
    assert (flop["role"], flop["street"], flop["pot_chips"]) == ("small blind", "flop", 200)
    run = answer(capsys, "query", trained / "run", "f", "--hand", "AsKd")
    assert run["role"] == "small blind"
    assert sum(action["probability"] for action in run["actions"]) == pytest.approx(1)


def test_the_game_of_a_policy_is_the_game_of_the_run(policy, trained):
    game = open_run(trained / "run").build_game()
    assert policy.game.tree.pots is not None
    for one, other in zip(policy.game.tree.pots, game.tree.pots, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(policy.game.tree.put_in, game.tree.put_in)
    assert policy.game.buckets.tolist() == game.buckets.tolist()


def test_methods_for_two_players_are_refused(trained, slot_abstractions, capsys, tmp_path):
    for method in ("lbr", "head-to-head", "sampled-br", "exact"):
        assert "trained-response" in refusal(capsys, "evaluate", trained / "run", "--method", method)
    assert "is for two players" in refusal(capsys, "export", trained / "run", tmp_path / "p", "--values")
    given = config(tmp_path, slot_abstractions[1]), "--set", 'solver.algorithm="public-chance-sampling"'
    message = refusal(capsys, "plan", *given)
    assert "is for two players" in message and "has 3" in message


def test_strata_have_the_same_bits_for_any_number_of_workers(slot_abstractions, tmp_path, tables_read_once):
    file = config(tmp_path, slot_abstractions[1])
    for workers in (0, 2):
        sets = "--set", f"run.workers={workers}", "--set", "run.strata=3"
        assert command("solve", file, "--run", tmp_path / str(workers), *sets) == 0
    same_averages(tmp_path / "0", tmp_path / "2")


def test_outcome_sampling_trains_three_seats(slot_abstractions, tmp_path):
    file = config(tmp_path, slot_abstractions[1])
    assert command("solve", file, "--run", tmp_path / "run", "--set", 'solver.algorithm="outcome-sampling"') == 0
    assert problems_of(tmp_path / "run") == []


def test_a_line_outside_of_the_tree_is_translated(trained, capsys):
    found = answer(capsys, "query", trained / "policy", "b999", "--hand", "AA")
    assert found["role"] == "small blind" and found["pot_chips"] == 1149
    assert found["readings"] == [{"line": "b350", "after_call": None, "probability": 1.0}]
    whole = answer(capsys, "query", trained / "policy", "b999")
    shares = [action["probability"] for action in found["actions"]]
    assert whole["readings"] == found["readings"] and whole["hands"]["AA"] == pytest.approx(shares)
    assert "a bet must put in 200 to 1000 chips" in refusal(capsys, "query", trained / "policy", "b120", "--hand", "AA")


def test_a_csv_has_rows_of_every_player(policy, tmp_path):
    policy.export(tmp_path / "hands.csv", format="csv", board="")
    with (tmp_path / "hands.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["player"] for row in rows} == {"0", "1", "2"} and len({row["hand"] for row in rows}) == 169
    button = [row for row in rows if (row["line"], row["hand"]) == ("", "AKs")]
    shares = policy.query("", "AKs")["actions"]
    assert [float(row["probability"]) for row in button] == [share["probability"] for share in shares]
