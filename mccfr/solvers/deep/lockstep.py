"""External sampling of many deals in lockstep, for Deep CFR if infosets are too many to list.

External sampling (Lanctot et al. 2009) is the traversal of Deep CFR (Brown, Lerer, Gross & Sandholm 2019, algorithm
1).  A network is efficient only on many rows at once.  So traversals go down together, level by level; a level is all
nodes that they reach after the same number of actions.  A player's strategies on a level are one matrix product.  Then
values come up level by level.  Each of the traverser's decisions gives a sample of regrets, each of the opponent's a
sample of its strategy.

The draw of an opponent's action is a function of the traversal's random word (`fill_words`) and of the node.  So the
number of deals that go down together changes only the rounding of matrix products.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.common.rng import ACTIONS, random_at, seed_stream
from mccfr.solvers.deep.network import SplitNetwork
from mccfr.solvers.deep.sampled_cards import CardView, SampledHands, card_values
from mccfr.solvers.deep.training_state import match_regrets
from mccfr.solvers.deep.traversals import choose
from mccfr.trees.compiled import DECISION, TERMINAL, TreeArrays

_UNIT = 1.0 / 9007199254740992.0  # 2^-53


class Level(NamedTuple):
    """The n tree nodes that traversals of K deals reach after the same number of actions.

    deal   [n] int32  index of the deal, 0 to K-1
    node   [n] int32  node of the tree
    first  [n] int32  index, in the next `Level`, of the node's first visited child; the others follow it. Of an
                      opponent's decision only the drawn child is visited
    """

    deal: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]


class LockstepSamples(NamedTuple):
    """The n samples from one player's decisions in traversals of K deals, for at most A actions.

    They are in order of the number of actions before the decision.

    deal   [n] int32       index of the deal, 0 to K-1
    node   [n] int32       tree node of the decision
    value  [n, A] float64  traverser: regrets in chips; opponent: probabilities of its strategy
    """

    deal: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]
    value: npt.NDArray[np.float64]


@nogil_njit
def fill_words(seed, traverser, first, state, words):
    """Fill words [K] uint64 with one random number for each of the traversals first to first+K-1.

    It is a function of seed, traverser and the traversal's number.  All draws of its actions are derived from it.

    seed       seed of the run
    traverser  player 0 or 1
    first      number, in the run, of the first traversal
    state      [4] uint64 scratch
    words      [K] uint64 result
    """
    for k in range(words.shape[0]):
        seed_stream(state, np.uint64(seed), np.uint64(traverser), np.uint64(ACTIONS), np.uint64(first + k))
        words[k] = state[0]


@nogil_njit
def meet(hands, lines, block, level, rows, out):
    """Compute, at m nodes, the first network layer that takes both cards and bets.

    It has U units: max(h + b, 0) of a term h of the cards and a term b of the bets (`SplitNetwork`).

    hands  [B, K, U] float32  term of the cards, by block (2·street + player) and deal
    lines  [N, U] float32     term of the bets, by node of the tree
    block  [N] int8           block of each node
    rows   [m] int64          indices of the m nodes in `level`
    out    [m, U] float32     result
    """
    for i in range(rows.shape[0]):
        node = level.node[rows[i]]
        hand, line = hands[block[node], level.deal[rows[i]]], lines[node]
        for k in range(out.shape[1]):
            out[i, k] = max(hand[k] + line[k], np.float32(0.0))


@nogil_njit
def expand(tree, level, sigma, words, traverser, below):
    """Write the nodes that follow a level to `below`; return their number.

    All children of the traverser's decisions follow, and one drawn child of each of the opponent's.

    tree       TreeArrays
    level      Level of n nodes; its `first` is filled in
    sigma      [n, A] float64 strategies at the level's decisions
    words      [K] uint64 random word of each deal
    traverser  player 0 or 1
    below      Level with space for n·A nodes; its `deal` and `node` are filled in
    """
    tail = 0
    for i in range(level.node.shape[0]):
        node, deal = level.node[i], level.deal[i]
        level.first[i] = tail
        if tree.kind[node] == TERMINAL:
            continue
        first, count = tree.first[node], tree.count[node]
        if tree.player[node] == traverser:
            for k in range(count):
                below.deal[tail], below.node[tail] = deal, first + k
                tail += 1
            continue
        u = np.float64(random_at(words[deal], np.uint64(node)) >> np.uint64(11)) * _UNIT
        below.deal[tail], below.node[tail] = deal, first + choose(sigma[i], 0, count, u)
        tail += 1
    return tail


@nogil_njit
def settle(tree, level, sigma, result, traverser, under, value, gain):
    """Fill the traverser's values of a level's n nodes, and the regrets at the traverser's decisions.

    tree    TreeArrays
    level   Level           the n nodes, with `first` filled in by `expand`
    sigma   [n, A] float64  strategies at the level's decisions
    result  [K] float64     showdown result of each deal for player 0: 1, 0 or -1
    under   [m] float64     traverser's value in chips of each of the m nodes in the level below
    value   [n] float64     receives each node's value to the traverser in chips
    gain    [n, A] float64  receives regrets in chips: value of the action minus that of the node; rows of other nodes
                            are not written
    """
    sign = 1.0 - 2.0 * traverser
    for i in range(level.node.shape[0]):
        node, at = level.node[i], level.first[i]
        if tree.kind[node] == TERMINAL:
            value[i] = sign * (tree.fixed[node] + tree.showdown[node] * result[level.deal[i]])
        elif tree.player[node] != traverser:
            value[i] = under[at]
        else:
            mean = 0.0
            for k in range(tree.count[node]):
                mean += sigma[i, k] * under[at + k]
            for k in range(tree.count[node]):
                gain[i, k] = under[at + k] - mean
            value[i] = mean


class Strategies:
    """Computes strategies at the nodes that traversals reach, from one network of each player.

    The first network layer that takes both cards and bets adds a term of each.  The term of the cards is computed once
    for each deal, that of the bets once for each node.

    Before a player's first fit all parameters are 0; then all outputs are 0, which gives uniform play.

    tree        tree of the game
    card_view   constants of the networks' inputs
    apart       [2] each player's network, split into terms of cards and bets
    parameters  [2] × [P] float32 parameters of each player's network
    """

    def __init__(
        self,
        tree: TreeArrays,
        card_view: CardView,
        apart: Sequence[SplitNetwork],
        parameters: Sequence[npt.NDArray[np.float32]],
    ) -> None:
        self._tree, self._view, self._apart, self._parameters = tree, card_view, apart, parameters
        self._lines = [apart[player].bets(parameters[player], card_view.lines) for player in range(2)]

    def hands(self, hands: SampledHands) -> npt.NDArray[np.float32]:
        """Return [2·S, K, U] float32: the cards' term in the first layer that takes cards and bets.

        The first index is the block, 2·street + player of S streets; the second is the deal.  The layer has U units.

        hands  the K deals
        """
        board_counts, width = self._view.known, self._view.cards
        columns = []
        for street in range(len(board_counts)):
            for player in range(2):
                values = card_values(self._view, hands.visible_cards(player, board_counts[street], width))
                columns.append(self._apart[player].cards(self._parameters[player], values))
        return np.stack(columns)

    def fill(self, hands: npt.NDArray[np.float32], level: Level, sigma: npt.NDArray[np.float64]) -> None:
        """Fill sigma [n, A] with both players' strategies at the decisions of a level of n nodes, in place.

        hands  [B, K, U] float32, result of the method `hands` for the level's K deals
        """
        acting = np.where(self._tree.kind[level.node] == DECISION, self._tree.player[level.node], -1)
        for player in range(2):
            rows = np.flatnonzero(acting == player)
            if not len(rows):
                continue
            joined = np.zeros((len(rows), hands.shape[2]), np.float32)
            meet(hands, self._lines[player], self._tree.block, level, rows, joined)
            output = self._apart[player].rest(self._parameters[player], joined).astype(np.float64)
            probabilities, counts = np.zeros_like(output), self._tree.count[level.node[rows]].astype(np.int64)
            match_regrets(output, counts, 0, probabilities)
            sigma[rows] = probabilities


def traverse(
    tree: TreeArrays, strategies: Strategies, hands: SampledHands, words: npt.NDArray[np.uint64], traverser: int
) -> tuple[LockstepSamples, LockstepSamples, int]:
    """Run one traversal of each of K deals, all in lockstep.

    strategies  both players' strategies, fixed during the traversals
    hands       the K deals
    words       [K] uint64 random word of each deal, from `fill_words`
    traverser   player 0 or 1, all of whose actions are visited

    Returns (samples of the traverser's regrets, samples of the opponent's strategies, number of nodes touched).
    """
    count, width, nodes = len(hands), int(tree.count.max()), 0
    parts, levels, sigmas = strategies.hands(hands), [], []
    level = Level(np.arange(count, dtype=np.int32), *np.zeros((2, count), np.int32))
    while len(level.node):
        sigma = np.zeros((len(level.node), width))
        strategies.fill(parts, level, sigma)
        below = Level(*np.zeros((3, len(level.node) * width), np.int32))
        tail = expand(tree, level, sigma, words, traverser, below)
        levels.append(level)
        sigmas.append(sigma)
        nodes += int(tree.touched[level.node].sum())
        level = Level(*(column[:tail].copy() for column in below))
    value, regret_samples, opponent_samples = np.zeros(0), [], []
    for level, sigma in zip(levels[::-1], sigmas[::-1], strict=True):
        under, value, gain = value, np.zeros(len(level.node)), np.zeros_like(sigma)
        settle(tree, level, sigma, hands.result, traverser, under, value, gain)
        acting = np.where(tree.kind[level.node] == DECISION, tree.player[level.node], -1)
        regret_samples.append(_some(level, acting == traverser, gain))
        opponent_samples.append(_some(level, acting == 1 - traverser, sigma))
    return _joined(regret_samples[::-1]), _joined(opponent_samples[::-1]), nodes


def _some(level: Level, selected: npt.NDArray[np.bool_], value: npt.NDArray[np.float64]) -> LockstepSamples:
    return LockstepSamples(level.deal[selected], level.node[selected], value[selected])


def _joined(pieces: Sequence[LockstepSamples]) -> LockstepSamples:
    return LockstepSamples(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))
