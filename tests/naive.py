"""Naive implementations: loops over every deal and history, to compare with fast code."""

import numpy as np

from mccfr.cards.card_index import Deal
from mccfr.tables.strategy import average_strategy
from mccfr.tables.table_layout import TableSet, table_name
from mccfr.trees.compiled import DECISION, TERMINAL, CompiledTree


def random_at(word, step):
    """Return number `step` of the random words that follow from one: wyrand, in whole numbers of any size."""
    state = (word + (step + 1) * 0xA0761D6478BD642F) % 2**64
    product = state * (state ^ 0xE7037ED1A0B428DB)
    return (product ^ product >> 64) % 2**64


def dealt_hands(game):
    """Return weight [D], hands [D, 2], boards [D, S], bucket [D, B] and result [D] of a game's deals."""
    key = id(game.cards), game.tree.streets
    if key not in _dealt:  # the entry keeps the cards alive, so that their id stays unique
        _dealt[key] = game.cards, _deal(*key[1:], game.cards)
    return _dealt[key][1]


_dealt = {}


def _deal(streets, cards):
    chains = [[b] for b in range(len(cards.board_cards[0]))]
    for street in range(1, streets):
        chains = [[*c, b] for c in chains for b in np.flatnonzero(cards.board_parent[street] == c[-1])]
    used = [{int(x) for x in hand if x >= 0} for hand in cards.hand_cards]
    rows = []
    for i in np.flatnonzero(cards.reach[0]):
        for j in np.flatnonzero(cards.reach[1]):
            dead = used[i] | used[j]
            if used[i] & used[j]:
                continue
            for chain in chains:
                if not dead & set(cards.board_cards[-1][chain[-1]].tolist()):
                    bucket = [cards.bucket[s][p, chain[s], h] for s in range(streets) for p, h in ((0, i), (1, j))]
                    order = cards.strength[chain[-1], [i, j]]
                    weight, result = cards.reach[0, i] * cards.reach[1, j], np.sign(int(order[0]) - int(order[1]))
                    rows.append((weight, (i, j), chain, bucket, result))
    return [np.array(column) for column in zip(*rows, strict=True)]


def all_deals(game):
    """Return every deal of a small card game: probability [D], bucket [D, B], result [D].

    The boards of two hands are equally likely.
    """
    weight, hands, _, bucket, result = dealt_hands(game)
    _, pair, boards = np.unique(hands, axis=0, return_inverse=True, return_counts=True)
    probability = weight / boards[pair.reshape(-1)]
    return probability / probability.sum(), bucket, result


def payoffs(game, node, deals):
    """Return [D] chips to player 0 at a terminal."""
    arrays = game.tree.arrays
    return arrays.fixed[node] + arrays.showdown[node] * deals[2]


def paid(game, chips, result):
    """Return [D] chips to a player with a stake, after rake; result [D]: 1 won, 0 shared, -1 lost."""
    taken = 0 if game.rake is None else min(game.rake.share * 2 * chips, game.rake.cap)
    return np.select([result > 0, result == 0], [chips - taken, -taken / 2], -chips)


def value(game, strategy, node, deals, responder=None, reach=None, seen=lambda deals, block: deals[1][:, block]):
    """Return [D] chips to player 0 below `node` by deal.

    `responder` plays a best response for each infoset, found in `seen`.
    """
    arrays = game.tree.arrays
    probability, bucket, _ = deals
    reach = probability.copy() if reach is None else reach
    if arrays.kind[node] == TERMINAL:
        return payoffs(game, node, deals)
    assert arrays.kind[node] == DECISION
    block, slot, player = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.player[node])
    result = np.zeros(len(probability))
    if player != responder:
        for a, child in enumerate(game.tree.children(node)):
            share = strategy.probability[block][bucket[:, block], slot + a]
            result += share * value(game, strategy, child, deals, responder, reach * share, seen)
        return result
    values = [value(game, strategy, child, deals, responder, reach, seen) for child in game.tree.children(node)]
    knows = seen(deals, block)
    sign = 1 if responder == 0 else -1
    for infoset in np.unique(knows):
        here = knows == infoset
        best = max(values, key=lambda v: sign * (reach[here] * v[here]).sum())
        result[here] = best[here]
    return result


def exploitability(game, strategy, seen=None):
    """Return the mean over the players of a best response's gain, in chips, over all deals."""
    deals = all_deals(game)
    extra = {} if seen is None else {"seen": seen}
    best = [sign * deals[0] @ value(game, strategy, 0, deals, p, **extra) for p, sign in ((0, 1), (1, -1))]
    return sum(best) / 2


