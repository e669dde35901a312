"""Ranges as text to copy into other programs."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from mccfr.cards.grid import Grid

DECIMALS = 3


def range_text(
    grid: Grid, names: list[str], weight: npt.NDArray[np.float64], live: npt.NDArray[np.bool_], top: float | None = None
) -> str:
    """A range such as "AA,AKs:0.5,KdQd:0.25"; in hold'em `abstraction.ranges.parse_range` reads it.

    weight  [H] of each hand
    live    [H] which hands can be held; others are as their class
    top     the weight that becomes 1; None: the largest

    A class whose hands have one weight is named as a whole, in hold'em classes in a row together, else each hand by
    itself.
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
    """Items of classes, those beside each other with one weight as "TT+", "ATs+" or "A5s-A2s"; rows by the aces."""
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
