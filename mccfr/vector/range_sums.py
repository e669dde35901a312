"""Terminal values for a whole range by gathered running totals: the fast form of `showdown`, for ranges in any order.

A range is summed in *lanes*: one for each card that can be held, and some for the range as a whole, cut into blocks
of hands that follow each other in strength.  Each lane lists its hands from weak to strong, all lanes stand side by
side in a matrix [depth, lanes], and running totals go down all lanes at once.  What a hand meets at a showdown is then
six look-ups, two in each of three lanes: up to the hands weaker than it and up to those that tie, for the range as a
whole less each of its own two cards.  A lane starts at minus half its total, so that the two look-ups add up to weaker
minus stronger, and ties (the same hand among them) cancel.  Nothing branches on strengths.

Exact up to rounding; differences below `noise` times the range's total are set to 0, as in `showdown`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import part_njit
from mccfr.regret import as_element
from mccfr.vector.public_tree import HandLists

_VECTOR = 16  # float32 cells of a vector register: lanes are filled up to a multiple


class Ranges(NamedTuple):
    """Hands by board in order of their buckets, as kernels take them.  T boards, E entries, P = 2 players.

    first         [2, T+1] int64   entries of player p on board t are first[p, t] .. first[p, t+1]-1
    hand          [E] int32        number of the hand
    bucket        [E] int32        the player's bucket of this hand on this board, ascending on a board
    card          [E, 2] uint16    lanes of the hand's cards
    same          [E] uint16       place of the same two cards in the other player's list of the board, else its length
    look          [E, 6] uint16    where a showdown looks into the other player's running totals: range, card, card
    holder        [.] uint16       by player and board: [depth, lanes] places in the list, its length where nobody is
    holder_first  [2, T] int64     where that matrix begins
    depth, lanes  [2, T] int64     its shape
    whole         [2, T] int64     the first lane of the range as a whole
    blocks        [2, T] int64     the number of those lanes
    noise         [1] float64      what part of a range's total is taken for rounding
    """

    first: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    card: npt.NDArray[np.uint16]
    same: npt.NDArray[np.uint16]
    look: npt.NDArray[np.uint16]
    holder: npt.NDArray[np.uint16]
    holder_first: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.int64]
    whole: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int64]
    noise: npt.NDArray[np.float64]


class Sums(NamedTuple):
    """Room for one range's sums.

    held     [.]  reach by [depth, lanes]
    running  [.]  running totals by [depth+1, lanes]
    total    [.]  total of each lane
    """

    held: npt.NDArray[np.floating]
    running: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]


# --- preparation ---


class _List(NamedTuple):
    """One player's hands on a board, in order of their buckets."""

    hand: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int32]
    lane: npt.NDArray[np.int64]  # [n, 2]


class _Lanes(NamedTuple):
    """The matrix of a list: places [depth, lanes], and of each lane the strengths of its hands, ascending."""

    holder: npt.NDArray[np.int64]
    strengths: list[npt.NDArray[np.int32]]
    ordered: npt.NDArray[np.int32]
    whole: int


