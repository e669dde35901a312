"""Where the average strategies of one run disagree: by street, and by how many actions lead to a decision.

Over all infosets where they can be listed; where cards are dealt from the whole deck, over deals of a seed: at all
decisions of either player, whatever the opponent did to get there.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from mccfr.evaluation.on_deals import deal_parts
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.results.averages import checkpoint_average, checkpoint_networks
from mccfr.solvers.deep.dealt_cfr import is_dealt
from mccfr.tables.strategy import Strategy
from storage.checkpoint import Checkpoint

_MOST_INFOSETS = 20_000_000  # of a game whose averages are compared at all of them
_DEALS = 1000  # of one whose averages are compared on deals


class Disagreement(NamedTuple):
    """Of decisions on a street that so many actions lead to.

    street
    depth     actions before, both players'
    infosets  with weight in the first average; of deals, one for each deal and decision
    mean      of half the sum of |difference| over actions, by the weight of the first average
    """

    street: int
    depth: int
    infosets: int
    mean: float


def disagreements(game: Game, pairs: Iterable[tuple[Strategy, Strategy]]) -> list[Disagreement]:
    """How far the second strategies of pairs are from the first, by street and depth.

    Several pairs are of parts of the infosets, as of some deals each.  What a first one never reaches is left out.
    """
    totals = dict[tuple[int, int], list[float]]()
    for one, other in pairs:
        _add(game, one, other, totals)
    return [
        Disagreement(*where, int(infosets), gap / weight)
        for where, (infosets, weight, gap) in sorted(totals.items())
        if weight
    ]


def _add(game: Game, one: Strategy, other: Strategy, totals: dict[tuple[int, int], list[float]]) -> None:
    """Add (infosets, weight, weight times distance) to totals by street and depth, in place."""
    tree, arrays = game.tree, game.tree.arrays
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
        here = totals.setdefault((block // 2, len(tree.path(node)) - 1), [0.0, 0.0, 0.0])
        for place, found in enumerate((np.count_nonzero(weight), weight.sum(), weight @ apart)):
            here[place] += float(found)


def averages_section(run: Run, game: Game, checkpoint: Checkpoint) -> str:
    """HTML of how far a run's other averages are from its first; "" where it has one, or too many infosets."""
    names = run.algorithm.averages.names
    if len(names) < 2 or (game.infosets.sum() > _MOST_INFOSETS and not is_dealt(game)):
        return ""
    compare = _on_deals if is_dealt(game) else _everywhere
    parts = ["<h2>Averages</h2>"]
    for name, rows in zip(names[1:], compare(run, game, checkpoint), strict=True):
        over = f", on {_DEALS:,} deals" if is_dealt(game) else ""
        parts += [
            f"<p>How far {escape(name)} is from {escape(names[0])}, by street and by how many actions lead to a "
            f"decision{over}.</p>",
            _table(game, rows),
        ]
    return "\n".join(parts)


def _everywhere(run: Run, game: Game, checkpoint: Checkpoint) -> list[list[Disagreement]]:
    """Of each other average with the first, over all infosets."""
    first, *others = (checkpoint_average(game, run.config, checkpoint, name) for name in run.algorithm.averages.names)
    return [disagreements(game, [(first, other)]) for other in others]


def _on_deals(run: Run, game: Game, checkpoint: Checkpoint) -> list[list[Disagreement]]:
    """The same on deals."""
    first, *others = (checkpoint_networks(game, run.config, checkpoint, name) for name in run.algorithm.averages.names)
    parts = list(deal_parts(game, _DEALS, run.config.solver.seed))
    return [disagreements(game, ((first.on_deals(p), other.on_deals(p)) for p in parts)) for other in others]


def _table(game: Game, rows: Sequence[Disagreement]) -> str:
    head = "<tr><th>street</th><th>actions before</th><th>infosets</th><th>mean distance</th></tr>"
    lines = [
        f"<tr><td>{game.street_name(row.street)}</td><td>{row.depth}</td><td>{row.infosets:,}</td>"
        f"<td>{row.mean:.4f}</td></tr>"
        for row in rows
    ]
    return f"<table>{head}{''.join(lines)}</table>"
