"""The only list of evaluation methods: those that come with the program, and users' own, which are named in the
configuration or on the command line, or by an entry point (`mccfr.config.outside`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mccfr.config import outside
from mccfr.config.suggest import did_you_mean
from mccfr.config.tables import AUTO
from mccfr.evaluation.kinds import KINDS, Exact
from mccfr.evaluation.method import EvaluationLine, Method, Record

if TYPE_CHECKING:
    from mccfr.games.game import Game
    from mccfr.policy.profile import Profile

__all__ = [
    "EvaluationLine",
    "Method",
    "check_method",
    "line_kind",
    "load_method",
    "measure",
    "method_for",
    "method_named",
    "method_options",
    "told",
]

_METHODS: dict[str, Method] = {method.name: method for method in KINDS}
_NOTHING = dict.fromkeys(
    (
        "value_chips",
        "exploitability_chips",
        "exploitability_mbb",
        "best_response_chips",
        "ci95_chips",
        "ci95_mbb",
        "from",
        "setting",
        "against",
        "boards",
        "hands",
        "units",
        "seed",
        "gain_chips",
        "gain_ci95_chips",
        "gain_from_nodes",
    )
)


def load_method(name: str, beside: Sequence[Path] = ()) -> None:
    """Import a method that is named as `module:Class`, outside of a configuration; `ValueError` where that fails.

    beside  directories in which the module is looked for first
    """
    if outside.is_reference(name) and not outside.is_loaded(outside.METHODS, name):
        outside.load(outside.METHODS, name, "method", beside)


def method_named(name: str) -> Method:
    """The method of a name; `ValueError` for an unknown one, or one that has not been loaded."""
    if name in _METHODS:
        return _METHODS[name]
    found = outside.find(outside.METHODS, name)
    if found is None:
        known = [*_METHODS, *outside.installed(outside.METHODS)]
        near = did_you_mean(name, known)
        raise ValueError(f"evaluation method {name!r} is not one of: {', '.join(known)}, or module:Class{near}")
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ValueError(f"evaluation method {name!r} is not derived from mccfr.evaluation.methods.Method")
    method: Method = type(found.__name__, (found,), {"name": name, "__doc__": found.__doc__})()
    return method


def method_for(game: "Game", name: str) -> Method:
    """The method of a name, whether it suits the game or not; of "auto" the first that does, if one does.

    Raises `ValueError` for an unknown one.
    """
    if name != AUTO:
        return method_named(name)
    return next((method for method in _METHODS.values() if method.problem(game) is None), method_named(Exact.name))


def check_method(game: "Game", name: str) -> Method:
    """As `method_for`; `ValueError` where a game cannot be measured by it too."""
    method = method_for(game, name)
    if (problem := method.problem(game)) is not None:
        raise ValueError(problem)
    return method


def line_kind(name: str) -> type[EvaluationLine] | None:
    """What a line of evaluations.jsonl must hold, by its method; None where there is no such method.

    A user's method that is not loaded is not imported for it: its lines hold what every line does.
    """
    if _is_at_hand(name):
        return method_named(name).line
    return EvaluationLine if outside.is_reference(name) else None


def told(record: Record, took: str) -> str:
    """A record as one line for people, whether or not its method is loaded; `took` is the time."""
    if _is_at_hand(record["method"]):
        return method_named(record["method"]).told(record, took)
    return f"value {record['value_chips']:.6g} by {record['method']} ({took})"


def method_options(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option that a method takes, as given or as it holds where none is; raises and leaves out as `measure`."""
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in method.takes and name not in Method.takes:
            known = ", ".join(_said(known) for known in method.takes) or "none"
            raise ValueError(f"the method {method.name} has no {_said(name)}; what it takes: {known}")
    return {name: given.get(name, default) for name, default in method.takes.items()}


def _said(option: str) -> str:
    """An option as the command line has it."""
    return (
        "--workers, --budget or --keep"
        if option == "effort"
        else f"--{option.removesuffix('_street').replace('_', '-')}"
    )


def _is_at_hand(name: str) -> bool:
    """Whether a method can be asked without importing anything."""
    return name in _METHODS or outside.is_loaded(outside.METHODS, name)


def measure(
    name: str,
    side: "Profile",
    against: "Profile | None" = None,
    opponent: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """One evaluation as a record: the fields of `evaluate --json`, and of a line of evaluations.jsonl but for counts.

    against, opponent  the strategy that `side` is played against and its name, for methods that `meet` one
    options            of the method, by what it `takes`; None: as if not given; `boards` and `seed` are left out where
                       it takes none
    Raises `ValueError` as `check_method`, and for options that the method does not take.
    """
    from abstraction.kernels.compiling import working_seconds

    method = check_method(side.game, name)
    chosen = method_options(method, options)
    began = working_seconds()
    found = method.find(side, against, **chosen)
    head = {"method": method.name, "bound": method.bound, **_NOTHING}
    if method.meets:
        head["against"] = opponent
    return head | found | {"seconds": round(working_seconds() - began, 6)}
