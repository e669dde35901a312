"""Slow, obvious twins of fast code: loops over every deal and history, no tricks.  Tests compare the two."""

import numpy as np

from mccfr.tree import DECISION, TERMINAL


def all_deals(game):
    """Every deal of a small card game: probability [D], bucket [D, B], result [D]."""
    cards, streets = game.cards, game.tree.streets
    chains = [[b] for b in range(len(cards.board_cards[0]))]
    for street in range(1, streets):
        chains = [[*c, b] for c in chains for b in np.flatnonzero(cards.board_parent[street] == c[-1])]
    used = [{int(x) for x in hand if x >= 0} for hand in cards.hand_cards]
    rows = []
    for i in np.flatnonzero(cards.reach[0]):
        for j in np.flatnonzero(cards.reach[1]):
            if used[i] & used[j]:
                continue
            dead = used[i] | used[j]
            fitting = [c for c in chains if not dead & set(cards.board_cards[-1][c[-1]].tolist())]
            for chain in fitting:
                weight = cards.reach[0, i] * cards.reach[1, j] / len(fitting)
                bucket = [cards.bucket[s][p, chain[s], h] for s in range(streets) for p, h in ((0, i), (1, j))]
                order = cards.strength[chain[-1], [i, j]]
                rows.append((weight, bucket, np.sign(int(order[0]) - int(order[1]))))
    probability = np.array([row[0] for row in rows])
    return probability / probability.sum(), np.array([row[1] for row in rows]), np.array([row[2] for row in rows])


def payoffs(game, node, deals):
    """[D] chips to player 0 at a terminal."""
    arrays = game.tree.arrays
    return arrays.fixed[node] + arrays.showdown[node] * deals[2]


def value(game, strategy, node, deals, responder=None, reach=None, seen=lambda deals, block: deals[1][:, block]):
    """[D] chips to player 0 below `node`, deal by deal; `responder` plays a best response (per infoset, `seen`)."""
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
    """Mean of what a best response gains for each player, in chips, over all deals of a small card game."""
    deals = all_deals(game)
    extra = {} if seen is None else {"seen": seen}
    best = [sign * deals[0] @ value(game, strategy, 0, deals, p, **extra) for p, sign in ((0, 1), (1, -1))]
    return sum(best) / 2
