"""Python objects in place of names: games, algorithms, variants, methods; notebooks."""

import numpy as np
import pytest
from guests import guests_from
from places import ROOT
from refusals import refused

import mccfr


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with guests_from(ROOT / "docs/examples", monkeypatch):
        yield tmp_path


def solved(game, algorithm="cfr", iterations=300, **options):
    solver = mccfr.solver(game, algorithm, **options)
    solver.run(iterations=iterations)
    return solver


def test_things_do_what_their_names_do():
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


def test_what_only_this_process_knows_will_do_for_a_solver_and_not_for_a_run():
    """As what a cell of a notebook has made: no module has it."""
    from one_card import one_card

    def cell(ranks: int = 3) -> mccfr.Game:
        return one_card(ranks)

    def worst(side):
        """The probability of the first action that is least."""
        return side.strategy.probability[0].min()

    solver = solved(mccfr.game(cell, ranks=4), variant="dcfr")
    assert solver.save("policy").game.name == "one-card"
    found = mccfr.evaluate(solver, worst)
    assert found.value_chips == solver.strategy().probability[0].min() and "worst" in found.method
    with pytest.raises(ValueError, match="a run needs it in a module that workers can import"):
        mccfr.solve({"game": {"name": cell}, "run": {"workers": 0}}, run="run", iterations=5)
    refused("is not derived from", mccfr.evaluate, solver, dict)
