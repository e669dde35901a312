"""Every hand and every board of a small deck, listed: what is dealt, how hands rank, and which are alike by suits.

A card is rank·suits + suit.  Boards are listed street by street in order of dealing, those below one board side by
side; so a board tells what lay on the streets before, which the unordered boards of hold'em (`abstraction.boards`) do
not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, permutations
from math import comb, prod

import numpy as np
import numpy.typing as npt

from abstraction.cards import hand_cards, plain_text
from abstraction.evaluator import poker_family_strength, strengths

BLOCKED = -1
"""Number of a hand that shares a card with the board."""
_RANKS = "23456789TJQKA"
_SUITS = "cdhs"
_STANDARD, _MOST = 5, 7  # cards from which on straights and flushes count, and up to which hands are ranked
_COUNT_BITS = 3  # of a rank's cards, four at most
MAX_CELLS = 5_000_000
"""Pairs of hand and board over all streets: a second to number, and a minute to be walked in an iteration."""
_Boards = list[tuple[tuple[int, ...], ...]]  # each board as one tuple of cards for each street
_Cells = npt.NDArray[np.int64]


def rank_names(ranks: int) -> str:
    """Letters of the highest `ranks` ranks, lowest first: 3 gives QKA; small decks are named from the top."""
    return _RANKS[len(_RANKS) - ranks :]


@dataclass(frozen=True)
class DeckListing:
    """All hands and boards of a deck.  H hands, S streets, B_s boards on street s.

    ranks, suits  of the deck, 2 to 13 and 1 to 4
    hole_cards    of a hand, 1 or 2
    board_cards   [S] cards dealt to the board on each street

    Raises `ValueError` if the deck is too small for the deal, or the deal too large.
    """

    ranks: int
    suits: int
    hole_cards: int
    board_cards: tuple[int, ...]

    def __post_init__(self) -> None:
        needed = 2 * self.hole_cards + sum(self.board_cards)
        if not 1 <= self.suits <= 4 or not 2 <= self.ranks <= 13 or needed > self.cards:
            raise ValueError(
                f"a deck of {self.ranks} ranks and {self.suits} suits: 2 to 13 ranks, 1 to 4 suits, and {needed} cards "
                "are needed"
            )
        if self.hole_cards not in (1, 2) or not self.board_cards or min(self.board_cards) < 0:
            raise ValueError(
                f"hole_cards = {self.hole_cards}, board_cards = {list(self.board_cards)}: hands of 1 or 2 cards and at "
                "least 0 cards on each of one street or more are needed"
            )
        self._check_size()

    def _check_size(self) -> None:
        """Refuse, before anything is listed, cards that are too many to rank, or boards and hands to list."""
        if self.hole_cards + sum(self.board_cards) > _MOST:
            raise ValueError(
                f"{self.hole_cards} cards in a hand and {list(self.board_cards)} on the board: together they are "
                f"{_MOST} at most"
            )
        boards, street_boards = 1, []
        for dealt, before in zip(self.board_cards, accumulate(self.board_cards, initial=0), strict=False):
            boards *= comb(self.cards - before, dealt)
            street_boards.append(boards)
        cells = comb(self.cards, self.hole_cards) * sum(street_boards)
        if cells > MAX_CELLS:
            raise ValueError(
                f"a deck of {self.cards} cards with {self.hole_cards} in a hand and {list(self.board_cards)} on the "
                f"board has {cells:,} pairs of hand and board; {MAX_CELLS:,} are allowed: take fewer ranks, suits or "
                "board cards, or a hold'em game with an [abstraction]"
            )

    @property
    def cards(self) -> int:
        """Number of cards in the deck."""
        return self.ranks * self.suits

    @property
    def streets(self) -> int:
        """Number of streets."""
        return len(self.board_cards)

    def cards_on(self, street: int) -> int:
        """Board cards dealt up to and with a street."""
        return sum(self.board_cards[: street + 1])

    def next_boards(self, street: int) -> int:
        """Boards of the next street that may follow a board and a hand."""
        return comb(self.cards - self.hole_cards - self.cards_on(street), self.board_cards[street + 1])

    def run_outs(self, street: int) -> int:
        """Full boards, in order of dealing, that may follow a board and a hand."""
        return prod(self.next_boards(later) for later in range(street, self.streets - 1))

    @property
    def most_strength(self) -> int:
        """Strength of a hand that wins against every other one, 2·wins."""
        return 2 * comb(self.cards - self.hole_cards - self.cards_on(self.streets - 1), self.hole_cards)

    @cached_property
    def hands(self) -> npt.NDArray[np.int16]:
        """[H, 2] cards of each hand, -1 where it has one."""
        return hand_cards(self.cards, self.hole_cards).astype(np.int16)

    @cached_property
    def boards(self) -> tuple[npt.NDArray[np.int16], ...]:
        """S × [B_s, n] all board cards dealt up to and with a street, in order of dealing."""
        return tuple(np.array([sum(board, ()) for board in b], np.int16).reshape(len(b), -1) for b in self._dealt[0])

    @cached_property
    def parents(self) -> tuple[npt.NDArray[np.int32], ...]:
        """S × [B_s] the board of the street before."""
        return tuple(np.array(parent, np.int32) for parent in self._dealt[1])

    @cached_property
    def _dealt(self) -> tuple[list[_Boards], list[list[int]]]:
        boards: list[_Boards] = []
        parents: list[list[int]] = []
        above: _Boards = [()]
        for dealt in self.board_cards:
            here, parent = [], []
            for index, board in enumerate(above):
                used = {card for street in board for card in street}
                for cards in combinations([card for card in range(self.cards) if card not in used], dealt):
                    here.append((*board, cards))
                    parent.append(index)
            boards.append(here)
            parents.append(parent)
            above = here
        return boards, parents

    def free(self, street: int) -> npt.NDArray[np.bool_]:
        """[B, H] whether a hand shares no card with a board."""
        return _disjoint(self.hands, self.boards[street])

    # --- strengths ---

    @cached_property
    def strength(self) -> npt.NDArray[np.int32]:
        """[B_last, H] showdown order on boards of the last street, higher wins; -1 where hand and board share a card.

        Boards of the same cards are ranked once, and where suits do not count, hands of the same ranks.
        """
        known, which = np.unique(np.sort(self.boards[-1], axis=1), axis=0, return_inverse=True)
        free = _disjoint(self.hands, known)
        board, hand = np.nonzero(free)
        cards = np.concatenate([self.hands[hand][:, : self.hole_cards], known[board]], axis=1).astype(np.int64)
        strength = np.full(free.shape, BLOCKED, np.int32)
        if cards.shape[1] >= _STANDARD:
            strength[free] = strengths(cards // self.suits * 4 + cards % self.suits)
            return strength[which.reshape(-1)]
        counts = (np.int64(1) << _COUNT_BITS * (cards // self.suits)).sum(axis=1)
        _, first, alike = np.unique(counts, return_index=True, return_inverse=True)
        found = [poker_family_strength(row, (), self.ranks, self.suits) for row in cards[first].tolist()]
        strength[free] = np.array(found, np.int32)[alike]
        return strength[which.reshape(-1)]

    # --- hands that are alike ---

    def numbers(self, street: int, *, merge_suits: bool) -> npt.NDArray[np.int32]:
        """[B, H] infosets in order of first appearance, board by board; `BLOCKED` where hand and board share a card.

        Hand and board, street by street, are one infoset with others that a renaming takes them to: the least of the
        numbers that all renamings give to the pair stands for it.
        """
        codes = self._card_codes(merge_suits)
        hand, last = _groups(self.hands[:, : self.hole_cards], codes), 0
        board = np.zeros((len(codes), len(self.boards[street])), np.int64)
        for size in self.board_cards[: street + 1]:
            dealt = _groups(self.boards[street][:, last : last + size], codes)
            board = _ranks(board * (1 + int(dealt.max())) + dealt)
            last += size
        pairs = np.full((board.shape[1], len(self.hands)), np.iinfo(np.int64).max)
        for renamed_board, renamed_hand in zip(board * (1 + int(hand.max())), hand, strict=True):
            np.minimum(pairs, renamed_board[:, None] + renamed_hand, out=pairs)
        free = self.free(street)
        _, first, alike = np.unique(pairs[free], return_index=True, return_inverse=True)
        order = np.empty(len(first), np.int32)
        order[np.argsort(first)] = np.arange(len(first))
        numbers = np.full(free.shape, BLOCKED, np.int32)
        numbers[free] = order[alike]
        return numbers

    def _card_codes(self, merge: bool) -> _Cells:
        """[R, deck] what a card adds to the code of a set of cards, by renaming of suits; the first changes nothing.

        Merged, suits are renamed at will; where no hand can hold five cards, and so no flush, they do not count at all.
        """
        card = np.arange(self.cards)
        rank, suit = card // self.suits, card % self.suits
        if merge and self.hole_cards + sum(self.board_cards) < _STANDARD:
            return (np.int64(1) << _COUNT_BITS * rank)[None]
        renamings = np.array(list(permutations(range(self.suits)))[: None if merge else 1])
        return np.int64(1) << (rank * self.suits + renamings[:, suit])

    # --- text ---

    def hand_names(self, letters: str | None = None) -> list[str]:
        """[H] text of each hand, highest card first; `letters` of the ranks, lowest first, if not the highest ones."""
        names = [self.card_name(card, letters) for card in range(self.cards)]
        return ["".join(names[card] for card in hand[::-1] if card >= 0) for hand in self.hands.tolist()]

    def parse(self, text: str) -> tuple[int, ...]:
        """Cards of a text such as `AsKd`, without suits where there is one; `ValueError` for what is no card."""
        plain, numbers = plain_text(text), {self.card_name(card): card for card in range(self.cards)}
        width = 1 if self.suits == 1 else 2
        parts = [plain[place : place + width] for place in range(0, len(plain), width)]
        for part in parts:
            if part not in numbers:
                raise ValueError(f"{text!r}: {part!r} is not a card of the deck, such as {self.card_name(0)}")
        return tuple(numbers[part] for part in parts)

    def card_name(self, card: int, letters: str | None = None) -> str:
        """Text of a card: its rank, and its suit where there are several."""
        rank = (letters or rank_names(self.ranks))[card // self.suits]
        return rank if self.suits == 1 else rank + _SUITS[card % self.suits]


def _disjoint(hands: npt.NDArray[np.int16], boards: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """[B, H] whether a hand shares no card with a board."""
    return (_masks(boards)[:, None] & _masks(hands)) == 0


def _masks(cards: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
    """[N] one bit for each card of a row [N, n]; -1 is no card."""
    bits = np.where(cards >= 0, np.int64(1) << np.maximum(cards, 0).astype(np.int64), 0)
    return np.bitwise_or.reduce(bits, axis=1, dtype=np.int64)


def _groups(cards: npt.NDArray[np.int16], codes: _Cells) -> _Cells:
    """[R, N] a number for the set of cards in each row of `cards` [N, n], under each renaming; equal for equal sets."""
    return _ranks(codes[:, cards].sum(axis=2))


def _ranks(values: _Cells) -> _Cells:
    """The values, each as its place among the different ones: small numbers."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)


def same_listing(listing: DeckListing, hands: npt.NDArray[np.int16], boards: Sequence[npt.NDArray[np.int16]]) -> bool:
    """Whether hands [H, 2] and boards S × [B_s, n] are those of a listing, in its order."""
    return (
        np.array_equal(listing.hands, hands)
        and len(listing.boards) == len(boards)
        and all(np.array_equal(mine, other) for mine, other in zip(listing.boards, boards, strict=True))
    )
