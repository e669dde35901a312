"""Cards of full hold'em: 52 cards, all hands in range, buckets of a card abstraction.

A deal of P players is 2·P + 5 cards. Buckets are stored for one canonical board of each class of boards that are equal
up to suits. All players have the same buckets. An exact best response needs all boards in memory: this works only for
games of two players that end on the flop.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
)
from abstraction.buckets import bucket_dtype
from abstraction.cards import (
    CARD_COUNT,
    COMBO_COUNT,
    card_mask,
    card_text,
    cards_text,
    combo_cards,
    combo_index,
    combo_text,
    hand_cards,
    parse_cards,
    plain_text,
)
from abstraction.hand_evaluator import board_strengths, strengths
from abstraction.lookup import BOARD_CARDS, NO_BUCKET, BucketLayout, BucketTables, board_row, board_rows, bucket_tables
from abstraction.range_notation import hand_class_names, parse_range
from abstraction.recall_buckets import Histories, remembered
from mccfr.cards.base import BoardHands, BucketPairs, Dealer, Narrow
from mccfr.cards.card_index import DEALT, Board, Deal, IndexedCards
from mccfr.cards.card_lists import ListedCards, boards_from
from mccfr.cards.full_deck_deals import DeckDealer, draw_cards
from mccfr.common.rng import EVALUATION
from storage.compressed_rows import pack_rows

MOST_LISTED_CARDS = 3
_MOST_BOARDS = 512  # canonical boards looked up at a time
LISTED_BYTES = 1_700_000_000
"""Bytes of an exact evaluation with all flops listed, without the strategies.

