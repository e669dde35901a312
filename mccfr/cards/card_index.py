"""Interface of cards with numbered hands, for play, hand ranges and sampled run-outs.

Streets, players and hands are numbered from 0. A board is its cards, or its index if all boards are in arrays.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import Cards
from mccfr.cards.deals import card_masks

Board = Any
"""Board of a street: its cards in order of dealing, or the index of a listed board."""
DEALT = 1
"""Worker number of the random stream for deals at tables; sampled boards of evaluations use 0."""


class Deal(NamedTuple):
    """The cards of one deal: each player's hand, by number 0 to H-1, and the board of every street.

    A board is a tuple of card numbers in order of dealing or, if all boards are in arrays, its index.
    """

    hands: tuple[int, ...]
    boards: tuple[Board, ...]


class IndexedCards(Cards):
    """Interface of cards whose hands have numbers 0 .. H-1, the same for all players; S streets.

    Play, evaluations and views of ranges use it. `ListedCards` (arrays of all hands and boards) and `WholeDeck`
    implement it.
    """

    hand_cards: npt.NDArray[np.int16]
    """[H, 2] int16 cards of each hand, -1 where it has fewer than two."""
    reach: npt.NDArray[np.float64]
    """[P, H] float64 range weights; disjoint hands are dealt in proportion to the product."""

    def at_table(self) -> "IndexedCards":
        """Return these cards themselves, whose hands are numbered already."""
        return self

    # --- hands ---

    @property
    def deck_size(self) -> int:
        """Largest card number in a hand plus 1, at least 1."""
        return max(1, int(self.hand_cards.max()) + 1)

    @property
    def most_hands(self) -> int:
        """Number of hands in the largest range, at least 1."""
        return max(1, int((self.reach > 0).sum(axis=1).max()))

    @property
    def hand_count(self) -> int:
        """Number of hands H."""
        return len(self.hand_cards)

    def hand_masks(self) -> npt.NDArray[np.uint64]:
        """Return [H] uint64 bit masks of the hands' cards."""
        return self._masks

    @cached_property
    def _masks(self) -> npt.NDArray[np.uint64]:
        return card_masks(self.hand_cards)

    @cached_property
    def card_indices_of_hands(self) -> npt.NDArray[np.int64]:
        """[H, 2] int64 card numbers of each hand; a missing card is `deck_size`, not -1.

        So they can index an array with one value for each card and a last value for "no card".
        """
        return np.where(self.hand_cards < 0, self.deck_size, self.hand_cards).astype(np.int64)

    @cached_property
    def _whole(self) -> npt.NDArray[np.bool_]:
        """[H] bool: True for hands of two cards, False for hands of fewer."""
        return np.all(self.hand_cards >= 0, axis=1)

    def disjoint_weight(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return [H] for each hand the sum of the weights of all hands that share no card with it.

        weight  [H] float64 weight of each hand
        """
        places, deck = self.card_indices_of_hands, self.deck_size
        sums = np.bincount(places[:, 0], weight, deck + 1)
        sums += np.bincount(places[:, 1], weight, deck + 1)
        sums[deck] = 0
        disjoint: npt.NDArray[np.float64] = weight.sum() - sums[places[:, 0]] - sums[places[:, 1]]
        return disjoint + np.where(self._whole, weight, 0)

    # --- deals and boards ---

    @abstractmethod
    def deal(self, seed: int, number: int) -> Deal:
        """Return random deal `number` of `seed`, the same at each call.

        Hands that share no card are drawn in proportion to the product of their range weights. The board then avoids
        them and is uniform.
        """

    @abstractmethod
    def path(self, street: int, board: Board) -> tuple[Board, ...]:
        """Return the boards of streets 0 to `street` in a deal with `board`, which is the last."""

    @abstractmethod
    def boards_after(self, street: int, board: Board) -> list[Board]:
        """Return all boards of the next street that continue `board`, a board of `street`.

        For street -1 they are the boards of the first street.
        """

    @property
    @abstractmethod
    def first_boards(self) -> int:
        """Number of boards of the first street."""

    @abstractmethod
    def full_boards(
        self, street: int, board: Board, excluded: Sequence[int], sample_size: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """Return full boards that continue `board` without the cards `excluded`, and a factor.

        street       street of `board`; -1: before any board
        excluded     card numbers, such as those of known hands
        sample_size  at most so many boards: all if there are no more, otherwise a random sample, drawn with `rng`

        The factor corrects a mean over these boards to which a pair of hands adds 0 on boards with one of its cards.
        It is n/m: n boards continue `board` without the cards `excluded`, and m boards are possible for two hands.
        """

    @abstractmethod
    def board_mask(self, street: int, board: Board) -> np.uint64:
        """Return the cards of a board as a bit mask: bit c for card c."""

    def live(self, street: int, board: Board) -> npt.NDArray[np.bool_]:
        """Return [H] bool: True for hands that share no card with `board`, a board of `street`."""
        return np.asarray((self.hand_masks() & self.board_mask(street, board)) == 0)

    @abstractmethod
    def bucket_row(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """Return [H] int32 the bucket of each hand on a board for a player; negative: no bucket.

        Hands that share a card with the board have none. Hands outside of the player's range may have none. Raises
        `ValueError` for cards that are not a board of the street.
        """

    @abstractmethod
    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """Return each hand's [H] showdown rank on a full board: higher wins, equal ranks tie.

        It is negative if hand and board share a card.
        """

    def showdowns(self, hands: tuple[int, ...], full: Sequence[Board]) -> npt.NDArray[np.float64]:
        """Return the result of two hands on each of K full boards: +1 first wins, -1 second, 0 tie.

        hands  the numbers of the two hands
        full   the K boards

        The result is [K] float64.
        """
        strength_pairs = [self.strengths(board)[list(hands)] for board in full]
        return np.array([np.sign(float(one) - float(other)) for one, other in strength_pairs])

    # --- texts ---

    @abstractmethod
    def hand_text(self, hand: int) -> str:
        """Return the text of hand index `hand`, such as "AsKh" or "K"."""

    @abstractmethod
    def find_hands(self, text: str) -> npt.NDArray[np.int64]:
        """Return the indices [n] of the hands that a text can mean; `ValueError` if none."""

    @abstractmethod
    def board_text(self, street: int, board: Board) -> str:
        """Return a board's text, such as "Qs7h2d", in order of dealing; "" for no cards."""

    @abstractmethod
    def read_board(self, street: int, text: str | None) -> Board:
        """Return a street's first board that matches a text such as "Qs7h2d".

        The result is a tuple of card numbers or, if all boards are in arrays, an index. Raises `ValueError` if none
        matches.
        """

    @abstractmethod
    def board_deck(self) -> list[str]:
        """Return the texts of the cards that a board can hold, lowest first."""
