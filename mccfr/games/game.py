"""What every game comes down to: a compiled tree and, for the poker family, the cards dealt beside it."""

from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.cards import Cards
from mccfr.cards.deck import STREET_NAMES
from mccfr.cards.strata import Strata
from mccfr.games.betting import BettingRules
from mccfr.trees.compiled import CHANCE, DECISION, CompiledTree


class Rake(NamedTuple):
    """What is taken of a pot before its winner, or those who share it, get the rest: a share, at most `cap` chips."""

    share: float
    cap: float

    def of(self, pot: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Chips that are taken of each pot; of one that a fold ends, the bet that nobody called is no part."""
        return np.minimum(self.share * pot, self.cap)


@dataclass(frozen=True, repr=False)
class Game:
    """A game ready for tables, kernels and evaluation.

    `cards` is `NO_CARDS` where chance and hidden moves are in the tree.  `offset_chips` is added to player 0's value in
    reports (money in the pot that neither player put there); kernels see the zero-sum game without it.
    """

    name: str
    tree: CompiledTree
    cards: Cards
    offset_chips: float = 0.0
    big_blind_chips: float | None = None
    pot_chips: float = 1.0  # what is in the pot at the root: the scale on which errors of a value are judged
    real_rules: BettingRules | None = None  # of the real game, where the tree has a menu of few of its bets
    strata: Strata | None = None  # how deals are shared out, where buckets after the first street are a stratum's
    known_cards: Cards | None = None  # the cards as their owners see them, where `cards` puts hands into buckets
    rake: Rake | None = None  # what one wins is less than what the other loses then; the tree's payoffs are before it
    opponent_cards: Cards | None = None  # in the buckets of opponents, who have others (`SolverConfig.opponents`)

    def won_chips(self, fixed: float, showdown: float, result: float = 0.0) -> tuple[float, float]:
        """Return what each player wins at the end of a hand, in chips without `offset_chips`, rake taken off.

        fixed     chips that player 0 wins whatever the cards (a fold)
        showdown  chips that the winner of a showdown gets from the loser; 0 where there is none
        result    of the showdown: +1 player 0 wins, -1 player 1, 0 the pot is shared
        """
        chips = fixed + showdown * result
        taken = 0.0 if self.rake is None else float(self.rake.of(np.array(2 * max(abs(fixed), showdown))))
        if chips == 0:
            return -taken / 2, -taken / 2
        return (chips - taken, -chips) if chips > 0 else (chips, -chips - taken)

    def __repr__(self) -> str:
        return f"<game {self.name}: {int(self.infosets.sum()):,} infosets>"

    @property
    def is_holdem(self) -> bool:
        """Whether streets have the names of hold'em, and hands its 1,326 combinations."""
        return "holdem" in self.name

    def street_name(self, street: int) -> str | int:
        """A street's name where there is one: "turn" in a hold'em game; elsewhere its number in the tree, from 0."""
        return STREET_NAMES[self.cards.cards_on(street)] if self.is_holdem and self.cards.dealt else street

    @property
    def roles(self) -> tuple[str, str]:
        """What people call the two players."""
        if self.is_holdem:
            return (
                ("big blind", "button")
                if self.street_name(0) == STREET_NAMES[0]
                else ("out of position", "in position")
            )
        arrays = self.tree.arrays
        begins = arrays.player[int(np.argmax(arrays.kind == DECISION))]
        return ("second player", "first player") if begins else ("first player", "second player")

    @property
    def buckets(self) -> npt.NDArray[np.int64]:
        """[2·S] number of buckets of each block (2·street + player)."""
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


def game_problem(game: Game) -> str | None:
    """What is wrong with the fields of a game that a user's function made, as a sentence; None if nothing is."""
    if not isinstance(game.tree, CompiledTree):
        return f"its tree is a {type(game.tree).__name__}; build_tree or build_history_tree makes one"
    if len(game.cards.buckets) != game.tree.streets:
        return f"its tree has {game.tree.streets} streets and its cards {len(game.cards.buckets)}; they must agree"
    if game.rake is not None and not (0 < game.rake.share < 1 and game.rake.cap > 0):
        return f"rake = {game.rake!r} is not allowed; a share between 0 and 1 and a cap above 0 are needed"
    for name, least in (("offset_chips", -inf), ("pot_chips", 0.0), ("big_blind_chips", 0.0)):
        value = getattr(game, name)
        if value is None and name == "big_blind_chips":
            continue
        if not isinstance(value, Real) or not isfinite(value) or value <= least:
            above = f" above {least:g}" if isfinite(least) else ""
            return f"{name} = {value!r} is not allowed; a finite number{above} is needed"
    return None
