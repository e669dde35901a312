"""What every kind of cards answers for itself, so that nobody else asks which kind it is.

Three kinds: `mccfr.cards.nothing` (chance and hidden moves are in the tree), `mccfr.cards.listed` (every hand and board
is in a list: small games, endgames) and `mccfr.cards.deck` (whole hold'em, whose boards are drawn and looked up).  The
last two can be dealt at a table, and answer more (`mccfr.cards.dealt`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals, new_deals

if TYPE_CHECKING:
    from mccfr.cards.dealt import DealtCards
    from mccfr.cards.listed import ListedCards

BucketPairs = Iterator[tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]]
"""Buckets of hands on a street, and of the same hands on the street before."""
HeldBuckets = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]
"""Buckets [n] of hands, and the weight [n] of each hand."""
HELD_DEALS = 1 << 19
"""Deals whose hands stand for all, where hands are not listed."""
HELD_WORKER = 1 << 33
"""Whose deals these are: a worker, so to say, that no run has, nor a trained responder."""
Difference = tuple[str, Any, Any]
"""What differs between two games, and what it is in either."""
Narrow = Callable[[int], np.dtype[Any]]
"""The dtype of a table of so many buckets; its largest number is none of them, and marks impossible hands."""


class Dealer(Protocol):
    """Draws deals; the deal of an iteration is a function of (seed, worker, iteration) alone."""

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Fill deals 0..count-1 with those of iterations first..first+count-1, in place.

        Raises `ValueError` where the ranges hardly hold two hands that can be dealt together.
        """


class BoardHands(NamedTuple):
    """A full board as `mccfr.solvers.public.sampled_board` takes it.  S streets, H hands.

    live      2 × [n]            hands of each player that the board leaves and he may hold, ascending
    weight    2 × [n] float64    his own weights of them
    bucket    [S, 2, H] int32    buckets of all hands on the boards that lead to this one
    strength  [H]                order at a showdown
    cards     [H, 2] int16       cards of each hand, -1 where it has fewer
    """

    live: list[npt.NDArray[np.int64]]
    weight: list[npt.NDArray[np.float64]]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.integer]
    cards: npt.NDArray[np.int16]