def held(game, node, keys, sigma):
    """Return [D, A] a decision's strategy with its locks applied.

    keys  [D] hands or buckets, by which the locks are given
    """
    locks = game.tree.locks
    if locks is None or node not in locks.shares:
        return sigma
    given = locks.shares[node].T[keys]
    learnt = np.where(given < 0, sigma, 0)
    total = learnt.sum(axis=1, keepdims=True)
    even = (given < 0) / np.maximum((given < 0).sum(axis=1, keepdims=True), 1)
    rest = 1 - np.where(given < 0, 0, given).sum(axis=1, keepdims=True)
    return np.where(given < 0, rest * np.where(total > 0, learnt / np.maximum(total, 1e-300), even), given)


# --- full-width CFR ---


def normal_hedge(regrets):
    """Return [.., A] NormalHedge's strategy of each row with a positive regret; bisection finds the scale."""
    positive = np.maximum(regrets, 0)
    positive = positive / np.maximum(positive.max(axis=1, keepdims=True), 1e-300)
    low, high = np.full((len(regrets), 1), 1e-2), np.full((len(regrets), 1), 1e2)
    for _ in range(100):
        middle = (low * high) ** 0.5
        above = np.exp(positive**2 / (2 * middle)).mean(axis=1, keepdims=True) > np.e
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    share = positive * np.exp(positive**2 / (2 * low))
    return share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)


def regret_matching(regrets):
    """Return [.., A] regret matching's strategy of each row with a positive regret."""
    positive = np.maximum(regrets, 0)
    return positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)


def powers(variant, t):
    """Return α, β and γ of iteration t, constant or linear from `first` at 0 to `last` at the horizon."""
    all_of_it = variant.horizon or 1
    left = max(all_of_it - t, 0)
    return [
        (left * power.first + (all_of_it - left) * power.last) / all_of_it if hasattr(power, "first") else power
        for power in (variant.alpha, variant.beta, variant.averaging_power)
    ]


def discount(power, t):
    """Return t^power / (t^power + 1) at iteration t."""
    return float(power > 0) if np.isinf(power) else t**power / (t**power + 1)


def discounted(regrets, variant, t):
    """Return regrets after iteration t's discount: one factor for positive, one for negative regrets."""
    alpha, beta, _ = powers(variant, t)
    return np.where(regrets > 0, regrets * discount(alpha, t), regrets * discount(beta, t))


