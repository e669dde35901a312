"""Single traversals of a game by a sampled kernel over general records, and what they should add up to on average.

Expectations are sums over everything that a traversal may sample: it is run with one random stream after another until
the outcomes seen have all the probability there is.  Tables are in float64.
"""

import numpy as np

from mccfr.cards.deals import draw_deals, new_deals
from mccfr.cards.listed import deal_arrays
from mccfr.rng import new_stream
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import BASELINE, make_layout, private_tables, sum_forms
from mccfr.trees.compiled import DECISION

DEALS = 8


class Traversals:
    """Traversals of single deals of a game, on tables of random regrets, all positive, each weighing `weight`.

    A subclass sets `kernel`, `scratch` and `own`, the kernel's last arguments, and says by `sampled` what the last
    traversal has sampled and how likely that was.
    """

    def __init__(self, game, weight=1.0, baseline_scale=None, sum_scale=None):
        """`baseline_scale`: of random baselines, for which there is a table then; `sum_scale`: of random strategy sums,
        which lie in the flat table of the regrets then and not in one of their own."""
        self.game, self.weight = game, weight
        self.tree = game.tree.arrays
        wide = sum_forms(2 * game.tree.streets, "float32" if sum_scale is None else "float64")
        baselines = baseline_scale is not None
        layout = make_layout(game, lazy=False, regret_dtype="float64", wide=wide, baselines=baselines)
        self.tables, rng = private_tables(layout), np.random.default_rng(3)
        for name in sorted(self.tables):
            if name.startswith("regret"):
                self.tables[name][:] = np.abs(rng.normal(size=self.tables[name].shape))
            if name.startswith(BASELINE):
                self.tables[name][:] = baseline_scale * rng.normal(size=self.tables[name].shape)
            if name.startswith("strategy_sum") and sum_scale is not None:
                self.tables[name][:] = sum_scale * rng.exponential(size=self.tables[name].shape)
        self.start = self.tables.kernel.regret.copy()
        self.deals = new_deals(DEALS, game.tree.streets)
        words = map(np.uint64, (1, 0))
        assert draw_deals(deal_arrays(game.cards), *words, 0, DEALS, np.zeros(4, np.uint64), self.deals)

    def run(self, seed, deals=(0, 1)):
        """Play some deals from the tables as they were made; returns what has changed of the regrets' flat table."""
        flat = self.tables.kernel.regret
        flat[:] = self.start
        limits = np.array([*deals, np.iinfo(np.int64).max])
        discount = Schedule().at(0)._replace(weight=self.weight, sum_weight=self.weight)
        arrays = self.tree, self.tables.kernel, self.deals, limits, discount, new_stream(seed, 0), self.scratch
        self.kernel(*arrays, *self.own)
        return flat - self.start

    def row(self, node, base="regret_base"):
        """First cell of a decision's row for the first deal, in the flat table that begins by block at `base`."""
        block, arrays = self.tree.block[node], self.tables.kernel
        return getattr(arrays, base)[block] + self.deals.bucket[0, block] * arrays.width[block] + self.tree.slot[node]

    def sigma(self, node):
        """(first regret cell, strategy) at a decision for the first deal, by regret matching."""
        row = self.row(node)
        positive = np.maximum(self.start[row : row + self.tree.count[node]], 0)
        total = positive.sum()
        return row, positive / total if total > 0 else np.full(len(positive), 1 / len(positive))

    def expected_regrets(self, seat, passes=lambda node: False):
        """What one traversal of the first deal should add to the seat's regrets on average: [.] flat.

        passes  own decisions that are played by the strategy and not updated
        """
        found = np.zeros_like(self.start)

        def value(node, reach):
            if self.tree.kind[node] != DECISION:
                return (1 - 2 * seat) * (self.tree.fixed[node] + self.tree.showdown[node] * self.deals.result[0])
            row, sigma = self.sigma(node)
            updates = self.tree.player[node] == seat and not passes(node)
            worth = [value(self.tree.first[node] + a, reach * (1 if updates else p)) for a, p in enumerate(sigma)]
            mean = sigma @ worth
            if updates:
                found[row : row + len(sigma)] += self.weight * reach * (np.array(worth) - mean)
            return mean

        value(0, 1.0)
        return found

    def expected_sums(self, seat, passes=lambda node: False):
        """What one traversal for `seat` should add to the other's strategy sums on average: [.] flat."""
        found = np.zeros_like(self.start)

        def add(node, reach):
            if self.tree.kind[node] == DECISION:
                _, sigma = self.sigma(node)
                other = self.tree.player[node] != seat
                if other:
                    row = self.row(node, "sum_base")
                    found[row : row + len(sigma)] += self.weight * reach * sigma
                for a, p in enumerate(sigma):
                    add(self.tree.first[node] + a, reach * (p if other or passes(node) else 1))

        add(0, 1.0)
        return found


def mean_change(play, seat):
    """Mean of what a traversal for a seat changes, by enumeration: [.] flat."""
    mean, seen, seed = np.zeros_like(play.start), {}, 0
    while sum(seen.values()) < 1 - 1e-12:
        assert seed < 200_000
        change = play.run(seed)
        seed += 1
        sampled, probability = play.sampled(seat)
        if sampled not in seen:
            seen[sampled] = probability
            mean += probability * change
    assert len(seen) >= 3
    return mean
