"""Interface of a game's cards: dealing, buckets, texts, and the arrays that a policy stores.

Implementations: `mccfr.cards.no_cards` (chance is in the tree), `mccfr.cards.card_lists` (all hands and boards are
listed: small games, endgames) and `mccfr.cards.full_deck` (full hold'em, boards drawn from the deck). The last two also
implement `mccfr.cards.card_index`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals, new_deals

if TYPE_CHECKING:
    from mccfr.cards.card_index import IndexedCards
    from mccfr.cards.card_lists import ListedCards

BucketPairs = Iterator[tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]]
"""Iterator of pairs: buckets of some hands on a street, and their buckets on the street before."""
HeldBuckets = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]
"""Buckets [n] of hands, and the weight [n] of each hand."""
HELD_DEALS = 1 << 19
"""Number of sampled deals from which `Cards.range_buckets` takes its hands if hands are not listed."""
HELD_WORKER = 1 << 33
"""Worker number of the stream for `Cards.range_buckets`; no worker of a run has this number."""
Narrow = Callable[[int], np.dtype[Any]]
"""Maps a number of buckets to a dtype whose largest value marks impossible hands, not a bucket."""

_NO_CARDS = "the game has no cards: leave hand and board out, or take a game that deals cards"


class Dealer(Protocol):
    """Draws training deals; the deal of an iteration depends on (seed, worker, iteration) alone.

    If boards are grouped into strata that are trained separately (`mccfr.cards.board_strata`), the stratum takes the
    worker's place.
    """

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the deals of iterations first..first+count-1 into entries 0..count-1 of `deals`.

        Raises `ValueError` if no two hands in the players' ranges were found that share no card.
        """


class BoardHands(NamedTuple):
    """Both players' hands on one full board, for public chance sampling. S streets, H hands.

    live      2 × [n] int64      hands in each player's range that share no card with the board, ascending
    weight    2 × [n] float64    their weights in that player's range
    bucket    [S, 2, H] int32    buckets of all hands on this board and the boards before it
    strength  [H]                rank of each hand at the showdown, higher wins; equal ranks tie
    cards     [H, 2] int16       cards of each hand, -1 where it has fewer
    """

    live: list[npt.NDArray[np.int64]]
    weight: list[npt.NDArray[np.float64]]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.integer]
    cards: npt.NDArray[np.int16]


