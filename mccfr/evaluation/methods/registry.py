"""Registry of evaluation methods, built-in and user-defined.

A user-defined method is named `module:Class`; `mccfr.config.plugins` loads it for a configuration or a command.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mccfr.common.user_code import UserCodeError, calling
from mccfr.config import plugins
from mccfr.config.run_tables import AUTO
from mccfr.config.value_limits import did_you_mean
from mccfr.evaluation.methods.bounds_method import BoundsMethod
from mccfr.evaluation.methods.exact_method import ExactMethod
from mccfr.evaluation.methods.head_to_head_method import HeadToHeadMethod
from mccfr.evaluation.methods.lower_bound_methods import LocalBestResponseMethod, SampledBestResponseMethod
from mccfr.evaluation.methods.measuring import measure_by
from mccfr.evaluation.methods.method import EvaluationLine, Method, Record
from mccfr.evaluation.methods.option_structs import Declared, MethodOptions, declared
from mccfr.evaluation.methods.trained_response_method import TrainedResponseMethod

if TYPE_CHECKING:
    from mccfr.games.game import Game
    from mccfr.policy.strategy_profile import Profile

_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        ExactMethod(),
        HeadToHeadMethod(),
        SampledBestResponseMethod(),
        LocalBestResponseMethod(),
        BoundsMethod(),
        TrainedResponseMethod(),
    )
}
"""In the order in which `auto` tries them."""


def load_method(name: str, search_directories: Sequence[Path] = ()) -> None:
    """Import a user-defined evaluation method by its name `module:Class`.

    search_directories  directories searched first for the module

    Does nothing for other names and for methods that are already loaded. Raises `ValueError` if the import fails.
    """
    if plugins.is_reference(name) and not plugins.is_loaded(plugins.METHODS, name):
        plugins.load(plugins.METHODS, name, "method", search_directories)


def find_method(name: str) -> Method:
    """Return an instance of the evaluation method of a name, such as "lbr" or `module:Class`.

    Raises `ValueError` if the name is unknown, its module not loaded, or the user's class no `Method`. Raises
    `UserCodeError` for a user's class with wrong options, or one that cannot be instantiated.
    """
    if name in _METHODS:
        return _METHODS[name]
    loaded = plugins.find(plugins.METHODS, name)
    if loaded is None:
        near = did_you_mean(name, _METHODS)
        raise ValueError(f"evaluation method {name!r} is not one of: {', '.join(_METHODS)}, or module:Class{near}")
    if not (isinstance(loaded, type) and issubclass(loaded, Method)):
        raise ValueError(f"evaluation method {name!r} is not derived from mccfr.evaluation.methods.Method")
    if not (isinstance(loaded.options, type) and issubclass(loaded.options, MethodOptions)):
        raise UserCodeError(
            f"evaluation method {name!r}: its options are {loaded.options!r}; a class derived from "
            "mccfr.evaluation.methods.option_structs.MethodOptions is needed"
        )
    with calling(loaded):
        method: Method = type(loaded.__name__, (loaded,), {"name": name, "__doc__": loaded.__doc__})()
    return method


def method_for(game: "Game", name: str) -> Method:
    """Return the evaluation method of a name, or for "auto" the first that suits the game.

    If no method suits, "auto" is `exact`. For more than two players it is `trained-response` if the game deals cards
    that are not in its tree, else `exact`. Raises `ValueError` for an unknown name.
    """
    if name == AUTO and game.tree.players > 2:
        return find_method(TrainedResponseMethod.name if game.cards.dealt else ExactMethod.name)
    if name != AUTO:
        return find_method(name)
    return next(
        (method for method in _METHODS.values() if method.problem(game) is None and method.suits(game)),
        find_method(ExactMethod.name),
    )


def check_method(game: "Game", name: str) -> Method:
    """Return the evaluation method of a name, or for "auto" one that suits the game.

    Raises `ValueError` for an unknown name, and if the method cannot measure the game. Reasons are its cards, three or
    more players, rake, or what the method's `problem` returns.
    """
    method = method_for(game, name)
    if not method.takes_seats:
        game.check_two_players(f"the method {method.name}")
    with calling(method.problem):
        problem = method.problem(game)
    if problem is not None:
        raise ValueError(problem)
    if game.rake is not None and not method.takes_rake:
        raise ValueError(
            f"the method {method.name} assumes that one player wins what the other loses: with rake use exact"
        )
    return method


def line_kind(name: str) -> type[EvaluationLine] | None:
    """Return the type of a method's lines in evaluations.jsonl, or None for an unknown method.

    A user's method that is not loaded is not imported; the result is then the type with the common fields only.

    name  name of the method, such as "lbr" or `module:Class`
    """
    if _is_at_hand(name):
        return find_method(name).line
    return EvaluationLine if plugins.is_reference(name) else None


def record_text(record: Record, took: str) -> str:
    """Return a result as one line of text for the user, even if its method is not loaded.

    record  {name: value} of the result
    took    duration of the evaluation, as text
    """
    if _is_at_hand(record["method"]):
        return find_method(record["method"]).text(record, took)
    return f"value {record['value_chips']:.6g} by {record['method']} ({took})"


def options_of_all() -> dict[str, Declared]:
    """Return {field name: `Declared`} of the options of all built-in methods."""
    return declared(*(method.options for method in _METHODS.values()))


def _is_at_hand(name: str) -> bool:
    """Return whether the method `name` is built in, or a user-defined one that is loaded."""
    return name in _METHODS or plugins.is_loaded(plugins.METHODS, name)


def measure(
    name: str,
    side: "Profile",
    against: "Profile | None" = None,
    opponent: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate a strategy by the method of a name and return the record.

    The record is a dict of JSON values, as printed by `evaluate --json`.

    side               the game and the strategy to evaluate
    against, opponent  strategy that `side` plays against, and its name, for methods that need one (`Method.meets`)
    options            values of the method's options by field name; None: not given

    Raises `ValueError` for an unknown method, a game that it cannot measure, and options that it does not take. Only
    `boards` and `seed` are ignored instead by methods without them. Raises `UserCodeError` if a user-defined method
    fails. Sampled methods raise `StoppedError` if a signal stops them, and `RuntimeError` if a worker process dies.
    """
    return measure_by(check_method(side.game, name), side, against, opponent, **options)
