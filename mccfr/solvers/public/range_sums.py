"""Hands by board as walks of whole ranges take them: in order of their buckets, and in order of strength.

Tables have the hands of a board in the order of their buckets, and so have ranges and values on their way through a
street tree.  Terminals (`terminal_lanes`) go over them from weak to strong: cards, and where a hand stands in the other
order, are listed that way, with the groups of equal strength that a showdown goes through.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.listed import ListedCards, live_hands

NO_CARD, EVERYTHING, NOT_READ = 0, 1, 2
"""Rows of sums by card: 0 always, for hands of fewer than two cards; the whole range; what nobody reads; cards."""


class Ranges(NamedTuple):
    """Hands by board, as kernels take them.  T boards, E entries, G groups of equal strength, P = 2 players.

    A player's hands on a board are those that he reaches and that share no card with it; none where it is not walked.

    first         [2, T+1] int64   entries of player p on board t are first[p, t] .. first[p, t+1]-1
    hand          [E] int32        number of the hand
    bucket        [E] int32        the player's bucket of this hand on this board, ascending on a board

    By strength, ascending on a board (before the last street all are equal):

    place         [E] int32        where the hand stands in the list of the board
    ranked        [E] int32        its number
    card          [E, 2] uint16    rows of sums of its cards; see `NO_CARD`
    same          [E] int32        place of the same two cards in the other player's list of the board, else its length
    group_first   [2, T+1] int64   groups of player p on board t, each of hands of equal strength
    group         [G, 3] int32     his hands up to a group's, the other's below that strength, and those up to it
    """

    first: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    ranked: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]
    same: npt.NDArray[np.int32]
    group_first: npt.NDArray[np.int64]
    group: npt.NDArray[np.int32]


class _List(NamedTuple):
    """One player's hands on a board, in order of their buckets; strengths and rows of sums beside them."""

    hand: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int64]
    card: npt.NDArray[np.int64]


def make_ranges(cards: ListedCards, walked: npt.NDArray[np.bool_]) -> Ranges:
    """The hands on each board of all streets that is `walked` [T].

    Raises `ValueError` for a hand that can be dealt but has no bucket.
    """
    boards, board = len(walked), -1
    first, group_first = np.zeros((2, boards + 1), np.int64), np.zeros((2, boards + 1), np.int64)
    names = ("hand", "bucket", "place", "ranked", "card", "same", "group")
    parts: dict[str, tuple[list[npt.NDArray[np.generic]], ...]] = {name: ([], []) for name in names}
    for street, live in enumerate(live_hands(cards)):
        strengths = cards.strength if street + 1 == cards.streets else np.zeros_like(cards.strength[:1])
        for number in range(live.shape[1]):
            board += 1
            first[:, board + 1], group_first[:, board + 1] = first[:, board], group_first[:, board]
            if not walked[board]:
                continue
            lists = _lists(cards, live[:, number], cards.bucket[street][:, number], strengths[number % len(strengths)])
            entries = [_entries(*lists)]
            entries.append(entries[0] if lists[0] is lists[1] else _entries(*lists[::-1]))
            for player, (mine, found) in enumerate(zip(lists, entries, strict=True)):
                first[player, board + 1] += len(mine.hand)
                group_first[player, board + 1] += len(found["group"])
                for name, part in found.items():
                    parts[name][player].append(part)
    joined = {name: np.concatenate([*part[0], *part[1]]) for name, part in parts.items()}
    if np.any(joined["bucket"] < 0):
        name = cards.hand_names[int(joined["hand"][np.argmin(joined["bucket"])])]
        raise ValueError(f"hand {name} can be dealt but has no bucket on a board")
    first[1] += first[0, -1]
    group_first[1] += group_first[0, -1]
    return Ranges(first, group_first=group_first, **joined)


def _lists(
    cards: ListedCards, live: npt.NDArray[np.bool_], bucket: npt.NDArray[np.int32], strength: npt.NDArray[np.int32]
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
        found.append(
            _List(hands, bucket[player, hands], strength[hands].astype(np.int64), row_of[cards.hand_cards[hands]])
        )
    return found * 2 if alike else found


def _entries(mine: _List, other: _List) -> dict[str, npt.NDArray[np.generic]]:
    """What `Ranges` says of a player's hands on a board."""
    places = np.full(1 + max(mine.hand.max(initial=0), other.hand.max(initial=0)), len(other.hand))
    places[other.hand] = np.arange(len(other.hand))
    two = (mine.card != NO_CARD).all(axis=1)  # hands of two cards
    same = np.where(two, places[mine.hand], len(other.hand))
    order = np.argsort(mine.strength, kind="stable")
    strengths, sizes = np.unique(mine.strength, return_counts=True)
    theirs = np.sort(other.strength)
    group = [np.cumsum(sizes), np.searchsorted(theirs, strengths, "left"), np.searchsorted(theirs, strengths, "right")]
    return {
        "hand": mine.hand.astype(np.int32),
        "bucket": mine.bucket.astype(np.int32),
        "place": order.astype(np.int32),
        "ranked": mine.hand[order].astype(np.int32),
        "card": mine.card[order].astype(np.uint16),
        "same": same[order].astype(np.int32),
        "group": np.stack(group, axis=1).astype(np.int32),
    }
