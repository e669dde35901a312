"""An evaluation method answers for itself: a toy one, added from outside, is used by runs and commands alike."""

import json
from typing import ClassVar

import pytest
from commands import command

from mccfr.config import tables
from mccfr.evaluation import methods
from mccfr.evaluation.methods import EvaluationLine, Method, check_method, method_named, register
from mccfr.games.catalogue import build_game
from mccfr.runs import records


class MixedLine(EvaluationLine):
    against: str
    boards: int


class Mixed(Method):
    """A toy: how far two strategies' first decisions are apart."""

    name: ClassVar = "mixed"
    bound: ClassVar = "estimate"
    meets: ClassVar = True
    line: ClassVar = MixedLine

    def problem(self, game):
        return None if game.name == "kuhn" else f"{game.name} is not kuhn: use the method exact"

    def find(self, side, against, *, boards, seed):
        one, other = (each.strategy.probability[0][:, 0] for each in (side, against))
        return {"value_chips": float(abs(one - other).sum()), "boards": boards, "seed": seed}

    def told(self, record, took):
        return f"{record['value_chips']:.3f} apart from {record['against']} ({took})"

    def short(self, record):
        return "apart"


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    known = list(tables.METHODS)
    register(Mixed())
    yield
    tables.METHODS[:] = known


def test_a_method_from_outside_measures_runs_and_policies(tmp_path, toy, capsys):
    config, directory = tmp_path / "run.toml", tmp_path / "run"
    config.write_text(
        '[game]\nname = "kuhn"\n[run]\nworkers = 0\niterations = 400\n'
        '[evaluation]\nmethod = "mixed"\nboards = 7\nat_iterations = [200]\nkeep = true\n'
    )
    assert command("plan", config) == 0
    assert command("solve", config, "--run", directory) == 0
    assert "apart from" in capsys.readouterr().err
    found = records.read(directory / "evaluations.jsonl")
    assert [(line["method"], line["against"], line["boards"]) for line in found] == [
        ("mixed", "uniform", 7),
        ("mixed", "checkpoint 1", 7),
    ]
    for verb in ("status", "verify"):
        assert command(verb, directory) == 0
    capsys.readouterr()
    assert command("evaluate", directory, "--method", "mixed", "--boards", 3, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["value_chips"] > 0 and record["bound"] == "estimate" and record["exploitability_chips"] is None
    assert command("report", directory, tmp_path / "page.html") == 0


def test_lines_of_a_method_are_held_to_what_it_says(tmp_path, toy):
    sound = {
        "method": "mixed",
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


def test_what_it_cannot_measure_is_refused(tmp_path, toy, capsys):
    config = tmp_path / "run.toml"
    config.write_text('[game]\nname = "leduc"\n[evaluation]\nmethod = "mixed"\n')
    assert command("solve", config, "--run", tmp_path / "run") == 2
    assert "leduc is not kuhn: use the method exact" in capsys.readouterr().err
    config.write_text('[game]\nname = "leduc"\n[evaluation]\nmethod = "guess"\n')
    assert command("plan", config) == 2
    assert "evaluation.method = 'guess' is not allowed: it must be one of 'auto', 'exact'" in capsys.readouterr().err


def test_a_name_belongs_to_one_method(toy):
    class Other(Mixed):
        pass

    with pytest.raises(ValueError, match="there is an evaluation method 'mixed' already"):
        register(Other())
    with pytest.raises(ValueError, match="'guess' is not one of: exact, head-to-head, mixed"):
        method_named("guess")
    goofspiel = build_game(tables.GoofspielGame(cards=3), None)
    with pytest.raises(ValueError, match="use the method exact"):
        check_method(goofspiel, "head-to-head")


def test_every_listed_method_has_its_name():
    assert [tables.AUTO, *methods._METHODS] == tables.METHODS
    assert all(method.name == name for name, method in methods._METHODS.items())
