"""Outcome sampling (Lanctot et al. 2009), with values of actions that were not taken by a baseline.

*Paths.*  The traverser explores with probability epsilon, the opponent plays his strategy.  The traverser comes to an
infoset as often as his own exploration leads there, so every sample weighs one over that.

*Values* (Schmid et al. 2019, equations 6 to 9; Steinberger, Lerer & Brown 2020, DREAM).  An action that was not taken
is worth its baseline b, the one that was taken b + (value - b) / (probability of taking it); a decision is worth the
mean of that under the strategy.  Advantages and strategies stay unbiased whatever b is, as long as b does not depend on
what is drawn: so a path is drawn first, b is asked for along it, and values follow.  Without baselines b is 0.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.rng import ACTIONS, seed_stream, uniform
from mccfr.solvers.deep.traversals import NUMBER, SEED, START, STOP, TRAVERSER, choose
from mccfr.trees.compiled import CHANCE, TERMINAL


class Paths(NamedTuple):
    """Decisions on sampled paths, one path after the other.  K paths, room for L decisions.

    node      [L] int64    decision
    infoset   [L] int64    of who acts there, in the list of both players
    bucket    [L] int64    of the hand that the other one holds there
    action    [L] int64    that was taken
    chance    [L] float64  probability of taking it
    explored  [L] float64  the traverser's chance of having explored up to here
    stop      [K] int64    one past a path's last decision
    worth     [K] float64  chips for player 0 at its end
    """

    node: npt.NDArray[np.int64]
    infoset: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64]
    explored: npt.NDArray[np.float64]
    stop: npt.NDArray[np.int64]
    worth: npt.NDArray[np.float64]


def new_paths(count: int, decisions: int) -> Paths:
    """Room for `count` paths of so many decisions each."""
    whole = [np.zeros(count * decisions, np.int64) for _ in range(4)]
    real = [np.zeros(count * decisions) for _ in range(2)]
    return Paths(whole[0], whole[1], whole[2], whole[3], real[0], real[1], np.zeros(count, np.int64), np.zeros(count))


@nogil_njit
def draw_paths(tree, numbering, sigma, deals, span, epsilon, state, paths):
    """Draw the paths of deals `span`[START] to [STOP] - 1 into `paths`, in place; returns (decisions, nodes touched).

    tree TreeArrays; numbering Numbering; sigma [I·A]; deals Deals; span as in `traversals`; epsilon the traverser's
    share of uniform exploration; state [4] uint64 scratch.
    """
    base, rows, width = numbering.base, numbering.rows, len(sigma) // numbering.first[2]
    made, nodes = 0, 0
    for deal in range(span[START], span[STOP]):
        number = span[NUMBER] + deal - span[START]
        seed_stream(state, np.uint64(span[SEED]), np.uint64(span[TRAVERSER]), np.uint64(ACTIONS), np.uint64(number))
        node, explored = np.int64(0), 1.0
        nodes += tree.touched[0]
        while tree.kind[node] != TERMINAL:
            first, count = np.int64(tree.first[node]), tree.count[node]
            if tree.kind[node] == CHANCE:
                node = first + choose(tree.probability, first, count, uniform(state))
                nodes += tree.touched[node]
                continue
            block = tree.block[node]
            infoset = base[block] + deals.bucket[deal, block] * rows[block] + tree.row[node]
            paths.node[made], paths.infoset[made], paths.explored[made] = node, infoset, explored
            paths.bucket[made] = deals.bucket[deal, block ^ 1]
            if tree.player[node] == span[TRAVERSER]:
                action = np.int64(uniform(state) * count)
                u = uniform(state)
                if uniform(state) >= epsilon:
                    action = np.int64(choose(sigma, infoset * width, count, u))
                paths.chance[made] = epsilon / count + (1.0 - epsilon) * sigma[infoset * width + action]
                explored *= paths.chance[made]
            else:
                action = np.int64(choose(sigma, infoset * width, count, uniform(state)))
                paths.chance[made] = sigma[infoset * width + action]
            paths.action[made] = action
            made += 1
            node = first + action
            nodes += tree.touched[node]
        paths.stop[deal - span[START]] = made
        paths.worth[deal - span[START]] = tree.fixed[node] + tree.showdown[node] * deals.result[deal]
    return made, nodes


@nogil_njit
def value_paths(tree, sigma, traverser, paths, baseline, samples, plays, ahead):
    """Samples of the paths, into `samples` and `plays` from their beginning, in place; returns how many of either.

    sigma     [I·A]
    baseline  [l, A] of the l decisions, for player 0
    samples   Samples of the traverser's regrets; plays of the opponent's strategies; room for l each
    ahead     [l] what the action that was taken leads to, for player 0, in place: what the strategy makes of the
              baselines at the next decision, or the chips at the end (expected SARSA)
    """
    taken, played, first, width, sign = 0, 0, 0, baseline.shape[1], 1.0 - 2.0 * traverser
    for path in range(len(paths.stop)):
        for place in range(first, paths.stop[path]):
            if tree.player[paths.node[place]] == traverser:
                continue
            infoset = paths.infoset[place]
            plays.infoset[played], plays.weight[played] = infoset, 1.0 / paths.explored[place]
            for k in range(tree.count[paths.node[place]]):
                plays.value[played, k] = sigma[infoset * width + k]
            played += 1
        value, below = sign * paths.worth[path], paths.worth[path]
        for place in range(paths.stop[path] - 1, first - 1, -1):
            node, infoset, action = paths.node[place], paths.infoset[place], paths.action[place]
            count, mean = tree.count[node], 0.0
            for k in range(count):
                mean += sigma[infoset * width + k] * baseline[place, k]
            ahead[place] = below
            below = mean
            more = value - sign * baseline[place, action]
            if tree.player[node] != traverser:
                value = sign * mean + more
                continue
            more /= paths.chance[place]
            value = sign * mean + sigma[infoset * width + action] * more
            samples.infoset[taken], samples.weight[taken] = infoset, 1.0 / paths.explored[place]
            for k in range(count):
                samples.value[taken, k] = sign * baseline[place, k] - value
            samples.value[taken, action] += more
            taken += 1
        first = paths.stop[path]
    return taken, played
