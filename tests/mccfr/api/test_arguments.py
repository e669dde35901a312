"""Arguments of all public functions: wrong types, wrong values, names and objects exchanged.

Shows:

* A wrong argument of a Python function raises an error of one sentence that names the argument
  (test_a_wrong_argument_is_taken_or_refused_by_its_name)
"""

import inspect
import re
from collections.abc import Callable
from math import nan

import pytest
from refusals import refused

import mccfr
import mccfr.matches
import mccfr.play

RECORDS = ("Evaluation", "MatchResult", "Progress", "Game", "Player", "PlayerSpec", "Program")
"""Classes that the program makes, and those that users derive from: their constructors are not walked."""
INNER = {
    *("Game.won_chips", "Game.street_name", "Game.check_two_players", "Variant.powers", "Variant.step", "Seat.played"),
    *("Policy", "Policy.open", "Policy.rows", "Policy.values", "PolicySpec.player", "PlayerSpec.player", "Program.act"),
    "Solver",
}
"""What the package itself calls, and docs/api.md does not describe."""


class Anything:
    """A class that may be called with any arguments."""

    def __init__(self, *given: object) -> None:
        pass


def public() -> dict[str, Callable]:
    """Functions, constructors and methods that take arguments, by name."""
    found = {}
    for module in (mccfr, mccfr.matches, mccfr.play):
        for name in module.__all__:
            each = getattr(module, name)
            if inspect.isclass(each):
                found |= {name: each} if name not in RECORDS else {}
                found |= {
                    f"{name}.{method}": function
                    for method, function in inspect.getmembers(each, inspect.isroutine)
                    if not method.startswith("_") and hasattr(function, "__annotations__")
                }
            elif callable(each):
                found[name] = each
    once = {each: name for name, each in reversed(found.items()) if name not in INNER and arguments(each)}
    return {name: each for each, name in once.items()}


def arguments(function: Callable) -> list[str]:
    found = inspect.signature(function).parameters.items()
    return [name for name, each in found if name != "self" and each.kind is not each.VAR_KEYWORD]


SPOT = {"board": "AsKsQs2d3c", "oop": "AA", "ip": "KK", "pot": 10, "stack": 5, "to": "50%", "workers": 0, "run": "spot"}
KUHN = {"game": {"name": "kuhn"}, "run": {"workers": 0, "iterations": 5}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each public function with arguments that it takes, and objects that stand where they do not belong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("arguments"))
        solver = mccfr.solver("kuhn", "cfr")
        solver.run(iterations=5)
        policy, run = solver.save("policy"), mccfr.solve(KUHN, run="run")
        seat = mccfr.play.Seat(policy)
        holdem, hand = "holdem", mccfr.matches.Hand("f", ("AsAd", "KsKd"))

        def dealt(position: int = 0) -> mccfr.play.Seat:
            seat.deal(position, "K")
            return seat

        def rule(regrets, strategy):
            strategy[:] = 1 / len(strategy)

        class Folder(mccfr.play.Program):
            def act(self, random):
                return "f"

        calls = {
            "Hand": (mccfr.matches.Hand, {"line": "f", "hole": ("AsAd", "KsKd")}),
            "Program.raises": (Folder(seat.betting).raises, {}),
            "evaluate": (mccfr.evaluate, {"target": solver, "method": "exact"}),
            "game": (mccfr.game, {"name": "kuhn"}),
            "load_policy": (mccfr.load_policy, {"path": "policy"}),
            "match": (mccfr.match, {"a": policy, "b": "always-call", "hands": 200}),
            "regret_rule": (mccfr.regret_rule, {"function": rule}),
            "resume": (mccfr.resume, {"run": run}),
            "solve": (mccfr.solve, {"config": KUHN, "run": "run"}),
            "solver": (mccfr.solver, {"game": "kuhn", "algorithm": "cfr"}),
            "spot": (mccfr.spot, SPOT),
            "Policy.export": (policy.export, {"out": "rows.csv", "replace": True}),
            "Policy.probabilities": (policy.probabilities, {"node": 0, "bucket": 0}),
            "Policy.query": (policy.query, {"line": "", "hand": "K"}),
            "Policy.weight": (policy.weight, {"node": 0, "bucket": 0}),
            "Run": (mccfr.Run, {"directory": "run"}),
            "Run.export": (run.export, {"out": "exported"}),
            "Solver.query": (solver.query, {"line": "", "hand": "K"}),
            "Solver.run": (solver.run, {"iterations": 1}),
            "Solver.save": (solver.save, {"out": "policy"}),
            "Variant": (lambda **parts: mccfr.solver("kuhn", "cfr", variant=mccfr.Variant(**parts)), {}),
            "PolicySpec": (mccfr.play.PolicySpec, {"policy": policy}),
            "Seat": (mccfr.play.Seat, {"policy": policy}),
            "write_hands": (mccfr.matches.write_hands, {"path": "hands.phhs", "hands": [hand], "game": holdem}),
        }
        for kind in ("Player", "Seat"):
            calls |= {
                f"{kind}.reseed": (seat.reseed, {"seed": 1}),
                f"{kind}.deal": (seat.deal, {"position": 0, "hand": "K"}),
                f"{kind}.board": (lambda **given: dealt().board(**given), {"cards": ""}),
                f"{kind}.see": (lambda **given: dealt(1).see(**given), {"action": "c"}),
                f"{kind}.see_line": (lambda **given: dealt(1).see_line(**given), {"line": "c"}),
                f"{kind}.choose": (lambda **given: dealt().choose(**given), {"seed": 1}),
            }
        objects = {"game": solver.game, "solver": solver, "policy": policy, "run": run, "class": Anything, "rule": rule}
        yield folder, calls, objects


