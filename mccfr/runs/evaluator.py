"""What a run's strategy is measured by while it trains, and against whom."""

from contextlib import suppress
from typing import Any

from mccfr.config.tables import EvaluationConfig
from mccfr.evaluation.head_to_head import Side
from mccfr.evaluation.methods import check_method, measure, method_for
from mccfr.games.game import Game
from mccfr.runs.averages import checkpoint_average
from mccfr.runs.rundir import CHECKPOINTS, Run
from mccfr.tables.strategy import Strategy, uniform_strategy
from storage import checkpoint as checkpoints


def check_evaluation(points: EvaluationConfig, game: Game) -> None:
    """Raise `ValueError` where evaluations are asked for by a method that does not suit the game."""
    if points.every_checkpoint or points.at_end or points.at_nodes or points.at_iterations:
        check_method(game, points.method)


class Evaluator:
    """Measures average strategies by the run's `[evaluation]` table.

    A method that meets another strategy plays against the strategy of the first checkpoint that is kept for good; until
    there is one, against uniform play.  `kept` lists the numbers of those checkpoints.
    """

    def __init__(self, run: Run, game: Game) -> None:
        self._config, self._points, self._game = run.config, run.config.evaluation, game
        self._method = method_for(game, self._points.method)
        self._baseline: tuple[str, Strategy] | None = None
        self._root = run.path(CHECKPOINTS)
        self.kept: list[int] = []

    def find_kept(self) -> None:
        """Note which checkpoints of earlier sessions stay for good."""
        kept = []
        for number in checkpoints.list_checkpoints(self._root):
            with suppress(OSError):  # a damaged one, which the session has told of, is worth nothing
                checkpoint = checkpoints.open_checkpoint(checkpoints.checkpoint_path(self._root, number))
                kept += [checkpoint] if checkpoint.state.get("kept") else []
        self.kept = [checkpoint.number for checkpoint in kept]
        if kept and self._method.meets:
            strategy = checkpoint_average(self._game, self._config, kept[0])
            self._baseline = (f"checkpoint {kept[0].number}", strategy)

    def evaluate(self, strategy: Strategy) -> dict[str, Any]:
        """The record of the run's average strategy."""
        points, side = self._points, Side(self._game, strategy)
        if not self._method.meets:
            return measure(points.method, side, boards=points.boards, seed=points.seed)
        name, against = self._baseline or ("uniform", uniform_strategy(self._game))
        opponent = Side(self._game, against)
        record = measure(points.method, side, opponent, name, boards=points.boards, seed=points.seed)
        if self._baseline is None and self.kept:
            self._baseline = (f"checkpoint {self.kept[0]}", strategy)
        return record
