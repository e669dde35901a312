"""Rejects numbers and texts outside the range of any key, before they are used."""

from collections.abc import Iterator, Sequence
from math import isinf
from typing import Any

import msgspec

MOST_COUNT = 10**18
"""Largest number of nodes or iterations: counters have 64 bits, with room for additions."""
MOST_NUMBER = 1e15
"""Largest number of chips or seconds: below it whole numbers and halves are exact in float64."""
MOST_TEXT = 4096
"""Most characters of a text, as in a path of the operating system."""
MOST_NAME_BYTES = 255
"""Most bytes of one component of a path."""

_MOST_INTEGER = 2**63 - 1
_MOST: dict[str, float] = {
    "game.payoffs": 3e38,  # tables may be float32
    "solver.seed": _MOST_INTEGER,
    "evaluation.seed": _MOST_INTEGER,
    "evaluation.boards": 10**9,
    "evaluation.hands": 10**9,
    "run.keep_checkpoints": 10**6,
}
_MAY_BE_INFINITE = ("solver.alpha", "solver.beta")  # exponents of discounting: an infinite one means factor 0 or 1
_PATHS = (
    "game.file",
    "abstraction.path",
    "abstraction.recipe",
    "export.out",
    "tables.live_dir",
    "solver.trunk",
    "solver.warm_start",
)
_SHOWN = 60


def limit_problems(value: Any, key: str = "") -> Iterator[str]:
    """Yield one sentence for each number or text of a config that is out of range."""
    if isinstance(value, msgspec.Struct):
        for name, written in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            yield from limit_problems(getattr(value, name), f"{key}.{written}" if key else written)
    elif isinstance(value, str):
        yield from _text_problems(value, key)
    elif isinstance(value, Sequence):
        for item in value:
            yield from limit_problems(item, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if key in _MAY_BE_INFINITE and isinf(value):
            return
        counted = _MOST_INTEGER if key.startswith("game.") else MOST_COUNT  # a game's tree has its own limits
        most = _MOST.get(key, MOST_NUMBER if isinstance(value, float) else counted)
        if not -most <= value <= most:  # also true for NaN
            yield f"{key} = {shown(value)} is not allowed: it must be finite, and at most {most:g}"


def _text_problems(text: str, key: str) -> Iterator[str]:
    if len(text) > MOST_TEXT or "\0" in text:
        allowed = f"at most {MOST_TEXT} characters, none of them NUL"
        yield f"{key} = {shown(text)} ({len(text):,} characters) is not allowed: it must have {allowed}"
    elif key in _PATHS and any(len(name.encode(errors="replace")) > MOST_NAME_BYTES for name in text.split("/")):
        yield f"{key} = {shown(text)} is not allowed: names of files have at most {MOST_NAME_BYTES} bytes"


def shown(value: Any) -> str:
    """Return a value as text for a message, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # integers of thousands of digits have no decimal text
        return f"a number of {value.bit_length():,} bits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
