"""Building an abstraction: one stage for each street, committed when it is done.

A stage clusters a sample of its street's hands and assigns all of them, board range by board range, so that memory
stays bounded.  Its result - the bucket of every hole-card slot of every canonical board - is committed like a
checkpoint: whole or absent, with checksums.  Building again skips every stage whose part of the recipe is what it was;
the same recipe gives the same bytes, whatever the number of workers and however often a build was killed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import (
    BOARD_COUNTS,
    STREET_CARDS,
    CanonicalBoards,
    board_classes,
    preflop_classes,
    used_slots,
)
from abstraction.cards import COMBO_COUNT
from abstraction.clustering.assign import nearest_centres
from abstraction.clustering.kmeans import kmeans
from abstraction.clustering.metric import distance_code
from abstraction.clustering.percentiles import percentile_buckets
from abstraction.clustering.points import distinct_points
from abstraction.histograms import cumulative, equity_histograms
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.recipe import STREETS, Recipe, stage_document
from abstraction.strength import RUNOUTS, STRENGTH_LIMIT, preflop_strengths, river_strengths, runout_sums
from storage import durable
from storage.checkpoint import commit, newest_valid, next_number, sweep
from storage.lock import RunLock
from storage.manifest import content_hash
from storage.schema import ArraySpec
from storage.space import available_memory_bytes

FORMAT_VERSION = 1
_SLOTS_PER_BOARD = 1081.0  # slots of a river board that are used: the fewest of any street
_COUNTED = 4096  # boards whose values are counted at a time
_RANGE = {3: 32, 4: 128, 5: 512}  # boards that are described at a time
_PEAK_BYTES = 3 << 30  # river strengths, a sample with its bounds, one range of features, the buckets of a street

Progress = Callable[[str, float], None]
"""Called with a stage's name and the share of it that is done."""


@dataclass(frozen=True)
class Features:
    """How a street's hands are described: points for canonical boards [first, last), [boards, 1326, D] float32."""

    cards: int
    of_range: Callable[[int, int], NDArray[np.float32]]
    strength_of_centre: Callable[[NDArray[np.float32]], NDArray[np.float64]]  # buckets are numbered weakest first


def unused(dtype: np.dtype[Any]) -> int:
    """What stands in slots that share a card with the board: the largest value of the dtype."""
    return int(np.iinfo(dtype).max)


def bucket_dtype(buckets: int) -> np.dtype[Any]:
    """uint16 where the numbers and the mark of unused slots fit, else uint32."""
    return np.dtype(np.uint16 if buckets < unused(np.dtype(np.uint16)) else np.uint32)


