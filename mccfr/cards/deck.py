"""Cards of full hold'em: the whole deck, every combination in range, hands that share rows by card buckets.

Boards are too many to list: a deal is nine cards, and a bucket is looked up on the canonical board.  Both players see
the same buckets.  Only a game that ends on the flop can be listed, which an exact best response needs.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from abstraction.boards import (
    PREFLOP_CLASSES,
    board_classes,
    canonical_boards,
    check_board,
    hole_permutations,
    used_slots,
)
from abstraction.buckets import bucket_dtype
from abstraction.cards import (
    CARD_COUNT,
    COMBO_COUNT,
    card_text,
    cards_text,
    combo_masks,
    combo_text,
    hand_cards,
    parse_cards,
    plain_text,
)
from abstraction.evaluator import board_strengths
from abstraction.lookup import NO_BUCKET, BucketLayout, BucketTables, board_row, board_rows, bucket_tables
from abstraction.ranges import parse_range
from mccfr.cards.cards import BoardHands, BucketPairs, Cards, Dealer, Difference, Narrow, unequal
from mccfr.cards.deals import card_masks
from mccfr.cards.deck_deals import DeckDealer
from mccfr.cards.listed import ListedCards
from mccfr.cards.seated import Deck, SeatedDeck

MOST_LISTED_CARDS = 3
_MOST_BOARDS = 512  # of canonical ones that are looked up at a time
_MARKED_BOARDS = 256  # whose used slots are found at a time
LISTED_BYTES = 1_700_000_000
"""Memory of an exact evaluation with all flops listed, strategies apart.  Hands alike but for suits share buckets, so
that flops alike but for suits are walked once; Flop Hold'em's, whose sums are 2 GB, took 3.05 GB in all."""
STREET_NAMES = {0: "preflop", 3: "flop", 4: "turn", 5: "river"}
"""Streets by the number of cards on the board."""
_CLASS = re.compile(r"([2-9TJQKA])(\1|[2-9TJQKA][so])")


@dataclass(frozen=True)
class WholeDeck(Deck):
    """Cards beside the betting tree of a whole hold'em game.  S streets.

    board_cards  [S] cards dealt to the board on each street: (0, 3, 1, 1)
    buckets      [S, 2] int64 number of buckets of each street and player
    load         gives each street's bucket table [canonical boards, 1326], as `abstraction.buckets` has it; called when
                 hands are first looked up, so that sizes are known before an abstraction is built
    memory       [layout.length_bytes] uint8 of bucket tables that are filled already, or None
    """

    source: ClassVar[str] = "the whole deck"
    stem: ClassVar[str] = "deck_"

    board_cards: tuple[int, ...]
    buckets: npt.NDArray[np.int64]
    load: Callable[[], Sequence[npt.NDArray[Any]]]
    memory: npt.NDArray[np.uint8] | None = None

    def cards_on(self, street: int) -> int:
        """As `Cards.cards_on`."""
        return sum(self.board_cards[: street + 1])

    @property
    def boards(self) -> int | None:
        """As `Cards.boards`."""
        return None

    @property
    def deck_size(self) -> int:
        """As `Cards.deck_size`."""
        return CARD_COUNT

    @property
    def most_hands(self) -> int:
        """As `Cards.most_hands`."""
        return COMBO_COUNT

    def dealer(self, seed: int, worker: int) -> Dealer:
        """As `Cards.dealer`."""
        return DeckDealer(self.lookup, seed, worker)

    def seated(self, other: Cards) -> Cards:
        """As `Cards.seated`."""
        if not isinstance(other, WholeDeck) or other.board_cards != self.board_cards:
            raise self.apart(other)
        return SeatedDeck((self, other), np.stack([self.buckets[:, 0], other.buckets[:, 1]], axis=1))

    @property
    def layout(self) -> BucketLayout:
        """Where the bucket tables lie in one block of memory."""
        known = tuple(self.cards_on(street) for street in range(self.streets))
        return BucketLayout(known, tuple(bucket_dtype(int(count)).name for count in self.buckets[:, 0]))

    @property
    def shared_bytes(self) -> int:
        """As `Cards.shared_bytes`: the bucket tables."""
        return self.layout.length_bytes

    def in_memory(self, memory: npt.NDArray[np.uint8], *, fill: bool) -> "WholeDeck":
        """As `Cards.in_memory`; raises as `load` where they are filled."""
        if fill:
            bucket_tables(self.load(), self.layout.board_cards, memory)
        return replace(self, memory=memory)

    @cached_property
    def lookup(self) -> BucketTables:
        """As `Deck.lookup`."""
        if self.memory is not None:
            return self.layout.tables(self.memory)
        return bucket_tables(self.load(), self.layout.board_cards)

    @property
    def can_list(self) -> bool:
        """As `Cards.can_list`: flops at most."""
        return sum(self.board_cards) <= MOST_LISTED_CARDS

    @property
    def listing_bytes(self) -> int:
        """As `Cards.listing_bytes`."""
        return LISTED_BYTES if self.can_list else 0

    def listed(self) -> ListedCards:
        """As `Cards.listed`: 22,100 flops take about a gigabyte."""
        if not self.can_list:
            raise ValueError(
                f"boards of {sum(self.board_cards)} cards are too many to list them: this works for small games and "
                "endgames only"
            )
        boards = [
            np.array(list(combinations(range(CARD_COUNT), self.cards_on(street))), np.int16).reshape(
                comb(CARD_COUNT, self.cards_on(street)), -1
            )
            for street in range(self.streets)
        ]
        rows = [board_rows(self.lookup, known) for known in boards]
        parents = [np.zeros(len(known), np.int32) for known in boards]
        return self._lists(np.ones(COMBO_COUNT), boards, parents, rows)

    def _lists(
        self,
        reach: npt.NDArray[np.float64],
        boards: Sequence[npt.NDArray[np.int16]],
        parents: Sequence[npt.NDArray[np.int32]],
        rows: Sequence[npt.NDArray[np.int32]],
    ) -> ListedCards:
        """Lists of some boards of each street, with both players' buckets [boards, 1326] there."""
        strength: dict[tuple[int, ...], list[int]] = {}  # of boards as they lie, in whatever order they were dealt
        for board in boards[-1].tolist():
            strength.setdefault(tuple(sorted(board)), board)
        found = {key: board_strengths(board) for key, board in strength.items()}
        return ListedCards(
            self.hand_cards().astype(np.int16),
            [combo_text(combo) for combo in range(COMBO_COUNT)],
            np.stack([reach, reach]),
            boards,
            parents,
            np.array([found[tuple(sorted(board))] for board in boards[-1].tolist()], np.int32),
            [np.stack([row, row]) for row in rows],
            self.buckets,
        )

    def after(self, street: int, board: Any) -> ListedCards:
        """As `Cards.after`, by the cards of the board; 48 rivers may follow a turn, 2,352 turns and rivers a flop."""
        cards = [int(card) for card in board]
        check_board(cards, (self.cards_on(street),))
        boards = [np.array([cards[: self.cards_on(here)]], np.int16) for here in range(street + 1)]
        parents = [np.zeros(1, np.int32) for _ in boards]
        for here in range(street + 1, self.streets):
            dealt, above = [], []
            for number, known in enumerate(boards[-1].tolist()):
                left = [card for card in range(CARD_COUNT) if card not in known]
                more = list(combinations(left, self.board_cards[here]))
                dealt += [known + list(new) for new in more]
                above += [number] * len(more)
            boards.append(np.array(dealt, np.int16))
            parents.append(np.array(above, np.int32))
        rows = [
            np.array([self.street_buckets(here, known) for known in some.tolist()], np.int32)
            for here, some in enumerate(boards)
        ]
        hit = (self.hand_masks() & card_masks(np.array([cards], np.int16))) != 0
        return self._lists(np.where(hit, 0.0, 1.0), boards, parents, rows)

    def hand_masks(self) -> npt.NDArray[np.uint64]:
        """[1326] uint64: one bit for each card of a combination."""
        return combo_masks()

    def hand_cards(self) -> npt.NDArray[np.int16]:
        """[1326, 2] int16 cards of each combination."""
        return hand_cards(CARD_COUNT, 2)

    def street_buckets(self, street: int, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """[1326] bucket of every combination on a street's board (all its cards); NO_BUCKET where it hits the board.

        Raises `ValueError` for a board that does not have the street's number of distinct cards.
        """
        needed = self.cards_on(street)
        if len(board) != needed:
            raise ValueError(f"the board {cards_text(board)!r} has {len(board)} cards: the street has {needed}")
        return self.board_row(street, board)

    def board_row(self, street: int, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """`street_buckets` of as many cards as the street has; `ValueError` for cards that make no board."""
        del street
        return board_row(self.lookup, board)

    def board_buckets(self, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """[S, 1326] the same on every street of a full board, its cards in order of dealing."""
        check_board(board, (self.cards_on(self.streets - 1),))
        return np.stack([self.street_buckets(street, board[: self.cards_on(street)]) for street in range(self.streets)])

    def board_hands(self, board: Sequence[int]) -> BoardHands:
        """As `Cards.board_hands`, by the cards of a full board in order of dealing; every hand weighs 1."""
        cards = [int(card) for card in board]
        shared = self.board_buckets(cards)
        hands = np.flatnonzero((self.hand_masks() & card_masks(np.array([cards], np.int16))) == 0)
        weight, bucket = np.ones(len(hands)), np.stack([shared, shared], axis=1)
        return BoardHands([hands, hands], [weight, weight], bucket, board_strengths(cards), self.hand_cards())

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """As `Cards.bucket_pairs`: all canonical boards, dealt in every way.

        Few boards first: where hands of a bucket differ, the first few show it.
        """
        boards, known = canonical_boards(self.cards_on(street)), self.cards_on(street - 1)
        first, count = 0, 1
        while first < len(boards):
            some = boards[first : first + count]
            bucket = board_rows(self.lookup, some)
            for dealt in combinations(range(some.shape[1]), known):
                before = board_rows(self.lookup, some[:, dealt])
                held = bucket >= 0
                yield bucket[held], before[held]
            first, count = first + count, min(2 * count, _MOST_BOARDS)

    # --- text ---

    def read_board(self, street: int, text: str | None) -> list[int]:
        """Board cards of a text; `ValueError` where they are not what the street has."""
        board, needed = list(parse_cards(text or "")), self.cards_on(street)
        if len(board) != needed:
            wanted = (
                f"give {needed} board cards, such as {'Qs7h2d3c4c'[: 2 * needed]}" if needed else "leave the board out"
            )
            raise ValueError(f"board {text or ''!r} has {len(board)} cards: on the {STREET_NAMES[needed]} {wanted}")
        if board:
            check_board(board)
        return board

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """As `Cards.hand_bucket`; a class will do preflop: AKs, 72o, QQ."""
        cards, hands = self.read_board(street, board), self.find_hands(hand)
        row = self.street_buckets(street, cards)[hands]
        live = row[row != NO_BUCKET]
        if not len(live):
            raise ValueError(f"hand {hand!r} shares a card with the board {cards_text(cards)}")
        if len(set(live.tolist())) > 1:
            raise ValueError(f"hand {hand!r} means several hands on the board {cards_text(cards)}: give both suits")
        return int(live[0])

    def find_hands(self, text: str) -> npt.NDArray[np.int64]:
        """Combinations that a text may mean: one (`AsKh`) or a class (`AKs`, `72o`, `QQ`); `ValueError` for none."""
        plain = plain_text(text)
        if _CLASS.fullmatch(plain):
            return np.flatnonzero(parse_range(plain) > 0)
        cards = parse_cards(plain) if len(plain) == 4 else ()
        if len(cards) != 2 or cards[0] == cards[1]:
            raise ValueError(f"hand {text!r}: two different cards are needed, such as AsKh, or a class such as AKs")
        low, high = sorted(cards)
        return np.array([high * (high - 1) // 2 + low])

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """As `Cards.hand_buckets`: all combinations; preflop by class of hole cards: AA, AKs, 72o."""
        row = self.street_buckets(street, self.read_board(street, board))
        if not self.cards_on(street):
            return {class_text(hand): int(row[hand]) for hand in range(COMBO_COUNT - 1, -1, -1)}
        return {combo_text(hand): int(row[hand]) for hand in np.flatnonzero(row != NO_BUCKET).tolist()}

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """As `Cards.bucket_texts`: a class of hole cards where each has its own bucket, else the bucket's number."""
        count = int(self.buckets[street, player])
        if self.cards_on(street) or count != PREFLOP_CLASSES:
            return [(bucket, f"bucket {bucket}", "") for bucket in range(count)]
        return sorted((bucket, hand, "") for hand, bucket in self.hand_buckets(street, player, None).items())

    @property
    def card_texts(self) -> dict[int, str]:
        """As `Cards.card_texts`."""
        return {card: card_text(card) for card in range(CARD_COUNT)}

    @property
    def drawn(self) -> Sequence[int] | None:
        """As `Cards.drawn`."""
        return self.board_cards

    def bucket_table(self, street: int) -> str | None:
        """As `Cards.bucket_table`."""
        return f"{self.stem}buckets_street{street}"

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """As `Cards.arrays`: bucket tables of every street, and what finds a hand in them."""
        for street, table in enumerate(self.load()):
            cards, dtype = self.cards_on(street), narrow(int(self.buckets[street].max()))
            yield f"{self.stem}buckets_street{street}", _marked(table, cards, dtype)
            if cards:
                yield f"{self.stem}location_{cards}", board_classes(cards).location
        yield f"{self.stem}hole_permutation", hole_permutations()

    def same_tables(self, other: Cards) -> bool:
        """As `Cards.same_tables`: where both deal alike."""
        return self.drawn == other.drawn

    def differences(self, other: Cards) -> Iterator[Difference]:
        """As `Cards.differences`."""
        if isinstance(other, WholeDeck):
            yield from unequal("the number of board cards by street", self.board_cards, other.board_cards)
        else:
            yield from super().differences(other)


def _marked(table: npt.NDArray[Any], cards: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """[boards, 1326] buckets as `dtype`, its largest number where a combination holds a card of the board."""
    if not cards:
        return table.astype(dtype)
    boards, out = canonical_boards(cards), np.full(table.shape, np.iinfo(dtype).max, dtype)
    for first in range(0, len(boards), _MARKED_BOARDS):
        piece = slice(first, first + _MARKED_BOARDS)
        np.copyto(out[piece], table[piece], casting="unsafe", where=used_slots(boards[piece]))
    return out


def class_text(combo: int) -> str:
    """A combination's class of hole cards: AA, AKs, 72o."""
    text = combo_text(combo)
    high, low = sorted((text[0], text[2]), key="23456789TJQKA".index, reverse=True)
    return high + low + ("" if high == low else "s" if text[1] == text[3] else "o")
