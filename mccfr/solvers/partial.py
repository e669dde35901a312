"""What average strategy, robust and targeted sampling share: the kernel `mccfr.solvers.sampling.partial`."""

from abc import abstractmethod
from typing import Any

from mccfr.games.game import Game
from mccfr.solvers.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.sampling.common import new_worklist
from mccfr.solvers.sampling.partial import Draws, Rule, new_draws, partial_sampling
from mccfr.solvers.solver import Share
from mccfr.tables.layout import TableLayout, TableSet


class PartialSolver(SampledSolver):
    """Iterations that walk some of the traverser's actions, over general records for any tree."""

    def __init__(self, game: Game, algorithm: "PartialAlgorithm", tables: TableSet, share: Share) -> None:
        self._rule = algorithm.rule(game)
        super().__init__(game, algorithm, tables, share)

    def _choose_kernel(self, game: Game, packed: bool) -> None:
        nodes = len(game.tree.arrays.kind)
        del packed
        self._tree = game.tree.arrays
        self._kernel = partial_sampling
        self._scratch = new_worklist(nodes, 2 * game.tree.streets, self._tables.regret.dtype)
        self._draws = new_draws(nodes)

    def _own(self, total_nodes: int) -> tuple[Draws, Rule]:
        del total_nodes
        return self._draws, self._rule


class PartialAlgorithm(SampledAlgorithm):
    """An algorithm that is one rule of which actions are walked."""

    walks_all = None
    iterates = PartialSolver

    @abstractmethod
    def rule(self, game: Game) -> Rule:
        """What the traverser walks; `ValueError` where the configuration does not suit the game."""

    def layout(self, game: Game, wide: Any = None) -> TableLayout:
        """As `Algorithm.layout`."""
        self.rule(game)
        return super().layout(game, wide)
