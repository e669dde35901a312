"""Fuzzing by format: a seeded generator of inputs, and the reader that must read or refuse each.

`FORMATS` lists the formats.  tests/test_fuzz.py runs 50 inputs of each in the fast suite and 2,000 in the slow one.  It
also replays the inputs of earlier findings (tests/data/fuzz/FORMAT).  `tools/fuzz FORMAT MINUTES` uses new seeds.
"""

import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from random import Random

import click
from places import DATA

MODULES = {
    **{"line": "lines", "hand": "texts", "range": "texts", "endgame": "files", "policy": "files"},
    **{"match-log": "files", "hands": "hands", "view": "wires", "bot": "wires", "dealer": "wires"},
    **{"slumbot": "wires", "gtowizard": "wires"},
}
"""The module of each format; `format_named` imports it."""
FORMATS = tuple(MODULES)

CORPUS = DATA / "fuzz"
REFUSALS = (ValueError, OSError, KeyError, click.ClickException)
"""Errors that a reader may raise, with a sentence as message."""
LONGEST_MESSAGE = 2_000
"""Most characters of an error message, in addition to four for each byte of the input, which it may repeat."""
MEMORY = 1 << 30
"""Bytes of address space that a reader may take in addition to those of the process before."""


class TooLong(BaseException):
    """Raised in a reader that does not end; not an `Exception`, because readers may catch that."""


@dataclass(frozen=True)
class Format:
    """A fuzzed format.

    make     returns an input from random numbers: valid, with changed fields, or with changed bytes
    read     takes an input; returns if it is valid, raises one of `REFUSALS` otherwise
    seconds  processor time that one input may take
    """

    make: Callable[[Random], bytes]
    read: Callable[[bytes], object]
    seconds: float = 5.0


@dataclass(frozen=True)
class Finding:
    """An input that a reader neither accepted nor refused."""

    data: bytes
    error: BaseException

    @property
    def place(self) -> str:
        """The error's type and the function that raised it; findings of one place count as one."""
        steps = [step for step, _ in traceback.walk_tb(self.error.__traceback__)]
        where = steps[-2 if isinstance(self.error, TooLong) else -1].f_code.co_qualname  # without the signal handler
        return f"{type(self.error).__name__} in {where}"

    def __str__(self) -> str:
        return f"{self.place}: {str(self.error)[:200]} <- {self.data[:300]!r}"


@dataclass
class Outcome:
    """Numbers of inputs accepted and refused, and the findings, of a fuzzing session."""

    good: int = 0
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)


def format_named(name: str) -> Format:
    """Return the format of a name; raises `KeyError` for an unknown one."""
    found: Format = getattr(import_module(f"fuzzing.{MODULES[name]}"), name.upper().replace("-", "_"))
    return found


def inputs(name: str, seeds: Iterable[int]) -> Iterator[bytes]:
    """Yield an input of a format for each seed, the same on every machine."""
    make = format_named(name).make
    return (make(Random(f"{name} {seed}")) for seed in seeds)


def corpus(name: str) -> list[Path]:
    """Return the files with inputs of a format that were findings earlier."""
    return sorted((CORPUS / name).glob("*"))


def feed(reader: Format, every: Iterable[bytes], outcome: Outcome | None = None) -> Outcome:
    """Give inputs to a format's reader, with a time limit for each; return the counts and findings."""
    outcome = Outcome() if outcome is None else outcome
    for data in every:
        try:
            with _alarm(reader.seconds):
                reader.read(data)
            outcome.good += 1
        except REFUSALS as error:
            if is_sentence(error, len(data)):
                outcome.refused += 1
            else:
                outcome.findings.append(Finding(data, error))
        except (Exception, SystemExit, TooLong) as error:
            outcome.findings.append(Finding(data, error))
    return outcome


def is_sentence(error: BaseException, given: int) -> bool:
    """Return True if an error message has several words and a reasonable length for its input."""
    text = error.message if isinstance(error, click.ClickException) else str(error)
    return len(text.split()) > 2 and len(text) <= LONGEST_MESSAGE + 4 * given


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in this thread after `seconds` of processor time, or after a long wait."""

    def ring(number: int, _: object) -> None:
        raise TooLong(f"longer than {seconds:g} s" if number == signal.SIGPROF else "waits for something")

    before = [(number, signal.signal(number, ring)) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 60 + 10 * seconds)  # long enough for a machine under load
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Limit memory: code that takes more than `MEMORY` bytes inside the block gets a `MemoryError`."""
    old = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)


def search(name: str, seconds: float, first: int, tell: Callable[[str], None]) -> Outcome:
    """Feed new inputs for some seconds, from the seed `first`; save the first finding of each place.

    tell  function that gets a text on each saved finding
    """
    reader, outcome, end, known = format_named(name), Outcome(), time.monotonic() + seconds, set[str]()
    seed = first
    while time.monotonic() < end:
        before = len(outcome.findings)
        feed(reader, inputs(name, range(seed, seed + 100)), outcome)
        seed += 100
        for finding in outcome.findings[before:]:
            if finding.place not in known:
                known.add(finding.place)
                tell(f"{keep(name, finding.data)}: {finding}")
    return outcome


def keep(name: str, data: bytes) -> Path:
    """Save an input in the corpus; return its file."""
    path = CORPUS / name / sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def damaged(rng: Random, data: bytes, pieces: Iterable[bytes] = ()) -> bytes:
    """Return `data` with 1 to 16 random changes.

    Bytes are removed, repeated, moved or replaced, or one of `pieces` is inserted.
    """
    changed, pieces = bytearray(data), [*pieces, b"\0", b"\xff", b"-1", b"1e999", b"9" * 40]
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, end = sorted(rng.randrange(len(changed) + 1) for _ in range(2))
        end = min(end, at + rng.choice((1, 4, 40, 400)))
        match rng.randrange(6):
            case 0:
                changed[at:end] = b""
            case 1:
                changed[at:at] = rng.choice(pieces)
            case 2:
                changed[at:end] = rng.choice(pieces)
            case 3:
                changed[at:at] = changed[at:end]
            case 4:
                moved = changed[at:end]
                del changed[at:end]
                to = rng.randrange(len(changed) + 1)
                changed[to:to] = moved
            case 5:
                changed[at : at + 1] = bytes([rng.randrange(256)])
    return bytes(changed)
