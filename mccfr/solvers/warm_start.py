"""Warm start of CFR-BR on sampled boards, from external sampling or from a run with other buckets.

Source: Brown & Sandholm 2016, "Strategy-Based Warm Starting for Regret Minimization in Games" (AAAI).  The paper starts
full-width CFR as if T iterations had led to a given strategy: regrets are spread by values that a full traversal
computes.  A sampled algorithm cannot afford this traversal.

Here regrets are spread by the strategy σ itself, so regret matching starts by playing σ.  H hands in all are updated on
each of T boards, and n(I) of them lie in the bucket of the infoset I.  Action a gets the regret R and the strategy sum
S:

    R(I, a) = σ(I, a) · stake(I) · reach(I) · T · n(I) · H          S(I, a) = H · (the strategy's sums there)

* reach(I): share of the opponent's range that reaches I under the strategy, for any hand of the player.
* stake(I): mean chips at stake over the terminals that the strategy reaches from I.
* The strategy's sums at a decision that is always reached count for T, over all hands.
* If CFR-BR's opponents use other buckets than the players, they start with the players' strategy.  An opponents' bucket
  adds up the sums of players' buckets, each times the share of the hands of that bucket that lie in both.

Rows with stake 0, and rows that were never reached, start with zeros.  Since R is not negative, a row's later regret is
bounded by Blackwell's potential started at Σ R².  So a bad strategy costs a constant, and the limit is the same.

From a run on other buckets all tables are shared out in the same proportions (`share_out`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import Cards
from mccfr.config.game_tables import GameConfig
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import CfrBrConfig, ExternalSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.public.cfr_br_algorithm import trunk_game
from mccfr.solvers.public.public_chance.sampled_board_responses import TRUNK
from mccfr.solvers.registry import algorithm_of
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.tables.table_layout import TableSet, private_tables, table_name
from mccfr.trees.compiled import DECISION, TERMINAL

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_ROWS_AT_A_TIME = 1 << 12
WARM_BOARDS = 100.0
"""Number T of boards: the tables become as if training on T boards had given the sampled strategy.

