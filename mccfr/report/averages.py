"""Where the average strategies of one run disagree: by how many actions lead to a decision."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from mccfr.games.game import Game
from mccfr.runs.averages import named_average
from mccfr.runs.rundir import Run
from mccfr.tables.strategy import Strategy
from storage.checkpoint import Checkpoint

_MOST_INFOSETS = 20_000_000  # of a game whose averages are compared


class Disagreement(NamedTuple):
    """Of decisions that so many actions lead to.

    depth     actions before, both players'
    infosets  with weight in the first average
    mean      of half the sum of |difference| over actions, by the weight of the first average
    """

    depth: int
    infosets: int
    mean: float


def disagreements(game: Game, one: Strategy, other: Strategy) -> list[Disagreement]:
    """How far two strategies are apart, by depth; depths that the first never reaches are left out."""
    tree, arrays, found = game.tree, game.tree.arrays, dict[int, list[tuple[int, float, float]]]()
    done = set[tuple[int, int]]()
    for node in tree.decisions.tolist():
        block, row, slot, count = (
            int(column[node]) for column in (arrays.block, arrays.row, arrays.slot, arrays.count)
        )
        if (block, row) in done:
            continue
        done.add((block, row))
        cells = slice(slot, slot + count)
        apart = np.abs(one.probability[block][:, cells] - other.probability[block][:, cells]).sum(axis=1) / 2
        weight = one.weight[block][:, row]
        here = int(np.count_nonzero(weight)), float(weight.sum()), float(weight @ apart)
        found.setdefault(len(tree.path(node)) - 1, []).append(here)
    totals = {depth: [sum(column) for column in zip(*parts, strict=True)] for depth, parts in sorted(found.items())}
    return [Disagreement(depth, int(n), gap / weight) for depth, (n, weight, gap) in totals.items() if weight]


def averages_section(run: Run, game: Game, checkpoint: Checkpoint) -> str:
    """HTML of how far a run's other averages are from its first; "" where it has one, or too many infosets."""
    names = run.algorithm.averages
    if len(names) < 2 or game.infosets.sum() > _MOST_INFOSETS:
        return ""
    first = named_average(game, run.config, checkpoint, names[0])
    parts = ["<h2>Averages</h2>"]
    for name in names[1:]:
        rows = disagreements(game, first, named_average(game, run.config, checkpoint, name))
        parts += [f"<p>How far {escape(name)} is from {escape(names[0])}, by how many actions lead to a decision.</p>"]
        parts += [_table(rows)]
    return "\n".join(parts)


def _table(rows: Sequence[Disagreement]) -> str:
    head = "<tr><th>actions before</th><th>infosets</th><th>mean distance</th></tr>"
    lines = [f"<tr><td>{row.depth}</td><td>{row.infosets:,}</td><td>{row.mean:.4f}</td></tr>" for row in rows]
    return f"<table>{head}{''.join(lines)}</table>"
