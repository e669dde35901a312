"""Computes the average strategy of networks as a table, for games dealt from the whole deck.

The average is that of Single Deep CFR (Steinberger 2019, equation 5).  Each network's strategy is weighted by the
network's weight and by the player's own reach with that network's strategies.  Deep CFR's average has one network for
each player (Brown, Lerer, Gross & Sandholm 2019), whose probabilities enter the table without own reach.

A table has a row for each class of hands and each decision.  A class of hands is a hand and board up to a renaming of
suits; one deal represents it.  If there are too many classes for a table, sampled deals take their place, each a class
of its own (`deal_classes`).

Classes are handled in parts, and all networks of an average are evaluated on a part before the next.  On all streets
but the last, each network's strategies times own reach are kept for the next street.  Deep CFR's average needs none.
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
"""Values of `BlockDecisions.where`: the player's previous decision was on this street, on the one before, or none."""


@dataclass(frozen=True)
class Classes:
    """The n classes of hands on a street.

    A class is all hands with boards that differ only by a renaming of suits, or a single deal.

    cards   [n, C] uint8  cards of one deal of each class: hand, board, and NO_CARD up to C, the most a player sees
    before  [n] int64     class that the same hand has on the street before; on the first street not used
    """

    cards: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int64]


class BlockDecisions(NamedTuple):
    """The R decisions of a player on a street (a block), with the player's previous decision.

    A decision is a row of the block's strategy table; a slot is a column of it, one action of one decision.

    node     [R] int64    tree node of the decision
    actions  [R] int64    number of actions
    start    [R+1] int64  first slot of each row, and the end of the last
    where    [R] int64    where the player's previous decision is: HERE (on this street), BEFORE (on the street before),
                          or NOWHERE (there is none)
    row      [R] int64    row of that previous decision in its block; 0 if NOWHERE
    action   [R] int64    index of the action taken at it; 0 if NOWHERE
    """

    node: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    where: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]


def is_tabulated(game: Game) -> bool:
    """Return whether networks' average strategy can be tabulated in a game.

    The game must deal from the whole deck, and have few enough classes of hands (equal up to suits) to list.
    """
    return game.cards.boards is None and game.cards.can_list


def check_tabulated(game: Game) -> None:
    """Raise `ValueError` unless networks' average strategy can be tabulated in a game.

    `is_tabulated` states the conditions.
    """
    if not is_tabulated(game):
        raise ValueError(
            f"{game.name} with {game.cards.cards_on(game.tree.streets - 1)} board cards has "
            f"{int(game.infosets.sum()):,} infosets: an average strategy of networks cannot be made a table there"
        )


def hand_classes(game: Game, card_view: CardView) -> list[Classes]:
    """Return a list by street of the `Classes` of hands and boards that are equal up to suits.

    card_view  constants of the networks' inputs, such as the numbers of cards that a player sees on each street

    Raises `ValueError` if there are too many for a table, and for games with board cards before the last street.
    """
    check_tabulated(game)
    classes: list[Classes] = []
    tables, hands = game.cards.canonical_tables(), game.table_cards().hand_cards
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
    """Return a list by street of `Classes` for K sampled deals, each deal a class of its own.

    Class k has the cards of deal k that the player sees on that street.

    card_view  gives the number of board cards on each street
    hands      the K deals
    """
    itself = np.arange(len(hands))
    return [Classes(hands.visible_cards(player, board, card_view.cards), itself) for board in card_view.known]


def block_decisions(tree: CompiledTree, block: int) -> BlockDecisions:
    """Return the decisions of one player on one street, in the order of their table rows.

    The player must act on every street, so that its previous decision is on this street or on the one before.

    block  2·street + player
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
    """Compute a network layer for all pairs of n hand classes and R decisions, in place.

    The layer is the first that combines cards and bets. Its output is a term of the cards plus a term of the betting
    line, or 0 if that is negative: out[h·R + r] = max(hands[h] + lines[r], 0).

    hands  [n, U] float32     term of each class of hands, for U units
    lines  [R, U] float32     term of each decision's betting line
    out    [n·R, U] float32   the layer's output
    """
    for hand in range(hands.shape[0]):
        for line in range(lines.shape[0]):
            row = hand * lines.shape[0] + line
            for k in range(out.shape[1]):
                out[row, k] = max(hands[hand, k] + lines[line, k], np.float32(0.0))


@njit
def _multiply_by_reach(own, before, reach_before, sigma):
    """Multiply a player's strategies on a street by the player's own reach of each decision, in place.

    own           BlockDecisions of the player on the street
    before        [n] int64 class of each hand on the street before
    reach_before  [classes, R', A] float64 own reach times strategy on the street before, which has R' rows
    sigma         [n, R, A] float64 strategies of n classes of hands; receives own reach times strategy

    On one street the previous decision has a lower row, so its own reach is already in `sigma`.
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
    """Add weight · shares, of one network, to the strategy sums of a player on a street, in place.

    own     BlockDecisions of the player on the street
    weight  weight of the network
    shares  [n, R, A] float64 strategies of n classes of hands; for Single Deep CFR times own reach
    sums    [n, slots] float64 strategy sums; a slot is one action of a decision
    """
    for hand in range(shares.shape[0]):
        for row in range(shares.shape[1]):
            for k in range(own.actions[row]):
                sums[hand, own.start[row] + k] += weight * shares[hand, row, k]


class Tabulation:
    """Computes both players' average strategy from networks, with a row for each class of hands.

    It serves evaluations and exports, which read strategies as tables.
    """

    def __init__(self, state: SampledCardsState, classes: Sequence[Sequence[Classes]]) -> None:
        """Prepare the computation of tables for given classes of hands; `strategy` computes them.

        state    game, inputs and layers of the networks
        classes  [player][street] classes of hands, from `hand_classes` (the same for both players) or `deal_classes`
        """
        self._state, self._classes = state, classes
        self._width = state.view.legal.shape[1]

    def strategy(self, networks: Sequence[Sequence[tuple[float, Array]]], *, shares: bool = False) -> Strategy:
        """Return the average strategy of networks, weighted by their weights and own reach.

        Source: Steinberger 2019, equation 5. A player's own reach is the product of its own action probabilities.

        networks  [player] list of (weight, parameters [P]) of each network
        shares    True: outputs give the probabilities of Deep CFR's average strategy by a softmax, each player has one
                  network, and own reach does not count; False: outputs are advantages for regret matching
        """
        tables = [self._table(player, networks[player], shares) for player in range(2)]
        probability, weight = zip(*(pair for street in zip(*tables, strict=True) for pair in street), strict=True)
        return Strategy(probability, weight)

    def _outputs(
        self, decisions: BlockDecisions, parameters: Array, values: npt.NDArray[np.float32], shares: bool
    ) -> Floats:
        """Return [n, R, A] float64 a network's strategy for n classes of hands at the R decisions of a block.

        decisions   the R decisions of one player on one street
        parameters  [P] float32 parameters of the network
        values      [n, card columns] network inputs of each class's cards
        shares      True: probabilities by a softmax of the outputs; False: by regret matching
        """
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
        """Return a list by street of a player's (probabilities [classes, slots], weights [classes, rows]).

        A row is one decision, a slot one action of it.  A weight is the sum over networks of weight times own reach;
        with `shares` it is the network's weight.

        networks  (weight, parameters [P]) of each network
        shares    True: outputs give Deep CFR's probabilities by a softmax; False: advantages for regret matching
        """
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
