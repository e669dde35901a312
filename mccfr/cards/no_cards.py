"""Cards of games whose tree contains all chance and all hidden moves, so that none are dealt."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import BucketPairs, Cards, Dealer, HeldBuckets
from mccfr.cards.deals import Deals


class _TieDealer:
    """Draws deals in which every player has bucket 0 and showdowns are ties."""

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write bucket 0 and a tied showdown for `count` deals to the arrays `deals`."""
        deals.bucket[:count], deals.result[:count] = 0, 0


@dataclass(frozen=True)
class NoCards(Cards):
    """Cards of a game whose chance is all in its tree: one street, one bucket, showdowns are ties.

    buckets  [1, P] ones, for P players
    """

    dealt: ClassVar[bool] = False
    source: ClassVar[str] = "the tree"

    buckets: npt.NDArray[np.int64] = field(default_factory=lambda: np.ones((1, 2), np.int64))

    def cards_on(self, street: int) -> int:
        """Return 0, because there are no board cards."""
        return 0

    def dealer(self, seed: int, worker: int) -> Dealer:
        """Return an object that draws deals of bucket 0 and ties."""
        return _TieDealer()

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield ([0], [0]): the only bucket, on the street and on the street before."""
        one = np.zeros(1, np.int64)
        yield one, one

    def range_buckets(self) -> Iterator[HeldBuckets]:
        """Yield ([0], [1.0]) for each player: the only bucket, and its weight."""
        for _ in range(self.buckets.size):
            yield np.zeros(1, np.int32), np.ones(1)

    @property
    def can_list(self) -> bool:
        """False: there are no hands."""
        return False

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """Return [(0, "", "")]: the only bucket, with empty hand and board texts."""
        return [(0, "", "")]


NO_CARDS = NoCards()


def no_cards(players: int) -> NoCards:
    """Return the cards of a game for `players` players whose chance is all in its tree."""
    return NO_CARDS if players == 2 else NoCards(np.ones((1, players), np.int64))
