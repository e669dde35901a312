"""Typed access to a Deep CFR run's tables: sample memories, networks, averages of listed infosets.

Single Deep CFR averages the strategies themselves (Steinberger 2019).  Deep CFR fits a network or table to samples of
them (Brown, Lerer, Gross & Sandholm 2019).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.common.rng import MINIBATCH, PARAMETERS, new_stream
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep.fitting import RIDGES, Batch, Batches, Inputs, MergedBatches, fit, softmax, solve_output
from mccfr.solvers.deep.infosets import Averaging, Infosets, list_infosets, numbering
from mccfr.solvers.deep.network import Network, branches, stacked_network, use_one_thread
from mccfr.solvers.deep.network_inputs import features
from mccfr.solvers.deep.sample_memory import Memory, means, merge, new_merged
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableSet, table_name
from storage.schema import ArraySpec

SAMPLES, STRATEGIES, NETWORKS = range(3)
"""Cells of `counters`: samples offered to a player's memory of regrets and of strategies; networks so far."""
LOSS, EXPLAINED = range(2)
"""Cells of `figures`: the two results of `squared_error` for the newest fit."""
ADVANTAGE_STREAM, STRATEGY_STREAM, NETWORK_STREAM, HAND_STREAM = 0, 2, 4, 6
"""Numbers of random streams; the player's number is added."""
LEAST_WEIGHT = 1e-30
"""Weight of a row without samples, whose strategy comes from a network."""
_ROWS = 1 << 16  # infosets in one evaluation of a network

Tables = Mapping[str, npt.NDArray[Any]]


class MemoryKind(NamedTuple):
    """Names and numbers of a kind of sample memory: that of regrets or that of strategies.

    value    name of the memory's table of values: "regret" or "probability"
    counter  index, in a player's table `counters`, of the number of samples offered to the memory
    stream   number of player 0's random stream for the memory; player 1's is one more
    """

    value: str
    counter: int
    stream: int


MEMORIES = {
    "memory": MemoryKind("regret", SAMPLES, ADVANTAGE_STREAM),
    "strategy_memory": MemoryKind("probability", STRATEGIES, STRATEGY_STREAM),
}


@njit
def match_regrets(advantage, actions, first, sigma):
    """Fill sigma by regret matching on advantages at infosets `first` to `first`+n-1, in place.

    If no advantage is positive, the largest gets probability 1 (Brown, Lerer, Gross & Sandholm 2019).  Equals share it.

    advantage  [n, A] float64 advantages of each infoset's actions
    actions    [I] int64 number of actions
    sigma      [I, A] float64; cells beyond an infoset's actions are not changed
    """
    for row in range(advantage.shape[0]):
        infoset, total, highest = first + row, 0.0, -np.inf
        count = actions[infoset]
        for k in range(count):
            total += max(advantage[row, k], 0.0)
            highest = max(highest, advantage[row, k])
        best = 0
        for k in range(count):
            best += advantage[row, k] == highest
        for k in range(count):
            if total > 0.0:
                sigma[infoset, k] = max(advantage[row, k], 0.0) / total
            else:
                sigma[infoset, k] = (1.0 if advantage[row, k] == highest else 0.0) / best


def make_network(game: Game, infosets: Infosets, player: int, config: DeepCfrConfig) -> tuple[Network, Inputs]:
    """Return a player's network and its inputs at the player's infosets.

    Raises `ValueError` for `network = "branches"` in a game without named cards.
    """
    encoded = features(game, infosets, player)
    inputs = Inputs(encoded.values, infosets.legal[infosets.of(player)].astype(np.float32))
    if config.network == "branches":
        if encoded.values is None:
            raise ValueError(
                f"solver.network = 'branches' sees cards and bets, and {game.name} has no named ones: use 'plain'"
            )
        wide = infosets.width, config.units, config.card_units
        return branches(encoded.groups, encoded.bets, *wide, reads_all=config.readout == "all"), inputs
    columns = infosets.count(player) if encoded.values is None else encoded.values.shape[1]
    wide = infosets.width, config.layers, config.units
    return stacked_network(columns, *wide, reads_all=config.readout == "all"), inputs


def keeps_sums(config: DeepCfrConfig) -> bool:
    """Return whether a run with listed infosets keeps strategy sums.

    They serve the average strategy of Single Deep CFR.  Sums are kept if `solver.averages` names it ("sd") and the run
    keeps all networks or fits tables; every iteration adds its strategies to them.
    """
    return "sd" in config.averages and (config.keep_networks == "all" or config.fit == "table")


