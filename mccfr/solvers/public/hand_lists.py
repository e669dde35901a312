"""Lists both players' hands on each board twice: by bucket, and by showdown strength.

A *column* is one cell of a range: a hand, or all hands of a board that share a bucket if these are merged.
`range_sums.make_ranges` builds the kernel input `Ranges` from the lists.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import by_reference, njit, part_njit

NO_CARD, EVERYTHING, NOT_READ = 0, 1, 2
"""Indices of the first three rows in tables of reach sums by card; one row for each card follows.

NO_CARD     always 0, read for a card that a hand lacks
EVERYTHING  sum of the whole range
NOT_READ    receives the additions for missing cards and is never read
"""


@by_reference
class HandLists(NamedTuple):
    """Memory for the lists of both players' hands on all boards: room for F hands in all.

    A column is one cell of a range: a hand or, with `merge`, all hands of a board that share a bucket.  Columns are
    counted from 0 on each board.  Tables of sums by card hold, for each card, the reach of the hands that contain it.

    every    [4, F] int32   0: hands in the order of columns; 1: the columns of these hands; 2: hands by strength; 3:
                            the columns of these. Without `merge` only 1 and 2 are written, because `columns` has the
                            others
    ranked   [F, 2] uint16  rows of a hand's cards in tables of sums by card, by strength; not written without `merge`
    columns  [4, F] int32   0: first hand of each column; 1: its bucket; both in the order of columns. 2: columns by
                            strength; 3: for each of these the other player's column of the same two cards, else the
                            number of that player's columns
    card     [F, 2] uint16  rows of the cards of each column's first hand in tables of sums by card, by strength
    group    [F, 3] int32   for each set of columns of equal strength: number of columns up to its end, of the other
                            player's weaker hands, and of these plus the equal ones
    """

    every: npt.NDArray[np.int32]
    ranked: npt.NDArray[np.uint16]
    columns: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]
    group: npt.NDArray[np.int32]


@by_reference
class OnBoard(NamedTuple):
    """Scratch for both players' hands on one board, int64: H hands of the game.

    order, ranked  [2, H]     each player's hands by bucket, by strength
    column         [2, H]     column of each hand, counted from 0 on the board; -1 if the player cannot hold it
    held           [2, 2]     numbers of hands and of columns of each player
    at             [2, 3]     indices in `HandLists` at which a player's next column, group and hand are written
    row            [cards+1]  row of each card in tables of sums by card; the last is `NO_CARD`
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
    """Return uninitialised `HandLists` with room for `hands` hands.

    Pages of memory that are never written take no physical memory.
    """
    every, columns = (np.empty((4, hands), np.int32) for _ in range(2))
    ranked, card = (np.empty((hands, 2), np.uint16) for _ in range(2))
    return HandLists(every, ranked, columns, card, np.empty((hands, 3), np.int32))


def room_on_board(hand_cards: npt.NDArray[np.integer]) -> OnBoard:
    """Return `OnBoard` scratch for hands of the cards hand_cards [H, 2], -1 for a missing one."""
    order, ranked, column = np.zeros((3, 2, len(hand_cards)), np.int64)
    row = np.zeros(2 + int(hand_cards.max(initial=-1)), np.int64)
    held, at, room, tally = (np.zeros(shape, np.int64) for shape in ((2, 2), (2, 3), len(hand_cards), 257))
    return OnBoard(order, ranked, column, held, at, row, room, tally)


@part_njit
def _sort(key, order, count, scratch):
    """Sort order[:count] in place by ascending key[order[i]], equal keys in their old order.

    It is a radix sort over the bytes of key minus the smallest key, as many as the largest one has.

    key      [H] integers
    order    [H] int64 hands
    scratch  OnBoard; its `room` and `tally` are overwritten
    """
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
    """Set row[card] to the row of each card that can be held, in tables of reach sums by card.

    mine, theirs  [H] bool, whether each player can hold a hand
    hand_cards    [H, 2] cards, -1 for a missing one
    row           [cards+1] int64; becomes 0 for cards in no such hand, and `NO_CARD` (also 0) at index -1
    """
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
    """Write a player's hands on a board to `scratch` by bucket and by strength, with their columns.

    player    0 or 1
    live      [H] bool, whether the player can hold a hand
    bucket    [H] int32
    strength  [H] int32, higher wins; equal hands stay in the order of buckets
    merge     whether hands of a bucket share a column
    scratch   OnBoard; `order`, `ranked`, `column` and `held` of the player are set
    """
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
    """Write both players' hands on a board to `scratch`, by bucket and by strength (`_arrange`).

    The hands are sorted only once if both players have the same hands and buckets.

    live, bucket  [2, N, H] by player and board: whether the player can hold a hand, and its bucket
    strength      [H] on this board
    """
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
    """Write a player's hands on a board to `out.every`, and their columns by bucket to `out.columns`.

    bucket   [H] of the hands on this board
    merge    whether hands of a bucket share a column
    scratch  OnBoard, which holds both players' hands in order (`_arrange_both`)
    at       [3] indices in the lists of the player's next column, group (columns of equal strength) and hand
    out      HandLists
    """
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
    """Write a player's columns on a board by strength; return the number of groups of equal strength.

    They are written to `columns`, `card` and `group` of `out`; with `merge` the rows of all hands' cards to `ranked`.

    strength  [H] of the hands on this board
    merge     whether hands of a bucket share a column
    scratch   OnBoard, which holds both players' hands in order (`_arrange_both`)
    at        [3] indices in the lists of the player's next column, group and hand
    out       HandLists
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
    """Append both players' hands on N boards to the lists in `out`, board by board.

    live, bucket  [2, N, H]  whether a player can hold a hand on a board, and its bucket
    strength      [N, H]     showdown order, higher wins; the caller passes equal numbers before the last street
    hand_cards    [H, 2]     -1 for missing cards
    merge         whether hands of a bucket share a column
    scratch       OnBoard; its `at` gives for each player the indices at which columns, groups and hands are written
                  next, and grows by their numbers
    counts        [3, 2, N]  receives the numbers of columns, groups and hands of each player on each board
    out           HandLists
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
