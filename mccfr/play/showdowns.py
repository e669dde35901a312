"""What every hand wins at showdowns against a weighted range, board by board, in time linear in the hands."""

from abstraction.kernels.jit import njit


@njit
def won_at_showdowns(strength, order, cards, weight, sums, out):
    """Add to out [H] float64, over K boards, the weight that each hand beats less the weight that beats it, in place.

    strength  [K, H] int32    order at a showdown; below 0: the board hits the hand
    order     [K, H] uint16   hands by strength, ascending
    cards     [H, 2] uint8    cards of each hand; the number of cards in the deck where it has fewer
    weight    [H] float64     of the other player's hands
    sums      [C + 1] float64 scratch: weight of the hands that hold each card

    Indices without a sign are looked up a third faster: nobody asks whether they count from the end.

    Hands that share a card do not meet.  One sweep in order of strength takes the sums before and after the hands of
    equal strength are added, L and LE; what a hand wins less what it loses is L + LE less the whole.
    """
    none = sums.shape[0] - 1
    for board in range(strength.shape[0]):
        sums[:] = 0.0
        total = 0.0
        hands = order.shape[1]
        place = 0
        while place < hands and strength[board, order[board, place]] < 0:
            place += 1
        first = place
        while place < hands:
            here, stop = strength[board, order[board, place]], place
            while stop < hands and strength[board, order[board, stop]] == here:
                hand = order[board, stop]
                out[hand] += total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
                stop += 1
            for k in range(place, stop):
                hand = order[board, k]
                total += weight[hand]
                for side in range(2):
                    if cards[hand, side] != none:
                        sums[cards[hand, side]] += weight[hand]
            for k in range(place, stop):
                hand = order[board, k]
                out[hand] += total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
            place = stop
        for k in range(first, hands):
            hand = order[board, k]
            out[hand] -= total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
