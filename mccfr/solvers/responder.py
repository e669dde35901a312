"""One player alone, trained against an opponent whose strategy stands still.

The kernels are those that train strategies, on the same kind of tables.  The opponent's rows stand among the regrets as
probabilities, and regret matching gives back just these, since they are not negative; he never traverses, so that they
stay as they are.  What the other player's regrets grow into is a best response within his own buckets.  New updates
weigh more by and by, as with linear discounting: what was learnt of a row while play below it was still poor fades.

Either sampler does: public chance sampling, which weighs all hands of both on a board and follows all that the opponent
may do, or external sampling, which draws hands and his actions.  A responder's values differ by whole stacks from hand
to hand, and where nothing else moves, that noise is all there is to overcome.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.games import GameConfig
from mccfr.config.solvers import ExternalSamplingConfig, PublicChanceConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.public.public_chance.algorithm import PublicChance, public_chance_solver
from mccfr.solvers.sampling.external.algorithm import ExternalSampling, ExternalSolver
from mccfr.solvers.solver import Share, Solver, WorkerState
from mccfr.tables.layout import TableLayout, TableSet, make_layout, private_tables
from mccfr.tables.row_tables import some_rows
from mccfr.tables.strategy import BlockRows, Strategy

PUBLIC, EXTERNAL = "public-chance-sampling", "external-sampling"
SAMPLERS = (PUBLIC, EXTERNAL)
"""What a responder may be trained by, as `[solver]` names it."""
STREAMS = 1 << 32
"""Added to a responder's seat: the worker, so to say, whose deals and actions he has; no run has so many."""
_LEAST_PERIOD_NODES = 10_000  # of external sampling
_PERIOD_BOARDS = 8  # of public chance sampling
_BLOCKS = 8  # kernels are compiled anew for each number of tables
_AT_A_TIME = 1 << 16  # buckets


class _ExternalResponder(ExternalSolver):
    """Iterations of one player by external sampling."""

    def __init__(self, game: Game, seat: int, tables: TableSet, config: ExternalSamplingConfig, share: Share) -> None:
        self._seat = seat
        super().__init__(game, ExternalSampling(Config(game=GameConfig(), solver=config)), tables, share)

    def _choose_kernel(self, game: Game, packed: bool) -> None:
        super()._choose_kernel(game, packed)
        self._scratch = self._scratch._replace(seats=np.array([self._seat, self._seat + 1]))


def responder(
    sampler: str, game: Game, seat: int, tables: TableSet, seed: int, state: WorkerState | None = None
) -> Solver:
    """What trains the player in a seat on `responder_tables`, which are changed in place.

    game   with the cards of both players as each remembers them (`Cards.seated`); he is free where its rows are locked
    state  to go on from; changed as it goes
    """
    share = Share(STREAMS + seat, 1, state or WorkerState())
    game = replace(game, tree=replace(game.tree, locks=None))  # of buckets that are not his
    if sampler == PUBLIC:
        public = PublicChanceConfig(seed=seed, discount="linear", period_nodes=_PERIOD_BOARDS * game.tree.nodes)
        return public_chance_solver(game, public, tables, share, (seat,))
    period = max(_LEAST_PERIOD_NODES, int(game.infosets[seat::2].sum()))
    config = ExternalSamplingConfig(seed=seed, discount="linear", period_nodes=period)
    return _ExternalResponder(game, seat, tables, config, share)


def responder_layout(sampler: str, game: Game) -> TableLayout:
    """Tables of a responder and his opponent; nobody needs the average of either, and one sampler keeps no sums."""
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
    """The tables of `responder_layout`, with the rows of the opponent of `seat` in their places.

    strategy  the opponent's, on the buckets that `game` has for him
    starts    of each block of the strategy, the first slot of its rows, and the end of the last; what the game has
              behind them is left to the caller
    allocate  as of `private_tables`
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
    """What responders do, by cells [buckets, slots] of each block: normalised, and a row of zeros uniform."""
    return Strategy.stored(game, [BlockRows(table, sums=True) for table in cells])


def matched(regrets: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """[buckets, slots] what regret matching plays by the regrets of a block [buckets, slots or more]."""
    return np.maximum(np.ascontiguousarray(regrets[:, : starts[-1]]), 0)


def best(regrets: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """[buckets, slots] 1 for the action of the largest regret in each row, 0 for others; a row of zeros stays one.

    starts  [rows+1] first slot of each row of the block, and the end of the last
    """
    if len(starts) < 2:
        return np.zeros((len(regrets), 0), np.float32)
    own, count = np.ascontiguousarray(regrets[:, : starts[-1]]), np.diff(starts)
    largest = np.repeat(np.maximum.reduceat(own, starts[:-1], axis=1), count, axis=1)
    seen = np.repeat(np.logical_or.reduceat(own != 0, starts[:-1], axis=1), count, axis=1)
    chosen: npt.NDArray[Any] = ((own == largest) & seen).astype(np.float32)
    return chosen
