"""The ACPC dealer protocol 2.0.0 for no-limit hold'em of two to six players: reads and writes lines.

ACPC is the Annual Computer Poker Competition.

The server sends `MATCHSTATE:position:hand:betting:cards` after every action and at the end of a hand. The player to act
answers with the same line, a colon and the action.

* Betting is a line of actions: `c` (check or call), `f`, and `rN`, a bet or raise to N chips over the whole hand. A `/`
  separates streets. A call that leaves nothing to bet is followed by `/` for each street left (`cr20000c///`).
* A position is the number of a seat in this hand. With two players 0 is the big blind, 1 the button. With more, 0 is
  the small blind, 1 the big blind.
* Cards are all hands separated by `|`, empty if not shown, then each street's board after `/`. A showdown shows the
  hands of all who have not folded.
* Lines that begin with `#` or `;` are comments.
* A line has at most 4,096 bytes and ends with CR LF. The end of the stream ends the match.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from abstraction.cards import parse_cards
from abstraction.hand_evaluator import strength
from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import MOST_SEATS, BettingRules, BettingState, after_last, amount_text, payoffs
from mccfr.games.full_betting import real_rules
from mccfr.games.translation import actions_of, apply_action

VERSION = "VERSION:2.0.0"
MOST_BYTES = 4096
MOST_ACTIONS = 63
"""Most actions on a street; other dealers have no room for more."""
_SHOWN = 80
_STATE = re.compile(rf"MATCHSTATE:([0-{MOST_SEATS - 1}]):([0-9]{{1,10}}):((?:c|f|r[0-9]{{1,15}}|/)*):([^:]*)")
_CARD = "[2-9TJQKA][cdhs]"
_HOLE = f"(?:{_CARD}{_CARD})?"
_CARDS = re.compile(rf"({_HOLE}(?:\|{_HOLE}){{1,{MOST_SEATS - 1}}})((?:/{_CARD}{_CARD}{_CARD})?(?:/{_CARD}){{0,2}})")


class TableError(ValueError):
    """Raised when a server, client or file breaks the protocol of a match or the game's rules."""


class MatchState(NamedTuple):
    """A parsed MATCHSTATE line, with which the server tells a player the state of a hand.

    position  seat number in this hand of the player to whom the line is sent
    hand      number of the hand in the match
    betting   all actions so far, such as "cr200c/r400"
    holes     hole cards by seat number, "" if not shown
    board     cards of each dealt street, from the flop on
    """

    position: int
    hand: int
    betting: str
    holes: tuple[str, ...]
    board: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the state as a MATCHSTATE line."""
        return f"MATCHSTATE:{self.position}:{self.hand}:{self.betting}:{cards_text(self.holes, self.board)}"


class BettingResult(NamedTuple):
    """The betting of a hand, replayed from its actions by the rules.

    text     the actions in the protocol's form, with `/` between streets
    states   betting state before each action
    actions  actions of the hand in order, such as "c" and "r300"
    state    betting state after the last action; an `int` (-1) if the betting is over
    left     seat numbers of the players who have not folded
    """

    text: str
    states: tuple[BettingState, ...]
    actions: tuple[str, ...]
    state: BettingState | int
    left: Sequence[int]

    @property
    def shown(self) -> Sequence[int]:
        """Seat numbers of the players in the showdown; () before the betting ends, or if all but one folded."""
        return self.left if isinstance(self.state, int) and len(self.left) > 1 else ()


def cards_text(holes: Sequence[str], board: Sequence[str]) -> str:
    """Return hole cards and board as the protocol writes them, such as AsKd|QhQc/2c3d4h/5s."""
    return "/".join(["|".join(holes), *board])


def read_cards(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse AsKd|QhQc/2c3d4h/5s to (hole cards by seat, board cards by street), as texts.

    Hole cards are "" if not shown. The first text of the board is the flop.

    Raises `TableError` for invalid or repeated cards.
    """
    match = _CARDS.fullmatch(text)
    if match is None or "//" in text:
        raise TableError(f"the cards {quoted(text)} are not written hand|hand/flop/turn/river")
    board = tuple(match[2].split("/")[1:])
    if board and len(board[0]) != 6:
        raise TableError(f"the cards {quoted(text)} have a board that does not begin with a flop of three")
    all_cards = re.findall(_CARD, text)
    if len(set(all_cards)) != len(all_cards):
        raise TableError(f"the cards {quoted(text)} hold a card twice")
    return tuple(match[1].split("|")), board


