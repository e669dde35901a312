"""Trains a best response of one player against a fixed strategy of the opponent.

The kernels and the kind of tables are those of training.  The opponent's probabilities stand in the regret tables;
regret matching gives them back, and the opponent never traverses, so they do not change.  The responder's regrets
approach a best response within its own buckets.  Linear discounting lets values fade that were learnt while play below
was still poor.

Two samplers are available.  Public chance sampling weighs all hands of both players on a board and walks all the
opponent's actions.  External sampling draws hands and the opponent's actions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.game_tables import GameConfig
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import ExternalSamplingConfig, PublicChanceConfig
from mccfr.games.game import Game
from mccfr.solvers.public.public_chance.public_chance_algorithm import PublicChance, public_chance_solver
from mccfr.solvers.sampling.external.external_algorithm import ExternalSampling, ExternalSolver
from mccfr.solvers.solver import Share, Solver, WorkerState
from mccfr.tables.row_tables import some_rows
from mccfr.tables.strategy import BlockRows, Strategy
from mccfr.tables.table_layout import TableLayout, TableSet, make_layout, private_tables

PUBLIC, EXTERNAL = "public-chance-sampling", "external-sampling"
SAMPLERS = (PUBLIC, EXTERNAL)
"""Samplers that can train a responder, by their names in `[solver]`."""
STREAMS = 1 << 32
"""Added to a responder's seat to give the worker number that seeds its random streams.

No run has so many workers.
"""
_LEAST_PERIOD_NODES = 10_000  # of external sampling
_PERIOD_BOARDS = 8  # of public chance sampling
_BLOCKS = 8  # tables passed to a kernel, which is compiled anew for each number
_AT_A_TIME = 1 << 16  # buckets


def responder(
    sampler: str, game: Game, seat: int, tables: TableSet, seed: int, state: WorkerState | None = None
) -> Solver:
    """Return the solver that trains the player in a seat on `responder_tables`, which it changes in place.

    game   the game with the cards of both players, each in its own buckets (`Cards.with_opponent`), without locks
    seed   seed of the random streams
    state  state to continue from; the solver changes it in place
    """
    share = Share(STREAMS + seat, 1, state or WorkerState())
    game = replace(game, tree=replace(game.tree, locks=None))  # locks of other buckets than the responder's
    if sampler == PUBLIC:
        public = PublicChanceConfig(seed=seed, discount="linear", period_nodes=_PERIOD_BOARDS * game.tree.nodes)
        return public_chance_solver(game, public, tables, share, (seat,))
    period = max(_LEAST_PERIOD_NODES, int(game.infosets[seat::2].sum()))
    config = ExternalSamplingConfig(seed=seed, discount="linear", period_nodes=period)
    solver = ExternalSolver(game, ExternalSampling(Config(game=GameConfig(), solver=config)), tables, share)
    solver.traverse_only(seat)
    return solver


def responder_layout(sampler: str, game: Game) -> TableLayout:
    """Return the layout of a responder's tables and the opponent's.

    Averages are not needed; external sampling keeps no strategy sums.
    """
    if sampler == PUBLIC:
        return PublicChance(Config(game=GameConfig(), solver=PublicChanceConfig())).layout(game)
    return make_layout(game, summed_streets=0)


def responder_tables(
    sampler: str,
    game: Game,
    seat: int,
    strategy: Strategy,
    starts: Sequence[npt.NDArray[np.int64]],
    allocate: Callable[[int, str], npt.NDArray[np.generic]] = np.zeros,
) -> TableSet:
    """Return tables of `responder_layout` with the opponent's probabilities as its regrets.

    seat      the responder's; the opponent has the other
    strategy  the opponent's, on the buckets that `game` has for the opponent
    starts    for each block of the strategy, [rows+1] first slot of each row and the end of the last; the caller fills
              the slots behind them
    allocate  creates the cells; see `private_tables`
    """
    tables = private_tables(responder_layout(sampler, game), allocate)
    for block in range(1 - seat, 2 * game.tree.streets, 2):
        cells = tables.rows("regret", block)
        buckets = 0 if cells is None else len(cells)
        for first in range(0, buckets, _AT_A_TIME):
            some = np.arange(first, min(first + _AT_A_TIME, buckets), dtype=np.int32)
            assert cells is not None
            cells[some, : starts[block][-1]] = some_rows(strategy.blocks[block], starts[block], some, _BLOCKS).T
    return tables


def learnt_strategy(game: Game, cells: Sequence[npt.NDArray[np.float32]]) -> Strategy:
    """Return the strategy given by `cells` [buckets, slots] of each block.

    Each row is normalised; a row of zeros becomes uniform.
    """
    return Strategy.stored(game, [BlockRows(table, sums=True) for table in cells])


def matched(regrets: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return [buckets, slots] positive parts of a block's regrets: regret matching before normalisation."""
    return np.maximum(np.ascontiguousarray(regrets[:, : starts[-1]]), 0)


def best(regrets: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return [buckets, slots] 1 for the action of the largest regret in each row, 0 for the others.

    starts  [rows+1] first slot of each row of the block, and the end of the last

    A row of zeros stays zero.
    """
    if len(starts) < 2:
        return np.zeros((len(regrets), 0), np.float32)
    own, count = np.ascontiguousarray(regrets[:, : starts[-1]]), np.diff(starts)
    largest = np.repeat(np.maximum.reduceat(own, starts[:-1], axis=1), count, axis=1)
    seen = np.repeat(np.logical_or.reduceat(own != 0, starts[:-1], axis=1), count, axis=1)
    chosen: npt.NDArray[Any] = ((own == largest) & seen).astype(np.float32)
    return chosen
