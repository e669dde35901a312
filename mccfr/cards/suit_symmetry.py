"""Finds hands and boards of listed cards that are equal up to a permutation of suits.

A suit permutation is a *symmetry* if it maps hands to hands of equal weight for both players, and boards to boards. It
must also preserve buckets and showdowns. Symmetries that leave a board unchanged map boards that follow it to boards of
equal value, because strategies depend on buckets only. So an evaluation computes one board for each such class. For
one given strategy, equal action probabilities (to the last bit) suffice instead of equal buckets. Without an
abstraction each board has buckets of its own. No symmetry preserves these, so only given strategies have symmetries.

The algorithm that numbers hands up to suit isomorphism (Waugh 2013) is in `abstraction.suit_isomorphism`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards, of_hands
from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.range_columns import columns, spread, stored_columns

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SUITS = (4, 3, 2)  # card = rank·suits + suit; a wrong number is harmless: each permutation is checked
_CODES = 64  # an upper bound of the number of cards in a deck
_AT_A_TIME = 256  # boards compared at a time, to bound the memory of permuted copies
_ROW_CELLS = 1 << 22  # strategy cells compared at a time: 32 MB

Strategies = Sequence[Floats]
"""Action probabilities [buckets, slots] by block 2·street + player."""


class BoardCopies(NamedTuple):
    """Boards at which a tree traversal must compute, each in place of several isomorphic ones.

    T boards of all S streets in one list, G suit permutations, H hands.

    first     [S, T+1] int64  entries first[s, t] .. first[s, t+1]-1 of `renaming`: the boards that board t represents
              when it is dealt after a board of street s-1 (s = 0: at the start). No entries: board t is skipped.
              If t is of a street after s, the streets from s on are dealt at once, as in a run-out
    renaming  [.] int32       index of the permutation that maps the board to that board; 0, the identity, for itself
    hand      [G, H] int32    hand to which each permutation maps each hand
    times     [T] float64     number of boards that board t represents, times that of its predecessors; 0: skipped
    """

    first: Ints
    renaming: npt.NDArray[np.int32]
    hand: npt.NDArray[np.int32]
    times: Floats


class _Renaming(NamedTuple):
    """One suit permutation, as the hands and boards to which it maps hands and boards.

    hand    [H] index of the hand to which it maps each hand
    boards  for each street: [B] index of the board to which it maps each board
    """

    hand: Ints
    boards: list[Ints]


def board_copies(cards: ListedCards, strategies: Strategies | None = None) -> BoardCopies:
    """Find the boards that a tree traversal must visit: the first of each isomorphism class.

    strategies  probabilities [buckets, slots], by index 2·street + player; a slot is an action of a decision. If given,
                permutations must map hands to hands with equal probabilities; otherwise, to hands with equal buckets,
                which is valid for every strategy
    """
    renamings = _renamings(cards, strategies)
    sizes = [len(boards) for boards in cards.board_cards]
    start = np.concatenate([[0], np.cumsum(sizes)])
    first = np.zeros((cards.streets, start[-1] + 1), np.int64)
    lists: list[Ints] = []
    for row in range(cards.streets):
        for street in range(cards.streets):
            counts, street_copies = _copies(cards, renamings, row - 1, street)
            first[row, start[street] + 1 : start[street + 1] + 1] = counts
            lists.append(street_copies)
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
    """Return the cards with new buckets: one for each (board, hand) pair up to suit symmetry.

    A symmetry is a suit permutation that preserves ranges, boards, showdowns and the buckets of `cards`. So hands in
    one new bucket have equal values against any strategy on the buckets of `cards`. They have perfect recall.
    """
    renamings, some = _renamings(cards, None), np.flatnonzero(_with_buckets(cards))
    buckets, counts = [], np.zeros((cards.streets, 2), np.int64)
    for street, every in enumerate(cards.bucket):
        old_buckets = columns(every, some)
        pair, new_buckets = np.full(old_buckets.shape[1:], np.iinfo(np.int64).max), np.full_like(old_buckets, NO_BUCKET)
        for renaming in renamings:
            hand = np.searchsorted(some, renaming.hand[some])  # index within `some`
            np.minimum(pair, renaming.boards[street][:, None] * len(hand) + hand, out=pair)
        for player in range(2):
            with_bucket, occurring = old_buckets[player] != NO_BUCKET, np.zeros(pair.size, bool)
            occurring[pair[with_bucket]] = True
            counts[street, player] = occurring.sum()
            number = np.zeros(pair.size, np.int32)
            number[occurring] = np.arange(counts[street, player])
            new_buckets[player, with_bucket] = number[pair[with_bucket]]
        buckets.append(spread(new_buckets, some, len(cards.hand_cards), NO_BUCKET))
    return replace(cards, bucket=buckets, buckets=counts)


def _with_buckets(cards: ListedCards) -> npt.NDArray[np.bool_]:
    """Return [H] bool: True if at least one player has a bucket for the hand on some board."""
    has_bucket = np.zeros(len(cards.hand_cards), bool)
    for bucket in cards.bucket:
        held, numbers = stored_columns(bucket)
        has_bucket[held] |= (numbers != NO_BUCKET).any(axis=(0, 1))
    return has_bucket


def suits_merged(cards: ListedCards, weights: Iterable[Floats] = ()) -> ListedCards:
    """Return the cards with one bucket for each class of isomorphic (board, hand) pairs.

    The buckets in `cards` are replaced; hands that have none there get none.

    weights  arrays [n, H] with n further numbers for each hand, such as fixed probabilities of actions. Isomorphic
             hands must agree in them, as in range weights
    """
    reach = np.concatenate([cards.reach, *weights])
    return replace(lossless(_blind(replace(cards, reach=reach))), reach=cards.reach)


def _blind(cards: ListedCards) -> ListedCards:
    """Return the cards with bucket 0 for every hand that has a bucket: all buckets are equal."""
    kept = [stored_columns(bucket) for bucket in cards.bucket]
    hands = len(cards.hand_cards)
    return replace(
        cards,
        bucket=[spread(np.minimum(numbers, 0), hands_of_street, hands, NO_BUCKET) for hands_of_street, numbers in kept],
    )


def alike_boards(cards: ListedCards, street: int) -> Ints:
    """Return [B] for each board of a street the index of the first board isomorphic to it.

    Buckets are ignored: suit permutations must preserve ranges, boards and showdowns only.
    """
    return np.array([renaming.boards[street] for renaming in _renamings(_blind(cards), None)]).min(axis=0)


def alike_hands(
    cards: ListedCards, boards: Sequence[npt.NDArray[np.integer]], *, swaps: bool = False
) -> list[npt.NDArray[np.int32]]:
    """Return for each street [N, H] the lowest hand index that is equivalent to each hand.

    boards  for each street: [N] indices of the boards on which hands are compared

    Hands that have buckets are equivalent if a suit permutation maps one to the other and leaves the board unchanged.
    It must also preserve ranges, buckets and showdowns. With `swaps`, exchanges of two cards may do the same: if
    flushes do not matter, two cards of one rank are exchangeable.
    """
    renamings, images = _renamings(cards, None) + (_swaps(cards) if swaps else []), []
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
        images.append(every)
    return images


def _copies(cards: ListedCards, renamings: list[_Renaming], above: int, street: int) -> tuple[Ints, Ints]:
    """Return the number [B] of boards that each board of a street represents, and permutations.

    The second result has indices into `renamings`, board after board: each permutation maps the board to one that it
    represents. A board represented by another one has number 0. Only permutations that leave the board's predecessor
    on street `above` unchanged are used (-1: all). For a street not after `above` all numbers are 0.

    renamings  suit permutations that preserve ranges, buckets and showdowns, the identity first
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
    order = np.argsort(images, axis=0, kind="stable")  # stable: of equal images the first permutation comes first
    images = np.take_along_axis(images, order, axis=0)
    fresh = np.ones(images.shape, bool)
    fresh[1:] = images[1:] != images[:-1]
    counts = np.zeros(len(boards), np.int64)
    counts[walked] = fresh.sum(axis=0)
    return counts, order.T[fresh.T]


