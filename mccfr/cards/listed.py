"""Cards whose hands and boards are all in a list: Kuhn, Leduc, small decks, hold'em endgames.

Hands and boards are read as people write them: `AsKh`, `Qs7h2d`, `K`, `Kc`, `nuts`.  Names of cards come from the list
itself.  Where a deck has suits, a rank alone stands for any of its cards; it is accepted as long as all that it may
mean is one infoset.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, permutations, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from abstraction.cards import plain_text
from mccfr.cards.cards import BoardHands, BucketPairs, Cards, Dealer, Difference, HeldBuckets, Narrow, unequal, unlike
from mccfr.cards.deals import NO_BUCKET, DealArrays, ListedDealer, alias_table, card_masks

_SHOWN = 8  # examples in a message


@dataclass(frozen=True)
class ListedCards(Cards):
    """Hands, ranges and boards of a game.  H hands (one list for both players), S streets, B_s boards on street s.

    hand_cards     [H, 2] int16    cards of each hand, -1 where it has fewer than two (games without cards: both -1)
    hand_names     [H]             text of each hand: "K", "AsKh"
    reach          [2, H] float64  each player's weight of each hand; the joint weight of a disjoint pair is the product
    board_cards    S × [B_s, n]    all board cards dealt up to and with street s, in order of dealing
    board_parent   S × [B_s] int32 index of the board on the street before (0 on street 0)
    strength       [B_last, H] int32   showdown order on each last-street board, higher wins; -1: hand hits it
    bucket         S × [2, B_s, H] int32  bucket of a player's hand on a board; NO_BUCKET where impossible
    buckets        [S, 2] int64    number of buckets of each street and player
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

    def hand_masks(self) -> npt.NDArray[np.uint64]:
        """[H] uint64: one bit for each card of a hand."""
        return self._masks

    @cached_property
    def _masks(self) -> npt.NDArray[np.uint64]:
        return card_masks(self.hand_cards)

    def cards_on(self, street: int) -> int:
        """As `Cards.cards_on`."""
        return self.board_cards[street].shape[1]

    @property
    def boards(self) -> int | None:
        """As `Cards.boards`."""
        return len(self.board_cards[-1])

    @property
    def deck_size(self) -> int:
        """As `Cards.deck_size`."""
        return max(1, int(self.hand_cards.max()) + 1)

    @property
    def most_hands(self) -> int:
        """As `Cards.most_hands`."""
        return max(1, int((self.reach > 0).sum(axis=1).max()))

    def listed(self) -> "ListedCards":
        """These."""
        return self

    def after(self, street: int, board: Any) -> "ListedCards":
        """As `Cards.after`."""
        if not 0 <= board < len(self.board_cards[street]):
            raise ValueError(
                f"board {board} of street {street}: it must be from 0 to {len(self.board_cards[street]) - 1}"
            )
        kept = [np.array([board])]
        for here in range(street, 0, -1):
            kept.insert(0, self.board_parent[here][kept[0]])
        for here in range(street + 1, self.streets):
            kept.append(np.flatnonzero(np.isin(self.board_parent[here], kept[-1])))
        parent = [np.zeros(1, np.int32)]
        parent += [
            np.searchsorted(above, self.board_parent[here][boards]).astype(np.int32)
            for here, (above, boards) in enumerate(pairwise(kept), 1)
        ]
        hit = (self.hand_masks() & card_masks(self.board_cards[street][[board]])) != 0
        return replace(
            self,
            reach=np.where(hit, 0, self.reach),
            board_cards=[cards[boards] for cards, boards in zip(self.board_cards, kept, strict=True)],
            board_parent=parent,
            strength=self.strength[kept[-1]],
            bucket=[bucket[:, boards] for bucket, boards in zip(self.bucket, kept, strict=True)],
        )

    def dealer(self, seed: int, worker: int) -> Dealer:
        """As `Cards.dealer`."""
        return ListedDealer(deal_arrays(self), seed, worker)

    def seated(self, other: Cards) -> "ListedCards":
        """As `Cards.seated`."""
        if not isinstance(other, ListedCards):
            raise self.apart(other)
        sides = zip(self.bucket, other.bucket, strict=True)
        return replace(
            self,
            bucket=[np.stack([own[0], others[1]]) for own, others in sides],
            buckets=np.stack([self.buckets[:, 0], other.buckets[:, 1]], axis=1),
        )

    def board_hands(self, board: Any) -> BoardHands:
        """As `Cards.board_hands`, by the number of a board of the last street."""
        if not isinstance(board, int | np.integer):
            raise ValueError(f"board {board}: boards are listed, give the number of one")
        if not 0 <= board < len(self.board_cards[-1]):
            raise ValueError(f"last_board = {board}: it must be from 0 to {len(self.board_cards[-1]) - 1}")
        path = [board]
        for parents in self.board_parent[:0:-1]:
            path.append(int(parents[path[-1]]))
        bucket = np.stack([found[:, here] for found, here in zip(self.bucket, path[::-1], strict=True)])
        free = (self.hand_masks() & card_masks(self.board_cards[-1][board : board + 1])) == 0
        live = [np.flatnonzero(free & (self.reach[player] > 0)) for player in range(2)]
        for player, hands in enumerate(live):
            missing = (bucket[:, player, hands] < 0).any(axis=0)
            if missing.any():
                name = self.hand_names[hands[np.argmax(missing)]]
                raise ValueError(f"hand {name} can be dealt but has no bucket on board {board}")
        weight = [self.reach[player, hands] for player, hands in enumerate(live)]
        return BoardHands(live, weight, bucket, self.strength[board], self.hand_cards)

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """As `Cards.bucket_pairs`, board by board."""
        live = self.reach[player] > 0
        for board, over in enumerate(self.board_parent[street].tolist()):
            bucket, before = self.bucket[street][player, board], self.bucket[street - 1][player, over]
            held = live & (bucket >= 0)
            yield bucket[held], before[held]

    def held(self) -> Iterator[HeldBuckets]:
        """As `Cards.held`: every hand on every board, weighed as in the player's range."""
        for bucket, reach in ((street[player], self.reach[player]) for street in self.bucket for player in range(2)):
            possible = (bucket >= 0) & (reach > 0)
            yield bucket[possible], np.broadcast_to(reach, bucket.shape)[possible]

    def hand_bucket(self, street: int, player: int, hand: str, board: str | None) -> int:
        """As `Cards.hand_bucket`."""
        hands, boards = find_hands(self, hand), find_boards(self, street, board)
        disjoint = (self.hand_masks()[hands][None, :] & card_masks(self.board_cards[street])[boards][:, None]) == 0
        if not disjoint.any():
            raise ValueError(f"hand {hand!r} shares a card with the board")
        bucket = self.bucket[street][player][np.ix_(boards, hands)]
        live = disjoint & (bucket != NO_BUCKET) & (self.reach[player][hands] > 0)
        if not live.any():
            raise ValueError(
                f"hand {hand!r} is not in the range of player {player} (its reach is 0): a hand such as "
                f"{self.hand_names[int(np.argmax(self.reach[player]))]} is"
            )
        found = np.unique(bucket[live])
        if len(found) > 1:
            meanings = _meanings(self, street, product(boards, hands), live.ravel())
            raise ValueError(f"hand {hand!r}, board {board or ''!r} may mean {meanings}, which differ: give the suits")
        return int(found[0])

    def hand_buckets(self, street: int, player: int, board: str | None) -> dict[str, int]:
        """As `Cards.hand_buckets`."""
        bucket = self.bucket[street][player][find_boards(self, street, board)]
        live = (bucket != NO_BUCKET) & (self.reach[player] > 0)
        found = {}
        for hand in np.flatnonzero(live.any(axis=0)).tolist():
            numbers = np.unique(bucket[live[:, hand], hand])
            if len(numbers) > 1:
                raise ValueError(f"board {board!r} may mean several boards, which differ: give the suits")
            found[self.hand_names[hand]] = int(numbers[0])
        return found

    def bucket_texts(self, street: int, player: int) -> list[tuple[int, str, str]]:
        """As `Cards.bucket_texts`."""
        names = card_names(self)
        bucket = np.where(self.reach[player] > 0, self.bucket[street][player], NO_BUCKET)
        found, first = np.unique(bucket, return_index=True)
        places = [divmod(int(place), bucket.shape[1]) for place in first]
        return [
            (number, self.hand_names[hand], board_text(self, street, board, names))
            for number, (board, hand) in zip(found.tolist(), places, strict=True)
            if number != NO_BUCKET
        ]

    @property
    def card_texts(self) -> dict[int, str]:
        """As `Cards.card_texts`."""
        return card_names(self)

    def bucket_table(self, street: int) -> str | None:
        """As `Cards.bucket_table`."""
        return f"{self.stem}bucket_street{street}"

    def arrays(self, narrow: Narrow) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """As `Cards.arrays`."""
        for name in ("hand_cards", "reach", "strength", "buckets"):
            yield f"{self.stem}{name}", getattr(self, name)
        for street, bucket in enumerate(self.bucket):
            yield f"{self.stem}board_cards_street{street}", self.board_cards[street]
            yield f"{self.stem}board_parent_street{street}", self.board_parent[street]
            marked = bucket.astype(narrow(int(self.buckets[street].max())))
            marked[bucket == NO_BUCKET] = np.iinfo(marked.dtype).max
            yield f"{self.stem}bucket_street{street}", marked

    def texts(self) -> dict[str, list[str]]:
        """As `Cards.texts`."""
        return {f"{self.stem}hand_names": list(self.hand_names)}

    def differences(self, other: Cards) -> Iterator[Difference]:
        """As `Cards.differences`: hands, ranges, boards and strengths."""
        if isinstance(other, ListedCards):
            yield from _differences(self, other)
        else:
            yield from super().differences(other)


