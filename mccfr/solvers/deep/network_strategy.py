"""Strategies of the networks that a run keeps: the explicit average, or single networks.

In the explicit average (Steinberger 2019, equation 5) every network counts by its weight and its own reach of the
infoset.  Equivalently (theorem 2) one network of each player, drawn by weight, plays the whole hand.  Deep CFR has one
network of the average strategy for each player, whose outputs are probabilities.

If infosets are listed, strategies of all of them are computed at once.  If cards are dealt, they are computed for the
given cards; networks do not know that suits are alike.  If hands have too many classes for a table, all decisions of
given deals are computed (`Strategy.on_deals`).
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from mccfr.common.rng import RESERVOIR, new_stream
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep.averages_as_tables import Tabulation, check_tabulated, deal_classes, hand_classes, is_tabulated
from mccfr.solvers.deep.fitting import softmax
from mccfr.solvers.deep.network import Array
from mccfr.solvers.deep.sampled_cards import NO_CARD, SampledHands, card_values
from mccfr.solvers.deep.sampled_cards_cfr import SampledCardsState, samples_cards
from mccfr.solvers.deep.training_state import HAND_STREAM, LEAST_WEIGHT, Tables, TrainingState, match_regrets
from mccfr.tables.strategy import LazyBlocks, Strategy


def network_tables(tables: Tables) -> Tables:
    """Return {name: array} of the tables that `Networks` needs: networks, and strategy sums if any.

    The memories of samples are left out.  `counters/player{0,1}`, the counts of samples and networks, are set to 0.

    tables  all tables of a run
    """
    arrays = {name: tables[name] for name in tables if name.startswith(("networks/", "strategy_sum/"))}
    return {**arrays, **{f"counters/player{player}": np.zeros(3, np.int64) for player in range(2)}}


def average_tables(average: Sequence[npt.NDArray[np.float32]], iterations: int) -> Tables:
    """Return {name: array} for `Networks` with one network of the average strategy for each player.

    average     [2] × [P] parameters of each player's network
    iterations  number of iterations after which they were fitted
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    for player, parameters in enumerate(average):
        at = f"networks/player{player}"
        arrays |= {f"{at}/parameters": parameters[None], f"{at}/weight": np.ones(1)}
        arrays |= {f"{at}/iteration": np.full(1, iterations), f"counters/player{player}": np.zeros(3, np.int64)}
    return arrays