def make_ranges(lists: HandLists, noise: float) -> Ranges:
    """The lists of a public tree, in order of their buckets, with the lanes of every board."""
    boards = lists.first.shape[1] - 1
    parts: dict[str, list[list[npt.NDArray[np.generic]]]] = {
        name: [[], []] for name in ("hand", "bucket", "card", "same", "look", "holder")
    }
    sizes = {name: np.zeros((2, boards), np.int64) for name in ("depth", "lanes", "whole", "blocks")}
    for board in range(boards):
        here = _board_lists(lists, board)
        lanes = [_make_lanes(mine, _card_lanes(lists, board)) for mine in here]
        for player, mine in enumerate(here):
            own, other = lanes[player], lanes[1 - player]
            width, cards = own.holder.shape[1], own.whole
            sizes["depth"][player, board], sizes["lanes"][player, board] = own.holder.shape
            sizes["whole"][player, board] = cards
            sizes["blocks"][player, board] = -(-len(mine.hand) // len(own.holder))
            if width * (len(own.holder) + 1) > np.iinfo(np.uint16).max:
                raise ValueError(
                    f"board {board} leaves {len(mine.hand)} hands: sums of a range have room for decks up to 52 cards"
                )
            two = (mine.lane != cards - 1).all(axis=1)  # hands of two cards
            places = {hand: place for place, hand in enumerate(here[1 - player].hand.tolist())}
            same = np.array([places.get(hand, len(places)) for hand in mine.hand.tolist()], np.int64)
            for name, part in (
                ("hand", mine.hand),
                ("bucket", mine.bucket),
                ("card", mine.lane.astype(np.uint16)),
                ("same", np.where(two, same, len(places)).astype(np.uint16)),
                ("look", _look(mine, other)),
                ("holder", own.holder.astype(np.uint16).ravel()),
            ):
                parts[name][player].append(part)
    joined = {name: np.concatenate([*part[0], *part[1]]) for name, part in parts.items()}
    cells = (sizes["depth"] * sizes["lanes"]).ravel()
    holder_first = (np.cumsum(cells) - cells).reshape(2, boards)
    return Ranges(lists.first.copy(), **joined, holder_first=holder_first, **sizes, noise=np.array([noise]))


def _card_lanes(lists: HandLists, board: int) -> npt.NDArray[np.int64]:
    """[C+1] lane of each card that a hand of either player holds on the board; the last is that of no card."""
    none = int(lists.cards[0])
    held = [lists.card[lists.first[p, board] : lists.first[p, board + 1]] for p in range(2)]
    cards = np.unique(np.concatenate([*held, np.full((1, 2), none)]))
    lane = np.full(none + 1, -1)
    lane[cards] = np.arange(len(cards))
    return lane


def _board_lists(lists: HandLists, board: int) -> list[_List]:
    """Both players' hands on a board."""
    lane, found = _card_lanes(lists, board), []
    for player in range(2):
        part = slice(lists.first[player, board], lists.first[player, board + 1])
        order = np.lexsort((lists.hand[part], lists.bucket[part]))
        found.append(
            _List(
                lists.hand[part][order],
                lists.bucket[part][order],
                lists.strength[part][order],
                lane[lists.card[part]][order],
            )
        )
    return found


def _make_lanes(mine: _List, lane: npt.NDArray[np.int64]) -> _Lanes:
    """Lanes of a list: one a card, an empty one for no card, then blocks of the whole range."""
    count, cards, none = len(mine.hand), int(lane.max()) + 1, int(lane[-1])
    order = np.argsort(mine.strength, kind="stable")
    members = [order[(mine.lane[order] == card).any(axis=1)] if card != none else order[:0] for card in range(cards)]
    depth = max(1, *(len(places) for places in members))
    blocks = [order[start : start + depth] for start in range(0, count, depth)]
    width = -(-(cards + max(1, len(blocks))) // _VECTOR) * _VECTOR
    holder = np.full((depth, width), count, np.int64)
    for column, places in enumerate([*members, *blocks]):
        holder[: len(places), column] = places
    return _Lanes(holder, [mine.strength[places] for places in members], mine.strength[order], cards)


def _look(mine: _List, other: _Lanes) -> npt.NDArray[np.uint16]:
    """[n, 6] cells of the other player's running totals: below and up to each hand's strength, in three lanes."""
    depth, width = other.holder.shape
    look = np.zeros((len(mine.hand), 6), np.int64)
    for side in range(2):
        direction = "right" if side else "left"
        before = np.searchsorted(other.ordered, mine.strength, direction)  # type: ignore[call-overload]
        block, row = (np.maximum(before, 1) - 1) // depth, np.where(before > 0, (before - 1) % depth + 1, 0)
        look[:, side] = row * width + other.whole + block
        for column in range(2):
            for card in np.unique(mine.lane[:, column]):
                here = mine.lane[:, column] == card
                rows = np.searchsorted(other.strengths[card], mine.strength[here], direction)  # type: ignore[call-overload]
                look[here, 2 + 2 * column + side] = rows * width + card
    return look.astype(np.uint16)


def new_sums(ranges: Ranges, dtype: npt.DTypeLike) -> Sums:
    """Room for the sums of any range on any board."""
    cells, lanes = int((ranges.depth * ranges.lanes).max()), int(ranges.lanes.max())
    return Sums(np.zeros(cells, dtype), np.zeros(cells + lanes, dtype), np.zeros(lanes, dtype))


# --- kernels ---


@part_njit
def sum_range(ranges, player, board, reach, sums):
    """Fill `sums.held` and `sums.total` with a player's range on a board; the range's total.

    reach [n+1] in the order of the list, 0 in the cell behind it.
    """
    depth, lanes = ranges.depth[player, board], ranges.lanes[player, board]
    first, held, total = ranges.holder_first[player, board], sums.held, sums.total[:lanes]
    holder = ranges.holder[first : first + depth * lanes]
    for i in range(depth * lanes):
        held[i] = reach[holder[i]]
    for lane in range(lanes):
        total[lane] = held[lane]
    for row in range(1, depth):
        line = held[row * lanes : (row + 1) * lanes]
        for lane in range(lanes):
            total[lane] += line[lane]
    whole, found = ranges.whole[player, board], as_element(reach, 0.0)
    for lane in range(whole, whole + ranges.blocks[player, board]):
        found += total[lane]
    return found


@part_njit
def run_totals(ranges, player, board, total, sums):
    """Fill `sums.running` for the range of which `sum_range` found `total`."""
    depth, lanes = ranges.depth[player, board], ranges.lanes[player, board]
    half = as_element(sums.running, 0.5)
    start = sums.running[:lanes]
    for lane in range(lanes):
        start[lane] = -half * sums.total[lane]
    whole, below = ranges.whole[player, board], -half * total
    for lane in range(whole, whole + ranges.blocks[player, board]):
        start[lane] = below
        below += sums.total[lane]
    for row in range(depth):
        above = sums.running[row * lanes : (row + 1) * lanes]
        line = sums.held[row * lanes : (row + 1) * lanes]
        below_it = sums.running[(row + 1) * lanes : (row + 2) * lanes]
        for lane in range(lanes):
            below_it[lane] = above[lane] + line[lane]


@part_njit
def range_fold_values(ranges, player, board, reach, total, sums, chips, out):
    """Values [n] of `player`'s hands where the other's range `reach` meets a fixed payoff of `chips` to `player`.

    `total` and `sums` are those of `sum_range` for the other player's range.
    """
    first = ranges.first[player, board]
    limit, chips = as_element(reach, ranges.noise[0]) * total, as_element(reach, chips)
    zero, by_card = as_element(reach, 0.0), sums.total
    for k in range(ranges.first[player, board + 1] - first):
        entry = first + k
        met = total - by_card[ranges.card[entry, 0]] - by_card[ranges.card[entry, 1]] + reach[ranges.same[entry]]
        out[k] = chips * met if abs(met) >= limit else zero


@part_njit
def range_showdown_values(ranges, player, board, total, sums, chips, out):
    """Values [n] of `player`'s hands in a showdown for `chips` against the range whose totals are in `sums`."""
    first = ranges.first[player, board]
    limit, chips = as_element(out, ranges.noise[0]) * total, as_element(out, chips)
    zero, running = as_element(out, 0.0), sums.running
    for k in range(ranges.first[player, board + 1] - first):
        look = ranges.look[first + k]
        met = (running[look[0]] + running[look[1]]) - (running[look[2]] + running[look[3]])
        met -= running[look[4]] + running[look[5]]
        out[k] = chips * met if abs(met) >= limit else zero
