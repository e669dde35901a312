"""Averages of networks with dealt cards as tables: a row for each class of hands and decision.

A class of hands, up to a renaming of suits, is represented by one of its deals.  Classes are handled in parts, and all
networks of an average are evaluated on a part, so that only the strategy is kept.  If there are too many classes for a
table, each deal is a class of its own (`deal_classes`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import canonical_boards
from abstraction.cards import COMBO_COUNT
from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.solvers.deep.fitting import softmax
from mccfr.solvers.deep.network import Array
from mccfr.solvers.deep.sampled_cards import NO_CARD, CardView, SampledHands, card_values
from mccfr.solvers.deep.sampled_cards_cfr import SampledCardsState
from mccfr.solvers.deep.training_state import LEAST_WEIGHT, match_regrets
from mccfr.tables.strategy import Strategy, normalise
from mccfr.trees.betting_lines import own_actions
from mccfr.trees.compiled import DECISION, CompiledTree

_CLASSES = 2048  # classes of hands in one evaluation
HERE, BEFORE, NOWHERE = range(3)
"""Values of `Own.where`: the player's last decision was on this street, on the one before, or none."""


@dataclass(frozen=True)
class Classes:
    """Classes of hands on a street: n classes, C cards.

    cards   [n, C] uint8  of one deal of the class: hand, then board, then NO_CARD
    before  [n] int64     class of the hand on the street before
    """

    cards: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int64]


class Own(NamedTuple):
    """Decisions of a block by row; R rows.

    node     [R] int64    decision
    actions  [R] int64    number of actions
    start    [R+1] int64  first slot of each row, and the end of the last
    where    [R] int64    street of the player's decision before: HERE, BEFORE or NOWHERE
    row      [R] int64    row of that decision
    action   [R] int64    action taken there
    """

    node: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    where: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]


def is_tabulated(game: Game) -> bool:
    """Return whether hands of dealt cards have few enough classes for a table."""
    return game.cards.boards is None and game.cards.can_list


def check_tabulated(game: Game) -> None:
    """Raise `ValueError` if hands have too many classes for a table."""
    if not is_tabulated(game):
        raise ValueError(
            f"{game.name} with {game.cards.cards_on(game.tree.streets - 1)} board cards has "
            f"{int(game.infosets.sum()):,} infosets: an average strategy of networks cannot be made a table there"
        )


def hand_classes(game: Game, seen: CardView) -> list[Classes]:
    """Return the classes of hands by street; raise the `ValueError` of `check_tabulated`."""
    check_tabulated(game)
    found: list[Classes] = []
    tables, hands = game.cards.canonical_tables(), game.cards.at_table().hand_cards
    for street, table in enumerate(tables):
        known, count = seen.known[street], int(game.buckets[2 * street])
        place = np.flatnonzero(table.ravel() < count)
        first = np.zeros(count, np.int64)
        first[table.ravel()[place]] = place
        board, combo = np.divmod(first, COMBO_COUNT)
        cards = np.full((count, seen.cards), NO_CARD, np.uint8)
        cards[:, :2] = hands[combo]
        if known:
            cards[:, 2 : 2 + known] = canonical_boards(known)[board]
        if street and seen.known[street - 1]:
            raise ValueError(f"{game.name} deals to the board twice: its average strategies cannot be made tables")
        found.append(Classes(cards, tables[0][0, combo].astype(np.int64) if street else np.zeros(count, np.int64)))
    return found


def deal_classes(seen: CardView, hands: SampledHands, player: int) -> list[Classes]:
    """Return every deal as a class of its own, as a player sees it, by street."""
    itself = np.arange(len(hands))
    return [Classes(hands.seen(player, known, seen.cards), itself) for known in seen.known]


def own_decisions(tree: CompiledTree, block: int) -> Own:
    """Return the decisions of a block by row.

    A player who acts on every street has its decision before at most one street back.
    """
    arrays = tree.arrays
    nodes = np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block))
    nodes = nodes[np.argsort(arrays.row[nodes])]
    where, row, action = np.full(len(nodes), NOWHERE), np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    taken = own_actions(tree)
    for place, node in enumerate(nodes.tolist()):
        if (child := taken[node]) >= 0:
            over = int(tree.parent[child])
            where[place] = HERE if arrays.block[over] == block else BEFORE
            row[place], action[place] = arrays.row[over], child - arrays.first[over]
    count = arrays.count[nodes].astype(np.int64)
    return Own(nodes, count, np.concatenate([[0], np.cumsum(count)]), where, row, action)


@njit
def meet_all(hands, lines, out):
    """Set out [n·R, U] = max(hands [n, U] + lines [R, U], 0) for all pairs, in place."""
    for hand in range(hands.shape[0]):
        for line in range(lines.shape[0]):
            row = hand * lines.shape[0] + line
            for k in range(out.shape[1]):
                out[row, k] = max(hands[hand, k] + lines[line, k], np.float32(0.0))


