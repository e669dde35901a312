"""The average strategy behind the tables of a run, whichever algorithm made them."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from mccfr.config import SolverConfig
from mccfr.fullwidth.configured import pruned_average
from mccfr.games.game import Game
from mccfr.strategy import Strategy, average_strategy
from mccfr.tables import bucket_first
from mccfr.training.sampled import schedule_of
from storage.schema import ArraySpec


def is_averaged(config: SolverConfig, name: str) -> bool:
    """Whether the average strategy is made from a table: from the strategy sums, with regret-based pruning from all."""
    return _prunes(config) or name.startswith("strategy_sum")


def _prunes(config: SolverConfig) -> bool:
    return config.algorithm == "cfr" and config.pruning == "regret-based"


def run_average(
    game: Game,
    config: SolverConfig,
    specs: Iterable[ArraySpec],
    tables: Mapping[str, npt.NDArray[np.generic]],
    nodes: int,
    iterations: int,
) -> Strategy:
    """The average strategy of a run's tables; `ValueError` for sums no run writes."""
    if _prunes(config):
        return pruned_average(game, config, tables, iterations)
    return average_strategy(game, bucket_first(specs, tables), schedule_of(config).at(nodes))
