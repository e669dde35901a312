"""Kernels of LBR: strategy rows of a range, and one hand against all others over run-outs."""

from abstraction.hand_evaluator import fill_board_strengths
from abstraction.kernels.jit import njit
from mccfr.common.rng import below
from mccfr.tables.row_tables import gather_rows


@njit
def shared_out(tables, row, buckets, weight, out):
    """Multiply the weights of all hands by their action probabilities at one decision.

    tables   RowTables of one block
    row      of the decision
    buckets  [H] int32 of each hand; arbitrary if its weight is 0
    weight   [H] float64
    out      [A, H] float64 weight of each hand times its probability of each action, in place
    """
    gather_rows(tables, 0, (row, row + 1), buckets, out)
    for action in range(out.shape[0]):
        for hand in range(weight.shape[0]):
            out[action, hand] *= weight[hand]


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
