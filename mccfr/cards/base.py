"""Interface of a game's cards: deals, buckets, names of hands, and arrays for saved strategies.

Implementations: `mccfr.cards.no_cards` (chance is in the game tree), `mccfr.cards.card_lists` (arrays of all hands and
boards: small games, endgames) and `mccfr.cards.full_deck` (full hold'em, boards drawn from the deck). The last two also
implement `mccfr.cards.card_index`, in which hands have numbers. A saved strategy is called a policy. Streets and
players are numbered from 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals, new_deals

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

    A worker is one of the processes that train; it is given by its number. If the second street's boards are divided
    into groups that are trained separately, the number of the group takes the worker's place.
    """

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the deals of iterations first..first+count-1 into entries 0..count-1 of `deals`.

        `deals` holds the buckets and showdown results of a batch of deals.

        Raises `ValueError` if no two hands in the players' ranges were found that share no card.
        """


class BoardHands(NamedTuple):
    """Both players' hands on one full board, for public chance sampling. S streets, H hands.

    live      2 × [n] int64      numbers of the hands in each player's range without a card of the board, ascending
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

    A `Game` has one such object. Solvers take deals and buckets from it, commands the texts of hands and boards, and
    policies (saved strategies) its arrays.
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
        """Number of full boards (of the last street) if all boards are in arrays, else None."""
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
        """Return the object that draws the training deals of process number `worker`, from 0.

        seed  random seed of the run; seed, worker and iteration determine a deal
        """

    def board_hands(self, board: Any) -> BoardHands:
        """Return both players' hands that fit a full board, with weights, buckets and showdown ranks.

        board  index of the board if all boards are in arrays, else its cards in order of dealing

        Raises `ValueError` if there is no such board, or a hand in range has no bucket on it. Raises it too without
        cards, and for three and more players.
        """
        raise ValueError(_NO_CARDS)

    @abstractmethod
    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield pairs of arrays [n]: buckets of n hands on `street`, and on the street before.

        Each pair covers a few boards. Together they cover all boards of the street, up to permutations of suits, and
        all hands in the player's range. A test of perfect recall reads them.
        """

    def range_buckets(self) -> Iterator[HeldBuckets]:
        """Yield (buckets [n], weights [n]) of the hands in range, for each street and player.

        The order is street 0 with players 0 .. P-1, then street 1. If all hands and boards are in arrays, a hand occurs
        once for each board, with its range weight. Other hands come from 524,288 sampled deals, each with weight 1.
        Hands and their order do not depend on the buckets, so two abstractions can be compared hand by hand.
        """
        dealer, deals = self.dealer(0, HELD_WORKER), new_deals(HELD_DEALS, self.streets, self.buckets.shape[1])
        dealer.draw(0, HELD_DEALS, deals)
        for buckets in deals.bucket.T:
            yield buckets, np.ones(HELD_DEALS)

    @property
    def can_list(self) -> bool:
        """True if hands and boards are few enough for arrays of all of them, as `listed` returns.

        False for games with too many boards or players, and without cards.
        """
        return True

    @property
    def listing_bytes(self) -> int:
        """Additional bytes that an exact evaluation needs to list all boards."""
        return 0

    def listed(self) -> Any:
        """Return the same cards with arrays of all hands and boards, as `ListedCards`.

        Raises `ValueError` for games with too many boards or players, and if no cards are dealt.
        """
        raise ValueError(_NO_CARDS)

    def after(self, street: int, board: Any) -> Any:
        """Return the cards, as `ListedCards`, of the subgame that begins once `board` is dealt.

        street  street on which it is dealt
        board   its index if all boards are in arrays, else its cards in order of dealing

        The result has arrays of this board, the boards it continues, and all that can follow. Hands that share a card
        with it get weight 0. Raises `ValueError` for another board, without cards, and for three and more players.
        """
        raise ValueError(_NO_CARDS)

    @property
    def shared_bytes(self) -> int:
        """Size in bytes of the bucket tables that all processes of a run share; 0 without them."""
        return 0

    def in_memory(self, memory: npt.NDArray[np.uint8], *, fill: bool) -> Self:
        """Return the same cards with their bucket tables in memory that several processes share.

        memory  [shared_bytes] uint8
        fill    True: write the tables there; False: another process has already written them

        Cards without such tables return themselves.
        """
        return self

    def at_table(self) -> Any:
        """Return the cards in a form with numbered hands, `IndexedCards`, for playing hands.

        Raises `ValueError` if no cards are dealt outside of the game tree.
        """
        raise ValueError("the game has chance nodes in its tree: a table needs cards dealt outside of the tree")

    def canonical_tables(self) -> Sequence[npt.NDArray[Any]]:
        """Return for each street the buckets of all hands, [canonical boards, 1326].

        A canonical board stands for all boards that differ from it only by a permutation of suits. Raises `ValueError`
        for cards that have no such tables.
        """
        raise ValueError(f"cards dealt from {self.source} have no tables of buckets by canonical board")

    # --- texts ---

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Return the bucket of a hand on a board for a player; `hand` and `board` are texts.

        street  street of the board

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

        If all hands are in arrays, buckets that no hand of the player's range has are left out. With the full deck the
        hand text may be "bucket N" and the board text is "". In games without cards both texts are "".
        """

    @property
    def card_texts(self) -> dict[int, str]:
        """Text of each card that a hand can hold, by card number; empty if hands have no cards."""
        return {}

    # --- arrays of a policy ---

    @property
    def board_cards_by_street(self) -> Sequence[int] | None:
        """Numbers of board cards dealt on each street if boards are drawn from the deck, else None.

        It is None if all boards are in arrays, and without boards.
        """
        return None

    def bucket_table(self, street: int) -> str | None:
        """Return the name of a street's bucket table among a saved strategy's arrays; None: it has none."""
        return None

    def in_table(self, street: int) -> int:
        """Return the number of different entries of a street's bucket table.

        It is the largest number of buckets over players. Exception: entries may be percentiles of hand strength. Then
        the percentile and the hand's bucket on the street before give the bucket.
        """
        return int(self.buckets[street].max())

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield (name, array) of all arrays about the cards that a policy (saved strategy) stores.

        narrow  function from a number of buckets to the dtype of a bucket table
        """
        yield from ()

    def texts(self) -> dict[str, list[str]]:
        """Return {name: list of texts} that a saved strategy stores, such as the hands' names."""
        return {}

    @property
    def fits_policies(self) -> bool:
        """True if a policy (saved strategy) can store the buckets of all hands as tables by board.

        Then the results of `arrays` and `texts` give every hand's bucket.
        """
        return True

    # --- comparison ---

    def deals_as(self, other: "Cards") -> bool:
        """Return True if these cards and `other` deal the same hands and boards, buckets aside.

        other  cards of the same kind: the full deck, arrays of all hands and boards, or none
        """
        return True
