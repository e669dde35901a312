"""Traversals of sampled deals against strategies that stay as they are: what they leave is samples.

*External sampling* (Lanctot et al. 2009; Brown, Lerer, Gross & Sandholm 2019, algorithm 1): all actions of the
traverser are walked, one of the opponent and of chance is sampled.  At each of the traverser's infosets the sample is
the regret of every action, at the opponent's the strategy that he plays.

Each traversal has a stream of random numbers of its own, so it does not matter who makes it, nor after which others.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit, part_njit
from mccfr.rng import ACTIONS, seed_stream, uniform
from mccfr.trees.compiled import CHANCE, TERMINAL

TRAVERSER, START, STOP, SEED, NUMBER = range(5)
"""Cells of a kernel's `span` [5] int64: the player, first deal and one past the last, seed, number of the first
traversal of all."""


class Samples(NamedTuple):
    """Room for samples.  C of them, A actions.

    infoset  [C] int64       in the list of both players
    value    [C, A] float64  regrets in chips, or probabilities; what is beyond the actions stays as it is
    """

    infoset: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class Work(NamedTuple):
    """Scratch of a traversal.  N nodes.

    order  [N] int64    nodes in the order visited
    child  [N] int64    of a node where one is sampled: which
    value  [N] float64  chips for the traverser
    state  [4] uint64   random numbers
    """

    order: npt.NDArray[np.int64]
    child: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    state: npt.NDArray[np.uint64]


def new_samples(count: int, width: int) -> Samples:
    """Room for `count` samples."""
    return Samples(np.zeros(count, np.int64), np.zeros((count, width)))


def new_work(nodes: int) -> Work:
    """Scratch for a tree."""
    order, child = np.zeros((2, nodes), np.int64)
    return Work(order, child, np.zeros(nodes), np.zeros(4, np.uint64))


@part_njit
def choose(probability, first, count, u):
    """Which of `count` probabilities from `first` on the number u in [0, 1) falls to; never one of 0."""
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
    """External-sampling traversals of deals until `span` is done or `samples` or `plays` may be too short for another.

    tree TreeArrays; numbering Numbering; sigma [I·A]; deals Deals; samples and plays Samples, filled from their
    beginning, in place; work Work.  Returns (traversals made, samples, plays, nodes touched).
    """
    order, child, value, state = work.order, work.child, work.value, work.state
    base, rows, width = numbering.base, numbering.rows, samples.value.shape[1]
    traverser, sign = span[TRAVERSER], 1.0 - 2.0 * span[TRAVERSER]
    taken, played, nodes, deal = 0, 0, 0, span[START]
    room = min(len(samples.infoset), len(plays.infoset)) - len(order)
    while deal < span[STOP] and max(taken, played) <= room:
        number = span[NUMBER] + deal - span[START]
        seed_stream(state, np.uint64(span[SEED]), np.uint64(traverser), np.uint64(ACTIONS), np.uint64(number))
        order[0] = 0
        tail, place = 1, 0
        while place < tail:
            node = order[place]
            place += 1
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
                plays.infoset[played] = infoset
                for k in range(count):
                    plays.value[played, k] = sigma[infoset * width + k]
                played += 1
                child[node] = first + choose(sigma, infoset * width, count, uniform(state))
                order[tail] = child[node]
                tail += 1
        for place in range(tail - 1, -1, -1):
            node = order[place]
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
            samples.infoset[taken] = infoset
            for k in range(count):
                samples.value[taken, k] = value[first + k] - mean
            taken += 1
        deal += 1
    return deal - span[START], taken, played, nodes
