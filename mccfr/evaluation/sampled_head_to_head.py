"""Head-to-head for neural-network strategies, whose probabilities are computed for drawn deals.

A deal is both hands and the board. Each side plays it in both seats, which cancels much of the luck. All actions are
walked with their probabilities; only deals are sampled. The random stream differs from that of training.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION
from mccfr.evaluation.compatible_games import check_same_game, same_tree
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.head_to_head import HeadToHeadResult
from mccfr.evaluation.samples import Effort
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.deep.sampled_cards import SampledHands, draw_hands
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import TERMINAL

_TOGETHER = 256  # deals in one batch of the networks
_SEATINGS = 2


def is_on_deals(*sides: Profile) -> bool:
    """Return True if some strategy is a neural network whose output is not stored in tables."""
    return any(side.strategy.on_deals is not None for side in sides)


def deal_parts(game: Game, deals: int, seed: int) -> Iterator[SampledHands]:
    """Draw deals for an evaluation; yield them as `SampledHands`, in batches of at most 256.

    deals  number of deals in all
    seed   seed of the deals
    """
    board = game.cards.cards_on(game.tree.streets - 1)
    for first in range(0, deals, _TOGETHER):
        yield draw_hands(seed, first, min(_TOGETHER, deals - first), board, EVALUATION)


def head_to_head_on_deals(
    first: Profile,
    second: Profile,
    boards: int = 1000,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> HeadToHeadResult:
    """Return the chips per hand of poker that `first` wins from `second`, the mean over both seats.

    It is for neural networks whose output is not stored in tables.

    boards  number of sampled deals, each with its own board
    seed    seed of the deals
    effort  only the default is allowed: this process evaluates all deals, without time budget and journal file

    Raises `ValueError` for fewer than two deals, another effort, and games or betting trees that differ. Raises it too
    for a strategy in tables, unless it plays all hands alike.
    """
    if boards < 2:
        raise ValueError(f"boards = {boards}: at least 2 are needed, for an interval")
    if effort != Effort():
        raise ValueError("networks without tables are evaluated in this process: leave workers, budget and keep out")
    check_same_game(first.game, second.game)
    if not same_tree(first.game, second.game):
        raise ValueError(
            "networks without tables can only be compared in one betting tree, and the trees of the games differ"
        )
    won = []
    for hands in deal_parts(first.game, boards, seed):
        strategies = [on_deals(side.strategy, hands) for side in (first, second)]
        as_first = deal_values(first.game, strategies, hands.result)
        as_second = deal_values(first.game, strategies[::-1], hands.result)
        won.append((as_first - as_second) / _SEATINGS)
        report_step("board", sum(map(len, won)), boards)
    values = np.concatenate(won)
    return HeadToHeadResult(*ratio95(values, np.ones(len(values))), boards)


def on_deals(source: Strategy, hands: SampledHands) -> Strategy:
    """Return the probabilities of a strategy `source` for K deals, as a `Strategy` with tables [K, slots].

    There is one table for each street and player. Row k belongs to deal k, instead of a bucket. A slot is one action of
    one decision. Raises `ValueError` unless the strategy is a neural network or plays all hands alike.
    """
    if source.on_deals is not None:
        return source.on_deals(hands)
    tables = [rows.cells for rows in source.blocks]
    if any(table.size and table.strides[0] for table in tables):
        raise ValueError(
            "a network without tables can only be compared with such a network, or with a strategy that plays all "
            "hands alike"
        )
    weight = tuple(np.zeros((len(hands), 0)) for _ in tables)
    return Strategy(tuple(np.broadcast_to(table[:1], (len(hands), table.shape[1])) for table in tables), weight)


def deal_values(game: Game, strategies: Sequence[Strategy], result: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return [K] player 0's chips on deals: player 0 plays the first strategy, player 1 the second.

    strategies  the players' strategies, with one row per deal (`on_deals`)
    result      [K] showdown result: 1 if player 0 wins, 0 for a tie, -1 if player 1 wins
    """
    tree = game.tree.arrays
    values = np.zeros((len(tree.kind), len(result)))
    for node in range(len(tree.kind) - 1, -1, -1):  # children have higher numbers than their parents
        if tree.kind[node] == TERMINAL:
            values[node] = tree.fixed[node] + tree.showdown[node] * result
            continue
        first, count, slot = int(tree.first[node]), int(tree.count[node]), int(tree.slot[node])
        table = strategies[tree.player[node]].probability[tree.block[node]]
        values[node] = (table[:, slot : slot + count].T * values[first : first + count]).sum(axis=0)
    return values[0]
