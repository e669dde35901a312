"""Runs the sampled kernels in this process without files or workers, and measures the result."""

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import naive
import numpy as np

from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.config.toml_files import config_from
from mccfr.games.game import Game
from mccfr.games.poker import kuhn, leduc
from mccfr.solvers import dcfr_discount as sweeps
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.outcome.outcome_general import SeatPaths, new_seat_paths
from mccfr.solvers.sampling.outcome.paths import new_paths
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableArrays, TableSet, make_layout, private_tables, table_name
from mccfr.trees.compiled import CHANCE, DECISION, MAX_PACKED_ACTIONS, NO_PARENT, NO_PLAYER, CompiledTree, TreeArrays

NO_LIMIT = np.iinfo(np.int64).max


class Trainer:
    """A run in this process; `train` may be called repeatedly and continues.

    kernels  module with the kernel, such as a mutant of `external_packed`
    planted  error of a mutant of `planted.py`
    general  True: kernels over general records
    deals    number of deals that outcome sampling plays together; None: as a run does
    sweep    module with the `DcfrDiscount` of `dcfr`
    tables   view [bucket, slot] of each table by name
    inner    state inside of a run
    """

    def __init__(
        self,
        game: Game,
        algorithm: str = "external",
        *,
        schedule: Schedule | None = None,
        seed: int = 0,
        epsilon: float = 0.6,
        general: bool = False,
        kernels: ModuleType | None = None,
        batch: int = 4096,
        regret_dtype: str = "float32",
        sum_dtype: str = "auto",
        planted: int = 0,
        deals: int | None = None,
        sweep: ModuleType = sweeps,
    ) -> None:
        self.options = {name: value for name, value in locals().items() if name not in ("self", "game")}
        self.game, self.schedule, self.batch = game, schedule or Schedule(), batch
        dtypes = {"regret_dtype": regret_dtype, "sum_dtype": "float32" if sum_dtype == "auto" else sum_dtype}
        self.tables = private_tables(make_layout(game, **dtypes))
        table = {"algorithm": f"{algorithm}-sampling", "seed": seed, "discount": "none"}
        if algorithm == "outcome":
            table["epsilon"] = epsilon
        config = config_from({"game": {"name": "kuhn"}, "solver": table}, "the harness")
        self.inner = algorithm_of(config).solver(game, self.tables)
        self.state, self.inner._schedule = self.inner.state, self.schedule
        if self.schedule.sweeps:
            kinds = ([t for name, t in self.tables.items() if name.startswith(k)] for k in ("regret/", "strategy_sum/"))
            self.inner._sweep = sweep.DcfrDiscount(*kinds, self.schedule, (seed, 0))
        if general:
            self.inner._tree = game.tree.arrays
            self.inner._choose_kernel(game, packed=False)
        if deals is not None and algorithm == "outcome":
            most = max(MAX_PACKED_ACTIONS, int(game.tree.arrays.count.max()))
            self.inner._together = deals
            size = deals, game.tree.nodes, most
            self.inner._scratch = (
                new_seat_paths(*size, game.tree, regret_dtype)
                if isinstance(self.inner._scratch, SeatPaths)
                else new_paths(*size, 2 * game.tree.streets, regret_dtype)
            )
        if kernels is not None:
            kernel = getattr(kernels, f"{algorithm}_sampling_{'general' if general else 'packed'}")
            self.inner._kernel = lambda tree, tables, deals, limits, *rest: kernel(
                tree, tables, deals, np.append(limits, planted), *rest
            )

    def train(self, iterations: int | None = None, *, nodes: int | None = None) -> "Trainer":
        """Train until a total number of iterations, or the first iteration that reaches a number of nodes."""
        last = NO_LIMIT if iterations is None else iterations
        most = NO_LIMIT if nodes is None else nodes
        while self.iterations < last and self.nodes < most:
            self.inner.run(self.nodes, most - self.nodes, min(self.batch, last - self.iterations))
            self.after_call()
        return self

    def resume(self, nodes: int | None = None) -> "Trainer":
        """Return a new run that starts from this run's tables, counters and random state.

        `nodes` puts another count of nodes in the checkpoint: a planted error.
        """
        other = Trainer(self.game, **self.options)
        for name, table in self.tables.items():
            other.tables[name][:] = table
        vars(other.state).update(vars(self.state) | ({} if nodes is None else {"nodes": nodes}))
        other.rng[:] = self.rng
        return other

    def sweep_at(self, nodes: int) -> None:
        """Discount the tables for the period ends passed, as a run does before it continues at `nodes`."""
        self.state.nodes = nodes
        if self.schedule.sweeps:
            self.state.ends = self.inner._sweep.run(self.state.ends, nodes)

    def after_call(self) -> None:
        """Called when a kernel has returned; tests that sweep the tables themselves override it."""

    @property
    def iterations(self) -> int:
        return self.state.iterations

    @property
    def nodes(self) -> int:
        return self.state.nodes

    @property
    def rng(self) -> np.ndarray:
        return self.inner._rng

    @property
    def updated(self) -> int:
        """Table rows updated so far."""
        return int(self.inner._scratch.updated[0])

    @property
    def arrays(self) -> TableArrays:
        """The tables in the kernels' form."""
        assert self.tables.kernel is not None
        return self.tables.kernel

    @property
    def strategy(self) -> Strategy:
        """The average strategy so far."""
        return average_strategy(self.game, self.tables)

    @property
    def exploitability_chips(self) -> float:
        """Exact exploitability of the average strategy, over every deal of a small card game."""
        return naive.exploitability(self.game, self.strategy)