Later boards soon outweigh it.
"""


class Shares(NamedTuple):
    """Overlap of two card abstractions' buckets on one street, for one player: n overlapping pairs.

    own    [n] int64          bucket of the first abstraction, ascending
    other  [n] int64          bucket of the second
    share  [n] float64        share of the hands of `other` that lie in `own`
    dealt  [buckets] float64  share of all hands in each bucket of the first
    """

    own: Integers
    other: Integers
    share: Floats
    dealt: Floats


def begin_sampled(
    config: Config, game: Game, tables: TableSet, filled: Callable[[float], None] = lambda _: None
) -> None:
    """Run external sampling for `solver.warm_start` nodes; fill a run's tables from its strategy.

    tables  the run's new tables, filled in place
    filled  called with the share of the sampling that is done, 0 to 1; an exception from it ends the sampling

    Does nothing unless the solver is CFR-BR and `solver.warm_start` is a number of nodes.
    """
    solver = config.solver
    if isinstance(solver, CfrBrConfig) and isinstance(solver.warm_start, int):
        strategy = _sampled(game, solver.warm_start, solver.seed, filled)
        begin_warm(game, trunk_game(solver, game), tables, strategy, WARM_BOARDS)


def _sampled(game: Game, nodes: int, seed: int, filled: Callable[[float], None]) -> Strategy:
    """Return the average strategy after `nodes` nodes of external sampling by one worker in this process.

    seed    seed of the sampling
    filled  called before each batch with the share of the nodes that is done, 0 to 1
    """
    config = Config(game=GameConfig(), solver=ExternalSamplingConfig(seed=seed))  # the game is made already
    algorithm = algorithm_of(algorithm_of(config).completed(game))
    tables, touched = private_tables(algorithm.layout(game)), 0
    solver = algorithm.solver(game, tables)
    while touched < nodes:
        filled(touched / nodes)
        touched += solver.run(touched, nodes - touched, nodes)[1]
    return algorithm.averages.strategy(game, tables, touched, solver.state.iterations)


def begin_warm(game: Game, trunk: Game | None, tables: TableSet, strategy: Strategy, boards: float) -> None:
    """Fill fresh tables of CFR-BR's two players and of their opponents from a strategy, in place.

    trunk     the same game on the opponents' buckets; None: they use the players' buckets
    tables    [bucket, slot] float32 or float64; a slot is one action of a decision
    strategy  average strategy of `game`, with the totals of its strategy sums as weights
    boards    number T of boards: the tables become as if training on T boards had given the strategy
    """
    theirs = {
        table_name("regret", block): cells
        for block in range(2 * game.tree.streets)
        if (cells := tables.rows(TRUNK, block)) is not None
    }
    for one, rows in ((game, tables), (trunk or game, TableSet(theirs))):
        _fill(one, rows, game, strategy, boards)


def _fill(game: Game, tables: TableSet, source: Game, strategy: Strategy, boards: float) -> None:
    """Fill `tables` of `game` from a strategy of `source`, which differs only in buckets.

    boards  number T of boards: the tables become as if training on T boards had given the strategy
    """
    scale, hands, arrays = _scales(source, strategy, boards), source.cards.most_hands, game.tree.arrays
    dealt: list[Floats] = []
    traversal_shares: list[Floats] = []  # [slots] by block: share of the traversals, over all hands
    source_shares: list[Floats] = []  # the same in the source
    for block, shares in enumerate(bucket_shares(game.cards, source.cards)):
        regrets = tables.rows("regret", block)
        slots = int(game.tree.row_slots[block])
        dealt.append(shares.dealt)
        traversal_shares.append(np.zeros(slots))
        sums = scale[block % 2] * _weighted(source, strategy, block)
        source_shares.append(sums.sum(axis=0) / boards)
        if regrets is None:
            continue
        _share_out(shares, sums, regrets)
        traversal_shares[-1][:] = regrets[:, :slots].sum(axis=0, dtype=np.float64) / boards
        sum_rows = tables.rows("strategy_sum", block)
        if sum_rows is not None:
            sum_rows[:, :slots] = hands * regrets[:, :slots]
    stake, reach = _stakes(game, traversal_shares), _reaches(source, source_shares)
    for node in np.flatnonzero(arrays.kind == DECISION).tolist():
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        regrets = tables.rows("regret", block)
        if regrets is not None:
            size = stake[node] * reach[node, 1 - block % 2] * boards * hands**2 * dealt[block]
            cells = regrets[:, slot : slot + int(arrays.count[node])]
            row = cells.astype(np.float64)
            total = row.sum(axis=1)
            cells[:] = row * (size / np.where(total > 0, total, 1))[:, None]


def share_out(kinds: Sequence[str], to: tuple[Game, TableSet], of: tuple[Game, TableSet]) -> None:
    """Initialise tables, in place, from tables of the same game under another card abstraction.

    kinds  kinds of tables, such as "regret"
    to     game and tables to fill
    of     game and tables to read

    A bucket gets the mean of the source buckets' cells, weighted by the hands that it has in common with each of them.
    With equal buckets the tables are copied.
    """
    for block, shares in enumerate(bucket_shares(to[0].cards, of[0].cards)):
        for kind in kinds:
            cells, source_cells = to[1].rows(kind, block), of[1].rows(kind, block)
            if cells is not None and source_cells is not None:
                slots = int(to[0].tree.row_slots[block])
                _share_out(shares, np.asarray(source_cells[:, :slots], np.float64), cells)


def bucket_shares(cards: Cards, coarser: Cards) -> Iterator[Shares]:
    """Yield the Shares of each block (street and player): how buckets of two abstractions overlap.

    cards    cards with the first abstraction of Shares
    coarser  the same cards with the second
    """
    counts = zip(cards.buckets.reshape(-1).tolist(), coarser.buckets.reshape(-1).tolist(), strict=True)
    for (mine, count), (own, weight), (theirs, _) in zip(
        counts, cards.range_buckets(), coarser.range_buckets(), strict=True
    ):
        pairs, pair_of_hand = np.unique(own.astype(np.int64) * count + theirs, return_inverse=True)
        together, of_other = np.bincount(pair_of_hand, weight), np.bincount(theirs, weight, count)
        dealt = np.bincount(own, weight, mine) / weight.sum()
        yield Shares(pairs // count, pairs % count, together / of_other[pairs % count], dealt)


def _weighted(source: Game, strategy: Strategy, block: int) -> Floats:
    """Return [buckets, slots] strategy sums of a block (street and player) from a strategy.

    They are each row's weight times its probabilities.

    source  Game of the strategy
    """
    count = np.diff(row_starts(source, block))
    return np.asarray(strategy.probability[block] * np.repeat(strategy.weight[block], count, axis=1), np.float64)


def _scales(source: Game, strategy: Strategy, boards: float) -> list[float]:
    """Return [2] for each player the factor that scales its strategy sums to `boards` boards.

    A decision's weight is the total of its strategy sums over all buckets.  With the factor the largest weight, that of
    a decision that is always reached, becomes `boards`.  The factor is 0 if all sums are 0.

    source    Game of the strategy
    strategy  average strategy whose weights are the totals of strategy sums
    """
    scales = []
    for player in range(2):
        most = max(
            float(strategy.weight[block].sum(axis=0).max(initial=0.0))
            for block in range(player, 2 * source.tree.streets, 2)
        )
        scales.append(boards / most if most > 0 else 0.0)
    return scales


def _share_out(shares: Shares, sums: Floats, cells: npt.NDArray[np.floating]) -> None:
    """Set cells[own] to the sum over `other` of share · sums[other], in place.

    sums   [buckets of the second abstraction, slots] sums to share out
    cells  [buckets of the first abstraction, slots or more] table to fill

    `own`, `other` and `share` are the arrays of `shares`.  Buckets that hold no hand keep their zeros.
    """
    slots = sums.shape[1]
    buckets, begin = np.unique(shares.own, return_index=True)
    ends = np.append(begin, len(shares.own))
    for first in range(0, len(buckets), _ROWS_AT_A_TIME):
        last = min(first + _ROWS_AT_A_TIME, len(buckets))
        pairs = slice(int(ends[first]), int(ends[last]))
        rows = sums[shares.other[pairs]] * shares.share[pairs, None]
        cells[buckets[first:last], :slots] = np.add.reduceat(rows, begin[first:last] - pairs.start, axis=0)


def _stakes(game: Game, shares: list[Floats]) -> Floats:
    """Return [N] the mean of the chips that one player wins from the other at terminals below a node.

    The mean is over terminals, with the probability of reaching each of them from the node.

    shares  [slots] for each block: how often each action is played, over all hands; it weights the actions
    """
    tree, arrays = game.tree, game.tree.arrays
    likely = _likely(game, shares)
    stake = np.where(arrays.kind == TERMINAL, np.abs(arrays.fixed) + np.abs(arrays.showdown), 0.0)
    for node in range(tree.nodes - 1, 0, -1):  # children stand behind their parents
        stake[tree.parent[node]] += likely[node] * stake[node]
    return stake


def _likely(game: Game, shares: list[Floats]) -> Floats:
    """Return [N] probability of the action that leads to each node, over all hands; 1 at the root.

    shares  [slots] for each block: how often each action is played, over all hands
    """
    arrays, likely = game.tree.arrays, np.ones(game.tree.nodes)
    for node in np.flatnonzero(arrays.kind == DECISION).tolist():
        slot, count = int(arrays.slot[node]), int(arrays.count[node])
        row = shares[int(arrays.block[node])][slot : slot + count]
        children = slice(int(arrays.first[node]), int(arrays.first[node]) + count)
        likely[children] = row / row.sum() if row.sum() > 0 else 1 / count
    return likely


def _reaches(game: Game, shares: list[Floats]) -> Floats:
    """Return [N, 2] share of each player's range that reaches a node by that player's own actions.

    shares  [slots] for each block: share of the player's range that reaches the decision and takes the action
    """
    tree, arrays = game.tree, game.tree.arrays
    reach = np.ones((tree.nodes, 2))
    for node in range(1, tree.nodes):
        parent = int(tree.parent[node])
        reach[node] = reach[parent]
        if arrays.kind[parent] == DECISION:
            slot = int(arrays.slot[parent]) + node - int(arrays.first[parent])
            reach[node, arrays.player[parent]] = shares[int(arrays.block[parent])][slot]
    return reach
