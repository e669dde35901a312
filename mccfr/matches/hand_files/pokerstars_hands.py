"""Writes hands in PokerStars' text format, which hand trackers import.

Hands have two players. The text shows the hole cards of one player, the hero, in each hand, and the cards that are
shown down. Chips are written as dollars.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingState, amount_text
from mccfr.games.full_betting import real_rules
from mccfr.games.holdem_betting import position_names
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import follow_actions, won_chips
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.hand_files.format_base import finished_hand
from mccfr.matches.phh_format import Hand

TABLE = "\nTable 'mccfr' 2-max"
"""Second line of written hands; it marks files of this program, which may be overwritten."""
_STREETS = ("Flop", "Turn", "River")


def hand_text(hand: Hand, game: HoldemGame, when: datetime, hero: str) -> str:
    """Return a hand of two players in PokerStars' text format.

    game  stacks and blinds of the hand
    when  date and time that the text states
    hero  name of the player whose hole cards are shown as dealt

    Raises `ValueError` if the betting is illegal or the board too short.
    """
    first, second = ("" if "?" in cards else cards for cards in hand.hole)
    checked = finished_hand(real_rules(game), actions_of(hand.line), (first, second), hand.board, names=hand.names)
    names, played = checked.names, follow_actions(real_rules(game), actions_of(hand.line))
    number = int.from_bytes(hashlib.sha256(f"{when}{checked.text()}".encode()).digest()[:5], "big")
    small, big = map(_dollars, game.blinds)
    lines = [
        f"PokerStars Hand #{number}: Hold'em No Limit ({small}/{big} USD) - {when:%Y/%m/%d %H:%M:%S} ET"
        f"{TABLE} Seat #1 is the button"
    ]
    lines += [f"Seat {2 - each}: {names[each]} ({_dollars(game.stack)} in chips)" for each in (1, 0)]
    lines += [f"{names[each]}: posts the ante {_dollars(game.ante)}" for each in (1, 0) if game.ante]
    lines += [f"{names[1]}: posts small blind {small}", f"{names[0]}: posts big blind {big}", "*** HOLE CARDS ***"]
    own = dict(zip(names, checked.holes, strict=True)).get(hero)
    lines += [f"Dealt to {hero} [{_cards(own)}]"] if own else []
    street = 0
    for state, action in zip(played.states, played.actions, strict=True):
        lines += _street_lines(checked, street, state.street)
        street = state.street
        lines.append(f"{names[state.player]}: {_action_text(state, action, game)}")
    return "\n".join([*lines, *_ending_lines(checked, game, street)]) + "\n\n\n"


def _dollars(chips: float) -> str:
    return f"${amount_text(chips) if float(chips).is_integer() else f'{chips:.2f}'}"


def _cards(text: str) -> str:
    return " ".join(text[place : place + 2] for place in range(0, len(text), 2))


def _street_lines(hand: LoggedHand, street: int, after: int) -> list[str]:
    """Return lines such as "*** FLOP *** [...]" for the streets after `street` to `after` inclusive."""
    lines = []
    for each in range(street, after):
        before = _cards("".join(hand.board[:each]))
        lines.append(f"*** {_STREETS[each].upper()} *** {f'[{before}] ' * bool(before)}[{_cards(hand.board[each])}]")
    return lines


def _action_text(state: BettingState, action: str, game: HoldemGame) -> str:
    own = state.put_in[state.player]
    if action == "f":
        return "folds"
    if action == "c":
        all_in = " and is all-in" * (state.to_call >= game.stack)
        return f"calls {_dollars(state.to_call - own)}{all_in}" if state.facing else "checks"
    target = float(action[1:])
    all_in = " and is all-in" * (target >= game.stack)
    if state.to_call == state.put_in_before:
        return f"bets {_dollars(target - state.put_in_before)}{all_in}"
    return f"raises {_dollars(target - state.to_call)} to {_dollars(target - state.put_in_before)}{all_in}"


def _ending_lines(hand: LoggedHand, game: HoldemGame, street: int) -> list[str]:
    """Return the lines after the last action: returned bets, showdown, winnings and summary.

    street  street of the last action, 0 before the flop; later boards are added before a showdown
    """
    played = follow_actions(real_rules(game), actions_of(hand.betting))
    last, names = played.states[-1], hand.names
    folds = played.actions[-1] == "f"
    put_in = [min(last.put_in)] * 2 if folds else [last.to_call] * 2
    lines, outcomes, pot = list[str](), ["", ""], sum(put_in)
    if folds:
        loser = last.player
        lines = [
            f"Uncalled bet ({_dollars(max(last.put_in) - min(last.put_in))}) returned to {names[1 - loser]}",
            f"{names[1 - loser]} collected {_dollars(pot)} from pot",
            f"{names[1 - loser]}: doesn't show hand",
        ]
        where = "before Flop" if not street else f"on the {_STREETS[street - 1]}"
        outcomes[loser], outcomes[1 - loser] = f"folded {where}", f"collected ({_dollars(pot)})"
    else:
        lines = [*_street_lines(hand, street, 3), "*** SHOW DOWN ***"]
        won = won_chips(real_rules(game), played, hand.holes, hand.board)
        for each in (0, 1):
            sign = 0.0 if won is None else won[each]
            cards = hand.holes[each]
            share = pot if sign > 0 else pot / 2 if won is not None and not sign else 0.0
            lines.append(f"{names[each]}: shows [{_cards(cards)}]" if cards else f"{names[each]}: mucks hand")
            outcomes[each] = f"showed [{_cards(cards)}]" if cards else "mucked"
            outcomes[each] += f" and won ({_dollars(share)})" if share else " and lost" * bool(cards)
            lines += [f"{names[each]} collected {_dollars(share)} from pot"] * bool(share)
    board = f"Board [{_cards(''.join(hand.board))}]"
    roles = (" (big blind)", " (button) (small blind)")
    return [
        *lines,
        "*** SUMMARY ***",
        f"Total pot {_dollars(pot)} | Rake $0",
        *([board] if hand.board else []),
        *(f"Seat {2 - each}: {names[each]}{roles[each]} {outcomes[each]}" for each in (1, 0)),
    ]


def hands_text(hands: Sequence[Hand], game: HoldemGame, began: datetime) -> str:
    """Return the hands of a match in PokerStars' text format.

    The hero, whose known hole cards are always shown, is one of the two players of the first hand: the one whose cards
    are known in more hands. If they are known in equally many, it is the one in the first hand's big blind.

    game   stacks and blinds of the hands
    began  printed time of the first hand; each next hand is one minute later
    """
    seats = [(hand.names or position_names(2), hand.hole) for hand in hands]
    known = Counter(name for names, hole in seats for name, cards in zip(names, hole, strict=True) if "?" not in cards)
    hero = max(seats[0][0], key=lambda name: known[name]) if hands else ""
    return "".join(hand_text(hand, game, began + timedelta(minutes=n), hero) for n, hand in enumerate(hands))
