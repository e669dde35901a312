"""Kernels of local best response (LBR): compare one hand with all others over run-outs."""

from abstraction.kernels.jit import njit
from mccfr.common.rng import below


@njit
def meet_all(strength, hand, balance, compatible):
    """Compare one hand with every other hand on R full boards.

    strength    [R, H] int16 showdown strength of each hand on each board, higher wins; -1 if hand and board share a
                card
    hand        index of the hand
    balance     [H] int32, overwritten: number of boards on which `hand` wins minus number on which it loses
    compatible  [H] int32, overwritten: number of boards that share no card with either hand

    The results for hands that share a card with `hand` have no meaning.
    """
    balance[:] = 0
    compatible[:] = 0
    for board in range(strength.shape[0]):
        own = strength[board, hand]
        if own < 0:
            continue
        row = strength[board]
        for other in range(row.shape[0]):
            live = row[other] >= 0
            balance[other] += live * ((own > row[other]) - (own < row[other]))
            compatible[other] += live


@njit
def draw_boards(state, deck, dealt_cards, boards):
    """Complete R boards with cards drawn without replacement from a deck, in place.

    state        [4] uint64 random state, advanced in place
    deck         [n] int8 cards that can be drawn, shuffled in place; each board is drawn from all of them
    dealt_cards  number of cards that each board already has
    boards       [R, C] int8; columns from `dealt_cards` on are filled
    """
    for board in range(boards.shape[0]):
        for position in range(boards.shape[1] - dealt_cards):
            chosen = position + below(state, deck.shape[0] - position)
            deck[position], deck[chosen] = deck[chosen], deck[position]
            boards[board, dealt_cards + position] = deck[position]
