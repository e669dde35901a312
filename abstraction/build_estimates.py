"""Estimates the peak memory and the time of an abstraction build before it starts.

The estimate of memory adds the largest arrays that exist at the same time.  Points are the distinct feature vectors of
hands, which k-means clusters.  Their number is scaled from builds of the default features.  It is at most the street's
number of suit-isomorphism classes (hands that differ only by a permutation of suits).
"""

from typing import Any

import numpy as np

from abstraction.boards import BOARD_COUNTS, STREET_CARDS
from abstraction.cards import COMBO_COUNT
from abstraction.histograms import COUNT_DTYPES
from abstraction.potential_aware import DIRECTIONS, VALUES
from abstraction.recipe import CLUSTERED, LOSSLESS_BUCKETS, DeckRecipe, Recipe, stage_document
from abstraction.street_features import BOARDS_AT_A_TIME, HAND_CLASSES

_PROCESS = 400_000_000  # interpreter, compiled kernels, tables of boards and of the evaluator
_DISTINCT = {
    ("flop", "histogram"): (1_034_942, "bins", 50),
    ("turn", "histogram"): (1_317_579, "bins", 50),
    ("river", "ochs"): (19_289_412, "clusters", 8),
}
"""Measured number of distinct points, with the recipe's key and value to which it is proportional."""

_LISTED_SECONDS = {"preflop": 3.5, "flop": 17.0, "turn": 17.0, "river": 25.0}
_OCHS_SECONDS = 25.0
_CLUSTER_SECONDS = {"preflop": 0.0, "flop": 25.0, "turn": 22.0, "river": 17.0}
_CLUSTER_BUCKETS, _CLUSTER_POWER = 1_000, 0.3
"""Processor seconds of a street: features of all hands, more of them for `ochs`, and a clustering of so many buckets.

The last grows with this power of the buckets. Measured on Xeon, busy, with the recipes standard, fine and hu-deep.
"""
_SMALL_SECONDS = 5.0  # of a street of a small deck


def _slots(cards: int) -> int:
    return BOARD_COUNTS.get(cards, 1) * COMBO_COUNT


def distinct_estimate(document: dict[str, Any]) -> int:
    """Return the estimated number of distinct feature vectors (points of k-means) of a street.

    document  settings of the street's buckets by name, with defaults filled in, such as features and buckets
    """
    street = document["street"]
    most = HAND_CLASSES[STREET_CARDS[street]]
    known = _DISTINCT.get((street, document["features"]))
    if known is None:
        return most
    count, key, value = known
    inside = 2 if document["public"] or document["nested"] else 1
    return min(most, inside * max(count, count * document[key] // value))


def _clustered_bytes(document: dict[str, Any], workers: int) -> int:
    cards = STREET_CARDS[document["street"]]
    distinct = distinct_estimate(document)
    if document["features"] == "histogram":
        row, point = document["bins"] * np.dtype(COUNT_DTYPES[cards]).itemsize, 4 * document["bins"]
    else:
        row = point = 4 * (document["clusters"] if document["features"] == "ochs" else DIRECTIONS * VALUES)
    ranges = 8 * workers * BOARDS_AT_A_TIME[cards] * COMBO_COUNT * row
    hashes = 8 << (2 * distinct - 1).bit_length()
    collecting = distinct * (row + 8) + 3 * hashes // 2 + ranges
    sample = document["sample"]
    chosen = distinct if sample == 0 else min(distinct, sample)
    clustering = distinct * (point + 8 + 40) + chosen * (point + 8 + 40)
    k = document["buckets"]
    centres = 4 * k * point + 16 * k * workers + (k * point * workers)
    kept = _slots(cards) * 4
    return kept + max(collecting, clustering + centres)


def stage_bytes(document: dict[str, Any], workers: int = 2) -> int:
    """Return the peak bytes of the process while the buckets of a hold'em street are computed.

    document  settings of the street's buckets by name, with defaults filled in, such as features and buckets
    workers   number of threads
    """
    cards = STREET_CARDS[document["street"]]
    strengths = _slots(5) * 2
    # sums over run-outs, sums of squares, and one copy while they are compared or written
    sums = 3 * 8 * _slots(cards) if cards in (3, 4) else 0
    if document["features"] in CLUSTERED:
        own = _clustered_bytes(document, workers)
        if document["features"] == "potential":
            own += _slots(cards + 1) * 4
    else:
        buckets = document.get("buckets", LOSSLESS_BUCKETS.get(document["street"], 0))
        own = _slots(cards) * 8 + 64 * buckets
        if "percentiles" in document:  # tables of all streets so far, as built and as look-up tables for deals
            own += 4 * sum(_slots(known) for known in STREET_CARDS.values() if known <= cards)
    return _PROCESS + strengths + sums + own


def recipe_bytes(recipe: Recipe, workers: int = 2) -> dict[str, int]:
    """Return {street: peak bytes of the process while `workers` threads compute its buckets}.

    recipe  settings of each street's buckets, parsed from a TOML file
    """
    documents = {street: stage_document(recipe, street) for street in recipe.streets}
    if recipe.deck is not None:
        return {street: _small_bytes(recipe.deck, document) for street, document in documents.items()}
    return {street: stage_bytes(document, workers) for street, document in documents.items()}


def _small_bytes(deck: DeckRecipe, document: dict[str, Any]) -> int:
    """Return an upper bound of the process's peak bytes while buckets of a small deck are computed.

    deck      numbers of ranks, suits, hole cards and board cards
    document  settings of one street's buckets by name, with defaults filled in
    """
    listing = deck.listing()
    numbers = {"histogram": document.get("bins", 0), "ochs": document.get("clusters", 0)}
    description = 4 * numbers.get(document["features"], DIRECTIONS * VALUES)
    strengths = 10 * 8  # for each full board: sums, squares, and suit-isomorphism numbers
    return _PROCESS + len(listing.boards[-1]) * len(listing.hands) * (strengths + 3 * description)


def recipe_seconds(recipe: Recipe, workers: int = 2) -> dict[str, float]:
    """Return {street: estimated seconds to compute its buckets}, without the time to compile code.

    recipe  settings of each street's buckets, parsed from a TOML file
    """
    documents = {street: stage_document(recipe, street) for street in recipe.streets}
    if recipe.deck is not None:
        return dict.fromkeys(documents, _SMALL_SECONDS)
    return {street: _stage_seconds(document) / workers for street, document in documents.items()}


def _stage_seconds(document: dict[str, Any]) -> float:
    """Return the estimated processor seconds to compute and cluster a hold'em street's features.

    document  settings of the street's buckets by name, with defaults filled in
    """
    seconds = _LISTED_SECONDS[document["street"]] + _OCHS_SECONDS * (document["features"] == "ochs")
    if document["features"] in CLUSTERED:
        buckets = document["buckets"] / (document["public"] or 1)
        seconds += _CLUSTER_SECONDS[document["street"]] * (buckets / _CLUSTER_BUCKETS) ** _CLUSTER_POWER
    return seconds
