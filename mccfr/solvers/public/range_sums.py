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

from mccfr.cards.listed import ListedCards, live_hands, of_hands

NO_CARD, EVERYTHING, NOT_READ = 0, 1, 2
"""Rows of sums by card: 0 always, for hands of fewer than two cards; the whole range; what nobody reads; cards."""
Ints = npt.NDArray[Any]
_TOGETHER = 128  # boards that are listed at once


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
    """One player's hands on some boards, board by board in order of their buckets.  N boards, F hands on them.

    first                 [N+1] hands of board n are first[n] .. first[n+1]-1
    board, hand, bucket   [F] each
    column                [F] counted from the board's first
    strength              [F]
    card                  [F, 2] rows of sums
    """

    first: Ints
    board: Ints
    hand: Ints
    bucket: Ints
    column: Ints
    strength: Ints
    card: Ints


def make_ranges(cards: ListedCards, walked: npt.NDArray[np.bool_], *, merge: bool = False) -> Ranges:
    """The hands on each board of all streets that is `walked` [T]; with `merge` those of a bucket share a column.

    Raises `ValueError` for a hand that can be dealt but has no bucket.
    """
    held = np.flatnonzero(cards.reach.any(axis=0))  # of 1,326 often some fifty
    names, cards = cards.hand_names, of_hands(cards, held)
    start, counts = 0, np.zeros((3, 2, len(walked) + 1), np.int64)  # columns, groups, hands
    by_column, by_hand = _Parts({}), _Parts({})
    for street, live in enumerate(live_hands(cards)):
        strengths = cards.strength if street + 1 == cards.streets else np.zeros_like(cards.strength[:1])
        numbers = np.flatnonzero(walked[start : start + live.shape[1]])
        for some in np.split(numbers, range(_TOGETHER, len(numbers), _TOGETHER)):
            strength = strengths[some % len(strengths)]
            lists = _lists(cards, live[:, some], cards.bucket[street][:, some], strength, merge)
            for player, mine in enumerate(lists):
                sizes, found = _entries(mine, lists[1 - player])
                counts[:, player, start + some + 1] = *sizes, np.diff(mine.first)
                by_column.add(player, found)
                by_hand.add(player, _every(mine, None if merge else found["place"]))
        start += live.shape[1]
    columns, every = (
        {name: held[of].astype(of.dtype) if name in ("hand", "ranked") else of for name, of in parts.joined().items()}
        for parts in (by_column, by_hand)
    )
    if np.any(columns["bucket"] < 0):
        name = names[int(columns["hand"][np.argmin(columns["bucket"])])]
        raise ValueError(f"hand {name} can be dealt but has no bucket on a board")
    first, group_first, every_first = np.cumsum(counts.reshape(3, -1), axis=1).reshape(counts.shape)
    if not merge:
        every_first, every = first, every | {name: columns[name] for name in ("hand", "place", "card")}
    return Ranges(first, group_first=group_first, every=EveryHand(every_first, **every), **columns)


class _Parts(NamedTuple):
    """Arrays by name as they are found, board by board, of player 0 and of player 1."""

    found: dict[str, tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]]

    def add(self, player: int, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Those of the next boards."""
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
    """Both players' hands on N boards: live and bucket [2, N, H], strength [N, H]."""
    boards, found = live.shape[1], []
    held = [np.nonzero(of) for of in live]
    dealt = np.zeros((boards, int(cards.hand_cards.max(initial=-1)) + 2), bool)  # in the last column, no card: -1
    for board, hand in held:
        dealt[board[:, None], cards.hand_cards[hand]] = True
    row_of = np.where(dealt, np.cumsum(dealt, axis=1) + NOT_READ, NO_CARD)
    row_of[:, -1] = NO_CARD
    for player, listed in enumerate(held):
        order = np.lexsort((bucket[player, *listed], listed[0]))
        board, hand = (each[order] for each in listed)
        numbers, first = bucket[player, board, hand], _starts(board, boards)
        column = np.arange(len(hand))
        if merge:
            column = np.cumsum((np.diff(numbers, prepend=-1) != 0) | (np.diff(board, prepend=-1) != 0))
        column -= column[np.minimum(first[board], len(column) - 1)]
        card = row_of[board[:, None], cards.hand_cards[hand]]
        found.append(_List(first, board, hand, numbers, column, strength[board, hand].astype(np.int64), card))
    return found


def _starts(board: Ints, boards: int) -> Ints:
    """[boards+1] where each board begins in an ascending list of boards."""
    found: Ints = np.searchsorted(board, np.arange(boards + 1))
    return found


def _columns(mine: _List) -> _List:
    """The first hand of each column."""
    new = np.diff(mine.column, prepend=-1) != 0
    new[mine.first[:-1][np.diff(mine.first) > 0]] = True
    board, *others = (each[new] for each in mine[1:])
    return _List(_starts(board, len(mine.first) - 1), board, *others)


def _entries(mine: _List, other: _List) -> tuple[tuple[Ints, Ints], dict[str, npt.NDArray[Any]]]:
    """How many columns and groups a player has on each of some boards [N], and what `Ranges` says of them."""
    columns, theirs = _columns(mine), _columns(other)
    boards, board = len(mine.first) - 1, columns.board
    places = np.full((boards, 1 + max(mine.hand.max(initial=0), other.hand.max(initial=0))), -1)
    places[other.board, other.hand] = other.column
    two = (columns.card != NO_CARD).all(axis=1)  # hands of two cards
    same = np.where(two, places[board, columns.hand], -1)
    same = np.where(same >= 0, same, np.diff(theirs.first)[board])
    # Strengths of boards that follow each other, in one order.
    apart = 1 + max(mine.strength.max(initial=0), other.strength.max(initial=0))
    order = np.argsort(board * apart + columns.strength, kind="stable")
    strengths, ends = np.unique(board * apart + columns.strength, return_counts=True)
    held, at = np.sort(other.board * apart + other.strength), strengths // apart
    group = [np.cumsum(ends) - columns.first[at]]
    group += [np.searchsorted(held, strengths, side) - other.first[at] for side in ("left", "right")]
    return (np.diff(columns.first), np.bincount(at, minlength=boards)), {
        "hand": columns.hand.astype(np.int32),
        "bucket": columns.bucket.astype(np.int32),
        "place": (order - columns.first[board]).astype(np.int32),
        "card": columns.card[order].astype(np.uint16),
        "same": same[order].astype(np.int32),
        "group": np.stack(group, axis=1).astype(np.int32),
    }


def _every(mine: _List, place: npt.NDArray[Any] | None) -> dict[str, npt.NDArray[Any]]:
    """What `EveryHand` says of a player's hands on boards; only what `Ranges` does not, if those are its places."""
    order = np.lexsort((mine.strength, mine.board)) if place is None else place + mine.first[mine.board]
    found = {"ranked": mine.hand[order].astype(np.int32), "column": mine.column.astype(np.int32)}
    if place is None:
        found["hand"], found["place"] = mine.hand.astype(np.int32), mine.column[order].astype(np.int32)
        found["card"] = mine.card[order].astype(np.uint16)
    return found
