"""Reads hands from files in any supported format; unreadable hands are reported and skipped.

A format is a `HandFormat` that a module here defines and `FORMATS` lists. The first line that is no comment determines
a file's format.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mccfr.config.game_tables import HoldemGame
from mccfr.matches.acpc import quoted
from mccfr.matches.hand_files import line_hands, phh_hands, site_texts
from mccfr.matches.hand_files.format_base import CheckedHand, HandFormat
from storage.damage import reading, walk

FORMATS: tuple[HandFormat, ...] = (line_hands.ACPC, line_hands.SLUMBOT, site_texts.FORMAT, phh_hands.FORMAT)
MOST_LINE_BYTES = 1 << 16
MOST_PIECE_BYTES = 1 << 18
"""Most characters of one hand; published hands have some hundred."""
_COMMENTS = ("#", ";")
_XML = (
    "is XML, as iPoker's sites write it, which is not read: let a tracker export the hands as text in one of the forms"
)
_HAND_NUMBER = re.compile(r"#[A-Z]{0,4}(\d+)|Hand History for Game (\d+)|^\[(\d+)\]|^STATE:(\d+)")


class FoundHand(NamedTuple):
    """A hand of a file, or the reason why it could not be read.

    where  file, line and number of the hand as far as known, such as "match.log, line 17"
    hand   a no-limit hold'em hand of two to six players with its stacks and blinds, or None
    why    the reason if there is no hand
    """

    where: str
    hand: CheckedHand | None
    why: str = ""


@reading()
def hand_files(path: Path) -> list[Path]:
    """Return [`path`] if it is a file, or a sorted list of all files below it if it is a directory.

    Files whose names begin with a dot are left out of a directory. Raises `UnreadableError` if the system cannot list
    a directory, and `FileNotFoundError` if there is no file.
    """
    candidates = [path]
    if path.is_dir():
        below = (Path(folder, name) for folder, _, names in walk(path) for name in names)
        candidates = sorted(each for each in below if not each.name.startswith("."))
    files = [each for each in candidates if each.is_file()]
    if not files:
        raise FileNotFoundError(f"{path}: there is no file of hands: give a file, or a directory with such files")
    return files


def read_hands(path: Path, *games: HoldemGame) -> Iterator[FoundHand]:
    """Yield the hands of a file in order, as `FoundHand`: a hand, or why it is unreadable.

    games  games for logs that state no stacks and blinds: those of the first one with as many players are assumed

    A hand with more than six players counts as unreadable. A file of unknown format yields one unreadable hand. Raises
    `OSError` if the file cannot be opened.
    """
    lines = _lines(path)
    file_format, first = None, ""
    for _, line in _lines(path):
        if line.strip() and not line.startswith(_COMMENTS):
            first = line
            file_format = next((each for each in FORMATS if each.begins(line)), None)
            break
    if file_format is None:
        names = ", ".join(each.name for each in FORMATS)
        why = _XML if first.lstrip().startswith("<") else "begins none of the forms that are read"
        yield FoundHand(str(path), None, f"{quoted(first)} {why}: {names}")
        return
    for number, piece in file_format.pieces(lines):
        match = _HAND_NUMBER.search(piece[:200])
        where = f"{path}, line {number}" + ("" if match is None else f", hand {next(filter(None, match.groups()))}")
        try:
            if len(piece) > MOST_PIECE_BYTES:
                raise ValueError(f"its text has more than {MOST_PIECE_BYTES:,} characters, so it is not a hand")
            yield FoundHand(where, file_format.read(piece, games))
        except (ValueError, RecursionError) as error:
            text = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            yield FoundHand(where, None, " ".join(text.split()))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its end) of a text file in UTF-8 or UTF-16.

    Invalid characters are replaced. Lines are cut after 65,536 characters. Raises `OSError` if the file cannot be read.
    """
    with reading(path), path.open("rb") as file:
        start = file.read(4)
    with reading(path), path.open(encoding=_encoding(start), errors="replace") as text:
        number = 0
        while line := text.readline(MOST_LINE_BYTES):
            number += 1
            while not line.endswith("\n") and (more := text.readline(MOST_LINE_BYTES)):
                if more.endswith("\n"):
                    break
            yield number, line.rstrip("\r\n").lstrip("\ufeff")


def _encoding(start: bytes) -> str:
    """Return a text file's encoding: UTF-16 by byte order mark or zero bytes, otherwise UTF-8.

    start  first four bytes of the file
    """
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = [place % 2 for place, byte in enumerate(start) if byte == 0]
    return ("utf-16-be", "utf-16-le")[zeros[0]] if len(zeros) == len(start) // 2 > 0 else "utf-8-sig"
