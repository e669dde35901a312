"""Hands by board as walks of whole ranges take them: in order of their buckets, and in order of strength.

Tables have the hands of a board in the order of their buckets, and so have ranges and values on their way through a
street tree.  Terminals (`terminal_lanes`) go over them from weak to strong: cards, and where a hand stands in the other
order, are listed that way, with the groups of equal strength that a showdown goes through.

Hands that a renaming of suits takes to each other, and that share a bucket, may share a *column* too: ranges and values
then have one cell for all of them, the first hand's, and every hand is listed only where each counts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.listed import ListedCards, live_hands, of_hands
from mccfr.solvers.public.hand_lists import HandLists, list_hands, room_for, room_on_board

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


def make_ranges(cards: ListedCards, walked: npt.NDArray[np.bool_], *, merge: bool = False) -> Ranges:
    """The hands on each board of all streets that is `walked` [T]; with `merge` those of a bucket share a column.

    Raises `ValueError` for a hand that can be dealt but has no bucket.
    """
    held = np.flatnonzero(cards.reach.any(axis=0))  # of 1,326 often some fifty
    names, cards = cards.hand_names, of_hands(cards, held)
    hand_cards = np.ascontiguousarray(cards.hand_cards)
    on_board = room_on_board(hand_cards)
    start, counts, found = 0, np.zeros((3, 2, len(walked) + 1), np.int64), _Parts({})  # columns, groups, hands
    for street, live in enumerate(live_hands(cards)):
        strengths = cards.strength if street + 1 == cards.streets else np.zeros_like(cards.strength[:1])
        numbers = np.flatnonzero(walked[start : start + live.shape[1]])
        for some in np.split(numbers, range(_TOGETHER, len(numbers), _TOGETHER)):
            here, sizes = np.ascontiguousarray(live[:, some]), np.zeros((3, 2, len(some)), np.int64)
            room = room_for(int(here.sum(axis=(1, 2)).max()))
            bucket, strength = (
                np.ascontiguousarray(of, np.int32)  # one kernel for all
                for of in (cards.bucket[street][:, some], strengths[some % len(strengths)])
            )
            list_hands(here, bucket, strength, hand_cards, merge, on_board, sizes, room)
            counts[:, :, start + some + 1] = sizes
            for player, ends in enumerate(sizes.sum(axis=2).T.tolist()):
                found.add(player, ends, room)
        start += live.shape[1]
    first, group_first, every_first = np.cumsum(counts.reshape(3, -1), axis=1).reshape(counts.shape)
    columns = {name: found.joined(name) for name in ("hand", "bucket", "place", "card", "same", "group")}
    columns["hand"] = held[columns["hand"]].astype(np.int32)
    if np.any(columns["bucket"] < 0):
        name = names[int(columns["hand"][np.argmin(columns["bucket"])])]
        raise ValueError(f"hand {name} can be dealt but has no bucket on a board")
    every = {"ranked": held[found.joined("ranked")].astype(np.int32), "column": found.joined("column")}
    if merge and len(every["column"]) > len(columns["hand"]):
        every |= {name: found.joined(f"every_{name}") for name in ("hand", "place", "card")}
        every["hand"] = held[every["hand"]].astype(np.int32)
    else:
        every_first, every = first, every | {name: columns[name] for name in ("hand", "place", "card")}
    return Ranges(first, group_first=group_first, every=EveryHand(every_first, **every), **columns)


class _Parts(NamedTuple):
    """Lists by name as they are found, board by board, of player 0 and of player 1."""

    found: dict[str, tuple[list[Ints], list[Ints]]]

    def add(self, player: int, ends: Sequence[int], lists: HandLists) -> None:
        """Those of the next boards; ends: columns, groups and hands of the player there."""
        own, hands = lists.columns[player, :, : ends[0]].copy(), lists.every[player, :, : ends[2]].copy()
        parts = dict(zip(("hand", "bucket", "place", "same"), own, strict=True))
        parts |= dict(zip(("every_hand", "column", "ranked", "every_place"), hands, strict=True))
        parts["card"], parts["every_card"] = (
            lists.card[player, : ends[0]].copy(),
            lists.ranked[player, : ends[2]].copy(),
        )
        parts["group"] = lists.group[player, : ends[1]].copy()
        for name, part in parts.items():
            self.found.setdefault(name, ([], []))[player].append(part)

    def joined(self, name: str) -> Ints:
        """All of player 0's, then all of player 1's, which are kept no longer."""
        return np.concatenate([part for own in self.found.pop(name) for part in own])
