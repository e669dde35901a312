"""Boards that differ by a renaming of suits only: one of them is walked for all.

A renaming of suits *changes nothing* if it takes every hand to one that both players hold equally often, every board to
a board, and hands on boards to hands and boards of the same bucket and the same showdowns.  Below a board, the boards
that renamings which fix it take to each other have equal values up to that renaming of hands, whatever is played, since
strategies are made by buckets.  (The suit isomorphism of poker solvers; Waugh 2013, "A fast and optimal hand
isomorphism algorithm", for the renamings.)  Lossless games number each board's hands anew, and then there are none; for
a given strategy it is enough that hand and renamed hand play alike, to the last bit, whatever their buckets.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.held_columns import columns, kept_columns, spread
from mccfr.cards.listed import ListedCards, of_hands

_SUITS = (4, 3, 2)  # card = rank·suits + suit; a deck read with too many suits does no harm: all is checked
_CODES = 64  # more than any deck has cards
_AT_A_TIME = 256  # boards: tables of thousands of them, renamed at once, would take as much memory again
_ROW_CELLS = 1 << 22  # of strategies that are compared at once: 32 MB

Strategies = Sequence[npt.NDArray[np.float64]]
"""By block, 2·street + player: probabilities [buckets, slots]."""


class BoardCopies(NamedTuple):
    """Which boards are walked, and which boards each of them stands for.  T boards, S streets, H hands.

    first     [S, T+1] int64  copies of board t, dealt to a board of the street before s (street 0: to begin with), are
                              first[s, t] .. first[s, t+1]-1; none: the board is not walked.  On later streets than s
                              boards are dealt at once, as in a run-out
    renaming  [.] int32       the renaming that takes the board to each copy; 0, none, for itself
    hand      [G, H] int32    the hand that each hand becomes by a renaming
    times     [T] float64     boards that a board stands for, those above it included; 0: it is not walked
    """

    first: npt.NDArray[np.int64]
    renaming: npt.NDArray[np.int32]
    hand: npt.NDArray[np.int32]
    times: npt.NDArray[np.float64]


class _Renaming(NamedTuple):
    """What becomes of hands [H] and, street by street, of boards."""

    hand: npt.NDArray[np.int64]
    boards: list[npt.NDArray[np.int64]]


def board_copies(cards: ListedCards, strategies: Strategies | None = None) -> BoardCopies:
    """The boards to be walked: of boards that renamings take to each other, the first.

    With `strategies`, renamings count whose hands play alike; without, only those whose hands share their buckets, so
    that it holds whatever is played.
    """
    renamings = _renamings(cards, strategies)
    sizes = [len(boards) for boards in cards.board_cards]
    start = np.concatenate([[0], np.cumsum(sizes)])
    first = np.zeros((cards.streets, start[-1] + 1), np.int64)
    lists: list[npt.NDArray[np.int64]] = []
    for row in range(cards.streets):
        for street in range(cards.streets):
            counts, here = _copies(cards, renamings, row - 1, street)
            first[row, start[street] + 1 : start[street + 1] + 1] = counts
            lists.append(here)
    first[:, 1:] = np.cumsum(first[:, 1:]).reshape(first.shape[0], -1)
    first[1:, 0] = first[:-1, -1]
    times = np.ones(start[-1])
    for street, parents in enumerate(cards.board_parent):
        part = slice(start[street], start[street + 1])
        times[part] = np.diff(first[street])[part]
        if street:
            times[part] *= times[start[street - 1] + parents]
    hand = np.array([renaming.hand for renaming in renamings], np.int32)
    return BoardCopies(first, np.concatenate(lists).astype(np.int32), hand, times)


def lossless(cards: ListedCards) -> ListedCards:
    """The same cards where nobody forgets any: a bucket is a hand on a board, those alike but for suits together.

    Alike are hands on boards that a renaming which changes nothing, the buckets of `cards` included, takes to each
    other: against a strategy on those buckets they are worth the same, whatever is done.
    """
    renamings, some = _renamings(cards, None), np.flatnonzero(_with_buckets(cards))
    buckets, counts = [], np.zeros((cards.streets, 2), np.int64)
    for street, every in enumerate(cards.bucket):
        known = columns(every, some)
        pair, found = np.full(known.shape[1:], np.iinfo(np.int64).max), np.full_like(known, NO_BUCKET)
        for renaming in renamings:
            hand = np.searchsorted(some, renaming.hand[some])  # among these: each becomes another of them
            np.minimum(pair, renaming.boards[street][:, None] * len(hand) + hand, out=pair)
        for player in range(2):
            held, there = known[player] != NO_BUCKET, np.zeros(pair.size, bool)
            there[pair[held]] = True
            counts[street, player] = there.sum()
            number = np.zeros(pair.size, np.int32)
            number[there] = np.arange(counts[street, player])
            found[player, held] = number[pair[held]]
        buckets.append(spread(found, some, len(cards.hand_cards), NO_BUCKET))
    return replace(cards, bucket=buckets, buckets=counts)


def _with_buckets(cards: ListedCards) -> npt.NDArray[np.bool_]:
    """[H] whether anybody has a bucket for a hand on any board: of 1,326 hands often some fifty."""
    found = np.zeros(len(cards.hand_cards), bool)
    for bucket in cards.bucket:
        held, numbers = kept_columns(bucket)
        found[held] |= (numbers != NO_BUCKET).any(axis=(0, 1))
    return found


def suits_merged(cards: ListedCards, weights: Iterable[npt.NDArray[np.float64]] = ()) -> ListedCards:
    """`lossless`, whatever the buckets of `cards` are: alike is what a renaming of suits changes nothing of.

    weights  [.., H] of hands, as locks have them, of which it may change nothing either
    """
    reach = np.concatenate([cards.reach, *weights])
    return replace(lossless(_blind(replace(cards, reach=reach))), reach=cards.reach)


def _blind(cards: ListedCards) -> ListedCards:
    """The same cards with one bucket, which says only whether there is a hand."""
    kept = [kept_columns(bucket) for bucket in cards.bucket]
    hands = len(cards.hand_cards)
    return replace(cards, bucket=[spread(np.minimum(numbers, 0), held, hands, NO_BUCKET) for held, numbers in kept])


def alike_boards(cards: ListedCards, street: int) -> npt.NDArray[np.int64]:
    """[B] for each board of a street the first one that a renaming of suits takes it to, whatever the buckets are."""
    return np.array([renaming.boards[street] for renaming in _renamings(_blind(cards), None)]).min(axis=0)


def alike_hands(
    cards: ListedCards, boards: Sequence[npt.NDArray[np.integer]], *, swaps: bool = False
) -> list[npt.NDArray[np.int32]]:
    """S × [N, H] hands that are alike on each of some boards S × [N]: the number of the first of them stands for all.

    Alike are hands with buckets that renamings which change nothing, and leave the board as it is, take to each other.
    With `swaps`, two cards change places too: where there are no flushes, any two of one rank.
    """
    renamings, found = _renamings(cards, None) + (_swaps(cards) if swaps else []), []
    some = np.flatnonzero(_with_buckets(cards))
    for street, numbers in enumerate(boards):
        first = np.tile(np.arange(len(some)), (len(numbers), 1))
        before = np.full_like(first, -1)
        while not np.array_equal(first, before):
            before = first.copy()
            for renaming in renamings:
                fixed = np.flatnonzero(renaming.boards[street][numbers] == numbers)
                first[fixed] = np.minimum(first[fixed], first[fixed][:, np.searchsorted(some, renaming.hand[some])])
        every = np.tile(np.arange(len(cards.hand_cards), dtype=np.int32), (len(numbers), 1))
        every[:, some] = some[first]
        found.append(every)
    return found


def _copies(
    cards: ListedCards, renamings: list[_Renaming], above: int, street: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The renamings that take each board of a street to its copies: how many [B]; the renamings, board by board [.].

    There are none where another board stands for it.  Only renamings that fix the board's ancestor on street `above`
    count (-1: all); none at all for streets not below it.
    """
    boards = np.arange(len(cards.board_cards[street]))
    ancestor: npt.NDArray[np.integer] = boards
    if street <= above:
        return np.zeros(len(boards), np.int64), boards[:0]
    if len(renamings) == 1:
        return np.ones(len(boards), np.int64), np.zeros(len(boards), np.int64)
    for parents in cards.board_parent[street:above:-1] if above >= 0 else ():
        ancestor = parents[ancestor]
    images = np.array([renaming.boards[street] for renaming in renamings])
    if above >= 0:
        fixes = np.array([renaming.boards[above][ancestor] == ancestor for renaming in renamings])
        images = np.where(fixes, images, boards)
    walked = images.min(axis=0) == boards
    images = images[:, walked]
    order = np.argsort(images, axis=0, kind="stable")  # of equal images the first renaming comes first
    images = np.take_along_axis(images, order, axis=0)
    fresh = np.ones(images.shape, bool)
    fresh[1:] = images[1:] != images[:-1]
    counts = np.zeros(len(boards), np.int64)
    counts[walked] = fresh.sum(axis=0)
    return counts, order.T[fresh.T]