class Networks:
    """Networks of both players, which can be evaluated for any hand: T networks, P parameters each.

    tables  {name: array}; for each player, with names such as `networks/player0/weight`: `parameters` [T, P], `weight`
            [T] (0: no network there), and `iteration` [T] in which it was fitted
    shares  whether outputs give probabilities by softmax; else they are advantages for regret matching
    """

    def __init__(self, game: Game, config: DeepCfrConfig, tables: Tables, *, shares: bool = False) -> None:
        self.game, self.config, self.tables, self.shares = game, config, tables, shares

    @cached_property
    def _dealt(self) -> SampledCardsState:
        return SampledCardsState(self.game, self.config, self.tables)

    def count(self, player: int) -> int:
        """Return the number of a player's kept networks: those with a weight other than 0."""
        return int(np.count_nonzero(self.tables[f"networks/player{player}/weight"]))

    def sampled_network(self, player: int, seed: int) -> int:
        """Return the index (below T) of a player's network for hand number `seed`.

        Networks are drawn with probabilities in proportion to their weights.
        """
        weights = self.tables[f"networks/player{player}/weight"]
        word = int(new_stream(seed, player + HAND_STREAM, RESERVOIR)[0])
        point = (word >> 11) / 2**53 * float(weights.sum())
        return int(min(np.searchsorted(np.cumsum(weights), point, side="right"), np.flatnonzero(weights)[-1]))

    def iteration(self, player: int, number: int) -> int:
        """Return the iteration in which network `number` of a player was fitted; 0: it plays uniformly."""
        return int(self.tables[f"networks/player{player}/iteration"][number])

    def strategy(self, seed: int | None = None) -> Strategy:
        """Return the average strategy at all infosets or, with a seed, that of one network per player.

        seed  number of a hand, for which each player's network is drawn by weight; None: the average

        Raises `ValueError` if network inputs are cards, and there are too many hands for a table.  Hands that differ
        only by a renaming of suits count once.
        """
        if samples_cards(self.game):
            networks = [self._dealt.networks(player) for player in range(2)]
            if seed is not None:
                places = [self.sampled_network(player, seed) for player in range(2)]
                networks = [[(1.0, self.tables[f"networks/player{p}/parameters"][places[p]])] for p in range(2)]
            return self._average(Tabulation(self._dealt, [hand_classes(self.game, self._dealt.view)] * 2), networks)
        learned = TrainingState(self.game, self.config, self.tables)
        if seed is None and not self.shares:
            keeps_sums = any("strategy_sum" in name for name in self.tables)
            return learned.average("sd", 0) if keeps_sums else learned.average_of_networks()
        sigma, weights = learned.infosets.uniform(), np.zeros(len(learned.infosets))
        for player in range(2):
            number, mine = 0 if seed is None else self.sampled_network(player, seed), learned.infosets.of(player)
            at = f"networks/player{player}"
            output = learned.outputs(player, self.tables[f"{at}/parameters"][number])
            if self.shares:
                sigma[mine] = softmax(output, learned.networks[player][1].legal)
            else:
                learned.play(player, output, sigma)
            weights[mine] = self.tables[f"{at}/weight"][number]
        return learned.averaging.strategy(sigma, weights)

    def on_deals(self, hands: SampledHands) -> Strategy:
        """Return the average strategy on sampled deals: bucket k holds a player's cards of deal k.

        This is for games whose cards are dealt from the whole deck.

        hands  the deals' cards
        """
        classes = [deal_classes(self._dealt.view, hands, player) for player in range(2)]
        return self._average(Tabulation(self._dealt, classes), [self._dealt.networks(player) for player in range(2)])

    def untabled(self) -> Strategy:
        """Return the average strategy of a game that is too large for strategy tables.

        Only its function `on_deals`, for sampled deals, can be used; reading its tables raises `ValueError`.
        """
        none = LazyBlocks[Any](2 * self.game.tree.streets, self._refuse)
        return Strategy(none, none, none, self.on_deals)

    def _refuse(self, block: int) -> NoReturn:
        check_tabulated(self.game)
        raise AssertionError(f"block {block} of {self.game.name} has a table")

    def _average(self, table: Tabulation, networks: Sequence[Sequence[tuple[float, Array]]]) -> Strategy:
        if self.shares:
            return table.strategy([[(LEAST_WEIGHT, mine[0][1])] for mine in networks], shares=True)
        return table.strategy(networks)

    def rows(
        self, node: int, cards: npt.NDArray[np.uint8], seed: int | None = None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return [n, A] action probabilities at a decision for n given hands, and [n] their weights.

        A weight is the sum over networks of a network's weight times the player's own reach.

        node   tree node of the decision; the player is the one who acts there
        cards  [n, C] uint8 the player's hand, then the board; cards of later streets are ignored
        seed   number of the hand that one network plays; None: the explicit average, uniform if no network reaches the
               decision
        """
        tree, arrays = self.game.tree, self.game.tree.arrays
        player, count = int(arrays.player[node]), int(arrays.count[node])
        own = [(a, b - int(arrays.first[a])) for a, b in pairwise(tree.path(node)) if arrays.player[a] == player]
        table = self.tables[f"networks/player{player}/weight"]
        numbers = np.flatnonzero(table) if seed is None else [self.sampled_network(player, seed)]
        sums, weights = np.zeros((len(cards), count)), np.zeros(len(cards))
        for number in numbers:
            parameters = self.tables[f"networks/player{player}/parameters"][number]
            reach = np.full(len(cards), float(table[number]))
            for decision, action in own:
                reach *= self._probabilities(parameters, decision, cards)[:, action]
            probabilities = self._probabilities(parameters, node, cards)[:, :count]
            sums += probabilities * (reach[:, None] if seed is None else 1.0)
            weights += reach
        if seed is None:
            sums = np.where(weights[:, None] > 0, sums / np.maximum(weights, 1e-300)[:, None], 1 / count)
        return sums, weights

    def _probabilities(self, parameters: Array, node: int, cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Return [n, A] action probabilities of one network at a decision, for n hands.

        parameters  [P] of the network
        node        tree node of the decision
        cards       [n, C] uint8 the player's hand, then the board; cards of later streets are ignored
        """
        dealt, arrays = self._dealt, self.game.tree.arrays
        block, count = int(arrays.block[node]), int(arrays.count[node])
        visible = np.array(cards)
        visible[:, 2 + dealt.view.known[block // 2] :] = NO_CARD
        line = np.broadcast_to(dealt.view.lines[node], (len(cards), dealt.view.lines.shape[1]))
        inputs = np.concatenate([card_values(dealt.view, visible), line], axis=1)
        output = dealt.network.forward(parameters, inputs)[-1]
        if self.shares:
            return softmax(output, np.broadcast_to(dealt.view.legal[node], output.shape)).astype(np.float64)
        sigma = np.zeros(output.shape)
        match_regrets(output.astype(np.float64), np.full(len(cards), count), 0, sigma)
        return sigma


def is_unlisted(game: Game) -> bool:
    """Return whether network inputs are cards, and hands are too many for a strategy table.

    Hands that differ only by a renaming of suits count once.
    """
    return samples_cards(game) and not is_tabulated(game)
