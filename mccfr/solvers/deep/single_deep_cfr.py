"""Deep CFR (Brown, Lerer, Gross & Sandholm 2019) and Single Deep CFR (Steinberger 2019).

An iteration t updates player 0, then player 1.  Each update runs K traversals against fixed strategies.  They add
regrets to the player's memory and the opponent's strategies to the opponent's memory, both with weight t.  Then the
player's advantages are fitted, and regret matching gives its strategy.  If no advantage is positive, the largest is
played (shared among equals).  Before the first fit a player plays uniformly.

If infosets are listed, strategies are computed once an iteration at all of them, and traversals read a table
(`SingleDeepCfr`).  Else traversals run in lockstep (`mccfr.solvers.deep.sampled_cards_cfr`).

In the average a strategy has the weight of the iteration in which the opponent's traversals use it.  Player 0's
strategy fitted at t is used in t, player 1's in t + 1, and player 1's uniform play in 1.  The paper's code weights both
by t and leaves uniform play out.  The buffer B^M keeps networks and weights; uniform play has parameters of 0.
Averages weight each strategy by its own exact reach of an infoset.

All random numbers are functions of seed, player, purpose and number, so the tables are the whole state.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from abstraction.kernels.parallel import run_ranges
from mccfr.cards.deals import new_deals
from mccfr.common.rng import RESERVOIR, new_stream
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep import traversals
from mccfr.solvers.deep.sample_memory import Array, insert, reservoir_index, squared_error
from mccfr.solvers.deep.training_state import (
    MEMORIES,
    NETWORK_STREAM,
    NETWORKS,
    FitState,
    Tables,
    TrainingState,
    keeps_sums,
)
from mccfr.solvers.deep.traversals import Samples, new_samples, new_work
from mccfr.tables.table_layout import table_name

_PART = 256  # traversals in one task of a thread
_SAMPLES_EACH = 16  # memory for samples of each traversal, besides that for one traversal of the whole tree


class DeepIterations(ABC):
    """Runs Deep CFR iterations on tables, changed in place; derived classes traverse and fit.

    The tables and the number of iterations are the whole state.

    state          FitState: typed access to the run's tables
    iteration      iterations done so far
    nodes_touched  nodes touched so far
    threads        number of threads that share the traversals; below 1 counts as 1
    """

    state: FitState

    def __init__(self, state: FitState, iteration: int, nodes: int, threads: int) -> None:
        self.iteration, self.nodes_touched = iteration, nodes
        self.state, self._threads = state, max(1, threads)
        self._game, self._config, self._tables = state.game, state.config, state.tables

    @abstractmethod
    def warm_up(self) -> None:
        """Compile the kernels of traversals, or load them from the cache, without changing anything."""

    @abstractmethod
    def _traverse(self, player: int, t: int) -> None:
        """Run a player's traversals of iteration t and insert the samples into the reservoir memories."""

    @abstractmethod
    def _fit(self, player: int, t: int) -> None:
        """Fit a player's advantages to its samples in iteration t; they give its next strategy.

        An advantage is the mean regret of an action at an infoset, estimated from the player's memory of samples.
        Regret matching on the advantages gives the strategy at every infoset.  The parameters of a fitted network, and
        the error of the fit, are written to the run's tables.
        """

    def _offer(self, player: int, kind: str, samples: Sequence[Array]) -> None:
        """Insert samples into a player's memory by reservoir sampling.

        samples  the arrays [n, ...] of a memory, such as infosets, weights and values, for n samples
        kind     "memory" (regrets) or "strategy_memory"; the latter exists only for Deep CFR's average
        """
        if kind == "strategy_memory" and "network" not in self._config.averages:
            return
        counters, (_, counter, stream) = self._tables[f"counters/player{player}"], MEMORIES[kind]
        memory, _ = self.state.memory(player, kind)
        counters[counter] = insert(memory, samples, int(counters[counter]), self._config.seed, player + stream)

    def iterate(self, count: int = 1) -> None:
        """Run `count` iterations; 0 compiles the kernels and changes nothing.

        Raises `ValueError` if all networks must be kept, and an iteration needs more than `solver.horizon` of them.
        """
        if not count:
            self.warm_up()
        for _ in range(count):
            t = self.iteration + 1
            for player in range(2):
                # The opponent's strategy is used now; player 1's was fitted in the iteration before.
                self._note_strategy(1 - player, t, t if player else t - 1)
                self._traverse(player, t)
                self._fit(player, t)
            self.iteration = t

    def _note_strategy(self, player: int, weight: int, fitted: int) -> None:
        """Add a player's current network to the buffer B^M of kept networks.

        weight  weight of its strategy in the average
        fitted  iteration in which it was fitted

        A full buffer replaces networks by reservoir sampling, or raises `ValueError` if it must keep all of them.
        With `fit = "table"` there are no networks, and the strategy is only counted.
        """
        counters = self._tables[f"counters/player{player}"]
        offered = int(counters[NETWORKS])
        counters[NETWORKS] += 1
        if self._config.fit == "table":
            return
        at = f"networks/player{player}"
        index, room = offered, len(self._tables[f"{at}/weight"])
        if offered >= room and self._config.keep_networks == "all":
            raise ValueError(
                f"solver.horizon = {room:,} keeps one network an iteration, and iteration {self.iteration + 1:,} needs "
                "one more: start a new run with a larger horizon"
            )
        if offered >= room:
            index = int(reservoir_index(new_stream(self._config.seed, player + NETWORK_STREAM, RESERVOIR)[0], offered))
        if index < room:
            self._tables[f"{at}/parameters"][index] = self._tables[f"network/player{player}"]
            self._tables[f"{at}/weight"][index] = weight
            self._tables[f"{at}/iteration"][index] = fitted


