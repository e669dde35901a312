"""Interface of cards with numbered hands and boards, for tables, ranges and run-outs."""

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
    """The cards of one hand of poker: the index of each player's hand, and the board of every street."""

    hands: tuple[int, ...]
    boards: tuple[Board, ...]


class IndexedCards(Cards):
    """Interface of cards with numbered hands, for tables and ranges. H hands, one list for all; S streets."""

    hand_cards: npt.NDArray[np.int16]
    """[H, 2] int16 cards of each hand, -1 where it has fewer than two."""
    reach: npt.NDArray[np.float64]
    """[P, H] float64 range weights; disjoint hands are dealt in proportion to the product."""

    def at_table(self) -> "IndexedCards":
        """Return these cards, whose hands are numbered already."""
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
        """[H, 2] cards of each hand, `deck_size` instead of a missing card: indices into sums by card."""
        return np.where(self.hand_cards < 0, self.deck_size, self.hand_cards).astype(np.int64)

    @cached_property
    def _whole(self) -> npt.NDArray[np.bool_]:
        """[H] True for hands of two cards, whose weight is counted twice, once for each card, in sums by card."""
        return np.all(self.hand_cards >= 0, axis=1)

    def disjoint_weight(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return [H], for each hand, the total of weights [H] of all hands that share no card with it."""
        places, deck = self.card_indices_of_hands, self.deck_size
        sums = np.bincount(places[:, 0], weight, deck + 1)
        sums += np.bincount(places[:, 1], weight, deck + 1)
        sums[deck] = 0
        disjoint: npt.NDArray[np.float64] = weight.sum() - sums[places[:, 0]] - sums[places[:, 1]]
        return disjoint + np.where(self._whole, weight, 0)

    # --- deals and boards ---

    @abstractmethod
    def deal(self, seed: int, number: int) -> Deal:
        """Return deal `number` of a seed: disjoint hands in proportion to their weights, and a disjoint board."""

    @abstractmethod
    def path(self, street: int, board: Board) -> tuple[Board, ...]:
        """Return the boards of streets 0 to `street` that lead to `board`, that one included."""

    @abstractmethod
    def boards_after(self, street: int, board: Board) -> list[Board]:
        """Return the boards of the next street after `board`; for street -1, those of the first street."""

    @property
    @abstractmethod
    def first_boards(self) -> int:
        """Number of boards of the first street."""

    @abstractmethod
    def full_boards(
        self, street: int, board: Board, excluded: Sequence[int], sample_size: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """Return full boards after `board` without the cards `excluded`: all, or a sample of `sample_size`.

        The second result is a factor for means over these boards: their number, divided by how many of all following
        boards are disjoint from any one pair of hands.
        """

    @abstractmethod
    def board_mask(self, street: int, board: Board) -> np.uint64:
        """Return the cards of a board as a bit mask: bit c for card c."""

    def live(self, street: int, board: Board) -> npt.NDArray[np.bool_]:
        """Return [H] bool: True for hands disjoint from the board."""
        return np.asarray((self.hand_masks() & self.board_mask(street, board)) == 0)

    @abstractmethod
    def bucket_row(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """Return [H] the bucket of each of a player's hands on a board; negative if impossible.

        Raises `ValueError` if the street has no such board.
        """

    @abstractmethod
    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """Return [H] the showdown order of each hand on a full board; negative if they share a card."""

    def showdowns(self, hands: tuple[int, ...], full: Sequence[Board]) -> npt.NDArray[np.float64]:
        """Return [K] showdowns of two hands on full boards: +1 the first wins, -1 the second, 0 a tie."""
        strength_pairs = [self.strengths(board)[list(hands)] for board in full]
        return np.array([np.sign(float(one) - float(other)) for one, other in strength_pairs])

    # --- texts ---

    @abstractmethod
    def hand_text(self, hand: int) -> str:
        """Return a hand's text, in the form that `hand_bucket` reads."""

    @abstractmethod
    def find_hands(self, text: str) -> npt.NDArray[np.int64]:
        """Return the hands that a text can mean, at least one; `ValueError` if there is none."""

    @abstractmethod
    def board_text(self, street: int, board: Board) -> str:
        """Return a board's text in order of dealing, in the form that `hand_bucket` reads; "" for no cards."""

    @abstractmethod
    def read_board(self, street: int, text: str | None) -> Board:
        """Return the first board of a street that matches a text; `ValueError` if there is none."""

    @abstractmethod
    def board_deck(self) -> list[str]:
        """Return the texts of the cards that a board can hold, lowest first."""
