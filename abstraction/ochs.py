"""Opponent cluster hand strength (OCHS): a river hand's equities against clusters of opponent hands.

Source: Johanson, Burch, Valenzano & Bowling, "Evaluating State-Space Abstractions in Extensive-Form Games" (AAMAS
2013).  The 169 preflop classes are clustered into 8 by the earth mover's distance of their equity histograms.  A river
hand is described by its equities against a uniformly random hand of each cluster, counted exactly.

Our change: classes are clustered by k-medians of cumulative distributions, weighted by their number of combinations.
"""

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import canonical_boards, preflop_classes
from abstraction.cards import COMBO_COUNT
from abstraction.hand_evaluator import evaluator_tables
from abstraction.histograms import preflop_histograms
from abstraction.kernels.jit import nogil_allocating_njit
from abstraction.strength import LIVE_CARDS, fill_pair_order, pair_order

DEFAULT_CLUSTERS = 8
BLOCKED_FEATURE = -1.0
"""Feature value of slots that share a card with the board."""

_LANES = LIVE_CARDS + 1
_RESTARTS = 200


# --- clusters of opponent hands ---


def _weighted_median(points: NDArray[np.float64], weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return [d] the weighted lower median of each column of points [n, d], with weights [n].

    It is the centre with the least total L1 distance.
    """
    rows = np.argsort(points, axis=0, kind="stable")
    passed = np.cumsum(weights[rows], axis=0)
    middle = (2 * passed >= passed[-1]).argmax(axis=0)
    columns = np.arange(points.shape[1])
    return points[rows[middle, columns], columns]


def _distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the L1 distances [n, k] of points [n, d] and centres [k, d]."""
    return np.abs(points[:, None] - centres[None]).sum(axis=2)


def _k_medians(
    points: NDArray[np.float64], weights: NDArray[np.int64], count: int, random_state: np.random.Generator
) -> tuple[float, NDArray[np.intp]]:
    """Return the weighted sum of distances and the labels [n] of one run of k-medians.

    points        [n, d]
    weights       [n]
    count         number of clusters
    random_state  generator of the random draws

    The first centre is drawn in proportion to weight, each further one in proportion to weight times the distance to
    the nearest centre.
    """
    centres = points[[random_state.choice(len(points), p=weights / weights.sum())]]
    while len(centres) < count:
        share = weights * _distances(points, centres).min(axis=1)
        centres = np.vstack([centres, points[random_state.choice(len(points), p=share / share.sum())]])
    labels = np.full(len(points), -1, np.intp)
    while True:
        distances = _distances(points, centres)
        nearest = distances.argmin(axis=1)
        least = distances.min(axis=1)
        for empty in np.flatnonzero(np.bincount(nearest, minlength=count) == 0):
            farthest = int((least * (np.bincount(nearest, minlength=count)[nearest] > 1)).argmax())
            nearest[farthest], least[farthest] = empty, 0.0
        if np.array_equal(nearest, labels):
            return float(weights @ least), labels
        labels = nearest
        centres = np.array([_weighted_median(points[labels == k], weights[labels == k]) for k in range(count)])


def opponent_clusters(
    strengths: NDArray[np.int64], clusters: int = DEFAULT_CLUSTERS, seed: int = 0
) -> NDArray[np.int16]:
    """Return the cluster of each of the 169 preflop classes, [169] int16, weakest cluster first.

    strengths  [169, 1981] how often each class has each river strength over all boards (`preflop_strengths`)
    clusters   number of clusters
    seed       of the random draws

    The strengths of a class are counted in 50 bins, and classes are compared by the earth mover's distance of these
    histograms.  The result is the best of 200 runs of k-medians (0.8 s).

    Raises `ValueError` unless `clusters` is from 1 to the number of distinct histograms.
    """
    weights = np.bincount(preflop_classes())
    boards = strengths.sum(axis=1) / weights
    equity = strengths @ np.arange(strengths.shape[1]) / boards
    return cluster_classes(preflop_histograms(strengths), weights, equity, clusters, seed)


def cluster_classes(
    counts: NDArray[np.int64], weights: NDArray[np.int64], equity: NDArray[np.float64], clusters: int, seed: int
) -> NDArray[np.int16]:
    """Return the cluster of each of C hole-card classes, [C] int16, weakest cluster first.

    counts   [C, bins] equity histogram of each class
    weights  [C] number of combinations of each class
    equity   [C] strength of each class in any unit, summed over its combinations; it orders the clusters
    seed     of the random draws

    The result is the best of 200 runs of k-medians.  Raises `ValueError` unless `clusters` is from 1 to the number of
    distinct histograms.
    """
    points = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    if not 1 <= clusters <= (distinct := len(np.unique(points, axis=0))):
        raise ValueError(f"clusters is {clusters}: there are {distinct} kinds of opponent hands, choose 1 to that many")
    random_state = np.random.default_rng(seed)
    runs = [_k_medians(points, weights, clusters, random_state) for _ in range(_RESTARTS)]
    labels = min(runs, key=lambda run: run[0])[1]
    mean = np.bincount(labels, equity) / np.bincount(labels, weights)
    return np.argsort(np.argsort(mean))[labels].astype(np.int16)


# --- features ---


@nogil_allocating_njit
def fill_ochs(tables, boards, pairs, cluster_of, clusters, start, stop, out):
    """Write each hand's equities against k clusters of opponent hands, for boards [start, stop).

    tables      `EvaluatorTables`, of the hand evaluator
    boards      [N, 5] int8 cards of river boards
    pairs       `PairOrder`, scratch memory to rank the hands on a board
    cluster_of  [1326] int16 cluster of each combination (two hole cards)
    clusters    number of clusters k
    out         [stop − start, 1326, k] float32, in place; −1 if hand and board share a card

    Hands are compared with all hands of a cluster, less those that contain their first card, less those that contain
    their second (inclusion and exclusion).  If the hand itself belongs to the cluster, it is counted once and
    subtracted twice, so 1 is added back.
    """
    cluster = np.zeros((_LANES, _LANES), np.int16)  # cluster of the pair of live cards i and j
    beaten = np.empty((_LANES, clusters, _LANES), np.int16)  # [i, cluster, j] as `beaten` of abstraction.strength
    with_card = np.empty((_LANES, clusters), np.int32)  # hands of a cluster with live card i
    below = np.empty((COMBO_COUNT, clusters), np.int32)
    passed = np.empty(clusters, np.int32)
    for index in range(start, stop):
        for i in range(5):
            pairs.board[i] = boards[index, i]
        distinct = fill_pair_order(tables, pairs)
        order, live = pairs.order, pairs.live
        beaten[:], with_card[:], below[:distinct], passed[:] = 0, 0, 0, 0
        for i in range(LIVE_CARDS):
            first = live[i] * (live[i] - 1) // 2
            for j in range(i):
                c = cluster_of[first + live[j]]
                cluster[i, j] = c
                cluster[j, i] = c
                with_card[i, c] += 1
                with_card[j, c] += 1
                below[order[i, j], c] += 1
        for i in range(LIVE_CARDS):
            for other in range(LIVE_CARDS):
                opponent, c = order[i, other], cluster[i, other]
                for j in range(_LANES):
                    beaten[i, c, j] += (opponent < order[i, j]) + (opponent <= order[i, j])
        for s in range(distinct):
            for c in range(clusters):
                passed[c] += below[s, c]
                below[s, c] = 2 * passed[c] - below[s, c]
        out[index - start] = BLOCKED_FEATURE
        for i in range(LIVE_CARDS):
            first = live[i] * (live[i] - 1) // 2
            for j in range(i):
                s, own = order[i, j], cluster[i, j]
                for c in range(clusters):
                    wins2 = below[s, c] - beaten[i, c, j] - beaten[j, c, i] + (c == own)
                    hands2 = 2 * (passed[c] - with_card[i, c] - with_card[j, c] + (c == own))
                    share = np.float32(wins2) / np.float32(hands2) if hands2 else np.float32(0.5)
                    out[index - start, first + live[j], c] = share


def ochs_features(clusters: NDArray[np.integer], start: int, stop: int) -> NDArray[np.float32]:
    """Return the equities of river hands against each of k opponent clusters.

    The result is [stop − start, 1326, k] float32 for the canonical boards [start, stop).  `clusters` [169] is the
    cluster 0 to k − 1 of each preflop class (from `opponent_clusters`).

    An equity is (wins + ties/2) / hands, or ½ if no hand of the cluster is possible.  It is −1 if hand and board share
    a card.  With k = 8 all boards take 5.7 GB, so work in ranges.
    """
    cluster_of = clusters[preflop_classes()].astype(np.int16)
    count = int(cluster_of.max()) + 1
    features = np.empty((stop - start, COMBO_COUNT, count), np.float32)
    fill_ochs(evaluator_tables(), canonical_boards(5), pair_order(), cluster_of, count, start, stop, features)
    return features
