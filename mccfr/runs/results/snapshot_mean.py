"""The mean of current strategies, as an average strategy for streets that keep no strategy sums: a heuristic.

Brown & Sandholm 2019 ("Superhuman AI for multiplayer poker", supplement) keep sums for the first street only and
average snapshots of the current strategy on the later ones.  The average strategy of CFR weighs the strategy of each
iteration by its player's own reach (Zinkevich et al. 2007, equation 4), and so is each snapshot here: by the reach that
his own actions had under it.  What a snapshot cannot give is approximated:

* it stands for all iterations since the snapshot before, so that strategies in between count for nothing;
* where a bucket does not say which buckets its hands came from on the street before (imperfect recall), reach counts
  from that street on: own actions on earlier ones had another probability for each hand of the bucket;
* a row whose regrets are all 0 has not been learnt yet, or is indifferent: it counts for nothing under that snapshot.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.games.recall import parent_buckets
from mccfr.tables.layout import table_name
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.lines import own_actions

Floats = npt.NDArray[np.float64]


class Mean(NamedTuple):
    """A weighted mean of strategies so far: probability [buckets, slots] and weight [buckets, rows], float64."""

    probability: Floats
    weight: Floats


class SnapshotMean:
    """The average strategy of a game: the first street is given, snapshots are added on the later ones."""

    def __init__(self, game: Game, first_street: Strategy) -> None:
        """`first_street` has the two blocks of the first street."""
        self._game, self._taken = game, own_actions(game.tree)
        self._parent = [parent_buckets(game, block) for block in range(2 * game.tree.streets)]
        later = [_uniform(game, block) for block in range(2, 2 * game.tree.streets)]
        self.strategy = Strategy(
            (*first_street.probability, *(mean.probability for mean in later)),
            (*first_street.weight, *(mean.weight for mean in later)),
        )
        over = {node: int(game.tree.parent[child]) for node, child in enumerate(self._taken) if child >= 0}
        block = game.tree.arrays.block
        self._leads_on = {before for node, before in over.items() if block[node] != block[before]}

    def add(self, read: Callable[[str], npt.NDArray[Any]], step: float) -> None:
        """Add a snapshot of weight `step`; `read` gives its tables by name, [bucket, slot] each, one at a time."""
        for player in (0, 1):
            gone = dict[int, Floats]()
            for block in range(player, 2 * self._game.tree.streets, 2):
                if self._game.tree.row_count[block]:
                    self._add_block(read(table_name("regret", block)), block, gone, step)

    def _add_block(self, regret: npt.NDArray[Any], block: int, gone: dict[int, Floats], step: float) -> None:
        """Add the current strategy of a block of regrets [buckets, slots].

        gone  by decision of blocks before, [buckets, A] own reach after its actions; this block's are added, and only
              those stay from which later blocks come
        """
        arrays = self._game.tree.arrays
        for node in np.flatnonzero(arrays.block == block).tolist():  # parents come first
            first, count = int(arrays.slot[node]), int(arrays.count[node])
            cells = np.asarray(regret[:, first : first + count], np.float64)
            positive = np.maximum(cells, 0)
            total = positive.sum(axis=1, keepdims=True)
            sigma = np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / count)
            reach = self._reach(node, block, gone)
            gone[node] = reach[:, None] * sigma
            if block >= 2:
                mean, weight = self.strategy.probability[block], self.strategy.weight[block][:, arrays.row[node]]
                more = step * np.where((cells != 0).any(axis=1), reach, 0)
                weight += more
                share = np.divide(more, weight, out=np.zeros_like(more), where=more > 0)
                mean[:, first : first + count] += share[:, None] * (sigma - mean[:, first : first + count])
        for node in gone.keys() - self._leads_on:
            del gone[node]

    def _reach(self, node: int, block: int, gone: dict[int, Floats]) -> Floats:
        """[buckets] own reach of a decision, as far back as buckets say which ones were before."""
        child, tree = self._taken[node], self._game.tree
        if child < 0:
            return np.ones(int(self._game.buckets[block]))
        over = int(tree.parent[child])
        reach = gone[over][:, child - int(tree.arrays.first[over])]
        for street in range(int(tree.arrays.block[over]) + 2, block + 1, 2):
            before = self._parent[street]
            reach = np.ones(int(self._game.buckets[street])) if before is None else reach[before]
        return reach


def _uniform(game: Game, block: int) -> Mean:
    """No strategy yet: uniform rows of weight 0."""
    starts, buckets = row_starts(game, block), int(game.buckets[block])
    actions = np.diff(starts)
    probability = np.repeat(1 / actions, actions)
    return Mean(np.tile(probability, (buckets, 1)), np.zeros((buckets, len(actions))))
