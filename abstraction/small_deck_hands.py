"""Lists all hands and boards of a small deck, with showdown strengths and suit-isomorphism classes.

A card is rank·suits + suit.  Boards are listed for each street in order of dealing, those that follow one board side by
side.  So a board determines the earlier boards, unlike the unordered boards of hold'em (`abstraction.boards`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, permutations
from math import comb, prod

import numpy as np
import numpy.typing as npt

from abstraction.cards import RANKS, SUITS, hand_cards, plain_text
from abstraction.hand_evaluator import strengths

BLOCKED = -1
"""Number of a hand that shares a card with the board."""
_STANDARD, _MOST = 5, 7  # least cards for straights and flushes; most cards of a ranked hand
_COUNT_BITS = 3  # bits for the count of a rank's cards, at most four
MAX_CELLS = 5_000_000
"""Limit of pairs of hand and board over all streets: numbering takes a second, one iteration over them a minute."""
_Boards = list[tuple[tuple[int, ...], ...]]  # each board as one tuple of cards for each street
_Cells = npt.NDArray[np.int64]


def rank_names(ranks: int) -> str:
    """Return the letters of the highest `ranks` ranks, lowest first; 3 gives "QKA"."""
    return RANKS[len(RANKS) - ranks :]


def few_cards_strength(card_ranks: Sequence[int], ranks: int) -> int:
    """Return the strength of one to four cards by their ranks; higher is better, equal is a tie.

    card_ranks  rank of each card, from 0
    ranks       number of ranks in the deck

    Only n of a kind and kickers count, as in ACPC and OpenSpiel's universal_poker.  Strengths of different numbers of
    cards cannot be compared.
    """
    groups = sorted(((card_ranks.count(rank), rank) for rank in set(card_ranks)), reverse=True)
    groups += [(0, 0)] * (len(card_ranks) - len(groups))  # equal number of digits for every hand of this size
    value = 0
    for count, _ in groups:
        value = value * 8 + count
    for _, rank in groups:
        value = value * ranks + rank
    return value


@dataclass(frozen=True)
class DeckListing:
    """A small deck, and the lists of all its hands and boards, for games and abstraction builds.

    There are H hands, S streets and B_s boards on street s, in order of dealing.

    ranks, suits  number of each in the deck, 2 to 13 and 1 to 4
    hole_cards    number of cards in a hand, 1 or 2
    board_cards   [S] number of cards dealt to the board on each street

    Raises `ValueError` if the deck is too small for the deal, or the listing would be too large.
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
        """Raise `ValueError` if hand and board together, or the lists of both, are too large.

        More than seven cards cannot be ranked.  At most 5,000,000 pairs of hand and board are listed.
        """
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
        """Return the number of board cards dealt up to and including street number `street`."""
        return sum(self.board_cards[: street + 1])

    def next_boards(self, street: int) -> int:
        """Return the number of boards of the next street that can follow a board and a hand.

        street  number of the board's street, from 0; not the last
        """
        return comb(self.cards - self.hole_cards - self.cards_on(street), self.board_cards[street + 1])

    def run_outs(self, street: int) -> int:
        """Return the number of full boards, in order of dealing, that can follow a board and a hand.

        street  number of the board's street, from 0; the result is 1 for the last
        """
        return prod(self.next_boards(later) for later in range(street, self.streets - 1))

    @property
    def most_strength(self) -> int:
        """Largest strength 2·wins + ties: twice the number of opponent hands, as all are beaten."""
        return 2 * comb(self.cards - self.hole_cards - self.cards_on(self.streets - 1), self.hole_cards)

    @cached_property
    def hands(self) -> npt.NDArray[np.int16]:
        """[H, 2] cards of each hand; the second is −1 for hands of one card."""
        return hand_cards(self.cards, self.hole_cards).astype(np.int16)

    @cached_property
    def boards(self) -> tuple[npt.NDArray[np.int16], ...]:
        """One array [B_s, n] for each street: the cards of each board, in order of dealing.

        n counts all board cards dealt up to and including the street.
        """
        return tuple(np.array([sum(board, ()) for board in b], np.int16).reshape(len(b), -1) for b in self._dealt[0])

    @cached_property
    def parents(self) -> tuple[npt.NDArray[np.int32], ...]:
        """One array [B_s] for each street: index of the board that each continues; 0 on street 0.

        The index is that of the board's earlier cards among the boards of the street before.
        """
        return tuple(np.array(parent, np.int32) for parent in self._dealt[1])

    @cached_property
    def _dealt(self) -> tuple[list[_Boards], list[list[int]]]:
        boards: list[_Boards] = []
        parents: list[list[int]] = []
        above: _Boards = [()]
        for dealt in self.board_cards:
            boards_of_street, parent = [], []
            for index, board in enumerate(above):
                used = {card for street in board for card in street}
                for cards in combinations([card for card in range(self.cards) if card not in used], dealt):
                    boards_of_street.append((*board, cards))
                    parent.append(index)
            boards.append(boards_of_street)
            parents.append(parent)
            above = boards_of_street
        return boards, parents

    def free(self, street: int) -> npt.NDArray[np.bool_]:
        """Return [B, H] bool: True if a hand and a board of the street share no card."""
        return disjoint(self.hands, self.boards[street])

    # --- strengths ---

    @cached_property
    def strength(self) -> npt.NDArray[np.int32]:
        """[B_last, H] showdown strength on boards of the last street, higher wins; −1 for a shared card."""
        final_boards, which = np.unique(np.sort(self.boards[-1], axis=1), axis=0, return_inverse=True)
        free = disjoint(self.hands, final_boards)
        board, hand = np.nonzero(free)
        cards = np.concatenate([self.hands[hand][:, : self.hole_cards], final_boards[board]], axis=1).astype(np.int64)
        strength = np.full(free.shape, BLOCKED, np.int32)
        if cards.shape[1] >= _STANDARD:
            strength[free] = strengths(cards // self.suits * 4 + cards % self.suits)
            return strength[which.reshape(-1)]
        counts = (np.int64(1) << _COUNT_BITS * (cards // self.suits)).sum(axis=1)
        _, first, alike = np.unique(counts, return_index=True, return_inverse=True)
        strength_of_cards = [
            few_cards_strength([card // self.suits for card in row], self.ranks) for row in cards[first].tolist()
        ]
        strength[free] = np.array(strength_of_cards, np.int32)[alike]
        return strength[which.reshape(-1)]

    # --- suit isomorphism ---

    def numbers(self, street: int, *, merge_suits: bool) -> npt.NDArray[np.int32]:
        """Return the infoset number of each hand on each board of a street, [B, H] int32.

        street       number of the street, from 0
        merge_suits  True: pairs of hand and board that differ only by a permutation of suits are one infoset.  If no
                     hand can have five cards, suits then do not count at all

        Infosets are numbered by first appearance.  A hand that shares a card with the board has −1.
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
        """Return [R, deck] the code of each card under each of R suit permutations.

        The sum of its cards' codes identifies a set of cards.  If `merge` is False, the identity is the only
        permutation.  If it is True and no hand can have five cards, there is one code for each card that ignores suits.
        """
        card = np.arange(self.cards)
        rank, suit = card // self.suits, card % self.suits
        if merge and self.hole_cards + sum(self.board_cards) < _STANDARD:
            return (np.int64(1) << _COUNT_BITS * rank)[None]
        renamings = np.array(list(permutations(range(self.suits)))[: None if merge else 1])
        return np.int64(1) << (rank * self.suits + renamings[:, suit])

    # --- text ---

    def hand_names(self, letters: str | None = None) -> list[str]:
        """Return the [H] texts of all hands, highest card first.

        `letters` are those of the ranks, lowest first.  None: those of the highest ranks, up to A.
        """
        names = [self.card_name(card, letters) for card in range(self.cards)]
        return ["".join(names[card] for card in hand[::-1] if card >= 0) for hand in self.hands.tolist()]

    def parse(self, text: str) -> tuple[int, ...]:
        """Return the card numbers of a text such as "AsKd"; a deck with one suit takes ranks alone.

        Raises `ValueError` for a text that is not a list of the deck's cards.
        """
        plain, numbers = plain_text(text), {self.card_name(card): card for card in range(self.cards)}
        width = 1 if self.suits == 1 else 2
        parts = [plain[start : start + width] for start in range(0, len(plain), width)]
        for part in parts:
            if part not in numbers:
                raise ValueError(f"{text!r}: {part!r} is not a card of the deck, such as {self.card_name(0)}")
        return tuple(numbers[part] for part in parts)

    def card_name(self, card: int, letters: str | None = None) -> str:
        """Return the text of a card: its rank, and its suit if the deck has several.

        `letters` are those of the ranks, lowest first.  None: those of the highest ranks, up to A.
        """
        rank = (letters or rank_names(self.ranks))[card // self.suits]
        return rank if self.suits == 1 else rank + SUITS[card % self.suits]


def disjoint(hands: npt.NDArray[np.int16], boards: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """Return [B, H] bool: True if a hand and a board share no card; `boards` may also be other hands.

    hands   [H, 2] cards of each hand; −1 is no card
    boards  [B, n] cards of each board
    """
    return (_masks(boards)[:, None] & _masks(hands)) == 0


def _masks(cards: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
    """Return [N] the cards in each row of `cards` [N, n] as a mask with bit c for card c; −1 is no card."""
    bits = np.where(cards >= 0, np.int64(1) << np.maximum(cards, 0).astype(np.int64), 0)
    return np.bitwise_or.reduce(bits, axis=1, dtype=np.int64)


def _groups(cards: npt.NDArray[np.int16], codes: _Cells) -> _Cells:
    """Return [R, N] a number for each row's set of cards under each of R suit permutations.

    cards  [N, n]
    codes  [R, deck] code of each card under each permutation; the sum of codes identifies a set of cards

    Rows whose permuted cards are the same set (the same ranks, if codes ignore suits) have equal numbers.
    """
    return _ranks(codes[:, cards].sum(axis=2))


def _ranks(values: _Cells) -> _Cells:
    """Return each value's index among the sorted distinct values, in the shape of `values`."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)


def same_listing(listing: DeckListing, hands: npt.NDArray[np.int16], boards: Sequence[npt.NDArray[np.int16]]) -> bool:
    """Return whether hands and boards are those of a small deck's listing, in its order.

    hands   [H, 2] cards of each hand
    boards  one array [boards, n] for each street: cards of each board
    """
    return (
        np.array_equal(listing.hands, hands)
        and len(listing.boards) == len(boards)
        and all(np.array_equal(mine, other) for mine, other in zip(listing.boards, boards, strict=True))
    )
