"""Terminal values for a whole range in time linear in its hands: card removal by inclusion-exclusion.

Of an opponent's reach, a hand a, b faces the total less what holds a, less what holds b, plus what holds both (only
the same hand can: it was taken off twice).  At a showdown every hand of the opponent counts with a sign, +1 if it is
weaker, -1 if it is stronger; one sweep over both lists in order of strength moves each hand from -1 over 0 (the tie) to
+1, and keeps the signed total and the signed sums by card up to date.  (Johanson et al. 2011, "Accelerating best
response calculation in large extensive games".)

The differences leave noise of about 1e-17 of the total where the true value is 0, and regrets would take that noise for
a preference: what is below NOISE times the total is set to 0.

Lists, cards and `same` are those of `HandLists`; `board` indexes them.  A range has one more cell than hands, which
holds 0, for hands that the other list does not have.
"""

from abstraction.jit import njit, part_njit

NOISE = 1e-13


@njit
def reach_by_card(hands, player, board, reach, sums):
    """Fill sums[0] [C+1] with the reach of `player`'s hands that hold each card (0 for no card); the total reach."""
    by_card = sums[0]
    by_card[:] = 0.0
    total = 0.0
    first = hands.first[player, board]
    for k in range(hands.first[player, board + 1] - first):
        total += reach[k]
        by_card[hands.card[first + k, 0]] += reach[k]
        by_card[hands.card[first + k, 1]] += reach[k]
    by_card[by_card.shape[0] - 1] = 0.0
    return total


@njit
def fold_values(hands, player, board, reach, total, sums, chips, out):
    """Values [n] of `player`'s hands where the opponent's range `reach` meets a fixed payoff of `chips` to `player`.

    `total` and `sums` are those of `reach_by_card` for the opponent.
    """
    by_card = sums[0]
    limit = NOISE * total
    first = hands.first[player, board]
    for k in range(hands.first[player, board + 1] - first):
        entry = first + k
        met = total - by_card[hands.card[entry, 0]] - by_card[hands.card[entry, 1]] + reach[hands.same[entry]]
        out[k] = chips * met if abs(met) >= limit else 0.0


@part_njit
def _move(hands, entry, amount, signed):
    """Add `amount` to the signed sums of an entry's cards."""
    signed[hands.card[entry, 0]] += amount
    signed[hands.card[entry, 1]] += amount


@njit
def showdown_values(hands, player, board, reach, total, sums, chips, out):
    """Values [n] of `player`'s hands in a showdown for `chips` against the opponent's range `reach`.

    `total` and `sums` [2, C+1] are those of `reach_by_card` for the opponent; sums[1] is scratch.
    """
    signed = sums[1]
    none = signed.shape[0] - 1
    for card in range(none + 1):
        signed[card] = -sums[0, card]
    balance = -total
    limit = NOISE * total
    k, stop = hands.first[player, board], hands.first[player, board + 1]
    j, other_stop = hands.first[1 - player, board], hands.first[1 - player, board + 1]
    start, other_start = k, j
    while k < stop:
        strength = hands.strength[k]
        while j < other_stop and hands.strength[j] < strength:
            moved = 2.0 * reach[j - other_start]
            balance += moved
            _move(hands, j, moved, signed)
            j += 1
        tied = j
        while j < other_stop and hands.strength[j] == strength:
            balance += reach[j - other_start]
            _move(hands, j, reach[j - other_start], signed)
            j += 1
        signed[none] = 0.0
        while k < stop and hands.strength[k] == strength:
            met = balance - signed[hands.card[k, 0]] - signed[hands.card[k, 1]]
            out[k - start] = chips * met if abs(met) >= limit else 0.0
            k += 1
        for entry in range(tied, j):
            balance += reach[entry - other_start]
            _move(hands, entry, reach[entry - other_start], signed)


@part_njit
def no_values(count, out):
    """Zero the first `count` cells of `out`: what a range without reach is worth."""
    for k in range(count):
        out[k] = 0.0
