"""External-sampling traversals against fixed strategies, which give Deep CFR its training samples.

Source: Lanctot et al. 2009; Brown, Lerer, Gross & Sandholm 2019, algorithm 1.  All actions of the traverser are walked;
one action of the opponent and one outcome of chance is sampled.  Each of the traverser's infosets gives a sample of the
regrets of its actions, each of the opponent's a sample of its strategy.

Each traversal has its own random stream, so results do not depend on the thread or the order.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit, part_njit
from mccfr.common.rng import ACTIONS, seed_stream, uniform
from mccfr.trees.compiled import CHANCE, TERMINAL

TRAVERSER, START, STOP, SEED, NUMBER = range(5)
"""Cells of a kernel's `span` [5] int64: player, first deal, end of the deals, seed, number of the first traversal."""


class Samples(NamedTuple):
    """Buffer for C samples of one player's regrets or strategies, with at most A actions.

    infoset  [C] int64       number of the infoset in the list of both players
    value    [C, A] float64  regrets in chips, or probabilities; cells beyond the infoset's actions are not written
    """

    infoset: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class Work(NamedTuple):
    """Scratch of traversals in a tree of N nodes.

    order  [N] int64    nodes in the order visited
    child  [N] int64    sampled child of each visited chance node and decision of the opponent
    value  [N] float64  value of each visited node to the traverser, in chips
    state  [4] uint64   state of the random generator
    """

    order: npt.NDArray[np.int64]
    child: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    state: npt.NDArray[np.uint64]


def new_samples(count: int, width: int) -> Samples:
    """Return an empty buffer for `count` samples with at most `width` actions."""
    return Samples(np.zeros(count, np.int64), np.zeros((count, width)))


def new_work(nodes: int) -> Work:
    """Return scratch of traversals in a tree of `nodes` nodes."""
    order, child = np.zeros((2, nodes), np.int64)
    return Work(order, child, np.zeros(nodes), np.zeros(4, np.uint64))


@part_njit
def choose(probability, first, count, u):
    """Return the action, 0 to count-1, that u in [0, 1) draws from probability[first : first+count].

    An action of probability 0 is never drawn.
    """
    last = 0
    for k in range(count):
        share = probability[first + k]
        if share > 0.0:
            last = k
            if u < share:
                return k
            u -= share
    return last


@nogil_njit
def external(tree, numbering, sigma, deals, span, samples, plays, work):
    """Traverse deals while both buffers have room; return numbers of deals, samples, plays, nodes.

    sigma    [I·A] float64 strategies at all infosets, which are numbered by `numbering` (Numbering)
    span     [5] int64 traverser, first of `deals` (Deals), end of them, seed, number of the first traversal
    samples  Samples for the traverser's regrets; `plays` (Samples) gets the opponent's strategies; `work` is scratch
    """
    order, child, value, state = work.order, work.child, work.value, work.state
    base, rows, width = numbering.base, numbering.rows, samples.value.shape[1]
    traverser, sign = span[TRAVERSER], 1.0 - 2.0 * span[TRAVERSER]
    regret_samples, opponent_samples, nodes, deal = 0, 0, 0, span[START]
    room = min(len(samples.infoset), len(plays.infoset)) - len(order)
    while deal < span[STOP] and max(regret_samples, opponent_samples) <= room:
        number = span[NUMBER] + deal - span[START]
        seed_stream(state, np.uint64(span[SEED]), np.uint64(traverser), np.uint64(ACTIONS), np.uint64(number))
        order[0], tail, position = 0, 1, 0
        while position < tail:
            node = order[position]
            position += 1
            nodes += tree.touched[node]
            kind, first, count = tree.kind[node], tree.first[node], tree.count[node]
            if kind == TERMINAL:
                value[node] = sign * (tree.fixed[node] + tree.showdown[node] * deals.result[deal])
            elif kind == CHANCE:
                child[node] = first + choose(tree.probability, first, count, uniform(state))
                order[tail] = child[node]
                tail += 1
            elif tree.player[node] == traverser:
                for k in range(count):
                    order[tail] = first + k
                    tail += 1
            else:
                block = tree.block[node]
                infoset = base[block] + deals.bucket[deal, block] * rows[block] + tree.row[node]
                plays.infoset[opponent_samples] = infoset
                for k in range(count):
                    plays.value[opponent_samples, k] = sigma[infoset * width + k]
                opponent_samples += 1
                child[node] = first + choose(sigma, infoset * width, count, uniform(state))
                order[tail] = child[node]
                tail += 1
        for position in range(tail - 1, -1, -1):
            node = order[position]
            if tree.kind[node] == TERMINAL:
                continue
            if tree.kind[node] == CHANCE or tree.player[node] != traverser:
                value[node] = value[child[node]]
                continue
            block, first, count = tree.block[node], tree.first[node], tree.count[node]
            infoset = base[block] + deals.bucket[deal, block] * rows[block] + tree.row[node]
            mean = 0.0
            for k in range(count):
                mean += sigma[infoset * width + k] * value[first + k]
            value[node] = mean
            samples.infoset[regret_samples] = infoset
            for k in range(count):
                samples.value[regret_samples, k] = value[first + k] - mean
            regret_samples += 1
        deal += 1
    return deal - span[START], regret_samples, opponent_samples, nodes
