"""Lists every infoset of a game, so that Deep CFR can keep strategies at all of them as a table.

A block is one player on one street (2·street + player); a row is one decision of a block.  An infoset is a bucket and a
row.  Infosets of player 0 come first, street by street; within a block those of a bucket are adjacent.  Each infoset
has as many cells as the game's widest decision has actions; cells beyond its own actions stay 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.games.perfect_recall import parent_buckets
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.betting_lines import previous_own_actions

MOST_INFOSETS = 20_000_000
"""Most infosets that are listed; each takes a few hundred bytes."""
NO_CELL = -1
"""Marks in `Infosets.parent` that the player has not acted before."""


class Numbering(NamedTuple):
    """Numbers of the infosets of B blocks: a bucket and row have the number base + bucket · rows + row.

    A block is one player on one street, and a row is one decision of it.

    base     [B] int64  number of the block's first infoset
    rows     [B] int64  number of rows of the block: infosets of one bucket
    buckets  [B] int64  number of buckets of the block
    first    [3] int64  number of each player's first infoset, then the count of all infosets
    """

    base: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    buckets: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Infosets:
    """List of the I infosets of both players, with at most A actions; Deep CFR's tables follow it.

    numbering  Numbering      numbers of the infosets of each block
    actions    [I] int64      number of actions
    parent     [I] int64      cell (infoset·A + action) of the player's last action before; NO_CELL if it has not acted
    order      2 × [n] int64  numbers of each player's infosets, those with fewer own actions before them first
    width      int            A
    """

    numbering: Numbering
    actions: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    order: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
    width: int

    def __len__(self) -> int:
        return len(self.actions)

    def of(self, player: int) -> slice:
        """Return the slice of infoset numbers that belong to a player."""
        return slice(int(self.numbering.first[player]), int(self.numbering.first[player + 1]))

    def count(self, player: int) -> int:
        """Return the number of a player's infosets."""
        return int(self.numbering.first[player + 1] - self.numbering.first[player])

    @property
    def legal(self) -> npt.NDArray[np.bool_]:
        """Return [I, A] True where the infoset has that action."""
        return np.arange(self.width) < self.actions[:, None]

    def uniform(self) -> npt.NDArray[np.float64]:
        """Return [I, A] the uniform strategy; cells beyond an infoset's actions are 0."""
        return self.legal / self.actions[:, None]


def numbering(game: Game) -> Numbering:
    """Return the `Numbering` of a game's infosets, by player, then street, bucket and decision.

    Raises `ValueError` for boards dealt from the whole deck, and for more than 20 million infosets.
    """
    if game.cards.dealt and game.cards.boards is None:
        raise ValueError(f"{game.name} deals its boards from the whole deck: its infosets cannot be listed")
    if game.infosets.sum() > MOST_INFOSETS:
        raise ValueError(
            f"{game.name} has {int(game.infosets.sum()):,} infosets, and at most {MOST_INFOSETS:,} can be listed"
        )
    counts, base = game.infosets, np.zeros(len(game.infosets), np.int64)
    first, at = [0], 0
    for player in range(2):
        for block in range(player, len(counts), 2):
            base[block], at = at, at + int(counts[block])
        first.append(at)
    rows, buckets = game.tree.row_count.astype(np.int64), game.buckets.astype(np.int64)
    return Numbering(base, rows, buckets, np.array(first, np.int64))


