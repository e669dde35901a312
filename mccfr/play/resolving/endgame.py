"""The rest of a real hand of hold'em as a game: from any state of the betting after the flop, in real chips.

What is put in, who acts, and how large the last raise was come from the table, whatever a policy's tree has; how the
betting may go on is a menu's.  So a bet that no tree has begins the game in which it is answered.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from abstraction.cards import COMBO_COUNT
from mccfr.cards.cards import Cards
from mccfr.cards.endgame import endgame_cards
from mccfr.cards.listed import ListedCards
from mccfr.config.games import Menu
from mccfr.games.betting import BettingRules, BettingState, build_tree
from mccfr.games.game import Game
from mccfr.games.menu import MenuGame, menu_targets

MENU = Menu(first=("0.5p", "1p", "2p"), later=("1p",), max_bets=3, allin_threshold=0.5)
"""Three sizes for a bet, the pot for a raise; above half the stack all-in.

All-in is no size of its own: a stack put into a small pot is what a number of iterations is wrong about most, and who
is put all-in answers by solving again.
"""
TURN_MENU = Menu(first=("1p",), later=("1p",), max_bets=2, allin_threshold=0.5)
"""Where a street is still to come, whose bets count for each of its cards: the pot, and one raise."""
_LISTED = 2  # streets at most, the first included, of which every hand on every board is told apart


def endgame(
    rules: BettingRules,
    state: BettingState,
    board: Sequence[int],
    menu: Menu = MENU,
    live: npt.NDArray[np.bool_] | None = None,
    cards: Cards | None = None,
) -> Game:
    """What follows a state of real betting, its street the first, every hand that the board leaves of weight 1.

    rules  of the whole game: stacks, least bets, who acts first
    board  cards on the table, in order of dealing: all that the state's street has
    live   [2, 1326] hands that can be there at all, others are not dealt; None: every hand can
    cards  of the whole game, whose buckets hands have once two more streets are to come

    `ValueError` for a menu that says nothing sensible after the flop, and an endgame of more than two streets without
    `cards`.
    """
    first, streets = state.street, rules.streets - state.street
    whole = all(float(amount).is_integer() for amount in (rules.stack, rules.minimum_bet, *state.put_in))
    reach = np.ones((2, COMBO_COUNT)) if live is None else live.astype(np.float64)
    if streets <= _LISTED:
        dealt = endgame_cards(board, reach, streets)
    elif cards is not None:
        dealt = _bucketed(cards, first, board, reach)
    else:
        raise ValueError(f"{streets} streets follow: an endgame of more than {_LISTED} needs the whole game's buckets")
    kept = BettingRules(
        state.put_in,
        rules.first_player[first:],
        menu_targets(menu, MenuGame(rules.stack, rules.minimum_bet, first, streets, whole_chips=whole)),
        stack=rules.stack,
        minimum_bet=rules.minimum_bet,
        board_cards=rules.board_cards[first:],
        put_in_before=state.put_in_before,
    )
    return Game(
        "holdem-subgame",
        build_tree(kept, state._replace(street=0)),
        dealt,
        big_blind_chips=rules.minimum_bet,
        pot_chips=sum(state.put_in),
    )


def _bucketed(cards: Cards, street: int, board: Sequence[int], reach: npt.NDArray[np.float64]) -> ListedCards:
    """A game's cards from a board of a street on, with its buckets."""
    known = cards.after(street, board)
    return replace(
        known,
        reach=known.reach * reach,
        board_cards=known.board_cards[street:],
        board_parent=[np.zeros(1, np.int32), *known.board_parent[street + 1 :]],
        bucket=known.bucket[street:],
        buckets=known.buckets[street:],
    )
