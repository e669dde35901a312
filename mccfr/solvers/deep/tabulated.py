"""Averages of networks that see dealt cards as ordinary strategies: a row for every class of hands and every decision.

A class of hands, up to a renaming of suits, is seen through one of its deals.  Classes are taken some at a time, and
all networks of an average evaluated on them, so that nothing is kept but the strategy itself.  A player's reach goes
along his own decisions; what it is at the end of a street follows from the class that a hand had there.

Where classes are too many for a table, deals may stand for them: each is a class of its own (`deal_classes`).
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
from mccfr.solvers.deep.dealt import NO_CARD, CardView, DealtHands, card_values
from mccfr.solvers.deep.dealt_cfr import Dealt
from mccfr.solvers.deep.fitting import softmax
from mccfr.solvers.deep.learned import LEAST_WEIGHT, match_regrets
from mccfr.solvers.deep.network import Array
from mccfr.tables.strategy import Strategy, normalise
from mccfr.trees.compiled import DECISION, CompiledTree
from mccfr.trees.lines import own_actions

_CLASSES = 2048  # of hands, that are evaluated at a time
HERE, BEFORE, NOWHERE = range(3)
"""In `Own.where`: on which street a player's last decision was: this one, the one before, or none."""


@dataclass(frozen=True)
class Classes:
    """Classes of hands on a street.  n of them, C cards.

    cards   [n, C] uint8  of a deal of the class: hand, then board, NO_CARD beyond
    before  [n] int64     the class that the hand had on the street before
    """

    cards: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int64]


class Own(NamedTuple):
    """Decisions of a block by row.  R of them.

    node    [R] int64
    actions [R] int64  how many
    start   [R+1] int64  first slot of each
    where   [R] int64  of the player's last decision before it: HERE, BEFORE or NOWHERE
    row     [R] int64  its row there
    action  [R] int64  what he did
    """

    node: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    where: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]


def is_tabulated(game: Game) -> bool:
    """Whether hands of dealt cards have few enough classes for a table."""
    return game.cards.boards is None and game.cards.can_list


def check_tabulated(game: Game) -> None:
    """Raise `ValueError` where hands have too many classes for a table."""
    if not is_tabulated(game):
        raise ValueError(
            f"{game.name} with {game.cards.cards_on(game.tree.streets - 1)} board cards has "
            f"{int(game.infosets.sum()):,} infosets: an average strategy of networks cannot be made a table there"
        )


def hand_classes(game: Game, seen: CardView) -> list[Classes]:
    """Classes of hands by street; raises as `check_tabulated`."""
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


def deal_classes(seen: CardView, hands: DealtHands, player: int) -> list[Classes]:
    """Every deal as a class of its own, as a player sees it, by street."""
    itself = np.arange(len(hands))
    return [Classes(hands.seen(player, known, seen.cards), itself) for known in seen.known]


def own_decisions(tree: CompiledTree, block: int) -> Own:
    """The decisions of a block, by row; a player's last one is at most a street back, where he acts on every street."""
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
    """out [n·R, U] = hands [n, U] + lines [R, U], cut below 0, in place."""
    for hand in range(hands.shape[0]):
        for line in range(lines.shape[0]):
            row = hand * lines.shape[0] + line
            for k in range(out.shape[1]):
                out[row, k] = max(hands[hand, k] + lines[line, k], np.float32(0.0))


@njit
def _go_on(own, sigma, before, gone_before, gone):
    """gone [n, R, A] = reach · sigma [n, R, A] of the player's own actions, in place.

    before [n] class on the street before, gone_before [classes, R', A] the same there.  A decision's last one has a
    lower row.
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
    """Strategies of networks on classes of hands, of which a table has a row each."""

    def __init__(self, dealt: Dealt, classes: Sequence[Sequence[Classes]]) -> None:
        """`classes` by player and street, as `hand_classes` (for both players) and `deal_classes` have them."""
        self._dealt, self._classes = dealt, classes
        self._width = dealt.view.legal.shape[1]

    def explicit(self, networks: Sequence[Sequence[tuple[float, Array]]]) -> Strategy:
        """The average of both players' networks, (weight, parameters) each: by weight and own reach (equation 5)."""
        return self._strategy(lambda player: self._averaged(player, networks[player]))

    def shares(self, parameters: Sequence[Array]) -> Strategy:
        """What both players' networks of average strategies say."""
        return self._strategy(lambda player: self._said(player, parameters[player]))

    def _strategy(self, of: Callable[[int], list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]]) -> Strategy:
        made = [of(player) for player in range(2)]
        pairs = [made[player][street] for street in range(len(self._classes[0])) for player in range(2)]
        return Strategy(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))

    def rows(self, own: Own, parameters: Array, values: npt.NDArray[np.float32]) -> Array:
        """[n·R, A] what a network says of cards [n, card columns] at all decisions of a block."""
        apart, lines = self._dealt.apart, self._dealt.view.lines[own.node]
        joined = np.empty((len(values) * len(own.node), apart.width), np.float32)
        meet_all(apart.cards(parameters, values), apart.bets(parameters, lines), joined)
        return apart.rest(parameters, joined)

    def played(self, own: Own, parameters: Array, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """[n, R, A] what a network plays there, by regret matching."""
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