# --- symmetries ---


def _renamings(cards: ListedCards, strategies: Strategies | None) -> list[_Renaming]:
    """Return all suit permutations that are symmetries of the cards, the identity first.

    A symmetry preserves range weights, boards, showdowns and buckets.

    strategies  if given, a symmetry may map buckets to buckets with equal action probabilities
    """
    hand_of, hands = _hand_of(cards), len(cards.hand_cards)
    some, deck = _with_buckets(cards), len(hand_of) - 1
    few = of_hands(cards, np.flatnonzero(some))
    number = np.arange(deck)
    for suits in _SUITS if deck else ():
        renamings: dict[tuple[int, ...], _Renaming] = {}
        for order in permutations(range(suits)) if deck % suits == 0 else ():
            if order not in renamings:  # permutations already known are products of known symmetries
                card = number // suits * suits + np.array(order)[number % suits]
                renaming = _renaming(cards, (some, few), hand_of, card, strategies)
                if renaming is not None:
                    renamings[order] = renaming
                    _close(renamings)
        if len(renamings) > 1:
            return [renamings[order] for order in sorted(renamings)]
    return [_Renaming(np.arange(hands), [np.arange(len(boards)) for boards in cards.board_cards])]


def _hand_of(cards: ListedCards) -> Ints:
    """Return [deck+1, deck+1] the index of the hand that holds two given cards; -1: none.

    The last row and column stand for "no card". If two hands hold the same cards, the result has shape [1, 1], as for
    an empty deck, so that no suits are permuted.
    """
    deck, hands = 1 + int(cards.hand_cards.max(initial=-1)), len(cards.hand_cards)
    hand_of = np.full((deck + 1, deck + 1), -1)
    first, second = cards.hand_cards.T
    hand_of[first, second] = hand_of[second, first] = np.arange(hands)
    return hand_of if len(np.unique(hand_of[first, second])) == hands else hand_of[-1:, -1:]


