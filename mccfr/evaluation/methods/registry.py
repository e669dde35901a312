"""Registry of evaluation methods, built-in and user-defined.

See `mccfr.config.outside` for how user-defined methods are loaded from a configuration, the command line or entry
points.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mccfr.config import outside
from mccfr.config.suggest import did_you_mean
from mccfr.config.tables import AUTO
from mccfr.evaluation.methods.abstract import AbstractMethod
from mccfr.evaluation.methods.bounds import BoundsMethod
from mccfr.evaluation.methods.exact import ExactMethod
from mccfr.evaluation.methods.head_to_head import HeadToHeadMethod
from mccfr.evaluation.methods.local_best_response import LocalBestResponseMethod
from mccfr.evaluation.methods.method import EvaluationLine, Method, Record
from mccfr.evaluation.methods.options import BoardOptions, Declared, MethodOptions, declared, flags
from mccfr.evaluation.methods.sampled_best_response import SampledBestResponseMethod
from mccfr.evaluation.methods.self_consistency import SelfConsistencyMethod
from mccfr.evaluation.methods.trained_best_response import TrainedBestResponseMethod
from mccfr.user_code import UserCodeError, calling, function_name, is_foreign

if TYPE_CHECKING:
    from mccfr.games.game import Game
    from mccfr.policy.profile import Profile

_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        ExactMethod(),
        HeadToHeadMethod(),
        SampledBestResponseMethod(),
        LocalBestResponseMethod(),
        TrainedBestResponseMethod(),
        SelfConsistencyMethod(),
        AbstractMethod(),
        BoundsMethod(),
    )
}
"""In the order in which `auto` tries them."""
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
    """Import a method named as `module:Class` outside a configuration; `ValueError` if that fails.

    beside  directories searched first for the module
    """
    if outside.is_reference(name) and not outside.is_loaded(outside.METHODS, name):
        outside.load(outside.METHODS, name, "method", beside)


def method_named(name: str) -> Method:
    """Return the method of a name; `ValueError` if it is unknown or not loaded."""
    if name in _METHODS:
        return _METHODS[name]
    found = outside.find(outside.METHODS, name)
    if found is None:
        known = [*_METHODS, *outside.installed(outside.METHODS)]
        near = did_you_mean(name, known)
        raise ValueError(f"evaluation method {name!r} is not one of: {', '.join(known)}, or module:Class{near}")
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ValueError(f"evaluation method {name!r} is not derived from mccfr.evaluation.methods.Method")
    if not (isinstance(found.options, type) and issubclass(found.options, MethodOptions)):
        raise UserCodeError(
            f"evaluation method {name!r}: its options are {found.options!r}; a class derived from "
            "mccfr.evaluation.methods.options.MethodOptions is needed"
        )
    with calling(found):
        method: Method = type(found.__name__, (found,), {"name": name, "__doc__": found.__doc__})()
    return method


def method_for(game: "Game", name: str) -> Method:
    """Return the method of a name, or for "auto" the first that suits the game.

    For "auto" without any suitable method it is `exact`. Raises `ValueError` for an unknown name.
    """
    if name != AUTO:
        return method_named(name)
    return next(
        (method for method in _METHODS.values() if method.problem(game) is None and method.suits(game)),
        method_named(ExactMethod.name),
    )


def check_method(game: "Game", name: str) -> Method:
    """Return `method_for`; `ValueError` also if the method cannot measure the game."""
    method = method_for(game, name)
    with calling(method.problem):
        problem = method.problem(game)
    if problem is not None:
        raise ValueError(problem)
    if game.rake is not None and not method.takes_rake:
        raise ValueError(f"the method {method.name} takes what one wins for what the other loses: with rake use exact")
    return method


def line_kind(name: str) -> type[EvaluationLine] | None:
    """Return the record type of a method's lines in evaluations.jsonl, or None for an unknown method.

    A user's method that is not loaded is not imported; its lines have only the common fields.
    """
    if _is_at_hand(name):
        return method_named(name).line
    return EvaluationLine if outside.is_reference(name) else None


def record_text(record: Record, took: str) -> str:
    """Return a record as one line of text, even if its method is not loaded; `took` is the time."""
    if _is_at_hand(record["method"]):
        return method_named(record["method"]).text(record, took)
    return f"value {record['value_chips']:.6g} by {record['method']} ({took})"


def options_of_all() -> dict[str, Declared]:
    """Return all options of the built-in methods by keyword."""
    return declared(*(method.options for method in _METHODS.values()))


def options_for(method: Method, given: Mapping[str, Any]) -> MethodOptions:
    """Return a method's options struct with the given values; None means not given.

    Raises `ValueError` for an option that the method does not have, except `boards` and `seed`, which are ignored.
    """
    known, given = declared(method.options), {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in method.options.__struct_fields__ and name not in BoardOptions.__struct_fields__:
            what = flags(known) or "none"
            raise ValueError(f"the method {method.name} has no {flags([name])}; what it takes: {what}")
    return method.options(**{name: value for name, value in given.items() if name in method.options.__struct_fields__})


def _is_at_hand(name: str) -> bool:
    """Return whether the method is available without an import."""
    return name in _METHODS or outside.is_loaded(outside.METHODS, name)


def measure(
    name: str,
    side: "Profile",
    against: "Profile | None" = None,
    opponent: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate a strategy and return the record, as printed by `evaluate --json`.

    A line of evaluations.jsonl has these fields and the training counters.

    against, opponent  strategy that `side` plays against and its name, for methods that `meet` one
    options            of the method, as in `options_for`

    Raises `ValueError` as `check_method`, and for options that the method does not take.
    """
    from abstraction.kernels.compiling import working_seconds

    method = check_method(side.game, name)
    chosen = options_for(method, options)
    began = working_seconds()
    found = _found(method, side, against, chosen)
    head = {"method": method.name, "bound": method.bound, **_NOTHING}
    fields = zip(method.options.__struct_encode_fields__, msgspec.structs.astuple(chosen), strict=True)
    head |= {name: value for name, value in fields if name in _NOTHING}
    if method.meets:
        head["against"] = opponent
    record = head | found | {"seconds": round(working_seconds() - began, 6)}
    if is_foreign(method.find):
        _check_line(method, record)
    return record


def _check_line(method: Method, record: Record) -> None:
    """Raise `UserCodeError` if the record of a user's method does not match its `line` type."""
    counts = {"nodes_touched": 0, "iterations": 0, "checkpoint": None}
    try:
        msgspec.convert(counts | dict(record), method.line)
    except msgspec.ValidationError as error:
        told = str(error).replace("`", "")
        raise UserCodeError(f"{function_name(method.find)}: its record does not fit its line: {told}") from None


def _found(method: Method, side: "Profile", against: "Profile | None", options: MethodOptions) -> dict[str, Any]:
    """Return the method's result; `UserCodeError` if a user's method raises or gives a non-finite number."""
    with calling(method.find):
        found = method.find(side, against, options)
    if not is_foreign(method.find):
        return found
    function = function_name(method.find)
    if not isinstance(found, dict) or "value_chips" not in found:
        raise UserCodeError(f"{function} returned {found!r}; a dict with value_chips is needed")
    value = found["value_chips"]
    if not isinstance(value, Real) or not isfinite(value):
        raise UserCodeError(f"{function} found value_chips = {value!r}; a finite number of chips is needed")
    for key, value in found.items():
        if isinstance(value, float) and not isfinite(value):
            raise UserCodeError(f"{function} found {key} = {value!r}; a finite number, or None, is needed")
    return found | {"value_chips": float(found["value_chips"])}
