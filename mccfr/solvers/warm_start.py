"""Tables that begin with what a policy knows, on other card buckets or with other bets, instead of with nothing.

Brown & Sandholm 2016, "Strategy-Based Warm Starting for Regret Minimization in Games" (AAAI), begin full-width CFR as
if T iterations had led to a given strategy: the average weighs T, and regrets take the potential that T iterations may
have left, Σ (R+)² <= Δ²·|A|·T at an infoset, spread by values that a traversal of the whole game computes.  No sampler
can afford that traversal.  So regrets are spread here by the strategy itself, which regret matching then plays:

    R(I, a) = σ(I, a) · stake(I) · √(T · p(I))          S(I, a) = T · (share of the policy's sums that falls to I)

* T is `solver.warm_iterations`.
* p(I) is the share of the traversals that come to I: that of the bucket's hands among all, times the reach of the
  opponent's range under the policy, whatever he holds, at what I is taken for.  So bets that the policy never makes are
  answered from the start as those that it takes them for.
* stake(I) stands for Δ: the chips that the hand is played for where the policy goes on from I, on average over the
  ranges.  Δ itself is the whole stack wherever somebody may go all-in.
* σ(I) is S(I), normalised; rows that the policy has never reached begin with zeros.

What is exact: regret matching begins with σ at every row whose stake is not 0, and so where σ is an equilibrium of the
run's own game, play begins there.  What holds for any policy: since R is not negative, the regret that a row's updates
add up to is at most the regret in its cell, so that after n visits with updates of at most Δ it is at most
√(Σ R(I, a)² + |A|·Δ²·n) (Blackwell's potential begins at Σ R² instead of 0).  So a bad policy costs what is in R, once,
and the limit is the same.

The policy's strategy sums - a row's weight times its probabilities - are shared out among the run's rows.  Of the hands
in one of its buckets a share lies in each of the run's, and takes that share of the sums along.  A line of the run's
betting is read in the policy's tree, and the policy's bets in the run's, as at a table (`mccfr.games.translation`);
what may be taken for several bets is taken for each, with its probability.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.cards import Cards
from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.games.reading import NOWHERE, Reading
from mccfr.games.translation import Translation
from mccfr.solvers.public.public_chance.responding import TRUNK
from mccfr.tables.layout import TableSet, table_name
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.compiled import DECISION, TERMINAL

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_ROWS_AT_A_TIME = 1 << 12
WARM_BOARDS = 100.0
"""What a policy counts for where boards are sampled: soon outweighed where it is bad, for later boards weigh more."""


class Shares(NamedTuple):
    """How hands of a policy's buckets lie in the run's, on one street for one player.  n pairs of buckets that meet.

    own    [n] int64    the run's bucket, ascending
    other  [n] int64    the policy's
    share  [n] float64  of the hands in `other`, those in `own`
    dealt  [buckets] float64  share of all hands that is in each of the run's buckets
    """

    own: Integers
    other: Integers
    share: Floats
    dealt: Floats


class Cells(NamedTuple):
    """Which cells of a policy's block are which of the run's: own [n] and other [n] slots, share [n] of the latter.

    Or which nodes of the trees: what each of the run's is taken for, and with which probability.
    """

    own: Integers
    other: Integers
    share: Floats


def begin_warm_boards(
    game: Game, trunk: Game | None, tables: TableSet, source: Game, strategy: Strategy, boards: float
) -> None:
    """The same for CFR-BR on sampled boards, which updates all hands at once: both players, and their opponents.

    trunk   the game on the buckets of the opponents; None: on those of the players
    boards  that the strategy counts for: R(I, a) = σ(I, a) · stake · reach · boards · hands of the row · H
    """
    hands = game.cards.most_hands
    begin_warm(game, tables, source, strategy, boards, hands)
    theirs = {
        table_name("regret", block): cells
        for block in range(2 * game.tree.streets)
        if (cells := tables.rows(TRUNK, block)) is not None
    }
    begin_warm(trunk or game, TableSet(theirs), source, strategy, boards, hands)


def begin_warm(
    game: Game, tables: TableSet, source: Game, strategy: Strategy, iterations: float, hands: int | None = None
) -> None:
    """Fill fresh tables [bucket, slot] of float32 or float64, in place; blocks without strategy sums stay without.

    game        of the run
    source      the same game but for card buckets and, where it has real rules, bets (`check_same_game`)
    strategy    for `source`, with weights
    iterations  T: so many the strategy counts for
    hands       H that are updated in an iteration, each against H; None: one, against one that is sampled
    """
    together = 1 if hands is None else hands
    blocks = range(2 * game.tree.streets)
    scale = _scales(source, strategy, iterations)
    cells, readings = _translated(game, source)
    dealt: list[Floats] = []
    played: list[Floats] = []  # of each slot, over all hands: share of the traversals
    known: list[Floats] = []  # the same of the source
    for block, shares in enumerate(bucket_shares(game.cards, source.cards)):
        regrets = tables.rows("regret", block)
        dealt.append(shares.dealt)
        played.append(np.zeros(int(game.tree.row_slots[block])))
        sums = scale[block % 2] * _weighted(source, strategy, block)
        known.append(sums.sum(axis=0) / iterations)
        if regrets is None:
            continue
        taken = np.zeros((len(sums), len(played[-1])))
        np.add.at(taken.T, cells[block].own, (sums[:, cells[block].other] * cells[block].share).T)
        _share_out(shares, taken, regrets)
        played[-1][:] = regrets[:, : len(played[-1])].sum(axis=0, dtype=np.float64) / iterations
        kept = tables.rows("strategy_sum", block)
        if kept is not None:
            kept[:, : len(played[-1])] = together * regrets[:, : len(played[-1])]
    stake, reach = _stakes(game, played), np.zeros((game.tree.nodes, 2))
    np.add.at(reach, readings.own, _reaches(source, known)[readings.other] * readings.share[:, None])
    for block in blocks:
        regrets = tables.rows("regret", block)
        if regrets is not None:
            visits = iterations * together**2 * dealt[block]
            _spread(game, block, regrets, stake, reach[:, 1 - block % 2], visits, 0.5 if hands is None else 1.0)


def bucket_shares(cards: Cards, other: Cards) -> Iterator[Shares]:
    """Block by block, how the hands of `other`'s buckets lie in those of `cards`, which deal the same."""
    counts = zip(cards.buckets.reshape(-1).tolist(), other.buckets.reshape(-1).tolist(), strict=True)
    for (mine, count), (own, weight), (theirs, _) in zip(counts, cards.held(), other.held(), strict=True):
        pairs, place = np.unique(own.astype(np.int64) * count + theirs, return_inverse=True)
        together, of_other = np.bincount(place, weight), np.bincount(theirs, weight, count)
        dealt = np.bincount(own, weight, mine) / weight.sum()
        yield Shares(pairs // count, pairs % count, together / of_other[pairs % count], dealt)


def _weighted(source: Game, strategy: Strategy, block: int) -> Floats:
    """[buckets, slots] strategy sums of a block: each row's weight times its probabilities."""
    count = np.diff(row_starts(source, block))
    return np.asarray(strategy.probability[block] * np.repeat(strategy.weight[block], count, axis=1), np.float64)


def _scales(source: Game, strategy: Strategy, iterations: float) -> list[float]:
    """By player, what sums are multiplied with so that a decision always reached gets `iterations` over all buckets."""
    found = []
    for player in range(2):
        most = max(
            float(strategy.weight[block].sum(axis=0).max(initial=0.0))
            for block in range(player, 2 * source.tree.streets, 2)
        )
        found.append(iterations / most if most > 0 else 0.0)
    return found


def _translated(game: Game, source: Game) -> tuple[list[Cells], Cells]:
    """Of each block, which cells of the source are which of the run's; and which nodes."""
    if game.real_rules is None or source.real_rules is None:  # the trees are the same
        same, *blocks = (
            Cells(numbers, numbers, np.ones(len(numbers)))
            for numbers in (np.arange(count) for count in (game.tree.nodes, *game.tree.row_slots))
        )
        return blocks, same
    own, other = Translation(game.tree, game.real_rules), Translation(source.tree, source.real_rules)
    found: list[list[tuple[int, int, float]]] = [[] for _ in range(2 * game.tree.streets)]
    nodes: list[tuple[int, int, float]] = []
    arrays = game.tree.arrays
    kinds, first = arrays.kind.tolist(), arrays.first.tolist()
    waiting: list[tuple[int, BettingState, list[Reading]]] = [(0, *other.start())]
    while waiting:
        node, state, readings = waiting.pop()
        found[int(arrays.block[node])] += _cells_at(own, other, node, state, readings)
        nodes += [(node, there, probability) for there, probability, _ in readings if there != NOWHERE]
        for child in range(first[node], first[node] + int(arrays.count[node])):
            if kinds[child] == DECISION:
                action = game.tree.label[child]
                after = own.apply(state, action)
                assert isinstance(after, BettingState)
                waiting.append((child, after, other.follow(readings, state, action)))
    columns = [np.array(triples, np.float64).reshape(-1, 3).T for triples in (nodes, *found)]
    same, *blocks = (Cells(mine.astype(np.int64), theirs.astype(np.int64), share) for mine, theirs, share in columns)
    return blocks, same


def _cells_at(
    own: Translation, other: Translation, node: int, state: BettingState, readings: list[Reading]
) -> list[tuple[int, int, float]]:
    """(slot here, slot of the source, share of the latter) at one decision of the run's tree."""
    mine, theirs = own.tree.arrays, other.tree.arrays
    found = []
    for reading in readings:
        if not other.decides(reading) or theirs.block[reading.node] != mine.block[node]:
            continue
        for number, action in enumerate(other.real_actions(reading, state)):
            slot = int(theirs.slot[reading.node]) + number
            for outcome in own.outcomes(Reading(node, 1.0), state, action):
                child = outcome.node if outcome.closed == NOWHERE else outcome.closed
                here = int(mine.slot[node]) + child - int(mine.first[node])
                found.append((here, slot, reading.probability * outcome.probability))
    return found


def _share_out(shares: Shares, sums: Floats, cells: npt.NDArray[np.floating]) -> None:
    """cells[own] = the sum over `other` of share · sums[other], in place; buckets that no hand was met of stay 0."""
    slots = sums.shape[1]
    buckets, begin = np.unique(shares.own, return_index=True)
    ends = np.append(begin, len(shares.own))
    for first in range(0, len(buckets), _ROWS_AT_A_TIME):
        last = min(first + _ROWS_AT_A_TIME, len(buckets))
        pairs = slice(int(ends[first]), int(ends[last]))
        rows = sums[shares.other[pairs]] * shares.share[pairs, None]
        cells[buckets[first:last], :slots] = np.add.reduceat(rows, begin[first:last] - pairs.start, axis=0)


def _stakes(game: Game, played: list[Floats]) -> Floats:
    """[N] chips that a hand is played for from each node on, where actions are as likely as over all hands."""
    tree, arrays = game.tree, game.tree.arrays
    likely = _likely(game, played)
    stake = np.where(arrays.kind == TERMINAL, np.abs(arrays.fixed) + np.abs(arrays.showdown), 0.0)
    for node in range(tree.nodes - 1, 0, -1):  # children stand behind their parents
        stake[tree.parent[node]] += likely[node] * stake[node]
    return stake


def _likely(game: Game, played: list[Floats]) -> Floats:
    """[N] how likely the action is that leads into each node, given its parent."""
    arrays, likely = game.tree.arrays, np.ones(game.tree.nodes)
    for node in np.flatnonzero(arrays.kind == DECISION).tolist():
        slot, count = int(arrays.slot[node]), int(arrays.count[node])
        row = played[int(arrays.block[node])][slot : slot + count]
        children = slice(int(arrays.first[node]), int(arrays.first[node]) + count)
        likely[children] = row / row.sum() if row.sum() > 0 else 1 / count
    return likely


def _reaches(game: Game, played: list[Floats]) -> Floats:
    """[N, 2] share of each player's hands with which he comes to each node, the other playing along."""
    tree, arrays = game.tree, game.tree.arrays
    reach = np.ones((tree.nodes, 2))
    for node in range(1, tree.nodes):
        parent = int(tree.parent[node])
        reach[node] = reach[parent]
        if arrays.kind[parent] == DECISION:
            slot = int(arrays.slot[parent]) + node - int(arrays.first[parent])
            reach[node, arrays.player[parent]] = played[int(arrays.block[parent])][slot]
    return reach


def _spread(
    game: Game,
    block: int,
    regrets: npt.NDArray[np.floating],
    stake: Floats,
    reach: Floats,
    visits: Floats,
    growth: float,
) -> None:
    """Make sums in a block's regrets what the rule says, in place.

    stake, reach  [N] chips, and share of the opponent's hands that come there
    visits        [buckets] in which a bucket is dealt
    growth        power of their number with which regrets grow: 1/2 where gains are those of sampled hands
    """
    arrays = game.tree.arrays
    for node in np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block)).tolist():
        slots = slice(int(arrays.slot[node]), int(arrays.slot[node]) + int(arrays.count[node]))
        row = regrets[:, slots].astype(np.float64)
        total = row.sum(axis=1)
        size = stake[node] * (visits * reach[node]) ** growth
        regrets[:, slots] = row * (size / np.where(total > 0, total, 1))[:, None]
