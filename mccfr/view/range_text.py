"""Writes hand ranges as text for this and other programs."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from mccfr.cards.grid import Grid

DECIMALS = 3
NOTATIONS = {
    "mccfr": "TT+,AKs:0.5,KdQd:0.25, also for postflop-solver",
    "pio": "AA,KK,AKs:0.5,KdQd:0.25, for PioSOLVER, without + and -",
    "gto+": "[50.0]AA-TT,AKs[/50.0], for GTO+ and Flopzilla",
    "gtowizard": "KdQd: 0.25, one combination an item, for GTO Wizard",
    "equilab": "TT+,AKs, for Equilab and PokerStove, which have no weights",
}
"""Notations that ranges are written in, with their form."""


def range_text(
    grid: Grid,
    names: list[str],
    weight: npt.NDArray[np.float64],
    live: npt.NDArray[np.bool_],
    top: float | None = None,
    notation: str = "mccfr",
) -> str:
    """Return a range as text, such as "AA,AKs:0.5,KdQd:0.25".

    In hold'em `abstraction.range_notation.parse_range` reads the notation "mccfr".

    grid      classes of hands, such as AKs, and the class of each hand
    names     names of the H hands, such as KdQd
    weight    [H] weight of each hand
    live      [H] True for possible hands; the others, such as those that share a card with the board, do not count
    top       weight that is written as 1, by which all are divided; None: the largest of the possible hands
    notation  "mccfr", "pio" (PioSOLVER), "gto+", "gtowizard" (GTO Wizard) or "equilab"

    A class whose hands have equal weights is one item, except for GTO Wizard.  Hands of other classes are single items.
    In hold'em adjacent classes are joined, except for PioSOLVER and GTO Wizard.

    Raises `ValueError` for an unknown notation, and for weights that a notation cannot express.
    """
    if notation not in NOTATIONS:
        raise ValueError(f"{notation!r} is no notation of ranges: {', '.join(NOTATIONS)} are")
    top = weight[live].max(initial=0.0) if top is None else top
    if top == 0:
        return ""
    shares = np.round(weight / top, DECIMALS)
    if notation == "equilab" and np.any(live & (shares > 0) & (shares < 1)):
        raise ValueError("Equilab's notation has no weights, and this range has some: choose another notation")
    whole, single = dict[str, float](), list[tuple[str, float]]()
    order = np.flatnonzero(live)
    order = order[np.argsort(grid.cell[order], kind="stable")]
    starts = np.flatnonzero(np.diff(grid.cell[order], prepend=-1))
    for hands in np.split(order, starts[1:]):
        shown = shares[hands].tolist()
        if min(shown) == max(shown) and notation != "gtowizard":
            whole[grid.label[int(grid.cell[hands[0]])]] = shown[0]
        else:
            single.extend((names[hand], share) for hand, share in zip(hands.tolist(), shown, strict=True))
    joined = grid.label[0] == "AA" and notation not in ("pio", "gtowizard")
    items = _runs(whole, grid.label, plus=notation != "gto+") if joined else list(whole.items())
    items = [item for item in (*items, *single) if item[1] > 0]
    return _in_brackets(items) if notation == "gto+" else _with_weights(items, notation)


def _runs(weight: Mapping[str, float], labels: Sequence[str], *, plus: bool) -> list[tuple[str, float]]:
    """Return (text, weight) of classes of hands, such as AKs.

    Adjacent classes of equal weight are joined, as "TT+" or "A5s-A2s".

    weight  {name of the class: weight}, only of classes whose hands have equal weights; others count as weight 0
    labels  names of all classes, such as AKs, by the first rank from aces down
    plus    True: write "TT+"; False: write "AA-TT"
    """
    groups = dict[str, list[str]]()
    for label in labels:
        groups.setdefault("pair" if len(label) == 2 else label[0] + label[2], []).append(label)
    found = []
    for group in groups.values():
        for share, run in groupby(group, key=weight.get):
            members = list(run)
            first, last = members[0], members[-1]
            above = plus and first == group[0]
            found.append((first if first == last else f"{last}+" if above else f"{first}-{last}", share or 0.0))
    return found


def _with_weights(items: Sequence[tuple[str, float]], notation: str) -> str:
    """Join (text, weight) items as "AA,AKs:0.5"; weight 1 is left out except for GTO Wizard."""
    if notation == "gtowizard":
        return ", ".join(f"{text}: {weight:g}" for text, weight in items)
    return ",".join(text if weight == 1 else f"{text}:{weight:g}" for text, weight in items)


def _in_brackets(items: Sequence[tuple[str, float]]) -> str:
    """Join (text, weight) items of one weight as "[50.0]AA-TT,AKs[/50.0]"; weight 1 has no brackets."""
    groups = dict[float, list[str]]()
    for text, weight in items:
        groups.setdefault(weight, []).append(text)
    parts = []
    for weight in sorted(groups, reverse=True):
        hands = ",".join(groups[weight])
        parts.append(hands if weight == 1 else f"[{100 * weight:.1f}]{hands}[/{100 * weight:.1f}]")
    return ",".join(parts)
