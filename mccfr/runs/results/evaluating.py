"""One evaluation of a run's checkpoint, a policy or something open, as a record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mccfr.config.tables import AUTO
from mccfr.evaluation.methods import Method, check_method, load_method, measure, method_for
from mccfr.evaluation.methods.head_to_head import HeadToHeadMethod
from mccfr.evaluation.methods.local_best_response import LocalBestResponseMethod
from mccfr.evaluation.methods.sampled_best_response import SampledBestResponseMethod
from mccfr.games.game import Game
from mccfr.policy.profile import Profile
from mccfr.runs.phases import naming_phases, naming_steps
from mccfr.runs.reporter import EVALUATING, Reporter, Silent
from mccfr.runs.results.targets import UNIFORM, Reference, Target, open_target, opponent, plain_target

UNIFORM_PLAY = Reference(Path(UNIFORM))
"""Whom a strategy meets unless somebody is named."""


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
    """The evaluation record of a run's checkpoint or of a policy.

    target, number, abstraction, average  as `Reference`; the record names the average
    method    "auto": as `evaluate_found`
    against   head-to-head: the other strategy
    strategy  one of PLAIN_STRATEGIES, which is measured instead in the same game; the record names it
    reporter  told of phases
    options   of the method (`mccfr.evaluation.methods.measure`)

    Raises `ValueError` where a target is neither run nor policy, the method is unknown or does not suit the game, an
    opponent is named for one that meets none, or he plays another game; on other buckets he may.  A method
    `module:Class` is looked for in the current directory first.
    """
    named = Reference(target, number, abstraction, average)
    with naming_phases(reporter or Silent()) as phases:
        phases.phase(f"reading {named.path}")
        found = open_target(named, on_deals=method == HeadToHeadMethod.name)
        chosen = {} if named.average is None else {"average": named.average}
        if strategy is not None:
            found, chosen = plain_target(found, strategy), {**chosen, "strategy": strategy}
        load_method(method, (Path(),))

        def other() -> tuple[Profile, str]:
            phases.phase(f"reading {against.path}")
            return opponent(found, against), str(against.path)

        given = None if against == UNIFORM_PLAY else other
        return evaluate_found(found, method, given, reporter=phases, **options) | chosen


def evaluate_found(
    found: Target,
    method: str,
    against: Callable[[], tuple[Profile, str]] | None = None,
    *,
    reporter: Reporter | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The evaluation record of something open.

    method    "auto": head-to-head against somebody; else exact, or where a game is too large for it a lower bound:
              lbr, or with `boards` sampled-br
    against   makes the strategy that it is played against, and its name; None: uniform play, if the method meets one
    reporter  told of phases
    options   of the method (`mccfr.evaluation.methods.measure`)
    Raises `ValueError` where the method does not suit the game or meets nobody, or the opponent plays another game.
    """
    reporter, side = reporter or Silent(), Profile(found.game, found.strategy)
    if method == AUTO:
        method = _decided(
            found.game, against is not None, {name for name, value in options.items() if value is not None}
        )
    other, name = _opponent_of(found, check_method(found.game, method), against)
    reporter.phase(EVALUATING)
    with naming_steps(reporter):
        record = measure(method, side, other, name, **options) | found.counts
    return record | {"roles": list(found.game.roles), "big_blind_chips": found.game.big_blind_chips}


def _decided(game: Game, opposed: bool, given: set[str]) -> str:
    """What "auto" stands for where somebody asks and gives options; a run's `[evaluation]` has `method_for` decide."""
    if opposed:
        return HeadToHeadMethod.name
    chosen = method_for(game, AUTO)
    if not isinstance(chosen, HeadToHeadMethod):
        return chosen.name
    takes_boards = given <= set(SampledBestResponseMethod.options.__struct_fields__) and "boards" in given
    return SampledBestResponseMethod.name if takes_boards else LocalBestResponseMethod.name


def _opponent_of(
    found: Target, method: Method, against: Callable[[], tuple[Profile, str]] | None
) -> tuple[Profile | None, str | None]:
    """The opponent and his name, as `evaluate_found` has them; None for methods that meet none."""
    if method.meets:
        return against() if against is not None else (opponent(found, UNIFORM_PLAY), UNIFORM)
    if against is not None:
        raise ValueError(f"the method {method.name} meets no opponent: leave --against out, or take head-to-head")
    return None, None
