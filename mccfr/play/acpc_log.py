"""Logs of matches in the form of the ACPC dealer, one line a hand, which other programs read as well.

    STATE:hand:betting:hand|hand/flop/turn/river:chips|chips:name|name

Hands, chips and names by position, the big blind's first.  The first line, with `#`, says what the match is, and a last
line `SCORE:chips|chips:name|name`, by player, that it is over.  In the log of a bot, which may be of several matches,
`# another match` stands where hands begin to be counted anew.

A log that is to go on is replayed first, line by line: what could not have been written is not gone on from.
"""

import fcntl
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.play.acpc import TableError, cards_text, played, read_cards, shown, won_chips
from mccfr.play.hands import Hand
from storage import durable
from storage.damage import reading
from storage.outputs import begins_with, check_output

_HEAD = "# mccfr match "
_ANOTHER, _SCORE = "# another match", "SCORE:"
_TORN = (b"STATE:", _SCORE.encode(), _ANOTHER.encode())
"""What lines begin with: what is left of one that was cut off is the beginning of one of these, or begins with it."""
_CHIPS = r"(-?[0-9]{1,15}|\?)"
_LINE = re.compile(rf"STATE:([0-9]{{1,15}}):([cfr0-9/]*):([^:]*):{_CHIPS}\|{_CHIPS}:([^:|]*)\|([^:|]*)")
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


Replay = Callable[[Sequence[LoggedHand], str], LoggedHand | None]
"""The hand of a line that comes after some hands, None for a line of another kind; `TableError` where it cannot."""


def bot_replay(rules: BettingRules, names: Sequence[str]) -> Replay:
    """Replays the log of a bot, which knows neither the deals nor how many hands there are.

    Numbers ascend, betting is legal and over, and chips are those that it comes to, as far as cards were shown.
    """
    least = 0

    def replay(_: Sequence[LoggedHand], line: str) -> LoggedHand | None:
        nonlocal least
        if line == _ANOTHER:
            least = 0
            return None
        hand = read_hand(line)
        game = played(rules, hand.betting)
        if isinstance(game.state, BettingState):
            raise TableError(f"the betting {shown(hand.betting)} is not over")
        if hand.number < least:
            raise TableError(f"hand {hand.number} comes after hand {least - 1}")
        if hand.text() != line or sorted(hand.names) != sorted(names):
            raise TableError(f"{shown(line)} is not as it is written here")
        if len(hand.board) < hand.betting.rstrip("/").count("/"):
            raise TableError(f"the board of {shown(line)} is too short for its betting")
        whole = game.actions[-1] == "f" or len("".join(hand.board)) == 10
        won = won_chips(game, hand.holes, hand.board) if whole else None
        if hand.chips is not None:
            most = abs(game.states[-1].to_call)
            if hand.chips[0] != -hand.chips[1] or hand.chips[0] not in ((-most, 0.0, most) if won is None else (won,)):
                raise TableError(f"{shown(line)} does not say what was won")
        least = hand.number + 1
        return hand

    return replay


class MatchLog:
    """The log of a match, which goes on where it stands.

    Every hand is on the disk when `add` returns: that takes less than a millisecond on most disks, beside some for a
    hand.  A line that a kill has cut off is taken off when the next is written.
    """

    def __init__(self, path: Path, what: Mapping[str, Any], replay: Replay) -> None:
        """Open a log, or begin one; `what` says what the match is, `replay` what its lines come to.

        Raises `FileExistsError` where something else is there, which is left alone; `ValueError` where another process
        writes it, and where it is of another match; `TableError` with the line's number where it is damaged.
        """
        self.path, self.hands, self.score = path, list[LoggedHand](), ""
        self._replay = replay
        check_output(path, begins_with(_HEAD.encode()))
        self._made = not path.exists()
        self._file = path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"{path} is written by another process: give another file to --log") from None
        try:
            self._begin(_HEAD + json.dumps(what, sort_keys=True), what)
        except BaseException:
            self.close()
            raise

    def _begin(self, head: str, what: Mapping[str, Any]) -> None:
        """Read what is there, or write the head."""
        with reading(self.path):
            *lines, torn = self.path.read_bytes().split(b"\n")
        if not lines and head.encode().startswith(torn):
            self._write(head)
            lines, torn = [head.encode()], b""
        first = lines[0] if lines else torn
        if first != head.encode():
            difference = _difference(first.decode(errors="replace"), what)
            raise ValueError(f"{self.path} {difference}: give another file to --log, or remove it")
        for number, line in enumerate(lines[1:], 2):
            try:
                self._read(line.decode())
            except ValueError as error:
                raise TableError(f"{self.path}, line {number}: {error}: restore the log, or remove it") from None
        left = torn.rstrip(b"\0")
        if not any(left.startswith(word) or word.startswith(left) for word in _TORN):
            text = f"line {len(lines) + 1}: {shown(torn.decode(errors='replace'))} is no line of a log"
            raise TableError(f"{self.path}, {text}: restore it, or remove it")
        durable.fsync_file(self.path, self._file)  # whoever has begun it may have been killed before that
        durable.fsync_dir(self.path.parent)

    def _read(self, line: str) -> None:
        if self.score:
            raise TableError(f"{shown(line)} comes after the score")
        hand = self._replay(self.hands, line)
        if hand is not None:
            self.hands.append(hand)
        elif line.startswith(_SCORE):
            self.score = line

    def add(self, hand: LoggedHand) -> None:
        """Write a hand."""
        self.hands.append(hand)
        try:
            self._write(hand.text())
        except OSError:
            self.hands.pop()
            raise

    def begin_anew(self) -> None:
        """Say that hands are counted anew from here on."""
        self._write(_ANOTHER)

    def close_with(self, score: str) -> None:
        """Write the last line."""
        if not self.score:
            self._write(score)
            self.score = score

    def _write(self, line: str) -> None:
        with durable.naming(self.path):
            durable.append_line(self.path, line)

    def close(self) -> None:
        """Let others have it; a log that was begun here and has no hand is removed."""
        with self._file:
            if self._made and not self.hands and not self.score:
                self.path.unlink(missing_ok=True)


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
