"""Reads files with one hand per line: logs of ACPC dealers, and responses of Slumbot's server.

ACPC is the Annual Computer Poker Competition, with a log format of its own (`mccfr.matches.acpc_log`). Slumbot is a
program that plays at a public server (`mccfr.matches.slumbot`).
"""

import json
from collections.abc import Sequence
from typing import Any

from mccfr.config.game_tables import HoldemGame
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.acpc_log import read_hand
from mccfr.matches.hand_files.format_base import (
    CheckedHand,
    HandFormat,
    each_line,
    finished_hand,
    no_policy,
    stakes_of,
)
from mccfr.matches.json_server_hand import GAME, card_list, read_betting

_NAMES = "slumbot", "client"


def read_acpc(line: str, games: Sequence[HoldemGame]) -> CheckedHand:
    """Parse a line of an ACPC dealer's log to a `CheckedHand`; such dealers take no rake.

    games  games; the first with as many players gives the stacks and blinds, which the log lacks

    Raises `ValueError` if the hand is invalid, or no game has as many players.
    """
    hand = read_hand(line)
    game = next((game for game in games if game.seats == len(hand.names)), None)
    if game is None:
        raise TableError(no_policy(len(hand.names)))
    stakes, actions, board = stakes_of(game), actions_of(hand.betting), "".join(hand.board)
    found = finished_hand(
        stakes.rules, actions, hand.holes, board, number=hand.number, names=hand.names, won=hand.chips
    )
    return CheckedHand(found, stakes)


ACPC = HandFormat(
    "ACPC logs", lambda line: line.startswith("STATE:"), lambda lines: each_line(lines, ("#", ";", "SCORE:")), read_acpc
)


def read_slumbot(line: str, games: Sequence[HoldemGame]) -> CheckedHand:
    """Parse a response of Slumbot's server, a JSON object, to a `CheckedHand`.

    The stacks are 20,000 and the blinds 50/100, so `games` is ignored. Raises `TableError` if the hand is invalid.
    """
    del games
    try:
        answer = json.loads(line)
    except ValueError:
        raise TableError(f"{quoted(line)} is no JSON object of a hand") from None
    if not isinstance(answer, dict):
        raise TableError(f"{quoted(line)} is no JSON object of a hand")
    position, won = answer.get("client_pos"), answer.get("winnings")
    if position not in (0, 1) or isinstance(position, bool):
        raise TableError(f"client_pos is {quoted(repr(position))}, neither 0 nor 1")
    if won is None or isinstance(won, bool) or not isinstance(won, int | float):
        raise TableError("the hand is not over: winnings are missing")
    own, other = _hole(answer, "hole_cards"), _hole(answer, "bot_hole_cards")
    board = "".join(card_list(answer.get("board", []), (0, 3, 4, 5), "board"))
    stakes = stakes_of(GAME)
    actions = read_betting(stakes.rules, answer.get("action"), "the hand").actions
    first = float(won) * (1 - 2 * position)
    holes, names = ((own, other), _NAMES[::-1]) if position == 0 else ((other, own), _NAMES)
    return CheckedHand(finished_hand(stakes.rules, actions, holes, board, names=names, won=(first, -first)), stakes)


def _hole(answer: dict[str, Any], key: str) -> str:
    return "".join(card_list(answer[key], (2,), key)) if answer.get(key) else ""


SLUMBOT = HandFormat("Slumbot's JSON", lambda line: line.lstrip().startswith("{"), each_line, read_slumbot)
