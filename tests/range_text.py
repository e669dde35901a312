"""Writes compact texts of ranges, which `abstraction.range_notation.parse_range` must read back."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import RANKS, combo_text
from abstraction.range_notation import parse_range


@cache
def _members(name: str) -> list[int]:
    """Combinations of a class such as "AKs"."""
    return np.flatnonzero(parse_range(name)).tolist()


def _rows() -> list[list[str]]:
    """Return the rows of classes for "+", best first: pairs, then suited and offsuit by higher card."""
    top = len(RANKS) - 1
    rows = [[2 * rank for rank in reversed(RANKS)]]
    for high in range(top, 0, -1):
        rows += [[RANKS[high] + RANKS[low] + suited for low in range(high - 1, -1, -1)] for suited in ("", "s", "o")]
    return rows


def _run_text(names: list[str], reaches_top: bool) -> str:
    """Text of a run of classes, best first."""
    if len(names) == 1:
        return names[0]
    return f"{names[-1]}+" if reaches_top else f"{names[0]}-{names[-1]}"


def range_text(weights: NDArray[np.float64]) -> str:
    """Text of weights [1326] in 0 to 1; hands of weight 0 are left out."""
    rest, items = weights.copy(), []

    def item(text: str, weight: float) -> None:
        items.append(text if weight == 1 else f"{text}:{weight!r}")

    for row in _rows():
        run: list[str] = []
        run_weight, run_starts_row = 0.0, False
        for position, name in enumerate([*row, None]):
            values = rest[_members(name)] if name else np.zeros(1)
            weight = float(values[0]) if (values == values[0]).all() else 0.0
            if run and weight != run_weight:
                item(_run_text(run, run_starts_row), run_weight)
                run = []
            if name and weight:
                if not run:
                    run_weight, run_starts_row = weight, position == 0
                run.append(name)
                rest[_members(name)] = 0
    for combo in np.flatnonzero(rest)[::-1]:
        item(combo_text(int(combo)), float(rest[combo]))
    return ",".join(items)