WORKING = ("match", "resume", "solve", "spot")
"""What takes its time where arguments are right."""
REFUSED = (object(), {1: 2}, [object()], b"kuhn")
VALUES = (object(), None, True, -1, 1.5, nan, "", "no-such", "a\0b", [], {1: 2}, [object()], b"kuhn")
RAW = re.compile("object has no|unsupported operand|must be str|not supported between|not iterable|argument should be")
"""What Python says by itself, which tells a caller nothing of the argument."""


def fault(call: Callable, given: dict, name: str, value: object) -> str | None:
    """Return the problem with the answer to a value; None if it is accepted, or refused correctly."""
    try:
        call(**{**given, name: value})
    except (ValueError, TypeError, OSError) as error:
        said = str(error)
        if "\n" in said or RAW.search(said):
            return f"{type(error).__name__}: {said}"
        shown = getattr(value, "__name__", None) or " ".join(repr(value).split())[:20].strip("'")
        return None if name.removeprefix("against_") in said or shown in said else f"says nothing of {name}: {said}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "is taken" if type(value) is object or value == {1: 2} else None


def faults(made, name: str, values: tuple) -> dict[str, str]:
    """Return the problems with a function's answers to each argument and value."""
    call, given = made[1][name]
    return {
        f"{argument} = {value!r}"[:60]: said
        for argument in arguments(public()[name])
        for value in values
        if (said := fault(call, given, argument, value)) is not None
    }


EVERY = [pytest.param(name, True, marks=[pytest.mark.slow] if name in WORKING else ()) for name in sorted(public())]


@pytest.mark.parametrize(("name", "whole"), [*EVERY, *((name, False) for name in WORKING)])
def test_a_wrong_argument_is_taken_or_refused_by_its_name(made, name, whole, monkeypatch):
    folder, calls, objects = made
    monkeypatch.chdir(folder)
    if whole:
        call, given = calls[name]
        call(**given)
    assert faults(made, name, (*VALUES, *objects.values()) if whole else REFUSED) == {}


def test_a_name_stands_for_its_game():
    named, handed = (mccfr.solver(game, "cfr", variant="dcfr") for game in ("kuhn", mccfr.game("kuhn")))
    for solver in (named, handed):
        solver.run(iterations=5)
    assert (named.strategy().probability[0] == handed.strategy().probability[0]).all()
    assert refused("give a Solver", mccfr.evaluate, mccfr.game("kuhn"), error=TypeError).startswith("mccfr.evaluate")
    refused("it takes iterations=, nodes=, seconds=", named.run, 100, error=TypeError)
    refused("iteration'; it takes config, run, nodes=", mccfr.solve, "kuhn", iteration=5, error=TypeError)


def test_a_refused_limit_stays_out_of_the_run(tmp_path):
    """It was written into the run's configuration, which nothing could read after that."""
    run = mccfr.solve(KUHN, run=tmp_path / "run")
    for limit in ("nodes", "iterations", "seconds", "workers"):
        refused(f"{limit} = -1", mccfr.resume, run, **{limit: -1})
        refused(f"{limit} = -1", mccfr.solve, KUHN, tmp_path / "run", **{limit: -1})
    assert mccfr.resume(run, iterations=6).status()["iterations"] == 6
