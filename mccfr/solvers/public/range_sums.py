"""Hands by board as walks of whole ranges take them: in order of their buckets, and in order of strength.

Tables have the hands of a board in the order of their buckets, and so have ranges and values on their way through a
street tree.  Terminals (`terminal_lanes`) go over them from weak to strong: cards, and where a hand stands in the other
order, are listed that way, with the groups of equal strength that a showdown goes through.

Hands that a renaming of suits takes to each other, and that share a bucket, may share a *column* too: ranges and values
then have one cell for all of them, the first hand's, and every hand is listed only where each counts.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.listed import ListedCards, live_hands

NO_CARD, EVERYTHING, NOT_READ = 0, 1, 2
"""Rows of sums by card: 0 always, for hands of fewer than two cards; the whole range; what nobody reads; cards."""


class EveryHand(NamedTuple):
    """Every hand of a player on a board, by its columns.  T boards, F hands on boards.

    first     [2, T+1] int64   hands of player p on board t are first[p, t] .. first[p, t+1]-1
    hand      [F] int32        number of the hand, in the order of columns
    column    [F] int32        its column, counted from the board's first

    By strength, ascending on a board (before the last street all are equal):

    ranked    [F] int32        number of the hand
    place     [F] int32        its column
    card      [F, 2] uint16    rows of sums of its cards; see `NO_CARD`
    """

    first: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    ranked: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]


class Ranges(NamedTuple):
    """Hands by board, as kernels take them.  T boards, E columns, G groups of equal strength.

    A player's hands on a board are those that he reaches and that share no card with it; none where it is not walked.
    A column is one of them, or stands for several that share a bucket: it is the first of them.

    first         [2, T+1] int64   columns of player p on board t are first[p, t] .. first[p, t+1]-1
    hand          [E] int32        number of the hand
    bucket        [E] int32        the player's bucket of this hand on this board, ascending on a board

    By strength, ascending on a board (before the last street all are equal):

    place         [E] int32        which column it is, counted from the board's first
    card          [E, 2] uint16    rows of sums of its hand's cards; see `NO_CARD`
    same          [E] int32        column of the same two cards in the other player's list of the board, else its length
    group_first   [2, T+1] int64   groups of player p on board t, each of hands of equal strength
    group         [G, 3] int32     his columns up to a group's, the other's hands below that strength, and up to it

    every         hands by columns; the arrays above where each has a column of its own
    """

    first: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]
    same: npt.NDArray[np.int32]
    group_first: npt.NDArray[np.int64]
    group: npt.NDArray[np.int32]
    every: EveryHand

    @property
    def merged(self) -> bool:
        """Whether hands share columns."""
        return self.every.hand is not self.hand


class _List(NamedTuple):
    """One player's hands on a board, in order of their buckets; columns, strengths and rows of sums beside them."""

    hand: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int32]
    column: npt.NDArray[np.int64]
    strength: npt.NDArray[np.int64]
    card: npt.NDArray[np.int64]


def make_ranges(cards: ListedCards, walked: npt.NDArray[np.bool_], *, merge: bool = False) -> Ranges:
    """The hands on each board of all streets that is `walked` [T]; with `merge` those of a bucket share a column.

    Raises `ValueError` for a hand that can be dealt but has no bucket.
    """
    boards, board = len(walked), -1
    counts = np.zeros((3, 2, boards + 1), np.int64)  # columns, groups, hands
    by_column, by_hand = _Parts({}), _Parts({})
    for street, live in enumerate(live_hands(cards)):
        strengths = cards.strength if street + 1 == cards.streets else np.zeros_like(cards.strength[:1])
        for number in range(live.shape[1]):
            board += 1
            if not walked[board]:
                continue
            strength = strengths[number % len(strengths)]
            lists = _lists(cards, live[:, number], cards.bucket[street][:, number], strength, merge)
            entries = [_entries(*lists)]
            entries.append(entries[0] if lists[0] is lists[1] else _entries(*lists[::-1]))
            for player, (mine, found) in enumerate(zip(lists, entries, strict=True)):
                counts[:, player, board + 1] = len(found["hand"]), len(found["group"]), len(mine.hand)
                by_column.add(player, found)
                by_hand.add(player, _every(mine, None if merge else found["place"]))
    columns, every = by_column.joined(), by_hand.joined()
    if np.any(columns["bucket"] < 0):
        name = cards.hand_names[int(columns["hand"][np.argmin(columns["bucket"])])]
        raise ValueError(f"hand {name} can be dealt but has no bucket on a board")
    first, group_first, every_first = np.cumsum(counts.reshape(3, -1), axis=1).reshape(counts.shape)
    if not merge:
        every_first, every = first, every | {name: columns[name] for name in ("hand", "place", "card")}
    return Ranges(first, group_first=group_first, every=EveryHand(every_first, **every), **columns)


