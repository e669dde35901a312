"""What a run's strategy is measured by while it trains, and against whom."""

from contextlib import suppress
from typing import Any

from mccfr.config.tables import EvaluationConfig
from mccfr.evaluation.methods import check_method, measure, method_for
from mccfr.evaluation.side import Side
from mccfr.games.game import Game
from mccfr.runs.averages import stored_average
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
        self._met: int | None = None  # number of the checkpoint that is played against
        self._against: Strategy | None = None
        self._root = run.path(CHECKPOINTS)
        self._prepared: Any = None
        self.kept: list[int] = []

    def find_kept(self) -> None:
        """Note which checkpoints of earlier sessions stay for good."""
        self.kept = []
        for number in checkpoints.list_checkpoints(self._root):
            with suppress(OSError):  # a damaged one, which the session has told of, is worth nothing
                self.kept += [number] if self._open(number).state.get("kept") else []
        self._met = self.kept[0] if self.kept else None

    def evaluate(self, strategy: Strategy) -> dict[str, Any]:
        """The record of the run's average strategy.

        Raises `OSError` where the checkpoint that it is played against is damaged or gone.
        """
        if self._prepared is None:
            self._prepared = self._method.prepared(self._game)
        points, side = self._points, Side(self._game, strategy, self._prepared)
        if not self._method.meets:
            return measure(points.method, side, boards=points.boards, seed=points.seed)
        name, against = "uniform", uniform_strategy(self._game)
        if self._met is not None:
            if self._against is None:
                self._against = stored_average(self._game, self._config, self._open(self._met))
            name, against = f"checkpoint {self._met}", self._against
        opponent = Side(self._game, against)
        record = measure(points.method, side, opponent, name, boards=points.boards, seed=points.seed)
        if self._met is None and self.kept:
            self._met = self.kept[0]
        return record

    def _open(self, number: int) -> checkpoints.Checkpoint:
        return checkpoints.open_checkpoint(checkpoints.checkpoint_path(self._root, number))
