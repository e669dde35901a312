"""What a run will meet on this machine, from a moment of training on tables that are thrown away.

Nodes an iteration of a sampled run change while strategies are learnt - by half of what they are at first, in whole
hold'em - and what they are after so many nodes goes by the nodes for each infoset.  So the play of a long run is seen
in a moment on the same tree with few buckets: those of a player and street that win alike at showdowns become one,
until there are as many nodes for each infoset as in the whole run, or no fewer than ten buckets are left; periods of
discounting shrink with them.  How fast nodes are touched is measured on tables of the run's own size.

Pruning has hardly begun on those, and goes on for longer than a moment shows.  What a node costs with it, times what it
costs without, is taken from the tree with few buckets, with both in turn; and nodes an iteration are taken to go on
falling as the power of the nodes by which they have fallen, until ten times as many have been touched.
"""

import time
from dataclasses import replace
from math import log2
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals, new_deals
from mccfr.config.solvers import ExternalSamplingConfig, SampledConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import PERIOD_NODES, SampledAlgorithm
from mccfr.solvers.solver import Share, Solver
from mccfr.tables.layout import TableLayout, private_tables
from storage import space

_FEWEST_BUCKETS = 10
_SORTED_DEALS = 100_000  # by which buckets are sorted
_AT_A_TIME = 4096
_MOST_BYTES = 4 << 30  # of tables on which speed is measured
_MEMORY_SHARE = 0.5
_LAST_SHARE = 0.25  # of the trial: what is held for the play of a run that is longer than it can show
_PRUNING_TIMES = 4  # as long as others: pruning is slow to show
_FALLS_TIMES = 10  # as many nodes as were seen: so long, nodes an iteration go on falling
_SLICES = 10  # of trainings that are compared, in turn
_NO_LIMIT = 2**62


class MeasuredPlay(NamedTuple):
    """What was found.

    nodes_per_second     of one worker, by processor time; None where tables of that size find no room
    nodes_per_iteration  mean over the run
    """

    nodes_per_second: float | None
    nodes_per_iteration: float


def measured_play(config: Config, game: Game, layout: TableLayout, seconds: float) -> MeasuredPlay | None:
    """Train for a moment; None for tables that find no room, of an algorithm that does not sample actions.

    seconds  of processor time, about, in each of two trainings, or of one without sampling; with pruning six times that
    Raises `ValueError` for an abstraction that is not built.
    """
    algorithm, workers, speed = algorithm_of(config), max(1, config.run.workers), None
    if layout.nbytes <= min(_MOST_BYTES, _MEMORY_SHARE * space.available_memory_bytes()):
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
    """The play of the whole run, and its speed by that of a node on its own tables, before pruning."""
    nodes, plain = config.run.nodes, _unpruned(config)
    seconds *= 1 if plain is None else _PRUNING_TIMES
    shown = (speed or 1e7) * seconds  # nodes of the training, about
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
    """The configuration without sampled pruning; None where it has none."""
    solver = config.solver
    if not isinstance(solver, ExternalSamplingConfig) or not solver.negative_regret_pruning:
        return None
    return msgspec.structs.replace(config, solver=msgspec.structs.replace(solver, negative_regret_pruning=False))