class Cards(ABC):
    """Cards beside a game's tree.  S streets."""

    dealt: ClassVar[bool] = True
    """False where nothing is dealt beside the tree."""
    source: ClassVar[str]
    """What cards are dealt from, in words."""
    stem: ClassVar[str] = ""
    """How the names of what a policy stores of them begin."""
    buckets: npt.NDArray[np.int64]
    """[S, 2] number of buckets of each street and player."""

    @property
    def streets(self) -> int:
        """Number of streets."""
        return len(self.buckets)

    # --- what is dealt ---

    @abstractmethod
    def cards_on(self, street: int) -> int:
        """Board cards dealt up to and with a street."""

    @property
    @abstractmethod
    def boards(self) -> int | None:
        """Number of full boards where they are listed; None where they are drawn from the deck."""

    @property
    @abstractmethod
    def deck_size(self) -> int:
        """Number of cards in the deck, as far as hands hold them; at the least 1."""

    @property
    @abstractmethod
    def most_hands(self) -> int:
        """Most hands that a player may have on any board; at the least 1."""

    @abstractmethod
    def dealer(self, seed: int, worker: int) -> Dealer:
        """What draws the deals of one worker."""

    @abstractmethod
    def board_hands(self, board: Any) -> BoardHands:
        """Hands on a full board, which is the number of a listed one, or cards of the deck in order of dealing.

        Raises `ValueError` for what is no such board, and for cards without boards.
        """

    @abstractmethod
    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Buckets of all hands that a player may hold on a street, and on the one before, some boards at a time."""

    def held(self) -> Iterator[HeldBuckets]:
        """Block by block, 2·street + player: buckets of the hands that the player may hold there, and their weights.

        Which hands these are, and in which order they come, depends on what is dealt alone: the same cards in other
        buckets give the same hands.  Where hands are not listed they are those of `HELD_DEALS` deals.
        """
        dealer, deals = self.dealer(0, HELD_WORKER), new_deals(HELD_DEALS, self.streets)
        dealer.draw(0, HELD_DEALS, deals)
        for buckets in deals.bucket.T:
            yield buckets, np.ones(HELD_DEALS)

    @property
    def can_list(self) -> bool:
        """Whether `listed` is possible."""
        return True

    @property
    def listing_bytes(self) -> int:
        """Memory that an exact evaluation needs for lists that are not there yet."""
        return 0

    @abstractmethod
    def listed(self) -> "ListedCards":
        """The same cards with every hand and board in a list; `ValueError` where there are none, or too many."""

    @abstractmethod
    def after(self, street: int, board: Any) -> "ListedCards":
        """The cards once a board of a street lies: that one and those it was dealt on, and all that may follow.

        board  number of a listed board of the street, or cards of the deck in order of dealing
        Hands that the board leaves are reached as before, others not.  Raises `ValueError` for what is no such board.
        """

    def seated(self, other: "Cards") -> "Cards":
        """The same cards where player 0 remembers them as here and player 1 as in `other`, each in his own buckets.

        Raises `ValueError` for cards of another kind, or none.
        """
        raise self.apart(other)

    def apart(self, other: "Cards") -> ValueError:
        """What `seated` raises for cards that cannot be dealt together."""
        return ValueError(f"cards dealt from {self.source} and from {other.source} cannot be dealt in one game")

    @property
    def shared_bytes(self) -> int:
        """Memory of tables that all processes of a run share (`in_memory`)."""
        return 0

    def in_memory(self, memory: npt.NDArray[np.uint8], *, fill: bool) -> Self:
        """The cards with their tables in `memory` [shared_bytes], filled here in place or by another process before."""
        return self

    def at_table(self) -> "DealtCards":
        """The same cards, to be dealt hand by hand and asked for ranges and boards; `ValueError` where none are."""
        raise ValueError("the game keeps its chance in the tree: a table deals cards beside it")

    def canonical_tables(self) -> Sequence[npt.NDArray[Any]]:
        """[canonical boards, 1326] buckets of each street, by `abstraction.boards`; `ValueError` for other cards."""
        raise ValueError(f"cards dealt from {self.source} have no tables of buckets by canonical board")

    # --- what people write and read ---

    @abstractmethod
    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Bucket of a hand on a board for a player, all as text.

        Raises `ValueError` where hand or board name nothing, share a card, are outside the player's range, or may mean
        several infosets; the message says what is allowed.
        """

    @abstractmethod
    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """{hand: bucket} of every hand in a player's range that the board leaves; `ValueError` as in `hand_bucket`."""

    @abstractmethod
    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """(bucket, hand, board) of every bucket that can occur, ascending; of several hands the first."""

    @property
    def card_texts(self) -> dict[int, str]:
        """Text of every card that a hand may hold, by its number; empty where hands have none."""
        return {}

    # --- what a policy stores ---

    @property
    def drawn(self) -> Sequence[int] | None:
        """Cards dealt to the board on each street, where boards are drawn from the deck; None where they are listed."""
        return None

    def bucket_table(self, street: int) -> str | None:
        """Name of a street's table in `arrays`; None where hands have no buckets."""
        return None

    def in_table(self, street: int) -> int:
        """Number of buckets that a street's table knows."""
        return int(self.buckets[street].max())

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """All arrays by name, one large one made at a time; tables of buckets in the dtype that `narrow` gives them."""
        yield from ()

    def texts(self) -> dict[str, list[str]]:
        """All lists of text by name."""
        return {}

    @property
    def fits_policies(self) -> bool:
        """Whether `arrays` and `texts` say all that finds a hand's bucket, as a policy needs it."""
        return True

    def same_tables(self, other: "Cards") -> bool:
        """Whether tables of buckets of one abstraction serve both; small ones are never shared."""
        return False

    # --- what differs ---

    def differences(self, other: "Cards") -> Iterator[Difference]:
        """What two players of one game would see that is not the same, buckets apart."""
        yield from unequal("what cards are dealt from", self.source, other.source)


def unequal(what: str, one: Any, other: Any) -> Iterator[Difference]:
    """The difference of two values that should be equal."""
    if one != other:
        yield what, one, other


def unlike(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """The places where two arrays of one shape differ, and what stands there."""
    for place in np.argwhere(np.asarray(one) != np.asarray(other)).tolist():
        yield tuple(place), one[tuple(place)].item(), other[tuple(place)].item()
