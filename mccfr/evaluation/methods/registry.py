"""The only list of evaluation methods: those that come with the program, and users' own, which are named in the
configuration or on the command line, or by an entry point (`mccfr.config.outside`).
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
    if not (isinstance(found.options, type) and issubclass(found.options, MethodOptions)):
        raise UserCodeError(
            f"evaluation method {name!r}: its options are {found.options!r}; a class derived from "
            "mccfr.evaluation.methods.options.MethodOptions is needed"
        )
    with calling(found):
        method: Method = type(found.__name__, (found,), {"name": name, "__doc__": found.__doc__})()
    return method


def method_for(game: "Game", name: str) -> Method:
    """The method of a name, whether it suits the game or not; of "auto" the first that does, if one does.

    Raises `ValueError` for an unknown one.
    """
    if name != AUTO:
        return method_named(name)
    return next(
        (method for method in _METHODS.values() if method.problem(game) is None and method.suits(game)),
        method_named(ExactMethod.name),
    )


def check_method(game: "Game", name: str) -> Method:
    """As `method_for`; `ValueError` where a game cannot be measured by it too."""
    method = method_for(game, name)
    with calling(method.problem):
        problem = method.problem(game)
    if problem is not None:
        raise ValueError(problem)
    if game.rake is not None and not method.takes_rake:
        raise ValueError(f"the method {method.name} takes what one wins for what the other loses: with rake use exact")
    return method


def line_kind(name: str) -> type[EvaluationLine] | None:
    """What a line of evaluations.jsonl must hold, by its method; None where there is no such method.

    A user's method that is not loaded is not imported for it: its lines hold what every line does.
    """
    if _is_at_hand(name):
        return method_named(name).line
    return EvaluationLine if outside.is_reference(name) else None


def record_text(record: Record, took: str) -> str:
    """A record as one line for people, whether or not its method is loaded; `took` is the time."""
    if _is_at_hand(record["method"]):
        return method_named(record["method"]).text(record, took)
    return f"value {record['value_chips']:.6g} by {record['method']} ({took})"


def options_of_all() -> dict[str, Declared]:
    """Every option of the methods that come with the program, by its keyword."""
    return declared(*(method.options for method in _METHODS.values()))


def options_for(method: Method, given: Mapping[str, Any]) -> MethodOptions:
    """The options of a method, as they are given or as its struct has them; what is None is not given.

    Raises `ValueError` for one that the method has not; `boards` and `seed` are left out there.
    """
    known, given = declared(method.options), {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in method.options.__struct_fields__ and name not in BoardOptions.__struct_fields__:
            what = flags(known) or "none"
            raise ValueError(f"the method {method.name} has no {flags([name])}; what it takes: {what}")
    return method.options(**{name: value for name, value in given.items() if name in method.options.__struct_fields__})


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
    options            of the method, as `options_for` takes them
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
    """Raise `UserCodeError` where a record of a user's method is not what its `line` says: no run could keep it."""
    counts = {"nodes_touched": 0, "iterations": 0, "checkpoint": None}
    try:
        msgspec.convert(counts | dict(record), method.line)
    except msgspec.ValidationError as error:
        told = str(error).replace("`", "")
        raise UserCodeError(f"{function_name(method.find)}: its record does not fit its line: {told}") from None


def _found(method: Method, side: "Profile", against: "Profile | None", options: MethodOptions) -> dict[str, Any]:
    """What a method finds; `UserCodeError` where a user's raises, or finds something that is no finite number."""
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
