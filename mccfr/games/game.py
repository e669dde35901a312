"""What every game comes down to: a compiled tree and, for the poker family, the cards dealt beside it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mccfr.deal import CardModel
from mccfr.games.holdem_deck import HoldemDeck
from mccfr.tree import CHANCE, DECISION, CompiledTree


@dataclass(frozen=True)
class Game:
    """A game ready for tables, kernels and evaluation.

    `cards` is None where chance and hidden moves are in the tree, and a deck where boards are too many to list.
    `offset_chips` is added to player 0's value in
    reports (money in the pot that neither player put there); kernels see the zero-sum game without it.
    """

    name: str
    tree: CompiledTree
    cards: CardModel | HoldemDeck | None
    offset_chips: float = 0.0
    big_blind_chips: float | None = None
    pot_chips: float = 1.0  # what is in the pot at the root: the scale on which errors of a value are judged

    @property
    def card_model(self) -> CardModel | None:
        """The listed cards of the game, None if it has none; `ValueError` for whole hold'em, which lists no boards."""
        if isinstance(self.cards, HoldemDeck):
            raise ValueError(
                f"{self.name} has too many boards to list them: this works for small games and endgames only"
            )
        return self.cards

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
