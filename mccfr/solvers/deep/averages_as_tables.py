"""Averages of networks with dealt cards as tables: a row for each class of hands and decision.

A class of hands, up to a renaming of suits, is represented by one of its deals.  Classes are handled in parts, and all
networks of an average are evaluated on a part, so that only the strategy is kept.  If there are too many classes for a
table, each deal is a class of its own (`deal_classes`).
"""

from collections.abc import Sequence
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
from mccfr.solvers.deep.training_state import match_regrets
from mccfr.tables.strategy import Strategy, normalise
from mccfr.trees.betting_lines import previous_own_actions
from mccfr.trees.compiled import DECISION, CompiledTree

Floats = npt.NDArray[np.float64]
_CLASSES = 2048  # classes of hands in one evaluation
HERE, BEFORE, NOWHERE = range(3)
"""Values of `BlockDecisions.where`: the player's last decision was on this street, on the one before, or none."""


@dataclass(frozen=True)
class Classes:
    """Classes of hands on a street: n classes, C cards.

    cards   [n, C] uint8  of one deal of the class: hand, then board, then NO_CARD
    before  [n] int64     class of the hand on the street before
    """

    cards: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int64]


class BlockDecisions(NamedTuple):
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


def hand_classes(game: Game, card_view: CardView) -> list[Classes]:
    """Return the classes of hands by street; raise the `ValueError` of `check_tabulated`."""
    check_tabulated(game)
    classes: list[Classes] = []
    tables, hands = game.cards.canonical_tables(), game.cards.at_table().hand_cards
    for street, table in enumerate(tables):
        board_count, count = card_view.known[street], int(game.buckets[2 * street])
        cell = np.flatnonzero(table.ravel() < count)
        first = np.zeros(count, np.int64)
        first[table.ravel()[cell]] = cell
        board, combo = np.divmod(first, COMBO_COUNT)
        cards = np.full((count, card_view.cards), NO_CARD, np.uint8)
        cards[:, :2] = hands[combo]
        if board_count:
            cards[:, 2 : 2 + board_count] = canonical_boards(board_count)[board]
        if street and card_view.known[street - 1]:
            raise ValueError(f"{game.name} deals to the board twice: its average strategies cannot be made tables")
        classes.append(Classes(cards, tables[0][0, combo].astype(np.int64) if street else np.zeros(count, np.int64)))
    return classes


def deal_classes(card_view: CardView, hands: SampledHands, player: int) -> list[Classes]:
    """Return every deal as a class of its own, as a player sees it, by street."""
    itself = np.arange(len(hands))
    return [Classes(hands.visible_cards(player, board, card_view.cards), itself) for board in card_view.known]


def block_decisions(tree: CompiledTree, block: int) -> BlockDecisions:
    """Return the decisions of a block by row.

    A player who acts on every street has its decision before at most one street back.
    """
    arrays = tree.arrays
    nodes = np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block))
    nodes = nodes[np.argsort(arrays.row[nodes])]
    where, row, action = np.full(len(nodes), NOWHERE), np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    children = previous_own_actions(tree)
    for position, node in enumerate(nodes.tolist()):
        if (child := children[node]) >= 0:
            decision = int(tree.parent[child])
            where[position] = HERE if arrays.block[decision] == block else BEFORE
            row[position], action[position] = arrays.row[decision], child - arrays.first[decision]
    count = arrays.count[nodes].astype(np.int64)
    return BlockDecisions(nodes, count, np.concatenate([[0], np.cumsum(count)]), where, row, action)


@njit
def meet_all(hands, lines, out):
    """Set out [n·R, U] = max(hands [n, U] + lines [R, U], 0) for all pairs, in place."""
    for hand in range(hands.shape[0]):
        for line in range(lines.shape[0]):
            row = hand * lines.shape[0] + line
            for k in range(out.shape[1]):
                out[row, k] = max(hands[hand, k] + lines[line, k], np.float32(0.0))