def network_capacity(config: DeepCfrConfig) -> int:
    """Return the number of networks that the tables can hold for each player.

    If the run keeps all networks, it is `solver.horizon`: one network for each iteration.  For player 1 the first of
    them is the uniform strategy before its first fit.
    """
    if config.keep_networks != "all":
        return int(config.keep_networks)
    assert config.horizon is not None
    return config.horizon


def listed_specs(game: Game, config: DeepCfrConfig, dtype: str = "float32") -> tuple[ArraySpec, ...]:
    """Return names, shapes and dtypes of a run's tables in a game with listed infosets.

    dtype  dtype of the weights and values in memories

    Raises `ValueError` for games whose infosets cannot be listed, and for imperfect recall.  If networks are fitted, it
    also raises it for `network = "branches"` in a game without named cards.
    """
    places, infosets = numbering(game), list_infosets(game)
    specs = []
    for player in range(2):
        specs += memory_specs(config, player, infosets.width, dtype)
        size = make_network(game, infosets, player, config)[0].size if config.fit == "network" else None
        specs += fit_specs(player, config, size)
    if keeps_sums(config):
        for block in np.flatnonzero(places.rows).tolist():
            shape = int(places.buckets[block]), int(game.tree.row_slots[block])
            specs.append(ArraySpec(table_name("strategy_sum", block), shape, "float64", ("bucket", "slot")))
    return tuple(specs)


def fit_specs(player: int, config: DeepCfrConfig, size: int | None) -> list[ArraySpec]:
    """Return names, shapes and dtypes of a player's tables of networks, counters, and errors of the fit.

    config  gives the number of networks that are kept
    size    number of parameters of a network; None: there are no networks
    """
    at, specs = f"networks/player{player}", []
    if size is not None:
        capacity = network_capacity(config)
        specs = [
            ArraySpec(f"network/player{player}", (size,), "float32", ("parameter",)),
            ArraySpec(f"{at}/parameters", (capacity, size), "float32", ("network", "parameter")),
            ArraySpec(f"{at}/weight", (capacity,), "float64", ("network",)),
            ArraySpec(f"{at}/iteration", (capacity,), "int64", ("network",)),
        ]
    return [
        *specs,
        ArraySpec(f"counters/player{player}", (3,), "int64", ("counter",)),
        ArraySpec(f"figures/player{player}", (2,), "float64", ("figure",)),
    ]


def memory_specs(config: DeepCfrConfig, player: int, actions: int, dtype: str, cards: int = 0) -> list[ArraySpec]:
    """Return names, shapes and dtypes of the tables of a player's sample memories.

    There is a memory of regrets and, for the average "network", one of strategies.

    actions  largest number of actions
    dtype    dtype of weights and values
    cards    0: a sample names an infoset; else a tree node and this many cards
    """
    kinds = ("memory", "strategy_memory") if "network" in config.averages else ("memory",)
    specs, size = [], config.memory
    for kind in kinds:
        at = f"{kind}/player{player}"
        specs.append(ArraySpec(f"{at}/{'node' if cards else 'infoset'}", (size,), "int32", ("sample",)))
        if cards:
            specs.append(ArraySpec(f"{at}/cards", (size, cards), "uint8", ("sample", "card")))
        specs.append(ArraySpec(f"{at}/weight", (size,), dtype, ("sample",)))
        specs.append(ArraySpec(f"{at}/{MEMORIES[kind].value}", (size, actions), dtype, ("sample", "action")))
    return specs


