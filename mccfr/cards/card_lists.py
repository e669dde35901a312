"""Cards whose hands and boards are all in arrays: Kuhn, Leduc, small decks, hold'em endgames.

`ListedCards` is the main class; `mccfr.cards.card_list_text` parses texts of its hands and boards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from mccfr.cards.base import BoardHands, BucketPairs, Cards, Dealer, HeldBuckets, Narrow
from mccfr.cards.card_index import DEALT, Board, Deal
from mccfr.cards.card_list_text import NamedCards, card_names, find_boards, find_hands, meanings
from mccfr.cards.deals import NO_BUCKET, DealArrays, ListedDealer, alias_table, card_masks
from mccfr.cards.range_columns import columns
from mccfr.common.rng import EVALUATION, new_stream, uniform

_KEPT = 64  # number of boards whose following full boards are cached


@dataclass(frozen=True)
class ListedCards(NamedCards):
    """Cards of a game whose hands and boards are all in arrays, with range weights and buckets.

    H hands (one list for both players), S streets, B_s boards on street s.

    hand_cards     [H, 2] int16    cards of each hand, -1 where it has fewer than two
    hand_names     [H]             text of each hand: "K", "AsKh"
    reach          [2, H] float64  range weights; the joint weight of a disjoint pair is the product
    board_cards    S × [B_s, n]    all board cards dealt up to and including street s, in order of dealing
    board_parent   S × [B_s] int32 index of the board on the street before that it continues (0 on street 0)
    strength       [B_last, H] int32   showdown rank of each hand on a full board, higher wins; -1: they share a card
    bucket         S × [2, B_s, H] int32  bucket of a player's hand on a board; -1 if impossible
    buckets        [S, 2] int64    number of buckets of each street and player

    S × stands for one array for each street.
    """

    source: ClassVar[str] = "a list of boards"
    stem: ClassVar[str] = "cards_"

    hand_cards: npt.NDArray[np.int16]
    hand_names: Sequence[str]
    reach: npt.NDArray[np.float64]
    board_cards: Sequence[npt.NDArray[np.int16]]
    board_parent: Sequence[npt.NDArray[np.int32]]
    strength: npt.NDArray[np.int32]
    bucket: Sequence[npt.NDArray[np.int32]]
    buckets: npt.NDArray[np.int64]

    @cached_property
    def board_masks(self) -> list[npt.NDArray[np.uint64]]:
        """One array for each street, [boards] uint64: the cards of each board, bit c for card c."""
        return [card_masks(boards) for boards in self.board_cards]

    def cards_on(self, street: int) -> int:
        """Return the number of board cards dealt up to and including `street`."""
        return self.board_cards[street].shape[1]

    @property
    def boards(self) -> int | None:
        """Number of full boards."""
        return len(self.board_cards[-1])

    def listed(self) -> "ListedCards":
        """Return these cards themselves, whose hands and boards are in arrays already."""
        return self

    def after(self, street: int, board: Any) -> "ListedCards":
        """Return the cards, as `ListedCards`, of the subgame that begins with a board of `street`.

        board  index of the board; hands that share a card with it get weight 0

        The result has arrays of this board, the boards it continues, and all that can follow. Raises `ValueError` if
        there is no such board.
        """
        if not 0 <= board < len(self.board_cards[street]):
            raise ValueError(
                f"board {board} of street {street}: it must be from 0 to {len(self.board_cards[street]) - 1}"
            )
        rows_of_street = [np.array([board])]
        for own_street in range(street, 0, -1):
            rows_of_street.insert(0, self.board_parent[own_street][rows_of_street[0]])
        for own_street in range(street + 1, self.streets):
            rows_of_street.append(np.flatnonzero(np.isin(self.board_parent[own_street], rows_of_street[-1])))
        parent = [np.zeros(1, np.int32)]
        parent += [
            np.searchsorted(above, self.board_parent[own_street][boards]).astype(np.int32)
            for own_street, (above, boards) in enumerate(pairwise(rows_of_street), 1)
        ]
        return replace(
            self,
            reach=np.where(self.live(street, board), self.reach, 0),
            board_cards=[cards[boards] for cards, boards in zip(self.board_cards, rows_of_street, strict=True)],
            board_parent=parent,
            strength=self.strength[rows_of_street[-1]],
            bucket=[bucket[:, boards] for bucket, boards in zip(self.bucket, rows_of_street, strict=True)],
        )

    def from_street(self, street: int) -> "ListedCards":
        """Return the cards of the game from a street on, which becomes street 0.

        The street must have one board.
        """
        return replace(
            self,
            board_cards=self.board_cards[street:],
            board_parent=[np.zeros(1, np.int32), *self.board_parent[street + 1 :]],
            bucket=self.bucket[street:],
            buckets=self.buckets[street:],
        )

    def dealer(self, seed: int, worker: int) -> Dealer:
        """Return the object that draws the training deals of process number `worker`.

        Raises `ValueError` unless equally many boards follow each board of a street.
        """
        return ListedDealer(deal_arrays(self), seed, worker)

    def board_hands(self, board: Any) -> BoardHands:
        """Return both players' hands that fit board index `board` of the last street.

        Raises `ValueError` if there is no such board, or a hand in range has no bucket on it.
        """
        if not isinstance(board, int | np.integer):
            raise ValueError(f"board {board}: boards are listed, give the number of one")
        if not 0 <= board < len(self.board_cards[-1]):
            raise ValueError(f"last_board = {board}: it must be from 0 to {len(self.board_cards[-1]) - 1}")
        last = self.streets - 1
        bucket = np.stack(
            [buckets[:, at] for buckets, at in zip(self.bucket, self.path(last, int(board)), strict=True)]
        )
        live = [np.flatnonzero(self.live(last, board) & (self.reach[player] > 0)) for player in range(2)]
        for player, hands in enumerate(live):
            missing = (bucket[:, player, hands] < 0).any(axis=0)
            if missing.any():
                name = self.hand_names[hands[np.argmax(missing)]]
                raise ValueError(f"hand {name} can be dealt but has no bucket on board {board}")
        weight = [self.reach[player, hands] for player, hands in enumerate(live)]
        return BoardHands(live, weight, bucket, self.strength[board], self.hand_cards)

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield two arrays [n] for each board of `street`: buckets on it, and on the street before.

        They are for the n hands in the player's range that have a bucket on the board.
        """
        live = self.reach[player] > 0
        for board, parent_board in enumerate(self.board_parent[street].tolist()):
            bucket, before = self.bucket[street][player, board], self.bucket[street - 1][player, parent_board]
            live_hands = live & (bucket >= 0)
            yield bucket[live_hands], before[live_hands]

    def range_buckets(self) -> Iterator[HeldBuckets]:
        """Yield (buckets [n], range weights [n]) for each street and player, street by street.

        The n entries are the pairs of a board of the street and a hand in the player's range with a bucket on it.
        """
        for bucket, reach in ((street[player], self.reach[player]) for street in self.bucket for player in range(2)):
            possible = (bucket >= 0) & (reach > 0)
            yield bucket[possible], np.broadcast_to(reach, bucket.shape)[possible]

    # --- deals ---

    @cached_property
    def _first_chance(self) -> npt.NDArray[np.float64]:
        """[H] cumulative sums of the weights with which player 0 is dealt each hand."""
        return np.cumsum(self.reach[0] * self.disjoint_weight(self.reach[1]))

    def deal(self, seed: int, number: int) -> Deal:
        """Return random deal `number` of `seed`: both hands' indices, and the board index of every street."""
        state, masks = new_stream(seed, DEALT, EVALUATION, number), self.hand_masks()
        first = _drawn(self._first_chance, uniform(state))
        second = _drawn(np.cumsum(np.where(masks & masks[first], 0, self.reach[1])), uniform(state))
        free = np.flatnonzero((self.board_masks[-1] & (masks[first] | masks[second])) == 0)
        return Deal((first, second), self.path(self.streets - 1, int(free[int(uniform(state) * len(free))])))

    def path(self, street: int, board: Board) -> tuple[Board, ...]:
        """Return the indices of the boards of streets 0 to `street` in a deal that has `board`.

        `board`, a board index of `street`, is the last.
        """
        rows = [board]
        for parents in self.board_parent[street:0:-1]:
            rows.append(int(parents[rows[-1]]))
        return tuple(rows[::-1])

    def boards_after(self, street: int, board: Board) -> list[Board]:
        """Return the indices of the next street's boards that continue board index `board`.

        `street` is its street. For street -1 they are all boards of the first street.
        """
        if street < 0:
            return list(range(self.first_boards))
        boards: list[int] = np.flatnonzero(self.board_parent[street + 1] == board).tolist()
        return boards

    @property
    def first_boards(self) -> int:
        """Number of boards of the first street."""
        return len(self.board_cards[0])

    @cached_property
    def _kept(self) -> dict[tuple[int, Board], tuple[npt.NDArray[np.int64], int]]:
        return {}

    def _last_boards(self, street: int, board: Board) -> tuple[npt.NDArray[np.int64], int]:
        """Return (indices [n] of the last-street boards after `board`, how many fit two hands).

        The two hands are the first in the ranges that share no card with each other and with `board`. Games are
        expected to have the same number for each pair of hands. Raises `ValueError` if no pair is possible.
        """
        boards = self._kept.get((street, board))
        if boards is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            boards = self._kept[street, board] = self._find_last_boards(street, board)
        return boards

    def _find_last_boards(self, street: int, board: Board) -> tuple[npt.NDArray[np.int64], int]:
        last: npt.NDArray[np.int64] = np.arange(len(self.board_cards[-1]))
        if street >= 0:
            above: npt.NDArray[np.integer] = last
            for parents in self.board_parent[:street:-1]:
                above = parents[above]
            last = last[above == board]
        live, masks = np.ones(self.hand_count, bool) if street < 0 else self.live(street, board), self.hand_masks()
        for first in np.flatnonzero(live & (self.reach[0] > 0)).tolist():
            others = np.flatnonzero(live & (self.reach[1] > 0) & ((masks & masks[first]) == 0))
            if len(others):
                return last, int(((self.board_masks[-1][last] & (masks[first] | masks[others[0]])) == 0).sum())
        raise ValueError("no two hands of the game's ranges can be dealt together on a board")

    def full_boards(
        self, street: int, board: Board, excluded: Sequence[int], sample_size: int, rng: np.random.Generator
    ) -> tuple[list[Board], float]:
        """Return indices of full boards after `board` without the cards `excluded`, and a factor.

        The factor corrects a mean over these boards to which a pair of hands adds 0 on boards with one of its cards. It
        is the number of such boards, before sampling, divided by the number of boards after `board` that fit a pair of
        hands. If there are more than `sample_size` boards, so many are drawn with `rng`, with repetition.
        """
        last, each = self._last_boards(street, board)
        excluded_mask = np.uint64(sum(1 << card for card in excluded))
        last = last[(self.board_masks[-1][last] & excluded_mask) == 0]
        sampled = last if len(last) <= sample_size else rng.choice(last, sample_size)
        return sampled.tolist(), len(last) / each

    def board_mask(self, street: int, board: Board) -> np.uint64:
        """Return the cards of board index `board` of a street as a bit mask: bit c for card c."""
        return np.uint64(self.board_masks[street][board])

    def bucket_row(self, street: int, player: int, board: Board) -> npt.NDArray[np.int32]:
        """Return [H] int32 the bucket of each hand of a player on board index `board` of `street`, or -1.

        It is -1 for hands that share a card with the board, and may be for hands outside of the player's range.
        """
        return self.bucket[street][player, board]

    def strengths(self, full: Board) -> npt.NDArray[np.integer]:
        """Return [H] each hand's showdown rank on a full board, higher wins; -1: shares a card."""
        return self.strength[full]

    # --- texts ---

    def hand_text(self, hand: int) -> str:
        """Return the text of hand index `hand`, such as "AsKh" or "K"."""
        return self.hand_names[hand]

    def find_hands(self, text: str) -> npt.NDArray[np.int64]:
        """Return the indices of the hands that a text matches; `ValueError` if there is none."""
        return find_hands(self, text)

    def board_text(self, street: int, board: Board) -> str:
        """Return the text of board index `board` of a street in dealing order, such as "Qs7h2d"."""
        return "".join(self.card_texts[int(card)] for card in self.board_cards[street][board])

    def read_board(self, street: int, text: str | None) -> Board:
        """Return the index of a street's first board that matches a text such as "Qs7h2d".

        Raises `ValueError` if none matches.
        """
        return int(find_boards(self, street, text or None)[0])

    def board_deck(self) -> list[str]:
        """Return the texts of all board cards, ascending."""
        return [self.card_texts[card] for card in np.unique(self.board_cards[-1]).tolist() if card in self.card_texts]

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """Return the bucket of a hand on a board for a player; hand and board are texts.

        Raises `ValueError` for texts that mean no possible hand in the player's range, or hands of several buckets.
        """
        hands, boards = find_hands(self, hand), find_boards(self, street, board)
        disjoint = (self.hand_masks()[hands] & self.board_masks[street][boards][:, None]) == 0
        if not disjoint.any():
            raise ValueError(f"hand {hand!r} shares a card with the board")
        bucket = self.bucket[street][player][np.ix_(boards, hands)]
        live = disjoint & (bucket != NO_BUCKET) & (self.reach[player][hands] > 0)
        if not live.any():
            raise ValueError(
                f"hand {hand!r} is not in the range of player {player} (its reach is 0): a hand such as "
                f"{self.hand_names[int(np.argmax(self.reach[player]))]} is"
            )
        numbers = np.unique(bucket[live])
        if len(numbers) > 1:
            several = meanings(self, street, product(boards, hands), live.ravel())
            raise ValueError(f"hand {hand!r}, board {board or ''!r} may mean {several}, which differ: give the suits")
        return int(numbers[0])

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """Return {hand text: bucket} of the player's range on a board of `street`, which is given as text.

        Raises `ValueError` for an invalid board, and one that can mean boards with different buckets.
        """
        bucket = self.bucket[street][player][find_boards(self, street, board)]
        live = (bucket != NO_BUCKET) & (self.reach[player] > 0)
        bucket_of_hand = {}
        for hand in np.flatnonzero(live.any(axis=0)).tolist():
            numbers = np.unique(bucket[live[:, hand], hand])
            if len(numbers) > 1:
                raise ValueError(f"board {board!r} may mean several boards, which differ: give the suits")
            bucket_of_hand[self.hand_names[hand]] = int(numbers[0])
        return bucket_of_hand

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """Return (bucket, hand text, board text) of the first hand in each bucket, ascending.

        Buckets that no hand of the player's range has are left out.
        """
        bucket = np.where(self.reach[player] > 0, self.bucket[street][player], NO_BUCKET)
        numbers_used, first = np.unique(bucket, return_index=True)
        places = [divmod(int(position), bucket.shape[1]) for position in first]
        return [
            (number, self.hand_names[hand], self.board_text(street, board))
            for number, (board, hand) in zip(numbers_used.tolist(), places, strict=True)
            if number != NO_BUCKET
        ]

    @cached_property
    def card_texts(self) -> dict[int, str]:
        """Text of each card of the hands, such as `Kd`, by card number."""
        return card_names(self)

    def bucket_table(self, street: int) -> str | None:
        """Return the name under which a policy (saved strategy) stores a street's bucket table."""
        return f"{self.stem}bucket_street{street}"

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield (name, array) of hands, ranges, boards, strengths and buckets, to save a strategy.

        narrow  function from a number of buckets to the dtype of a bucket table, whose maximum marks impossible hands
        """
        for name in ("hand_cards", "reach", "strength", "buckets"):
            yield f"{self.stem}{name}", getattr(self, name)
        for street, bucket in enumerate(self.bucket):
            yield f"{self.stem}board_cards_street{street}", self.board_cards[street]
            yield f"{self.stem}board_parent_street{street}", self.board_parent[street]
            marked = bucket.astype(narrow(int(self.buckets[street].max())))
            marked[bucket == NO_BUCKET] = np.iinfo(marked.dtype).max
            yield f"{self.stem}bucket_street{street}", marked

    def texts(self) -> dict[str, list[str]]:
        """Return {name: list of texts} that a saved strategy stores: the names of the hands."""
        return {f"{self.stem}hand_names": list(self.hand_names)}

    def deals_as(self, other: Cards) -> bool:
        """Return whether `other` has the same hands, ranges, boards and strengths.

        Buckets may differ.
        """
        assert isinstance(other, ListedCards)
        single = ("hand_names", "hand_cards", "reach", "strength")
        pairs = [(getattr(self, name), getattr(other, name)) for name in single]
        pairs += zip([*self.board_cards, *self.board_parent], [*other.board_cards, *other.board_parent], strict=True)
        return all(np.array_equal(one, instead) for one, instead in pairs)


def boards_from(board: Sequence[int], counts: Sequence[int]) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Return two lists: for each street the boards [B, n] that continue `board`, and their parents [B].

    The first street has `board` alone. The deck has 52 cards. A parent is the index of the board on the street before.

    board   cards of the only board of the first street
    counts  number of cards dealt on each later street
    """
    boards, parents = [np.array([board], np.int16)], [np.zeros(1, np.int32)]
    for count in counts:
        above = boards[-1].tolist()
        remaining = [[card for card in range(CARD_COUNT) if card not in parent_board] for parent_board in above]
        pairs = zip(above, remaining, strict=True)
        below = [(*parent_board, *new) for parent_board, cards in pairs for new in combinations(cards, count)]
        boards.append(np.array(below, np.int16))
        parents.append(np.repeat(np.arange(len(above)), len(below) // len(above)).astype(np.int32))
    return boards, parents


def lossless_buckets(
    masks: npt.NDArray[np.uint64], reach: npt.NDArray[np.float64], boards: npt.NDArray[np.int16]
) -> npt.NDArray[np.int32]:
    """Return [2, B, H] int32: for each player a bucket of its own for each pair of board and hand.

    Hands that share a card with the board or are outside of the player's range get −1.

    masks   [H] uint64 cards of each hand as bits
    reach   [2, H] range weights
    boards  [B, n] boards of one street

    Buckets are numbered board by board.
    """
    disjoint = (masks[None, :] & card_masks(boards)[:, None]) == 0
    live = disjoint[None] & (reach > 0)[:, None]
    buckets = np.full(live.shape, NO_BUCKET, np.int32)
    for numbers, own in zip(buckets, live, strict=True):
        numbers[own] = np.arange(own.sum(), dtype=np.int32)
    return buckets


def deal_arrays(cards: ListedCards) -> DealArrays:
    """Convert listed cards to `DealArrays`, from which compiled code draws deals.

    Raises `ValueError` unless each board of a street is continued by equally many boards of the next street, which must
    be in the same order.
    """
    masks = cards.board_masks
    first = np.concatenate([[0], np.cumsum([len(mask) for mask in masks])])
    child, children = [], [len(masks[0])]
    for street in range(1, cards.streets):
        starts = np.searchsorted(cards.board_parent[street], np.arange(len(masks[street - 1]) + 1))
        if len(set(np.diff(starts))) != 1 or np.any(np.diff(cards.board_parent[street]) < 0):
            raise ValueError(
                f"boards of street {street} do not follow evenly and in order from those of the street before"
            )
        child.append(first[street] + starts[:-1])
        children.append(int(starts[1] - starts[0]))
    child.append(np.full(len(masks[-1]), -1))
    tables = [alias_table(cards.reach[player]) for player in range(2)]
    return DealArrays(
        np.array([table[0] for table in tables]),
        np.array([table[1] for table in tables]),
        cards.hand_masks(),
        np.concatenate(masks),
        np.concatenate(child).astype(np.int64),
        np.array(children, np.int64),
        np.concatenate([np.ascontiguousarray(b.transpose(1, 0, 2)) for b in cards.bucket]).astype(np.int32),
        np.ascontiguousarray(cards.strength, np.int32),
        first[-2:-1].astype(np.int64),
    )


def of_hands(cards: ListedCards, hands: npt.NDArray[np.integer]) -> ListedCards:
    """Return the cards with only some of the hands.

    hands  [n] indices of these hands, ascending
    """
    return replace(
        cards,
        hand_cards=cards.hand_cards[hands],
        hand_names=[cards.hand_names[hand] for hand in hands.tolist()],
        reach=cards.reach[:, hands],
        strength=columns(cards.strength, hands),
        bucket=[columns(bucket, hands) for bucket in cards.bucket],
    )


def live_hands(cards: ListedCards) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield [2, B, H] for each street: True if a hand is in the player's range and fits the board."""
    masks = cards.hand_masks()
    for boards in cards.board_masks:
        yield (cards.reach > 0)[:, None] & ((boards[:, None] & masks) == 0)


def joint_weight(cards: ListedCards) -> float:
    """Return the sum of reach[0, i]·reach[1, j] over all pairs of hands (i, j) that share no card.

    reach[p] are the range weights of player p. The sum normalises expected values.
    """
    masks, live_0, live_1 = cards.hand_masks(), cards.reach[0] > 0, cards.reach[1] > 0
    disjoint = (masks[live_0][:, None] & masks[live_1][None, :]) == 0
    return float(cards.reach[0][live_0] @ disjoint @ cards.reach[1][live_1])


def _drawn(sums: npt.NDArray[np.float64], share: float) -> int:
    """Return the index that a uniform number draws in proportion to weights; never one of weight 0.

    sums   [n] cumulative sums of the weights
    share  the uniform number, in [0, 1)
    """
    row = int(np.searchsorted(sums, share * sums[-1], side="right"))
    return min(row, int(np.searchsorted(sums, sums[-1])))
