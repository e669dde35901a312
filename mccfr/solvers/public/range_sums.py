"""Terminal values for a whole range by gathered running totals, for ranges in any order: for boards walked many times.

A range is summed in *lanes*: one for each card that can be held, and some for the range as a whole, cut into blocks
of hands that follow each other in strength.  Each lane lists its hands from weak to strong, all lanes stand side by
side in a matrix [depth, lanes], and running totals go down all lanes at once.  What a hand meets is the total less what
holds one of its cards, plus the same hand, taken off twice; at a showdown it is six look-ups, two in each of three
lanes: up to the hands weaker than it and up to those that tie, for the range as a whole less each of its own two cards.
A lane starts at minus half its total, so that the two look-ups add up to weaker minus stronger, and ties (the same hand
among them) cancel.  Nothing branches on strengths.  (Inclusion and exclusion: Johanson et al. 2011, "Accelerating best
response calculation in large extensive games".)

Exact up to rounding; differences that are nothing but rounding (`mccfr.noise`) are set to 0.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import part_njit
from mccfr.cards.listed import ListedCards, live_hands
from mccfr.noise import card_removal_share
from mccfr.solvers.regret import as_element

_VECTOR = 16  # float32 cells of a vector register: lanes are filled up to a multiple


class Ranges(NamedTuple):
    """Hands by board in order of their buckets, as kernels take them.  T boards, E entries, P = 2 players.

    A player's hands on a board are those that he reaches and that share no card with it; none where it is not walked.

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
    """One player's hands on a board, in order of their buckets, and the matrix of their lanes."""

    hand: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int64]
    lane: npt.NDArray[np.int64]  # [n, 2] lanes of the cards
    holder: npt.NDArray[np.int64]  # [depth, lanes]
    ordered: npt.NDArray[np.int64]  # [n] strengths, ascending
    by_card: npt.NDArray[np.int64]  # of each card lane the strengths, ascending, as `_code` has them
    card_first: npt.NDArray[np.int64]  # [cards+1] where in by_card each lane begins


