"""Writes hand files: PHH, or PokerStars' text format if the name ends with `.stars.txt`."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import tomli_w

from mccfr.config.games import HoldemGame
from mccfr.play.hand_files.pokerstars import TABLE, hands_text
from mccfr.play.hands import Hand, phh
from storage import durable
from storage.outputs import begins_with, contains, output

PHHS, STARS = ".phhs", ".stars.txt"
_HEAD = b"# mccfr hands\n"


def is_hands(path: Path) -> bool:
    """Return whether a file is a hand file of this program, which may be overwritten."""
    return begins_with(_HEAD)(path) or contains(TABLE.encode(), 256)(path)


def write_hands(path: Path, hands: Sequence[Hand], game: HoldemGame) -> None:
    """Write hands to a file atomically, as numbered `.phhs` tables or PokerStars' text.

    Raises as `phh` and `hands_text`, and `FileExistsError` if the path holds anything but an earlier hand file.
    """
    if path.name.endswith(STARS):
        parts = [hands_text(hands, game, datetime.now()).encode()]
    else:
        parts = [_HEAD, tomli_w.dumps({str(number): phh(hand, game) for number, hand in enumerate(hands, 1)}).encode()]
    with output(path, is_hands) as temporary:
        durable.write_file(temporary, parts)
