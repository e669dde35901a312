"""Naive values of a strategy: hand by hand, board by board, from the definition."""

import numpy as np
from naive import paid

from mccfr.cards.deals import card_masks
from mccfr.trees.compiled import DECISION


def best_of(locks, node, keys, values):
    """Return the value of a best response from the values of its actions; keys are hand and bucket."""
    if locks is None or node not in locks.shares:
        return max(values)
    given = locks.shares[node][:, keys[not locks.by_hand]]
    kept = [share * worth for share, worth in zip(given, values, strict=True) if share >= 0]
    free = [worth for share, worth in zip(given, values, strict=True) if share < 0]
    return sum(kept) + (1 - given[given >= 0].sum()) * max(free, default=0)


def naive_value(game, strategy, player, respond_from, act=None, *, whole=False):
    """Return the value to `player` in chips, who plays a best response from a street on.

    respond_from  the street; None: the player follows the strategy throughout
    act           on earlier streets: (node, hand) to the number of an action, instead of the strategy
    whole         True: sum over deals, weighted; False: mean of a deal
    """
    cards, arrays = game.cards, game.tree.arrays
    masks = cards.hand_masks()
    boards = [card_masks(street) for street in cards.board_cards]
    sign = 1 - 2 * player

    def below(street, board):
        if street == 0:
            return list(range(len(boards[0])))
        return [b for b in range(len(boards[street])) if cards.board_parent[street][b] == board]

    def deal(node, street, board, i, weight):
        """Return the mean over the boards of `street` that share no card with either hand."""
        mine = [b for b in below(street, board) if not boards[street][b] & masks[i]]
        fits = np.array([(boards[street][b] & masks) == 0 for b in mine])
        ways = np.maximum(fits.sum(axis=0), 1)
        return sum(value(node, street, b, i, weight * fit / ways) for b, fit in zip(mine, fits, strict=True))

    def value(node, street, board, i, weight):
        if not weight.any():
            return 0.0
        if arrays.kind[node] != DECISION:
            if arrays.showdown[node] == 0:
                fixed = arrays.fixed[node]
                return float(paid(game, abs(fixed), np.sign(sign * fixed))) * weight.sum()
            if street + 1 < game.tree.streets:
                return deal(node, street + 1, board, i, weight)
            strength = cards.strength[board]
            return float(weight @ paid(game, arrays.showdown[node], np.sign(strength[i] - strength)))
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        if block // 2 > street:
            return deal(node, street + 1, board, i, weight)
        table, bucket = strategy.probability[block], cards.bucket[street][block % 2, board]
        responds = respond_from is not None and street >= respond_from
        values = []
        for action, child in enumerate(game.tree.children(node)):
            if block % 2 == player:
                sigma = 1.0
                if not responds:
                    sigma = table[bucket[i], slot + action] if act is None else float(act(node, i) == action)
                values.append(sigma * value(child, street, board, i, weight))
            else:
                sigma = np.where(weight > 0, table[bucket, slot + action], 0)
                values.append(value(child, street, board, i, weight * sigma))
        if block % 2 != player or not responds:
            return sum(values)
        return best_of(game.tree.locks, node, (i, bucket[i]), values)

    total, joint = 0.0, 0.0
    for i in np.flatnonzero(cards.reach[player]):
        weight = cards.reach[1 - player] * ((masks & masks[i]) == 0)
        joint += cards.reach[player][i] * weight.sum()
        total += cards.reach[player][i] * deal(0, 0, 0, i, weight)
    return total if whole else total / joint
