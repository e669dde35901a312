"""Names what two hole cards make with a board, in players' words: made hands and draws."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from abstraction.cards import combo_table
from abstraction.hand_evaluator import CATEGORIES, CATEGORY_SIZES, board_strengths, strength

_RANKS = 13
_PAIR = CATEGORIES.index("pair")
_THREE = CATEGORIES.index("three of a kind")
_STRAIGHT = CATEGORIES.index("straight")
_WINDOWS = np.array([(1 << 12) | 0b1111, *(0b11111 << low for low in range(_RANKS - 4))])  # ace to five first
_OPEN = 2  # least number of completing ranks of an open-ended draw


def hand_kinds(board: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return two lists [1326] of texts: the made hand, and the draws ("" for none), of each hand.

    The board has three to five cards. A hand is "high card" if it is no pair, shares no rank with the board, and
    makes no better category than the board alone. A pair is named by its rank among the board's: "second pair" pairs
    the second highest. A draw needs one more card and uses a hole card: "flush draw" has four of a suit, "open-ended"
    two or more ranks that complete a straight, "gutshot" one. Ranks that complete one on the board alone do not count.
    The texts of hands that share a card with the board have no meaning.
    """
    hands, cards = combo_table().astype(np.int64), np.asarray(board, np.int64)
    ranks, counts = hands // 4, np.bincount(cards // 4, minlength=_RANKS)
    category = np.searchsorted(np.cumsum(CATEGORY_SIZES), np.maximum(board_strengths(board), 1))
    pocket = ranks[:, 0] == ranks[:, 1]
    adds = pocket | (counts[ranks] > 0).any(axis=1) | (category != _category(cards, counts))
    made = np.where(adds, category, 0)
    board_ranks = np.unique(cards // 4)[::-1]
    names = [
        _pair(int(rank), pair, board_ranks) if kind == _PAIR else _name(kind, pair)
        for kind, pair, rank in zip(made.tolist(), pocket.tolist(), _paired(ranks, counts), strict=True)
    ]
    if len(cards) == 5:
        return names, [""] * len(names)
    suits = np.bincount(cards % 4, minlength=4)
    own = np.stack([(hands % 4 == suit).sum(axis=1) for suit in range(4)], axis=1)
    flush = ((own > 0) & (own + suits == 4)).any(axis=1) & (category < _STRAIGHT + 1)
    outs = np.where(category < _STRAIGHT, _straight_outs(ranks, cards // 4), 0)
    straight = np.where(outs >= _OPEN, "open-ended", np.where(outs == 1, "gutshot", ""))
    return names, [
        ", ".join(filter(None, ("flush draw" * suited, text)))
        for suited, text in zip(flush.tolist(), straight.tolist(), strict=True)
    ]


def _paired(ranks: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return [H] the highest rank that each hand pairs, with itself or the board; -1 for none.

    ranks   [H, 2] ranks of the hole cards
    counts  [13] number of board cards of each rank
    """
    pairs = np.where((counts[ranks] > 0) | (ranks[:, :1] == ranks[:, 1:]), ranks, -1)
    return np.asarray(pairs.max(axis=1))


def _pair(rank: int, pocket: bool, board_ranks: npt.NDArray[np.int64]) -> str:
    """Return the name of a pair, such as "overpair" or "second pair", by its rank among the board's ranks.

    rank         rank of the pair
    pocket       True for two hole cards of this rank
    board_ranks  ranks on the board, the highest first
    """
    if pocket:
        return "overpair" if rank > board_ranks[0] else "underpair"
    return ("top pair", "second pair", "low pair")[min(int((board_ranks > rank).sum()), 2)]


def _name(kind: int, pocket: bool) -> str:
    """Return the name of a made hand that is no pair, by its category.

    pocket  True if the hole cards are a pair: three of a kind is then a "set", else "trips"
    """
    return CATEGORIES[kind] if kind != _THREE else "set" if pocket else "trips"


def _category(cards: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> int:
    """Return the hand category that the board cards make alone: 0 is "high card", 1 "pair", and so on.

    cards   indices of the three to five board cards in the deck
    counts  [13] number of board cards of each rank
    """
    if len(cards) == 5:
        return int(np.searchsorted(np.cumsum(CATEGORY_SIZES), strength(cards.tolist())))
    most = int(counts.max())
    return {1: 0, 2: int((counts == 2).sum()), 3: _THREE}.get(most, CATEGORIES.index("four of a kind"))


def _straight_outs(ranks: npt.NDArray[np.int64], board: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return [H] how many ranks of a further board card complete a straight of hand and board together.

    ranks  [H, 2] ranks of the hole cards, 0 (a two) to 12
    board  ranks of the board cards

    Ranks that complete a straight of the board alone do not count.
    """
    known = int(np.bitwise_or.reduce(1 << board))
    sets, outs = known | (1 << ranks).sum(axis=1) - np.where(ranks[:, 0] == ranks[:, 1], 1 << ranks[:, 0], 0), 0
    for rank in range(_RANKS):
        found = ((sets | 1 << rank)[:, None] & _WINDOWS == _WINDOWS).any(axis=1)
        outs = outs + (found & ~((known | 1 << rank) & _WINDOWS == _WINDOWS).any())
    return np.asarray(outs)
