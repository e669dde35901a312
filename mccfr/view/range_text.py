"""Ranges as text to copy into other programs."""

import numpy as np
import numpy.typing as npt

from mccfr.cards.grid import Grid

DECIMALS = 3


def range_text(grid: Grid, names: list[str], weight: npt.NDArray[np.float64], live: npt.NDArray[np.bool_]) -> str:
    """A range such as "AA,AKs:0.5,KdQd:0.25"; in hold'em `abstraction.ranges.parse_range` reads it.

    weight  [H] of each hand; the largest of them becomes 1
    live    [H] which hands can be held; others are as their class

    A class whose hands have one weight is named as a whole, else each hand by itself.
    """
    top = weight[live].max(initial=0.0)
    if top == 0:
        return ""
    shares = np.round(weight / top, DECIMALS)
    found = []
    order = np.flatnonzero(live)
    order = order[np.argsort(grid.cell[order], kind="stable")]
    starts = np.flatnonzero(np.diff(grid.cell[order], prepend=-1))
    for hands in np.split(order, starts[1:]):
        shown = shares[hands].tolist()
        if min(shown) == max(shown):
            found.append(_item(grid.label[int(grid.cell[hands[0]])], shown[0]))
        else:
            found.extend(_item(names[hand], share) for hand, share in zip(hands.tolist(), shown, strict=True))
    return ",".join(item for item in found if item)


def _item(text: str, weight: float) -> str:
    return "" if weight == 0 else text if weight == 1 else f"{text}:{weight:g}"
