"""Every deal of a game with its probability, for traversals that sample nothing."""

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals
from mccfr.games.game import Game

MOST_DEALS = 2_000_000
"""Hands of both players and a board, that are walked one by one."""


def every_deal(game: Game) -> tuple[Deals, npt.NDArray[np.float64]]:
    """All deals and their probabilities [K] float64; `ValueError` where cards are not listed or there are too many."""
    cards = game.cards
    if not cards.dealt:
        return Deals(np.zeros((1, 2), np.int32), np.zeros(1)), np.ones(1)
    if cards.boards is None:
        raise ValueError(f"{game.name} deals from the whole deck: its deals cannot be listed")
    cards = cards.listed()
    masks, boards = cards.hand_masks(), cards.board_masks
    live = [np.flatnonzero(cards.reach[player] > 0) for player in range(2)]
    if len(live[0]) * len(live[1]) * len(boards[-1]) > MOST_DEALS:
        raise ValueError(
            f"{game.name} has up to {len(live[0]) * len(live[1]) * len(boards[-1]):,} deals, and at most "
            f"{MOST_DEALS:,} are walked one by one: take sampling = 'external'"
        )
    first, second = (axis.ravel() for axis in np.meshgrid(*live, indexing="ij"))
    disjoint = (masks[first] & masks[second]) == 0
    first, second = first[disjoint], second[disjoint]
    weight = cards.reach[0, first] * cards.reach[1, second]
    pair, board = np.arange(len(first)), np.zeros(len(first), np.int64)
    buckets: list[npt.NDArray[np.int32]] = []
    for street, mask in enumerate(boards):
        parents = cards.board_parent[street] if street else np.zeros(len(mask), np.int32)
        below = [np.flatnonzero(parents == over) for over in range(len(boards[street - 1]) if street else 1)]
        counts = [
            below[over][(mask[below[over]] & (masks[first[one]] | masks[second[one]])) == 0]
            for one, over in zip(pair, board, strict=True)
        ]
        lengths = np.array([len(found) for found in counts])
        weight = np.repeat(weight / np.maximum(lengths, 1), lengths)
        pair, board = np.repeat(pair, lengths), np.concatenate(counts)
        buckets = [np.repeat(column, lengths) for column in buckets]
        bucket = cards.bucket[street]
        buckets += [bucket[0, board, first[pair]], bucket[1, board, second[pair]]]
    difference = cards.strength[board, first[pair]] - cards.strength[board, second[pair]]
    deals = Deals(np.stack(buckets, axis=1).astype(np.int32), np.sign(difference).astype(np.float64))
    return deals, weight / weight.sum()
