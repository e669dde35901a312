"""Logs of matches in the form of the ACPC dealer, one line a hand, which other programs read as well.

    STATE:hand:betting:hand|hand/flop/turn/river:chips|chips:name|name

Hands, chips and names by position, the big blind's first.  Lines with `#` say what the match is, and a last line
`SCORE:chips|chips:name|name`, by player, that it is over.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mccfr.config.games import HoldemGame
from mccfr.games.betting import amount_text
from mccfr.play.acpc import TableError, cards_text, read_cards, shown
from mccfr.play.hands import Hand, write_hands
from storage import durable

_HEAD = "# mccfr match "
_LINE = re.compile(r"STATE:([0-9]+):([cfr0-9/]*):([^:]*):(-?[0-9]+|\?)\|(-?[0-9]+|\?):([^:|]*)\|([^:|]*)")
_SYNC_SECONDS = 1.0
_UNKNOWN = "????"


class LoggedHand(NamedTuple):
    """A hand that is over.

    number   of the hand
    betting  as the protocol writes it
    holes    by position, "" where not shown
    board    cards of each street that was dealt
    chips    won, by position; None where that is not known
    names    by position
    """

    number: int
    betting: str
    holes: tuple[str, str]
    board: tuple[str, ...]
    chips: tuple[float, float] | None
    names: tuple[str, str]

    def text(self) -> str:
        """The line."""
        chips = ("?", "?") if self.chips is None else tuple(map(amount_text, self.chips))
        cards = cards_text(self.holes, self.board)
        return f"STATE:{self.number}:{self.betting}:{cards}:{'|'.join(chips)}:{'|'.join(self.names)}"

    def hand(self) -> Hand:
        """For a file of hands; cards that were not shown are question marks."""
        first, second = (hole or _UNKNOWN for hole in self.holes)
        return Hand(self.betting, (first, second), "".join(self.board), self.names)


def read_hand(line: str) -> LoggedHand:
    """The hand of a line; `TableError` where it is none."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise TableError(f"{shown(line)} is not STATE:hand:betting:cards:chips|chips:name|name")
    chips = None if "?" in (found[4], found[5]) else (float(found[4]), float(found[5]))
    return LoggedHand(int(found[1]), found[2], *read_cards(found[3]), chips, (found[6], found[7]))


class MatchLog:
    """The log of a match, which goes on where it stands.

    Every hand is with the system when `add` returns, and on the disk within a second; a line that a kill has cut off is
    taken off.
    """

    def __init__(self, path: Path, what: Mapping[str, Any]) -> None:
        """Open a log, or begin one; `what` says what the match is.

        Raises `ValueError` where another process writes it, and where it is of another match; `TableError` where it is
        damaged.
        """
        self.path, self.hands, self.score = path, list[LoggedHand](), ""
        self._file: BinaryIO = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"{path} is written by another process: give another file to --log") from None
        try:
            self._begin(what)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, what: Mapping[str, Any]) -> None:
        """Read what is there, or write the head."""
        path, head = self.path, _HEAD + json.dumps(what, sort_keys=True)
        self._synced = time.monotonic()
        self._file.truncate(durable.whole_lines_length(self._file))
        lines = path.read_bytes().decode("utf-8", "replace").splitlines()
        if not lines:
            self._write(head)
        elif lines[0] != head:
            raise ValueError(f"{path} {_difference(lines[0], what)}: give another file to --log, or remove it")
        for number, line in enumerate(lines, 1):
            if line.startswith("SCORE:"):
                self.score = line
            elif not line.startswith("#"):
                try:
                    self.hands.append(read_hand(line))
                except TableError as error:
                    raise TableError(f"{path}, line {number}: {error}") from None

    def add(self, hand: LoggedHand) -> None:
        """Write a hand."""
        self.hands.append(hand)
        self._write(hand.text())

    def close_with(self, score: str) -> None:
        """Write the last line."""
        if not self.score:
            self.score = score
            self._write(score)

    def _write(self, line: str) -> None:
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def close(self) -> None:
        """Bring all to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def _difference(line: str, what: Mapping[str, Any]) -> str:
    """How the head of a log differs from what was asked for."""
    try:
        found = json.loads(line.removeprefix(_HEAD)) if line.startswith(_HEAD) else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return "is no log of a match that was begun here"
    key = next((key for key in {**found, **what} if found.get(key) != json.loads(json.dumps(what.get(key)))), "")
    return f"is of another match: {key} is {found.get(key)!r} there and {what.get(key)!r} here"


def write_log_hands(path: Path, hands: Sequence[LoggedHand], game: HoldemGame) -> None:
    """Write hands as a `.phhs` file; raises as `phh`."""
    write_hands(path, [hand.hand() for hand in hands], game)
