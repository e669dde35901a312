"""Deep CFR and Single Deep CFR with cards dealt from the whole deck, if infosets are too many to list.

There are three differences to Deep CFR with listed infosets (`mccfr.solvers.deep.single_deep_cfr`).  Traversals go down
the tree together, and networks are evaluated only where they arrive.  Samples name a decision and cards.  The explicit
average is computed on demand, over every kept network.

Network outputs are advantages in units of the pot at the root, so that they are not far from 1.  Regret matching does
not depend on the unit.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.parallel import run_ranges
from abstraction.recipe import LOSSLESS_BUCKETS
from mccfr.cards.full_deck import STREET_NAMES
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep.fitting import Batch
from mccfr.solvers.deep.lockstep import LockstepSamples, Strategies, fill_words, traverse
from mccfr.solvers.deep.network import Array, Network, SplitNetwork, branches, stacked_network
from mccfr.solvers.deep.sampled_cards import (
    GROUP,
    NO_CARD,
    CardView,
    SampledCardsBatches,
    SampledCardsMemory,
    draw_hands,
    view,
)
from mccfr.solvers.deep.single_deep_cfr import DeepIterations
from mccfr.solvers.deep.training_state import FitState, Tables, fit_specs, memory_specs
from storage.schema import ArraySpec

_PART = 1024  # traversals that go down the tree together
_MEASURED = 1 << 14  # samples on which a fit's error is measured


def samples_cards(game: Game) -> bool:
    """Return whether networks take the cards of a deal as input, because infosets are not listed."""
    return game.cards.dealt and game.cards.boards is None


def check_options(game: Game, config: DeepCfrConfig) -> None:
    """Raise `ValueError` for a card abstraction, and for options that need a list of infosets.

    Network inputs are cards, so hands may share a bucket only if they are equal up to suits. The refused options are
    `fit = "table"` and `batch = "all"`.
    """
    streets = [STREET_NAMES[game.cards.cards_on(street)] for street in range(game.cards.streets)]
    if game.cards.buckets[:, 0].tolist() != [LOSSLESS_BUCKETS[street] for street in streets]:
        raise ValueError(
            "solver.algorithm = 'deep-cfr' takes no buckets of the whole deck: use game.name = 'flop-holdem' without "
            "[abstraction]"
        )
    if config.fit != "network":
        raise ValueError(
            f"solver.fit = {config.fit!r} needs infosets that can be listed, and those of {game.name} cannot: use "
            "'network'"
        )
    if config.batch == "all":
        raise ValueError(
            f"solver.batch = 'all' needs infosets that can be listed, and those of {game.name} cannot: give a number"
        )


def make_card_network(card_view: CardView, config: DeepCfrConfig) -> Network:
    """Return the network architecture of the `[solver]` options, which both players use.

    Each player has parameters of its own.
    """
    actions, bets, reads_all = card_view.legal.shape[1], card_view.lines.shape[1], config.readout == "all"
    if config.network == "branches":
        return branches(
            (GROUP,) * len(card_view.ends), bets, actions, config.units, config.card_units, reads_all=reads_all
        )
    cards, columns = card_view.card_columns, card_view.card_columns + bets
    return stacked_network(columns, actions, config.layers, config.units, cards, reads_all=reads_all)


def card_network_specs(game: Game, config: DeepCfrConfig, dtype: str = "float32") -> tuple[ArraySpec, ...]:
    """Return names, shapes and dtypes of a run's tables: memories of samples, networks, counters, errors.

    dtype  of weights and values in memories

    Raises `ValueError` for options that need a list of infosets, and for a game with chance nodes in its tree.
    """
    check_options(game, config)
    card_view = view(game)
    size, actions = make_card_network(card_view, config).size, card_view.legal.shape[1]
    specs: list[ArraySpec] = []
    for player in range(2):
        specs += memory_specs(config, player, actions, dtype, card_view.cards)
        specs += fit_specs(player, config, size)
    return tuple(specs)


class SampledCardsState(FitState):
    """Access to the tables of a run whose samples name decisions and cards.

    Both players share one network architecture; each has parameters of its own.
    """

    columns = ("node", "cards", "weight")
    memory_of = SampledCardsMemory

    def __init__(self, game: Game, config: DeepCfrConfig, tables: Tables) -> None:
        super().__init__(game, config, tables)
        self.view = view(game)
        self.network = make_card_network(self.view, config)
        self.apart = SplitNetwork(self.network, self.view.card_columns)
        self.check()

    def check_samples(self, player: int, name: str, memory: SampledCardsMemory) -> None:
        """Raise `ValueError` if samples name missing nodes or cards, or decisions of the other player.

        name  prefix of the memory's tables, for the message
        """
        acting, node, cards = self.game.tree.arrays.player, memory.node, memory.cards
        wrong = node[(node < 0) | (node >= len(acting))]
        if wrong.size:
            raise ValueError(
                f"the table {name}/node has a sample of node {wrong[0]}, but the tree of {self.game.name} has nodes 0 "
                f"to {len(acting) - 1}: no run of this game writes such a sample"
            )
        if not (acting[node] == player).all():
            raise ValueError(f"{name}/node names decisions of the other player")
        if not ((cards < self.game.cards.deck_size) | (cards == NO_CARD)).all():
            raise ValueError(f"{name}/cards names cards that do not exist")

    def network_of(self, player: int) -> Network:
        """Return the network architecture, which both players share."""
        return self.network

    def batches(self, player: int, start: int, kind: str = "memory") -> SampledCardsBatches:
        """Return a source of minibatches of a player's sample memory.

        start  number that determines the order of the samples
        kind   "memory" (regrets, divided by the chips of the pot at the root) or "strategy_memory"
        """
        unit = self.game.pot_chips if kind == "memory" else 1.0
        return SampledCardsBatches(self.view, *self.memory(player, kind), int(self.config.batch), start, unit)

    def memory_batches(self, player: int, start: int) -> Iterator[Batch]:
        """Yield minibatches of a player's memory of regrets, to solve the last layer exactly.

        There are as many as the memory fills, at least one and at most `solver.steps`.  No sample is repeated, unless
        the memory has fewer samples than a minibatch.  The memory must not be empty.  Each minibatch overwrites the
        arrays of the one before.

        player  0 or 1
        start   any number; determines the order of the samples
        """
        batches, count, batch = self.batches(player, start), self.memory(player)[1], int(self.config.batch)
        for _ in range(max(1, min(self.config.steps, count // batch))):
            yield batches.next()

    def strategies(self, parameters: tuple[Array, Array]) -> Strategies:
        """Return the `Strategies` object, which computes both players' strategies in traversals.

        parameters  [P] of player 0's network, [P] of player 1's
        """
        return Strategies(self.game.tree.arrays, self.view, (self.apart, self.apart), parameters)

    def networks(self, player: int) -> list[tuple[float, Array]]:
        """Return a list of (weight in the average, parameters [P]) of a player's kept networks."""
        at = f"networks/player{player}"
        weights = self.tables[f"{at}/weight"]
        return [(float(weights[k]), self.tables[f"{at}/parameters"][k]) for k in np.flatnonzero(weights).tolist()]

    def error(self, player: int) -> tuple[float, float]:
        """Return (mean squared error of a player's network in squared chips, share explained).

        The share is 1 minus the squared error over the square of the regrets, both weighted.  Both are measured
        on at most 16,384 samples of the player's memory of regrets.  Both are 0 for an empty memory.
        """
        memory, count = self.memory(player)
        if not count:
            return 0.0, 0.0
        batch = SampledCardsBatches(self.view, memory, count, min(count, _MEASURED), 0).next()
        guess = self.network.forward(self.tables[f"network/player{player}"], batch.given)[-1] * batch.legal
        guess *= np.float32(self.game.pot_chips)
        weight = batch.weight[:, None]
        target = batch.total / weight
        error, square = float((weight * (guess - target) ** 2).sum()), float((weight * target**2).sum())
        return error / float(batch.weight.sum()), 1 - error / square if square else 0.0


