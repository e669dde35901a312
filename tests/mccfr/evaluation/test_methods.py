"""Evaluation methods: user-defined ones, their records and options, and the method `bounds`."""

import json

import msgspec
import pytest
from commands import answer, command, refusing
from random_policy import policy
from refusals import refusals, refused
from small_games import game_of
from strategies import random_strategy

import mccfr
from mccfr.config import run_tables
from mccfr.evaluation.methods import bounds_method, registry
from mccfr.evaluation.methods.measuring import options_for
from mccfr.evaluation.methods.option_structs import BoardOptions
from mccfr.evaluation.methods.registry import check_method, find_method, load_method, measure, record_text
from mccfr.evaluation.methods.sampled_methods import folding_mbb
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory import journal_records


def test_a_user_defined_method_evaluates_runs(tmp_path, capsys):
    config, directory = tmp_path / "run.toml", tmp_path / "run"
    config.write_text(
        '[game]\nname = "kuhn"\n[run]\nworkers = 0\niterations = 400\n'
        '[evaluation]\nmethod = "toys:Mixed"\nboards = 7\nat_iterations = [200]\nkeep = true\n'
    )
    assert command("plan", config) == 0
    assert command("solve", config, "--run", directory) == 0
    assert "apart from" in capsys.readouterr().err
    found = journal_records.read(directory / "evaluations.jsonl")
    assert [(line["method"], line["against"], line["boards"]) for line in found] == [
        ("toys:Mixed", "uniform", 7),
        ("toys:Mixed", "checkpoint 1", 7),
    ]
    for verb in ("status", "verify"):
        assert command(verb, directory) == 0
    record = answer(capsys, "evaluate", directory, "--method", "toys:Mixed", "--boards", 3)
    assert record["value_chips"] > 0 and record["bound"] == "estimate" and record["exploitability_chips"] is None


def test_records_of_a_method_are_read_and_shown_without_importing_it(tmp_path):
    line = {"method": "nowhere_at_all:Mine", "nodes_touched": 1, "iterations": 1, "checkpoint": 1, "value_chips": 0.5}
    path = tmp_path / "evaluations.jsonl"
    path.write_text(json.dumps(line | {"seconds": 1.0, "bound": "estimate"}) + "\n" + json.dumps(line) + "\n")
    (found,) = journal_records.read(path)
    assert record_text(found, "1 s") == "value 0.5 by nowhere_at_all:Mine (1 s)"
    refused("'nowhere_at_all:Mine' is not one of", find_method, "nowhere_at_all:Mine")


def test_records_of_a_method_must_have_its_declared_fields(tmp_path):
    load_method("toys:Mixed")
    sound = {
        "method": "toys:Mixed",
        "nodes_touched": 1,
        "iterations": 1,
        "checkpoint": 1,
        "value_chips": 0.5,
        "seconds": 1.0,
        "bound": "estimate",
    }
    path = tmp_path / "evaluations.jsonl"
    lines = [sound | {"against": "uniform", "boards": 3}, sound, sound | {"method": "none"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(journal_records.read(path)) == 1
    missing, unknown = journal_records.problems(path)
    assert "against" in missing and "there is no evaluation method 'none'" in unknown


def solve_with_method(method, tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text(f'[game]\nname = "leduc"\n[evaluation]\nmethod = "{method}"\n')
    refusing(("solve", config, "--run", tmp_path / "run"), capsys)


test_refusals = refusals(
    ("leduc is not kuhn: use the method exact", solve_with_method, "toys:Mixed"),
    ("evaluation.method = 'guess' is not allowed: it must be one of 'auto', 'exact'", solve_with_method, "guess"),
    (
        "'toys:MixedLine' is not derived from mccfr",
        lambda: (load_method("toys:MixedLine"), find_method("toys:MixedLine")),
    ),
    ("'guess' is not one of: exact, head-to-head", find_method, "guess"),
    ("use the method exact", lambda: check_method(mccfr.game("goofspiel", cards=3), "head-to-head")),
)


def test_every_listed_method_has_its_name():
    assert (run_tables.AUTO, *registry._METHODS) == run_tables.METHODS
    assert all(method.name == name for name, method in registry._METHODS.items())


def test_the_evaluation_table_has_the_keys_of_declared_options():
    fields = {field.name: field for field in msgspec.structs.fields(run_tables.EvaluationConfig)}
    keys = {name: each for name, each in registry.options_of_all().items() if each.option.key}
    assert set(keys) == {"boards", "setting", "hands"}
    for name, each in keys.items():
        assert fields[name].encode_name == each.name
        assert each.type.__name__ in str(fields[name].type)


def test_a_method_accepts_only_the_options_of_its_struct(capsys):
    """`evaluate --help` lists the same declared options."""
    load_method("toys:Mixed")
    mixed = find_method("toys:Mixed")
    assert options_for(mixed, {"boards": 5, "seed": None}) == BoardOptions(boards=5)
    with pytest.raises(ValueError, match=r"the method toys:Mixed has no --setting; what it takes: --boards, --seed$"):
        options_for(mixed, {"setting": "2"})
    with pytest.raises(ValueError, match=r"bounds has no --setting; what it takes: --seed, --workers, --budget$"):
        options_for(find_method("bounds"), {"boards": 3, "setting": "2"})
    assert command("evaluate", "--help") == 0
    printed = capsys.readouterr().out
    assert all(each.flag in printed for each in registry.options_of_all().values())


def test_bounds_runs_each_method_and_reports_the_largest_bound():
    own = game_of("leduc")
    side = Profile(own, random_strategy(own, 1))
    parts = bounds_method._parts(own)
    record = measure("bounds", side)
    each = [measure(method.name, side, **chosen)["exploitability_chips"] for method, chosen in parts]
    assert [bound["exploitability_chips"] for bound in record["bounds"]] == each
    assert record["exploitability_chips"] == max(each) and record["bound"] == "lower"
    lines = registry.record_text(record, "1 s").splitlines()
    assert len(lines) == len(each) + 1 and "the largest of 4: sampled-br from 0, 1 s" in lines[-1]
    assert registry.method_for(own, "auto").name == "exact"


def test_bounds_of_full_holdem_uses_all_lbr_settings_and_sampled_br():
    own = policy().game
    names = [(method.name, *chosen.values()) for method, chosen in bounds_method._parts(own)]
    assert [name for name in names if name[0] == "lbr"] == [("lbr", each) for each in ("1", "2", "3", "4", "fcpa")]
    assert names[5:] == [("sampled-br", "river"), ("sampled-br", "turn")]
    assert folding_mbb(own) == 750
