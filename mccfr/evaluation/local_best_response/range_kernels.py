"""Kernels of LBR: one hand against all others over run-outs."""

from abstraction.hand_evaluator import fill_board_strengths
from abstraction.kernels.jit import njit
from mccfr.common.rng import below


@njit
def meet_all(strength, hand, balance, compatible):
    """Compare one hand with every other on full boards.

    strength    [R, H] int16 showdown rank on each board, -1 if the board shares a card with the hand
    balance     [H] int32 boards that `hand` wins minus boards it loses, in place
    compatible  [H] int32 boards compatible with both hands, in place; arbitrary for hands that share a card with `hand`
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
def fill_run_outs(tables, boards, strength):
    """Write the strengths of all combinations on boards [R, n] int8 to strength [R, 1326] int16, in place."""
    for board in range(boards.shape[0]):
        fill_board_strengths(tables, boards[board], strength[board])


@njit
def draw_boards(state, deck, dealt_cards, boards):
    """Complete boards with cards drawn without replacement (Fisher & Yates), in place.

    state   [4] uint64 random state, advanced in place
    deck    [n] int8 remaining cards, shuffled in place
    dealt_cards   number of cards that each board already has
    boards  [R, >= known] int8
    """
    for board in range(boards.shape[0]):
        for position in range(boards.shape[1] - dealt_cards):
            chosen = position + below(state, deck.shape[0] - position)
            deck[position], deck[chosen] = deck[chosen], deck[position]
            boards[board, dealt_cards + position] = deck[position]
