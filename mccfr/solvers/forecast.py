"""How much of a tree a sampled run will visit, before anything is trained.

A traversal's length depends on how the opponent plays.  At first he plays at random; later he mostly checks or calls,
seldom goes all-in, and the hands that go on are the better ones, so that they fold less than a pooled frequency says.
`assumed_play` is a fixed guess for a run that is under way.  On the buckets of runs/abstractions/quick.toml the nodes
per iteration of external sampling over the last part of 5e8 nodes were 1.06 (menu S), 1.06 (M2) and 0.91 (M) times what
it gives, and over all of them 0.98, 0.91 and 0.74 times; on Leduc and a river endgame 1.2 and 1.03 times.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL, CompiledTree

_CHECK = 0.6  # where nothing is to be called; the bets share the rest
_FOLD, _CALL = 0.4, 0.45  # facing a bet; the raises share the rest
_ALL_IN = 0.1  # weight of a raise that leaves nothing but folding and calling, against another raise's 1


@dataclass(frozen=True)
class Forecast:
    """Expected counts of one iteration, two traversals.  S streets.

    nodes        touched
    visits       [S] float64 of decisions on each street at which the average strategy is added to; None: not known
    """

    nodes: float
    visits: npt.NDArray[np.float64] | None


def assumed_play(tree: CompiledTree) -> list[float]:
    """[N] probability of the edge into each node: chance's own, an action's as assumed; 1 at the root."""
    arrays = tree.arrays
    kind, count = arrays.kind.tolist(), arrays.count.tolist()
    share = [float(p) for p in arrays.probability]
    for node in np.flatnonzero(arrays.kind == DECISION).tolist():
        children = tree.children(node)
        labels = [tree.label[child] for child in children]
        weights = [1.0] * len(labels)
        if "c" in labels:
            raises = [
                0.0 if label in ("c", "f") else _ALL_IN if _closes(tree, kind, child) else 1.0
                for label, child in zip(labels, children, strict=True)
            ]
            fixed = {"c": _CALL, "f": _FOLD} if "f" in labels else {"c": _CHECK}
            rest = (1 - sum(fixed.values())) / (sum(raises) or 1.0)
            weights = [fixed.get(label, weight * rest) for label, weight in zip(labels, raises, strict=True)]
        total = sum(weights) if count[node] else 1.0
        for child, weight in zip(children, weights, strict=True):
            share[child] = weight / total
    return share


def _closes(tree: CompiledTree, kind: list[int], node: int) -> bool:
    """Whether all that can follow a node's actions is the end of the hand."""
    return all(kind[child] == TERMINAL for child in tree.children(node))


def forecast(game: Game, walks_all: bool) -> Forecast:
    """What one iteration visits under `assumed_play`.

    walks_all  the traverser walks all his actions (external sampling), not one (outcome sampling)
    """
    arrays, parent = game.tree.arrays, game.tree.parent.tolist()
    share, player, kind = assumed_play(game.tree), arrays.player.tolist(), arrays.kind.tolist()
    streets, nodes = game.tree.streets, 0.0
    visits = np.zeros(streets)
    for traverser in (0, 1):
        reach = [1.0] * len(parent)
        for node in range(1, len(parent)):
            over = parent[node]
            explored = walks_all and kind[over] != CHANCE and player[over] == traverser
            reach[node] = reach[over] if explored else reach[over] * share[node]
        reached = np.array(reach)
        nodes += float(reached @ arrays.touched)
        added = np.flatnonzero((arrays.kind == DECISION) & (arrays.player != traverser))
        np.add.at(visits, arrays.block[added] // 2, reached[added])
    return Forecast(nodes, visits)