class _Parts(NamedTuple):
    """Arrays by name as they are found, board by board, of player 0 and of player 1."""

    found: dict[str, tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]]

    def add(self, player: int, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Those of the next board."""
        for name, part in arrays.items():
            self.found.setdefault(name, ([], []))[player].append(part)

    def joined(self) -> dict[str, npt.NDArray[Any]]:
        """All of player 0's, then all of player 1's."""
        return {name: np.concatenate([*own[0], *own[1]]) for name, own in self.found.items()}


def _lists(
    cards: ListedCards,
    live: npt.NDArray[np.bool_],
    bucket: npt.NDArray[np.int32],
    strength: npt.NDArray[np.int32],
    merge: bool,
) -> list[_List]:
    """Both players' hands on a board: live and bucket [2, H], strength [H]; one list, twice, where they are alike."""
    dealt = np.zeros(int(cards.hand_cards.max(initial=-1)) + 2, bool)
    dealt[cards.hand_cards[live.any(axis=0)]] = True
    row_of = np.where(dealt, np.cumsum(dealt) + NOT_READ, NO_CARD)
    row_of[-1] = NO_CARD  # no card is -1
    alike = np.array_equal(live[0], live[1]) and np.array_equal(*bucket[:, live[0]])
    found = []
    for player in range(1 if alike else 2):
        hands = np.flatnonzero(live[player])
        hands = hands[np.argsort(bucket[player, hands], kind="stable")]
        numbers = bucket[player, hands]
        column = np.cumsum(np.diff(numbers, prepend=numbers[:1]) > 0) if merge else np.arange(len(hands))
        found.append(_List(hands, numbers, column, strength[hands].astype(np.int64), row_of[cards.hand_cards[hands]]))
    return found * 2 if alike else found


def _columns(mine: _List) -> _List:
    """The first hand of each column."""
    first = np.flatnonzero(np.diff(mine.column, prepend=-1))
    return _List(mine.hand[first], mine.bucket[first], mine.column[first], mine.strength[first], mine.card[first])


def _entries(mine: _List, other: _List) -> dict[str, npt.NDArray[Any]]:
    """What `Ranges` says of a player's columns on a board."""
    columns, others = _columns(mine), 1 + int(other.column.max(initial=-1))
    places = np.full(1 + max(mine.hand.max(initial=0), other.hand.max(initial=0)), others)
    places[other.hand] = other.column
    two = (columns.card != NO_CARD).all(axis=1)  # hands of two cards
    same = np.where(two, places[columns.hand], others)
    order = np.argsort(columns.strength, kind="stable")
    strengths, sizes = np.unique(columns.strength, return_counts=True)
    theirs = np.sort(other.strength)
    group = [np.cumsum(sizes), np.searchsorted(theirs, strengths, "left"), np.searchsorted(theirs, strengths, "right")]
    return {
        "hand": columns.hand.astype(np.int32),
        "bucket": columns.bucket.astype(np.int32),
        "place": order.astype(np.int32),
        "card": columns.card[order].astype(np.uint16),
        "same": same[order].astype(np.int32),
        "group": np.stack(group, axis=1).astype(np.int32),
    }


def _every(mine: _List, place: npt.NDArray[Any] | None) -> dict[str, npt.NDArray[Any]]:
    """What `EveryHand` says of a player's hands on a board; only what `Ranges` does not, if these are its places."""
    order = np.argsort(mine.strength, kind="stable") if place is None else place
    found = {"ranked": mine.hand[order].astype(np.int32), "column": mine.column.astype(np.int32)}
    if place is None:
        found["hand"], found["place"] = mine.hand.astype(np.int32), mine.column[order].astype(np.int32)
        found["card"] = mine.card[order].astype(np.uint16)
    return found
