"""Hands by board for walks of whole ranges, by bucket and by strength.

Tables, ranges and values hold the hands of a board in the order of their buckets.  The code for terminals
(`terminals.range_values`) goes through them from weak to strong.  So cards, columns and groups of equal strength are
also listed by strength.

Hands that share a bucket and differ only by a renaming of suits may share a *column*.  Ranges and values then have one
cell for them, the first hand's.  Where every hand counts, as in sums of reach, `EveryHand` lists them one by one.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import by_reference
from mccfr.cards.card_lists import ListedCards, live_hands, of_hands
from mccfr.solvers.public.hand_lists import list_hands, room_for, room_on_board

Ints = npt.NDArray[Any]
_TOGETHER = 128  # boards listed in one call


class EveryHand(NamedTuple):
    """Every single hand of a player on a board, with its column: T boards, F hands on boards.

    A column is a cell of a range on a board: one hand, or hands that share a bucket.

    first   [2, T+1] int64  hands of player p on board t are first[p, t] to first[p, t+1]-1
    hand    [F] int32       number of the hand, in the order of columns
    column  [F] int32       its column, counted from the board's first

    By strength, ascending on a board (before the last street all are equal):

    ranked  [F] int32      number of the hand
    place   [F] int32      its column
    card    [F, 2] uint16  rows of its two cards in a table that has the opponent's reach summed by card; `NO_CARD`: no
                           card
    """

    first: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    ranked: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]


@by_reference
class Ranges(NamedTuple):
    """Hands by board for kernels: T boards, E columns, G groups of equal strength.

    A player's hands on a board are those with positive reach that share no card with it; there are none if the board is
    not walked.  A column is one of them, or the first of several that share a bucket.

    first   [2, T+1] int64  columns of player p on board t are first[p, t] to first[p, t+1]-1
    hand    [E] int32       number of the hand
    bucket  [E] int32       the player's bucket of this hand on this board, ascending on a board

    By strength, ascending on a board (before the last street all are equal):

    place        [E] int32       column, counted from the board's first
    card         [E, 2] uint16   rows of the hand's two cards in a table that has the opponent's reach summed by card;
                                 `NO_CARD`: no card
    same         [E] int32       column of the same two cards in the other player's list of the board, else its length
    group_first  [2, T+1] int64  groups of player p on board t, each of hands of equal strength
    group        [G, 3] int32    three counts for each group: the player's columns on the board up to the group's end;
                                 the other player's hands that are weaker; those that are weaker or equal
    every        EveryHand       single hands by column; shares the arrays above if each hand has its own column
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
        """Return whether hands that share a bucket share a column, a cell of ranges and values."""
        return self.every.hand is not self.hand


def make_ranges(cards: ListedCards, walked: npt.NDArray[np.bool_], *, merge: bool = False) -> Ranges:
    """Return both players' hands on each walked board of all streets, by bucket and by strength.

    cards   ListedCards of the game
    walked  [T] bool: whether each board is walked
    merge   whether hands of a board that share a bucket share a column

    Raises `ValueError` for a hand that can be dealt but has no bucket.
    """
    held = np.flatnonzero(cards.reach.any(axis=0)).astype(np.int32)  # often about 50 of 1,326
    names, cards = cards.hand_names, of_hands(cards, held)
    hand_cards, starts = np.ascontiguousarray(cards.hand_cards), np.cumsum([0, *map(len, cards.board_cards)])
    boards = [np.flatnonzero(walked[first:stop]) for first, stop in pairwise(starts)]
    live = [here[:, own] for here, own in zip(live_hands(cards), boards, strict=True)]
    hands = [sum(int(np.count_nonzero(here[player])) for here in live) for player in range(2)]
    lists, on_board, counts = (
        room_for(sum(hands)),
        room_on_board(hand_cards),
        np.zeros((3, 2, starts[-1] + 1), np.int64),
    )
    on_board.at[1] = hands[0]
    for street, own in enumerate(boards):
        strengths = cards.strength if street + 1 == cards.streets else np.zeros_like(cards.strength[:1])
        for begin in range(0, len(own), _TOGETHER):
            some, sizes = own[begin : begin + _TOGETHER], np.zeros((3, 2, min(_TOGETHER, len(own) - begin)), np.int64)
            here = np.ascontiguousarray(live[street][:, begin : begin + _TOGETHER])
            bucket, strength = (
                np.ascontiguousarray(of, np.int32)  # so that one compiled kernel serves all
                for of in (cards.bucket[street][:, some], strengths[some % len(strengths)])
            )
            list_hands(here, bucket, strength, hand_cards, merge, on_board, sizes, lists)
            counts[:, :, starts[street] + some + 1] = sizes
    first, group_first, every_first = np.cumsum(counts.reshape(3, -1), axis=1).reshape(counts.shape)
    stop = on_board.at.T.tolist()  # ends of columns, groups, hands
    columns = dict(zip(("hand", "bucket", "place", "same"), lists.columns, strict=True)) | {"card": lists.card}
    columns = {name: _closed(column, hands[0], *stop[0]) for name, column in columns.items()}
    columns["group"] = _closed(lists.group, hands[0], *stop[1])
    hand, column, ranked, place = lists.every
    for numbers in (columns["hand"], ranked, *([hand] if merge else [])):
        numbers[:] = held[numbers]  # in place: the array is part of the result
    if np.any(columns["bucket"] < 0):
        name = names[int(columns["hand"][np.argmin(columns["bucket"])])]
        raise ValueError(f"hand {name} can be dealt but has no bucket on a board")
    every = {"ranked": ranked, "column": column}
    if merge and len(column) > len(columns["hand"]):
        every |= {"hand": hand, "place": place, "card": lists.ranked}
    else:
        every_first, every = first, every | {name: columns[name] for name in ("hand", "place", "card")}
    return Ranges(first, group_first=group_first, every=EveryHand(every_first, **every), **columns)


def _closed(room: Ints, begin: int, end: int, stop: int) -> Ints:
    """Return an array's rows of both players, without the unused rows between them.

    room   array: rows before `end` are player 0's, rows `begin` to `stop-1` are player 1's
    begin  first row of player 1, at least `end`

    The result is a view if no row is unused, else a copy.
    """
    return room[:stop] if end == begin else np.concatenate([room[:end], room[begin:stop]])