This holds if isomorphic hands share buckets, so that isomorphic flops are walked once. Flop Hold'em with 2 GB of sums
took 3.05 GB in total.
"""
STREET_NAMES = {0: "preflop", 3: "flop", 4: "turn", 5: "river"}
"""Names of streets by the number of cards on the board."""
HISTORY, STARTS = "history_street", "board_starts_street"
"""Prefixes of the names of a policy's arrays for `WholeDeck.histories`, and of the packed boards' first bytes."""
_CLASS = re.compile(r"([2-9TJQKA])(\1|[2-9TJQKA][so])")


@dataclass(frozen=True)
class WholeDeck(IndexedCards):
    """Cards of full hold'em: any of the 1,326 hands, boards of the 52 cards. S streets, P players.

    A canonical board stands for all boards that are equal to it up to a permutation of suits.

    board_cards  [S] cards dealt to the board on each street: (0, 3, 1, 1)
    buckets      [S, P] int64 number of buckets of each street and player
    load         function that returns for each street the bucket of every hand, [canonical boards, 1326]. It is called
                 when buckets are first needed, so that a game's size is known before its abstraction is built
    memory       [layout.length_bytes] uint8 with these tables, already written; None: `load` returns them
    histories    for buckets that remember those of earlier streets: maps (bucket on the street before, table entry)
                 to the bucket; None: table entries are the buckets
    read_into    function that writes the tables into given arrays, which spares `in_memory` a copy; None: it copies
                 the tables that `load` returns
    """

    source: ClassVar[str] = "the whole deck"
    stem: ClassVar[str] = "deck_"

    board_cards: tuple[int, ...]
    buckets: npt.NDArray[np.int64]
    load: Callable[[], Sequence[npt.NDArray[Any]]]
    memory: npt.NDArray[np.uint8] | None = None
    histories: Histories | None = None
    read_into: Callable[[Sequence[npt.NDArray[Any]]], None] | None = None
    hand_cards: npt.NDArray[np.int16] = field(default_factory=lambda: hand_cards(CARD_COUNT, 2), init=False, repr=False)
    reach: npt.NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Set the range weights `reach` of all hands and players to 1."""
        object.__setattr__(self, "reach", np.ones((self.players, COMBO_COUNT)))

    @property
    def players(self) -> int:
        """Number of players."""
        return self.buckets.shape[1]

    def of_two(self) -> "WholeDeck":
        """Return the same cards for two players: the buckets are those of players 0 and 1."""
        return self if self.players == 2 else replace(self, buckets=self.buckets[:, :2])

    def cards_on(self, street: int) -> int:
        """Return the number of board cards dealt up to and including `street`."""
        return sum(self.board_cards[: street + 1])

    def dealer(self, seed: int, worker: int) -> Dealer:
        """Return the object that draws the training deals of worker number `worker` of a run."""
        return DeckDealer(self.lookup, seed, worker, self.histories)

    @property
    def layout(self) -> BucketLayout:
        """Offsets and dtypes of all streets' bucket tables in one block of shared memory."""
        board_counts = tuple(self.cards_on(street) for street in range(self.streets))
        return BucketLayout(
            board_counts, tuple(bucket_dtype(self.in_table(street)).name for street in range(self.streets))
        )

    @property
    def shared_bytes(self) -> int:
        """Size in bytes of the bucket tables."""
        return self.layout.length_bytes

    def in_memory(self, memory: npt.NDArray[np.uint8], *, fill: bool) -> "WholeDeck":
        """Return the same cards, which take their buckets from the bucket tables in `memory`.

        memory  [shared_bytes] uint8, usually shared by several processes
        fill    True: write the tables into it now, which passes on the errors of `load`; False: they are already there
        """
        if fill:
            streets = [self.layout.street(memory, street) for street in range(self.streets)]
            if self.read_into is not None:
                self.read_into(streets)
            bucket_tables(self.load() if self.read_into is None else streets, self.layout.board_cards, memory)
        return replace(self, memory=memory)

    @cached_property
    def lookup(self) -> BucketTables:
        """Arrays in which compiled code looks up hands' buckets; loaded on first use if not in `memory`.

        Raises `ValueError` if the abstraction does not fit the game, and passes on the errors of `load`.
        """
        if self.memory is not None:
            return self.layout.tables(self.memory)
        return bucket_tables(self.load(), self.layout.board_cards)

    @property
    def can_list(self) -> bool:
        """True if all boards fit in memory as arrays: games of two players that end on the flop."""
        return self.players == 2 and sum(self.board_cards) <= MOST_LISTED_CARDS

    @property
    def listing_bytes(self) -> int:
        """Bytes that an exact evaluation needs for arrays of all boards; 0 if impossible."""
        return LISTED_BYTES if self.can_list else 0

    def listed(self) -> ListedCards:
        """Return all hands and boards as arrays (`ListedCards`); 22,100 flops take about 1 GB.

        Raises `ValueError` for more than two players, and for games with a turn.
        """
        self._check_pairs()
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
        rows = [board_rows(self.lookup, street_boards) for street_boards in boards]
        if self.histories is not None:
            rows = remembered(self.histories.tables, rows)
        parents = [np.zeros(len(street_boards), np.int32) for street_boards in boards]
        return self._lists(np.ones(COMBO_COUNT), boards, parents, rows)

    def _check_pairs(self) -> None:
        """Raise `ValueError` for three and more players: `ListedCards` has two ranges only."""
        if self.players > 2:
            raise ValueError(
                f"hands are listed for two players only, and the game has {self.players}: use a method that samples "
                "deals"
            )

    def _lists(
        self,
        reach: npt.NDArray[np.float64],
        boards: Sequence[npt.NDArray[np.int16]],
        parents: Sequence[npt.NDArray[np.int32]],
        rows: Sequence[npt.NDArray[np.int32]],
    ) -> ListedCards:
        """Return a `ListedCards` of given boards, with equal ranges and buckets for both players.

        reach    [1326] range weights
        boards   for each street: [B, n] the cards of its boards
        parents  for each street: [B] index of each board's predecessor on the street before
        rows     for each street: [B, 1326] the bucket of each hand on each of its boards
        """
        strength: dict[tuple[int, ...], list[int]] = {}  # by sorted cards: the order of dealing does not matter
        for board in boards[-1].tolist():
            strength.setdefault(tuple(sorted(board)), board)
        strength_of_board = {key: board_strengths(board) for key, board in strength.items()}
        return ListedCards(
            self.hand_cards,
            [combo_text(combo) for combo in range(COMBO_COUNT)],
            np.stack([reach, reach]),
            boards,
            parents,
            np.array([strength_of_board[tuple(sorted(board))] for board in boards[-1].tolist()], np.int32),
            [np.stack([row, row]) for row in rows],
            self.buckets,
        )

    def after(self, street: int, board: Any) -> ListedCards:
        """Return a `ListedCards` of the subgame that begins once `board` is dealt on `street`.

        board  its card numbers, in order of dealing

        It has all hands and all later boards: 48 rivers after a turn, 2,352 rivers after a flop. Raises `ValueError`
        for three and more players, and for cards that are not a board of the street.
        """
        self._check_pairs()
        cards = [int(card) for card in board]
        check_board(cards, (self.cards_on(street),))
        boards, parents = boards_from(cards, self.board_cards[street + 1 :])
        boards = [
            np.array([cards[: self.cards_on(earlier_street)]], np.int16) for earlier_street in range(street)
        ] + boards
        parents = [np.zeros(1, np.int32)] * street + parents
        rows = [
            np.array([self.bucket_row(earlier_street, 0, board_row) for board_row in some.tolist()], np.int32)
            for earlier_street, some in enumerate(boards)
        ]
        return self._lists(np.where(self.live(street, cards), 1.0, 0.0), boards, parents, rows)

    def bucket_row(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """Return [1326] each hand's bucket on a board; negative if the hand shares a card with it.

        All players have the same buckets. Raises `ValueError` for cards that are not a board of the street.
        """
        needed = self.cards_on(street)
        if len(board) != needed:
            raise ValueError(f"the board {cards_text(board)!r} has {len(board)} cards: the street has {needed}")
        return self.board_row(street, board) if self.histories is None else self._path_rows(street, board)[-1]

    def _path_rows(self, street: int, board: Board) -> list[npt.NDArray[np.int32]]:
        """Return for each street, 0 to `street`, the hands' buckets [1326] on its board."""
        rows = [self.board_row(each, board_cards) for each, board_cards in enumerate(self.path(street, board))]
        return rows if self.histories is None else remembered(self.histories.tables[: street + 1], rows)

    def board_row(self, street: int, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """Return [1326] each hand's entry of the stored bucket table on a board.

        The entry is the bucket, unless buckets also depend on those of earlier streets (field `histories`).
        Raises `ValueError` for cards that are not a board.
        """
        del street
        return board_row(self.lookup, board)

    def board_buckets(self, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """Return [S, 1326] each hand's bucket on each street, from the board of the last one."""
        check_board(board, (self.cards_on(self.streets - 1),))
        return np.stack(self._path_rows(self.streets - 1, tuple(board)))

    def board_hands(self, board: Sequence[int]) -> BoardHands:
        """Return the hands that share no card with a board of the last street, with their buckets.

        Both players hold each of these hands with weight 1. Raises `ValueError` for three and more players, and for
        cards that are not such a board.
        """
        self._check_pairs()
        cards = [int(card) for card in board]
        shared = self.board_buckets(cards)
        hands = np.flatnonzero(self.live(self.streets - 1, cards))
        weight, bucket = np.ones(len(hands)), np.stack([shared, shared], axis=1)
        return BoardHands([hands, hands], [weight, weight], bucket, board_strengths(cards), self.hand_cards)

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield pairs of arrays: hands' buckets on `street` and on the street before.

        A check of perfect recall reads them. Each pair covers a few canonical boards of `street`, with one choice of
        the cards that were dealt earlier; all occur. The first pair has one board: a lack of perfect recall shows soon.
        If `histories` determine the buckets, the only pair has each bucket, and the bucket on the street before.
        """
        history = None if self.histories is None else self.histories.tables[street]
        if history is not None:
            yield history, np.broadcast_to(np.arange(len(history))[:, None], history.shape)
            return
        boards, count_before = canonical_boards(self.cards_on(street)), self.cards_on(street - 1)
        first, count = 0, 1
        while first < len(boards):
            some = boards[first : first + count]
            bucket = board_rows(self.lookup, some)
            for dealt in combinations(range(some.shape[1]), count_before):
                before = board_rows(self.lookup, some[:, dealt])
                dealt_hands = bucket >= 0
                yield bucket[dealt_hands], before[dealt_hands]
            first, count = first + count, min(2 * count, _MOST_BOARDS)

    # --- deals ---

    def deal(self, seed: int, number: int) -> Deal:
        """Return random deal `number` of `seed`: each player's hand index, and every street's board."""
        cards = np.empty((1, 2 * self.players + BOARD_CARDS), np.int8)
        keys = np.uint64(seed), np.uint64(DEALT), EVALUATION, np.int64(number), np.int64(1)
        draw_cards(*keys, np.zeros(4, np.uint64), cards)
        dealt = cards[0].tolist()
        hands = tuple(combo_index(*dealt[2 * player : 2 * player + 2]) for player in range(self.players))
        return Deal(hands, self.path(self.streets - 1, dealt[2 * self.players :]))

    def path(self, street: int, board: Board) -> tuple[Board, ...]:
        """Return the boards of streets 0 to `street`, as prefixes of `board`."""
        return tuple(tuple(board[: self.cards_on(each)]) for each in range(street + 1))

    def boards_after(self, street: int, board: Board) -> list[Board]:
        """Return all next-street boards that begin with `board`, new cards in one order only."""
        before = () if street < 0 else tuple(board)
        remaining = [card for card in range(CARD_COUNT) if card not in before]
        return [(*before, *more) for more in combinations(remaining, self.board_cards[street + 1])]

    @property
    def first_boards(self) -> int:
        """Number of boards of the first street, isomorphic ones included; 1 preflop."""
        return comb(CARD_COUNT, self.board_cards[0])

    def full_boards(
        self, street: int, board: Board, excluded: Sequence[int], sample_size: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """Return last-street boards that begin with `board`, and a factor for means over them.

        excluded     card numbers that the further cards must not be, such as those of known hands
        sample_size  largest number of boards: if more are possible, a random sample is returned, drawn with `rng`

        The factor is the number of possible boards divided by the number that two given hands leave. It corrects a mean
        over boards in which impossible pairs of hands count as 0.
        """
        before = () if street < 0 else tuple(board)
        remaining = [card for card in range(CARD_COUNT) if card not in before and card not in excluded]
        more = sum(self.board_cards) - len(before)
        count = comb(len(remaining), more)
        factor = count / comb(CARD_COUNT - len(before) - 4, more)
        if count <= sample_size:
            return [(*before, *cards) for cards in combinations(remaining, more)], factor
        positions = np.argsort(rng.random((sample_size, len(remaining))), axis=1)[:, :more]
        return [(*before, *cards) for cards in np.array(remaining)[positions].tolist()], factor

    def board_mask(self, street: int, board: Board) -> np.uint64:
        """Return the cards of a board as a bit mask: bit c for card c."""
        return np.uint64(card_mask(board))

    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """Return [1326] hands' showdown ranks on a full board, higher wins; -1: shares a card."""
        return board_strengths(full)

    def showdowns(self, hands: tuple[int, ...], full: Sequence[Board]) -> npt.NDArray[np.float64]:
        """Return [K] results of two hands on full boards: +1 the first wins, -1 the second, 0 tie.

        Only these two hands are ranked, not all 1,326.
        """
        own, others = (strengths(np.array([(*combo_cards(hand), *board) for board in full])) for hand in hands)
        return np.sign(own.astype(np.float64) - others)

    # --- texts ---

    def hand_text(self, hand: int) -> str:
        """Return a hand's text, such as "AsKh"."""
        return combo_text(hand)

    def board_text(self, street: int, board: Board) -> str:
        """Return a board's text in order of dealing."""
        return cards_text(board)

    def board_deck(self) -> list[str]:
        """Return the texts of all 52 cards."""
        return [card_text(card) for card in range(CARD_COUNT)]

    def read_board(self, street: int, text: str | None) -> Board:
        """Return the cards of a street's board from their text; `ValueError` for a wrong card or number."""
        board, needed = tuple(parse_cards(text or "")), self.cards_on(street)
        if len(board) != needed:
            count_text = (
                f"give {needed} board cards, such as {'Qs7h2d3c4c'[: 2 * needed]}" if needed else "leave the board out"
            )
            raise ValueError(f"board {text or ''!r} has {len(board)} cards: on the {STREET_NAMES[needed]} {count_text}")
        if board:
            check_board(board)
        return board

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Return the bucket of a hand such as AsKh, or of a class such as AKs, 72o or QQ, on a board.

        board  text of the board of `street`; None or "" preflop

        Raises `ValueError` for an invalid text, a card that the board also has, or a class of several buckets there.
        """
        cards, hands = self.read_board(street, board), self.find_hands(hand)
        row = self.bucket_row(street, player, cards)[hands]
        live = row[row != NO_BUCKET]
        if not len(live):
            raise ValueError(f"hand {hand!r} shares a card with the board {cards_text(cards)}")
        if len(set(live.tolist())) > 1:
            raise ValueError(f"hand {hand!r} means several hands on the board {cards_text(cards)}: give both suits")
        return int(live[0])

    def find_hands(self, text: str) -> npt.NDArray[np.int64]:
        """Return the indices [n] of the hands of a combination (`AsKh`) or class (`AKs`, `QQ`).

        Raises `ValueError` for another text.
        """
        plain = plain_text(text)
        if _CLASS.fullmatch(plain):
            return np.flatnonzero(parse_range(plain) > 0)
        cards = parse_cards(plain) if len(plain) == 4 else ()
        if len(cards) != 2 or cards[0] == cards[1]:
            raise ValueError(f"hand {text!r}: two different cards are needed, such as AsKh, or a class such as AKs")
        low, high = sorted(cards)
        return np.array([high * (high - 1) // 2 + low])

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """Return {hand text: bucket} of the hands possible on a board, given as text.

        Preflop the keys are the 169 hand classes, such as "AKs". Raises `ValueError` for an invalid board.
        """
        row = self.bucket_row(street, player, self.read_board(street, board))
        if not self.cards_on(street):
            return {name: int(row[hand]) for hand, name in reversed(list(enumerate(hand_class_names(self.hand_cards))))}
        return {combo_text(hand): int(row[hand]) for hand in np.flatnonzero(row != NO_BUCKET).tolist()}

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """Return (bucket, hand text, board text) for every bucket; the board text is always empty.

        The hand text is "AKs" or the like if each class of hole cards has its own bucket, otherwise "bucket N".
        """
        count = int(self.buckets[street, player])
        if self.cards_on(street) or count != PREFLOP_CLASSES:
            return [(bucket, f"bucket {bucket}", "") for bucket in range(count)]
        return sorted((bucket, hand, "") for hand, bucket in self.hand_buckets(street, player, None).items())

    @property
    def card_texts(self) -> dict[int, str]:
        """Texts of all 52 cards, by card number."""
        return {card: card_text(card) for card in range(CARD_COUNT)}

    @property
    def board_cards_by_street(self) -> Sequence[int] | None:
        """Number of cards dealt to the board on each street: (0, 3, 1, 1) for hold'em."""
        return self.board_cards

    def canonical_tables(self) -> Sequence[npt.NDArray[Any]]:
        """Return for each street the buckets of all hands, [canonical boards, 1326].

        Raises `ValueError` if buckets also depend on earlier streets (`histories`).
        """
        if self.histories is not None:
            raise ValueError("buckets that depend on earlier streets have no tables by canonical board")
        return self.load()

    def in_table(self, street: int) -> int:
        """Return the number of different entries of a street's bucket table.

        It is the number of buckets, unless these also depend on earlier streets (`histories`).
        """
        return super().in_table(street) if self.histories is None else self.histories.in_tables[street]

    def bucket_table(self, street: int) -> str | None:
        """Return the name under which a policy stores a street's bucket table (see `arrays`)."""
        return f"{self.stem}buckets_street{street}"

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield (name, array) of all arrays with which a policy's reader finds hands' buckets.

        They are the compressed bucket tables, and tables that map boards and hands to their entries.

        narrow  function from a number of buckets to the dtype of a bucket table
        """
        for street, table in enumerate(self.load()):
            cards = self.cards_on(street)
            streams, starts = pack_rows(table, narrow(self.in_table(street)))
            yield f"{self.stem}buckets_street{street}", streams
            yield f"{STARTS}{street}", starts
            if cards:
                yield f"{self.stem}location_{cards}", board_classes(cards).location
        yield f"{self.stem}hole_permutation", hole_permutations()
        for street, history in enumerate([] if self.histories is None else self.histories.tables):
            if history is not None:
                yield f"{HISTORY}{street}", history