class Cards(ABC):
    """Interface of cards dealt outside of a game's tree (not as chance nodes). S streets, P players.

    A `Game` has one such object. Solvers take deals and buckets from it, policies and commands its texts and arrays.
    """

    dealt: ClassVar[bool] = True
    """False if all chance is in the tree and no cards are dealt beside it."""
    source: ClassVar[str]
    """Phrase for messages: what the cards are dealt from, such as "the whole deck"."""
    stem: ClassVar[str] = ""
    """Prefix of the names of a policy's arrays that describe the cards."""
    buckets: npt.NDArray[np.int64]
    """[S, P] number of buckets of each street and player."""

    @property
    def streets(self) -> int:
        """Number of streets: betting rounds, each with the board cards dealt before it."""
        return len(self.buckets)

    # --- deals ---

    @abstractmethod
    def cards_on(self, street: int) -> int:
        """Return the number of board cards dealt up to and including `street`."""

    @property
    def boards(self) -> int | None:
        """Number of full boards (those of the last street) if boards are listed, else None."""
        return None

    @property
    def deck_size(self) -> int:
        """Number of cards in the deck that hands can hold, at least 1."""
        return 1

    @property
    def most_hands(self) -> int:
        """Largest number of hands in a player's range on any board, at least 1."""
        return 1

    @abstractmethod
    def dealer(self, seed: int, worker: int) -> Dealer:
        """Return the object that draws one worker's training deals."""

    def board_hands(self, board: Any) -> BoardHands:
        """Return both players' hands that fit a full board, with weights, buckets and showdown ranks.

        board  index of a listed board, or its cards in order of dealing

        Raises `ValueError` if there is no such board, or if the game has no boards.
        """
        raise ValueError(_NO_CARDS)

    @abstractmethod
    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield hands' (buckets on `street`, buckets on the street before), a few boards at a time.

        Each pair of arrays is for the same hands [n]. All hands in the player's range occur on all boards, up to
        permutations of suits. A test of perfect recall reads them.
        """

    def range_buckets(self) -> Iterator[HeldBuckets]:
        """Yield (buckets, weights) of the hands in range, for each street and player.

        The order is street 0 with players 0 .. P-1, then street 1. Listed hands occur once for each board, with their
        range weight. Other hands come from 524,288 sampled deals (`HELD_DEALS`), each with weight 1. Hands and their
        order do not depend on the buckets, so that two abstractions of the same cards can be compared hand by hand.
        """
        dealer, deals = self.dealer(0, HELD_WORKER), new_deals(HELD_DEALS, self.streets, self.buckets.shape[1])
        dealer.draw(0, HELD_DEALS, deals)
        for buckets in deals.bucket.T:
            yield buckets, np.ones(HELD_DEALS)

    @property
    def can_list(self) -> bool:
        """True if all hands and boards can be listed (`listed`)."""
        return True

    @property
    def listing_bytes(self) -> int:
        """Additional bytes that an exact evaluation needs to list all boards."""
        return 0

    def listed(self) -> "ListedCards":
        """Return the same cards with all hands and boards listed; `ValueError` if impossible."""
        raise ValueError(_NO_CARDS)

    def after(self, street: int, board: Any) -> "ListedCards":
        """Return the listed cards of the subgame that begins once `board` is dealt on `street`.

        board  index of a listed board of the street, or its cards in order of dealing

        The lists hold this board, its predecessors, and all boards that can follow. Hands that share a card with it get
        weight 0. Raises `ValueError` if there is no such board.
        """
        raise ValueError(_NO_CARDS)

    @property
    def shared_bytes(self) -> int:
        """Size in bytes of the tables that all processes of a run share (`in_memory`)."""
        return 0

    def in_memory(self, memory: npt.NDArray[np.uint8], *, fill: bool) -> Self:
        """Return the cards with their tables in `memory` [shared_bytes].

        fill  True: write the tables there; False: another process has already written them
        """
        return self

    def at_table(self) -> "IndexedCards":
        """Return the cards as `IndexedCards`, for play; `ValueError` if no cards are dealt."""
        raise ValueError("the game has chance nodes in its tree: a table needs cards dealt outside of the tree")

    def canonical_tables(self) -> Sequence[npt.NDArray[Any]]:
        """Return for each street the buckets of all hands, [canonical boards, 1326].

        A canonical board stands for all boards that are equal to it up to suits (`abstraction.boards`). Raises
        `ValueError` for cards that have no such tables.
        """
        raise ValueError(f"cards dealt from {self.source} have no tables of buckets by canonical board")

    # --- texts ---

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Return the bucket of a hand on a board for a player, from their texts.

        Raises `ValueError` if hand or board is invalid, they share a card, the hand is outside the player's range, or
        the text matches several infosets. The message lists valid texts.
        """
        raise ValueError(_NO_CARDS)

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """Return {hand text: bucket} of the player's range on a board; `ValueError` for an invalid board."""
        raise ValueError(_NO_CARDS)

    @abstractmethod
    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """Return (bucket, hand text, board text) of one example hand for each bucket, ascending.

        If hands are listed, buckets that no hand of the player's range has are left out. With the full deck the hand
        text may be "bucket N" and the board text is "". In games without cards both texts are "".
        """

    @property
    def card_texts(self) -> dict[int, str]:
        """Text of each card that a hand can hold, by card number; empty if hands have no cards."""
        return {}

    # --- arrays of a policy ---

    @property
    def board_cards_by_street(self) -> Sequence[int] | None:
        """Board cards dealt on each street if boards are drawn from the deck; None if they are listed."""
        return None

    def bucket_table(self, street: int) -> str | None:
        """Return the name of a street's bucket table in the result of `arrays`; None without one."""
        return None

    def in_table(self, street: int) -> int:
        """Return the number of different entries of a street's bucket table.

        It is the largest number of buckets over players. Exception: if a bucket also depends on the bucket of the
        street before, entries are percentiles (`abstraction.recall_buckets`).
        """
        return int(self.buckets[street].max())

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield (name, array) of all arrays on the cards that a policy stores.

        narrow  function from a number of buckets to the dtype of a bucket table
        """
        yield from ()

    def texts(self) -> dict[str, list[str]]:
        """Return {name: list of texts} of the texts that a policy stores, such as hand names."""
        return {}

    @property
    def fits_policies(self) -> bool:
        """True if a policy can store the cards: `arrays` and `texts` give every hand's bucket."""
        return True

    # --- comparison ---

    def deals_as(self, other: "Cards") -> bool:
        """Return True if both deal the same hands and boards; buckets may differ.

        other  cards dealt from the same `source`, such as "the whole deck"
        """
        return True
