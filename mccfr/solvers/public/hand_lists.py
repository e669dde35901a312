"""Lists the hands of both players on boards by bucket and by strength.

`range_sums` builds ranges from them.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import by_reference, njit, part_njit

NO_CARD, EVERYTHING, NOT_READ = 0, 1, 2
"""Rows of sums by card: always 0 (for missing cards), the whole range, and a row that is never read.

The cards' rows follow.
"""


@by_reference
class HandLists(NamedTuple):
    """Memory for lists of F hands of both players, with fields as in `Ranges`.

    every    [4, F] int32   hand and column in the order of columns; ranked and place by strength.  If no hands share
                            columns, hand and place are those of `columns` and not written, and neither is `ranked`
                            below
    ranked   [F, 2] uint16  cards of hands by strength
    columns  [4, F] int32   hand, bucket, place, same
    card     [F, 2] uint16  cards of columns by strength
    group    [F, 3] int32   groups of equal strength
    """

    every: npt.NDArray[np.int32]
    ranked: npt.NDArray[np.uint16]
    columns: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]
    group: npt.NDArray[np.int32]


@by_reference
class OnBoard(NamedTuple):
    """Scratch for both players' hands on one board.

    order, ranked  [2, H]     hands by bucket, by strength
    column         [2, H]     column of each hand; -1 if the player cannot hold it
    held           [2, 2]     numbers of hands and columns of each player
    at             [2, 3]     positions in the lists for a player's next columns, groups and hands
    row            [cards+1]  row of sums of each card; the last is for no card
    room           [H]        hands, for sorting
    tally          [257]      counts of key bytes, for sorting
    """

    order: npt.NDArray[np.int64]
    ranked: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    room: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]


def room_for(hands: int) -> HandLists:
    """Return memory for lists of `hands` hands; pages that are not written take no memory."""
    every, columns = (np.empty((4, hands), np.int32) for _ in range(2))
    ranked, card = (np.empty((hands, 2), np.uint16) for _ in range(2))
    return HandLists(every, ranked, columns, card, np.empty((hands, 3), np.int32))


def room_on_board(hand_cards: npt.NDArray[np.integer]) -> OnBoard:
    """Return scratch for all hands [H, 2]."""
    order, ranked, column = np.zeros((3, 2, len(hand_cards)), np.int64)
    row = np.zeros(2 + int(hand_cards.max(initial=-1)), np.int64)
    held, at, room, tally = (np.zeros(shape, np.int64) for shape in ((2, 2), (2, 3), len(hand_cards), 257))
    return OnBoard(order, ranked, column, held, at, row, room, tally)


@part_njit
def _sort(key, order, count, scratch):
    """Sort order[:count] by key[order[i]]: a stable radix sort over the bytes in which keys differ."""
    if count == 0:
        return
    low = high = before = np.int64(key[order[0]])
    sorted_, shift, tally = True, np.int64(0), scratch.tally  # one type for the literal and the sum
    for i in range(1, count):
        value = np.int64(key[order[i]])
        sorted_ &= before <= value
        low, high, before = min(low, value), max(high, value), value
    while not sorted_ and (high - low) >> shift:
        tally[:] = 0
        for i in range(count):
            tally[1 + (((key[order[i]] - low) >> shift) & 255)] += 1
        for k in range(1, 256):
            tally[k] += tally[k - 1]
        for i in range(count):
            byte = ((key[order[i]] - low) >> shift) & 255
            scratch.room[tally[byte]] = order[i]
            tally[byte] += 1
        for i in range(count):
            order[i] = scratch.room[i]
        shift += 8


@part_njit
def _card_rows(mine, theirs, hand_cards, row):
    """Set row [cards+1] to the row of sums of each card in a live hand; mine, theirs [H] bool."""
    row[:] = 0
    for hand in range(mine.shape[0]):
        if mine[hand] or theirs[hand]:
            row[hand_cards[hand, 0]] = row[hand_cards[hand, 1]] = 1
    last = NOT_READ
    row[-1] = NO_CARD
    for card in range(row.shape[0] - 1):
        if row[card]:
            last += 1
            row[card] = last


@part_njit
def _arrange(player, live, bucket, strength, merge, scratch):
    """Sort a player's hands by bucket and by strength; live, bucket, strength [H]."""
    order, ranked, column = scratch.order[player], scratch.ranked[player], scratch.column[player]
    count, columns = np.int64(0), np.int64(0)  # not literals, for which numba would compile `_sort` once more
    for hand in range(live.shape[0]):
        column[hand] = -1
        if live[hand]:
            order[count] = hand
            count += 1
    _sort(bucket, order, count, scratch)
    for i in range(count):
        ranked[i] = order[i]
        columns += not (merge and i > 0 and bucket[order[i]] == bucket[order[i - 1]])
        column[order[i]] = columns - 1
    _sort(strength, ranked, count, scratch)
    scratch.held[player, 0], scratch.held[player, 1] = count, columns


