"""The examples of docs/extend.md: each file is loaded as `module:object` and works."""

import json
import re

import numpy as np
import pytest
from commands import command
from guests import guests_from
from pages import blocks
from places import ROOT
from refusals import refused

import mccfr

EXAMPLES = ROOT / "docs" / "examples"
PAGE = ROOT / "docs" / "extend.md"
SHOWN = re.compile(r"^\[`\w+\.py`\]\(examples/(\w+\.py)\)$", re.MULTILINE)
FILES = [EXAMPLES / name for name in SHOWN.findall(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty current directory; the examples are imported from where they are, and forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    with guests_from(EXAMPLES, monkeypatch):
        yield tmp_path


def solved(game, algorithm="cfr", iterations=300, **options):
    solver = mccfr.solver(game, algorithm, **options)
    solver.run(iterations=iterations)
    return solver


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_shows_each_file_unchanged(file):
    shown = [text for language, text in blocks(PAGE) if language == "python"]
    assert file.read_text(encoding="utf-8") in shown
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 50


def test_a_game_of_cards_is_kuhn_poker():
    found = mccfr.evaluate(solved(mccfr.game("one_card:one_card"), "cfr", 300, variant="dcfr"))
    assert found.exploitability_chips < 0.001  # the uniform strategy has 0.46
    assert found.value_chips == pytest.approx(-1 / 18, abs=1e-3)
    refused("must be above 0", mccfr.game, "one_card:one_card", bet=0)


def test_a_game_without_cards_is_solved():
    solver = solved(mccfr.game("rock_paper:rock_paper", stones=2.0), "cfr", 1000, variant="cfr+")
    shares = [action["probability"] for action in solver.query("")["actions"]]
    assert shares == pytest.approx([1 / 4, 1 / 2, 1 / 4], abs=0.005)


def test_a_regret_rule_solves_leduc():
    game = mccfr.game("leduc", merge_suits=True)
    assert mccfr.evaluate(solved(game, "cfr", 200, variant="squared:dcfr")).exploitability_chips < 0.02


def test_an_algorithm_solves_kuhn_and_leduc_and_resumes_runs():
    options = {"algorithm": "chance_sampling:ChanceSampling", "deals": 2}
    for game, keys, iterations, chips in (("kuhn", {}, 4000, 0.03), ("leduc", {"merge_suits": True}, 1500, 0.6)):
        solver = solved(mccfr.game(game, **keys), options["algorithm"], iterations, deals=2)
        assert mccfr.evaluate(solver).exploitability_chips < chips
    document = {"game": {"name": "kuhn"}, "solver": options, "run": {"workers": 0}}
    run = mccfr.resume(mccfr.solve(document, run="chance", iterations=200), iterations=400)
    assert run.status()["iterations"] == 400


def test_an_evaluation_method_finds_one_third_and_refuses_other_games():
    solver = solved(mccfr.game("kuhn"), "cfr", 1000, variant="dcfr")
    assert mccfr.evaluate(solver, "bluffs:Bluffs").value_chips == pytest.approx(1 / 3, abs=0.02)
    solver.save("kuhn-policy")
    assert command("evaluate", "kuhn-policy", "--method", "bluffs:Bluffs") == 0
    with pytest.raises(ValueError, match="has not three cards"):
        mccfr.evaluate(solved(mccfr.game("leduc"), "cfr", 1, variant="cfr"), "bluffs:Bluffs")


def test_an_export_has_the_probabilities_of_query(folder):
    from to_json import to_json

    policy = solved(mccfr.game("kuhn"), "cfr", 100, variant="dcfr").save("kuhn-policy")
    to_json("kuhn-policy", "kuhn.json")
    written = json.loads((folder / "kuhn.json").read_text())
    assert sorted(written) == ["", "b", "c", "cb"]
    queried = policy.query("cb", hand="Q")["actions"]
    assert written["cb"]["Q"] == {action["action"]: action["probability"] for action in queried}


# --- objects in place of names; notebooks ---


def test_objects_and_their_names_give_the_same_results():
    from bluffs import Bluffs
    from chance_sampling import ChanceSampling
    from one_card import one_card
    from squared import dcfr, squared

    game = mccfr.game(one_card)
    named = solved(mccfr.game("one_card:one_card"), variant="squared:dcfr")
    handed = solved(game, variant=dcfr)
    assert np.array_equal(named.strategy().probability[0], handed.strategy().probability[0])
    assert mccfr.evaluate(handed, Bluffs).value_chips == mccfr.evaluate(named, "bluffs:Bluffs").value_chips
    rule = solved(game, variant=squared)
    assert mccfr.evaluate(rule).exploitability_chips < 0.02
    mine, theirs = (solved(game, which, 50, deals=2) for which in (ChanceSampling, "chance_sampling:ChanceSampling"))
    assert np.array_equal(mine.strategy().probability[1], theirs.strategy().probability[1])
    document = {"game": {"name": one_card}, "solver": {"algorithm": ChanceSampling}, "run": {"workers": 0}}
    run = mccfr.solve(document, run="run", iterations=50)
    assert mccfr.resume(run, iterations=60).status()["iterations"] == 60


def test_objects_without_a_module_work_in_solvers_but_not_in_runs():
    """A function that a notebook cell defines is in no module, so workers cannot import it."""
    from one_card import one_card

    def cell(ranks: int = 3) -> mccfr.Game:
        return one_card(ranks)

    def worst(side):
        """Return the lowest probability of the first player's actions."""
        return side.strategy.probability[0].min()

    solver = solved(mccfr.game(cell, ranks=4), variant="dcfr")
    assert solver.save("policy").game.name == "one-card"
    found = mccfr.evaluate(solver, worst)
    assert found.value_chips == solver.strategy().probability[0].min() and "worst" in found.method
    with pytest.raises(ValueError, match="a run needs it in a module that workers can import"):
        mccfr.solve({"game": {"name": cell}, "run": {"workers": 0}}, run="run", iterations=5)
    refused("is not derived from", mccfr.evaluate, solver, dict)
