"""The whole deck as two players know it who have a card abstraction each: a deal says each one's buckets in his own.

A deal keeps its nine cards, and both players' buckets are looked up from them, each in his own tables.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.cards.cards import BoardHands, BucketPairs, Cards, Dealer
from mccfr.cards.deck_deals import SeatedDealer
from mccfr.cards.listed import ListedCards

if TYPE_CHECKING:
    from mccfr.cards.deck import WholeDeck


@dataclass(frozen=True)
class SeatedDeck(Cards):
    """Cards of a whole hold'em game; what concerns a player is asked of his deck.

    decks    by player; they must deal the same cards (`Cards.differences`)
    buckets  [S, 2] int64 number of buckets of each street and player
    """

    source: ClassVar[str] = "the whole deck"

    decks: tuple["WholeDeck", "WholeDeck"]
    buckets: npt.NDArray[np.int64]

    def cards_on(self, street: int) -> int:
        """As `Cards.cards_on`."""
        return self.decks[0].cards_on(street)

    @property
    def boards(self) -> int | None:
        """As `Cards.boards`."""
        return None

    @property
    def deck_size(self) -> int:
        """As `Cards.deck_size`."""
        return self.decks[0].deck_size

    @property
    def most_hands(self) -> int:
        """As `Cards.most_hands`."""
        return self.decks[0].most_hands

    def dealer(self, seed: int, worker: int) -> Dealer:
        """As `Cards.dealer`."""
        tables, histories = [deck.lookup for deck in self.decks], [deck.histories for deck in self.decks]
        return SeatedDealer(tables, histories, seed, worker)

    def board_hands(self, board: Any) -> BoardHands:
        """As `Cards.board_hands`."""
        own, others = (deck.board_hands(board) for deck in self.decks)
        return own._replace(bucket=np.stack([own.bucket[:, 0], others.bucket[:, 1]], axis=1))

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """As `Cards.bucket_pairs`."""
        return self.decks[player].bucket_pairs(street, player)

    @property
    def can_list(self) -> bool:
        """As `Cards.can_list`."""
        return self.decks[0].can_list

    @property
    def listing_bytes(self) -> int:
        """As `Cards.listing_bytes`."""
        return self.decks[0].listing_bytes

    def listed(self) -> ListedCards:
        """As `Cards.listed`."""
        own, others = (deck.listed() for deck in self.decks)
        return own.seated(others)

    def after(self, street: int, board: Any) -> ListedCards:
        """As `Cards.after`."""
        own, others = (deck.after(street, board) for deck in self.decks)
        return own.seated(others)

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """As `Cards.hand_bucket`."""
        return self.decks[player].hand_bucket(street, player, hand, board)

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """As `Cards.hand_buckets`."""
        return self.decks[player].hand_buckets(street, player, board)

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """As `Cards.bucket_texts`."""
        return self.decks[player].bucket_texts(street, player)