def read_state(line: str) -> MatchState:
    """Parse a MATCHSTATE line to a `MatchState`; `TableError` if it is invalid."""
    match = _STATE.fullmatch(line)
    if match is None:
        raise TableError(f"{quoted(line)} is not MATCHSTATE:position:hand:betting:cards of version 2.0.0")
    return MatchState(int(match[1]), int(match[2]), match[3], *read_cards(match[4]))


def follow_line(rules: BettingRules, betting: str) -> BettingResult:
    """Replay a betting line to a `BettingResult`.

    rules    the hand's betting rules
    betting  all actions, such as "cr200c/r400"; `rN` is a raise to N chips over the whole hand

    Raises `TableError` for an illegal action or wrong `/`, and `ValueError` for text that is no line of actions.
    """
    result = follow_actions(rules, actions_of(betting))
    if result.text != betting:
        text = quoted(result.text)
        raise TableError(f"the betting {quoted(betting)} should be {text}: streets end elsewhere, or stacks differ")
    return result


def follow_actions(rules: BettingRules, actions: Sequence[str]) -> BettingResult:
    """Replay a hand's actions ("c", "f", "rN") to a `BettingResult`; `TableError` for an illegal one."""
    state: BettingState | int = rules.start()
    states, text, left = list[BettingState](), "", list(range(len(rules.put_in)))
    for action in actions:
        if isinstance(state, int):
            raise TableError(f"the betting goes on with {action!r} after its end, {quoted(text)}")
        states.append(state)
        if action == "f":
            left.remove(state.player)
        try:
            state = apply_action(rules, state, action)
        except ValueError as error:
            raise TableError(f"after the betting {quoted(text)}: {error}") from None
        if isinstance(state, int):
            text += action + "/" * (rules.streets - 1 - states[-1].street if len(left) > 1 else 0)
        else:
            text += action + "/" * (state.street != states[-1].street)
    return BettingResult(text, tuple(states), tuple(actions), state, left)


def won_chips(
    rules: BettingRules, game: BettingResult, holes: Sequence[str], board: Sequence[str]
) -> tuple[float, ...] | None:
    """Return each seat's net chips (loss below 0); None if a hand at the showdown is unknown.

    rules  the hand's betting rules; their rake is taken
    game   the finished hand's betting
    holes  hole cards by seat number, "" if unknown
    board  cards of each dealt street
    """
    if not all(holes[position] for position in game.shown):
        return None
    ranks, full = [0] * len(holes), parse_cards("".join(board))
    for position in game.shown:
        ranks[position] = strength((*parse_cards(holes[position]), *full))
    return tuple(payoffs(rules, after_last(rules, game.states[-1], game.actions[-1]), ranks))


def quoted(text: str) -> str:
    """Return another program's text for an error message: shortened, quoted, escaped to ASCII."""
    return ascii(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def decode_line(data: bytes) -> str | None:
    """Return a received line as text without its line break; None for an empty line or a comment.

    Raises `TableError` for a line of more than 4,096 bytes, or one that is not printable ASCII.
    """
    if len(data) > MOST_BYTES:
        raise TableError(f"a line of {len(data):,} bytes: the protocol has {MOST_BYTES:,} at most")
    line = data.rstrip(b"\r\n")
    if not line or line[:1] in (b"#", b";"):
        return None
    if not line.isascii() or not line.decode("ascii").isprintable():
        raise TableError(f"a line that is no plain text: {quoted(line.decode('latin-1'))}")
    return line.decode("ascii")


def acpc_rules(game: HoldemGame, player_name: str) -> BettingRules:
    """Return a game's betting rules for an ACPC match, which has no rake.

    player_name  player to name in the error

    Raises `ValueError` for a game with `stacks` by seat, antes or fractions of chips, which ACPC lacks.
    """
    amounts = game.stack, *game.blinds
    if game.stacks:
        raise ValueError(f"{player_name}: ACPC has equal stacks, unlike game.stacks = {list(game.stacks)}")
    if game.ante or game.big_blind_ante or not all(float(amount).is_integer() for amount in amounts):
        raise ValueError(f"{player_name}: ACPC has no antes and no fractions of chips, unlike {game_text(game)}")
    return replace(real_rules(game), rake=0)  # servers take none


def game_text(game: HoldemGame) -> str:
    """Return a game's stacks, blinds and antes as text for messages."""
    small, big = map(amount_text, game.blinds)
    ante = f" and antes of {amount_text(game.ante)}" if game.ante else ""
    ante += f" and an ante of the big blind of {amount_text(game.big_blind_ante)}" if game.big_blind_ante else ""
    players = f"{game.seats} players, " if game.seats > 2 else ""
    return f"{players}stacks of {amount_text(game.stack)}, blinds {small}/{big}{ante}"