def _swaps(cards: ListedCards) -> list[_Renaming]:
    """Return permutations that exchange two cards and preserve ranges, boards, showdowns, buckets.

    Only cards whose numbers are less than four apart are tried, such as two cards of one rank.
    """
    hand_of, some, swaps = _hand_of(cards), _with_buckets(cards), list[_Renaming]()
    few = of_hands(cards, np.flatnonzero(some))
    for first in range(len(hand_of) - 1):
        for second in range(first + 1, min(first + max(_SUITS), len(hand_of) - 1)):
            card = np.arange(len(hand_of) - 1)
            card[[first, second]] = second, first
            renaming = _renaming(cards, (some, few), hand_of, card, None)
            swaps += [] if renaming is None else [renaming]
    return swaps


def _close(renamings: dict[tuple[int, ...], _Renaming]) -> None:
    """Add all products of the suit permutations in `renamings` to it, in place.

    renamings  {tuple of suits: its `_Renaming`}; item s of the tuple is the suit to which suit s is mapped
    """
    todo = list(renamings)
    for first in todo:  # `todo` grows during the loop.
        for second in list(renamings):
            for one, other in ((first, second), (second, first)):
                order = tuple(other[suit] for suit in one)
                if order not in renamings:
                    hand = renamings[other].hand[renamings[one].hand]
                    boards = zip(renamings[one].boards, renamings[other].boards, strict=True)
                    renamings[order] = _Renaming(hand, [after[before] for before, after in boards])
                    todo.append(order)