class FitState(ABC):
    """Access to a run's tables: sample memories and the networks fitted to them.

    Derived classes have samples that name infosets (`TrainingState`), or nodes and cards.

    tables  {name: array} of the run, changed in place
    """

    columns: ClassVar[tuple[str, ...]]
    """Names of a memory's tables, except that of the values."""
    memory_of: ClassVar[Callable[..., Any]]
    """NamedTuple of a memory: arrays named by `columns`, then the values."""

    def __init__(self, game: Game, config: DeepCfrConfig, tables: Tables) -> None:
        use_one_thread()
        self.game, self.config, self.tables = game, config, tables

    @abstractmethod
    def network_of(self, player: int) -> Network:
        """Return a player's network."""

    @abstractmethod
    def batches(self, player: int, start: int, kind: str = "memory") -> Batches:
        """Return a source of minibatches of a player's sample memory.

        start  any number; determines the order of the samples
        kind   "memory" (regrets) or "strategy_memory"
        """

    @abstractmethod
    def memory_batches(self, player: int, start: int) -> Iterator[Batch]:
        """Yield all or some samples of a player's memory of regrets, to solve the last layer exactly.

        start  any number; determines the order of the samples, if they come in minibatches
        """

    @abstractmethod
    def check_samples(self, player: int, name: str, memory: Any) -> None:
        """Raise `ValueError` if samples name infosets, nodes or cards that the player cannot have.

        name  prefix of the memory's tables, for the message
        """

    def check(self) -> None:
        """Raise `ValueError` for counters below 0, and for samples that a player cannot have."""
        for player in range(2):
            if (self.tables[f"counters/player{player}"] < 0).any():
                raise ValueError(f"counters/player{player} has a count below 0, which no run writes")
            for kind in MEMORIES:
                if f"{kind}/player{player}/{self.columns[0]}" in self.tables:
                    memory, count = self.memory(player, kind)
                    if count:
                        self.check_samples(player, f"{kind}/player{player}", type(memory)(*(c[:count] for c in memory)))

    def memory(self, player: int, kind: str = "memory") -> tuple[Any, int]:
        """Return (a player's memory, number of samples it holds).

        The memory is a `Memory`, or a `SampledCardsMemory` if samples name nodes and cards.

        kind  "memory" (regrets) or "strategy_memory"
        """
        columns_of_kind = MEMORIES[kind]
        columns = [self.tables[f"{kind}/player{player}/{name}"] for name in (*self.columns, columns_of_kind.value)]
        count = min(int(self.tables[f"counters/player{player}"][columns_of_kind.counter]), len(columns[-1]))
        return type(self).memory_of(*columns), count

    def fit_advantages(self, player: int, t: int) -> None:
        """Fit a player's network to the player's memory of regrets in iteration t, in place.

        Iteration 1 starts from random parameters, later ones from those of the iteration before.  With
        `last_layer = "solved"` the last layer is then solved exactly.

        t  number of the iteration, from 1; it determines the random numbers
        """
        config, parameters, network = self.config, self.tables[f"network/player{player}"], self.network_of(player)
        if t == 1:
            parameters[:] = network.initial(new_stream(config.seed, player, PARAMETERS, t))
        start, passed = map(int, new_stream(config.seed, player, MINIBATCH, t)[:2])
        fit(network, parameters, self.batches(player, start), config, config.steps)
        if config.last_layer == "solved":
            solve_output(network, parameters, self.memory_batches(player, passed), RIDGES[config.readout])

    def fit_average(self, player: int, iterations: int) -> npt.NDArray[np.float32]:
        """Return [P] parameters of a network for a player's average strategy, after `iterations` iterations.

        The network is fitted from random parameters to the strategy memory.  If that is empty, all parameters are 0.
        """
        network, config, stream = self.network_of(player), self.config, player + STRATEGY_STREAM
        if not self.memory(player, "strategy_memory")[1]:
            return np.zeros(network.size, np.float32)
        parameters = network.initial(new_stream(config.seed, stream, PARAMETERS, iterations))
        start = int(new_stream(config.seed, stream, MINIBATCH, iterations)[0])
        batches = self.batches(player, start, "strategy_memory")
        fit(network, parameters, batches, config, config.strategy_steps, shares=True)
        return parameters