def list_infosets(game: Game) -> Infosets:
    """Return the `Infosets` of a game: each one's number of actions, and its player's last action.

    Raises `ValueError` for boards dealt from the whole deck, and for more than 20 million infosets.  Also raises
    it for imperfect recall of buckets or actions, with which an infoset has no unique own reach.
    """
    places, arrays = numbering(game), game.tree.arrays
    width = int(arrays.count[game.tree.decisions].max())
    actions, parent, depth = (np.zeros(int(places.first[2]), np.int64) for _ in range(3))
    children, before = (
        previous_own_actions(game.tree),
        [parent_buckets(game, block) for block in range(2 * game.tree.streets)],
    )
    if any(reached is None for reached in before[2:]):
        raise ValueError(
            f"{game.name}: hands of one bucket came from different ones: deep-cfr needs perfect recall; leave "
            "[abstraction] out"
        )
    assigned = np.full(len(parent), False)
    for node in game.tree.decisions.tolist():
        block, row = int(arrays.block[node]), int(arrays.row[node])
        infoset_rows = places.base[block] + np.arange(game.buckets[block]) * places.rows[block] + row
        parent_cell = np.full(len(infoset_rows), NO_CELL)
        own = 0
        if (child := children[node]) >= 0:
            last = int(game.tree.parent[child])
            street, action = int(arrays.block[last]) // 2, child - int(arrays.first[last])
            bucket = np.arange(len(infoset_rows))
            for later in range(block // 2, street, -1):
                bucket = np.asarray(before[2 * later + block % 2])[bucket]
            block_before = 2 * street + block % 2
            infoset = places.base[block_before] + bucket * places.rows[block_before] + int(arrays.row[last])
            parent_cell, own = infoset * width + action, int(depth[infoset[0]]) + 1
        if assigned[infoset_rows[0]] and (parent[infoset_rows] != parent_cell).any():
            raise ValueError(f"{game.name}: a player forgets its own actions: deep-cfr needs perfect recall")
        assigned[infoset_rows] = True
        actions[infoset_rows], parent[infoset_rows], depth[infoset_rows] = arrays.count[node], parent_cell, own
    spans = [slice(int(places.first[p]), int(places.first[p + 1])) for p in range(2)]
    orders = [span.start + np.argsort(depth[span], kind="stable") for span in spans]
    return Infosets(places, actions, parent, (orders[0], orders[1]), width)


@njit
def own_reach(order, parent, sigma, reach):
    """Fill `reach` at a player's infosets with the product of its own action probabilities.

    order   [n] int64  numbers of the player's infosets, those with fewer own actions before them first
    parent  [I] int64  cell (infoset·A + action) of the player's last action before each; below 0 if it has not acted
    sigma   [I, A] float64  strategies
    reach   [I] float64  own reach; cells of the other player are not changed
    """
    width = sigma.shape[1]
    for infoset in order:
        cell = parent[infoset]
        if cell < 0:
            reach[infoset] = 1.0
        else:
            parent_infoset = cell // width
            reach[infoset] = reach[parent_infoset] * sigma[parent_infoset, cell - parent_infoset * width]


@njit
def _add_reached(base, rows, starts, sigma, reach, weight, sums):
    """Add weight · reach · sigma of one block's infosets to the block's strategy sums, in place.

    base    number of the block's first infoset; rows is the number of its rows
    starts  [rows+1] int64 first slot of each row, and the end of the last; a slot is one action of a row
    sigma   [I, A] float64 strategies
    reach   [I] float64 own reach
    sums    [buckets, slots] float64
    """
    for bucket in range(sums.shape[0]):
        for row in range(rows):
            infoset = base + bucket * rows + row
            share = weight * reach[infoset]
            for action in range(starts[row + 1] - starts[row]):
                sums[bucket, starts[row] + action] += share * sigma[infoset, action]


class Averaging:
    """Adds strategies of all infosets to strategy sums, weighted by the player's own reach.

    Deep CFR uses it for an average strategy as a table: after each iteration, or later for all kept networks.
    """

    def __init__(self, game: Game, infosets: Infosets) -> None:
        self._infosets = infosets
        self._starts = [row_starts(game, block) for block in range(2 * game.tree.streets)]
        self._reach = np.zeros(len(infosets))

    def add(
        self, player: int, sigma: npt.NDArray[np.float64], weight: float, sums: Sequence[npt.NDArray[np.float64] | None]
    ) -> None:
        """Add weight · reach · sigma of a player's infosets to the sums of the player's blocks, in place.

        sigma   [I, A] strategies at all infosets
        weight  weight of the strategies in the average
        sums    strategy sums [buckets, slots] of each block (street and player), None without decisions; a slot is one
                action of a decision
        """
        infosets, places = self._infosets, self._infosets.numbering
        own_reach(infosets.order[player], infosets.parent, sigma, self._reach)
        for block in range(player, len(sums), 2):
            table = sums[block]
            if table is not None:
                base, rows = int(places.base[block]), int(places.rows[block])
                _add_reached(base, rows, self._starts[block], sigma, self._reach, weight, table)

    def strategy(self, shares: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> Strategy:
        """Return a `Strategy`, a table for each street and player, from the arrays of all I infosets.

        shares   [I, A] probabilities
        weights  [I] weight of each infoset's row
        """
        probability, weight = [], []
        for block, starts in enumerate(self._starts):
            legal = np.arange(shares.shape[1]) < np.diff(starts)[:, None]
            cells = [self._rows(block, shares[:, action]) for action in range(shares.shape[1])]
            probability.append(np.stack(cells, axis=2)[:, legal])
            weight.append(self._rows(block, weights))
        return Strategy(tuple(probability), tuple(weight))

    def _rows(self, block: int, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values [I] of a block's infosets as a view [buckets, rows]."""
        places = self._infosets.numbering
        base, rows, buckets = int(places.base[block]), int(places.rows[block]), int(places.buckets[block])
        return values[base : base + buckets * rows].reshape(buckets, rows)
