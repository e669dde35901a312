"""Evaluates a strategy: of a run's checkpoint, an exported one (policy), or one in memory."""

from collections.abc import Callable, Set
from pathlib import Path
from typing import Any

from mccfr.config.run_tables import AUTO
from mccfr.evaluation.methods import Method
from mccfr.evaluation.methods.head_to_head_method import HeadToHeadMethod
from mccfr.evaluation.methods.lower_bound_methods import LocalBestResponseMethod, SampledBestResponseMethod
from mccfr.evaluation.methods.measuring import options_for
from mccfr.evaluation.methods.registry import check_method, load_method, measure, method_for
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import EVALUATING, Reporter, Silent
from mccfr.runs.results.targets import UNIFORM, Reference, Target, open_target, opponent, plain_strategy_target

UNIFORM_PLAY = Reference(Path(UNIFORM))
"""Default opponent."""


def evaluate_target(
    target: Path,
    method: str,
    number: int | None = None,
    *,
    abstraction: Path | None = None,
    average: str | None = None,
    against: Reference = UNIFORM_PLAY,
    strategy: str | None = None,
    reporter: Reporter | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate a saved strategy; return the dictionary that `mccfr evaluate --json` prints.

    target       path of a run (its checkpoints), a policy (an exported strategy) or exported networks of Deep CFR
    method       name of a method, `module:Class` of a user's, or "auto": head-to-head if there is an opponent, else
                 exact, or another method in games for which exact is impossible
    number       number of a run's checkpoint; None: the newest
    abstraction  path where a run's card abstraction is now, if it was moved
    average      name of a run's average strategy, for algorithms with several; the result names it
    against      opponent, for the method head-to-head; it may use other buckets
    strategy     "uniform", "always-call" or "always-fold": evaluate this in the target's game, not the target
    reporter     told which phase of the evaluation begins, such as "reading PATH"; None: nothing is reported
    options      options of the method, such as `boards`

    Raises `ValueError` for a target that is none of these, and an unknown or unsuitable method. Also for an opponent
    of another game, or one given to a method that has none. A method `module:Class` is searched for in the current
    directory first.
    """
    reference = Reference(target, number, abstraction, average)
    with naming_phases(reporter or Silent()) as phases:
        phases.phase(f"reading {reference.path}")
        opened = open_target(reference, on_deals=method == HeadToHeadMethod.name)
        chosen = {} if reference.average is None else {"average": reference.average}
        if strategy is not None:
            opened, chosen = plain_strategy_target(opened, strategy), {**chosen, "strategy": strategy}
        load_method(method, (Path(),))

        def other() -> tuple[Profile, str]:
            phases.phase(f"reading {against.path}")
            return opponent(opened, against), str(against.path)

        given = None if against == UNIFORM_PLAY else other
        return evaluate_open_strategy(opened, method, given, reporter=phases, **options) | chosen


def evaluate_open_strategy(
    target: Target,
    method: str,
    against: Callable[[], tuple[Profile, str]] | None = None,
    *,
    reporter: Reporter | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Evaluate a strategy in memory; return the dictionary that `mccfr evaluate --json` prints.

    target    the strategy, its game, and the numbers of iterations and nodes of its training
    method    "auto": head-to-head if there is an opponent, otherwise exact. In games too large for it, a lower bound:
              lbr, or sampled-br if `boards` is given. For three and more players with dealt cards: trained-response
    against   function that returns the opponent's strategy and name; None: uniform play, if the method needs an
              opponent
    reporter  told which phase of the evaluation begins; None: nothing is reported
    options   options of the method, such as `boards`

    Raises `ValueError` if the method does not suit the game, or has no opponent although one is given. Raises it too
    for an opponent of another game, and for an option without effect, such as `boards` of exact.
    """
    reporter, side = reporter or Silent(), Profile(target.game, target.strategy)
    given = {key: value for key, value in options.items() if value is not None}
    if method == AUTO:
        method = _decided(target.game, against is not None, given.keys())
    chosen = check_method(target.game, method)
    values = options_for(chosen, given)
    ignored = {"boards", "seed"} - {*values.__struct_fields__} | chosen.without_effect(target.game, values)
    if unused := given.keys() & ignored:
        option = min(unused).removesuffix("_street")
        raise ValueError(f"--{option} has no effect on {method} of {target.game.name}: leave it out")
    other, name = _opponent_of(target, chosen, against)
    reporter.phase(EVALUATING)
    with naming_steps(reporter):
        record = measure(method, side, other, name, **options) | target.counts
    return record | {"roles": list(target.game.roles), "big_blind_chips": target.game.big_blind_chips}


def _decided(game: Game, opposed: bool, option_names: Set[str]) -> str:
    """Return the name of the evaluation method that "auto" means for this game, such as "exact".

    opposed       True if an opponent is given; the method is then head-to-head
    option_names  names of the options that the user has given; "boards" can decide for sampled-br
    """
    if opposed:
        return HeadToHeadMethod.name
    chosen = method_for(game, AUTO)
    if not isinstance(chosen, HeadToHeadMethod):
        return chosen.name
    takes_boards = option_names <= set(SampledBestResponseMethod.options.__struct_fields__) and "boards" in option_names
    return SampledBestResponseMethod.name if takes_boards else LocalBestResponseMethod.name


def _opponent_of(
    target: Target, method: Method, against: Callable[[], tuple[Profile, str]] | None
) -> tuple[Profile | None, str | None]:
    """Return (opponent's game and strategy, its name); two times None for methods without one.

    against  function that returns both; None: uniform play in the target's game

    Raises `ValueError` if an opponent is given to a method without one.
    """
    if method.meets:
        return against() if against is not None else (opponent(target, UNIFORM_PLAY), UNIFORM)
    if against is not None:
        raise ValueError(f"the method {method.name} has no opponent: leave --against out, or use head-to-head")
    return None, None
