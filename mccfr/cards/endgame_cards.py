"""Cards of a hold'em endgame: one board, two ranges and all boards that can follow."""

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT, card_mask, combo_masks, combo_text, hand_cards
from abstraction.hand_evaluator import strengths_on_boards
from mccfr.cards.card_lists import ListedCards, boards_from, lossless_buckets
from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.range_columns import RangeColumns, spread


def endgame_cards(
    board: Sequence[int], ranges: npt.NDArray[np.float64], streets: int, most: int | None = None
) -> ListedCards:
    """Return the 1,326 hands, the given board and all that can follow it, as a `ListedCards`.

    board    cards on the first street
    ranges   [2, 1326] weights of each player's hands; hands that share a card with the board get 0
    streets  number of streets, the first included; each later street deals one card
    most     largest number of next cards to list after each board, drawn at random with a fixed seed; None: all

    `ListedCards` has arrays of hands, boards, range weights and buckets. There is no card abstraction: each hand in a
    player's range has its own bucket on each board.
    """
    boards, parents = boards_from(board, [1] * (streets - 1))
    if most is not None:
        boards, parents = _drawn(boards, parents, most)
    hits = (combo_masks() & np.uint64(card_mask(board))) != 0
    reach = np.where(hits, 0.0, ranges)
    range_hands, last = np.flatnonzero(reach.any(axis=0)), boards[-1]
    bucket = [
        lossless_buckets(combo_masks()[range_hands], reach[:, range_hands], street_boards) for street_boards in boards
    ]
    every = partial(strengths_on_boards, last, np.arange(COMBO_COUNT))
    strength = RangeColumns(strengths_on_boards(last, range_hands), range_hands, COMBO_COUNT, every)
    return ListedCards(
        hand_cards(CARD_COUNT, 2),
        [combo_text(index) for index in range(COMBO_COUNT)],
        reach,
        boards,
        parents,
        cast(npt.NDArray[np.int32], strength),
        [spread(numbers, range_hands, COMBO_COUNT, NO_BUCKET) for numbers in bucket],
        np.array([numbers.max(axis=(1, 2), initial=NO_BUCKET) + 1 for numbers in bucket], np.int64),
    )


def _drawn(
    boards: Sequence[npt.NDArray[np.int16]], parents: Sequence[npt.NDArray[np.int32]], most: int
) -> tuple[list[npt.NDArray[np.int16]], list[npt.NDArray[np.int32]]]:
    """Return `boards` and `parents` with at most `most` next boards kept for each board.

    boards   for each street: [B, n] the cards of its boards; the first street has one board
    parents  for each street: [B] index of each board's predecessor on the street before

    The boards to keep are drawn at random with a fixed seed.
    """
    random, kept = np.random.default_rng(0), np.arange(1)
    found, above = [boards[0]], [parents[0]]
    for here, parent in zip(boards[1:], parents[1:], strict=True):
        below = np.flatnonzero(np.isin(parent, kept)).reshape(len(kept), -1)
        columns = np.sort(random.permutation(below.shape[1])[:most])
        above.append(np.repeat(np.arange(len(kept), dtype=np.int32), len(columns)))
        kept = below[:, columns].ravel()
        found.append(here[kept])
    return found, above
