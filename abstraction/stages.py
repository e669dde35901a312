"""Builds one street of an abstraction: features, clustering, assignment and statistics of the buckets.

Lossless streets have one bucket for each suit-isomorphism class (`abstraction.suit_isomorphism`).  `ehs` and `ehs2` are
percentiles of the mean and mean squared strength.  All other features use k-means of distinct weighted points: flat, in
two levels, or within clusters of boards or parent buckets.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import STREET_CARDS
from abstraction.bucket_report import bucket_totals, summary
from abstraction.buckets import HISTORY, bucket_dtype, unused
from abstraction.clustering.assign import group_members, nearest_centres
from abstraction.clustering.kmeans import KMeansState, begin_or_resume, run, start_from, state_arrays
from abstraction.clustering.metric import distance_code
from abstraction.clustering.percentiles import percentile_buckets
from abstraction.clustering.points import Problem
from abstraction.clustering.progress_state import StateSaver
from abstraction.clustering.quality import variance_explained
from abstraction.clustering.two_level import cluster_within, group_needs, refine, share_buckets
from abstraction.deck_models import Deck, EarlierStages, StandardDeck
from abstraction.recall_buckets import history_of
from abstraction.street_features import HandPoints, Rows, Share, StreetHands, collect

_ROWS = 2048  # boards whose buckets are looked up at a time


class Phases:
    """Reports and times the phases of a stage: features, clustering, assignment, quality and files.

    A stage may skip phases.  `tell` is called with the phase and its completed share, 0 to 1.
    """

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self._tell = tell
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[Share]:
        """Time a phase; yields a function that takes its completed share."""
        began = time.perf_counter()
        self._tell(name, 0.0)
        yield lambda share: self._tell(name, min(0.99, share))  # 1 is reported once, at the end
        self.seconds[name] = round(time.perf_counter() - began, 3)
        self._tell(name, 1.0)


class Stage(NamedTuple):
    """The buckets of one street."""

    arrays: dict[str, NDArray[Any]]
    """bucket [boards, slots]; hands and equity [K]; centres [K, D] if clustered; history if there is one"""
    facts: dict[str, Any]
    """statistics for `mccfr abstraction info`"""


class StageMaker:
    """Builds stages from the documents of one recipe (`stage_document`).  Shared inputs are computed once."""

    def __init__(self, workers: int, deck: Deck | None = None) -> None:
        """`deck` None is the 52-card deck."""
        self._deck, self._workers = deck or StandardDeck(workers), workers

    def make(self, document: dict[str, Any], near: EarlierStages, keeper: StateSaver, phases: Phases) -> Stage:
        """Return the stage of a document; `near` holds the results of other stages that it needs."""
        street, features = document["street"], document["features"]
        try:
            if features == "lossless":
                bucket, found = self._lossless(street, phases)
            elif features in ("ehs", "ehs2"):
                bucket, found = self._percentiles(document, near, phases)
            else:
                bucket, found = self._clustered(document, near, keeper, phases)
        except ValueError as error:
            raise ValueError(f"{street}: {error}") from None
        with phases.phase("quality"):
            count = document.get("percentiles", found.facts["buckets"])
            totals = bucket_totals(self._deck.hands(street), bucket, self._deck.sums(street), count)
            facts = {"street": street, **({} if near.earlier else summary(totals)), **found.facts}
        if not near.earlier:
            facts.setdefault("explained", facts["equity_explained"])
        arrays = {"bucket": bucket, "hands": totals.hands, "equity": totals.equity, **found.arrays}
        return Stage(arrays, facts)

    # -- without clustering ------------------------------------------------------------------------------------------

    def _lossless(self, street: str, phases: Phases) -> tuple[NDArray[Any], Stage]:
        with phases.phase("assignment") as share:
            count, bucket = self._deck.lossless(street, share)
        return bucket, Stage({}, {"buckets": count, "explained": 1.0})

    def _percentiles(self, document: dict[str, Any], near: EarlierStages, phases: Phases) -> tuple[NDArray[Any], Stage]:
        """Return buckets of equal weight by E[HS] or E[HS²], weakest first, within each parent if nested.

        Streets with history (`abstraction.recall_buckets`) get percentiles and a history instead of buckets.
        """
        buckets, street = document.get("percentiles", document["buckets"]), self._deck.hands(document["street"])
        with phases.phase("features"):
            squared = document["features"] == "ehs2"
            values = (self._deck.squares if squared else self._deck.sums)(document["street"])
        parents = self._deck.parents(document, near)
        with phases.phase("clustering"):
            keys = _Keys(values, parents)
            distinct, hands = _hands_of_keys(keys, street)
            lowest = _lowest_keys(distinct, hands, keys.span, buckets)
        dtype = bucket_dtype(buckets)
        bucket = np.empty(values.shape, dtype)
        with phases.phase("assignment") as share:
            for first in range(0, len(values), _ROWS):
                part = keys.rows(first, first + _ROWS)
                used = street.used(first, first + len(part))
                rows = np.searchsorted(lowest, part, side="right") - 1
                bucket[first : first + _ROWS] = np.where(used, rows, unused(dtype))
                share(first / len(values))
        facts = {"buckets": document["buckets"], "distinct_values": len(distinct)}
        if not near.earlier:
            return bucket, Stage({}, facts)
        cards = list(STREET_CARDS.values())[: len(near.earlier) + 1]
        made = history_of(near.earlier, bucket, cards, document["buckets"], document["seed"])
        return bucket, Stage({HISTORY: made}, facts)

    # -- with clustering ---------------------------------------------------------------------------------------------

    def _clustered(
        self, document: dict[str, Any], near: EarlierStages, keeper: StateSaver, phases: Phases
    ) -> tuple[NDArray[Any], Stage]:
        k = document["buckets"]
        with phases.phase("features") as share:
            features = self._deck.features(document, near)
            hands = collect(features, self._workers, self._deck.parents(document, near), share)
        whole = Problem(hands.points, hands.weights, distance_code(document["distance"]), self._workers)
        _check_k(k, hands.points)
        with phases.phase("clustering") as share:
            chosen = _drawn(hands.weights, document["sample"], document["seed"])
            found = _cluster(whole, hands.parents, chosen, document, keeper, share)
        with phases.phase("assignment"):
            order = np.lexsort((features.strength_of_centre(found.centres), found.parents))
            rank = np.argsort(order).astype(bucket_dtype(k))
            labels = rank[found.labels]
            bucket = _table(hands, labels)
        facts = {
            "buckets": k,
            "distinct_points": len(hands.points),
            "clustered_points": len(hands.points) if chosen is None else len(chosen[0]),
            "lloyd_iterations": found.iterations,
            "inertia": found.inertia,
            "explained": variance_explained(hands.points, labels, hands.weights, k),
        }
        return bucket, Stage({"centres": found.centres[order]}, facts)


def _check_k(k: int, points: NDArray[Any]) -> None:
    if k > len(points):
        raise ValueError(f"k is {k}, but there are {len(points)} distinct points: choose k at most that")


class _Keys:
    """Keys of hands that combine parent and value: parent · `span` + value."""

    def __init__(self, values: NDArray[Any], parents: Rows | None) -> None:
        """`values` [boards, slots] are the keys if there are no `parents`; else they are integers from 0."""
        self._values, self._parents = values, parents
        self.span = 0 if parents is None else int(values.max()) + 1

    def __len__(self) -> int:
        return len(self._values)

    def rows(self, first: int, last: int) -> NDArray[Any]:
        """Return the keys of boards [first, last), [last − first or fewer, slots]."""
        values = self._values[first:last]
        if self._parents is None:
            return values
        return self._parents(first, first + len(values)).astype(np.int64) * self.span + values


def _hands_of_keys(keys: _Keys, street: StreetHands) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the distinct keys [V] of the used slots, ascending, and the number of dealt hands of each."""
    found, counts = [], []
    for first in range(0, len(keys), _ROWS):
        rows = keys.rows(first, first + _ROWS)
        used = street.used(first, first + len(rows))
        weight = np.broadcast_to(street.times(first, first + len(rows))[:, None], used.shape)[used]
        distinct, inverse = np.unique(rows[used], return_inverse=True)
        found.append(distinct)
        counts.append(np.bincount(inverse, weight))
    distinct, inverse = np.unique(np.concatenate(found), return_inverse=True)
    return distinct, np.bincount(inverse, np.concatenate(counts)).astype(np.float64)


