"""Cards of a hold'em endgame: a board, two ranges, and every board that may follow."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT, card_mask, combo_masks, combo_text, hand_cards
from abstraction.evaluator import board_strengths
from mccfr.cards.listed import ListedCards, lossless_buckets


def endgame_cards(board: Sequence[int], ranges: npt.NDArray[np.float64], streets: int) -> ListedCards:
    """All 1,326 hands, the `board` of the first street, and on each of `streets` - 1 more every card to come.

    ranges  [2, 1326] weights of each player's hands; those that share a card with the board count as 0

    Lossless: every (board, hand) that its owner reaches is a bucket of its own.
    """
    boards, parents = [np.array([board], np.int16)], [np.zeros(1, np.int32)]
    for _ in range(streets - 1):
        above = boards[-1].tolist()
        below = [(*known, card) for known in above for card in range(CARD_COUNT) if card not in known]
        boards.append(np.array(below, np.int16))
        parents.append(np.repeat(np.arange(len(above)), len(below) // len(above)).astype(np.int32))
    hits = (combo_masks() & np.uint64(card_mask(board))) != 0
    reach = np.where(hits, 0.0, ranges)
    bucket = [lossless_buckets(combo_masks(), reach, street_boards) for street_boards in boards]
    return ListedCards(
        hand_cards(CARD_COUNT, 2),
        [combo_text(index) for index in range(COMBO_COUNT)],
        reach,
        boards,
        parents,
        np.array([board_strengths(known.tolist()) for known in boards[-1]], np.int32),
        bucket,
        np.array([numbers.max(axis=(1, 2)) + 1 for numbers in bucket], np.int64),
    )
