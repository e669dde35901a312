"""Trains strata in this process, without files or workers, interval by interval, with planted errors."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from places import RUNS

from mccfr.config.toml_files import config_from, load_document
from mccfr.games.game import Game
from mccfr.solvers import strata_training
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableSet, private_tables

LEDUC_12 = {"name": "leduc", "ranks": 12, "merge_suits": True}


def long_game(name: str, abstraction: Path) -> tuple[dict[str, dict[str, object]], int]:
    """Return the configuration of a game in strata, and the nodes that it trains in seconds.

    abstraction  directory of a small abstraction
    """
    games = {
        "leduc-12": (LEDUC_12, 4, 40_000_000),
        "twin": (load_document(RUNS / "twin-20.toml")["game"], 4, 40_000_000),
        "flop-holdem": ({"name": "flop-holdem", "max_raises": 1}, 5, 10_000_000),
        "hunl-quick": (load_document(RUNS / "hunl-quick.toml")["game"], 4, 40_000_000),
    }
    game, strata, nodes = games[name]
    document = {
        "game": game,
        "solver": {"period_nodes": 1_000_000, "seed": 2},
        "run": {"workers": 0, "strata": strata},
        "evaluation": {"every_checkpoint": False, "at_end": False},
        **({"abstraction": {"path": str(abstraction)}} if name == "hunl-quick" else {}),
    }
    return document, nodes


class Stratified:
    """A run in strata; a further call of `train` continues it.

    game      the game that is trained in strata
    totals    first-street tables
    tables    all other tables, and the first-street copy of the stratum trained last
    states    counters and random words of each stratum
    """

    def __init__(self, strata: int, game: Mapping[str, object] = LEDUC_12, **solver: object) -> None:
        document = {
            "game": game,
            "solver": {"period_nodes": 1_000_000, **solver},
            "tables": {"sum_dtype": "float32"},
            "run": {"strata": strata},
        }
        self.config = config_from(document, "test")
        self.game: Game = configured_game(self.config, Path())
        self.algorithm = algorithm_of(self.config)
        layout = self.algorithm.layout(self.game)
        names = strata_training.first_street_names(self.game)
        self.layout = strata_training.with_copies(layout)
        self.tables = private_tables(self.layout)
        self.totals = {name: np.zeros(self.tables[name].shape) for name in names}
        self.barrier = strata_training.Barrier(self.game, self.algorithm, self.totals)
        self.changes = np.zeros(self.barrier.parts.cells, np.int64)
        self.worker = strata_training.StratumWorker(self.game, self.algorithm, self.totals, self.tables, self.changes)
        self.states = strata_training.first_states(self.algorithm, strata)
        self.barriers = 0

    @property
    def nodes(self) -> int:
        return sum(state.nodes for state in self.states)

    @property
    def iterations(self) -> int:
        return sum(state.iterations for state in self.states)

    def train_strata(self, interval: strata_training.Interval, quotas: list[int], order: Iterable[int]) -> None:
        """Train strata for their quotas; the worker adds their changes to `changes`."""
        for stratum in order:
            assert self.worker.run(stratum, self.states[stratum], quotas[stratum], interval)

    def interval(self) -> None:
        interval, quotas = self.barrier.begin(self.states)
        self.changes[:] = 0
        self.train_strata(interval, quotas, range(len(quotas)))
        self.barrier.add(interval, self.changes)
        self.barriers += 1

    def train(self, iterations: int) -> None:
        while self.iterations < iterations:
            self.interval()

    def average(self) -> Strategy:
        later = {name: table for name, table in self.tables.items() if strata_training.FIRST_STREET not in name}
        tables = TableSet({**later, **self.totals})
        return self.algorithm.averages.strategy(self.game, tables, self.nodes, self.iterations)