class Cfr:
    """Full-width CFR over all deals, from the definitions; of a `Variant` only the parts are read.

    regret, predicted, sums: by block, [buckets, slots].  weigh = False plants an error: regrets without the own hand's
    deal weight.
    """

    def __init__(self, game, variant, weigh=True):
        self.game, self.variant, self.weigh, self.t = game, variant, weigh, 0
        self.weight, self.hands, self.boards, self.bucket, self.result = dealt_hands(game)
        shapes = [(int(b), int(s)) for b, s in zip(game.buckets, game.tree.row_slots, strict=True)]
        self.regret, self.predicted, self.sums = ([np.zeros(shape) for shape in shapes] for _ in range(3))
        # Each hand on each board enters the average once, not once for each hand of the opponent.
        self.once = [
            np.unique(self.hands[:, block % 2] * 10**6 + self.boards[:, block // 2], return_index=True)[1]
            for block in range(len(shapes))
        ]

    def strategy(self):
        """By block, [buckets, slots]: the strategy of the next iteration."""
        arrays, basis = self.game.tree.arrays, self.predicted if self.variant.optimistic else self.regret
        choose = normal_hedge if self.variant.regret_minimiser == "normal-hedge" else regret_matching
        found = [np.zeros_like(table) for table in basis]
        for node in self.game.tree.decisions:
            row = slice(int(arrays.slot[node]), int(arrays.slot[node] + arrays.count[node]))
            regrets = basis[arrays.block[node]][:, row]
            some = regrets.max(axis=1, keepdims=True) > 0
            made = np.where(some, choose(regrets), 1 / arrays.count[node])
            found[arrays.block[node]][:, row] = held(self.game, int(node), np.arange(len(made)), made)
        return found

    def average(self):
        """By block, [buckets, slots]: the average strategy."""
        sums = {table_name("strategy_sum", block): table for block, table in enumerate(self.sums)}
        return average_strategy(self.game, TableSet(sums)).probability

    def iterate(self):
        self.t += 1
        frozen = self.strategy()
        for player in range(2):
            sigma = self.strategy() if self.variant.updates == "alternating" else frozen
            increments = [np.zeros_like(table) for table in self.regret]
            for block in range(player, len(self.sums), 2):
                self.sums[block] *= ((self.t - 1) / self.t) ** powers(self.variant, self.t)[2]
            ones = np.ones(len(self.weight))
            self._visit(0, player, sigma, ones, ones, increments)
            for block in range(player, len(self.regret), 2):
                old, gained = self.regret[block], increments[block]
                self.regret[block] = discounted(old + gained, self.variant, self.t)
                predictive = self.variant.regret_minimiser == "predictive"
                self.predicted[block] = self.regret[block] + gained if predictive else old + 2 * gained

    def _visit(self, node, player, sigma, own, other, increments):
        """Return [D] chips to `player` below a node; own, other: reach of both players by deal."""
        arrays, tree, sign = self.game.tree.arrays, self.game.tree, 1 - 2 * player
        if arrays.kind[node] == TERMINAL:
            fixed = arrays.fixed[node]
            result = sign * (self.result if fixed == 0 else np.full(len(own), np.sign(fixed)))
            return paid(self.game, max(abs(fixed), arrays.showdown[node]), result)
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        bucket, total = self.bucket[:, block], np.zeros(len(own))
        children = list(tree.children(node))
        shares = [sigma[block][bucket, slot + a] for a in range(len(children))]
        if arrays.player[node] != player:
            for share, child in zip(shares, children, strict=True):
                total += share * self._visit(child, player, sigma, own, other * share, increments)
            return total
        values = [
            self._visit(c, player, sigma, own * s, other, increments) for s, c in zip(shares, children, strict=True)
        ]
        total = sum(share * value for share, value in zip(shares, values, strict=True))
        once = self.once[block]
        for a, value in enumerate(values):
            weight = self.weight if self.weigh else self.weight / self.game.cards.reach[player][self.hands[:, player]]
            gained = np.where(np.abs(value - total) > 1e-11 * np.abs(total), value - total, 0)  # else a tie
            if (locks := self.game.tree.locks) is not None and node in locks.shares:
                gained = np.where(locks.shares[node][a][bucket] >= 0, 0, gained)
            np.add.at(increments[block], (bucket, slot + a), weight * other * gained)
            mine = self.game.cards.reach[player][self.hands[once, player]] * own[once] * shares[a][once]
            if locks is not None and node in locks.shares:
                mine = np.where(
                    (locks.shares[node][:, bucket[once]] >= 0).any(axis=0),
                    np.maximum(mine, 1e-30 * shares[a][once]),
                    mine,
                )
            np.add.at(self.sums[block], (bucket[once], slot + a), mine)
        return total


# Trees ---------------------------------------------------------------------------------------------------------------


def check_order(tree: CompiledTree) -> None:
    """Raise `ValueError` unless siblings are contiguous and every child comes after its parent."""
    arrays = tree.arrays
    for node in range(len(arrays.kind)):
        for child in tree.children(node):
            if child <= node or tree.parent[child] != node:
                raise ValueError(f"tree node {child} is out of order below node {node}")


def equity_spread(equities, labels, weights):
    """Return the mean over items of the standard deviation of equities inside their buckets."""
    spread = 0.0
    for bucket in np.unique(labels):
        inside, given = equities[labels == bucket], weights[labels == bucket]
        spread += given.sum() * np.sqrt(np.average((inside - np.average(inside, weights=given)) ** 2, weights=given))
    return spread / weights.sum()


def listed_deals(cards):
    """Return every possible deal of listed cards, as `ListedCards.deal` returns it, with its probability."""
    found, masks, last = [], cards.hand_masks(), cards.streets - 1
    for first in np.flatnonzero(cards.reach[0]).tolist():
        for second in np.flatnonzero((cards.reach[1] > 0) & ((masks & masks[first]) == 0)).tolist():
            free = np.flatnonzero((cards.board_masks[-1] & (masks[first] | masks[second])) == 0).tolist()
            weight = float(cards.reach[0, first] * cards.reach[1, second]) / len(free)
            found.extend((Deal((first, second), cards.path(last, board)), weight) for board in free)
    total = sum(weight for _, weight in found)
    return [(deal, weight / total) for deal, weight in found]


def potential_points(next_buckets, positions, values=8):
    """Return [N, S·Q] points of hands with next-street buckets [N, M].

    A line's sorted positions [K, S] of the buckets are summed in up to `values` groups.
    """
    cards = next_buckets.shape[1]
    starts = np.arange(min(values, cards)) * cards // min(values, cards)
    scaled = (np.asarray(positions, np.float64) / cards).astype(np.float32)
    lines = [np.add.reduceat(np.sort(line[next_buckets], axis=1), starts, axis=1) for line in scaled.T]
    return np.concatenate(lines, axis=1)
