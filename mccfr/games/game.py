"""What every game comes down to: a compiled tree and, for the poker family, the cards dealt beside it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mccfr.deal import CardModel
from mccfr.tree import CHANCE, DECISION, CompiledTree


@dataclass(frozen=True)
class Game:
    """A game ready for tables, kernels and evaluation.

    `cards` is None where chance and hidden moves are in the tree.  `offset_chips` is added to player 0's value in
    reports (money in the pot that neither player put there); kernels see the zero-sum game without it.
    """

    name: str
    tree: CompiledTree
    cards: CardModel | None
    offset_chips: float = 0.0
    big_blind_chips: float | None = None
    pot_chips: float = 1.0  # what is in the pot at the root: the scale on which errors of a value are judged

    @property
    def buckets(self) -> npt.NDArray[np.int64]:
        """[2·S] number of buckets of each block (2·street + player)."""
        if self.cards is None:
            return np.ones(2 * self.tree.streets, np.int64)
        return self.cards.buckets.reshape(-1)

    @property
    def infosets(self) -> npt.NDArray[np.int64]:
        """[2·S] number of infosets of each block."""
        return self.tree.row_count * self.buckets

    def counts(self) -> dict[str, object]:
        """The figures that `plan` and `games` print: nodes, decisions and actions by street, infosets."""
        tree, streets = self.tree, self.tree.streets
        decision = tree.arrays.kind == DECISION
        street = tree.arrays.block[decision] // 2
        actions = tree.arrays.count[decision]
        return {
            "nodes": tree.nodes,
            "chance_nodes": int((tree.arrays.kind == CHANCE).sum()),
            "decision_nodes": int(decision.sum()),
            "decision_nodes_per_street": np.bincount(street, minlength=streets).tolist(),
            "actions_per_street": np.bincount(street, weights=actions, minlength=streets).astype(int).tolist(),
            "infosets": int(self.infosets.sum()),
            "infosets_per_player": [int(self.infosets[player::2].sum()) for player in range(2)],
        }
