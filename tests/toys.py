"""A user-defined game, algorithm, variant and evaluation method, named `toys:...`."""

from pathlib import Path
from typing import ClassVar

import mccfr
from mccfr.cards.small_deck_cards import small_deck
from mccfr.config.solver_tables import SolverConfig
from mccfr.evaluation.methods import EvaluationLine, Method
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.solvers.solver import Algorithm, Share
from mccfr.tables.table_layout import make_layout


def long_kuhn(ante_file: Path, ranks: int = 4, bet: float = 2.0) -> mccfr.Game:
    """Kuhn poker with a longer deck and a larger bet, its ante in a file."""
    if bet <= 0:
        raise ValueError(f"game.bet = {bet} is not allowed: it must be above 0")
    ante = float(ante_file.read_text())
    rules = BettingRules(
        (ante, ante), (0,), lambda state: [state.to_call + bet] if state.bets == 0 else [], raise_text="b"
    )
    return mccfr.Game("long-kuhn", build_tree(rules), small_deck(ranks, 1, 1, [0]), pot_chips=2 * ante)


class FirstActionConfig(SolverConfig, frozen=True, tag="first-action"):
    """Configuration of an algorithm in which every row plays its first action with the same share."""

    share: float = 0.75

    def checks(self):
        return [*super().checks(), ("share", 0 < self.share < 1, "above 0 and below 1")]


class FirstAction(Algorithm):
    """Adds `share` to the first cell of each bucket's sums and 1 - `share` to the second, each iteration."""

    options: ClassVar = FirstActionConfig

    def layout(self, game):
        return make_layout(game)

    def solver(self, game, tables, share=None):
        return FirstActionSolver(self.config.solver.share, tables, share or Share())


class FirstActionSolver:
    def __init__(self, first, tables, share):
        self.state, self.busy_seconds = share.state, 0.0
        self.state.rng = [0, 0, 0, 0]
        self._first, self._tables = first, tables

    def warm_up(self):
        pass

    def run(self, total_nodes, node_limit, iteration_limit):
        for name, table in self._tables.items():
            if name.startswith("strategy_sum"):
                table[:, 0:4:2] += self._first
                table[:, 1:4:2] += 1 - self._first
        self.state.iterations += 1
        self.state.nodes += 10
        return 1, 10


class MixedLine(EvaluationLine):
    against: str
    boards: int


class Mixed(Method):
    """Distance of two strategies' first decisions, as an evaluation method."""

    meets: ClassVar = True
    line: ClassVar = MixedLine

    def problem(self, game):
        return None if game.name == "kuhn" else f"{game.name} is not kuhn: use the method exact"

    def find(self, side, against, options):
        one, other = (each.strategy.probability[0][:, 0] for each in (side, against))
        return {"value_chips": float(abs(one - other).sum())}

    def text(self, record, took):
        return f"{record['value_chips']:.3f} apart from {record['against']} ({took})"


@mccfr.regret_rule
def positive_part(regrets, strategy):
    """Regret matching as a user-defined rule."""
    total = 0.0
    for a in range(len(regrets)):
        strategy[a] = max(regrets[a], 0.0)
        total += strategy[a]
    for a in range(len(regrets)):
        strategy[a] = strategy[a] / total if total > 0.0 else 1.0 / len(regrets)


own_dcfr = mccfr.Variant(positive_part, alpha=1.5, beta=0.0, averaging_power=2.0)