class SampledCardsCfr(DeepIterations):
    """Runs Deep CFR iterations on deals from the whole deck; the inputs of networks are cards."""

    state: SampledCardsState

    def __init__(
        self, game: Game, config: DeepCfrConfig, tables: Tables, iteration: int = 0, nodes: int = 0, threads: int = 1
    ) -> None:
        super().__init__(SampledCardsState(game, config, tables), iteration, nodes, threads)
        board = np.array(self.state.view.known, np.int64)[np.maximum(game.tree.arrays.block, 0) // 2]
        self._known = int(self.state.view.ends[0]) + board  # [N] cards that the player at each node sees

    def warm_up(self) -> None:
        """Compile the kernels of traversals, or load them from the cache, without changing anything."""
        self._part(self.state.strategies(self._parameters()), 0, 0, 0, 1)

    def _parameters(self) -> tuple[Array, Array]:
        return self._tables["network/player0"], self._tables["network/player1"]

    def _traverse(self, player: int, t: int) -> None:
        count = self._config.traversals
        first, strategies = ((t - 1) * 2 + player) * count, self.state.strategies(self._parameters())
        parts = run_ranges(lambda a, b: self._part(strategies, player, first, a, b), 0, count, _PART, self._threads)
        for regret_samples, opponent_samples, cards, nodes in parts:
            self._offer(player, "memory", self._samples(t, regret_samples, cards[player]))
            self._offer(1 - player, "strategy_memory", self._samples(t, opponent_samples, cards[1 - player]))
            self.nodes_touched += nodes

    def _part(
        self, strategies: Strategies, player: int, number: int, first: int, stop: int
    ) -> tuple[LockstepSamples, LockstepSamples, list[npt.NDArray[np.uint8]], int]:
        """Run traversals number+first to number+stop-1 of the run, in which `player` is the traverser.

        Returns (samples of the traverser's regrets, samples of the opponent's strategies, cards, nodes touched).  The
        cards are a list of two arrays [K, C]: each player's hand and the whole board of the K deals.
        """
        config, seen_cards = self._config, self.state.view
        hands = draw_hands(config.seed, number + first, stop - first, seen_cards.known[-1])
        words = np.zeros(stop - first, np.uint64)
        fill_words(config.seed, player, number + first, np.zeros(4, np.uint64), words)
        regret_samples, opponent_samples, nodes = traverse(self._game.tree.arrays, strategies, hands, words, player)
        cards = [hands.visible_cards(each, seen_cards.known[-1], seen_cards.cards) for each in range(2)]
        return regret_samples, opponent_samples, cards, nodes

    def _samples(
        self, t: int, traversed: LockstepSamples, cards: npt.NDArray[np.uint8]
    ) -> tuple[npt.NDArray[Any], ...]:
        """Return samples as the arrays of a memory: nodes, visible cards, weights t, values.

        t          iteration, which is the weight of all samples
        traversed  the n samples of one player
        cards      [K, C] uint8 the player's hand and the whole board of each of K deals. In a sample the cards of
                   streets after its decision are NO_CARD
        """
        hidden = np.arange(cards.shape[1]) >= self._known[traversed.node][:, None]
        visible = np.where(hidden, np.uint8(NO_CARD), cards[traversed.deal])
        return traversed.node, visible, np.full(len(traversed.node), t), traversed.value

    def _fit(self, player: int, t: int) -> None:
        self.state.fit_advantages(player, t)
        self._tables[f"figures/player{player}"][:] = self.state.error(player)
