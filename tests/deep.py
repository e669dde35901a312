"""Deep CFR for tests: recorded iterations, and naive implementations to compare with."""

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from mccfr.cards.deals import new_deals
from mccfr.common.rng import ACTIONS, new_stream, uniform
from mccfr.config.game_tables import FlopHoldemGame
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.holdem import flop_holdem
from mccfr.solvers.deep.sampled_cards_cfr import SampledCardsCfr, card_network_specs
from mccfr.solvers.deep.single_deep_cfr import SingleDeepCfr
from mccfr.solvers.deep.training_state import listed_specs
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL

QUICK = {"traversals": 30, "memory": 4000, "averages": ("sd", "network"), "horizon": 50}


DEALT_GAMES = {
    "flop hold'em": FlopHoldemGame(max_raises=2),
    "5-flop hold'em": FlopHoldemGame(bet="pot", limp=False, max_raises=[1, 2], board_cards=5),
}
DEALT_NETWORKS = {"plain": {}, "branches": {"network": "branches", "card_units": 8}}
_DEALT = {
    **{"traversals": 40, "memory": 150, "averages": ("sd", "network"), "horizon": 6},
    **{"steps": 8, "batch": 64, "units": 8, "layers": 2, "learning_rate": 0.01, "strategy_steps": 8},
}


@cache
def trained(game_name, network="plain", iterations=3):
    """Train deep CFR on new tables, with cards dealt from the whole deck; return its iterations object."""
    game = flop_holdem(DEALT_GAMES[game_name], None, Path())
    config = DeepCfrConfig(**_DEALT, **DEALT_NETWORKS[network])
    tables = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in card_network_specs(game, config)}
    found = SampledCardsCfr(game, config, tables)
    found.iterate(iterations)
    return found


def new_tables(game, config, dtype="float64"):
    """Return zeroed tables by name."""
    return {spec.name: np.zeros(spec.shape, spec.dtype) for spec in listed_specs(game, config, dtype)}


def options(**changed):
    """Return a `[solver]` table with small numbers."""
    return DeepCfrConfig(**{**QUICK, **changed})


@dataclass
class Met:
    """A strategy recorded in the opponent's traversals, with its player and iteration."""

    player: int
    iteration: int
    sigma: np.ndarray


@dataclass
class Recorded:
    """Iterations `cfr`, and `met`: the opponent's strategies in their traversals, in order."""

    cfr: SingleDeepCfr
    met: list[Met] = field(default_factory=list)


def record(game, config, iterations, kind=SingleDeepCfr, dtype="float64"):
    """Run iterations and record the opponent's strategy in each traversal."""
    found = Recorded(kind(game, config, new_tables(game, config, dtype)))
    traverse = found.cfr._traverse

    def noting(player, t):
        found.met.append(Met(1 - player, t, found.cfr.sigma.copy()))
        traverse(player, t)

    found.cfr._traverse = noting
    found.cfr.iterate(iterations)
    return found


def infoset_of(infosets, tree, node, buckets):
    """Return the number of the infoset at a node; `buckets` by block."""
    block = int(tree.arrays.block[node])
    places = infosets.numbering
    return int(places.base[block] + buckets[block] * places.rows[block] + tree.arrays.row[node])


def all_buckets(game):
    """Return buckets by block of every hand on every full board; both players hold the same hand."""
    cards = game.cards
    if not cards.dealt:
        return [[0] * (2 * game.tree.streets)]
    found = set()
    for board in range(len(cards.board_cards[-1])):
        path = [board]
        for parents in cards.board_parent[:0:-1]:
            path.append(int(parents[path[-1]]))
        for hand in range(len(cards.hand_names)):
            numbers = [int(cards.bucket[s][p, b, hand]) for s, b in enumerate(path[::-1]) for p in range(2)]
            if min(numbers) >= 0:
                found.add(tuple(numbers))
    return sorted(found)


