"""Rejects numbers and texts beyond the limits of their keys, and parses shares such as "0.3%"."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from math import isinf
from typing import Any

import msgspec

MOST_COUNT = 10**18
"""Largest number of nodes or iterations: counters have 64 bits, with room for additions."""
MOST_NUMBER = 1e15
"""Largest number of chips or seconds: below it whole numbers and halves are exact in float64."""
MOST_TEXT = 4096
"""Most characters of a text, as in a path of the operating system."""
MOST_RANGE = 1 << 20
"""Most characters of a hand range."""

_MOST_INTEGER = 2**63 - 1
_MOST: dict[str, float] = {
    "game.payoffs": 3e38,  # tables may be float32
    "solver.seed": _MOST_INTEGER,
    "evaluation.boards": 10**9,
    "evaluation.hands": 10**9,
    "run.keep_checkpoints": 10**6,
}
_MAY_BE_INFINITE = ("solver.alpha", "solver.beta")  # exponents of discounting: an infinite one means factor 0 or 1
_SHOWN = 60
_SHARE = re.compile(r"(\d+\.?\d*|\.\d+)\s*(%?)")


def limit_problems(value: Any, key: str = "") -> Iterator[str]:
    """Yield one sentence for each number or text of a config that is out of range.

    value  a config, or the value of one of its keys
    key    dotted key of `value`, for the sentences; "" for the whole config
    """
    if isinstance(value, msgspec.Struct):
        for name, encoded_name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            yield from limit_problems(getattr(value, name), f"{key}.{encoded_name}" if key else encoded_name)
    elif isinstance(value, str):
        longest = MOST_RANGE if key.startswith("game.ranges.") else MOST_TEXT
        if len(value) > longest or "\0" in value:
            allowed = f"at most {longest} characters, none of them NUL"
            yield f"{key} = {shown(value)} ({len(value):,} characters) is not allowed: it must have {allowed}"
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from limit_problems(item, f"{key}.{name}")
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


def share_of(text: object) -> float:
    """Return the number that a percentage such as "0.3%" means: 0.003; the text "0" needs no sign.

    Raises `ValueError` for other texts, and for a number without unit: 0.5 can mean 0.5% or 50%.
    """
    match = _SHARE.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{shown(text)} is not a share: write it in per cent, such as 0.3%")
    number = float(match[1])
    if number and not match[2]:
        other = f"{100 * number:g}%" if number <= 1 else f"{number:g} chips"
        raise ValueError(f"{shown(text)} can mean {number:g}% or {other}: write it in per cent, such as 0.3%")
    return float(Decimal(match[1]) / 100)


def share_text(share: float) -> str:
    """Return a share (0 to 1) as text in per cent, such as "5%" for 0.05.

    `share_of` converts the text back to the same float.
    """
    return f"{Decimal(repr(float(share))).scaleb(2):f}%"


def share_problem(text: object, least: float = 0.0, most: float = float("inf")) -> str | None:
    """Return None if a text such as "0.3%" is a share in [least, most).

    Otherwise return a phrase that says which values are allowed, for an error message.
    """
    try:
        share = share_of(text)
    except ValueError as error:
        return f"a share in per cent: {error}"
    return None if least <= share < most else f"from {share_text(least)} to less than {share_text(most)}"


def shown(value: Any) -> str:
    """Return a value as text for a message (its `repr`), cut after 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # integers of thousands of digits have no decimal text
        return f"a number of {value.bit_length():,} bits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def did_you_mean(value: object, allowed: Iterable[str]) -> str:
    """Return the end of a message that proposes the allowed name most similar to `value`.

    Such as "; did you mean 'linear'?"; "" if no name is similar.
    """
    names = {name.lower(): name for name in allowed}
    near = get_close_matches(str(value).lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""