class Bound(NamedTuple):
    """Upper bound of a correct run's exploitability in chips after a number of iterations."""

    game: Game
    algorithm: str
    iterations: int
    chips: float


KUHN, LEDUC = kuhn(KuhnGame()), leduc(LeducGame())
MERGED_LEDUC = leduc(LeducGame(merge_suits=True))

KUHN_EXTERNAL = Bound(KUHN, "external", 100_000, 0.008)
KUHN_OUTCOME = Bound(KUHN, "outcome", 1_000_000, 0.006)
LEDUC_EXTERNAL = Bound(LEDUC, "external", 5_000_000, 0.013)
LEDUC_EXTERNAL_SHORT = Bound(LEDUC, "external", 1_000_000, 0.025)
LEDUC_OUTCOME_SHORT = Bound(LEDUC, "outcome", 2_000_000, 0.12)


def trained_chips(bound: Bound, **options: object) -> float:
    """Return the exploitability of a run with a bound's game, algorithm and length."""
    return Trainer(bound.game, bound.algorithm, **options).train(bound.iterations).exploitability_chips


def value_chips(game: Game, strategy: Strategy) -> float:
    """Return player 0's chips in a small card game if both play `strategy`, with the game's offset."""
    deals = naive.all_deals(game)
    return float(deals[0] @ naive.value(game, strategy, 0, deals)) + game.offset_chips


def same_tables(one: Trainer, other: Trainer) -> bool:
    """Return True if two runs have the same bits in every table and the same counters."""
    return (
        one.tables.keys() == other.tables.keys()
        and all(np.array_equal(one.tables[name], other.tables[name]) for name in one.tables)
        and (one.iterations, one.nodes) == (other.iterations, other.nodes)
        and np.array_equal(one.rng, other.rng)
    )


def rows(game: Game) -> Iterator[tuple[int, slice, int]]:
    """Yield (block, slots, row) of each decision of a betting tree; slots: slice of a bucket's cells."""
    arrays = game.tree.arrays
    for node in game.tree.decisions:
        slot = int(arrays.slot[node])
        yield int(arrays.block[node]), slice(slot, slot + int(arrays.count[node])), int(arrays.row[node])


# Mean increments under a fixed strategy ------------------------------------------------------------------------------

FROZEN = 1e12  # regrets so large that a million updates do not move the strategy by more than 1e-5


class Increments(NamedTuple):
    """Increments of a cell in one iteration, by table name: [buckets, slots] each."""

    mean: dict[str, np.ndarray]
    error: dict[str, np.ndarray]  # standard error of the mean


def fixed_profile(game: Game, seed: int) -> dict[str, np.ndarray]:
    """Return regret tables of a strategy far from uniform; a fifth of the actions have probability 0."""
    rng = np.random.default_rng(seed)
    profile = {}
    for block in np.flatnonzero(game.tree.row_count):
        shape = int(game.buckets[block]), int(game.tree.row_slots[block])
        profile[table_name("regret", block)] = FROZEN * rng.choice([-1, 0.5, 1, 2, 5], shape)
    return profile


def current_strategy(game: Game, regrets: dict[str, np.ndarray]) -> Strategy:
    """Return regret matching's strategy from whole tables."""
    positive = {name.replace("regret", "strategy_sum"): np.maximum(table, 0) for name, table in regrets.items()}
    return average_strategy(game, TableSet(positive))


