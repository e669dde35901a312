"""Expected showdown values over all remaining boards, for two ranges or two hands."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board, IndexedCards
from mccfr.solvers.public.terminals.board_values import won_at_showdowns

Floats = npt.NDArray[np.float64]
_ALL = 10_000  # more than the run-outs of a flop, so all are enumerated
_LEAST_MET = 1e-9  # of the other's range: smaller weights are rounding errors of a true 0


class RunOuts(NamedTuple):
    """Showdown ranks of all H hands on K full boards (run-outs) that continue a board.

    strength  [K, H] int32   showdown rank of every hand, -1 if it shares a card with the board
    order     [K, H] uint16  hands by strength, ascending
    factor    number by which a mean over the K boards is multiplied, because boards that share a card with one of two
              hands count as 0. Usually the number of all boards, divided by that of those possible for two given hands
    """

    strength: npt.NDArray[np.int32]
    order: npt.NDArray[np.uint16]
    factor: float

    @classmethod
    def of(cls, strength: npt.NDArray[np.integer], factor: float = 1.0) -> "RunOuts":
        """Create run-outs from the showdown ranks [K, H] of the hands on each full board.

        strength  [K, H] ranks, higher wins; -1 for a hand that shares a card with the board
        factor    number by which a mean over the K boards is multiplied, because impossible boards count as 0
        """
        order = np.argsort(strength, axis=1, kind="stable")
        return cls(strength.astype(np.int32), order.astype(np.uint16), factor)


def run_outs(
    cards: IndexedCards, street: int, board: Board, excluded: Sequence[int], sample_size: int, rng: np.random.Generator
) -> RunOuts:
    """Return the showdown ranks of all hands on the full boards that continue `board`, or on a sample.

    cards        the game's hands and boards
    street       number of the street of `board`; -1: before any board
    excluded     numbers of the cards that are not dealt after `board`
    sample_size  largest number of boards; if there are more, so many are drawn with `rng`
    """
    full, factor = cards.full_boards(street, board, excluded, sample_size, rng)
    return RunOuts.of(np.stack([cards.strengths(each) for each in full]), factor)


def all_run_outs(cards: IndexedCards, street: int, board: Board) -> RunOuts:
    """Return the showdown ranks of all hands on all full boards that continue `board`.

    cards   the game's hands and boards
    street  number of the street of `board`
    board   the board; if it has no cards, only 10,000 full boards are drawn in full-deck hold'em
    """
    return run_outs(cards, street, board, (), _ALL, np.random.default_rng(0))


def win_minus_lose(cards: IndexedCards, run_outs: RunOuts, weight: Floats) -> Floats:
    """Return [H] for each hand the opposing weight that it beats minus the weight that beats it.

    The result is a mean over K full boards, times `run_outs.factor`. A board counts as 0 for two hands if it shares a
    card with one of them.

    cards     the game's hands
    run_outs  showdown ranks of the hands on K full boards
    weight    [H] weights of the opposing hands
    """
    out, sums = np.zeros(cards.hand_count), np.zeros(cards.deck_size + 1)
    won_at_showdowns(run_outs.strength, run_outs.order, cards.card_indices_of_hands.astype(np.uint8), weight, sums, out)
    return out * (run_outs.factor / len(run_outs.strength))


def opponent_weight(cards: IndexedCards, weights: Floats) -> Floats:
    """Return [H] for each hand the weight of opposing hands that share no card with it.

    cards    the game's hands
    weights  [H] weights of the opposing hands; results as small as rounding errors become 0
    """
    weight = cards.disjoint_weight(weights)
    return np.where(weight > _LEAST_MET * weights.sum(), weight, 0.0)


def per_weight(values: Floats, weight: Floats) -> Floats:
    """Return `values` (chips times weight) divided by `weight`, by element; NaN where `weight` is 0."""
    return np.where(weight > 0, values / np.where(weight > 0, weight, 1), np.nan)


def equity(cards: IndexedCards, found: RunOuts, other: Floats, weight: Floats) -> Floats:
    """Return [H] each hand's equity, its mean share of the pot at showdown; NaN where `weight` is 0.

    cards   the game's hands
    found   showdown ranks on the full boards that the mean is over
    other   [H] weights of the opposing range
    weight  [H] total weight of the opposing hands that share no card with each hand
    """
    return 0.5 + 0.5 * per_weight(win_minus_lose(cards, found, other), weight)


def showdown_results(
    cards: IndexedCards, hands: tuple[int, ...], street: int, board: Board, sample_size: int, rng: np.random.Generator
) -> Floats:
    """Return [K] showdown results on K full boards: 1 if player 0 wins, -1 if it loses, 0 for a tie.

    cards        the game's hands and boards
    hands        (index of player 0's hand, index of player 1's hand); no board contains their cards
    street       number of the street of `board`
    sample_size  largest number of boards; if more continue `board`, so many are drawn with `rng`
    """
    taken = [card for card in cards.hand_cards[list(hands)].ravel().tolist() if card >= 0]
    full, _ = cards.full_boards(street, board, taken, sample_size, rng)
    return cards.showdowns(hands, full)