def make_ranges(cards: ListedCards, walked: npt.NDArray[np.bool_]) -> Ranges:
    """The hands on each board of all streets that is `walked` [T], with the lanes of the board.

    Raises `ValueError` for a hand that can be dealt but has no bucket, and where a board leaves too many hands.
    """
    boards, board = len(walked), -1
    first = np.zeros((2, boards + 1), np.int64)
    sizes = {name: np.zeros((2, boards), np.int64) for name in ("depth", "lanes", "whole", "blocks")}
    parts: dict[str, tuple[list[npt.NDArray[np.generic]], ...]] = {
        name: ([], []) for name in ("hand", "bucket", "card", "same", "look", "holder")
    }
    for street, live in enumerate(live_hands(cards)):
        strengths = cards.strength if street + 1 == cards.streets else np.zeros_like(cards.strength[:1])
        for number in range(live.shape[1]):
            board += 1
            if not walked[board]:
                first[:, board + 1] = first[:, board]
                continue
            strength = strengths[number % len(strengths)]
            lists = _lists(cards, live[:, number], cards.bucket[street][:, number], strength)
            for player, mine in enumerate(lists):
                first[player, board + 1] = first[player, board] + len(mine.hand)
                for name, size in zip(("depth", "lanes"), mine.holder.shape, strict=True):
                    sizes[name][player, board] = size
                sizes["whole"][player, board] = len(mine.card_first) - 1
                sizes["blocks"][player, board] = -(-len(mine.hand) // len(mine.holder))
                for name, part in _entries(mine, lists[1 - player]).items():
                    parts[name][player].append(part)
    joined = {name: np.concatenate([*part[0], *part[1]]) for name, part in parts.items()}
    if np.any(joined["bucket"] < 0):
        name = cards.hand_names[int(joined["hand"][np.argmin(joined["bucket"])])]
        raise ValueError(f"hand {name} can be dealt but has no bucket on a board")
    first[1] += first[0, -1]
    cells = (sizes["depth"] * sizes["lanes"]).ravel()
    return Ranges(first, **joined, holder_first=(np.cumsum(cells) - cells).reshape(2, boards), **sizes)  # type: ignore[arg-type]


def _lists(
    cards: ListedCards, live: npt.NDArray[np.bool_], bucket: npt.NDArray[np.int32], strength: npt.NDArray[np.int32]
) -> list[_List]:
    """Both players' hands on a board: live and bucket [2, H], strength [H]."""
    dealt = np.zeros(int(cards.hand_cards.max(initial=-1)) + 2, bool)
    dealt[cards.hand_cards[live.any(axis=0)]] = True
    dealt[-1] = False  # no card, -1: its lane is the last
    none = int(dealt.sum())
    lane_of = np.where(dealt, np.cumsum(dealt) - 1, none)
    found = []
    for player in range(2):
        hands = np.flatnonzero(live[player])
        hands = hands[np.argsort(bucket[player, hands], kind="stable")]
        mine = bucket[player, hands], strength[hands].astype(np.int64), lane_of[cards.hand_cards[hands]]
        found.append(_List(hands, *mine, *_lanes(*mine[1:], none)))
    return found


def _code(lane: npt.NDArray[np.int64], strength: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """One number that orders by lane first, then by strength."""
    return (lane << 32) + strength


def _lanes(
    strength: npt.NDArray[np.int64], lane: npt.NDArray[np.int64], none: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Lanes of a list: one a card, an empty one (`none`) for no card, then blocks of the whole range; see `_List`."""
    count = len(strength)
    order = np.argsort(strength, kind="stable")
    cards, places = lane[order].ravel(), np.repeat(order, 2)
    by_lane = np.argsort(cards.astype(np.int16), kind="stable")  # of small integers: sorted by radix
    by_lane = by_lane[cards[by_lane] != none]
    cards, places = cards[by_lane], places[by_lane]
    card_first = np.searchsorted(cards, np.arange(none + 2))
    depth = max(1, int(np.diff(card_first).max(initial=1)))
    blocks = max(1, -(-count // depth))
    width = -(-(none + 1 + blocks) // _VECTOR) * _VECTOR
    if width * (depth + 1) > np.iinfo(np.uint16).max:
        raise ValueError(f"a board leaves {count} hands: sums of a range have room for decks up to 52 cards")
    holder = np.full((depth, width), count, np.int64)
    holder[np.arange(len(cards)) - card_first[cards], cards] = places
    rank = np.arange(count)
    holder[rank % depth, none + 1 + rank // depth] = order
    return holder, strength[order], _code(cards, strength[places]), card_first


def _entries(mine: _List, other: _List) -> dict[str, npt.NDArray[np.generic]]:
    """What `Ranges` says of a player's hands on a board."""
    places = np.full(1 + max(mine.hand.max(initial=0), other.hand.max(initial=0)), len(other.hand))
    places[other.hand] = np.arange(len(other.hand))
    two = (mine.lane != len(mine.card_first) - 2).all(axis=1)  # hands of two cards
    return {
        "hand": mine.hand.astype(np.int32),
        "bucket": mine.bucket.astype(np.int32),
        "card": mine.lane.astype(np.uint16),
        "same": np.where(two, places[mine.hand], len(other.hand)).astype(np.uint16),
        "look": _look(mine, other),
        "holder": mine.holder.astype(np.uint16).ravel(),
    }


def _look(mine: _List, other: _List) -> npt.NDArray[np.uint16]:
    """[n, 6] cells of the other player's running totals: below and up to each hand's strength, in three lanes."""
    depth, width = other.holder.shape
    whole, look = len(other.card_first) - 1, np.zeros((len(mine.hand), 6), np.int64)
    for side, direction in enumerate(("left", "right")):
        before = np.searchsorted(other.ordered, mine.strength, direction)  # type: ignore[call-overload]
        block, row = (np.maximum(before, 1) - 1) // depth, np.where(before > 0, (before - 1) % depth + 1, 0)
        look[:, side] = row * width + whole + block
        for column in range(2):
            lane = mine.lane[:, column]
            row = np.searchsorted(other.by_card, _code(lane, mine.strength), direction) - other.card_first[lane]  # type: ignore[call-overload]
            look[:, 2 + 2 * column + side] = row * width + lane
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
    limit, chips = as_element(reach, card_removal_share(reach)) * total, as_element(reach, chips)
    zero, by_card = as_element(reach, 0.0), sums.total
    for k in range(ranges.first[player, board + 1] - first):
        entry = first + k
        met = total - by_card[ranges.card[entry, 0]] - by_card[ranges.card[entry, 1]] + reach[ranges.same[entry]]
        out[k] = chips * met if abs(met) >= limit else zero


@part_njit
def range_showdown_values(ranges, player, board, total, sums, chips, out):
    """Values [n] of `player`'s hands in a showdown for `chips` against the range whose totals are in `sums`."""
    first = ranges.first[player, board]
    limit, chips = as_element(out, card_removal_share(out)) * total, as_element(out, chips)
    zero, running = as_element(out, 0.0), sums.running
    for k in range(ranges.first[player, board + 1] - first):
        look = ranges.look[first + k]
        met = (running[look[0]] + running[look[1]]) - (running[look[2]] + running[look[3]])
        met -= running[look[4]] + running[look[5]]
        out[k] = chips * met if abs(met) >= limit else zero