def measured_increments(game: Game, algorithm: str, iterations: int, **options: object) -> Increments:
    """Return mean increments of iterations from `fixed_profile`, with errors from 100 batches."""
    trainer = Trainer(game, algorithm, seed=5, **{"regret_dtype": "float64", **options})
    profile = fixed_profile(game, 7)
    means: dict[str, list[np.ndarray]] = {name: [] for name in trainer.tables}
    for batch in range(1, 101):
        for name, table in trainer.tables.items():
            table[:] = 0
            if name in profile:
                table[:, : profile[name].shape[1]] = profile[name]
        before = trainer.iterations
        trainer.train(batch * (iterations // 100))
        for name, table in trainer.tables.items():
            width = int(game.tree.row_slots[int(name[-1]) + 2 * int(name.split("street")[1][0])])
            start = profile.get(name, 0.0)
            means[name].append((table[:, :width] - start) / (trainer.iterations - before))
    return Increments(
        {name: np.mean(batches, 0) for name, batches in means.items()},
        {name: np.std(batches, 0, ddof=1) / 10 for name, batches in means.items()},
    )


def exact_increments(game: Game, strategy: Strategy) -> dict[str, np.ndarray]:
    """Return expected increments by enumeration: counterfactual regrets, and own reach · sigma.

    Zinkevich et al. 2007, equation 5; Lanctot et al. 2009, lemma 1 and section 3.2.
    """
    arrays, deals = game.tree.arrays, naive.all_deals(game)
    chance, bucket, _ = deals
    expected = {}
    for block in np.flatnonzero(game.tree.row_count):
        for kind in ("regret", "strategy_sum"):
            shape = int(game.buckets[block]), int(game.tree.row_slots[block])
            expected[table_name(kind, block)] = np.zeros(shape)

    def walk(node: int, reach: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        if arrays.kind[node] != DECISION:
            return naive.payoffs(game, node, deals)
        block, slot, player = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.player[node])
        sigma = strategy.probability[block][bucket[:, block], slot : slot + int(arrays.count[node])].T
        below = []
        for share, child in zip(sigma, game.tree.children(node), strict=True):
            deeper = (reach[0] * share, reach[1]) if player == 0 else (reach[0], reach[1] * share)
            below.append(walk(child, deeper))
        here = (sigma * below).sum(axis=0)
        for a, value in enumerate(below):
            gain = chance * reach[1 - player] * (value - here) * (1 - 2 * player)
            np.add.at(expected[table_name("regret", block)], (bucket[:, block], slot + a), gain)
            share = chance * reach[player] * sigma[a]
            np.add.at(expected[table_name("strategy_sum", block)], (bucket[:, block], slot + a), share)
        return here

    ones = np.ones(len(chance))
    walk(0, (ones, ones))
    return expected


def increment_scores(game: Game, algorithm: str, iterations: int = 1_000_000, **options: object) -> dict[str, float]:
    """Return the largest |measured - exact| in standard errors, for "regret" and for "strategy_sum".

    A cell whose increments never vary must be right to 1e-6, or its score is infinite.
    """
    measured = measured_increments(game, algorithm, iterations, **options)
    exact = exact_increments(game, current_strategy(game, fixed_profile(game, 7)))
    scores = {"regret": 0.0, "strategy_sum": 0.0}
    for name, expected in exact.items():
        off, error = np.abs(measured.mean[name] - expected), measured.error[name]
        varies = error > 1e-9
        score = np.where(varies, off / np.where(varies, error, 1), np.where(off > 1e-6, np.inf, 0))
        scores[name.split("/")[0]] = max(scores[name.split("/")[0]], float(score.max()))
    return scores


# Chance in the tree --------------------------------------------------------------------------------------------------


def with_chance_in_tree(game: Game) -> Game:
    """Return a card game with its deals as a chance node at the root, without cards outside of the tree."""
    probability, bucket, result = naive.all_deals(game)
    old, deals, nodes = game.tree.arrays, len(result), len(game.tree.arrays.kind)
    index = np.empty((deals, nodes), np.int32)  # where node k of deal d goes
    index[:, 0] = 1 + np.arange(deals)
    index[:, 1:] = 1 + deals + np.arange(deals * (nodes - 1)).reshape(deals, nodes - 1)
    columns = {name: np.zeros(1 + deals * nodes, column.dtype) for name, column in old._asdict().items()}
    parent = np.zeros(1 + deals * nodes, np.int32)
    block = np.maximum(old.block, 0)
    for d in range(deals):
        to = index[d]
        for name in ("kind", "player", "block", "count", "touched"):
            columns[name][to] = getattr(old, name)
        columns["first"][to] = to[np.minimum(old.first, nodes - 1)]
        own = bucket[d, block]
        columns["slot"][to] = old.slot + own * game.tree.row_slots[block]
        columns["row"][to] = old.row + own * game.tree.row_count[block]
        columns["fixed"][to] = old.fixed + old.showdown * result[d]
        parent[to[1:]] = to[game.tree.parent[1:]]
    root = {"kind": CHANCE, "player": NO_PLAYER, "block": -1, "count": deals, "first": 1, "touched": 1}
    for name, column in columns.items():
        column[0] = root.get(name, 0)
    columns["probability"][:] = 1
    columns["probability"][1 : 1 + deals] = probability
    parent[0] = NO_PARENT
    tree = CompiledTree(
        TreeArrays(**columns),
        parent,
        [""] * len(parent),
        game.tree.streets,
        game.tree.row_slots * game.buckets,
        game.tree.row_count * game.buckets,
    )
    return Game(f"{game.name} with chance in the tree", tree, NO_CARDS, game.offset_chips, pot_chips=game.pot_chips)


def strategy_beside(game: Game, in_tree: Strategy) -> Strategy:
    """Convert a strategy of `with_chance_in_tree(game)` to one of `game`."""

    def split(tables: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        return tuple(table.reshape(int(buckets), -1) for table, buckets in zip(tables, game.buckets, strict=True))

    return Strategy(split(in_tree.probability), split(in_tree.weight))
