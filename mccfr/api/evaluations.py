"""Evaluates strategies, plays matches between them, and opens policies (saved strategies)."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mccfr.api.api_runs import Run, abstraction_path_of, path_of
from mccfr.api.api_types import Evaluation, MatchResult, Pathlike, evaluation_of, match_of
from mccfr.api.evaluating import evaluate_open_strategy
from mccfr.api.in_process_solver import Solver
from mccfr.common.arguments import checked
from mccfr.common.user_code import function_name
from mccfr.config import plugins
from mccfr.config.run_tables import AUTO
from mccfr.config.toml_files import to_document
from mccfr.evaluation.methods import Method
from mccfr.evaluation.methods.registry import load_method
from mccfr.evaluation.samples import Effort
from mccfr.matches.match import Contender
from mccfr.matches.match_series import play_opened
from mccfr.matches.players import OpenedPlayer, PlayManner, open_player
from mccfr.matches.programs import ProgramSpec
from mccfr.play.player import Program
from mccfr.policy import Policy, Profile
from mccfr.runs.results.targets import UNIFORM, Reference, Target, open_target, opponent

Strategic = Solver | Run | Policy | str | os.PathLike[str]


@checked
def evaluate(
    target: Strategic,
    method: str | type[Method] | Callable[[Profile], float] = AUTO,
    *,
    against: Strategic = UNIFORM,
    boards: int | None = None,
    seed: int | None = None,
    checkpoint: int | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate a strategy by a method such as "exact" (best responses); return an `Evaluation`.

    target        a `Solver`, a `Run`, a `Policy` (saved strategy), or the path of a run or policy
    method        "exact", "lbr", "sampled-br", "bounds", "head-to-head", "trained-response" or "auto"; a class derived
                  from `Method`, or its name `module:Class`; or a function from a `Profile` (`game` and `strategy`) to a
                  number
    against       opponent, if the method has one: "uniform", "always-call", or a strategy of the same kinds as `target`
    boards, seed  number and seed of samples, if the method samples; None: the method's default
    checkpoint    number of a run's checkpoint; None: the newest
    options       options of the method, as in `mccfr evaluate`, such as `setting` and `hands` of lbr

    Raises `ValueError` if the method is unknown, does not suit the game, or has no such option.  Raises it too for an
    opponent that the method does not use, and a `checkpoint` of a solver or policy.
    """
    if not isinstance(method, str | type):
        method = _method_of(method)
    method = plugins.name_of_object(plugins.METHODS, method)
    load_method(method)
    opened = _target(target, checkpoint)

    def other() -> tuple[Profile, str]:
        if not isinstance(against, Solver | Policy):
            return opponent(opened, Reference(path_of(against), abstraction=abstraction_path_of(against))), _name(
                against
            )
        opponent_target = _target(against)
        return Profile(opponent_target.game, opponent_target.strategy), _name(against)

    named_opponent = None if against == UNIFORM else other
    return evaluation_of(evaluate_open_strategy(opened, method, named_opponent, boards=boards, seed=seed, **options))


def _method_of(function: Callable[[Profile], float]) -> type[Method]:
    """Return a subclass of `Method` that evaluates a strategy by a user's function.

    function  takes a `Profile` (game and strategy) and returns a number, the value in chips
    """

    def find(self: Method, side: Profile, against: Profile | None, options: Any) -> dict[str, Any]:
        return {"value_chips": function(side)}

    find.__module__, find.__qualname__ = function_name(function).split(":")
    return type(getattr(function, "__name__", "function"), (Method,), {"find": find, "__doc__": function.__doc__})


