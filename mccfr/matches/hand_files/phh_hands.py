"""Reads hands in the PHH format (`phh_format`): a `.phh` file, or the tables of a `.phhs` file."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingState, amount_text
from mccfr.games.full_betting import real_rules
from mccfr.games.translation import apply_action
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.hand_files.format_base import HandFormat, Lines, Stakes, begun_by, finished_hand, scale_to

_TABLE = re.compile(r"\[\d+\]\s*(#.*)?")
_KEY = re.compile(r"\w+\s*=|\[\d+\]")
_MOVE = re.compile(
    r"d dh p(?P<to>\d+) (?P<hole>\S+)|d db (?P<board>\S+)|p(?P<who>\d+) (?P<what>f|cc|cbr (?P<chips>[0-9.]{1,20})|"
    r"sm( (?P<shown>\S+))?)"
)


def pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield each table as a separate text, so that an invalid one does not affect others."""
    for number, text in begun_by(lines, lambda line: _TABLE.fullmatch(line.strip()) is not None):
        if any(line.strip() and not line.startswith("#") for line in text.split("\n")):
            yield number, text


def read(text: str, game: HoldemGame) -> LoggedHand:
    """Parse a hand of the variant NT (no-limit hold'em), in chips of `game`."""
    try:
        hand: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"no TOML: {error}") from None
    if len(hand) == 1 and isinstance(next(iter(hand.values())), dict):
        hand = next(iter(hand.values()))
    if hand.get("variant") != "NT":
        raise TableError(
            f"the variant is {quoted(str(hand.get('variant')))}: hands of no-limit hold'em, NT, are reviewed"
        )
    stacks, blinds, antes = (_numbers(hand, key) for key in ("starting_stacks", "blinds_or_straddles", "antes"))
    if len(stacks) == 2 and (len(blinds) != 2 or len(antes) != 2 or antes[0] != antes[1]):
        raise TableError("blinds and antes of two players are needed, with one ante for both")
    scale = scale_to(game, Stakes(stacks, (blinds[0], blinds[1]) if len(blinds) == 2 else (1.0, 1.0), *antes[:1]))
    actions = hand.get("actions")
    if not isinstance(actions, list) or not all(isinstance(each, str) for each in actions):
        raise TableError("actions is no list of texts")
    line, holes, board = _followed(actions, game, scale)
    names = hand.get("players", [])
    known = isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)
    number = hand.get("hand", 0)
    return finished_hand(
        game, line, holes, board, number=number if isinstance(number, int) else 0, names=names if known else ()
    )


def _numbers(hand: dict[str, Any], key: str) -> list[float]:
    found = hand.get(key)
    if not isinstance(found, list) or not found:
        raise TableError(f"{key} is missing: a list of numbers is needed")
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 1e12 for one in found):
        raise TableError(f"{key} is {quoted(str(found))}: numbers from 0 to 10^12 are needed")
    return [float(one) for one in found]


def _followed(actions: list[str], game: HoldemGame, scale: float) -> tuple[list[str], tuple[str, str], str]:
    """Return the betting, the hands by position and the board from a hand's actions."""
    rules = real_rules(game)
    state: BettingState | int = rules.start()
    line, holes, board = list[str](), ["", ""], ""
    for text in actions:
        move = _MOVE.fullmatch(text.partition("#")[0].strip())
        if move is None:
            raise TableError(f"{quoted(text)} is none of the actions of hold'em")
        who = int(move["to"] or move["who"] or 1) - 1
        if who not in (0, 1):
            raise TableError(f"{quoted(text)} is of another than two players")
        cards = move["hole"] or move["shown"] or ""
        if cards and "?" not in cards and cards != "-":
            holes[who] = cards
        if move["board"]:
            board += move["board"]
        if move["what"] and not move["what"].startswith("sm"):
            if not isinstance(state, BettingState) or state.player != who:
                raise TableError(f"{quoted(text)}: it is not the turn of p{who + 1}")
            action = {"f": "f", "cc": "c"}.get(move["what"], "")
            if not action:
                target = state.put_in_before + round(_chips(move["chips"]) * scale, 3)
                action = f"r{amount_text(target)}"
            state = apply_action(rules, state, action, quoted(text))
            line.append(action)
    return line, (holes[0], holes[1]), board


def _chips(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TableError(f"{quoted(text)} is no number of chips") from None


FORMAT = HandFormat("PHH", lambda line: _KEY.match(line) is not None, pieces, read)