def _lowest_keys(keys: NDArray[Any], hands: NDArray[np.float64], span: int, buckets: int) -> NDArray[Any]:
    """Return the smallest key of each bucket, [buckets] ascending.

    Buckets are percentiles; if `span` > 0, percentiles within each parent.  Parents get a number of buckets by the
    spread of their values, as for nested clusters.
    """
    if not span:
        return percentile_buckets(keys, hands, buckets).lowest
    parents, inside = np.unique(keys // span, return_inverse=True)
    points = np.ascontiguousarray((keys % span / span).astype(np.float32)[:, None])
    members = group_members(inside.astype(np.int32), len(parents))
    room = np.diff(members.starts)
    shares = share_buckets(group_needs(Problem(points, hands, distance_code("l2"), 1), members), room, buckets)
    parts = np.split(np.arange(len(keys)), np.cumsum(room)[:-1])  # keys ascend, so a parent's are adjacent
    return np.concatenate(
        [percentile_buckets(keys[mine], hands[mine], share).lowest for mine, share in zip(parts, shares, strict=True)]
    )


def _drawn(
    weights: NDArray[np.float64], sample: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Draw `sample` hands by weight; return their points and the hands on each, or None for all points."""
    if sample == 0 or sample >= weights.sum():
        return None
    draws = np.random.Generator(np.random.PCG64([seed, 2])).random(sample)
    upto = np.cumsum(weights)
    points = np.searchsorted(upto, np.sort(draws) * upto[-1], side="right")
    chosen, counts = np.unique(points, return_counts=True)
    return chosen, counts.astype(np.float64)


class _Found(NamedTuple):
    """The bucket of every point."""

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
    keeper: StateSaver,
    share: Share,
) -> _Found:
    """Cluster the chosen points (None: all), and assign every point to a bucket."""
    part = whole
    if chosen is not None:
        part = Problem(np.ascontiguousarray(whole.points[chosen[0]]), chosen[1], whole.metric, whole.workers)
    if parents is not None:
        return _nested(whole, part, parents, None if chosen is None else chosen[0], document, keeper, share)
    if document["levels"] == 2:
        state = _two_levels(part, document, keeper, share)
    else:
        state = _flat(part, document, keeper, share)
    iterations = state.iteration
    if part is not whole:
        state = start_from(whole, state.centres)
    return _Found(state.centres, state.labels, np.zeros(len(state.centres), np.int64), state.inertia, iterations)


def _flat(part: Problem, document: dict[str, Any], keeper: StateSaver, share: Share) -> KMeansState:
    iterations = document["iterations"]

    def tell(state: KMeansState) -> None:
        keeper.keep("lloyd", lambda: state_arrays(state))
        share(state.iteration / iterations)

    state = begin_or_resume(part, document["buckets"], document["seed"], keeper)
    return run(part, state, iterations, progress=tell)


def _two_levels(part: Problem, document: dict[str, Any], keeper: StateSaver, share: Share) -> KMeansState:
    starts = {"groups": (0.0, 0.3), "buckets": (0.3, 0.4), "flat": (0.7, 0.3)}

    def tell(phase: str, done: int, of: int) -> None:
        share(starts[phase][0] + starts[phase][1] * done / of)

    return refine(
        part,
        document["buckets"],
        seed=document["seed"],
        iterations=document["iterations"],
        progress=tell,
        keeper=keeper,
    )


def _nested(
    whole: Problem,
    part: Problem,
    parents: NDArray[np.int32],
    chosen: NDArray[np.int64] | None,
    document: dict[str, Any],
    keeper: StateSaver,
    share: Share,
) -> _Found:
    """Cluster within each parent, which gets a share of the buckets."""
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
    found = cluster_within(
        part,
        members,
        shares,
        document["seed"],
        document["iterations"],
        progress=lambda _phase, done, of: share(done / of),
        keeper=keeper,
    )
    offsets = np.concatenate([[0], np.cumsum(shares)])
    outer = np.repeat(np.arange(count), shares)
    if chosen is None:
        return _Found(found.centres, found.labels, outer, found.inertia, found.iterations)
    labels, inertia = np.empty(len(parents), np.int32), 0.0
    everybody = group_members(parents, count)
    for parent in range(count):
        mine = everybody.order[everybody.starts[parent] : everybody.starts[parent + 1]]
        centres = np.ascontiguousarray(found.centres[offsets[parent] : offsets[parent + 1]])
        nearest = nearest_centres(np.ascontiguousarray(whole.points[mine]), centres, whole.metric, whole.workers)
        labels[mine] = nearest.labels + np.int32(offsets[parent])
        inertia += float(whole.weights[mine] @ nearest.distances)
    return _Found(found.centres, labels, outer, inertia, found.iterations)


def _table(hands: HandPoints, labels: NDArray[Any]) -> NDArray[Any]:
    """Return the bucket of each slot, [boards, slots]."""
    # The additional last entry is the mark of unused slots, which have index −1.
    marked = np.append(labels, labels.dtype.type(unused(labels.dtype)))
    bucket = np.empty(hands.numbers.shape, labels.dtype)
    for first in range(0, len(bucket), _ROWS):
        np.take(marked, hands.numbers[first : first + _ROWS], out=bucket[first : first + _ROWS], mode="wrap")
    return bucket
