"""Predicts a run's speed and nodes per iteration on this machine from a short training.

Nodes per iteration change as strategies are learnt; in whole hold'em they halve. They depend on the number of nodes per
infoset. The trial therefore merges buckets that win alike at showdowns. It stops when the short training has as many
nodes per infoset as the whole run, or at ten buckets. Discount periods shrink accordingly. Speed is measured on tables
of the run's own size.

The effect of pruning appears later than the trial can show. The price of a node with pruning, relative to one without,
comes from the small tree, where both are trained in turn. Nodes per iteration are assumed to keep falling as a power of
the nodes, until ten times as many are touched.
"""

import time
from dataclasses import replace
from math import log2
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals, new_deals
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import ExternalSamplingConfig, SampledConfig
from mccfr.games.game import Game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import PERIOD_NODES, SampledAlgorithm
from mccfr.solvers.solver import Share, Solver
from mccfr.tables.table_layout import TableLayout, private_tables
from storage import free_space

_FEWEST_BUCKETS = 10
_SORTED_DEALS = 100_000  # deals to estimate the winnings by which buckets are sorted
_AT_A_TIME = 4096
_MOST_BYTES = 4 << 30  # largest tables on which speed is measured
_MEMORY_SHARE = 0.5
_LAST_SHARE = 0.25  # of the trial: the last part represents a longer run
_PRUNING_TIMES = 4  # pruning needs a longer trial
_FALLS_TIMES = 10  # nodes per iteration keep falling until this many times the nodes
_SLICES = 10  # trainings that are compared alternate
_NO_LIMIT = 2**62


class MeasuredPlay(NamedTuple):
    """Result of a trial.

    nodes_per_second     of one worker, by processor time; None if tables of that size do not fit
    nodes_per_iteration  mean over the run
    """

    nodes_per_second: float | None
    nodes_per_iteration: float


def measured_play(config: Config, game: Game, layout: TableLayout, seconds: float) -> MeasuredPlay | None:
    """Measure a short training; None if the tables of an algorithm without sampled actions do not fit.

    seconds  approximate processor time of each of two trainings, or of one without sampling; six times as long with
             pruning

    Raises `ValueError` for an abstraction that is not built.
    """
    algorithm, workers, speed = algorithm_of(config), max(1, config.run.workers), None
    if layout.nbytes <= min(_MOST_BYTES, _MEMORY_SHARE * free_space.available_memory_bytes()):
        threads = workers if algorithm.traits.one_process else 1
        own = _Training(
            algorithm.solver(game, private_tables(layout), Share(workers=threads)), None, config.run.iterations
        )
        own.train(seconds)
        speed = own.speed
        if not isinstance(algorithm, SampledAlgorithm):
            return MeasuredPlay(speed, own.mean)
    return _sampled_play(config, game, speed, seconds) if isinstance(algorithm, SampledAlgorithm) else None


def _sampled_play(config: Config, game: Game, speed: float | None, seconds: float) -> MeasuredPlay:
    """Predict the whole run's nodes per iteration, and its speed.

    speed  nodes per second on the run's own tables, before pruning
    """
    nodes, plain = config.run.nodes, _unpruned(config)
    seconds *= 1 if plain is None else _PRUNING_TIMES
    shown = (speed or 1e7) * seconds  # approximate nodes of the training
    share = min(1.0, shown / nodes) if nodes else 0.0  # no limit, or nothing to do
    few = _with_buckets(game, np.maximum(np.minimum(game.buckets, _FEWEST_BUCKETS), share * game.buckets))
    smaller = few.infosets.sum() / game.infosets.astype(float).sum()
    most = None if nodes is None else max(1, round(nodes * smaller))
    found, price = _Training(_scaled(config, few, smaller), most), 1.0
    if plain is None:
        found.train(seconds)
    else:
        beside = _Training(_scaled(plain, few, smaller), most)
        for _ in range(_SLICES):
            found.train(seconds / _SLICES)
            beside.train(seconds / _SLICES / _PRUNING_TIMES)
        price = found.speed / beside.speed
    left, power = 0 if most is None else max(0, most - found.nodes), 0.0 if plain is None else found.fell
    expected = found.last if most is None else found.mean_with(left, power)
    return MeasuredPlay(None if speed is None else price * speed, expected)


def _unpruned(config: Config) -> Config | None:
    """Return the configuration without negative-regret pruning; None if it has none."""
    solver = config.solver
    if not isinstance(solver, ExternalSamplingConfig) or not solver.negative_regret_pruning:
        return None
    return msgspec.structs.replace(config, solver=msgspec.structs.replace(solver, negative_regret_pruning=False))