class _Training:
    """Training from nothing, and what it met: points of (processor seconds, nodes, iterations)."""

    def __init__(self, solver: Solver, nodes: int | None = None, iterations: int | None = None) -> None:
        solver.warm_up()
        self._solver, self._limits = solver, (nodes or _NO_LIMIT, iterations or _NO_LIMIT)
        self.points = [(0.0, 0, 0)]

    def train(self, seconds: float) -> None:
        """Go on for so long, or to the end of the run; at least twice, as the first time may compile."""
        (before, nodes, iterations), began = self.points[-1], time.process_time()
        until, (most, last) = before + seconds, self._limits
        while (self.points[-1][0] < until or len(self.points) < 3) and nodes < most and iterations < last:
            done, touched = self._solver.run(nodes, most - nodes, last - iterations)
            nodes, iterations = nodes + touched, iterations + done
            self.points.append((before + time.process_time() - began, nodes, iterations))

    @property
    def nodes(self) -> int:
        """Touched in all."""
        return self.points[-1][1]

    @property
    def mean(self) -> float:
        """Nodes an iteration."""
        return self.nodes / self.points[-1][2]

    @property
    def speed(self) -> float:
        """Nodes a second, over the later half of the time."""
        (spent, nodes, _), (before, first, _) = self.points[-1], self._at(0, 0.5)
        return (nodes - first) / (spent - before)

    @property
    def last(self) -> float:
        """Nodes an iteration over the last of the time."""
        return self._between(self._at(0, 1 - _LAST_SHARE), self.points[-1])

    @property
    def fell(self) -> float:
        """The power of the nodes with which nodes an iteration fell, from their second quarter to the later half."""
        quarter, half = self._at(1, 0.25), self._at(1, 0.5)
        return min(0.0, log2(self._between(half, self.points[-1]) / self._between(quarter, half)))

    def mean_with(self, left: int, power: float) -> float:
        """Nodes an iteration, with so many nodes to come, in whose course they change as a power of all nodes."""
        times = 1 + left / self.nodes
        falling = min(times, _FALLS_TIMES)
        iterations = (falling ** (1 - power) - 1) / (1 - power) + (times - falling) / falling**power
        now = self.last * (1 - _LAST_SHARE / 2) ** -power
        return times / (1 / self.mean + iterations / now)

    def _at(self, kind: int, share: float) -> tuple[float, int, int]:
        """The first point from a share of all seconds (0) or nodes (1) on, but the last."""
        least = share * self.points[-1][kind]
        return next(point for point in self.points if point[kind] >= least or point is self.points[-2])

    @staticmethod
    def _between(first: tuple[float, int, int], last: tuple[float, int, int]) -> float:
        """Nodes an iteration from one point to another."""
        return (last[1] - first[1]) / max(1, last[2] - first[2])


def _scaled(config: Config, game: Game, share: float) -> Any:
    """A solver of the configuration on a game of fewer infosets, whose counts of nodes are smaller by as much."""
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
    """The game where buckets that win alike at showdowns are one, at most so many of each block [B]."""
    wanted = np.ceil(most).astype(np.int64)
    if np.all(wanted >= game.buckets):
        return game
    groups = [_groups(shares, int(count)) for shares, count in zip(_by_bucket(game), wanted, strict=True)]
    cards: Any = _Grouped(game.cards, groups)
    return replace(game, cards=cards)


def _by_bucket(game: Game) -> list[npt.NDArray[np.float64]]:
    """Of each block [2, buckets]: how often a bucket was dealt, and what it won at the showdown in all."""
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
    """[buckets] a group of each: in order of what they win, groups that are dealt about equally often."""
    often, won = dealt
    order = np.argsort(won / np.maximum(often, 1), kind="stable")
    below = np.cumsum(often[order]) - often[order] / 2
    group = np.empty(len(often), np.int32)
    group[order] = np.minimum(count - 1, count * below / often.sum())
    return group


class _Grouped:
    """Cards whose buckets are groups of another's; everything else is as there."""

    def __init__(self, cards: Any, groups: list[npt.NDArray[np.int32]]) -> None:
        self._cards, self._groups = cards, groups
        self.buckets = np.array([group.max() + 1 for group in groups], np.int64).reshape(-1, 2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cards, name)

    def dealer(self, seed: int, worker: int) -> "_GroupedDealer":
        """As `Cards.dealer`."""
        return _GroupedDealer(self._cards.dealer(seed, worker), self._groups)


class _GroupedDealer:
    """Deals with groups in place of buckets: a `mccfr.cards.cards.Dealer`."""

    def __init__(self, dealer: Any, groups: list[npt.NDArray[np.int32]]) -> None:
        self._dealer, self._groups = dealer, groups

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`."""
        self._dealer.draw(first, count, deals)
        for block, group in enumerate(self._groups):
            deals.bucket[:count, block] = group[deals.bucket[:count, block]]
