"""Head-to-head of a policy that re-solves subgames.

Shows:

* Without solved subgames, head-to-head with re-solving equals plain head-to-head on each board
  (test_without_solved_subgames_it_equals_head_to_head)
* The test detects bets that are not translated to the other side's tree (planted:
  test_bets_that_are_not_translated_are_caught)
"""

from functools import cache

import numpy as np
import pytest
from mutants import mutant
from random_policy import policy
from strategies import tabulate

from mccfr.config.game_tables import Menu
from mccfr.evaluation import resolved_head_to_head as module
from mccfr.evaluation.head_to_head import PolicyPair
from mccfr.play.resolving.resolving_table import Settings
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.sampled_board import from_cards

MENUS = [Menu(first=(size,), later=("allin",), max_bets=1) for size in ("1p", "0.5p")]


@cache
def sides():
    found = []
    for menu in MENUS:
        played = policy(menu)
        found.append(Profile(played.game, tabulate(played.game, played.row)))
    return found


def on_a_board(implementation):
    """Return the first side's chips in each seat on one board without re-solving, and by head-to-head."""
    one, other = sides()
    meetings = implementation._ResolvedMeetings(one, other, 0, Settings())
    meetings._resolver = None
    boards = meetings._boards(0)
    last = boards[0][-1]
    for here in boards[0]:  # like head-to-head: only hands that the full board leaves, settled on it
        here.live, here.share, here.settled = last.live, last.share, last.settled
    meetings._boards = lambda _: boards
    table = PolicyPair(one, other)
    seen = [from_cards(one.game.cards, last.known, np.float64, ordered=True) for _ in range(2)]
    whole = [table.play(board, seating) for seating, board in enumerate(seen)]
    (first, weight), (second, _) = whole
    return meetings.play(0), np.array([first, -second]) / weight


def test_without_solved_subgames_it_equals_head_to_head():
    found, expected = on_a_board(module)
    assert found == pytest.approx(expected, rel=1e-9)


def test_bets_that_are_not_translated_are_caught():
    planted = mutant(module, ("self.theirs.ranges_after(own, state, action), *more", "own, *more"))
    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        found, expected = on_a_board(planted)
        assert found == pytest.approx(expected, rel=1e-3)