def _renaming(
    cards: ListedCards,
    compared: tuple[npt.NDArray[np.bool_], ListedCards],
    hand_of: Ints,
    card: Ints,
    strategies: Strategies | None,
) -> _Renaming | None:
    """Return the hands and boards to which hands and boards are mapped if card c becomes card[c].

    Returns None unless that preserves ranges, boards, showdowns and buckets.

    card        [deck] card to which each card is mapped
    hand_of     [deck+1, deck+1] index of the hand that holds two cards
    compared    pair: [H] bool, True for hands that have buckets; and `cards` with these hands only
    strategies  if given, buckets with equal action probabilities count as equal
    """
    card = np.append(card, -1)  # -1 stays -1: the missing card of hands with fewer cards
    renamed = card[cards.hand_cards]
    hand = hand_of[renamed[:, 0], renamed[:, 1]]
    if np.any(hand < 0) or not np.array_equal(cards.reach[:, hand], cards.reach):
        return None
    boards: list[Ints] = []
    board_count, above = 0, np.zeros(1, np.int64)
    for dealt, parents in zip(cards.board_cards, cards.board_parent, strict=True):
        new = dealt[:, board_count:]
        if new.size and card.size <= new.max() + 1:
            return None  # a board card that no hand can hold: an unknown kind of deck
        renamed_board = _places(new, card[new], parents, above[parents])
        if renamed_board is None:
            return None
        boards.append(renamed_board)
        board_count, above = dealt.shape[1], renamed_board
    some, few = compared
    if not some[hand[some]].all():
        return None
    renamed_hand = (np.cumsum(some) - 1)[hand[some]]
    if not _same_showdowns(few, boards[-1], renamed_hand):
        return None
    for street, (renamed_board, bucket) in enumerate(zip(boards, few.bucket, strict=True)):
        for player in range(2):
            if not _same_buckets(bucket[player], renamed_board, renamed_hand, strategies, 2 * street + player):
                return None
    return _Renaming(hand, boards)


def _same_showdowns(cards: ListedCards, hand_image: Ints, hand: Ints) -> bool:
    """Return True if a card permutation preserves the showdown ranks of hands that have a bucket.

    cards       only the hands that have a bucket on some board
    hand_image  [B] index of the last-street board to which each last-street board is mapped
    hand        [H] index of the hand to which each hand is mapped
    """
    strength, bucket = cards.strength, cards.bucket[-1]
    for first in range(0, len(strength), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        differs = np.take(strength[hand_image[part]], hand, axis=1) != strength[part]
        if np.any(differs & (bucket[:, part] != NO_BUCKET).any(axis=0)):
            return False
    return True


def _same_buckets(
    bucket: npt.NDArray[np.int32], hand_image: Ints, hand: Ints, strategies: Strategies | None, block: int
) -> bool:
    """Return True if a card permutation preserves one player's buckets on one street.

    bucket      [B, H] bucket of each hand on each board of the street
    hand_image  [B] index of the board to which each board is mapped
    hand        [H] index of the hand to which each hand is mapped
    strategies  probabilities [buckets, slots], by index `block`; a slot is an action of a decision. If given, buckets
                with equal probabilities count as the same
    block       2·street + player
    """
    for first in range(0, len(bucket), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        before, after = bucket[part], np.take(bucket[hand_image[part]], hand, axis=1)
        differs = before != after
        if not differs.any():
            continue
        one, other = before[differs], after[differs]
        if strategies is None or np.any((one == NO_BUCKET) | (other == NO_BUCKET)):
            return False
        rows = strategies[block]  # a sequence that may compute a block when it is indexed
        step = max(1, _ROW_CELLS // max(1, rows.shape[1]))
        for start in range(0, len(one), step):
            if np.any(rows[one[start : start + step]] != rows[other[start : start + step]]):
                return False
    return True


def _places(
    cards: npt.NDArray[np.integer], renamed: Ints, parents: npt.NDArray[np.integer], renamed_parents: Ints
) -> Ints | None:
    """Return [N] the index of the board to which a card permutation maps each board of a street.

    None if the images are not a permutation of the boards.

    cards            [N, n] cards that each board adds to its parent, the board on the street before
    renamed          [N, n] cards to which these are mapped
    parents          [N] index of each board's parent
    renamed_parents  [N] index of the board to which the parent is mapped
    """
    sides = (cards, parents), (renamed, renamed_parents)
    codes = [(np.sort(np.asarray(own, np.int64), axis=1), above) for own, above in sides]
    before, after = (
        code @ _CODES ** np.arange(code.shape[1]) + _CODES ** code.shape[1] * above for code, above in codes
    )
    order = np.argsort(before, kind="stable")
    row = order[np.minimum(np.searchsorted(before[order], after), len(order) - 1)]
    if not np.array_equal(before[row], after) or len(np.unique(row)) != len(row):
        return None
    return row
