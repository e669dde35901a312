"""The common form of all games: a compiled tree and, in most poker games, cards not in the tree."""

from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import Cards
from mccfr.cards.board_strata import Strata
from mccfr.cards.card_index import IndexedCards
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.full_deck import STREET_NAMES
from mccfr.games.betting import BettingRules
from mccfr.games.holdem_betting import seat_names
from mccfr.trees.compiled import CHANCE, DECISION, CompiledTree

_ORDER = ("first", "second", "third", "fourth", "fifth", "sixth")


class Rake(NamedTuple):
    """Rake: a share of the pot, at most `cap` chips, that is taken before the pot is paid."""

    share: float
    cap: float

    def of(self, pot: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the rake of each pot, in chips.

        pot  chips of each pot, an array; after a fold without the uncalled bet
        """
        return np.minimum(self.share * pot, self.cap)


@dataclass(frozen=True, repr=False)
class Game:
    """A game as solvers and evaluations take it: a compiled tree, its cards, and amounts in chips.

    `cards` is `NO_CARDS` if the tree itself contains chance nodes and moves that a player does not see. Reports add
    `offset_chips` to player 0's value: half the pot if its chips come from neither player, as in the clairvoyance game;
    by default 0. Kernels compute the zero-sum game without it.
    """

    name: str
    tree: CompiledTree
    cards: Cards
    offset_chips: float = 0.0
    big_blind_chips: float | None = None
    pot_chips: float = 1.0  # chips in the pot at the root: the scale for errors of a value
    real_rules: BettingRules | None = None  # full betting rules, if the tree contains only some legal amounts
    strata: Strata | None = None  # strata of the deals, if buckets after the first street are numbered by stratum
    known_cards: Cards | None = None  # the cards before an abstraction was applied, if `cards` has one
    rake: Rake | None = None  # the players' payoffs do not sum to 0 then; payoffs in the tree are before rake
    opponent_cards: Cards | None = None  # cards in the opponents' abstraction, if different (`SolverConfig.opponents`)

    def listed_cards(self) -> ListedCards:
        """Return the cards with arrays of all hands and boards.

        Raises `ValueError` for too many boards or players, and without cards.
        """
        return self.cards.listed()

    def table_cards(self) -> IndexedCards:
        """Return the cards in a form with numbered hands, for playing; `ValueError` without cards."""
        return self.cards.at_table()

    def won_chips(self, fixed: float, showdown: float, result: float = 0.0) -> tuple[float, float]:
        """Return the net chips that each of two players wins at the end of a hand, after rake.

        The result is (player 0's chips, player 1's chips), without `offset_chips`.

        fixed     chips that player 0 wins independent of the cards, by a fold; negative: a loss
        showdown  chips that the winner of a showdown gets from the loser; 0 without a showdown
        result    showdown: +1 if player 0 wins, -1 if player 1 wins, 0 if the pot is split
        """
        chips = fixed + showdown * result
        rake_chips = 0.0 if self.rake is None else float(self.rake.of(np.array(2 * max(abs(fixed), showdown))))
        if chips == 0:
            return -rake_chips / 2, -rake_chips / 2
        return (chips - rake_chips, -chips) if chips > 0 else (chips, -chips - rake_chips)

    def __repr__(self) -> str:
        return f"<game {self.name}: {int(self.infosets.sum()):,} infosets>"

    @property
    def is_holdem(self) -> bool:
        """True for hold'em games, with named streets and 1,326 hands."""
        return "holdem" in self.name

    def street_name(self, street: int) -> str | int:
        """Return a street's name in hold'em, such as "turn", or its number in other games."""
        return STREET_NAMES[self.cards.cards_on(street)] if self.is_holdem and self.cards.dealt else street

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the players for display, by player number, such as ("big blind", "button")."""
        if self.tree.players > 2 and self.is_holdem:
            return tuple(name.replace("_", " ") for name in seat_names(self.tree.players))
        if self.tree.players > 2:
            return tuple(f"{order} player" for order in _ORDER[: self.tree.players])
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
        """[P·S] number of buckets of each player on each street, for P players and S streets.

        Index P·street + player belongs to one street and player.
        """
        return self.cards.buckets.reshape(-1)

    @property
    def infosets(self) -> npt.NDArray[np.int64]:
        """[P·S] number of infosets of each player on each street, for P players and S streets.

        Index P·street + player belongs to one street and player. The number is that of the player's decisions on
        the street times that of its buckets there. In a tree with the cards in it, each infoset is one row of the
        tables.
        """
        return self.tree.row_count * self.buckets

    def check_two_players(self, what: str) -> None:
        """Raise `ValueError` if the game has three or more players.

        what  method or command that needs two, as the beginning of the message
        """
        if self.tree.players > 2:
            response = "trained-response" if self.cards.dealt else "exact"
            raise ValueError(
                f"{what} is for two players, and {self.name} has {self.tree.players}: mccfr evaluate --method "
                f"{response} gives each player's gain of another strategy"
            )

    def counts(self) -> dict[str, object]:
        """Return {name: number or list of numbers} with sizes of the game.

        They are nodes, chance nodes, decisions and actions by street, and infosets. `mccfr plan` and `mccfr games`
        print them, and policies store them.
        """
        tree, streets = self.tree, self.tree.streets
        decision = tree.arrays.kind == DECISION
        street = tree.arrays.block[decision] // tree.players
        actions = tree.arrays.count[decision]
        return {
            "nodes": tree.nodes,
            "chance_nodes": int((tree.arrays.kind == CHANCE).sum()),
            "decision_nodes": int(decision.sum()),
            "decision_nodes_per_street": np.bincount(street, minlength=streets).tolist(),
            "actions_per_street": np.bincount(street, weights=actions, minlength=streets).astype(int).tolist(),
            **self._counts_by_players(street, decision),
            "infosets": int(self.infosets.sum()),
            "infosets_per_player": [int(self.infosets[player :: tree.players].sum()) for player in range(tree.players)],
        }

    def _counts_by_players(
        self, street: npt.NDArray[np.int8], decision: npt.NDArray[np.bool_]
    ) -> dict[str, list[list[int]]]:
        """Return the numbers of decisions by street and number of players left; {} for two players.

        The only key is `decision_nodes_by_players_left`, with a list for each street. Its entry n counts the decisions
        with n + 2 players who have not folded. A tree that does not record the chips put in (`put_in`) gives {} too.

        street    [D] street of each decision
        decision  [N] True for nodes that are decisions
        """
        tree = self.tree
        if tree.players == 2 or tree.put_in is None:
            return {}
        left = [tree.players] * len(tree.parent)
        for node, above in enumerate(tree.parent[1:].tolist(), 1):
            left[node] = left[above] - (tree.label[node] == "f")
        table = np.zeros((tree.streets, tree.players - 1), np.int64)
        np.add.at(table, (street, np.array(left)[decision] - 2), 1)
        return {"decision_nodes_by_players_left": table.tolist()}


def game_problem(game: Game) -> str | None:
    """Return a sentence about the first invalid field of a user-defined game, or None."""
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
