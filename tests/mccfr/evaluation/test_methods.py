"""An evaluation method answers for itself: a toy one, named from outside, is used by runs and commands alike."""

import json

import pytest
from commands import command

from mccfr.config import tables
from mccfr.config.games import GoofspielGame
from mccfr.evaluation import methods
from mccfr.evaluation.methods import check_method, load_method, method_named, told
from mccfr.games.catalogue import build_game
from mccfr.runs.directory import records


def test_a_method_from_outside_measures_runs_and_policies(tmp_path, capsys):
    config, directory = tmp_path / "run.toml", tmp_path / "run"
    config.write_text(
        '[game]\nname = "kuhn"\n[run]\nworkers = 0\niterations = 400\n'
        '[evaluation]\nmethod = "toys:Mixed"\nboards = 7\nat_iterations = [200]\nkeep = true\n'
    )
    assert command("plan", config) == 0
    assert command("solve", config, "--run", directory) == 0
    assert "apart from" in capsys.readouterr().err
    found = records.read(directory / "evaluations.jsonl")
    assert [(line["method"], line["against"], line["boards"]) for line in found] == [
        ("toys:Mixed", "uniform", 7),
        ("toys:Mixed", "checkpoint 1", 7),
    ]
    for verb in ("status", "verify"):
        assert command(verb, directory) == 0
    capsys.readouterr()
    assert command("evaluate", directory, "--method", "toys:Mixed", "--boards", 3, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["value_chips"] > 0 and record["bound"] == "estimate" and record["exploitability_chips"] is None
    assert command("report", directory, tmp_path / "page.html") == 0


def test_lines_of_a_method_that_is_not_loaded_are_kept_and_told_without_importing_it(tmp_path):
    line = {"method": "nowhere_at_all:Mine", "nodes_touched": 1, "iterations": 1, "checkpoint": 1, "value_chips": 0.5}
    path = tmp_path / "evaluations.jsonl"
    path.write_text(json.dumps(line | {"seconds": 1.0}) + "\n" + json.dumps(line) + "\n")
    (found,) = records.read(path)
    assert told(found, "1 s") == "value 0.5 by nowhere_at_all:Mine (1 s)"
    with pytest.raises(ValueError, match="'nowhere_at_all:Mine' is not one of"):
        method_named("nowhere_at_all:Mine")


def test_lines_of_a_method_are_held_to_what_it_says(tmp_path):
    load_method("toys:Mixed")
    sound = {
        "method": "toys:Mixed",
        "nodes_touched": 1,
        "iterations": 1,
        "checkpoint": 1,
        "value_chips": 0.5,
        "seconds": 1.0,
    }
    path = tmp_path / "evaluations.jsonl"
    lines = [sound | {"against": "uniform", "boards": 3}, sound, sound | {"method": "none"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(records.read(path)) == 1
    missing, unknown = records.problems(path)
    assert "against" in missing and "there is no evaluation method 'none'" in unknown


def test_what_it_cannot_measure_is_refused(tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text('[game]\nname = "leduc"\n[evaluation]\nmethod = "toys:Mixed"\n')
    assert command("solve", config, "--run", tmp_path / "run") == 2
    assert "leduc is not kuhn: use the method exact" in capsys.readouterr().err
    config.write_text('[game]\nname = "leduc"\n[evaluation]\nmethod = "guess"\n')
    assert command("plan", config) == 2
    assert "evaluation.method = 'guess' is not allowed: it must be one of 'auto', 'exact'" in capsys.readouterr().err


def test_what_is_no_method_is_refused():
    load_method("toys:MixedLine")
    with pytest.raises(ValueError, match="'toys:MixedLine' is not derived from mccfr"):
        method_named("toys:MixedLine")
    with pytest.raises(ValueError, match="'guess' is not one of: exact, head-to-head"):
        method_named("guess")
    goofspiel = build_game(GoofspielGame(cards=3), None)
    with pytest.raises(ValueError, match="use the method exact"):
        check_method(goofspiel, "head-to-head")


def test_every_listed_method_has_its_name():
    assert (tables.AUTO, *methods._METHODS) == tables.METHODS
    assert all(method.name == name for name, method in methods._METHODS.items())
