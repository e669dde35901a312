"""Cards whose hands and boards have numbers and texts: what tables, ranges and run-outs ask of them."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.cards import Cards
from mccfr.cards.deals import card_masks

Board = Any
"""The board of a street: cards in order of dealing, or the number of a listed one."""
DEALT = 1
"""Worker, so to say, whose stream deals at tables: boards of other evaluations have number 0."""


class Deal(NamedTuple):
    """Two hands, by their numbers, and the board of every street."""

    hands: tuple[int, int]
    boards: tuple[Board, ...]


class DealtCards(Cards):
    """Cards beside a betting tree.  H hands in one list for both players, S streets."""

    hand_cards: npt.NDArray[np.int16]
    """[H, 2] int16 cards of each hand, -1 where it has fewer than two."""
    reach: npt.NDArray[np.float64]
    """[2, H] float64 each player's weight of each hand; a disjoint pair is dealt in proportion to the product."""

    def at_table(self) -> "DealtCards":
        """These."""
        return self

    # --- hands ---

    @property
    def hand_count(self) -> int:
        """H."""
        return len(self.hand_cards)

    def hand_masks(self) -> npt.NDArray[np.uint64]:
        """[H] uint64: one bit for each card of a hand."""
        return self._masks

    @cached_property
    def _masks(self) -> npt.NDArray[np.uint64]:
        return card_masks(self.hand_cards)

    @cached_property
    def hand_places(self) -> npt.NDArray[np.int64]:
        """[H, 2] cards of each hand, `deck_size` where it has fewer than two: places in sums by card."""
        return np.where(self.hand_cards < 0, self.deck_size, self.hand_cards).astype(np.int64)

    @cached_property
    def _whole(self) -> npt.NDArray[np.bool_]:
        """[H] hands of two cards: a sum by card holds their own weight twice."""
        return np.all(self.hand_cards >= 0, axis=1)

    def disjoint_weight(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """[H] by hand, the sum of the weights [H] of all hands that share no card with it."""
        places, deck = self.hand_places, self.deck_size
        sums = np.bincount(places[:, 0], weight, deck + 1)
        sums += np.bincount(places[:, 1], weight, deck + 1)
        sums[deck] = 0
        found: npt.NDArray[np.float64] = weight.sum() - sums[places[:, 0]] - sums[places[:, 1]]
        return found + np.where(self._whole, weight, 0)

    # --- deals and boards ---

    @abstractmethod
    def deal(self, seed: int, number: int) -> Deal:
        """Deal `number` of a seed: two hands in proportion to their weights, and a board that hits neither."""

    @abstractmethod
    def path(self, street: int, board: Board) -> tuple[Board, ...]:
        """The boards of all streets up to one of a street, that one included."""

    @abstractmethod
    def boards_after(self, street: int, board: Board) -> list[Board]:
        """The boards of the next street that may follow; of street -1 (and any board) those of the first street."""

    @property
    @abstractmethod
    def first_boards(self) -> int:
        """Number of boards of the first street."""

    @abstractmethod
    def full_boards(
        self, street: int, board: Board, taken: Sequence[int], most: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """Full boards after a board without the cards `taken`: all, or `most` drawn from them.

        Besides, what a mean over them is multiplied with: each pair of hands meets on 1 in so many of them.
        """

    @abstractmethod
    def board_mask(self, street: int, board: Board) -> np.uint64:
        """One bit for each card of a board."""

    def live(self, street: int, board: Board) -> npt.NDArray[np.bool_]:
        """[H] which hands a board leaves."""
        return np.asarray((self.hand_masks() & self.board_mask(street, board)) == 0)

    @abstractmethod
    def bucket_row(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """[H] bucket of every hand of a player on a board; below 0 where it cannot be.

        Raises `ValueError` for what is no board of the street.
        """

    @abstractmethod
    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """[H] showdown order of every hand on a full board, below 0 where it hits the hand."""

    def showdowns(self, hands: tuple[int, int], full: Sequence[Board]) -> npt.NDArray[np.float64]:
        """[K] showdowns of two hands on full boards: +1 the first wins, -1, 0."""
        found = [self.strengths(board)[list(hands)] for board in full]
        return np.array([np.sign(float(one) - float(other)) for one, other in found])

    # --- what people write and read ---

    @abstractmethod
    def hand_text(self, hand: int) -> str:
        """A hand as `hand_bucket` reads it."""

    @abstractmethod
    def find_hands(self, text: str) -> npt.NDArray[np.int64]:
        """Hands that a text may mean, at least one; `ValueError` where it means none."""

    @abstractmethod
    def board_text(self, street: int, board: Board) -> str:
        """A board as `hand_bucket` reads it, in order of dealing; "" where the street has none."""

    @abstractmethod
    def read_board(self, street: int, text: str | None) -> Board:
        """The board of a text, of several that look alike the first; `ValueError` where it is none of the street's."""

    @abstractmethod
    def board_deck(self) -> list[str]:
        """Texts of the cards that a board may hold, the lowest first."""
