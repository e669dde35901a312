"""Hand lists of boards, by bucket and by strength, against naive lists.

Shows:

* Hand lists of boards equal lists made one hand at a time (test_hand_lists_equal_naive_lists)
"""

import numpy as np
import pytest

import mccfr
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.cards.suit_symmetry import suits_merged
from mccfr.solvers.public.hand_lists import NO_CARD, NOT_READ
from mccfr.solvers.public.range_sums import make_ranges


def spot():
    reach = np.zeros((2, 1326))
    reach[np.arange(2)[:, None], np.random.default_rng(4).integers(1326, size=(2, 40))] = 1
    return suits_merged(endgame_cards([3, 7, 11, 14], np.maximum(reach, np.roll(reach, 1, axis=1)), 2))


def naive_lists(cards, street, board, player, merge):
    """Return a board's lists, one hand at a time.

    These are columns (hand, bucket), hands (hand, column), and by strength places, cards, same and groups.
    """
    live = [[h for h in np.flatnonzero(cards.reach[p]).tolist() if cards.live(street, board)[h]] for p in range(2)]
    strength = cards.strength[board] if street + 1 == cards.streets else np.zeros(len(cards.hand_names))
    bucket, orders, columns = cards.bucket[street][:, board], [], []
    for p in range(2):
        orders.append(sorted(live[p], key=lambda h, p=p: (bucket[p, h], h)))
        numbers = [bucket[p, h] if merge else i for i, h in enumerate(orders[p])]
        columns.append([sorted(set(numbers)).index(number) for number in numbers])
    deck = sorted({card for hands in live for h in hands for card in cards.hand_cards[h].tolist() if card >= 0})
    rows = {card: place + 1 + NOT_READ for place, card in enumerate(deck)} | {-1: NO_CARD}
    first = {column: h for h, column in reversed(list(zip(orders[player], columns[player], strict=True)))}
    places = sorted(first, key=lambda column: (strength[first[column]], column))
    other = dict(zip(orders[1 - player], columns[1 - player], strict=True))
    two = [min(cards.hand_cards[first[column]]) >= 0 for column in places]
    none = len(set(columns[1 - player]))
    same = [other.get(first[column], none) if both else none for column, both in zip(places, two, strict=True)]
    against, mine = [strength[h] for h in live[1 - player]], [strength[first[column]] for column in places]
    groups = [
        (sum(s <= value for s in mine), sum(s < value for s in against), sum(s <= value for s in against))
        for value in sorted(set(mine))
    ]
    card = [[rows[each] for each in cards.hand_cards[first[column]].tolist()] for column in places]
    hands = list(zip(orders[player], columns[player], strict=True))
    return [(first[c], bucket[player, first[c]]) for c in sorted(first)], hands, places, card, same, groups


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("make", [spot, mccfr.game("leduc").cards.listed])
def test_hand_lists_equal_naive_lists(make, merge):
    cards = make()
    walked = np.ones(sum(len(boards) for boards in cards.board_cards), bool)
    walked[4::3] = False
    ranges, start = make_ranges(cards, walked, merge=merge), 0
    for street, boards in enumerate(cards.board_cards):
        for player in range(2):
            for board in np.flatnonzero(walked[start : start + len(boards)]).tolist():
                own = slice(*ranges.first[player, start + board : start + board + 2])
                all_ = slice(*ranges.every.first[player, start + board : start + board + 2])
                group = slice(*ranges.group_first[player, start + board : start + board + 2])
                columns, hands, places, card, same, groups = naive_lists(cards, street, board, player, merge)
                assert list(zip(ranges.hand[own], ranges.bucket[own], strict=True)) == columns
                assert list(zip(ranges.every.hand[all_], ranges.every.column[all_], strict=True)) == hands
                assert ranges.place[own].tolist() == places
                assert ranges.card[own].tolist() == card
                assert ranges.same[own].tolist() == same
                assert ranges.group[group].tolist() == [list(map(int, each)) for each in groups]
        start += len(boards)
    assert len(walked) < 5 or ranges.first[0, 5] == ranges.first[0, 4]