class TrainingState(FitState):
    """Access to the tables of a run with listed infosets: I of both players, n of one; A actions.

    infosets   the list of infosets
    averaging  adds strategies to strategy sums
    merged     [player] scratch for merged samples
    networks   [player] (network, its inputs); empty if tables are fitted
    """

    columns = ("infoset", "weight")
    memory_of = Memory

    def __init__(self, game: Game, config: DeepCfrConfig, tables: Tables) -> None:
        super().__init__(game, config, tables)
        self.infosets = list_infosets(game)
        self.averaging = Averaging(game, self.infosets)
        self.merged = [new_merged(self.infosets.count(player), self.infosets.width) for player in range(2)]
        fits = range(2 if config.fit == "network" else 0)
        self.networks = [make_network(game, self.infosets, player, config) for player in fits]
        self.check()

    def check_samples(self, player: int, name: str, memory: Memory) -> None:
        """Raise `ValueError` for samples of infosets that the game does not have.

        name  prefix of the memory's tables, for the message
        """
        if not 0 <= int(memory.infoset.min()) <= int(memory.infoset.max()) < self.infosets.count(player):
            raise ValueError(f"{name}/infoset names infosets that {self.game.name} does not have")

    def network_of(self, player: int) -> Network:
        """Return a player's network."""
        return self.networks[player][0]

    def batches(self, player: int, start: int, kind: str = "memory") -> MergedBatches:
        """Return a source of minibatches of a player's memory, with samples of an infoset merged.

        start  any number; determines the order of the samples
        kind   "memory" (regrets) or "strategy_memory"
        """
        batch = None if self.config.batch == "all" else int(self.config.batch)
        return MergedBatches(self.networks[player][1], *self.memory(player, kind), batch, self.merged[player], start)

    def memory_batches(self, player: int, start: int) -> Iterator[Batch]:
        """Yield all samples of a player's memory of regrets, with those of one infoset merged.

        start  not used: the samples come in the order of the memory
        """
        inputs, (memory, count), merged = self.networks[player][1], self.memory(player), self.merged[player]
        infosets = merge(memory, count, merged)[0]
        for at in range(0, infosets, _ROWS):
            part = slice(at, min(at + _ROWS, infosets))
            rows = merged.row[part]
            yield Batch(inputs.take(rows), merged.weight[part], merged.total[part], inputs.legal[rows])

    def advantages(self, player: int) -> npt.NDArray[np.float64]:
        """Return [n, A] a player's current advantages at the player's infosets.

        They are the network's outputs or, with `fit = "table"`, the weighted means of each infoset's samples.
        """
        if self.config.fit == "table":
            return means(*self.memory(player), self.merged[player])
        return self.outputs(player, self.tables[f"network/player{player}"])

    def outputs(self, player: int, parameters: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return [n, A] outputs of a player's network with `parameters` [P] at the player's infosets.

        Actions that an infoset does not have get 0.
        """
        network, inputs = self.networks[player]
        rows = np.arange(self.infosets.count(player))
        parts = [rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS)]
        output = np.concatenate([network.forward(parameters, inputs.take(part))[-1] for part in parts])
        return (output * inputs.legal).astype(np.float64)

    def play(self, player: int, advantages: npt.NDArray[np.float64], sigma: npt.NDArray[np.float64]) -> None:
        """Fill sigma [I, A] at a player's n infosets by regret matching on advantages [n, A], in place.

        If no advantage is positive, the largest gets probability 1; equals share it.
        """
        match_regrets(advantages, self.infosets.actions, self.infosets.of(player).start, sigma)

    def average(self, name: str, iterations: int) -> Strategy:
        """Return an average strategy as a table.

        name        "sd" (Single Deep CFR) or "network" (Deep CFR)
        iterations  iterations of the run so far; used for "network" only
        """
        if name == "network":
            return self.average_of_samples(iterations)
        if not keeps_sums(self.config):
            return self.average_of_networks()
        sums = {name: self.tables[name] for name in self.tables if name.startswith("strategy_sum")}
        return average_strategy(self.game, TableSet(sums))

    def average_of_networks(self) -> Strategy:
        """Return the average strategy of the kept networks, weighted by network weight and own reach.

        Source: Steinberger 2019, equations 5 and 6.
        """
        shapes = zip(self.game.buckets.tolist(), self.game.tree.row_slots.tolist(), strict=True)
        sums = [np.zeros((buckets, slots)) if slots else None for buckets, slots in shapes]
        sigma = self.infosets.uniform()
        for player in range(2):
            at = f"networks/player{player}"
            weights = self.tables[f"{at}/weight"]
            for number in np.flatnonzero(weights).tolist():
                self.play(player, self.outputs(player, self.tables[f"{at}/parameters"][number]), sigma)
                self.averaging.add(player, sigma, float(weights[number]), sums)
        named = {table_name("strategy_sum", block): table for block, table in enumerate(sums) if table is not None}
        return average_strategy(self.game, TableSet(named))

    def average_of_samples(self, iterations: int) -> Strategy:
        """Return Deep CFR's average after `iterations` iterations, fitted here to the strategy memories.

        With `fit = "network"` a network is fitted from random parameters.  Else the weighted mean of an infoset's
        samples is taken, and infosets without samples are uniform.  A player without any samples is uniform too.
        """
        infosets = self.infosets
        shares, weights = infosets.uniform(), np.zeros(len(infosets))
        for player in range(2):
            memory, count = self.memory(player, "strategy_memory")
            if not count:
                continue
            mine, merged = infosets.of(player), self.merged[player]
            if self.config.fit == "network":  # a network also has a strategy at infosets without samples
                output = self.outputs(player, self.fit_average(player, iterations))
                shares[mine], weights[mine] = softmax(output, self.networks[player][1].legal), LEAST_WEIGHT
            else:
                table = means(memory, count, merged)
                shares[mine] = np.where(table.any(axis=1, keepdims=True), table, shares[mine])
            merged_count = merge(memory, count, merged)[0]
            weights[mine][merged.row[:merged_count]] = merged.weight[:merged_count]
        return self.averaging.strategy(shares, weights)
