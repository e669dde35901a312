"""Reads hands from files in any supported format; unreadable hands are reported and skipped.

A format is a module here and an entry of `FORMATS`. The first line that is no comment determines a file's format.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mccfr.config.game_tables import HoldemGame
from mccfr.matches.acpc import quoted
from mccfr.matches.acpc_log import LoggedHand
from mccfr.matches.hand_files import line_hands, phh_hands, pokerstars_hands
from mccfr.matches.hand_files.format_base import HandFormat
from storage.damage import reading, walk

FORMATS: tuple[HandFormat, ...] = (line_hands.ACPC, line_hands.SLUMBOT, pokerstars_hands.FORMAT, phh_hands.FORMAT)
MOST_LINE_BYTES = 1 << 16
MOST_PIECE_BYTES = 1 << 18
"""Most characters of one hand; published hands have some hundred."""
_COMMENTS = ("#", ";")


class FoundHand(NamedTuple):
    """A hand of a file, or the reason why it could not be read.

    where  such as "match.log, line 17"
    hand   a heads-up no-limit hold'em hand in chips of the requested game, or None
    why    the reason if there is no hand
    """

    where: str
    hand: LoggedHand | None
    why: str = ""


@reading()
def hand_files(path: Path) -> list[Path]:
    """Return the file, or all files in a directory tree sorted by name; `FileNotFoundError` if none.

    Raises `UnreadableError` if the system cannot list a directory.
    """
    every = [path]
    if path.is_dir():
        files = (Path(folder, name) for folder, _, names in walk(path) for name in names)
        every = sorted(each for each in files if not each.name.startswith("."))
    found = [each for each in every if each.is_file()]
    if not found:
        raise FileNotFoundError(f"{path}: there is no file of hands: give a file, or a directory of such")
    return found


def read_hands(path: Path, game: HoldemGame) -> Iterator[FoundHand]:
    """Yield the hands of a file in order, scaled to the big blind of `game`.

    Hands that cannot be read, or have other stacks or more than two players, have only a reason; so has a file of
    unknown format. Raises `OSError` if the file cannot be opened.
    """
    lines = _lines(path)
    form, first = None, ""
    for _, line in _lines(path):
        if line.strip() and not line.startswith(_COMMENTS):
            first = line
            form = next((each for each in FORMATS if each.begins(line)), None)
            break
    if form is None:
        names = ", ".join(each.name for each in FORMATS)
        yield FoundHand(str(path), None, f"{quoted(first)} begins none of the forms that are read: {names}")
        return
    for number, piece in form.pieces(lines):
        where = f"{path}, line {number}"
        try:
            if len(piece) > MOST_PIECE_BYTES:
                raise ValueError(f"a hand of more than {MOST_PIECE_BYTES:,} characters: none is so long")
            yield FoundHand(where, form.read(piece, game))
        except (ValueError, RecursionError) as error:
            text = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            yield FoundHand(where, None, " ".join(text.split()))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, line without its end); invalid UTF-8 is replaced and long lines are cut."""
    with reading(path), path.open("rb") as file:
        number = 0
        while data := file.readline(MOST_LINE_BYTES):
            number += 1
            while not data.endswith(b"\n") and (more := file.readline(MOST_LINE_BYTES)):
                if more.endswith(b"\n"):
                    break
            yield number, data.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n")
