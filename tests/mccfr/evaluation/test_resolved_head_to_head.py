"""What a policy that solves its hands again wins from another.

Shows:

* Head-to-head with hands solved again is, on each board, what plain head-to-head finds where nothing is solved, also
  between betting trees that differ; a planted error is caught
  (test_it_is_head_to_head_where_nothing_is_solved, test_bets_that_are_not_taken_for_others_are_caught)
"""

from functools import cache

import numpy as np
import pytest
from mutants import mutant
from random_policy import policy

from mccfr.config.game_tables import Menu
from mccfr.evaluation import resolved_head_to_head as module
from mccfr.evaluation.head_to_head import PolicyPair
from mccfr.play.resolving import Settings
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.sampled_board import from_cards
from mccfr.tables.strategy import tabulate

MENUS = [Menu(first=(size,), later=("allin",), max_bets=1) for size in ("1p", "0.5p")]


@cache
def sides():
    found = []
    for menu in MENUS:
        played = policy(menu)
        found.append(Profile(played.game, tabulate(played.game, played.row)))
    return found


def on_a_board(tried):
    """Chips that the first side wins in each seat on one board, where nothing is solved; and by head-to-head."""
    one, other = sides()
    meetings = tried._ResolvedMeetings(one, other, 0, Settings())
    meetings._resolver = None
    boards = meetings._boards(0)
    last = boards[0][-1]
    for here in boards[0]:  # as head-to-head has it: only hands that the whole board leaves, settled on it
        here.live, here.share, here.settled = last.live, last.share, last.settled
    meetings._boards = lambda _: boards
    table = PolicyPair(one, other)
    seen = [from_cards(one.game.cards, last.known, np.float64, ordered=True) for _ in range(2)]
    whole = [table.play(board, seating) for seating, board in enumerate(seen)]
    (first, weight), (second, _) = whole
    return meetings.play(0), np.array([first, -second]) / weight


def test_it_is_head_to_head_where_nothing_is_solved():
    found, expected = on_a_board(module)
    assert found == pytest.approx(expected, rel=1e-9)


def test_bets_that_are_not_taken_for_others_are_caught():
    planted = mutant(module, ("self.theirs.taken_for(own, state, action), *more", "own, *more"))
    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        found, expected = on_a_board(planted)
        assert found == pytest.approx(expected, rel=1e-3)
