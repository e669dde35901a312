"""Reads ACPC dealer logs (`mccfr.matches.acpc_log`), of this program, of competitions and of Slumbot."""

import re

from mccfr.config.game_tables import HoldemGame
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import TableError
from mccfr.matches.acpc_log import LoggedHand, read_hand
from mccfr.matches.hand_files.format_base import HandFormat, each_line, finished_hand

_STATE = re.compile(r"STATE:[^:]*:[^:]*:[^:]*:[^:]*:([^:]*)")


def read(line: str, game: HoldemGame) -> LoggedHand:
    """Parse a hand of two players; the format lacks stacks and blinds, so those of `game` are assumed."""
    players = _STATE.fullmatch(line)
    if players is not None and players[1].count("|") > 1:
        raise TableError(f"a hand of {players[1].count('|') + 1} players: hands of two are reviewed")
    hand = read_hand(line)
    won = None if hand.chips is None else hand.chips[0]
    actions = actions_of(hand.betting)
    return finished_hand(game, actions, hand.holes, "".join(hand.board), number=hand.number, names=hand.names, won=won)


FORMAT = HandFormat(
    "ACPC logs", lambda line: line.startswith("STATE:"), lambda lines: each_line(lines, ("#", ";", "SCORE:")), read
)