@part_njit
def _arrange_both(board, live, bucket, strength, merge, scratch):
    """Run `_arrange` for both players, once if their hands are alike; live, bucket [2, N, H]."""
    alike = True
    for hand in range(live.shape[2]):
        mine, theirs = live[0, board, hand], live[1, board, hand]
        if mine != theirs or (mine and bucket[0, board, hand] != bucket[1, board, hand]):
            alike = False
            break
    for player in range(1 if alike else 2):
        _arrange(player, live[player, board], bucket[player, board], strength, merge, scratch)
    if not alike:
        return
    for each in (scratch.order, scratch.ranked, scratch.column, scratch.held):
        for k in range(each.shape[1]):
            each[1, k] = each[0, k]


@part_njit
def _list_hands(player, bucket, merge, scratch, at, out):
    """List a player's hands on a board, and hand and bucket of each column, at positions `at`."""
    every, columns, before = out.every, out.columns, -1
    for i in range(scratch.held[player, 0]):
        hand, ranked, k = scratch.order[player, i], scratch.ranked[player, i], at[2] + i
        column = scratch.column[player, hand]
        every[1, k], every[2, k] = column, ranked
        if merge:
            every[0, k], every[3, k] = hand, scratch.column[player, ranked]
        if column != before:
            columns[0, at[0] + column], columns[1, at[0] + column], before = hand, bucket[hand], column


@part_njit
def _list_columns(player, hand_cards, strength, merge, scratch, at, out):
    """List a player's columns on a board by strength, and their groups; return the number of groups.

    at  positions in the lists
    """
    columns, card, group = out.columns, out.card, out.group
    other, column, groups, below, until, k = 1 - player, scratch.column[player], at[1] - 1, 0, 0, at[0]
    hands, before = scratch.held[other, 0], np.int64(-2)  # no strength
    for i in range(scratch.held[player, 0]):
        hand = scratch.ranked[player, i]
        value = np.int64(strength[hand])
        if merge:
            for each in range(2):
                out.ranked[at[2] + i, each] = scratch.row[hand_cards[hand, each]]
        if columns[0, at[0] + column[hand]] != hand:
            continue  # another hand of the same column is listed
        while below < hands and strength[scratch.ranked[other, below]] < value:
            below += 1
        while until < hands and strength[scratch.ranked[other, until]] <= value:
            until += 1
        same = scratch.column[other, hand] if min(hand_cards[hand, 0], hand_cards[hand, 1]) >= 0 else -1
        columns[2, k], columns[3, k] = column[hand], same if same >= 0 else scratch.held[other, 1]
        for each in range(2):
            card[k, each] = scratch.row[hand_cards[hand, each]]
        groups += value != before
        before, k = value, k + 1
        group[groups, 0], group[groups, 1], group[groups, 2] = k - at[0], below, until
    return groups + 1 - at[1]


@njit
def list_hands(live, bucket, strength, hand_cards, merge, scratch, counts, out):
    """Fill the lists board by board.

    live, bucket  [2, N, H]  whether a player can hold a hand on a board, and its bucket
    strength      [N, H]
    hand_cards    [H, 2]     -1 for missing cards
    merge         whether hands of a bucket share a column
    scratch          scratch from `room_on_board`; its `at` gives the positions in the lists and moves on
    counts        [3, 2, N]  receives the numbers of columns, groups and hands
    out           `HandLists`
    """
    at = scratch.at
    for board in range(live.shape[1]):
        _card_rows(live[0, board], live[1, board], hand_cards, scratch.row)
        _arrange_both(board, live, bucket, strength[board], merge, scratch)
        for player in range(2):
            _list_hands(player, bucket[player, board], merge, scratch, at[player], out)
            groups = _list_columns(player, hand_cards, strength[board], merge, scratch, at[player], out)
            totals = (scratch.held[player, 1], groups, scratch.held[player, 0])
            for kind in range(3):
                counts[kind, player, board] = totals[kind]
                at[player, kind] += totals[kind]
