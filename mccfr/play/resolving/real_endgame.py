"""Builds the rest of a real hold'em hand as a subgame, from any postflop betting state.

Chips in the pot, the player to act and the last raise are the table's real ones. A menu gives the sizes of later bets,
such as half the pot. A subgame may therefore begin with a bet that is in no policy's tree.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from abstraction.cards import COMBO_COUNT
from mccfr.cards.base import Cards
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.config.game_tables import Menu
from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game
from mccfr.games.menu import MenuGame, menu_targets

MENU = Menu(first=("0.5p", "1p", "2p"), later=("1p",), max_bets=3, allin_threshold="50%")
"""Three bet sizes, pot-size raises; above half the stack all-in.

All-in is no size of its own: all-ins into small pots converge slowest, and facing one the player re-solves.
"""
TURN_MENU = Menu(first=("1p",), later=("1p",), max_bets=2, allin_threshold="50%")
"""If a street follows, whose bets multiply with its cards: pot size and one raise."""
_LISTED = 2  # most streets for lossless buckets, the first included


def endgame(
    rules: BettingRules,
    state: BettingState,
    board: Sequence[int],
    menu: Menu = MENU,
    live: npt.NDArray[np.bool_] | None = None,
    cards: Cards | None = None,
    real_bets: Mapping[BettingState, Set[float]] = MappingProxyType({}),
) -> Game:
    """Return the rest of a hand as a game of its own, which begins at a state of the real betting.

    rules      betting rules of the whole game: stacks, minimum bet, first player to act on each street
    state      state of the real betting at the decision where the result begins
    board      all board cards of the state's street, in order of dealing
    menu       bet sizes of the result's betting tree
    live       [2, 1326] bool: True for the hands that each player may hold; others are not dealt. None: all hands
    cards      cards of the whole game. Their buckets are used if more than two streets are left, as from the flop on;
               otherwise each hand has a bucket of its own
    real_bets  {betting state: amounts} of bets made in the real hand; the tree has them beside those of the menu. An
               amount is the chips put in over the whole hand. `street` of these states counts from 0 at `state`

    Raises `ValueError` for a menu that is invalid on these streets, and for more than two streets without `cards`.
    """
    first, streets = state.street, rules.streets - state.street
    whole = all(float(amount).is_integer() for amount in (rules.stack, rules.minimum_bet, *state.put_in))
    reach = np.ones((2, COMBO_COUNT)) if live is None else live.astype(np.float64)
    if streets <= _LISTED:
        dealt = endgame_cards(board, reach, streets)
    elif cards is not None:
        game_cards = cards.after(first, board).from_street(first)
        dealt = replace(game_cards, reach=game_cards.reach * reach)
    else:
        raise ValueError(f"{streets} streets follow: an endgame of more than {_LISTED} needs the whole game's buckets")
    targets = menu_targets(menu, MenuGame(rules.stack, rules.minimum_bet, first, streets, whole_chips=whole))
    rules_left = BettingRules(
        state.put_in,
        rules.first_player[first:],
        lambda state_here: sorted({*targets(state_here), *real_bets.get(state_here, ())}),
        stack=rules.stack,
        minimum_bet=rules.minimum_bet,
        board_cards=rules.board_cards[first:],
        put_in_before=state.put_in_before,
    )
    return Game(
        "holdem-subgame",
        build_tree(rules_left, state._replace(street=0)),
        dealt,
        big_blind_chips=rules.minimum_bet,
        pot_chips=sum(state.put_in),
    )