def lossless_buckets(
    masks: npt.NDArray[np.uint64], reach: npt.NDArray[np.float64], boards: npt.NDArray[np.int16]
) -> npt.NDArray[np.int32]:
    """[2, B, H] numbers of the (board, hand) pairs that each player reaches, board by board; else NO_BUCKET.

    masks  [H] of the cards of each hand;  reach  [2, H];  boards  [B, n] of one street
    """
    disjoint = (masks[None, :] & card_masks(boards)[:, None]) == 0
    live = disjoint[None] & (reach > 0)[:, None]
    numbers = np.cumsum(live.reshape(2, -1), axis=1).reshape(live.shape) - 1
    return np.where(live, numbers, NO_BUCKET).astype(np.int32)


def deal_arrays(cards: ListedCards) -> DealArrays:
    """The deal kernel's form of a card model."""
    masks = [card_masks(board) for board in cards.board_cards]
    first = np.concatenate([[0], np.cumsum([len(mask) for mask in masks])])
    child, children = [], [len(masks[0])]
    for street in range(1, cards.streets):
        starts = np.searchsorted(cards.board_parent[street], np.arange(len(masks[street - 1]) + 1))
        if len(set(np.diff(starts))) != 1:
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


def live_hands(cards: ListedCards) -> Iterator[npt.NDArray[np.bool_]]:
    """Street by street [2, B, H]: whether a player reaches a hand and a board leaves it to him."""
    masks = cards.hand_masks()
    for boards in cards.board_cards:
        yield (cards.reach > 0)[:, None] & ((card_masks(boards)[:, None] & masks) == 0)