# --- renamings that change nothing ---


def _renamings(cards: ListedCards, strategies: Strategies | None) -> list[_Renaming]:
    """All renamings of suits that change nothing, that of no suit first."""
    hand_of, hands = _hand_of(cards), len(cards.hand_cards)
    some, deck = _with_buckets(cards), len(hand_of) - 1
    few = of_hands(cards, np.flatnonzero(some))
    number = np.arange(deck)
    for suits in _SUITS if deck else ():
        known: dict[tuple[int, ...], _Renaming] = {}
        for order in permutations(range(suits)) if deck % suits == 0 else ():
            if order not in known:  # else it is made of others that change nothing
                card = number // suits * suits + np.array(order)[number % suits]
                made = _renaming(cards, (some, few), hand_of, card, strategies)
                if made is not None:
                    known[order] = made
                    _close(known)
        if len(known) > 1:
            return [known[order] for order in sorted(known)]
    return [_Renaming(np.arange(hands), [np.arange(len(boards)) for boards in cards.board_cards])]


def _hand_of(cards: ListedCards) -> npt.NDArray[np.int64]:
    """[deck+1, deck+1] hands by both cards, last those of no card, -1; [1, 1] where two hands hold the same."""
    deck, hands = 1 + int(cards.hand_cards.max(initial=-1)), len(cards.hand_cards)
    hand_of = np.full((deck + 1, deck + 1), -1)
    first, second = cards.hand_cards.T
    hand_of[first, second] = hand_of[second, first] = np.arange(hands)
    return hand_of if len(np.unique(hand_of[first, second])) == hands else hand_of[-1:, -1:]


