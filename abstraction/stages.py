"""Builds one street of an abstraction: features, clustering, assignment and statistics of the buckets.

The setting `features` chooses how hands are divided.  HS is a hand's equity on the river against a random opponent
hand, and E the mean over the cards to come.

* `lossless`: one bucket for each suit-isomorphism class (`abstraction.suit_isomorphism`)
* `ehs`, `ehs2`: percentiles of E[HS] or E[HS²]
* all others: k-means of distinct weighted points, at once or in two levels (groups, then buckets in each, then steps
  over all points)

Percentiles and one-level k-means can also be taken separately within each *parent*.  A parent is a bucket of the street
before or a cluster of boards.  Streets with a `history` are divided by percentiles of all hands instead
(`abstraction.recall_buckets`).  `StageMaker.make` is the entry point.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import STREET_CARDS
from abstraction.bucket_report import bucket_totals, summary, variance_explained
from abstraction.buckets import HISTORY, bucket_dtype, unused
from abstraction.clustering.assign import group_members, nearest_centres
from abstraction.clustering.kmeans import KMeansState, StateSaver, begin_or_resume, run, start_from, state_arrays
from abstraction.clustering.metric import distance_code
from abstraction.clustering.percentiles import percentile_buckets
from abstraction.clustering.points import Problem
from abstraction.clustering.two_level import cluster_within, group_needs, refine, share_buckets
from abstraction.deck_models import Deck, StageInputs, features_of, parents_of
from abstraction.recall_buckets import history_of
from abstraction.street_features import Features, HandPoints, Share, collect, total

_ROWS = 2048  # boards whose buckets are looked up at a time


class Phases:
    """Reports the progress of building one street, phase by phase, to a function.

    Phases are features, clustering, assignment, quality and files; lossless streets skip the first two.  `tell` is
    called with the name of the phase and its completed share, 0 to 1.
    """

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self._tell = tell

    @contextmanager
    def phase(self, name: str) -> Iterator[Share]:
        """Report the phase `name` at its start and end, within a `with` block.

        The block gets a function, which it calls with the phase's completed share, 0 to 1.
        """
        self._tell(name, 0.0)
        yield lambda share: self._tell(name, min(0.99, share))  # 1 is reported once, at the end
        self._tell(name, 1.0)


class Stage(NamedTuple):
    """Result of building one street, as it is saved: {name: array} and {name: statistic}."""

    arrays: dict[str, NDArray[Any]]
    """bucket [boards, slots]; hands and equity [K]; centres [K, D] if clustered; history if there is one"""
    facts: dict[str, Any]
    """statistics for `mccfr abstraction info`"""


class StageMaker:
    """Builds the buckets of an abstraction's streets, each from its settings, for one deck.

    River strengths, which several streets need, are computed once.
    """

    def __init__(self, workers: int, deck: Deck) -> None:
        self._deck, self._workers = deck, workers

    def make(self, document: dict[str, Any], others: StageInputs, saver: StateSaver, phases: Phases) -> Stage:
        """Build the buckets of one street; return them with statistics as a `Stage`.

        document  the street's settings by name (`stage_document` of `abstraction.recipe`), such as features and buckets
        others    buckets of other streets, already built. Its field `following`, the next street's buckets, is read for
                  the features "potential". `before` or `earlier`, of streets before, may be read for a nested street.
                  A street is nested if each of its buckets lies inside one bucket of the street before
        saver     saves and restores the state of a long clustering
        phases    receives the progress

        The result's `arrays` hold the bucket of each hand on each board, and the number of hands and mean equity of
        each bucket, among others. Its `facts` are the statistics.

        Raises `ValueError`, beginning with the street's name, for buckets that cannot be built.
        """
        street, features = document["street"], document["features"]
        try:
            if features == "lossless":
                bucket, stage = self._lossless(street, phases)
            elif features in ("ehs", "ehs2"):
                bucket, stage = self._percentiles(document, others, phases)
            else:
                bucket, stage = self._clustered(document, others, saver, phases)
        except ValueError as error:
            raise ValueError(f"{street}: {error}") from None
        with phases.phase("quality"):
            count = document.get("percentiles", stage.facts["buckets"])
            totals = bucket_totals(self._deck.hands(street), bucket, self._deck.sums(street), count)
            facts = {"street": street, **({} if others.earlier else summary(totals)), **stage.facts}
        if not others.earlier:
            facts.setdefault("explained", facts["equity_explained"])
        arrays = {"bucket": bucket, "hands": totals.hands, "equity": totals.equity, **stage.arrays}
        return Stage(arrays, facts)

    # -- without clustering ------------------------------------------------------------------------------------------

    def _lossless(self, street: str, phases: Phases) -> tuple[NDArray[Any], Stage]:
        with phases.phase("assignment") as share:
            count, bucket = self._deck.lossless(street, share)
        return bucket, Stage({}, {"buckets": count, "explained": 1.0})

    def _percentiles(self, document: dict[str, Any], others: StageInputs, phases: Phases) -> tuple[NDArray[Any], Stage]:
        """Divide hands into buckets of about equal weight by E[HS] or E[HS²].

        Returns the bucket of each hand, [boards, hands], and a `Stage` with the other arrays and statistics.  Buckets
        are numbered from the weakest on, within each parent (bucket of the street before, or cluster of boards) if
        there are parents.  With `others.earlier` (perfect recall on the full deck) the first result holds percentiles.
        The array "history" in the `Stage` then maps (bucket on the street before, percentile) to the bucket.
        """
        street, buckets = document["street"], document.get("percentiles", document["buckets"])
        with phases.phase("features") as share:
            values = (self._deck.squares if document["features"] == "ehs2" else self._deck.sums)(street)
            rows = Features(
                self._deck.hands(street), lambda first, last: values[first:last, :, None], np.asarray, total
            )
            hands = collect(rows, self._workers, parents_of(self._deck, document, others, self._workers), share)
        with phases.phase("clustering"):
            labels = _percentile_labels(hands, int(values.max()) + 1, buckets)
        with phases.phase("assignment"):
            bucket = _table(hands, labels.astype(bucket_dtype(buckets)))
        facts = {"buckets": document["buckets"], "distinct_values": len(hands.points)}
        if not others.earlier:
            return bucket, Stage({}, facts)
        cards = list(STREET_CARDS.values())[: len(others.earlier) + 1]
        history = history_of(others.earlier, bucket, cards, document["buckets"], document["seed"])
        return bucket, Stage({HISTORY: history}, facts)

    # -- with clustering ---------------------------------------------------------------------------------------------

    def _clustered(
        self, document: dict[str, Any], others: StageInputs, saver: StateSaver, phases: Phases
    ) -> tuple[NDArray[Any], Stage]:
        k = document["buckets"]
        with phases.phase("features") as share:
            features = features_of(self._deck, document, others)
            hands = collect(features, self._workers, parents_of(self._deck, document, others, self._workers), share)
        whole = Problem(hands.points, hands.weights, distance_code(document["distance"]), self._workers)
        with phases.phase("clustering") as share:
            chosen = _draw_sample(hands.weights, document["sample"], document["seed"])
            clustering = _cluster(whole, hands.parents, chosen, document, saver, share)
        with phases.phase("assignment"):
            order = np.lexsort((features.strength_of_centre(clustering.centres), clustering.parents))
            rank = np.argsort(order).astype(bucket_dtype(k))
            labels = rank[clustering.labels]
            bucket = _table(hands, labels)
        facts = {
            "buckets": k,
            "distinct_points": len(hands.points),
            "clustered_points": len(hands.points) if chosen is None else len(chosen[0]),
            "lloyd_iterations": clustering.iterations,
            "inertia": clustering.inertia,
            "explained": variance_explained(hands.points, labels, hands.weights, k),
        }
        return bucket, Stage({"centres": clustering.centres[order]}, facts)


def _percentile_labels(hands: HandPoints, span: int, buckets: int) -> NDArray[np.int64]:
    """Return the bucket, 0 to `buckets` − 1, of each of N points: a percentile of its value in its parent.

    hands    points [N, 1], each with a sum of strengths, or of their squares, from 0 to `span` − 1.  A point's parent
             is a bucket of the street before or a cluster of boards; without parents all points are divided at once
    span     a number above all values
    buckets  number of buckets in all.  Each parent gets at least one; parents with more weight and a wider spread of
             values get more.  The buckets of a parent follow those of the parent before it

    Raises `ValueError` if a parent cannot get at least one bucket, or there are more buckets than points.
    """
    values = hands.points[:, 0]
    order = np.lexsort((values,) if hands.parents is None else (values, hands.parents))
    values, weights, shares, parts = values[order], hands.weights[order], np.array([buckets]), [slice(None)]
    if hands.parents is not None:
        points = np.ascontiguousarray((values.astype(np.float64) / span).astype(np.float32)[:, None])
        members = group_members(hands.parents[order], int(hands.parents.max()) + 1)
        problem = Problem(points, weights, distance_code("l2"), 1)
        shares = share_buckets(group_needs(problem, members), np.diff(members.starts), buckets)
        parts = [slice(*ends) for ends in pairwise(members.starts.tolist())]
    labels = np.empty(len(values), np.int64)
    for part, share, first in zip(parts, shares.tolist(), np.cumsum(shares) - shares, strict=True):
        lowest = percentile_buckets(values[part], weights[part], share)
        labels[order[part]] = first + np.searchsorted(lowest, values[part], side="right") - 1
    return labels


def _draw_sample(
    weights: NDArray[np.float64], sample: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Draw `sample` hands at random, to cluster only their points; return None to take all.

    weights  [N] number of hands with each point
    sample   number of draws, with replacement; 0, or no fewer than there are hands: take all
    seed     of the random draws

    Returns the indices of the points drawn, ascending, and how often each was drawn.
    """
    if sample == 0 or sample >= weights.sum():
        return None
    draws = np.random.Generator(np.random.PCG64([seed, 2])).random(sample)
    upto = np.cumsum(weights)
    points = np.searchsorted(upto, np.sort(draws) * upto[-1], side="right")
    chosen, counts = np.unique(points, return_counts=True)
    return chosen, counts.astype(np.float64)


