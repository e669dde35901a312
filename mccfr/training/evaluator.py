"""What a run's strategy is measured by while it trains, and against whom."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config import EvaluationConfig
from mccfr.evaluation.record import check_method, exact_record, head_to_head_record
from mccfr.games.game import Game
from mccfr.strategy import Strategy, uniform_strategy
from mccfr.training.averages import is_averaged, run_average
from mccfr.training.rundir import CHECKPOINTS, Run
from storage import checkpoint as checkpoints
from storage.schema import ArraySpec

Arrays = Mapping[str, npt.NDArray[np.generic]]


def check_evaluation(points: EvaluationConfig, game: Game) -> None:
    """Raise `ValueError` where evaluations are asked for by a method that does not suit the game."""
    if points.every_checkpoint or points.at_end or points.at_nodes or points.at_iterations:
        check_method(game, points.method)


class Evaluator:
    """Measures average strategies by the run's `[evaluation]` table.

    Head-to-head is played against the strategy of the first checkpoint that is kept for good; until there is one,
    against uniform play.  `kept` lists the numbers of those checkpoints.
    """

    def __init__(self, run: Run, game: Game, specs: tuple[ArraySpec, ...]) -> None:
        self._points, self._game, self._specs = run.config.evaluation, game, specs
        self._solver = run.config.solver
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
        if kept and self._points.method == "head-to-head":
            first = kept[0]
            needed = [spec.name for spec in first.specs if is_averaged(self._solver, spec.name)]
            state, tables = first.state, {name: first.read(name) for name in needed}
            strategy = self._strategy(tables, state["nodes_touched"], state["iterations"])
            self._baseline = (f"checkpoint {first.number}", strategy)

    def evaluate(self, arrays: Arrays, nodes: int, iterations: int) -> dict[str, Any]:
        """The record of the average strategy in `arrays`, tables by name, after so many nodes and iterations."""
        points, strategy = self._points, self._strategy(arrays, nodes, iterations)
        if points.method == "exact":
            return exact_record(self._game, strategy)
        name, against = self._baseline or ("uniform", uniform_strategy(self._game))
        record = head_to_head_record(self._game, strategy, against, name, boards=points.boards, seed=points.seed)
        if self._baseline is None and self.kept:
            self._baseline = (f"checkpoint {self.kept[0]}", strategy)
        return record

    def _strategy(self, arrays: Arrays, nodes: int, iterations: int) -> Strategy:
        return run_average(self._game, self._solver, self._specs, arrays, nodes, iterations)
