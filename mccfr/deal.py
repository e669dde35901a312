"""Cards beside the public tree: hands, ranges, boards, buckets, and the deals drawn from them.

A poker game is its betting tree and a `CardModel`. Kuhn, Leduc, the toys and the hold'em subgames share this form; only
sizes differ. The deal of iteration k of a worker is a pure function of (seed, worker, k), so results do not depend on
how many deals are drawn at a time, and a checkpoint needs no more than the iteration count.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import njit
from mccfr.rng import DEALS, below, seed_stream, uniform

NO_BUCKET = -1
_MAX_TRIES = 1_000_000


@dataclass(frozen=True)
class CardModel:
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

    hand_cards: npt.NDArray[np.int16]
    hand_names: Sequence[str]
    reach: npt.NDArray[np.float64]
    board_cards: Sequence[npt.NDArray[np.int16]]
    board_parent: Sequence[npt.NDArray[np.int32]]
    strength: npt.NDArray[np.int32]
    bucket: Sequence[npt.NDArray[np.int32]]
    buckets: npt.NDArray[np.int64]

    @property
    def streets(self) -> int:
        """Number of streets."""
        return len(self.board_cards)

    def hand_masks(self) -> npt.NDArray[np.uint64]:
        """[H] uint64: one bit for each card of a hand."""
        return card_masks(self.hand_cards)


class DealArrays(NamedTuple):
    """What the deal kernel takes.  H hands, S streets, boards of all streets in one list of T, B = 2·S blocks.

    accept      [2, H] float64   alias method: chance of keeping the drawn column
    alias       [2, H] int32     alias method: the hand taken otherwise
    hand_mask   [H] uint64       cards of each hand as bits
    board_mask  [T] uint64       cards of each board as bits
    board_child [T] int64        first board of the next street below a board (index into the list)
    children    [S] int64        boards of street s below one board of street s-1; children[0]: boards to begin with
    bucket      [T, 2, H] int32  bucket of a player's hand on a board
    strength    [B_last, H] int32
    last_first  [1] int64        index in the list of the first last-street board
    """

    accept: npt.NDArray[np.float64]
    alias: npt.NDArray[np.int32]
    hand_mask: npt.NDArray[np.uint64]
    board_mask: npt.NDArray[np.uint64]
    board_child: npt.NDArray[np.int64]
    children: npt.NDArray[np.int64]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int32]
    last_first: npt.NDArray[np.int64]


class Deals(NamedTuple):
    """A batch of K deals.  bucket [K, 2·S] int32 by block; result [K] float64: +1 player 0 wins a showdown, -1, 0."""

    bucket: npt.NDArray[np.int32]
    result: npt.NDArray[np.float64]


def card_masks(cards: npt.NDArray[np.int16]) -> npt.NDArray[np.uint64]:
    """[N, n] card numbers (-1: none) to [N] uint64 bit masks."""
    bits = np.where(cards >= 0, np.uint64(1) << np.maximum(cards, 0).astype(np.uint64), np.uint64(0))
    return np.bitwise_or.reduce(bits, axis=1, initial=np.uint64(0)).astype(np.uint64)


def live_hands(cards: CardModel) -> Iterator[npt.NDArray[np.bool_]]:
    """Street by street [2, B, H]: whether a player reaches a hand and a board leaves it to him."""
    masks = cards.hand_masks()
    for boards in cards.board_cards:
        yield (cards.reach > 0)[:, None] & ((card_masks(boards)[:, None] & masks) == 0)


def alias_table(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Walker's alias method (Vose 1991): acceptance [H] and alias [H] for drawing an index in proportion to weights."""
    count = len(weights)
    scaled = weights * (count / weights.sum())
    accept, alias = np.ones(count), np.arange(count, dtype=np.int32)
    small = [i for i in range(count) if scaled[i] < 1]
    large = [i for i in range(count) if scaled[i] >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        accept[low], alias[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        if scaled[high] < 1:
            small.append(large.pop())
    for i in small:  # rounding leaves columns a hair below 1; one without weight must never be drawn
        if weights[i] == 0:
            accept[i], alias[i] = 0, int(np.argmax(weights))
    return accept, alias


def deal_arrays(cards: CardModel) -> DealArrays:
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


def no_deal_arrays() -> DealArrays:
    """For games that keep their chance in the tree: one hand, one board, bucket 0, every showdown a tie."""
    return DealArrays(
        np.ones((2, 1)),
        np.zeros((2, 1), np.int32),
        np.zeros(1, np.uint64),
        np.zeros(1, np.uint64),
        np.full(1, -1, np.int64),
        np.ones(1, np.int64),
        np.zeros((1, 2, 1), np.int32),
        np.zeros((1, 1), np.int32),
        np.zeros(1, np.int64),
    )


def new_deals(count: int, streets: int) -> Deals:
    """Room for a batch of `count` deals."""
    return Deals(np.zeros((count, 2 * streets), np.int32), np.zeros(count, np.float64))


@njit
def draw_deals(arrays, seed, worker, first_iteration, count, state, deals):
    """Draw the deals of iterations first_iteration .. +count-1 into `deals` [K >= count], in place.

    Two hands from the ranges, rejecting pairs that share a card (exactly the joint distribution reach[0]·reach[1] on
    disjoint pairs); then for each street a board uniformly among those that hit neither hand.  `state` [4] uint64 is
    scratch.  Returns False if _MAX_TRIES draws found no disjoint pair.
    """
    hands = arrays.hand_mask.shape[0]
    streets = arrays.children.shape[0]
    for k in range(count):
        seed_stream(state, seed, worker, np.uint64(DEALS), np.uint64(first_iteration + k))
        tries = 0
        while True:
            hand_0 = below(state, hands)
            if uniform(state) >= arrays.accept[0, hand_0]:
                hand_0 = np.int64(arrays.alias[0, hand_0])
            hand_1 = below(state, hands)
            if uniform(state) >= arrays.accept[1, hand_1]:
                hand_1 = np.int64(arrays.alias[1, hand_1])
            if arrays.hand_mask[hand_0] & arrays.hand_mask[hand_1] == 0:
                break
            tries += 1
            if tries == _MAX_TRIES:
                return False
        dead = arrays.hand_mask[hand_0] | arrays.hand_mask[hand_1]
        board = np.int64(0)
        for street in range(streets):
            first = arrays.board_child[board] if street > 0 else np.int64(0)
            board = first
            if arrays.children[street] > 1:
                board = first + below(state, arrays.children[street])
                while arrays.board_mask[board] & dead != 0:
                    board = first + below(state, arrays.children[street])
            deals.bucket[k, 2 * street] = arrays.bucket[board, 0, hand_0]
            deals.bucket[k, 2 * street + 1] = arrays.bucket[board, 1, hand_1]
        last = board - arrays.last_first[0]
        difference = arrays.strength[last, hand_0] - arrays.strength[last, hand_1]
        deals.result[k] = np.float64((difference > 0) - (difference < 0))
    return True


def joint_weight(cards: CardModel) -> float:
    """Sum of reach[0, i]·reach[1, j] over disjoint pairs of hands: what normalises every expected value."""
    masks, live_0, live_1 = cards.hand_masks(), cards.reach[0] > 0, cards.reach[1] > 0
    disjoint = (masks[live_0][:, None] & masks[live_1][None, :]) == 0
    return float(cards.reach[0][live_0] @ disjoint @ cards.reach[1][live_1])
