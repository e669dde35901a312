"""Arguments of all public functions: wrong types, wrong values, names and objects exchanged.

Shows:

* Wrong arguments in Python raise errors of one sentence that name the argument
  (test_a_wrong_argument_is_accepted_or_the_error_names_it)
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
"""Classes that the package instantiates, and base classes of users: constructors are not tested."""
INNER = {
    *("Game.won_chips", "Game.street_name", "Game.check_two_players", "Variant.powers", "Variant.step", "Seat.played"),
    *("Policy", "Policy.open", "Policy.rows", "Policy.values", "PolicySpec.player", "PlayerSpec.player", "Program.act"),
    "Solver",
}
"""Functions and methods that only the package calls; docs/api.md does not describe them."""


class Anything:
    """A class that may be called with any arguments."""

    def __init__(self, *given: object) -> None:
        pass


def public() -> dict[str, Callable]:
    """Return functions, constructors and methods that take arguments, by name."""
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
def valid_calls(tmp_path_factory):
    """Valid arguments of each public function, and objects to pass as wrong arguments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("arguments"))
        solver = mccfr.solver("kuhn", "cfr")
        solver.run(iterations=5)
        policy, run = solver.save("policy"), mccfr.solve(KUHN, run="run")
        seat = mccfr.play.Seat(policy)
        holdem, hand = "holdem", mccfr.matches.Hand("f", ("AsAd", "KsKd"))

        def seat_with_hand(position: int = 0) -> mccfr.play.Seat:
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
                f"{kind}.board": (lambda **given: seat_with_hand().board(**given), {"cards": ""}),
                f"{kind}.see": (lambda **given: seat_with_hand(1).see(**given), {"action": "c"}),
                f"{kind}.see_line": (lambda **given: seat_with_hand(1).see_line(**given), {"line": "c"}),
                f"{kind}.choose": (lambda **given: seat_with_hand().choose(**given), {"seed": 1}),
            }
        objects = {"game": solver.game, "solver": solver, "policy": policy, "run": run, "class": Anything, "rule": rule}
        yield folder, calls, objects


WORKING = ("match", "resume", "solve", "spot")
"""Functions that are slow with valid arguments."""
REFUSED = (object(), {1: 2}, [object()], b"kuhn")
VALUES = (object(), None, True, -1, 1.5, nan, "", "no-such", "a\0b", [], {1: 2}, [object()], b"kuhn")
RAW = re.compile("object has no|unsupported operand|must be str|not supported between|not iterable|argument should be")
"""Python's own messages, which do not name the argument."""


def fault(call: Callable, given: dict, name: str, value: object) -> str | None:
    """Return the problem with the answer to a value; None if it is accepted, or refused correctly."""
    try:
        call(**{**given, name: value})
    except (ValueError, TypeError, OSError) as error:
        text = str(error)
        if "\n" in text or RAW.search(text):
            return f"{type(error).__name__}: {text}"
        shown = getattr(value, "__name__", None) or " ".join(repr(value).split())[:20].strip("'")
        return None if name.removeprefix("against_") in text or shown in text else f"says nothing of {name}: {text}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "is taken" if type(value) is object or value == {1: 2} else None


def faults(valid_calls, name: str, values: tuple) -> dict[str, str]:
    """Return the problems with a function's answers to each argument and value."""
    call, given = valid_calls[1][name]
    return {
        f"{argument} = {value!r}"[:60]: text
        for argument in arguments(public()[name])
        for value in values
        if (text := fault(call, given, argument, value)) is not None
    }


EVERY = [pytest.param(name, True, marks=[pytest.mark.slow] if name in WORKING else ()) for name in sorted(public())]


@pytest.mark.parametrize(("name", "whole"), [*EVERY, *((name, False) for name in WORKING)])
def test_a_wrong_argument_is_accepted_or_the_error_names_it(valid_calls, name, whole, monkeypatch):
    folder, calls, objects = valid_calls
    monkeypatch.chdir(folder)
    if whole:
        call, given = calls[name]
        call(**given)
    assert faults(valid_calls, name, (*VALUES, *objects.values()) if whole else REFUSED) == {}


def test_a_name_stands_for_its_game():
    named, handed = (mccfr.solver(game, "cfr", variant="dcfr") for game in ("kuhn", mccfr.game("kuhn")))
    for solver in (named, handed):
        solver.run(iterations=5)
    assert (named.strategy().probability[0] == handed.strategy().probability[0]).all()
    assert refused("give a Solver", mccfr.evaluate, mccfr.game("kuhn"), error=TypeError).startswith("mccfr.evaluate")
    refused("it takes iterations=, nodes=, seconds=", named.run, 100, error=TypeError)
    refused("iteration'; it takes config, run, nodes=", mccfr.solve, "kuhn", iteration=5, error=TypeError)


def test_a_refused_limit_is_not_saved_in_the_run(tmp_path):
    """A refused limit in the run's configuration would make the run unreadable."""
    run = mccfr.solve(KUHN, run=tmp_path / "run")
    for limit in ("nodes", "iterations", "seconds", "workers"):
        refused(f"{limit} = -1", mccfr.resume, run, **{limit: -1})
        refused(f"{limit} = -1", mccfr.solve, KUHN, tmp_path / "run", **{limit: -1})
    assert mccfr.resume(run, iterations=6).status()["iterations"] == 6
