"""Betting rules of full hold'em games.

With two players, player 0 is the big blind and player 1 the button. With more, players are numbered in the order of
action after the flop: 0 is the small blind, 1 the big blind, and the last the button.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Literal

from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.config.value_limits import share_of
from mccfr.games.betting import MOST_SEATS, BettingRules, BettingState
from mccfr.games.menu import PLAYER_NAMES, SEAT_NAMES, MenuGame, check_opening, line_edits, menu_targets
from mccfr.games.posting import posted
from mccfr.trees.street_amounts import LineStart

BIG_BLIND, BUTTON = 0, 1
_MOST_BETS, _LATE_STREET = 4, 2
"""Limit hold'em: bets on a street, and the first street of large bets."""


def holdem_rules(stack: float, blinds: Sequence[float], ante: float, menu: Menu) -> BettingRules:
    """Return the rules of heads-up no-limit hold'em with given bet sizes (`menu`).

    Both players have `stack` chips and post `ante`, which counts as no bet. Then they post `blinds`: the button the
    first, smaller one. A blind larger than the remaining stack is all-in. The button acts first preflop and last on
    later streets. A raise adds at least the street's largest bet or raise, at least the big blind; an all-in may be
    smaller. Amounts are chips put in over the whole hand, antes included. If stack, blinds and ante are whole, so is
    every raise.

    Raises `ValueError` for invalid bet sizes, for a stack that leaves no decision, and if the button could neither limp
    nor raise.
    """
    small, big = (min(ante + blind, stack) for blind in blinds)
    if small >= stack:
        raise ValueError(
            f"game.stack = {stack:g} is not allowed: it must be above the ante and the small blind, "
            f"{ante + blinds[0]:g}, or both players are all-in before they act"
        )
    whole = all(float(amount).is_integer() for amount in (stack, *blinds, ante))
    rules = BettingRules(
        (big, small),
        (BUTTON, BIG_BLIND, BIG_BLIND, BIG_BLIND),
        menu_targets(menu, MenuGame(stack, blinds[1], whole_chips=whole)),
        stack=stack,
        minimum_bet=blinds[1],
        board_cards=(0, 3, 1, 1),
        put_in_before=ante,
        limp=menu.limp is True,
        **line_edits(menu, LineStart(ante, big)),
    )
    check_opening(menu, rules)
    return rules


def seat_names(seats: int) -> tuple[str, ...]:
    """Return the players' names in configurations, such as "big_blind", by player number.

    seats  number of players
    """
    return PLAYER_NAMES if seats == 2 else SEAT_NAMES[:2] + SEAT_NAMES[MOST_SEATS + 2 - seats :]


def position_names(seats: int) -> tuple[str, ...]:
    """Return the players' short names for display, such as "BB" and "BTN", by player number.

    seats  number of players
    """
    return ("BB", "BTN") if seats == 2 else ("SB", "BB", *("UTG", "HJ", "CO")[MOST_SEATS - seats :], "BTN")


def configured_rules(config: HoldemGame) -> BettingRules:
    """Return the rules of no-limit hold'em for the players and bet sizes of a `[game]` table.

    Two players have the rules of `holdem_rules`. With more, the player after the big blind acts first preflop, and the
    first player after the button on later streets. Players post antes first, then blinds.

    Raises `ValueError` for invalid bet sizes (`config.menu`), for stacks that leave no decision, and if a player could
    only fold.
    """
    seats, menu, blinds = config.seats, config.menu, list(config.blinds)
    if seats == 2:
        return holdem_rules(config.stack, blinds, config.ante, menu)
    stacks = list(config.stacks) or [config.stack] * seats
    antes = [config.ante] * seats
    antes[1] += config.big_blind_ante
    if sorted(stacks)[-2] <= antes[1] + blinds[1]:
        raise ValueError(
            f"game.{'stacks' if config.stacks else 'stack'}: two players need more than the big blind and its ante, "
            f"{antes[1] + blinds[1]:g} chips: raise the stacks"
        )
    whole = all(float(amount).is_integer() for amount in (*stacks, *blinds, *antes))
    rules = posted(
        BettingRules(
            (),
            (2, 0, 0, 0),
            lambda state: (),
            minimum_bet=blinds[1],
            board_cards=(0, 3, 1, 1),
            limp=menu.limp is True,
            limpers=(0,) if menu.limp else (),
            flop_players=config.flop_players or seats,
            chip=float(whole),
            rake=share_of(config.rake),
            rake_cap=config.rake_cap or inf,
        ),
        stacks,
        blinds + [0.0] * (seats - 2),
        antes,
    )
    names = seat_names(seats)
    game = MenuGame(
        rules.stack,
        blinds[1],
        players=names,
        whole_chips=whole,
        stacks=tuple(rules.stacks),
        dead=sum(rules.dead),
    )
    rules = replace(rules, raise_targets=menu_targets(menu, game), **line_edits(menu, rules.line_start))
    check_opening(menu, rules, names)
    return rules


def limit_holdem_rules(blinds: Sequence[float]) -> BettingRules:
    """Return the rules of heads-up limit hold'em with four bets a street.

    Bets are one big blind preflop and on the flop, two big blinds later. The big blind is the first of the four preflop
    bets. Stacks are unlimited. These are the rules of the ACPC, the Annual Computer Poker Competition. With blinds of 5
    and 10, they are those of Johanson et al. 2011, "Accelerating best response calculation in large extensive games".
    """

    def targets(state: BettingState) -> Sequence[float]:
        size = blinds[1] * (1 if state.street < _LATE_STREET else 2)
        return [state.to_call + size] if state.bets < _MOST_BETS - (state.street == 0) else []

    first = (BUTTON, BIG_BLIND, BIG_BLIND, BIG_BLIND)
    return BettingRules((blinds[1], blinds[0]), first, targets, minimum_bet=blinds[1], board_cards=(0, 3, 1, 1))


def flop_holdem_rules(
    blinds: Sequence[float],
    bet: float | Literal["pot"],
    max_raises: Sequence[int],
    board_cards: int = 3,
    *,
    limp: bool = True,
) -> BettingRules:
    """Return the rules of hold'em that ends after the flop, with one bet size.

    blinds       chips: the button's, then the big blind
    bet          size of each bet and raise: chips, or "pot" for the pot after a call
    max_raises   maximum of bets and raises on each of the two streets, blinds excluded
    board_cards  number of cards dealt on the second street
    limp         False: the button may not call the blind before the first raise

    Stacks are unlimited. Flop Hold'em of the Deep CFR papers has blinds 50 and 100, bet 100, three raises. 5-Flop
    Hold'em of the Single Deep CFR paper has pot bets, no limps, one raise preflop and two on the flop, and five
    `board_cards`.
    """

    def targets(state: BettingState) -> Sequence[float]:
        size = 2 * state.to_call if bet == "pot" else bet
        return [state.to_call + size] if state.bets < max_raises[state.street] else []

    return BettingRules(
        (blinds[1], blinds[0]),
        (BUTTON, BIG_BLIND),
        targets,
        minimum_bet=blinds[1] if bet == "pot" else bet,
        board_cards=(0, board_cards),
        limp=limp,
    )
