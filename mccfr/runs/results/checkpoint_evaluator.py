"""Evaluates a run's strategy during training, by its `[evaluation]` table."""

from contextlib import suppress
from typing import Any

from mccfr.config.run_tables import Config, EvaluationConfig
from mccfr.evaluation.methods import Method
from mccfr.evaluation.methods.measuring import options_for
from mccfr.evaluation.methods.option_structs import declared
from mccfr.evaluation.methods.registry import check_method, measure, method_for, options_of_all
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import CHECKPOINTS, Run
from mccfr.runs.directory.state import open_run_checkpoint
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.tables.strategy import Strategy, uniform_strategy
from storage import checkpoint as checkpoints
from storage.damage import DamagedError


def check_evaluation(config: Config, game: Game) -> None:
    """Raise `ValueError` for methods of `[evaluation]` that do not suit the game, and keys without effect.

    Nothing is checked if `[evaluation]` asks for no evaluation.
    """
    points = config.evaluation
    if points.measures:
        methods = [check_method(game, name) for name in points.chosen]
        if config.run.exploitability_pot is not None and all(each.bound == "lower" or each.meets for each in methods):
            raise ValueError(
                "run.exploitability_pot has no effect: lower bounds and winnings never reach it, so add 'exact' to "
                "evaluation.method, or leave the key out"
            )
        for method in methods:
            problem = method.options_problem(game, options_for(method, options_of(method, points)))
            if problem is not None:
                raise ValueError(problem)
        for key in unused_keys(points, game):
            raise ValueError(
                f"evaluation.{key} has no effect: no method of [evaluation] takes it on {game.name}: leave it out"
            )


def options_of(method: Method, points: EvaluationConfig) -> dict[str, Any]:
    """Return {name of an option: its value in `[evaluation]`} of a method's options that are keys there."""
    return {name: getattr(points, name) for name, each in declared(method.options).items() if each.option.key}


def unused_keys(points: EvaluationConfig, game: Game) -> list[str]:
    """Return the keys of `[evaluation]` that are set, and that no chosen method uses with this game.

    A method that evaluates all deals in one walk (`Method.at_once`) uses none.
    """
    methods = [method for name in points.chosen if not (method := method_for(game, name)).at_once(game)]
    used, defaults = {option for method in methods for option in declared(method.options)}, EvaluationConfig()
    return [
        each.name
        for option, each in options_of_all().items()
        if each.option.key and option not in used and getattr(defaults, option) is None is not getattr(points, option)
    ]


class Evaluator:
    """Evaluates average strategies by the run's `[evaluation]` table.

    Some methods play against an opponent. It is the average strategy of the run's first permanently kept checkpoint.
    Before there is one, the opponent takes all actions with equal probability.

    kept  numbers of the permanently kept checkpoints; the caller adds new ones
    """

    def __init__(self, run: Run, game: Game) -> None:
        self._config, self._points, self._game = run.config, run.config.evaluation, game
        self._methods = [method_for(game, name) for name in self._points.chosen]
        self._opponent: int | None = None  # number of the opponent's checkpoint
        self._against: Strategy | None = None
        self._run = run
        self._prepared: dict[str, Any] = {}
        self.kept: list[int] = []

    @property
    def in_place(self) -> bool:
        """True if all methods evaluate on the tables in training, not on a copy."""
        return all(method.in_place(self._game) for method in self._methods)

    def find_permanent_checkpoints(self) -> None:
        """Fill `kept` with the numbers of permanently kept checkpoints from earlier training.

        The first of them becomes the opponent of methods that need one.
        """
        self.kept = []
        for number in checkpoints.list_checkpoints(self._run.path(CHECKPOINTS)):
            with suppress(DamagedError):  # the session has noted the damage, so the checkpoint is kept anyway
                self.kept += [number] if open_run_checkpoint(self._run, number).state.get("kept") else []
        self._opponent = self.kept[0] if self.kept else None

    def evaluate(self, strategy: Strategy) -> list[dict[str, Any]]:
        """Evaluate the run's average strategy; return a list with one record {name: figure} for each method.

        Raises `OSError` if the opponent's checkpoint is damaged or missing.
        """
        records = [self._measured(method, strategy) for method in self._methods]
        if self._opponent is None and self.kept:
            self._opponent = self.kept[0]
        return records

    def measure_average(self, strategy: Strategy) -> dict[str, dict[str, Any]]:
        """Return {evaluation method: {name: figure}} of one of an algorithm's average strategies.

        Methods that play against an opponent are left out.
        """
        return {method.name: self._measured(method, strategy) for method in self._methods if not method.meets}

    def _measured(self, method: Method, strategy: Strategy) -> dict[str, Any]:
        if method.name not in self._prepared:
            self._prepared[method.name] = method.prepared(self._game)
        profile = Profile(self._game, strategy, self._prepared[method.name])
        options = options_of(method, self._points)
        if not method.meets:
            return measure(method.name, profile, **options)
        name, against = "uniform", uniform_strategy(self._game)
        if self._opponent is not None:
            if self._against is None:
                self._against = checkpoint_average(
                    self._game, self._config, open_run_checkpoint(self._run, self._opponent)
                )
            name, against = f"checkpoint {self._opponent}", self._against
        return measure(method.name, profile, Profile(self._game, against), name, **options)
