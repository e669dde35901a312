"""Typed access to the tables of a run with listed infosets: memories, networks and their strategies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.common.rng import MINIBATCH, PARAMETERS, new_stream
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.game import Game
from mccfr.solvers.deep.blas import one_thread
from mccfr.solvers.deep.fitting import LONGEST_GRADIENT, Batch, Batches, Descent, Inputs, MergedBatches, fit
from mccfr.solvers.deep.infosets import Averaging, Infosets, list_infosets, numbering
from mccfr.solvers.deep.network import Network, branches, plain
from mccfr.solvers.deep.network_inputs import features
from mccfr.solvers.deep.sample_memory import Memory, means, merge, new_merged
from mccfr.tables.table_layout import table_name
from storage.schema import ArraySpec

SAMPLES, STRATEGIES, NETWORKS = range(3)
"""Cells of `counters`: samples offered to a player's two memories, and networks so far."""
LOSS, EXPLAINED = range(2)
"""Cells of `figures`, from `memory.squared_error` of the newest fit."""
ADVANTAGE_STREAM, STRATEGY_STREAM, NETWORK_STREAM, HAND_STREAM = 0, 2, 4, 6
"""Numbers of random streams; the player's number is added."""
LEAST_WEIGHT = 1e-30
"""Weight of a row without samples, whose strategy comes from a network."""
_ROWS = 1 << 16  # infosets in one evaluation of a network

Tables = Mapping[str, npt.NDArray[Any]]


class MemoryKind(NamedTuple):
    """A kind of memory.

    value    name of its table of values
    counter  cell of `counters` with the number of samples offered
    stream   number of its random stream
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
    """Fill sigma [I, A] by regret matching on advantages [n, A] at infosets from `first` on, in place.

    actions  [I] number of actions

    If no advantage is positive, the largest gets probability 1, shared among equals.
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


def descent(config: DeepCfrConfig, steps: int) -> Descent:
    """Return the options for fitting networks in `steps` steps."""
    return Descent(steps, config.learning_rate, config.decay == "linear", LONGEST_GRADIENT)


def make_network(game: Game, infosets: Infosets, player: int, config: DeepCfrConfig) -> tuple[Network, Inputs]:
    """Return a player's network and its inputs.

    Raises `ValueError` for branches in a game without named cards.
    """
    found = features(game, infosets, player)
    inputs = Inputs(found.values, infosets.legal[infosets.of(player)].astype(np.float32))
    if config.network == "branches":
        if found.values is None:
            raise ValueError(
                f"solver.network = 'branches' sees cards and bets, and {game.name} has none that are named: use 'plain'"
            )
        wide = infosets.width, config.units, config.card_units
        return branches(found.groups, found.bets, *wide, reads_all=config.readout == "all"), inputs
    columns = infosets.count(player) if found.values is None else found.values.shape[1]
    wide = infosets.width, config.layers, config.units
    return plain(columns, *wide, reads_all=config.readout == "all"), inputs


def keeps_sums(config: DeepCfrConfig) -> bool:
    """Return whether the explicit average is updated during the run, for which every strategy must count."""
    return "sd" in config.averages and (config.keep_networks == "all" or config.fit == "table")


def kept_networks(config: DeepCfrConfig) -> int:
    """Return the number of a player's networks that the tables can hold, uniform play included."""
    if config.keep_networks != "all":
        return int(config.keep_networks)
    assert config.horizon is not None
    return config.horizon


def listed_specs(game: Game, config: DeepCfrConfig, dtype: str = "float32") -> tuple[ArraySpec, ...]:
    """Return names, shapes and dtypes of the tables over listed infosets.

    dtype  dtype of the contents of memories

    Raises `ValueError` for games whose infosets cannot be listed.
    """
    places, infosets = numbering(game), list_infosets(game)
    specs = []
    for player in range(2):
        specs += memory_specs(config, player, infosets.width, dtype)
        size = make_network(game, infosets, player, config)[0].size if config.fit == "network" else None
        specs += fit_specs(player, config, size)
    if keeps_sums(config):
        specs += [
            ArraySpec(
                table_name("strategy_sum", block),
                (int(places.buckets[block]), int(game.tree.row_slots[block])),
                "float64",
                ("bucket", "slot"),
            )
            for block in np.flatnonzero(places.rows).tolist()
        ]
    return tuple(specs)


def fit_specs(player: int, config: DeepCfrConfig, size: int | None) -> list[ArraySpec]:
    """Return the specs of a player's networks, counters and figures.

    size  number of parameters; None: no networks
    """
    at, specs = f"networks/player{player}", []
    if size is not None:
        kept = kept_networks(config)
        specs = [
            ArraySpec(f"network/player{player}", (size,), "float32", ("parameter",)),
            ArraySpec(f"{at}/parameters", (kept, size), "float32", ("network", "parameter")),
            ArraySpec(f"{at}/weight", (kept,), "float64", ("network",)),
            ArraySpec(f"{at}/iteration", (kept,), "int64", ("network",)),
        ]
    return [
        *specs,
        ArraySpec(f"counters/player{player}", (3,), "int64", ("counter",)),
        ArraySpec(f"figures/player{player}", (2,), "float64", ("figure",)),
    ]


def memory_specs(config: DeepCfrConfig, player: int, actions: int, dtype: str, cards: int = 0) -> list[ArraySpec]:
    """Return the specs of a player's memories; with `cards` a sample names a node and that many cards."""
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


