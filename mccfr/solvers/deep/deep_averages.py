"""The two averages of a run with listed infosets: Single Deep CFR's and Deep CFR's.

Single Deep CFR averages the strategies themselves; Deep CFR fits a network or table to samples of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep.fitting import softmax
from mccfr.solvers.deep.sample_memory import means, merge
from mccfr.solvers.deep.training_state import (
    EXPLAINED,
    LEAST_WEIGHT,
    LOSS,
    NETWORKS,
    SAMPLES,
    Tables,
    TrainingState,
    fit_average,
    keeps_sums,
)
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableSet, table_name


class ListedAverages:
    """Computes average strategies from the tables of a run after some iterations."""

    def __init__(self, game: Game, config: DeepCfrConfig, tables: Tables, iterations: int) -> None:
        self._learned, self._iterations = TrainingState(game, config, tables), iterations

    def average(self, name: str) -> Strategy:
        """Return the average "sd" (Single Deep CFR) or "network" (Deep CFR)."""
        if name == "network":
            return self.network()
        return self._kept_up() if keeps_sums(self._learned.config) else self.explicit()

    def _kept_up(self) -> Strategy:
        """Return the explicit average from the sums that the run has kept."""
        learned = self._learned
        sums = {name: learned.tables[name] for name in learned.tables if name.startswith("strategy_sum")}
        return average_strategy(learned.game, TableSet(sums))

    def explicit(self) -> Strategy:
        """Return the explicit average over the kept networks, by weight and own reach of each infoset.

        Source: Steinberger 2019, equations 5 and 6.
        """
        learned = self._learned
        game = learned.game
        sums: list[npt.NDArray[np.float64] | None] = [
            np.zeros((buckets, slots)) if slots else None
            for buckets, slots in zip(game.buckets.tolist(), game.tree.row_slots.tolist(), strict=True)
        ]
        sigma = learned.infosets.uniform()
        for player in range(2):
            at = f"networks/player{player}"
            weights = learned.tables[f"{at}/weight"]
            for place in np.flatnonzero(weights).tolist():
                parameters = learned.tables[f"{at}/parameters"][place]
                learned.play(player, learned.outputs(player, parameters), sigma)
                learned.averaging.add(player, sigma, float(weights[place]), sums)
        return self._normalised(sums)

    def _normalised(self, sums: Sequence[npt.NDArray[np.float64] | None]) -> Strategy:
        named = {table_name("strategy_sum", block): table for block, table in enumerate(sums) if table is not None}
        return average_strategy(self._learned.game, TableSet(named))

    def network(self) -> Strategy:
        """Return Deep CFR's average, fitted here to the strategy memories.

        With `fit = "network"` a network is fitted from scratch, else exact means are taken.
        """
        learned = self._learned
        infosets = learned.infosets
        shares, weights = infosets.uniform(), np.zeros(len(infosets))
        for player in range(2):
            memory, held = learned.memory(player, "strategy_memory")
            if not held:
                continue
            mine, merged = infosets.of(player), learned.merged[player]
            if learned.config.fit == "network":  # a network also has a strategy at infosets without samples
                shares[mine], weights[mine] = self._fitted(player), LEAST_WEIGHT
            else:
                table = means(memory, held, merged)
                shares[mine] = np.where(table.any(axis=1, keepdims=True), table, shares[mine])
            found = merge(memory, held, merged)[0]
            weights[mine][merged.row[:found]] = merged.weight[:found]
        blocks = range(2 * learned.game.tree.streets)
        return Strategy(
            tuple(learned.averaging.rows(block, shares) for block in blocks),
            tuple(learned.averaging.weights(block, weights) for block in blocks),
        )

    def average_network(self, player: int) -> npt.NDArray[np.float32]:
        """Return the parameters of `fit_average`."""
        return fit_average(self._learned, player, self._iterations)

    def _fitted(self, player: int) -> npt.NDArray[np.float64]:
        """Return [n, A] a player's average strategy by a network fitted to the player's strategy memory."""
        output = self._learned.outputs(player, self.average_network(player))
        return softmax(output, self._learned.networks[player][1].legal).astype(np.float64)


def fit_figures(tables: Tables) -> dict[str, Any]:
    """Return figures from a run's tables, each by player.

    They are the newest fit's loss and share explained, the samples offered, and the number of networks so far.
    """
    figures = [tables[f"figures/player{player}"] for player in range(2)]
    counters = [tables[f"counters/player{player}"] for player in range(2)]
    return {
        "loss": [float(found[LOSS]) for found in figures],
        "explained": [float(found[EXPLAINED]) for found in figures],
        "samples": [int(found[SAMPLES]) for found in counters],
        "networks": [int(found[NETWORKS]) for found in counters],
    }
