"""Evaluates a strategy by a method and makes the record: the method's result with its options.

It checks the results of user-defined methods.
"""

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import msgspec

from mccfr.common.user_code import UserCodeError, calling, function_name, is_foreign
from mccfr.evaluation.methods.method import Method, Record
from mccfr.evaluation.methods.option_structs import BoardOptions, MethodOptions, declared, flags

if TYPE_CHECKING:
    from mccfr.policy.strategy_profile import Profile

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
    )
)


def options_for(method: Method, values: Mapping[str, Any]) -> MethodOptions:
    """Return an instance of a method's options class, filled with given values.

    values  {field name of an option: value}; a value None means that the option is not given

    Raises `ValueError` for an option that the method does not have, except `boards` and `seed`, which are ignored.
    """
    available, values = declared(method.options), {name: value for name, value in values.items() if value is not None}
    for name in values:
        if name not in method.options.__struct_fields__ and name not in BoardOptions.__struct_fields__:
            names = flags(available) or "none"
            raise ValueError(f"the method {method.name} has no {flags([name])}; what it takes: {names}")
    return method.options(**{name: value for name, value in values.items() if name in method.options.__struct_fields__})


def measure_by(
    method: Method, side: "Profile", against: "Profile | None" = None, opponent: str | None = None, **options: Any
) -> dict[str, Any]:
    """Evaluate a strategy by a method that suits its game and return the record.

    A record is a dict of JSON values with the results, the options and the duration in `seconds`. A line of the file
    evaluations.jsonl has its fields and counters of training.

    method             the evaluation method; the caller has checked that it suits the game (`check_method`)
    side               the game and the strategy to evaluate
    against, opponent  strategy that `side` plays against, and its name; None if the method needs none
    options            values of the method's options by field name; None: not given

    Raises `ValueError` for an option that the method does not have, except `boards` and `seed`, which are ignored.
    Raises `UserCodeError` if a user-defined method fails or returns an invalid result. Sampled methods raise
    `StoppedError` if a signal stops them, and `RuntimeError` if a worker process dies.
    """
    from abstraction.kernels.compiling import working_seconds

    chosen = options_for(method, options)
    began = working_seconds()
    result = _checked_result(method, side, against, chosen)
    head = {"method": method.name, "bound": method.bound, **_NOTHING}
    fields = zip(method.options.__struct_encode_fields__, msgspec.structs.astuple(chosen), strict=True)
    head |= {name: value for name, value in fields if name in _NOTHING}
    if method.meets:
        head["against"] = opponent
    record = head | result | {"seconds": round(working_seconds() - began, 6)}
    if is_foreign(method.find):
        _check_line(method, record)
    return record


def _check_line(method: Method, record: Record) -> None:
    """Raise `UserCodeError` if a record lacks fields that the user's method declares.

    Raises it for values of a wrong type too. Fields and types are those of the method's attribute `line`. The fields
    `nodes_touched`, `iterations` and `checkpoint` may be missing, because a run adds them later.
    """
    counts = {"nodes_touched": 0, "iterations": 0, "checkpoint": None}
    try:
        msgspec.convert(counts | dict(record), method.line)
    except msgspec.ValidationError as error:
        problem = str(error).replace("`", "")
        raise UserCodeError(
            f"{function_name(method.find)}: its record does not have the fields of its line type: {problem}"
        ) from None


def _checked_result(
    method: Method, side: "Profile", against: "Profile | None", options: MethodOptions
) -> dict[str, Any]:
    """Call the `find` of a method and return its result, {name: value}.

    side     the game and the strategy to evaluate
    against  the strategy that `side` plays against; None if the method needs none
    options  an instance of the method's options class

    For a user-defined method, raises `UserCodeError` if it raises, or returns no `value_chips` or a number that is not
    finite.
    """
    with calling(method.find):
        result = method.find(side, against, options)
    if not is_foreign(method.find):
        return result
    function = function_name(method.find)
    if not isinstance(result, dict) or "value_chips" not in result:
        raise UserCodeError(f"{function} returned {result!r}; a dict with value_chips is needed")
    value = result["value_chips"]
    if not isinstance(value, Real) or not isfinite(value):
        raise UserCodeError(f"{function} found value_chips = {value!r}; a finite number of chips is needed")
    for key, value in result.items():
        if isinstance(value, float) and not isfinite(value):
            raise UserCodeError(f"{function} found {key} = {value!r}; a finite number, or None, is needed")
    return result | {"value_chips": float(result["value_chips"])}