def memory_columns(tables: Tables, player: int, kind: str, names: Sequence[str]) -> tuple[list[npt.NDArray[Any]], int]:
    """Return a player's memory as its columns `names` and then its values, and its number of samples."""
    found = MEMORIES[kind]
    columns = [tables[f"{kind}/player{player}/{name}"] for name in (*names, found.value)]
    return columns, min(int(tables[f"counters/player{player}"][found.counter]), len(columns[-1]))


class FitData(Protocol):
    """Access to the data that a player's networks are fitted to."""

    @property
    def config(self) -> DeepCfrConfig:
        """Return the `[solver]` table."""

    def network_of(self, player: int) -> Network:
        """Return a player's network."""

    def memory(self, player: int, kind: str = "memory") -> tuple[Any, int]:
        """Return a player's "memory" or "strategy_memory" and the number of samples it holds."""

    def batches(self, player: int, start: int, kind: str = "memory") -> Batches:
        """Return minibatches of a player's memory in the order given by `start`."""

    def whole(self, player: int, start: int) -> Iterator[Batch]:
        """Yield a player's memory once; `start` is the order of minibatches, if it is read by these."""


def fit_average(learnt: FitData, player: int, iterations: int) -> npt.NDArray[np.float32]:
    """Return [P] parameters of a player's average strategy, fitted from scratch to the strategy memory.

    They are 0 if the memory is empty.
    """
    network, config, stream = learnt.network_of(player), learnt.config, player + STRATEGY_STREAM
    if not learnt.memory(player, "strategy_memory")[1]:
        return np.zeros(network.size, np.float32)
    parameters = network.initial(new_stream(config.seed, stream, PARAMETERS, iterations))
    start = int(new_stream(config.seed, stream, MINIBATCH, iterations)[0])
    batches = learnt.batches(player, start, "strategy_memory")
    fit(network, parameters, batches, descent(config, config.strategy_steps), shares=True)
    return parameters


class TrainingState:
    """Typed access to the tables of a run: I infosets of both players, n of one, A actions.

    averaging  Averaging  adds strategies to sums
    merged     scratch, by player
    networks   network and inputs by player; none if tables are fitted
    """

    def __init__(self, game: Game, config: DeepCfrConfig, tables: Tables) -> None:
        one_thread()
        self.game, self.config, self.tables = game, config, tables
        self.infosets = list_infosets(game)
        self.averaging = Averaging(game, self.infosets)
        self.merged = [new_merged(self.infosets.count(player), self.infosets.width) for player in range(2)]
        fits = range(2 if config.fit == "network" else 0)
        self.networks = [make_network(game, self.infosets, player, config) for player in fits]
        for player in range(2):
            self._check(player)

    def _check(self, player: int) -> None:
        """Raise `ValueError` if a memory names an invalid infoset, or a counter is negative."""
        if (self.tables[f"counters/player{player}"] < 0).any():
            raise ValueError(f"counters/player{player} counts below 0: no run writes such a table")
        for kind in ("memory", "strategy_memory"):
            if f"{kind}/player{player}/infoset" in self.tables:
                memory, held = self.memory(player, kind)
                named = memory.infoset[:held]
                if held and not 0 <= int(named.min()) <= int(named.max()) < self.infosets.count(player):
                    raise ValueError(f"{kind}/player{player}/infoset names infosets that {self.game.name} has not")

    def network_of(self, player: int) -> Network:
        """Return a player's network."""
        return self.networks[player][0]

    def batches(self, player: int, start: int, kind: str = "memory") -> MergedBatches:
        """Return minibatches of a player's memory in the order given by `start`."""
        batch = None if self.config.batch == "all" else int(self.config.batch)
        return MergedBatches(self.networks[player][1], *self.memory(player, kind), batch, self.merged[player], start)

    def whole(self, player: int, start: int) -> Iterator[Batch]:
        """Yield a player's whole memory with samples of one infoset merged; arrays are those of `merged`."""
        inputs, (memory, held), merged = self.networks[player][1], self.memory(player), self.merged[player]
        found = merge(memory, held, merged)[0]
        for at in range(0, found, _ROWS):
            part = slice(at, min(at + _ROWS, found))
            rows = merged.row[part]
            yield Batch(inputs.take(rows), merged.weight[part], merged.total[part], inputs.legal[rows])

    def memory(self, player: int, kind: str = "memory") -> tuple[Memory, int]:
        """Return a player's "memory" or "strategy_memory" and the number of samples it holds."""
        columns, held = memory_columns(self.tables, player, kind, ("infoset", "weight"))
        return Memory(*columns), held

    def advantages(self, player: int) -> npt.NDArray[np.float64]:
        """Return [n, A] a player's current advantages at the player's infosets."""
        if self.config.fit == "table":
            return means(*self.memory(player), self.merged[player])
        return self.outputs(player, self.tables[f"network/player{player}"])

    def outputs(self, player: int, parameters: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return [n, A] outputs of a player's network at the player's infosets; 0 for missing actions."""
        network, inputs = self.networks[player]
        rows = np.arange(self.infosets.count(player))
        parts = [rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS)]
        found = np.concatenate([network.forward(parameters, inputs.take(part))[-1] for part in parts])
        return (found * inputs.legal).astype(np.float64)

    def play(self, player: int, advantages: npt.NDArray[np.float64], sigma: npt.NDArray[np.float64]) -> None:
        """Fill sigma [I, A] at a player's infosets with the strategy of advantages [n, A], in place."""
        match_regrets(advantages, self.infosets.actions, self.infosets.of(player).start, sigma)
