"""Reads hands in the PHH format (`phh_format`): a `.phh` file, or the tables of a `.phhs` file."""

import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from mccfr.config.game_tables import HoldemGame
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.hand_files.format_base import (
    MOST,
    ROLES,
    CheckedHand,
    HandFormat,
    HandRecord,
    Lines,
    Posted,
    Result,
    begun_by,
    checked_hand,
)

_TABLE = re.compile(r"\[\d+\]\s*(#.*)?")
_KEY = re.compile(r"\w+\s*=|\[\d+\]")
_MOVE = re.compile(
    r"d dh p(?P<to>\d+) (?P<hole>\S+)|d db (?P<board>\S+)|p(?P<who>\d+) (?P<what>f|cc|cbr (?P<chips>[0-9.]{1,20})|"
    r"sm( (?P<shown>\S+))?)"
)
_PAIR = 2


def pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield each table as a separate text, so that an invalid one does not affect others."""
    for number, text in begun_by(lines, lambda line: _TABLE.fullmatch(line.strip()) is not None):
        if any(line.strip() and not line.startswith("#") for line in text.split("\n")):
            yield number, text


def read(text: str, game: HoldemGame) -> CheckedHand:
    """Parse a hand of two players of the variant NT (no-limit hold'em).

    The format lists the small blind first and p1 posts the big one. A first blind above the second is a straddle.
    """
    del game
    try:
        hand: Any = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"no TOML: {error}") from None
    if len(hand) == 1 and isinstance(next(iter(hand.values())), dict):
        hand = next(iter(hand.values()))
    if hand.get("variant") != "NT":
        raise TableError(
            f"the variant is {quoted(str(hand.get('variant')))}: hands of no-limit hold'em, NT, are reviewed"
        )
    stacks, blinds, antes = (_numbers(hand, key) for key in ("starting_stacks", "blinds_or_straddles", "antes"))
    if len(stacks) != _PAIR:
        raise TableError(f"a hand of {len(stacks)} players: hands of two are reviewed")
    if len(blinds) != _PAIR or len(antes) != _PAIR:
        raise TableError("blinds and antes of two players are needed")
    small, big = blinds
    moves, holes, board = _moves(hand.get("actions"))
    names, number = hand.get("players", []), hand.get("hand", 0)
    won = _numbers(hand, "winnings") if "winnings" in hand else []
    has_names = isinstance(names, list) and len(names) == _PAIR and all(isinstance(name, str) for name in names)
    checked = checked_hand(
        HandRecord(
            (names[0], names[1]) if has_names else ROLES,
            Posted(
                (stacks[0], stacks[1]),
                (min(small, big), big),
                (antes[0], antes[1]),
                small if small > big else Decimal(0),
            ),
            moves,
            holes,
            board,
            number if isinstance(number, int) else 0,
            str(hand.get("currency_symbol", "")),
            "tournament" in hand or "event" in hand,
            Result(collected=(won[0], won[1]) if len(won) == _PAIR and any(won) else None),
        )
    )
    _check_stacks(hand, stacks, checked)
    return checked


def _numbers(hand: dict[str, Any], key: str) -> list[Decimal]:
    values = hand.get(key)
    if not isinstance(values, list) or not values:
        raise TableError(f"{key} is missing: a list of numbers is needed")
    are_numbers = all(isinstance(value, int | Decimal) and not isinstance(value, bool) for value in values)
    numbers = [Decimal(value) for value in values] if are_numbers else []
    if not are_numbers or not all(value.is_finite() and 0 <= value <= MOST for value in numbers):
        raise TableError(f"{key} is {quoted(str(values))}: numbers from 0 to 10^12 are needed")
    return numbers


def _moves(actions: Any) -> tuple[list[tuple[int, str, Decimal]], tuple[str, str], str]:
    """Return the moves of a `HandRecord`, the hands by position and the board from a hand's actions."""
    if not isinstance(actions, list) or not all(isinstance(each, str) for each in actions):
        raise TableError("actions is no list of texts")
    moves, holes, board = list[tuple[int, str, Decimal]](), ["", ""], ""
    for text in actions:
        move = _MOVE.fullmatch(text.partition("#")[0].strip())
        if move is None:
            raise TableError(f"{quoted(text)} is not an action of hold'em in PHH")
        who = int(move["to"] or move["who"] or 1) - 1
        if who not in (0, 1):
            raise TableError(f"{quoted(text)} is of another than two players")
        cards = move["hole"] or move["shown"] or ""
        if cards and "?" not in cards and cards != "-":
            holes[who] = cards
        if move["board"]:
            board += move["board"]
        if move["chips"]:
            moves.append((who, "to", _chips(move["chips"])))
        elif move["what"] in ("f", "cc"):
            moves.append((who, move["what"][0], Decimal(0)))
    return moves, (holes[0], holes[1]), board


def _chips(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise TableError(f"{quoted(text)} is no number of chips") from None


def _check_stacks(hand: dict[str, Any], stacks: list[Decimal], found: CheckedHand) -> None:
    """Raise `TableError` if the loser's final stack, from which no rake is taken, differs from the rules'."""
    if "finishing_stacks" not in hand or found.hand.chips is None:
        return
    after, stakes = _numbers(hand, "finishing_stacks"), found.stakes
    won = [(sign * (found.hand.chips[0] + stakes.offset)) / stakes.unit for sign in (1, -1)]
    for position, (before, left) in enumerate(zip(stacks, after, strict=False)):
        lost = float(before - left)
        if won[position] < 0 and abs(lost + won[position]) > 1e-6:
            raise TableError(f"p{position + 1} loses {lost:g} in the file, and {-won[position]:g} by the rules")


FORMAT = HandFormat("PHH", lambda line: _KEY.match(line) is not None, pieces, read)
