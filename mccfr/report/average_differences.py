"""Distance between the average strategies of one run, by street and number of earlier actions.

It covers all infosets if they can be listed.  For cards dealt from the whole deck it covers sampled deals, at all
decisions of either player.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from mccfr.evaluation.sampled_head_to_head import deal_parts
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.results.average_strategies import checkpoint_average, checkpoint_networks
from mccfr.solvers.deep.sampled_cards_cfr import is_dealt
from mccfr.tables.strategy import Strategy
from storage.checkpoint import Checkpoint

_MOST_INFOSETS = 20_000_000  # limit for the comparison at all infosets
_DEALS = 1000  # sampled deals of a game whose cards are dealt from the whole deck


class Disagreement(NamedTuple):
    """Distance between two average strategies at the decisions of one street and depth.

    street    number of the street
    depth     number of actions before, by both players
    infosets  number with weight in the first average; on deals, one for each deal and decision
    mean      total variation distance (half the sum of |difference|), weighted by the first average's weights
    """

    street: int
    depth: int
    infosets: int
    mean: float


def disagreements(game: Game, pairs: Iterable[tuple[Strategy, Strategy]]) -> list[Disagreement]:
    """Return the distances of pairs (first, second) of strategies, by street and depth.

    pairs  each covers a part of the infosets, such as some deals; infosets that the first never reaches are left out
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
    """Add (infosets, weight, weight times distance) to `totals` by street and depth, in place."""
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
    """Return HTML on the distances of a run's other averages to its first.

    "" if the run has one average, or too many infosets.
    """
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
    """Return the distances of each other average to the first, over all infosets."""
    first, *others = (checkpoint_average(game, run.config, checkpoint, name) for name in run.algorithm.averages.names)
    return [disagreements(game, [(first, other)]) for other in others]


def _on_deals(run: Run, game: Game, checkpoint: Checkpoint) -> list[list[Disagreement]]:
    """Return the distances of each other average to the first, over sampled deals."""
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
