"""Stratified sampling of boards: from each group of similar boards, two or more are drawn.

The groups are called strata. Only differences within strata add to the variance (Cochran 1977, "Sampling techniques",
chapter 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from mccfr.cards.base import Cards
from mccfr.common.intervals import student95
from mccfr.common.rng import EVALUATION
from mccfr.evaluation.samples import SampledEvaluation
from mccfr.policy.strategy_profile import Profile

_STRATIFIED_CARDS = 3
_FEW = 40


@dataclass(frozen=True)
class BoardStrata:
    """A sampling plan: how many boards to draw from each of L groups of similar boards (strata).

    stratum  [n] group of each of the n samples, a number from 0 to L - 1, ascending
    size     [L] number of boards in each group; for the full deck 1 each, because groups have equal probabilities
    listed   True if the game lists its boards, which are then drawn without repetition; False for the full deck
    """

    stratum: npt.NDArray[np.int64]
    size: npt.NDArray[np.float64]
    listed: bool

    @classmethod
    def of(cls, units: int, each: int, boards: int | None) -> "BoardStrata":
        """Plan the sampling: divide the samples among groups of similar boards.

        units   number of samples, each with one board
        each    number of samples in a group; the last group takes the remainder too
        boards  number of boards that the game lists for the street; None: full deck
        """
        strata = max(1, units // each)
        stratum = np.minimum(np.arange(units) // each, strata - 1)
        if boards is None:
            return cls(stratum, np.ones(strata), False)
        ends = np.searchsorted(stratum, np.arange(strata + 1))  # in proportion to samples: no stratum has fewer boards
        return cls(stratum, np.diff(ends * boards // units).astype(np.float64), True)


def units_each(units: int) -> int:
    """Return how many of `units` sampled boards to draw from one group of similar boards.

    It is two, or four if there are fewer than 40 samples. With so few, 95 % intervals from groups of two would contain
    the true value too rarely.
    """
    return 2 if units >= _FEW else 4


def sample_boards(cards: Cards, street: int, strata: BoardStrata, seed: int) -> list[int] | list[list[int]]:
    """Draw the board of each sample; return a list of n boards.

    A board is its index in the list of a game that lists boards, else its cards in order of dealing. A board of the
    full deck depends only on the seed, the sample's number and the number of groups. Its flop is drawn from the
    sample's group of similar flops, turn and river from all other cards.

    street  number of the boards' street
    strata  groups of similar boards, with the group of each sample
    """
    count = len(strata.size)
    if strata.listed:
        cuts, random = np.append(0, np.cumsum(strata.size)).astype(int), np.random.default_rng((EVALUATION, seed))
        units = np.bincount(strata.stratum, minlength=count)
        return [
            board
            for number in range(count)
            for board in random.permutation(np.arange(cuts[number], cuts[number + 1]))[: units[number]].tolist()
        ]
    flops, dealt = flops_in_order(), []
    for unit, stratum in enumerate(strata.stratum.tolist()):
        random = np.random.default_rng((EVALUATION, seed, unit))
        share = (stratum + random.random()) / count
        flop = flops[min(int(share * len(flops)), len(flops) - 1)]
        remaining = random.permutation(np.setdiff1d(np.arange(CARD_COUNT), flop))
        dealt.append([*flop.tolist(), *remaining[: cards.cards_on(street) - _STRATIFIED_CARDS].tolist()])
    return dealt


class BoardSamples(SampledEvaluation):
    """Base class of evaluations whose samples are boards of one street.

    The boards are drawn from groups of similar boards (strata), a fixed number from each.

    strata  the groups and their samples, known after `draw`
    boards  [n] board of each sample: its index in the list of a game that lists boards, else its cards
    """

    strata: BoardStrata
    boards: Sequence[Any]

    def __init__(self, side: Profile, street: int, listed: int | None, seed: int) -> None:
        """Take the strategy, the number of the boards' street and the seed of the draws.

        side    the game and the strategy that is evaluated
        street  number of the boards' street, from 0
        listed  number of boards that the game lists for the street; None: boards of the full deck
        """
        self.game, self.strategy, self.sides = side.game, side.strategy, (side,)
        self.street, self.seed, self.most = street, seed, listed

    def draw(self, count: int) -> int:
        """Draw the boards of `count` samples into `boards`; return `count`."""
        self.strata = BoardStrata.of(count, 1 if count == self.most else units_each(count), self.most)
        self.boards = sample_boards(self.game.cards, self.street, self.strata, self.seed)
        return count


def flops_in_order() -> npt.NDArray[np.int64]:
    """Return [22100, 3] all flops sorted by pairs, suits and high cards.

    Similar flops are then adjacent. A row has the card numbers of a flop.
    """
    flops = np.array(list(combinations(range(CARD_COUNT), _STRATIFIED_CARDS)))
    ranks = np.sort(flops // 4, axis=1)
    suits = np.sort(flops % 4, axis=1)
    pairs = (np.diff(ranks, axis=1) == 0).sum(axis=1)
    suited = (np.diff(suits, axis=1) == 0).sum(axis=1)
    return flops[np.lexsort((ranks[:, 0], ranks[:, 1], ranks[:, 2], suited, pairs))]


def stratified95(
    value: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], strata: BoardStrata
) -> tuple[float, tuple[float, float]]:
    """Estimate the ratio of two sums over all boards; return it with its 95 % interval.

    value, weight  [n] terms of both sums on each sampled board
    strata         groups of similar boards, from which the boards were drawn

    The estimate is the combined ratio estimate (Cochran 1977, section 6.11). Its interval uses Student's t; the degrees
    of freedom are the number of samples minus that of groups. If every board of the game was drawn, the ratio is exact
    and the interval has zero width.

    Raises `ValueError` for a group of several boards with one sample.
    """
    number, size = strata.stratum, strata.size
    units = np.bincount(number, minlength=len(size))
    share = size / units
    total = float((share[number] * weight).sum())
    ratio = float((share[number] * value).sum()) / total
    undrawn = 1 - units / size if strata.listed else np.ones(len(size))
    if not undrawn.any():
        return ratio, (ratio, ratio)
    if np.any((units < 2) & (undrawn > 0)):
        raise ValueError("a stratum of several boards has one sample: at least 2 are needed")
    residual = value - ratio * weight
    mean = np.bincount(number, residual) / units
    spread = np.bincount(number, (residual - mean[number]) ** 2) / np.maximum(units - 1, 1)
    error = sqrt(float((size**2 * undrawn * spread / units).sum())) / total
    width = student95(int((units - 1)[undrawn > 0].sum())) * error
    return ratio, (ratio - width, ratio + width)
