"""Showdowns after the boards that may follow: of whole ranges, and of two hands."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.dealt import Board, DealtCards
from mccfr.solvers.public.terminals.board_values import won_at_showdowns

Floats = npt.NDArray[np.float64]
_ALL = 10_000  # more than follow a flop, so that all are walked
_LEAST_MET = 1e-9  # of the other's range: what is left of differences of sums where a hand meets nothing


class RunOuts(NamedTuple):
    """Full boards that may follow a board.  K of them.

    strength  [K, H] int32   showdown order of every hand, -1 where the board hits it
    order     [K, H] uint16  hands by strength, ascending
    factor    what a mean over the boards is multiplied with: each pair of hands meets on 1 in `factor` of them
    """

    strength: npt.NDArray[np.int32]
    order: npt.NDArray[np.uint16]
    factor: float

    @classmethod
    def of(cls, strength: npt.NDArray[np.integer], factor: float = 1.0) -> "RunOuts":
        """Of strengths [K, H]."""
        order = np.argsort(strength, axis=1, kind="stable")
        return cls(strength.astype(np.int32), order.astype(np.uint16), factor)


def run_outs(
    cards: DealtCards, street: int, board: Board, taken: Sequence[int], most: int, rng: np.random.Generator
) -> RunOuts:
    """Strengths on full boards after a board; arguments as of `DealtCards.full_boards`."""
    full, factor = cards.full_boards(street, board, taken, most, rng)
    return RunOuts.of(np.stack([cards.strengths(each) for each in full]), factor)


def all_run_outs(cards: DealtCards, street: int, board: Board) -> RunOuts:
    """Of all full boards after a board from the flop on."""
    return run_outs(cards, street, board, (), _ALL, np.random.default_rng(0))


def win_minus_lose(cards: DealtCards, found: RunOuts, weight: Floats) -> Floats:
    """[H] weight [H] that each hand beats at a showdown less the weight that beats it, mean over run-outs.

    Of all pairs on a board that `run_outs` has drawn, each counts with the probability that it is dealt there.
    """
    out, sums = np.zeros(cards.hand_count), np.zeros(cards.deck_size + 1)
    won_at_showdowns(found.strength, found.order, cards.hand_places.astype(np.uint8), weight, sums, out)
    return out * (found.factor / len(found.strength))


def opponent_weight(cards: DealtCards, other: Floats) -> Floats:
    """[H] weight of the other's hands [H] that each hand may meet; 0 where it is a rounding error."""
    found = cards.disjoint_weight(other)
    return np.where(found > _LEAST_MET * other.sum(), found, 0.0)


def per_weight(values: Floats, weight: Floats) -> Floats:
    """Values by what hands meet; NaN where that is nothing."""
    return np.where(weight > 0, values / np.where(weight > 0, weight, 1), np.nan)


def equity(cards: DealtCards, found: RunOuts, other: Floats, weight: Floats) -> Floats:
    """[H] share of the pot that each hand wins at showdowns against the other's hands; NaN where it meets nothing."""
    return 0.5 + 0.5 * per_weight(win_minus_lose(cards, found, other), weight)


def showdown_results(
    cards: DealtCards, hands: tuple[int, int], street: int, board: Board, most: int, rng: np.random.Generator
) -> Floats:
    """[K] showdowns of two hands on full boards after a board, all or `most` drawn: +1 player 0 wins, -1, 0."""
    taken = [card for card in cards.hand_cards[list(hands)].ravel().tolist() if card >= 0]
    full, _ = cards.full_boards(street, board, taken, most, rng)
    return cards.showdowns(hands, full)
