"""Full-deck cards for two players with different card abstractions.

A deal keeps its nine cards; each player's buckets are looked up from them in that player's tables.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import BoardHands, BucketPairs, Cards, Dealer
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.full_deck_deals import PerPlayerDealer

if TYPE_CHECKING:
    from mccfr.cards.full_deck import WholeDeck


@dataclass(frozen=True)
class PerPlayerDeck(Cards):
    """Cards of a full hold'em game in which each player has their own card abstraction.

    decks    one for each player; both must deal the same cards (`Cards.differences`)
    buckets  [S, 2] int64 number of buckets of each street and player
    """

    source: ClassVar[str] = "the whole deck"

    decks: tuple["WholeDeck", "WholeDeck"]
    buckets: npt.NDArray[np.int64]

    def cards_on(self, street: int) -> int:
        """Return the number of board cards on `street`."""
        return self.decks[0].cards_on(street)

    @property
    def deck_size(self) -> int:
        """Number of cards in the deck, 52."""
        return self.decks[0].deck_size

    @property
    def most_hands(self) -> int:
        """Number of two-card hands, 1,326."""
        return self.decks[0].most_hands

    def dealer(self, seed: int, worker: int) -> Dealer:
        """Return a worker's dealer."""
        return PerPlayerDealer(
            [deck.lookup for deck in self.decks], [deck.histories for deck in self.decks], seed, worker
        )

    def board_hands(self, board: Any) -> BoardHands:
        """Return the hands on a full board."""
        own, others = (deck.board_hands(board) for deck in self.decks)
        return own._replace(bucket=np.stack([own.bucket[:, 0], others.bucket[:, 1]], axis=1))

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield buckets on `street` and the street before."""
        return self.decks[player].bucket_pairs(street, player)

    @property
    def can_list(self) -> bool:
        """True if all boards can be listed: games that end on the flop."""
        return self.decks[0].can_list

    @property
    def listing_bytes(self) -> int:
        """Bytes needed to list all boards."""
        return self.decks[0].listing_bytes

    def listed(self) -> ListedCards:
        """Return the cards with all boards listed."""
        own, others = (deck.listed() for deck in self.decks)
        return own.with_opponent(others)

    def after(self, street: int, board: Any) -> ListedCards:
        """Return the cards of the subgame after `board`."""
        own, others = (deck.after(street, board) for deck in self.decks)
        return own.with_opponent(others)

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Return the player's bucket of a hand."""
        return self.decks[player].hand_bucket(street, player, hand, board)

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """Return the player's {hand: bucket} on a board."""
        return self.decks[player].hand_buckets(street, player, board)

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """Return (bucket, hand, board) of every bucket."""
        return self.decks[player].bucket_texts(street, player)