class SingleDeepCfr(DeepIterations):
    """Runs Deep CFR iterations in a game with listed infosets: I of both players.

    sigma  [I, A] float64  current strategies of both players
    """

    state: TrainingState

    def __init__(
        self, game: Game, config: DeepCfrConfig, tables: Tables, iteration: int = 0, nodes: int = 0, threads: int = 1
    ) -> None:
        super().__init__(TrainingState(game, config, tables), iteration, nodes, threads)
        self._sums = [tables.get(table_name("strategy_sum", block)) for block in range(2 * game.tree.streets)]
        self._dealer = game.cards.dealer(config.seed, 0)
        self._deals = new_deals(config.traversals, game.tree.streets)
        self.sigma = self.state.infosets.uniform()
        if iteration:
            for player in range(2):
                self.state.play(player, self.state.advantages(player), self.sigma)

    def warm_up(self) -> None:
        """Compile the kernels of traversals, or load them from the cache, without changing anything."""
        self._dealer.draw(0, 0, self._deals)
        self._part(0, 0, 0, 0)

    def _note_strategy(self, player: int, weight: int, fitted: int) -> None:
        """Add a player's strategy to the strategy sums, if kept, and its network to the kept ones.

        weight  weight of the strategy in the average
        fitted  iteration in which it was fitted

        With `fit = "table"` there is no network.
        """
        if keeps_sums(self._config):
            self.state.averaging.add(player, self.sigma, float(weight), self._sums)
        super()._note_strategy(player, weight, fitted)

    def _traverse(self, player: int, t: int) -> None:
        """Run a player's traversals of iteration t and insert the samples into the reservoir memories."""
        count = self._config.traversals
        first = ((t - 1) * 2 + player) * count
        self._dealer.draw(first, count, self._deals)
        parts = run_ranges(lambda a, b: self._part(player, first, a, b), 0, count, _PART, self._threads)
        for samples, plays, nodes in (piece for part in parts for piece in part):
            self._offer(player, "memory", self._samples(player, t, samples))
            self._offer(1 - player, "strategy_memory", self._samples(1 - player, t, plays))
            self.nodes_touched += nodes

    def _part(self, player: int, number: int, first: int, stop: int) -> list[tuple[Samples, Samples, int]]:
        """Run traversals of the drawn deals first to stop-1, in which `player` is the traverser.

        Counted over the whole run, these deals have the numbers number+first to number+stop-1.

        Returns a list of (samples of the player's regrets, samples of the opponent's strategies, nodes touched).  Each
        item covers some of the traversals, in order.
        """
        tree, infosets, parts = self._game.tree.arrays, self.state.infosets, []
        room, work = _SAMPLES_EACH * _PART + len(tree.kind), new_work(len(tree.kind))
        while True:
            samples, plays = new_samples(room, infosets.width), new_samples(room, infosets.width)
            span = np.array([player, first, stop, self._config.seed, number + first], np.int64)
            deals, regret_samples, opponent_samples, nodes = traversals.external(
                tree, infosets.numbering, self.sigma.ravel(), self._deals, span, samples, plays, work
            )
            regrets = Samples(samples.infoset[:regret_samples], samples.value[:regret_samples])
            parts.append((regrets, Samples(plays.infoset[:opponent_samples], plays.value[:opponent_samples]), nodes))
            first += deals
            if first >= stop:
                return parts

    def _samples(self, player: int, t: int, traversed: Samples) -> tuple[Array, Array, Array]:
        """Return samples as arrays of a player's memory: infosets [n], weights [n], values [n, A].

        Infosets are numbered in the player's own list.

        t          iteration, which is the weight of all samples
        traversed  the n samples
        """
        first = self.state.infosets.of(player).start
        return traversed.infoset - first, np.full(len(traversed.infoset), float(t)), traversed.value

    def _fit(self, player: int, t: int) -> None:
        """Fit a player's advantages to its samples in iteration t; write its strategy to `sigma`.

        An advantage is the mean regret of an action at an infoset, estimated from the player's memory of samples.
        With `fit = "network"` a network is fitted to the samples; else the advantages are the samples' means.
        `sigma` receives the strategy at all of the player's infosets, by regret matching on the advantages.
        """
        state = self.state
        memory, count = state.memory(player)
        if self._config.fit == "network":
            state.fit_advantages(player, t)
        advantages = state.advantages(player)
        self._tables[f"figures/player{player}"][:] = squared_error(memory, count, advantages, state.merged[player])
        state.play(player, advantages, self.sigma)
