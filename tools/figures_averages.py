"""Measures distances between a deep CFR run's average strategies, by street and number of actions.

It covers all infosets if they can be listed.  For cards dealt from the whole deck it covers sampled deals, at all
decisions of either player.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mccfr.evaluation.sampled_head_to_head import deal_parts
from mccfr.games.game import Game
from mccfr.runs.directory.run import open_run
from mccfr.runs.results.average_strategies import checkpoint_average, checkpoint_networks
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.solvers.deep.sampled_cards_cfr import samples_cards
from mccfr.tables.strategy import Strategy

AVERAGES = "averages"
_DEALS = 1000  # sampled deals of a game whose cards are dealt from the whole deck


def distances(game: Game, pairs: Iterable[tuple[Strategy, Strategy]]) -> dict[tuple[int, int], tuple[int, float]]:
    """Return the mean distance of pairs of strategies by street and number of actions before.

    The values are (number of infosets, mean distance). A distance is half the sum of absolute differences, weighted by
    the weights of a pair's first strategy. Infosets that the first never reaches are left out.

    pairs  each covers a part of the infosets, such as some deals
    """
    tree, arrays = game.tree, game.tree.arrays
    rows = {(int(arrays.block[node]), int(arrays.row[node])): node for node in tree.decisions.tolist()[::-1]}
    totals = dict[tuple[int, int], list[float]]()
    for one, other in pairs:
        for (block, row), node in rows.items():
            cells = slice(int(arrays.slot[node]), int(arrays.slot[node]) + int(arrays.count[node]))
            apart = np.abs(one.probability[block][:, cells] - other.probability[block][:, cells]).sum(axis=1) / 2
            weight = one.weight[block][:, row]
            here = totals.setdefault((block // 2, len(tree.path(node)) - 1), [0.0, 0.0, 0.0])
            for place, found in enumerate((np.count_nonzero(weight), weight.sum(), weight @ apart)):
                here[place] += float(found)
    return {where: (int(count), gap / total) for where, (count, total, gap) in sorted(totals.items()) if total}


def averages_lines(directory: Path) -> list[str]:
    """Return the distances of a run's other averages to its first as lines of text.

    Raises `ValueError` for a run with one average, and the errors of `open_run`.
    """
    run = open_run(directory)
    game, checkpoint, names = run.build_game(), find_checkpoint(run, None), run.algorithm.averages.names
    if len(names) < 2:
        raise ValueError(f"{directory} has one average strategy: name several in solver.averages")
    lines = []
    for name in names[1:]:
        if samples_cards(game):
            one, other = (checkpoint_networks(game, run.config, checkpoint, each) for each in (names[0], name))
            parts = deal_parts(game, _DEALS, run.config.solver.seed)
            found = distances(game, ((one.on_deals(part), other.on_deals(part)) for part in parts))
        else:
            pair = [checkpoint_average(game, run.config, checkpoint, each) for each in (names[0], name)]
            found = distances(game, [(pair[0], pair[1])])
        for (street, depth), (count, mean) in found.items():
            where = f"{game.street_name(street)}, {depth} actions before"
            lines.append(f"{name} from {names[0]}, {where}: {mean:.4f} ({count:,} infosets)")
    return lines