class _Buckets(NamedTuple):
    """Result of a clustering of N points: k centres, and the bucket of every point.

    centres     [k, D]
    labels      [N] bucket of each point
    inertia     weighted sum of the points' distances to their centres (squared for the metric L2)
    iterations  number of Lloyd's iterations
    """

    centres: NDArray[np.float32]
    labels: NDArray[np.int32]
    parents: NDArray[np.int64]  # [k] parent of each bucket, all 0 without nesting
    inertia: float
    iterations: int


def _cluster(
    whole: Problem,
    parents: NDArray[np.int32] | None,
    chosen: tuple[NDArray[np.int64], NDArray[np.float64]] | None,
    document: dict[str, Any],
    saver: StateSaver,
    share: Share,
) -> _Buckets:
    """Cluster the chosen points, and assign every point to a bucket.

    whole     all N points
    parents   [N] bucket of the street before, or cluster of boards, within which each point's bucket lies; None: it may
              hold any points
    chosen    indices of the points to cluster, and their weights; None: all points
    document  the street's settings by name, such as "buckets", their number
    saver     saves and restores the state, so that an interrupted clustering resumes
    share     called with the completed share, 0 to 1
    """
    part = whole
    if chosen is not None:
        part = Problem(np.ascontiguousarray(whole.points[chosen[0]]), chosen[1], whole.metric, whole.workers)
    if parents is not None:
        return _nested(whole, part, parents, None if chosen is None else chosen[0], document, saver, share)
    if document["levels"] == 2:
        state = _two_levels(part, document, saver, share)
    else:
        state = _flat(part, document, saver, share)
    iterations = state.iteration
    if part is not whole:
        state = start_from(whole, state.centres)
    return _Buckets(state.centres, state.labels, np.zeros(len(state.centres), np.int64), state.inertia, iterations)


