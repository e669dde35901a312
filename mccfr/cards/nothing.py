"""No cards: games that keep chance and hidden moves in their trees."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.cards.cards import BoardHands, BucketPairs, Cards, Dealer, HeldBuckets
from mccfr.cards.deals import ListedDealer, no_deal_arrays
from mccfr.cards.listed import ListedCards


@dataclass(frozen=True)
class NoCards(Cards):
    """Nothing is dealt: one street, one bucket, every showdown a tie."""

    dealt: ClassVar[bool] = False
    source: ClassVar[str] = "the tree"

    buckets: npt.NDArray[np.int64] = field(default_factory=lambda: np.ones((1, 2), np.int64))

    def cards_on(self, street: int) -> int:
        """As `Cards.cards_on`."""
        return 0

    @property
    def boards(self) -> int | None:
        """As `Cards.boards`."""
        return None

    @property
    def deck_size(self) -> int:
        """As `Cards.deck_size`."""
        return 1

    @property
    def most_hands(self) -> int:
        """As `Cards.most_hands`."""
        return 1

    def dealer(self, seed: int, worker: int) -> Dealer:
        """As `Cards.dealer`."""
        return ListedDealer(no_deal_arrays(), seed, worker)

    def board_hands(self, board: Any) -> BoardHands:
        """There are no boards."""
        raise ValueError("the game keeps its chance in the tree: boards need cards beside it")

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """There is one bucket."""
        one = np.zeros(1, np.int64)
        yield one, one

    def held(self) -> Iterator[HeldBuckets]:
        """There is one bucket."""
        for _ in range(2 * self.streets):
            yield np.zeros(1, np.int32), np.ones(1)

    @property
    def can_list(self) -> bool:
        """As `Cards.can_list`."""
        return False

    def listed(self) -> ListedCards:
        """There are none."""
        raise ValueError("the game keeps its chance in the tree: this needs cards beside it")

    def after(self, street: int, board: Any) -> ListedCards:
        """There are none."""
        raise ValueError("the game keeps its chance in the tree: boards need cards beside it")

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """As `Cards.hand_bucket`."""
        raise ValueError("the game has no cards: leave hand and board out")

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """As `Cards.hand_buckets`."""
        raise ValueError("the game has no cards: leave hand and board out")

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """As `Cards.bucket_texts`."""
        return [(0, "", "")]


NO_CARDS = NoCards()
