"""Makes mccfr/view/data/preflop_equity.npy: the preflop equity of all pairs of hand classes.

    .venv/bin/python tools/preflop_equity.py mccfr/view/data/preflop_equity.npy

The array is [169, 169] float32, with classes numbered as in `abstraction.boards.preflop_classes`.  An entry is the mean
share of the pot over all pairs of combinations without a common card.  For each pair it covers all 1,712,304 boards
without their cards; a tie counts half.  Isomorphic boards are evaluated once and weighted.  It takes half a minute of
one core.
"""

import sys
from math import comb
from pathlib import Path

import numpy as np

from abstraction.boards import PREFLOP_CLASSES, board_classes, preflop_classes
from abstraction.cards import combo_masks, combo_table
from abstraction.hand_evaluator import evaluator_tables, fill_board_strengths
from abstraction.kernels.jit import allocating_njit


@allocating_njit
def add_showdowns(tables, boards, multiplicity, hole, classes, won):
    """Add to won [169, 169] int64, over boards [N, 5], twice the wins of each class plus once its ties.

    multiplicity  [N] int64 number of isomorphic boards
    hole          [1326, 2] cards of each combination
    classes       [1326] class of each combination

    Hands are visited by ascending strength.  Each beats all hands before it, by class, minus those that share a card.
    """
    count, width = hole.shape[0], won.shape[1]
    strength = np.empty(count, np.int16)
    for board in range(boards.shape[0]):
        fill_board_strengths(tables, boards[board], strength)
        order = np.argsort(strength)
        below, sharing = np.zeros(width, np.int32), np.zeros((52, width), np.int32)
        place = 0
        while strength[order[place]] < 0:
            place += 1
        while place < count:
            stop = place
            while stop < count and strength[order[stop]] == strength[order[place]]:
                stop += 1
            for after in range(2):  # first without the hands of this strength, then with them
                for k in range(place, stop):
                    hand = order[k]
                    row, first, second = won[classes[hand]], sharing[hole[hand, 0]], sharing[hole[hand, 1]]
                    for c in range(width):
                        row[c] += multiplicity[board] * (below[c] - first[c] - second[c])
                    if after == 1:  # the hand itself was subtracted twice, once for each card
                        row[classes[hand]] += multiplicity[board]
                if after == 0:
                    for k in range(place, stop):
                        hand = order[k]
                        below[classes[hand]] += 1
                        sharing[hole[hand, 0], classes[hand]] += 1
                        sharing[hole[hand, 1], classes[hand]] += 1
            place = stop


def main(out: Path) -> None:
    found, hole, classes = board_classes(5), combo_table().astype(np.int64), preflop_classes().astype(np.int64)
    won = np.zeros((PREFLOP_CLASSES, PREFLOP_CLASSES), np.int64)
    for first in range(0, len(found.boards), 1000):
        part = slice(first, first + 1000)
        boards, multiplicity = found.boards[part].copy(), found.multiplicity[part].astype(np.int64)
        add_showdowns(evaluator_tables(), boards, multiplicity, hole, classes, won)
        print(f"{min(part.stop, len(found.boards)):,} of {len(found.boards):,} boards", end="\r", file=sys.stderr)
    apart = (combo_masks()[:, None] & combo_masks()[None]) == 0
    member = np.eye(PREFLOP_CLASSES, dtype=np.int64)[classes]
    twice = 2 * comb(48, 5) * (member.T @ apart @ member)
    if not np.array_equal(won + won.T, twice):
        raise RuntimeError("what one class wins and the other is not all there is")
    np.save(out, (won / twice).astype(np.float32))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
