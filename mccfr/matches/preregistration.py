"""Pre-registered matches and evaluations: an append-only file of declared hypotheses and verdicts.

A declaration contains the command, the program's version, the hashes of the policies, the amount of play and the
expectation. Its digest is the random seed. Results therefore cannot be seen before the declaration, and each
declaration has one result. Every further attempt leaves a line in the file.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mccfr import __version__
from storage import durable
from storage.atomic_outputs import begins_with, check_output

_HEAD = "# mccfr declarations"
_EXPECTED = re.compile(r"([a-z]+) (mean|low|high) ([<>]) ([+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?)")
Figures = Mapping[str, tuple[float, tuple[float, float] | None]]
"""Mean and 95 % interval of each figure of a record; the interval is None if it has no width."""


@dataclass(frozen=True)
class Declare:
    """A request to declare: the file of declarations, and the expectation, such as "aivat low > -50"."""

    path: Path
    expect: str


def declare_of(path: Path | None, expect: str | None, seed: int | None) -> Declare | None:
    """Return the declaration of a command's options, or None.

    Raises `ValueError` if only one of the two is given, or a seed besides.
    """
    if path is None and expect is None:
        return None
    if path is None or expect is None:
        raise ValueError("--declare FILE and --expect TEXT go together: give both, or none")
    if seed:
        raise ValueError("what is declared draws by the declaration: leave --seed out")
    return Declare(path, expect)


class Declaration:
    """A declaration written in its file."""

    def __init__(self, request: Declare, what: Mapping[str, Any], names: tuple[str, ...], unit: str = "mbb/g") -> None:
        """Write the declaration, unless the file has it.

        what   everything that determines the result, including hashes of policies
        names  figures that may be expected, in `unit`

        Raises `ValueError` for an expectation of another figure, `FileExistsError` if the file is something else.
        """
        found = _EXPECTED.fullmatch(request.expect.strip())
        if found is None or found[1] not in names:
            raise ValueError(
                f"expect = {request.expect[:60]!r}: write FIGURE mean, low or high, < or > and a number, FIGURE being "
                f"{' or '.join(names)}: {names[-1]} low > 0"
            )
        self._path, self._figure, self._part, self._above = request.path, found[1], found[2], found[3] == ">"
        self._bound = float(found[4])
        declared = {**what, "expect": " ".join(found.groups()), "unit": unit, "version": __version__}
        self.digest = hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()
        self.expect = declared["expect"]
        check_output(request.path, begins_with(_HEAD.encode()))
        lines = durable.read_lines(request.path)
        if not lines:
            durable.append_line(request.path, _HEAD)
        if not any(line.startswith(f'{{"declared": "{self.digest}"') for line in lines):
            self._write({"declared": self.digest, **declared})

    @property
    def seed(self) -> int:
        """Seed drawn from the digest, from 0 to 2^60 - 1."""
        return int(self.digest[:15], 16)

    def judged(self, figures: Figures) -> dict[str, Any]:
        """Write the verdict, and return it for a record.

        Raises `ValueError` if the result lacks the declared figure.
        """
        if self._figure not in figures:
            with self.ended():
                raise ValueError(f"there is no figure {self._figure} of what was declared: expect another")
        mean, ends = figures[self._figure]
        low, high = ends or (mean, mean)
        value = {"mean": mean, "low": low, "high": high}[self._part]
        held = value > self._bound if self._above else value < self._bound
        verdict = {"verdict": self.digest, "held": held, "mean": mean, "ci95": [low, high]}
        self._write(verdict)
        return {"declared": {"digest": self.digest, "expect": self.expect, "held": held}}

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Write an end without a verdict if the block raises."""
        try:
            yield
        except BaseException as error:
            self._write({"verdict": self.digest, "held": None, "why": str(error) or type(error).__name__})
            raise

    def _write(self, line: Mapping[str, Any]) -> None:
        durable.append_line(self._path, json.dumps({**line, "at": datetime.now(UTC).isoformat(timespec="seconds")}))


def declared_text(record: Mapping[str, Any]) -> str:
    """Return a record's verdict as text for people; "" if nothing was declared."""
    if "declared" not in record:
        return ""
    found = record["declared"]
    return f"\ndeclared {found['digest'][:16]}: {found['expect']} {'holds' if found['held'] else 'does NOT hold'}"