def own_sequences(game, infosets, player):
    """Return {infoset: [(infoset, action) of the player before it]} from every path with every hand."""
    tree, found = game.tree, {}
    for buckets in all_buckets(game):
        for node in tree.decisions.tolist():
            if tree.arrays.player[node] != player:
                continue
            path = tree.path(node)
            steps = [
                (infoset_of(infosets, tree, over, buckets), below - int(tree.arrays.first[over]))
                for over, below in pairwise(path)
                if tree.arrays.kind[over] == DECISION and tree.arrays.player[over] == player
            ]
            found[infoset_of(infosets, tree, node, buckets)] = steps
    return found


def reach_of(sequence, sigma):
    """Return a player's own probability of a sequence."""
    share = 1.0
    for infoset, action in sequence:
        share *= sigma[infoset, action]
    return share


def twin(game, infosets, config, iterations):
    """Run batched linear MCCFR with external sampling, with sums by infoset in place of samples.

    It uses the run's deals and random numbers, in a traversal's order of nodes. Return the strategies as `Met`, and
    the strategy sums [I, A].
    """
    tree, arrays = game.tree, game.tree.arrays
    regret, sums = np.zeros((2, len(infosets), infosets.width))
    sigma, met = infosets.uniform(), []
    dealer, deals = game.cards.dealer(config.seed, 0), new_deals(config.traversals, game.tree.streets)
    for t in range(1, iterations + 1):
        for player in range(2):
            met.append(Met(1 - player, t, sigma.copy()))
            first = ((t - 1) * 2 + player) * config.traversals
            dealer.draw(first, config.traversals, deals)
            for k in range(config.traversals):
                state, chosen, queue = new_stream(config.seed, player, ACTIONS, first + k), {}, [0]
                buckets = deals.bucket[k]
                while queue:
                    node = queue.pop(0)
                    children = list(tree.children(node))
                    if arrays.kind[node] == CHANCE:
                        children = [pick([arrays.probability[c] for c in children], children, uniform(state))]
                    elif arrays.kind[node] == DECISION and arrays.player[node] != player:
                        infoset = infoset_of(infosets, tree, node, buckets)
                        sums[infoset] += t * sigma[infoset]
                        children = [pick(sigma[infoset], children, uniform(state))]
                    chosen[node] = children
                    queue += children
                value(tree, infosets, 0, player, buckets, float(deals.result[k]), chosen, sigma, regret, t)
            for infoset in range(infosets.of(player).start, infosets.of(player).stop):
                sigma[infoset] = matched(regret[infoset], int(infosets.actions[infoset]))
    return met, sums


def pick(shares, children, u):
    """Return the child that the uniform number `u` draws by the shares."""
    for share, child in zip(shares, children, strict=False):
        if share > 0:
            last = child
            if u < share:
                return child
            u -= share
    return last


def value(tree, infosets, node, player, buckets, result, chosen, sigma, regret, t):
    arrays = tree.arrays
    if arrays.kind[node] == TERMINAL:
        return (1 - 2 * player) * (arrays.fixed[node] + arrays.showdown[node] * result)
    below = [value(tree, infosets, c, player, buckets, result, chosen, sigma, regret, t) for c in chosen[node]]
    if arrays.kind[node] == CHANCE or arrays.player[node] != player:
        return below[0]
    infoset = infoset_of(infosets, tree, node, buckets)
    mean = sum(share * worth for share, worth in zip(sigma[infoset], below, strict=False))
    for action, worth in enumerate(below):
        regret[infoset, action] += t * (worth - mean)
    return mean


def matched(regrets, count):
    """Return regret matching's strategy; without a positive regret, the actions of the largest one."""
    positive, made = np.maximum(regrets[:count], 0), np.zeros(len(regrets))
    if positive.sum() > 0:
        made[:count] = positive / positive.sum()
    else:
        best = regrets[:count] == regrets[:count].max()
        made[:count] = best / best.sum()
    return made