@checked
def match(
    a: Strategic | type[Program],
    b: Strategic | type[Program] | Sequence[Strategic | type[Program]],
    hands: int = 2_000,
    *,
    seed: int = 0,
    purify: bool = False,
    threshold: float = 0.0,
    against_purify: bool = False,
    against_threshold: float = 0.0,
    workers: int = 1,
    log: Pathlike | None = None,
) -> MatchResult:
    """Play a match between A and B, each deal in all seats; return A's winnings (`MatchResult`).

    a, b                               a `Solver`, `Run` or `Policy` (saved strategy), the path of a run or policy, or
                                       a program without a strategy: its name, such as "always-call", or a class derived
                                       from `mccfr.play.Program`. With three and more players b is the list of all
                                       others
    hands                              number of hands, rounded up to whole deals. A deal is played once for each
                                       rotation of the seats; at least 100 deals are needed
    seed                               seed of deals and sampled actions
    purify, threshold                  True: A plays its likeliest action only; A plays no action below this probability
    against_purify, against_threshold  the same for the others
    workers                            processes that share the hands
    log                                a `.phhs` or `.stars.txt` file for the hands, no-limit hold'em only

    Raises `ValueError` for an unknown name, different games, rake, too few hands, or programs only.
    """
    others = b if isinstance(b, Sequence) and not isinstance(b, str) else [b]
    if not others:
        raise ValueError("b = []: give at least one other player")
    manner = PlayManner(against_purify, against_threshold)
    players = [_player(a, PlayManner(purify, threshold)), *(_player(other, manner) for other in others)]
    file = None if log is None else Path(log)
    return match_of(play_opened(players, hands, seed, effort=Effort(workers), log=file))


def _player(strategy: Strategic | type[Program], manner: PlayManner) -> OpenedPlayer:
    """Return a player for a match from a solver, run, policy, path, name or class of a program.

    manner  whether a strategy plays only its likeliest action, or none below a probability

    Raises `ValueError` for a text that names no policy, run or program.
    """
    if isinstance(strategy, type):
        return OpenedPlayer(Contender(strategy.__name__, ProgramSpec(strategy)), None)
    if isinstance(strategy, Policy):
        contender = Contender(str(strategy.path), manner.spec(strategy), Profile(strategy.game, strategy.strategy()))
        return OpenedPlayer(contender, strategy.meta["game"])
    if isinstance(strategy, Solver | Run):
        target = _target(strategy)
        source = Profile(target.game, target.strategy)
        config = strategy._config if isinstance(strategy, Solver) else strategy._open().config
        return OpenedPlayer(Contender(_name(strategy), manner.spec(source), source), to_document(config)["game"])
    return open_player(os.fspath(strategy), manner, ())


def _target(strategy: Strategic, checkpoint: int | None = None) -> Target:
    """Return a strategy with its game, and the iterations and nodes of its training, as a `Target`.

    checkpoint  number of a run's checkpoint; None: the newest

    Raises `ValueError` if a checkpoint is given for a solver or policy.
    """
    if checkpoint is not None and isinstance(strategy, Solver | Policy):
        raise ValueError(
            f"checkpoint = {checkpoint}: {_name(strategy)} has no checkpoints to choose from: leave it out"
        )
    if isinstance(strategy, Solver):
        counts = {"nodes_touched": strategy.nodes_touched, "iterations": strategy.iterations, "checkpoint": None}
        return Target(strategy.game, strategy.strategy(), counts)
    if isinstance(strategy, Policy):
        origin = strategy.meta["provenance"]
        counts = {key: origin.get(key) for key in ("nodes_touched", "iterations", "checkpoint")}
        return Target(strategy.game, strategy.strategy(), counts)
    return open_target(Reference(path_of(strategy), checkpoint, abstraction_path_of(strategy)))


def _name(strategy: Strategic) -> str:
    """Return the name of a strategy in results: its path, or "a solver of 1,000 iterations"."""
    if isinstance(strategy, Solver):
        return f"a solver of {strategy.iterations:,} iterations"
    return str(strategy.path if isinstance(strategy, Policy) else path_of(strategy))


@checked
def load_policy(path: Pathlike, *, check: bool = True) -> Policy:
    """Open a policy, the directory of a saved strategy, as a `Policy`.

    check  True: check length and checksum of every file, and that each infoset's probabilities sum to 1.  False: check
           of large tables only the parts that a look-up reads, so that opening a large policy is fast

    A policy holds its game as arrays, so that the code of a user's game is not imported.  Raises `FileNotFoundError`,
    `OSError` or `ValueError` if there is no policy, or a damaged one.
    """
    return Policy.open(Path(path), check=check)