class _Training:
    """A training from zero, with points of (processor seconds, nodes, iterations)."""

    def __init__(self, solver: Solver, nodes: int | None = None, iterations: int | None = None) -> None:
        solver.warm_up()
        self._solver, self._limits = solver, (nodes or _NO_LIMIT, iterations or _NO_LIMIT)
        self.points = [(0.0, 0, 0)]

    def train(self, seconds: float) -> None:
        """Continue for `seconds` or to the end of the run; at least two calls, because the first may compile."""
        (before, nodes, iterations), began = self.points[-1], time.process_time()
        until, (most, last) = before + seconds, self._limits
        while (self.points[-1][0] < until or len(self.points) < 3) and nodes < most and iterations < last:
            done, touched = self._solver.run(nodes, most - nodes, last - iterations)
            nodes, iterations = nodes + touched, iterations + done
            self.points.append((before + time.process_time() - began, nodes, iterations))

    @property
    def nodes(self) -> int:
        """Total nodes touched."""
        return self.points[-1][1]

    @property
    def mean(self) -> float:
        """Nodes per iteration."""
        return self.nodes / self.points[-1][2]

    @property
    def speed(self) -> float:
        """Nodes per second, over the later half of the time."""
        (spent, nodes, _), (before, first, _) = self.points[-1], self._at(0, 0.5)
        return (nodes - first) / (spent - before)

    @property
    def last(self) -> float:
        """Nodes per iteration, over the last quarter of the time."""
        return self._between(self._at(0, 1 - _LAST_SHARE), self.points[-1])

    @property
    def fell(self) -> float:
        """Exponent with which nodes per iteration fell, from the nodes' second quarter to the later half."""
        quarter, half = self._at(1, 0.25), self._at(1, 0.5)
        return min(0.0, log2(self._between(half, self.points[-1]) / self._between(quarter, half)))

    def mean_with(self, left: int, power: float) -> float:
        """Return the mean nodes per iteration of a run with `left` more nodes.

        power  exponent with which nodes per iteration change with the total nodes
        """
        times = 1 + left / self.nodes
        falling = min(times, _FALLS_TIMES)
        iterations = (falling ** (1 - power) - 1) / (1 - power) + (times - falling) / falling**power
        now = self.last * (1 - _LAST_SHARE / 2) ** -power
        return times / (1 / self.mean + iterations / now)

    def _at(self, kind: int, share: float) -> tuple[float, int, int]:
        """Return the first point at a share of all seconds (kind 0) or nodes (kind 1), except the last point."""
        least = share * self.points[-1][kind]
        return next(point for point in self.points if point[kind] >= least or point is self.points[-2])

    @staticmethod
    def _between(first: tuple[float, int, int], last: tuple[float, int, int]) -> float:
        """Return the nodes per iteration between two points."""
        return (last[1] - first[1]) / max(1, last[2] - first[2])


def _scaled(config: Config, game: Game, share: float) -> Any:
    """Return a solver on a game with fewer infosets; its node counts are scaled by `share`."""
    solver = config.solver
    assert isinstance(solver, SampledConfig)
    changes: dict[str, Any] = {"period_nodes": max(1, round(share * (solver.period_nodes or PERIOD_NODES)))}
    for name in ("discount_until_nodes", "prune_after_nodes"):
        if getattr(solver, name, None) is not None:
            changes[name] = round(share * getattr(solver, name))
    algorithm = algorithm_of(msgspec.structs.replace(config, solver=msgspec.structs.replace(solver, **changes)))
    return algorithm.solver(game, private_tables(algorithm.layout(game)))


# --- fewer buckets ---


def _with_buckets(game: Game, most: npt.NDArray[np.floating]) -> Game:
    """Return the game with similar buckets merged, to at most `most` [B] in each block."""
    wanted = np.ceil(most).astype(np.int64)
    if np.all(wanted >= game.buckets):
        return game
    groups = [_groups(shares, int(count)) for shares, count in zip(_by_bucket(game), wanted, strict=True)]
    cards: Any = _Grouped(game.cards, groups)
    return replace(game, cards=cards)


def _by_bucket(game: Game) -> list[npt.NDArray[np.float64]]:
    """Return for each block [2, buckets]: deals of each bucket, and its total winnings at showdown."""
    dealer, deals = game.cards.dealer(0, 0), new_deals(_AT_A_TIME, game.tree.streets)
    found = [np.zeros((2, int(count))) for count in game.buckets]
    for first in range(0, _SORTED_DEALS, _AT_A_TIME):
        dealer.draw(first, _AT_A_TIME, deals)
        for block, counts in enumerate(found):
            bucket, sign = deals.bucket[:, block], 1.0 - 2.0 * (block % 2)
            counts[0] += np.bincount(bucket, minlength=counts.shape[1])
            counts[1] += np.bincount(bucket, sign * deals.result, minlength=counts.shape[1])
    return found


def _groups(dealt: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int32]:
    """Return a group for each bucket, [buckets] int32, ordered by winnings, dealt about equally often."""
    often, won = dealt
    order = np.argsort(won / np.maximum(often, 1), kind="stable")
    below = np.cumsum(often[order]) - often[order] / 2
    group = np.empty(len(often), np.int32)
    group[order] = np.minimum(count - 1, count * below / often.sum())
    return group


class _Grouped:
    """Cards whose buckets are groups of other cards' buckets; all other attributes are the same."""

    def __init__(self, cards: Any, groups: list[npt.NDArray[np.int32]]) -> None:
        self._cards, self._groups = cards, groups
        self.buckets = np.array([group.max() + 1 for group in groups], np.int64).reshape(-1, 2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cards, name)

    def dealer(self, seed: int, worker: int) -> "_GroupedDealer":
        """Return a dealer of the grouped buckets."""
        return _GroupedDealer(self._cards.dealer(seed, worker), self._groups)


class _GroupedDealer:
    """A `mccfr.cards.base.Dealer` with groups instead of buckets."""

    def __init__(self, dealer: Any, groups: list[npt.NDArray[np.int32]]) -> None:
        self._dealer, self._groups = dealer, groups

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Draw deals, and replace their buckets by groups."""
        self._dealer.draw(first, count, deals)
        for block, group in enumerate(self._groups):
            deals.bucket[:count, block] = group[deals.bucket[:count, block]]