def _hands_of_values(values: NDArray[Any], classes: CanonicalBoards) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Distinct values [V] of the used slots of values [boards, 1326], and how many hands have each."""
    found, counts = [], []
    for first in range(0, len(values), _COUNTED):
        part = slice(first, first + _COUNTED)
        used = used_slots(classes.boards[part])
        weight = np.broadcast_to(classes.multiplicity[part, None], used.shape)[used]
        distinct, inverse = np.unique(values[part][used], return_inverse=True)
        found.append(distinct)
        counts.append(np.bincount(inverse, weight))
    distinct, inverse = np.unique(np.concatenate(found), return_inverse=True)
    return distinct, np.bincount(inverse, np.concatenate(counts)).astype(np.float64)


class Builder:
    """Builds the stages of one recipe; what several stages need is computed once."""

    def __init__(self, recipe: Recipe, out: Path, workers: int = 1, progress: Progress | None = None) -> None:
        self._recipe, self._out, self._workers = recipe, Path(out), workers
        self._progress = progress or (lambda _stage, _share: None)
        self._river: NDArray[np.uint16] | None = None

    def build(self, streets: Sequence[str] = STREETS) -> list[str]:
        """Build what is not there yet of the given streets; returns those that were built.

        Raises `ValueError` for a k larger than a street's distinct points, `MemoryError` with both numbers where
        memory is short, `BlockingIOError` while another process builds in the same directory.
        """
        available = available_memory_bytes()
        if available < _PEAK_BYTES:
            raise MemoryError(f"building needs {_PEAK_BYTES:,} bytes of memory and {available:,} are available")
        self._out.mkdir(parents=True, exist_ok=True)
        built = []
        with RunLock(self._out / "build.lock"):
            for street in streets:
                document = stage_document(self._recipe, street)
                root = self._out / street
                sweep(root)
                identity = {"stage": content_hash({**document, "format_version": FORMAT_VERSION}), "recipe": document}
                found, _ = newest_valid(root)
                if found is None or found.identity != identity:
                    self._stage(street, root, identity)
                    built.append(street)
        return built

    def _stage(self, street: str, root: Path, identity: dict[str, Any]) -> None:
        began = time.perf_counter()
        self._progress(street, 0.0)
        features = getattr(self._recipe, street).features
        if features == "lossless":
            bucket, facts = self._lossless()
        elif features in ("ehs", "ehs2"):
            bucket, facts = self._percentiles(street, features)
        else:
            bucket, facts = self._clustered(street)
        specs = [ArraySpec("bucket", bucket.shape, bucket.dtype.name, ("board", "hole cards"))]
        facts |= {"street": street, "buckets": int(facts["buckets"])}
        commit(
            root,
            next_number(root),
            specs,
            {"bucket": bucket},
            facts,
            identity,
            format="zarr",
            keep=1,
            journal=self._out / "journal.jsonl",
        )
        durable.append_line(
            self._out / "times.jsonl", f'{{"stage": "{street}", "seconds": {time.perf_counter() - began:.3f}}}'
        )
        self._progress(street, 1.0)

    def _lossless(self) -> tuple[NDArray[Any], dict[str, Any]]:
        classes = preflop_classes().astype(np.uint16)[None]
        return classes, {"buckets": int(classes.max()) + 1}

    def _percentiles(self, street: str, features: str) -> tuple[NDArray[Any], dict[str, Any]]:
        """Buckets of equal weight by E[HS] or E[HS²], weakest first."""
        buckets, cards = getattr(self._recipe, street).buckets, STREET_CARDS[street]
        if cards == 5:
            values: NDArray[Any] = self._strengths()
        else:
            values = runout_sums(self._strengths(), cards, workers=self._workers)[features == "ehs2"]
        classes = board_classes(cards)
        distinct, hands = _hands_of_values(values, classes)
        try:
            lowest = percentile_buckets(distinct, hands, buckets).lowest
        except ValueError as error:
            raise ValueError(f"{street}: {error}") from None
        dtype = bucket_dtype(buckets)
        bucket = np.empty(values.shape, dtype)
        for first, last in ((a, min(a + 2048, len(values))) for a in range(0, len(values), 2048)):
            used = used_slots(classes.boards[first:last])
            rows = np.searchsorted(lowest, values[first:last], side="right") - 1
            bucket[first:last] = np.where(used, rows, unused(dtype))
        return bucket, {"buckets": buckets} | self._quality(street, bucket, buckets)

    # -- features ----------------------------------------------------------------------------------------------------

    def _strengths(self) -> NDArray[np.uint16]:
        if self._river is None:
            self._river = river_strengths(workers=self._workers)
        return self._river

    def _features(self, street: str) -> Features:
        part, cards = getattr(self._recipe, street), STREET_CARDS[street]
        if part.features == "histogram":
            river = self._strengths()

            def histograms(first: int, last: int) -> NDArray[np.float32]:
                return cumulative(equity_histograms(river, cards, first, last, bins=part.bins, workers=self._workers))

            return Features(cards, histograms, lambda centres: -centres.sum(axis=1, dtype=np.float64))
        clusters = opponent_clusters(
            preflop_strengths(river=self._strengths(), workers=self._workers), part.clusters, self._recipe.seed
        )

        def equities(first: int, last: int) -> NDArray[np.float32]:
            return ochs_features(clusters, first, last, workers=self._workers)

        return Features(cards, equities, lambda centres: centres.sum(axis=1, dtype=np.float64))

    # -- clustering --------------------------------------------------------------------------------------------------

    def _sample(self, street: str, features: Features) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Points and weights of all used slots of some boards, drawn by the seed: enough for the recipe's sample."""
        part, count = getattr(self._recipe, street), BOARD_COUNTS[features.cards]
        classes = board_classes(features.cards)
        wanted = min(count, int(np.ceil(2 * part.sample / _SLOTS_PER_BOARD)))
        random_state = np.random.Generator(np.random.PCG64([self._recipe.seed, features.cards]))
        boards = np.sort(random_state.permutation(count)[:wanted])
        points, weights = [], []
        for board in boards.tolist():
            used = used_slots(classes.boards[board : board + 1])[0]
            merged = distinct_points(features.of_range(board, board + 1)[0][used])
            points.append(merged.points)
            weights.append(merged.weights * int(classes.multiplicity[board]))
        return np.concatenate(points), np.concatenate(weights)

    def _clustered(self, street: str) -> tuple[NDArray[Any], dict[str, Any]]:
        document, features = stage_document(self._recipe, street), self._features(street)
        part, distance = getattr(self._recipe, street), document["distance"]
        points, weights = self._sample(street, features)
        try:
            found = kmeans(
                points,
                weights,
                part.buckets,
                distance=distance,
                seed=self._recipe.seed,
                sample=part.sample,
                iterations=part.iterations,
                workers=self._workers,
            )
        except ValueError as error:
            raise ValueError(f"{street}: {error}") from None
        whole = kmeans(points, weights, 1, distance=distance, sample=part.sample, workers=self._workers).inertia
        self._progress(street, 0.5)
        centres = np.ascontiguousarray(
            found.centres[np.argsort(features.strength_of_centre(found.centres), kind="stable")]
        )
        bucket = np.empty((BOARD_COUNTS[features.cards], COMBO_COUNT), bucket_dtype(part.buckets))
        for first, last in self._ranges(street, features.cards):
            bucket[first:last] = self._assign(features, centres, distance, first, last)
        facts = {
            "buckets": part.buckets,
            "sample_points": len(points),
            "inertia": found.inertia,
            "explained": 1 - found.inertia / whole if whole > 0 else 1.0,
            "lloyd_iterations": found.iterations,
        }
        return bucket, facts | self._quality(street, bucket, part.buckets)

    def _ranges(self, street: str, cards: int) -> Iterator[tuple[int, int]]:
        count, size = BOARD_COUNTS[cards], _RANGE[cards]
        for first in range(0, count, size):
            yield first, min(first + size, count)
            self._progress(street, 0.5 + 0.45 * min(first + size, count) / count)

    def _assign(
        self, features: Features, centres: NDArray[np.float32], distance: str, first: int, last: int
    ) -> NDArray[Any]:
        """Buckets of boards [first, last): the nearest centre of each used slot."""
        used = used_slots(board_classes(features.cards).boards[first:last])
        merged = distinct_points(features.of_range(first, last)[used])
        nearest = nearest_centres(merged.points, centres, distance_code(distance), self._workers)
        dtype = bucket_dtype(len(centres))
        rows = np.full(used.shape, unused(dtype), dtype)
        rows[used] = nearest.labels[merged.inverse]
        return rows

    def _quality(self, street: str, bucket: NDArray[Any], buckets: int) -> dict[str, Any]:
        """Sizes in hands, and the spread of equity within buckets, over all hands of the street."""
        cards = STREET_CARDS[street]
        multiplicity = board_classes(cards).multiplicity
        totals = np.zeros((3, buckets))  # hands, equity, squared equity
        for first, last in ((a, min(a + 2048, len(bucket))) for a in range(0, len(bucket), 2048)):
            rows = bucket[first:last]
            used = rows != unused(rows.dtype)
            weight = np.broadcast_to(multiplicity[first:last, None], rows.shape)[used].astype(np.float64)
            equity = self._equity(cards, first, last)[used]
            labels = rows[used]
            for power in range(3):
                totals[power] += np.bincount(labels, weight * equity**power, minlength=buckets)
        hands, mean = totals[0], totals[1] / np.maximum(totals[0], 1)
        variance = np.maximum(totals[2] / np.maximum(hands, 1) - mean**2, 0)
        return {
            "hands": int(hands.sum()),
            "smallest_bucket_hands": int(hands.min()),
            "median_bucket_hands": float(np.median(hands)),
            "largest_bucket_hands": int(hands.max()),
            "empty_buckets": int((hands == 0).sum()),
            "equity_spread": float(np.sqrt((variance * hands).sum() / hands.sum())),
        }

    def _equity(self, cards: int, first: int, last: int) -> NDArray[np.float64]:
        """E[HS] of each slot of canonical boards [first, last)."""
        river = self._strengths()
        if cards == 5:
            return river[first:last] / float(STRENGTH_LIMIT)
        return runout_sums(river, cards, first, last, workers=self._workers)[0] / float(STRENGTH_LIMIT * RUNOUTS[cards])