@njit
def _go_on(own, sigma, before, gone_before, gone):
    """Set gone [n, R, A] to own reach times sigma [n, R, A], in place.

    before       [n] class on the street before
    gone_before  [classes, R', A] the same on the street before

    The player's decision before one on the same street has a lower row.
    """
    for hand in range(sigma.shape[0]):
        for row in range(sigma.shape[1]):
            reach = 1.0
            if own.where[row] == HERE:
                reach = gone[hand, own.row[row], own.action[row]]
            elif own.where[row] == BEFORE:
                reach = gone_before[before[hand], own.row[row], own.action[row]]
            for k in range(own.actions[row]):
                gone[hand, row, k] = reach * sigma[hand, row, k]


@njit
def _add(own, weight, gone, sums):
    """Add weight · gone [n, R, A] to sums [n, slots], in place."""
    for hand in range(gone.shape[0]):
        for row in range(gone.shape[1]):
            for k in range(own.actions[row]):
                sums[hand, own.start[row] + k] += weight * gone[hand, row, k]


class Tabulation:
    """Strategies of networks on classes of hands, as a table with a row for each."""

    def __init__(self, dealt: SampledCardsState, classes: Sequence[Sequence[Classes]]) -> None:
        """Prepare `classes` by player and street, from `hand_classes` (for both players) or `deal_classes`."""
        self._dealt, self._classes = dealt, classes
        self._width = dealt.view.legal.shape[1]

    def explicit(self, networks: Sequence[Sequence[tuple[float, Array]]]) -> Strategy:
        """Return the average of both players' networks, by weight and own reach (equation 5).

        networks  (weight, parameters) of each network, by player
        """
        return self._strategy(lambda player: self._averaged(player, networks[player]))

    def shares(self, parameters: Sequence[Array]) -> Strategy:
        """Return the strategy given by both players' networks of average strategies."""
        return self._strategy(lambda player: self._said(player, parameters[player]))

    def _strategy(self, of: Callable[[int], list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]]) -> Strategy:
        made = [of(player) for player in range(2)]
        pairs = [made[player][street] for street in range(len(self._classes[0])) for player in range(2)]
        return Strategy(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))

    def rows(self, own: Own, parameters: Array, values: npt.NDArray[np.float32]) -> Array:
        """Return [n·R, A] network outputs for cards [n, card columns] at all decisions of a block."""
        apart, lines = self._dealt.apart, self._dealt.view.lines[own.node]
        joined = np.empty((len(values) * len(own.node), apart.width), np.float32)
        meet_all(apart.cards(parameters, values), apart.bets(parameters, lines), joined)
        return apart.rest(parameters, joined)

    def played(self, own: Own, parameters: Array, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return [n, R, A] the network's strategy there, by regret matching."""
        advantage = self.rows(own, parameters, values).astype(np.float64)
        sigma = np.zeros_like(advantage)
        match_regrets(advantage, np.tile(own.actions, len(values)), 0, sigma)
        return sigma.reshape(len(values), len(own.node), self._width)

    def _averaged(
        self, player: int, networks: Sequence[tuple[float, Array]]
    ) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        game, made = self._dealt.game, []
        gone_before = [np.zeros((1, 1, self._width)) for _ in networks]
        for street, classes in enumerate(self._classes[player]):
            own, last = own_decisions(game.tree, 2 * street + player), street == len(self._classes[player]) - 1
            sums, weights = self._room(own, classes)
            kept: list[list[npt.NDArray[np.float64]]] = [[] for _ in networks]
            for first in range(0, len(classes.before), _CLASSES):
                part = slice(first, first + _CLASSES)
                values = card_values(self._dealt.view, classes.cards[part])
                for number, (weight, parameters) in enumerate(networks):
                    sigma = self.played(own, parameters, values)
                    gone = np.zeros_like(sigma)
                    _go_on(own, sigma, classes.before[part], gone_before[number], gone)
                    _add(own, weight, gone, sums[part])
                    if not last:
                        kept[number].append(gone)
                normalise(sums[part], own.start, sums[part], weights[part])
            if not last:
                gone_before = [np.concatenate(pieces) for pieces in kept]
            made.append((sums, weights))
        return made

    def _said(self, player: int, parameters: Array) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
        made = []
        for street, classes in enumerate(self._classes[player]):
            own = own_decisions(self._dealt.game.tree, 2 * street + player)
            sums, weights = self._room(own, classes)
            legal = self._dealt.view.legal[own.node]
            for first in range(0, len(classes.before), _CLASSES):
                part = slice(first, first + _CLASSES)
                values = card_values(self._dealt.view, classes.cards[part])
                found = softmax(self.rows(own, parameters, values), np.tile(legal, (len(values), 1)))
                gone = found.reshape(len(values), len(own.node), self._width).astype(np.float64)
                _add(own, LEAST_WEIGHT, gone, sums[part])
                normalise(sums[part], own.start, sums[part], weights[part])
            made.append((sums, weights))
        return made

    @staticmethod
    def _room(own: Own, classes: Classes) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        count = len(classes.before)
        return np.zeros((count, int(own.start[-1]))), np.zeros((count, len(own.node)))