@njit
def _multiply_by_reach(own, before, reach_before, sigma):
    """Multiply strategies sigma [n, R, A] by own reach, in place.

    before        [n] class on the street before
    reach_before  [classes, R', A] own reach times strategy on the street before

    The player's decision before one on the same street has a lower row.
    """
    for hand in range(sigma.shape[0]):
        for row in range(sigma.shape[1]):
            reach = 1.0
            if own.where[row] == HERE:
                reach = sigma[hand, own.row[row], own.action[row]]
            elif own.where[row] == BEFORE:
                reach = reach_before[before[hand], own.row[row], own.action[row]]
            for k in range(own.actions[row]):
                sigma[hand, row, k] *= reach


@njit
def _add(own, weight, shares, sums):
    """Add weight · shares [n, R, A] to sums [n, slots], in place."""
    for hand in range(shares.shape[0]):
        for row in range(shares.shape[1]):
            for k in range(own.actions[row]):
                sums[hand, own.start[row] + k] += weight * shares[hand, row, k]


class Tabulation:
    """Strategies of networks on classes of hands, as a table with a row for each."""

    def __init__(self, state: SampledCardsState, classes: Sequence[Sequence[Classes]]) -> None:
        """Prepare `classes` by player and street, from `hand_classes` (for both players) or `deal_classes`."""
        self._state, self._classes = state, classes
        self._width = state.view.legal.shape[1]

    def strategy(self, networks: Sequence[Sequence[tuple[float, Array]]], *, shares: bool = False) -> Strategy:
        """Return the average of both players' networks, by weight and own reach (equation 5).

        networks  (weight, parameters) of each network, by player
        shares    whether outputs are probabilities of an average strategy; then there is one network of each player,
                  and own reach does not count
        """
        tables = [self._table(player, networks[player], shares) for player in range(2)]
        probability, weight = zip(*(pair for street in zip(*tables, strict=True) for pair in street), strict=True)
        return Strategy(probability, weight)

    def _outputs(
        self, decisions: BlockDecisions, parameters: Array, values: npt.NDArray[np.float32], shares: bool
    ) -> Floats:
        """Return [n, R, A] a network's strategy for cards [n, card columns] at all decisions of a block."""
        parts, lines = self._state.apart, self._state.view.lines[decisions.node]
        joined = np.empty((len(values) * len(decisions.node), parts.width), np.float32)
        meet_all(parts.cards(parameters, values), parts.bets(parameters, lines), joined)
        output = parts.rest(parameters, joined)
        if shares:
            sigma = softmax(output, np.tile(self._state.view.legal[decisions.node], (len(values), 1))).astype(
                np.float64
            )
        else:
            sigma = np.zeros(output.shape)
            match_regrets(output.astype(np.float64), np.tile(decisions.actions, len(values)), 0, sigma)
        return sigma.reshape(len(values), len(decisions.node), self._width)

    def _table(self, player: int, networks: Sequence[tuple[float, Array]], shares: bool) -> list[tuple[Floats, Floats]]:
        """Return (probabilities [classes, slots], weights [classes, rows]) of a player's blocks by street."""
        blocks = []
        reach_before = [np.zeros((1, 1, self._width)) for _ in networks]
        for street, classes in enumerate(self._classes[player]):
            own, count = block_decisions(self._state.game.tree, 2 * street + player), len(classes.before)
            is_last = street == len(self._classes[player]) - 1
            sums, weights = np.zeros((count, int(own.start[-1]))), np.zeros((count, len(own.node)))
            reaches: list[list[Floats]] = [[] for _ in networks]
            for first in range(0, count, _CLASSES):
                part = slice(first, first + _CLASSES)
                values = card_values(self._state.view, classes.cards[part])
                for number, (weight, parameters) in enumerate(networks):
                    sigma = self._outputs(own, parameters, values, shares)
                    if not shares:
                        _multiply_by_reach(own, classes.before[part], reach_before[number], sigma)
                    _add(own, weight, sigma, sums[part])
                    if not is_last and not shares:
                        reaches[number].append(sigma)
                normalise(sums[part], own.start, sums[part], weights[part])
            if not is_last and not shares:
                reach_before = [np.concatenate(pieces) for pieces in reaches]
            blocks.append((sums, weights))
        return blocks