def _flat(part: Problem, document: dict[str, Any], saver: StateSaver, share: Share) -> KMeansState:
    iterations = document["iterations"]

    def tell(state: KMeansState) -> None:
        saver.save("lloyd", lambda: state_arrays(state))
        share(state.iteration / iterations)

    state = begin_or_resume(part, document["buckets"], document["seed"], saver)
    return run(part, state, iterations, progress=tell)


def _two_levels(part: Problem, document: dict[str, Any], saver: StateSaver, share: Share) -> KMeansState:
    starts = {"groups": (0.0, 0.3), "buckets": (0.3, 0.4), "flat": (0.7, 0.3)}

    def tell(phase: str, finished: int, of: int) -> None:
        share(starts[phase][0] + starts[phase][1] * finished / of)

    return refine(
        part,
        document["buckets"],
        seed=document["seed"],
        iterations=document["iterations"],
        progress=tell,
        saver=saver,
    )


def _nested(
    whole: Problem,
    part: Problem,
    parents: NDArray[np.int32],
    chosen: NDArray[np.int64] | None,
    document: dict[str, Any],
    saver: StateSaver,
    share: Share,
) -> _Buckets:
    """Cluster the points of each parent separately; each parent gets a share of the buckets.

    whole     all N points
    part      the points to cluster, all or a sample
    parents   [N] bucket of the street before, or cluster of boards, within which each point's bucket lies
    chosen    indices in `whole` of the points of `part`; None: all
    document  the street's settings by name, such as "buckets", their number
    saver     saves and restores the state, so that an interrupted clustering resumes
    share     called with the completed share, 0 to 1

    Returns the centres, and the bucket of each of the N points: its nearest centre in its parent, if only a sample was
    clustered.

    Raises `ValueError` if no point of a parent is in `part`, or if there are fewer buckets than parents or more than
    points in `part`.
    """
    count = int(parents.max()) + 1
    inside = parents if chosen is None else parents[chosen]
    members = group_members(inside, count)
    room = np.diff(members.starts)
    if room.min() == 0:
        raise ValueError(
            f"none of the {len(inside)} points that are clustered lies in cluster {int(room.argmin())} of {count}: "
            "take a larger sample, or fewer clusters"
        )
    shares = share_buckets(group_needs(part, members), room, document["buckets"])
    clustering = cluster_within(
        part,
        members,
        shares,
        document["seed"],
        document["iterations"],
        lambda _phase, done, of: share(done / of),
        saver,
    )
    offsets = np.concatenate([[0], np.cumsum(shares)])
    outer = np.repeat(np.arange(count), shares)
    if chosen is None:
        return _Buckets(clustering.centres, clustering.labels, outer, clustering.inertia, clustering.iterations)
    labels, inertia = np.empty(len(parents), np.int32), 0.0
    of_parent = group_members(parents, count)
    for parent in range(count):
        mine = of_parent.order[of_parent.starts[parent] : of_parent.starts[parent + 1]]
        centres = np.ascontiguousarray(clustering.centres[offsets[parent] : offsets[parent + 1]])
        nearest = nearest_centres(np.ascontiguousarray(whole.points[mine]), centres, whole.metric, whole.workers)
        labels[mine] = nearest.labels + np.int32(offsets[parent])
        inertia += float(whole.weights[mine] @ nearest.distances)
    return _Buckets(clustering.centres, labels, outer, inertia, clustering.iterations)


def _table(hands: HandPoints, labels: NDArray[Any]) -> NDArray[Any]:
    """Return the bucket of each hand, [boards, hands], from the bucket of each point, `labels` [N].

    Hands that share a card with the board get the largest value of the dtype.
    """
    # The additional last entry is the mark of unused slots, which have index −1.
    marked = np.append(labels, labels.dtype.type(unused(labels.dtype)))
    bucket = np.empty(hands.numbers.shape, labels.dtype)
    for first in range(0, len(bucket), _ROWS):
        np.take(marked, hands.numbers[first : first + _ROWS], out=bucket[first : first + _ROWS], mode="wrap")
    return bucket
