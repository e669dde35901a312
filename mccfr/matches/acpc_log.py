"""Match logs in the ACPC dealer's format, one line per hand, readable by other programs.

    STATE:hand:betting:hand|hand/flop/turn/river:chips|chips:name|name

Hole cards, chips and names are in the order of the seats in that hand (`mccfr.matches.acpc`). The first line begins
with `#` and describes the match. The last line `SCORE:chips|chips:name|name` has the totals of the players. A bot's log
lacks it and may contain several matches. The line `# another match` marks where hand numbers restart.

A log is validated line by line before it is continued.
"""

import fcntl
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.matches.acpc import BettingResult, TableError, cards_text, follow_line, quoted, read_cards, won_chips
from mccfr.matches.phh_format import Hand
from storage import durable
from storage.atomic_outputs import begins_with, check_output
from storage.damage import reading

_HEAD = "# mccfr match "
_ANOTHER, _SCORE = "# another match", "SCORE:"
_TORN = (b"STATE:", _SCORE.encode(), _ANOTHER.encode())
"""Beginnings of lines, to recognise a truncated last line."""
_CHIPS = r"(?:-?[0-9]{1,15}|\?)"
_LINE = re.compile(rf"STATE:([0-9]{{1,15}}):([cfr0-9/]*):([^:]*):({_CHIPS}(?:\|{_CHIPS})+):([^:]*)")
_UNKNOWN = "????"


class LoggedHand(NamedTuple):
    """A finished hand as a line of a match log.

    number   number of the hand in the match
    betting  all actions in the protocol's form, such as "cr200c/r400f"
    holes    hole cards by seat number, "" if not shown
    board    cards of each dealt street
    chips    net chips won by seat number, below 0 for a loss; None if unknown
    names    names of the players by seat number
    """

    number: int
    betting: str
    holes: tuple[str, ...]
    board: tuple[str, ...]
    chips: tuple[float, ...] | None
    names: tuple[str, ...]

    def text(self) -> str:
        """Return the hand as a line of the match log, `STATE:hand:betting:cards:chips:names`."""
        chips = ("?",) * len(self.names) if self.chips is None else tuple(map(amount_text, self.chips))
        cards = cards_text(self.holes, self.board)
        return f"STATE:{self.number}:{self.betting}:{cards}:{'|'.join(chips)}:{'|'.join(self.names)}"

    def hand(self) -> Hand:
        """Return the hand as a `Hand` for a hand-history file; cards not shown become question marks."""
        return Hand(self.betting, tuple(hole or _UNKNOWN for hole in self.holes), "".join(self.board), self.names)


def read_hand(line: str) -> LoggedHand:
    """Parse a line `STATE:...` of a match log to a `LoggedHand`; `TableError` if it is invalid.

    The rules are not applied: betting and chips may contradict each other.
    """
    match = _LINE.fullmatch(line)
    if match is None or len({each.count("|") for each in match.group(3, 4, 5)}) > 1:
        raise TableError(f"{quoted(line)} is not STATE:hand:betting:cards:chips|chips:name|name")
    (holes, board), names, won = read_cards(match[3]), tuple(match[5].split("|")), match[4].split("|")
    chips = None if "?" in won else tuple(map(float, won))
    return LoggedHand(int(match[1]), match[2], holes, board, chips, names)


Replay = Callable[[Sequence[LoggedHand], str], LoggedHand | None]
"""Validates the next line after some hands; returns its hand, or None for other lines; raises `ValueError`."""


def bot_replay(rules: BettingRules, names: Sequence[str]) -> Replay:
    """Return a function that validates one line of a bot's log, without knowing the server's deals.

    names  names of the players, in any order

    It checks that hand numbers ascend, that betting is legal and finished, and that chips match the shown cards. Its
    arguments are a sequence of hands, which it ignores, and the line. It returns the line's hand, or None for
    `# another match`, and raises `ValueError` (mostly a `TableError`) for an invalid line.
    """
    least = 0

    def replay(_: Sequence[LoggedHand], line: str) -> LoggedHand | None:
        nonlocal least
        if line == _ANOTHER:
            least = 0
            return None
        hand = read_hand(line)
        game = follow_line(rules, hand.betting)
        if isinstance(game.state, BettingState):
            raise TableError(f"the betting {quoted(hand.betting)} is not over")
        if hand.number < least:
            raise TableError(f"hand {hand.number} comes after hand {least - 1}: expected hand {least} or a later one")
        if hand.text() != line or sorted(hand.names) != sorted(names):
            raise TableError(f"{quoted(line)} is not as it is written here")
        if len(hand.board) < hand.betting.rstrip("/").count("/"):
            raise TableError(f"the board of {quoted(line)} is too short for its betting")
        is_known = not game.shown or len("".join(hand.board)) == 10
        won = won_chips(rules, game, hand.holes, hand.board) if is_known else None
        if hand.chips is not None and hand.chips != won and (won is not None or not _can_be_won(hand.chips, game)):
            raise TableError(f"{quoted(line)} does not say what was won")
        least = hand.number + 1
        return hand

    return replay


