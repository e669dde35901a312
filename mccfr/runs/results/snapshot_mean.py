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

from abstraction.kernels.jit import nogil_allocating_njit
from mccfr.games.game import Game
from mccfr.games.recall import parent_buckets
from mccfr.tables.layout import table_name
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.lines import own_actions

_NO_BLOCK = -1  # stands for one where a player has not acted yet


class OwnLines(NamedTuple):
    """Where a player's own last actions lie, for one block.  J of them lead into the street, 0 among them: none.

    starts  [rows+1] int64  first slot of each row, and the end of the last
    before  [rows] int64    own last action before each row: its slot, or -1-j for number j of those before the street
    onward  [J'] int64      the same for own last actions before later streets, in their order
    """

    starts: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    onward: npt.NDArray[np.int64]


class Mean(NamedTuple):
    """A weighted mean of strategies so far: probability [buckets, slots] and weight [buckets, rows], float64."""

    probability: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]


@nogil_allocating_njit
def add_current_strategy(regret, lines, parent, arrived, step, mean, onward):
    """Add the current strategy of one block to a mean, in place, and say how likely its owner goes on.

    regret   [K, width]         regrets of the block
    lines    OwnLines
    parent   [K] int64          bucket on the street before of each bucket's hands
    arrived  [K', J] float64    own reach of the street's lines by bucket on the street before
    step     float64            what the strategy weighs; 0: nothing is added
    mean     Mean               changed in place; rows of weight 0 are uniform
    onward   [K, J'] float64    set to the own reach of the lines into later streets
    """
    starts, before, after = lines.starts, lines.before, lines.onward
    reach = np.empty(starts[-1])
    for bucket in range(regret.shape[0]):
        came = arrived[parent[bucket]]
        for row in range(before.shape[0]):
            first, stop, line = starts[row], starts[row + 1], before[row]
            here = reach[line] if line >= 0 else came[-1 - line]
            total, learnt = 0.0, False
            for slot in range(first, stop):
                total += max(np.float64(regret[bucket, slot]), 0.0)
                learnt = learnt or regret[bucket, slot] != 0
            weight = step * here if learnt else 0.0
            mean.weight[bucket, row] += weight
            share = weight / mean.weight[bucket, row] if weight > 0 else 0.0
            for slot in range(first, stop):
                sigma = max(np.float64(regret[bucket, slot]), 0.0) / total if total > 0 else 1.0 / (stop - first)
                reach[slot] = here * sigma
                if share > 0:
                    mean.probability[bucket, slot] += share * (sigma - mean.probability[bucket, slot])
        for j in range(after.shape[0]):
            line = after[j]
            onward[bucket, j] = reach[line] if line >= 0 else came[-1 - line]


def own_lines(game: Game) -> list[OwnLines]:
    """[B] `OwnLines` of each block of a betting tree: a row is a decision, and comes after those that lead to it."""
    arrays, taken = game.tree.arrays, own_actions(game.tree)
    nodes = game.tree.decisions.tolist()
    slots = {}  # own last action before each decision, as (block, slot)
    for node in nodes:
        over = int(game.tree.parent[taken[node]]) if taken[node] >= 0 else -1
        place = (int(arrays.block[over]), int(arrays.slot[over] + taken[node] - arrays.first[over]))
        slots[node] = place if taken[node] >= 0 else (_NO_BLOCK, 0)
    found: list[OwnLines] = []
    for block in range(2 * game.tree.streets):
        own = [node for node in nodes if arrays.block[node] % 2 == block % 2]
        street = block // 2
        entering = _lines_into(street, own, slots, arrays.block)
        leaving = _lines_into(street + 1, own, slots, arrays.block)
        number = {place: -1 - j for j, place in enumerate(entering)}
        number.update({place: place[1] for place in slots.values() if place[0] == block})
        before = np.zeros(int(game.tree.row_count[block]), np.int64)
        for node in own:
            if arrays.block[node] == block:
                before[arrays.row[node]] = number[slots[node]]
        found.append(OwnLines(row_starts(game, block), before, np.array([number[p] for p in leaving], np.int64)))
    return found


def _lines_into(
    street: int, own: list[int], slots: dict[int, tuple[int, int]], block: npt.NDArray[np.int8]
) -> list[tuple[int, int]]:
    """Own last actions, on streets before `street`, of decisions on it and later ones; first of all: none."""
    found = {slots[node] for node in own if block[node] // 2 >= street and slots[node][0] // 2 < street}
    return [(_NO_BLOCK, 0), *sorted(found - {(_NO_BLOCK, 0)})]


class SnapshotMean:
    """The average strategy of a game: the first street is given, snapshots are added on the later ones."""

    def __init__(self, game: Game, first_street: Strategy) -> None:
        """`first_street` has the two blocks of the first street."""
        self._game = game
        self._lines = own_lines(game)
        self._parent = [parent_buckets(game, block) for block in range(2 * game.tree.streets)]
        later = [_uniform(game, block) for block in range(2, 2 * game.tree.streets)]
        self.strategy = Strategy(
            (*first_street.probability, *(mean.probability for mean in later)),
            (*first_street.weight, *(mean.weight for mean in later)),
        )

    def add(self, read: Callable[[str], npt.NDArray[Any]], step: float) -> None:
        """Add a snapshot of weight `step`; `read` gives its tables by name, [bucket, slot] each, one at a time."""
        streets = self._game.tree.streets
        for player in (0, 1):
            onward = np.ones((1, 1))
            for block in range(player, 2 * streets, 2):
                passed_on = block + 2 < 2 * streets and self._parent[block + 2] is not None
                if block >= 2 or passed_on:
                    onward = self._add_block(read, block, onward, step if block >= 2 else 0.0)

    def _add_block(
        self, read: Callable[[str], npt.NDArray[Any]], block: int, arrived: npt.NDArray[np.float64], step: float
    ) -> npt.NDArray[np.float64]:
        """Returns the own reach of the lines into later streets by bucket of this one."""
        lines, buckets, parent = self._lines[block], int(self._game.buckets[block]), self._parent[block]
        if parent is None:
            leading_here = len(self._lines[block - 2].onward) if block >= 2 else 1
            parent, arrived = np.zeros(buckets, np.int64), np.ones((1, leading_here))
        regret = read(table_name("regret", block)) if len(lines.before) else np.zeros((buckets, 0), np.float32)
        mean = Mean(self.strategy.probability[block], self.strategy.weight[block])
        onward = np.ones((buckets, len(lines.onward)))
        add_current_strategy(regret, lines, parent, arrived, step, mean, onward)
        return onward


def _uniform(game: Game, block: int) -> Mean:
    """No strategy yet: uniform rows of weight 0."""
    starts, buckets = row_starts(game, block), int(game.buckets[block])
    actions = np.diff(starts)
    probability = np.repeat(1 / actions, actions)
    return Mean(np.tile(probability, (buckets, 1)), np.zeros((buckets, len(actions))))
