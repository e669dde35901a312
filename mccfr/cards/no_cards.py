"""Cards of games without cards beside the tree: chance and hidden moves are tree nodes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import BoardHands, BucketPairs, Cards, Dealer, HeldBuckets
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import ListedDealer, no_deal_arrays


@dataclass(frozen=True)
class NoCards(Cards):
    """No dealt cards: one street, one bucket, every showdown a tie."""

    dealt: ClassVar[bool] = False
    source: ClassVar[str] = "the tree"

    buckets: npt.NDArray[np.int64] = field(default_factory=lambda: np.ones((1, 2), np.int64))

    def cards_on(self, street: int) -> int:
        """Return 0."""
        return 0

    @property
    def boards(self) -> int | None:
        """None: no boards."""
        return None

    @property
    def deck_size(self) -> int:
        """Smallest allowed value, 1."""
        return 1

    @property
    def most_hands(self) -> int:
        """Smallest allowed value, 1."""
        return 1

    def dealer(self, seed: int, worker: int) -> Dealer:
        """Return a dealer of bucket 0 and ties."""
        return ListedDealer(no_deal_arrays(), seed, worker)

    def board_hands(self, board: Any) -> BoardHands:
        """Raise `ValueError`: no boards."""
        raise ValueError("the game keeps its chance in the tree: boards need cards beside it")

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield bucket 0 once, with bucket 0 before."""
        one = np.zeros(1, np.int64)
        yield one, one

    def held(self) -> Iterator[HeldBuckets]:
        """Yield bucket 0 with weight 1 for each street and player."""
        for _ in range(2 * self.streets):
            yield np.zeros(1, np.int32), np.ones(1)

    @property
    def can_list(self) -> bool:
        """False: there are no hands."""
        return False

    def listed(self) -> ListedCards:
        """Raise `ValueError`: no hands."""
        raise ValueError("the game keeps its chance in the tree: this needs cards beside it")

    def after(self, street: int, board: Any) -> ListedCards:
        """Raise `ValueError`: no boards."""
        raise ValueError("the game keeps its chance in the tree: boards need cards beside it")

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Raise `ValueError`: no hands."""
        raise ValueError("the game has no cards: leave hand and board out")

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """Raise `ValueError`: no hands."""
        raise ValueError("the game has no cards: leave hand and board out")

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """Return bucket 0 with empty texts."""
        return [(0, "", "")]


NO_CARDS = NoCards()