def joint_weight(cards: ListedCards) -> float:
    """Sum of reach[0, i]·reach[1, j] over disjoint pairs of hands: what normalises every expected value."""
    masks, live_0, live_1 = cards.hand_masks(), cards.reach[0] > 0, cards.reach[1] > 0
    disjoint = (masks[live_0][:, None] & masks[live_1][None, :]) == 0
    return float(cards.reach[0][live_0] @ disjoint @ cards.reach[1][live_1])


# --- text ---


def card_names(cards: ListedCards) -> dict[int, str]:
    """Text of every card that occurs in a hand, by its number; empty where hands have no cards."""
    names = {}
    for hand, text in zip(cards.hand_cards.tolist(), cards.hand_names, strict=True):
        held = [card for card in reversed(hand) if card >= 0]
        for place, card in enumerate(held):
            width = len(text) // len(held)
            names[card] = text[place * width : (place + 1) * width]
    return names


def board_text(cards: ListedCards, street: int, board: int, names: dict[int, str]) -> str:
    """A board as text, in order of dealing."""
    return "".join(names[int(card)] for card in cards.board_cards[street][board])


def _read_cards(text: str, names: dict[int, str], what: str) -> list[list[int]]:
    """What each card of a text may be; `ValueError` naming the part that is no card, and what is one."""
    text = plain_text(text)
    by_name = {name: [card] for card, name in names.items()}
    by_rank: dict[str, list[int]] = {}
    for card, name in sorted(names.items()):
        by_rank.setdefault(name[0], []).append(card)
    width, place, found = max(map(len, by_name)), 0, []
    while place < len(text):
        token = text[place : place + width]
        if token not in by_name and text[place] in by_rank:
            token = text[place]
        if token not in by_name and token not in by_rank:
            ranks, suits = "".join(by_rank), "".join(sorted({name[1:] for name in by_name}))
            allowed = f"a card is a rank of {ranks}" + (f" and a suit of {suits}" if suits else "")
            raise ValueError(f"{what} {text!r}: {text[place : place + width]!r} is not a card here; {allowed}")
        found.append(by_name.get(token) or by_rank[token])
        place += len(token)
    exact = [options[0] for options in found if len(options) == 1]
    if len(set(exact)) != len(exact):
        raise ValueError(f"{what} {text!r} holds a card twice: each card may be named once")
    return found


def _matches(rows: npt.NDArray[np.int16], options: Sequence[Sequence[int]]) -> npt.NDArray[np.bool_]:
    """[B] whether the cards of each row, in some order, are among the options, one for each."""
    fitting = np.zeros(len(rows), bool)
    for order in permutations(range(len(options))):
        columns = [np.isin(rows[:, column], options[option]) for column, option in enumerate(order)]
        fitting |= np.logical_and.reduce(columns) if columns else True
    return fitting


