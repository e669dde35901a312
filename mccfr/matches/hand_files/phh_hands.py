"""Reads hands in the PHH format (poker hand history): a `.phh` file, or a `.phhs` file's tables.

The format is described in `mccfr.matches.phh_format`; it is TOML.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import MOST_SEATS
from mccfr.games.holdem_betting import position_names
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.hand_files.format_base import (
    MOST,
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


def pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) of each TOML table; an invalid one does not affect others."""
    for number, text in begun_by(lines, lambda line: _TABLE.fullmatch(line.strip()) is not None):
        if any(line.strip() and not line.startswith("#") for line in text.split("\n")):
            yield number, text


def read(text: str, games: Sequence[HoldemGame]) -> CheckedHand:
    """Parse a PHH hand of the variant NT (no-limit hold'em) to a `CheckedHand`.

    The key `blinds_or_straddles` has one entry for each player. Of two players the small blind comes first, although
    p1 is the big blind: the first entry is p2's, the second p1's. A first entry above the second is a straddle of p2,
    the button. Of more players p1, the small blind, comes first, then p2, and so on. The second entry may not be below
    the first; entries after it are straddles. `games` is ignored, because the text states stacks and blinds.

    Raises `ValueError` if the hand is invalid.
    """
    del games
    try:
        hand: Any = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"the hand is not valid TOML, the format of .phh files: {error}") from None
    if len(hand) == 1 and isinstance(next(iter(hand.values())), dict):
        hand = next(iter(hand.values()))
    if hand.get("variant") != "NT":
        raise TableError(
            f"the variant is {quoted(str(hand.get('variant')))}: hands of no-limit hold'em, NT, are reviewed"
        )
    stacks, blinds, antes = (_numbers(hand, key) for key in ("starting_stacks", "blinds_or_straddles", "antes"))
    players = len(stacks)
    if not 2 <= players <= MOST_SEATS:
        raise TableError(f"a hand of {players} players: the rules know two to {MOST_SEATS}")
    if len(blinds) != players or len(antes) != players:
        raise TableError(f"blinds and antes of {players} players are needed")
    small, big = blinds[:2]
    if players > 2 and small > big:
        raise TableError(
            f"blinds_or_straddles begins with {small}, {big}: the small blind comes first, the big blind next"
        )
    live = [Decimal(0), small if small > big else Decimal(0), *blinds[2:]]
    moves, holes, board = _moves(hand.get("actions"), players)
    names, number = hand.get("players", []), hand.get("hand", 0)
    won = _numbers(hand, "winnings") if "winnings" in hand else []
    has_names = isinstance(names, list) and len(names) == players and all(isinstance(name, str) for name in names)
    checked = checked_hand(
        HandRecord(
            tuple(names) if has_names else position_names(players),
            Posted(stacks, (min(small, big), big), antes, live),
            moves,
            holes,
            board,
            number if isinstance(number, int) else 0,
            str(hand.get("currency_symbol", "")),
            "tournament" in hand or "event" in hand,
            Result(collected=won if len(won) == players and any(won) else None),
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


def _moves(actions: Any, players: int) -> tuple[list[tuple[int, str, Decimal]], tuple[str, ...], str]:
    """Return (players' actions, hole cards by seat, board) from a PHH hand's list of actions.

    Players' actions are (seat number, kind, amount), as in `HandRecord.moves`: "f", "c", or "to" an amount on the
    street.

    actions  value of the hand's key `actions`
    players  number of players

    Raises `TableError` if this is no list of actions of hold'em.
    """
    if not isinstance(actions, list) or not all(isinstance(each, str) for each in actions):
        raise TableError("actions is no list of texts")
    moves, holes, board = list[tuple[int, str, Decimal]](), [""] * players, ""
    for text in actions:
        move = _MOVE.fullmatch(text.partition("#")[0].strip())
        if move is None:
            raise TableError(f"{quoted(text)} is not an action of hold'em in PHH")
        who = int(move["to"] or move["who"] or 1) - 1
        if not 0 <= who < players:
            raise TableError(f"{quoted(text)} is of another than {players} players")
        cards = move["hole"] or move["shown"] or ""
        if cards and "?" not in cards and cards != "-":
            holes[who] = cards
        if move["board"]:
            board += move["board"]
        if move["chips"]:
            moves.append((who, "to", _chips(move["chips"])))
        elif move["what"] in ("f", "cc"):
            moves.append((who, move["what"][0], Decimal(0)))
    return moves, tuple(holes), board


def _chips(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise TableError(f"{quoted(text)} is no number of chips") from None


def _check_stacks(hand: dict[str, Any], stacks: list[Decimal], found: CheckedHand) -> None:
    """Raise `TableError` if a loser's final stack in the file contradicts betting and cards.

    stacks  stacks before the hand
    found   the hand, with the chips that each player won by the rules

    Losers pay no rake, so their stacks are exact.
    """
    if "finishing_stacks" not in hand or found.hand.chips is None:
        return
    after, stakes = _numbers(hand, "finishing_stacks"), found.stakes
    offsets = (stakes.offset, -stakes.offset, *[0.0] * len(stacks))
    won = [(chips + extra) / stakes.unit for chips, extra in zip(found.hand.chips, offsets, strict=False)]
    for position, (before, left) in enumerate(zip(stacks, after, strict=False)):
        lost = float(before - left)
        if won[position] < 0 and abs(lost + won[position]) > 1e-6:
            raise TableError(f"p{position + 1} loses {lost:g} in the file, and {-won[position]:g} by the rules")


FORMAT = HandFormat("PHH", lambda line: _KEY.match(line) is not None, pieces, read)