def _can_be_won(chips: Sequence[float], game: BettingResult) -> bool:
    """Return True if these chips can be won at a showdown at which not all hands are known.

    chips  net chips won by seat number
    game   the hand's betting
    """
    most = game.states[-1].to_call
    return sum(chips) == 0 and (chips[0] in (-most, 0.0, most) if len(chips) == 2 else min(chips) >= -most)


class MatchLog:
    """A match log that is open for appending hands; its earlier hands have been validated.

    `add` syncs each hand to disk before it returns. A line truncated by a kill is removed before the next one is
    written.

    hands  all hands in the log, in order
    score  its last line `SCORE:...`; "" if it has none yet
    """

    def __init__(self, path: Path, description: Mapping[str, Any], replay: Replay) -> None:
        """Open a log or create one.

        description  settings of the match, written in the first line
        replay       function that validates the following lines

        Raises `FileExistsError` if the file is no log. Raises `ValueError` if another process writes it or it is of
        another match. Raises `TableError` with the line number if it is damaged.
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
            raise ValueError(f"{path} is being written by another process: give another file to --log") from None
        try:
            self._begin(_HEAD + json.dumps(description, sort_keys=True), description)
        except BaseException:
            self.close()
            raise

    def _begin(self, head: str, description: Mapping[str, Any]) -> None:
        """Read and validate the file, or write the first line, `head`, if it is new.

        description  settings of the match, to say how another match differs

        Raises `ValueError` if the file is of another match, and `TableError` with the line number if it is damaged.
        """
        with reading(self.path):
            *lines, torn = self.path.read_bytes().split(b"\n")
        if not lines and head.encode().startswith(torn):
            self._write(head)
            lines, torn = [head.encode()], b""
        first = lines[0] if lines else torn
        if first != head.encode():
            difference = _difference(first.decode(errors="replace"), description)
            raise ValueError(f"{self.path} {difference}: give another file to --log, or remove it")
        for number, line in enumerate(lines[1:], 2):
            try:
                self._read(line.decode())
            except ValueError as error:
                raise TableError(f"{self.path}, line {number}: {error}: restore the log, or remove it") from None
        rest = torn.rstrip(b"\0")
        if not any(rest.startswith(word) or word.startswith(rest) for word in _TORN):
            text = f"line {len(lines) + 1}: {quoted(torn.decode(errors='replace'))} is no line of a log"
            raise TableError(f"{self.path}, {text}: restore it, or remove it")
        durable.fsync_file(self.path, self._file)  # the process that created it may have been killed before syncing
        durable.fsync_dir(self.path.parent)

    def _read(self, line: str) -> None:
        if self.score:
            raise TableError(f"{quoted(line)} comes after the score")
        hand = self._replay(self.hands, line)
        if hand is not None:
            self.hands.append(hand)
        elif line.startswith(_SCORE):
            self.score = line

    def add(self, hand: LoggedHand) -> None:
        """Append a hand to the file and to `hands`, and sync it to disk; `OSError` if that fails."""
        self.hands.append(hand)
        try:
            self._write(hand.text())
        except OSError:
            self.hands.pop()
            raise

    def mark_restart(self) -> None:
        """Append the line `# another match`, after which hand numbers restart."""
        self._write(_ANOTHER)

    def close_with(self, score: str) -> None:
        """Write `score`, a line SCORE:..., as the last line, unless the log has one already."""
        if not self.score:
            self._write(score)
            self.score = score

    def _write(self, line: str) -> None:
        with durable.naming(self.path):
            durable.append_line(self.path, line)

    def close(self) -> None:
        """Unlock and close the log; delete it if this object created it and it has no hand."""
        with self._file:
            if self._made and not self.hands and not self.score:
                self.path.unlink(missing_ok=True)


def _difference(line: str, description: Mapping[str, Any]) -> str:
    """Return how a log's first line differs from the requested match, as the end of a sentence.

    description  settings of the requested match
    """
    try:
        log = json.loads(line.removeprefix(_HEAD)) if line.startswith(_HEAD) else None
    except ValueError:
        log = None
    if not isinstance(log, dict):
        return "is no log of a match that was begun here"
    key = next(
        (key for key in {**log, **description} if log.get(key) != json.loads(json.dumps(description.get(key)))), ""
    )
    return f"is of another match: {key} is {log.get(key)!r} there and {description.get(key)!r} here"
