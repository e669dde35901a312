"""Writes hand ranges as text for other programs."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from mccfr.cards.grid import Grid

DECIMALS = 3


def range_text(
    grid: Grid, names: list[str], weight: npt.NDArray[np.float64], live: npt.NDArray[np.bool_], top: float | None = None
) -> str:
    """Return a range as text, such as "AA,AKs:0.5,KdQd:0.25".

    In hold'em `abstraction.range_notation.parse_range` reads it.

    weight  [H] weight of each hand
    live    [H] hands that can be held; the others count as their class does
    top     weight that becomes 1; None takes the largest

    A class whose hands have equal weights is one item, and in hold'em adjacent classes are joined.  Other hands are
    single items.
    """
    top = weight[live].max(initial=0.0) if top is None else top
    if top == 0:
        return ""
    shares = np.round(weight / top, DECIMALS)
    whole, single = dict[str, float](), list[str]()
    order = np.flatnonzero(live)
    order = order[np.argsort(grid.cell[order], kind="stable")]
    starts = np.flatnonzero(np.diff(grid.cell[order], prepend=-1))
    for hands in np.split(order, starts[1:]):
        shown = shares[hands].tolist()
        if min(shown) == max(shown):
            whole[grid.label[int(grid.cell[hands[0]])]] = shown[0]
        else:
            single.extend(_item(names[hand], share) for hand, share in zip(hands.tolist(), shown, strict=True))
    items = _runs(whole, grid.label) if grid.label[0] == "AA" else [_item(*each) for each in whole.items()]
    return ",".join(item for item in (*items, *single) if item)


def _runs(weight: dict[str, float], labels: Sequence[str]) -> list[str]:
    """Return items of classes, with adjacent classes of equal weight joined as "TT+", "ATs+" or "A5s-A2s".

    `labels` begin with the row of the aces.
    """
    groups = dict[str, list[str]]()
    for label in labels:
        groups.setdefault("pair" if len(label) == 2 else label[0] + label[2], []).append(label)
    found = []
    for group in groups.values():
        for share, run in groupby(group, key=weight.get):
            members = list(run)
            first, last = members[0], members[-1]
            text = first if first == last else f"{last}+" if first == group[0] else f"{first}-{last}"
            found.append(_item(text, share or 0.0))
    return found


def _item(text: str, weight: float) -> str:
    return "" if weight == 0 else text if weight == 1 else f"{text}:{weight:g}"
