"""Hand histories in the PHH format, which PokerKit and other programs read and write.

The format: Kim 2024, "Recording and describing poker hands". Of two players p1 is the big blind and p2 the button. Of
more, p1 is the small blind, p2 the big blind and so on. `cbr` amounts are the player's chips on the street.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mccfr.common.arguments import check_fields
from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingState
from mccfr.games.full_betting import real_rules
from mccfr.games.translation import actions_of, apply_action

_STREET_CARDS = (0, 3, 4, 5)


@dataclass(frozen=True)
class Hand:
    """A finished hand of no-limit hold'em.

    line   the betting, such as "r300c/cr500f": `rN` has N chips put in over the whole hand, `/` separates streets
    hole   each player's hole cards; "????" if unknown. Of two players the big blind comes first, of more the small
           blind
    board  all dealt board cards, such as "Qs7h2d3c"
    names  names of the players in the same order, or ()
    """

    line: str
    hole: tuple[str, ...]
    board: str = ""
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_fields(self, Hand)


def phh(hand: Hand, game: HoldemGame) -> dict[str, Any]:
    """Return a hand as {key: value} of a PHH table.

    game  stacks, blinds and antes of the hand

    Raises `ValueError` for an illegal line or too short a board.
    """
    rules, left = real_rules(game), list(range(game.seats))
    actions = [f"d dh p{position + 1} {cards}" for position, cards in enumerate(hand.hole)]
    state: BettingState | int = rules.start()
    dealt = 0

    def deal(street: int) -> None:
        nonlocal dealt
        cards = hand.board[2 * dealt : 2 * _STREET_CARDS[street]]
        if len(hand.board) < 2 * _STREET_CARDS[street]:
            raise ValueError(f"line {hand.line!r} needs a board of {_STREET_CARDS[street]} cards, not {hand.board!r}")
        actions.append(f"d db {cards}")
        dealt = _STREET_CARDS[street]

    for action in actions_of(hand.line):
        if not isinstance(state, BettingState):
            raise ValueError(f"line {hand.line!r}: the betting is over before its end")
        who, street = f"p{state.player + 1}", state.street
        if action[0] == "r":
            amount = float(action[1:]) - state.put_in_before
            actions.append(f"{who} cbr {int(amount) if amount == int(amount) else amount}")
        else:
            actions.append(f"{who} {'f' if action == 'f' else 'cc'}")
        if action == "f":
            left.remove(state.player)
        state = apply_action(rules, state, action, f"line {hand.line!r}")
        if isinstance(state, BettingState) and state.street != street:
            deal(state.street)
        elif not isinstance(state, BettingState) and len(left) > 1:  # hands are shown before the rest of the board
            actions.extend(f"p{each + 1} sm {hand.hole[each]}" for each in left)
            for later in range(street + 1, len(_STREET_CARDS)):
                deal(later)
    named = {"players": list(hand.names)} if hand.names else {}
    antes = [game.ante] * game.seats
    antes[1] += game.big_blind_ante
    return {
        "variant": "NT",
        "ante_trimming_status": True,
        "antes": antes,
        "blinds_or_straddles": [*game.blinds, *[0.0] * (game.seats - 2)],
        "min_bet": game.blinds[1],
        "starting_stacks": list(game.stacks) or [game.stack] * game.seats,
        "actions": actions,
        **named,
    }
