"""Files of hands as they are written: PHH, or PokerStars' text under a name that ends with `.stars.txt`."""

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
    """Whether a file is one of hands that was written here, which may be replaced."""
    return begins_with(_HEAD)(path) or contains(TABLE.encode(), 256)(path)


def write_hands(path: Path, hands: Sequence[Hand], game: HoldemGame) -> None:
    """Write hands in the place of an earlier file of them, in one step: as a `.phhs` file, numbered from 1, or as text.

    Raises as `phh` and `hands_text`, and `FileExistsError` where something else than an earlier file of hands is there.
    """
    if path.name.endswith(STARS):
        parts = [hands_text(hands, game, datetime.now()).encode()]
    else:
        parts = [_HEAD, tomli_w.dumps({str(number): phh(hand, game) for number, hand in enumerate(hands, 1)}).encode()]
    with output(path, is_hands) as temporary:
        durable.write_file(temporary, parts)