def _swaps(cards: ListedCards) -> list[_Renaming]:
    """Swaps of two cards, so near in number that they may be of one rank, that change nothing."""
    hand_of, some, found = _hand_of(cards), _with_buckets(cards), list[_Renaming]()
    few = of_hands(cards, np.flatnonzero(some))
    for first in range(len(hand_of) - 1):
        for second in range(first + 1, min(first + max(_SUITS), len(hand_of) - 1)):
            card = np.arange(len(hand_of) - 1)
            card[[first, second]] = second, first
            made = _renaming(cards, (some, few), hand_of, card, None)
            found += [] if made is None else [made]
    return found


def _close(known: dict[tuple[int, ...], _Renaming]) -> None:
    """Add to renamings, by what each suit becomes, all that are two of them one after the other, in place."""
    todo = list(known)
    for first in todo:  # grows while it is walked
        for second in list(known):
            for one, other in ((first, second), (second, first)):
                order = tuple(other[suit] for suit in one)
                if order not in known:
                    hand = known[other].hand[known[one].hand]
                    boards = zip(known[one].boards, known[other].boards, strict=True)
                    known[order] = _Renaming(hand, [after[before] for before, after in boards])
                    todo.append(order)


def _renaming(
    cards: ListedCards,
    compared: tuple[npt.NDArray[np.bool_], ListedCards],
    hand_of: npt.NDArray[np.int64],
    card: npt.NDArray[np.int64],
    strategies: Strategies | None,
) -> _Renaming | None:
    """What becomes of hands and boards if card c becomes card[c]; None if that changes anything.

    compared  [H] which hands have buckets, and the cards with these alone
    """
    card = np.append(card, -1)  # what hands of fewer cards hold instead
    renamed = card[cards.hand_cards]
    hand = hand_of[renamed[:, 0], renamed[:, 1]]
    if np.any(hand < 0) or not np.array_equal(cards.reach[:, hand], cards.reach):
        return None
    boards: list[npt.NDArray[np.int64]] = []
    known, above = 0, np.zeros(1, np.int64)
    for dealt, parents in zip(cards.board_cards, cards.board_parent, strict=True):
        new = dealt[:, known:]
        if new.size and card.size <= new.max() + 1:
            return None  # a card on the board that no hand may hold: not a deck as we know it
        place = _places(new, card[new], parents, above[parents])
        if place is None:
            return None
        boards.append(place)
        known, above = dealt.shape[1], place
    some, few = compared
    if not some[hand[some]].all():
        return None
    here = (np.cumsum(some) - 1)[hand[some]]
    if not _same_showdowns(few, boards[-1], here):
        return None
    for street, (place, bucket) in enumerate(zip(boards, few.bucket, strict=True)):
        for player in range(2):
            if not _same_buckets(bucket[player], place, here, strategies, 2 * street + player):
                return None
    return _Renaming(hand, boards)