def find_hands(cards: ListedCards, text: str) -> npt.NDArray[np.int64]:
    """Indices of the hands that a text may mean, at least one; `ValueError` where it means none."""
    names = card_names(cards)
    if not names:
        if text not in cards.hand_names:
            raise ValueError(f"hand {text!r}: expected one of {', '.join(cards.hand_names)}")
        return np.array([list(cards.hand_names).index(text)])
    needed = int((cards.hand_cards[0] >= 0).sum())
    options = _read_cards(text, names, "hand")
    if len(options) != needed:
        raise ValueError(f"hand {text!r} has {len(options)} cards: a hand has {needed} here, such as {_example(cards)}")
    return np.flatnonzero(_matches(cards.hand_cards[:, :needed], options))


def _example(cards: ListedCards) -> str:
    return cards.hand_names[int(np.argmax(cards.reach.max(axis=0)))]


def find_boards(cards: ListedCards, street: int, text: str | None) -> npt.NDArray[np.int64]:
    """Indices of the boards of a street that a text may mean.

    Cards of one street may come in any order.  Where the game begins on a board of its own, the text may leave that
    board out.  None or "" means the only board there is.  Raises `ValueError` where the number of cards is not the
    street's or no board has these cards.
    """
    rows, names = cards.board_cards[street], card_names(cards)
    own = cards.board_cards[0].shape[1] if len(cards.board_cards[0]) == 1 else 0
    if not text:
        if len(rows) == 1:
            return np.zeros(1, np.int64)
        raise ValueError(f"no board is given: {_board_needed(cards, street, own, names)}")
    if not names or not rows.shape[1]:
        raise ValueError(f"board {text!r}: no board has been dealt at this point; leave it out")
    options = _read_cards(text, names, "board")
    if own and len(options) == rows.shape[1] - own:
        options = [[int(card)] for card in cards.board_cards[0][0]] + options
    if len(options) != rows.shape[1]:
        raise ValueError(f"board {text!r} has {len(options)} cards: {_board_needed(cards, street, own, names)}")
    fitting, start = np.ones(len(rows), bool), 0
    for here in range(street + 1):
        stop = cards.board_cards[here].shape[1]
        fitting &= _matches(rows[:, start:stop], options[start:stop])
        start = stop
    if not fitting.any():
        begins = f"; the game begins with {board_text(cards, 0, 0, names)}" if own else ""
        raise ValueError(f"board {text!r} is not one of this game's{begins}")
    return np.flatnonzero(fitting)


def _board_needed(cards: ListedCards, street: int, own: int, names: dict[int, str]) -> str:
    needed = cards.board_cards[street].shape[1]
    if own and needed > own:
        return f"{needed} are needed, or only the {needed - own} dealt after {board_text(cards, 0, 0, names)}"
    return f"the board has {needed} card{'s' * (needed != 1)} at this point"


def _meanings(cards: ListedCards, street: int, pairs: Iterable[tuple[int, int]], live: npt.NDArray[np.bool_]) -> str:
    names = card_names(cards)
    texts = [
        f"{cards.hand_names[hand]} {board_text(cards, street, board, names)}".rstrip()
        for (board, hand), possible in zip(pairs, live, strict=True)
        if possible
    ]
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")


# --- comparison ---


def _differences(first: ListedCards, second: ListedCards) -> Iterator[Difference]:
    yield from unequal("the number of hands", len(first.hand_names), len(second.hand_names))
    hands, names = first.hand_names, card_names(first)
    for hand, (name, instead) in enumerate(zip(hands, second.hand_names, strict=True)):
        yield from unequal(f"the name of hand {hand}", name, instead)
    for (hand, _), _, _ in unlike(first.hand_cards, second.hand_cards):
        yield f"the cards of hand {hands[hand]}", first.hand_cards[hand].tolist(), second.hand_cards[hand].tolist()
    for (player, hand), weight, instead in unlike(first.reach, second.reach):
        yield f"the weight of {hands[hand]} in the range of player {player}", weight, instead
    for street, (boards, others) in enumerate(zip(first.board_cards, second.board_cards, strict=True)):
        yield from unequal(f"the number of board cards on street {street}", boards.shape[1], others.shape[1])
        yield from unequal(f"the number of boards of street {street}", len(boards), len(others))
        for (board, _), _, _ in unlike(boards, others):
            shown = [board_text(cards, street, board, names) for cards in (first, second)]
            yield f"board {board} of street {street}", shown[0], shown[1]
        parents = first.board_parent[street], second.board_parent[street]
        for (board,), parent, instead in unlike(*parents):
            yield f"the board before board {board} of street {street}", parent, instead
    for (board, hand), strength, instead in unlike(first.strength, second.strength):
        yield f"the strength of {hands[hand]} on the board {board_text(first, -1, board, names)}", strength, instead