def _same_showdowns(cards: ListedCards, place: npt.NDArray[np.int64], hand: npt.NDArray[np.int64]) -> bool:
    """Whether strengths are the same after a renaming, where any player has a bucket; some boards at a time."""
    strength, bucket = cards.strength, cards.bucket[-1]
    for first in range(0, len(strength), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        differs = np.take(strength[place[part]], hand, axis=1) != strength[part]
        if np.any(differs & (bucket[:, part] != NO_BUCKET).any(axis=0)):
            return False
    return True


def _same_buckets(
    bucket: npt.NDArray[np.int32],
    place: npt.NDArray[np.int64],
    hand: npt.NDArray[np.int64],
    strategies: Strategies | None,
    block: int,
) -> bool:
    """Whether buckets [B, H] of a block are the same after a renaming; with strategies, whether their rows are."""
    for first in range(0, len(bucket), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        before, after = bucket[part], np.take(bucket[place[part]], hand, axis=1)
        differs = before != after
        if not differs.any():
            continue
        one, other = before[differs], after[differs]
        if strategies is None or np.any((one == NO_BUCKET) | (other == NO_BUCKET)):
            return False
        rows = strategies[block]  # which may be made when it is asked for
        step = max(1, _ROW_CELLS // max(1, rows.shape[1]))
        for start in range(0, len(one), step):
            if np.any(rows[one[start : start + step]] != rows[other[start : start + step]]):
                return False
    return True


def _places(
    dealt: npt.NDArray[np.integer],
    renamed: npt.NDArray[np.int64],
    parents: npt.NDArray[np.integer],
    renamed_parents: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64] | None:
    """[N] where the renamed cards [N, n] of each board stand among those dealt, below its renamed parent; or None."""
    sides = (dealt, parents), (renamed, renamed_parents)
    codes = [(np.sort(np.asarray(cards, np.int64), axis=1), above) for cards, above in sides]
    before, after = (
        code @ _CODES ** np.arange(code.shape[1]) + _CODES ** code.shape[1] * above for code, above in codes
    )
    order = np.argsort(before, kind="stable")
    place = order[np.minimum(np.searchsorted(before[order], after), len(order) - 1)]
    if not np.array_equal(before[place], after) or len(np.unique(place)) != len(place):
        return None
    return place
