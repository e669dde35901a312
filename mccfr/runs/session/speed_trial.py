"""What a sampled run will meet on this machine, from a moment of training on tables that are thrown away.

Nodes an iteration change while strategies are learnt - by half of what they are at first, in whole hold'em - and what
they are after so many nodes goes by the nodes for each infoset.  So the play of a long run is seen in a moment on the
same tree with few buckets: those of a player and street that win alike at showdowns become one, until there are as
many nodes for each infoset as in the whole run, or no fewer than ten buckets are left; periods of discounting shrink
with them.  How fast nodes are touched is measured on tables of the run's own size; pruning, which makes fewer and
dearer nodes of them, has hardly begun there, so its price is taken from the tree with few buckets, with and without.
"""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import Deals, new_deals
from mccfr.config.solvers import ExternalSamplingConfig, SampledConfig
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import PERIOD_NODES, SampledAlgorithm, SampledSolver
from mccfr.tables.layout import TableLayout, private_tables
from storage import space

_FEWEST_BUCKETS = 10
_SORTED_DEALS = 100_000  # by which buckets are sorted
_AT_A_TIME = 4096
_MOST_BYTES = 4 << 30  # of tables on which speed is measured
_MEMORY_SHARE = 0.5
_LAST_SHARE = 0.25  # of the trial: what is held for the play of a run that is longer than it can show
_NO_LIMIT = 2**62


class MeasuredPlay(NamedTuple):
    """What was found.

    nodes_per_second     of one worker, by processor time; None where tables of that size find no room
    nodes_per_iteration  mean over the run
    """

    nodes_per_second: float | None
    nodes_per_iteration: float


def can_measure(config: Config) -> bool:
    """Whether a configuration's algorithm is one that a trial can be made of."""
    algorithm = algorithm_of(config)
    return isinstance(algorithm, SampledAlgorithm) and config.run.strata is None


def measured_play(config: Config, game: Game, layout: TableLayout, nodes: int | None, seconds: float) -> MeasuredPlay:
    """Train for a moment.

    nodes    of the run; None: more than can be counted
    seconds  of processor time, about, in each of two trainings
    Raises `ValueError` for an abstraction that is not built.
    """
    algorithm = algorithm_of(config)
    speed = None
    if layout.nbytes <= min(_MOST_BYTES, _MEMORY_SHARE * space.available_memory_bytes()):
        speed = _trained(algorithm.solver(game, private_tables(layout)), seconds).speed
    infosets = game.infosets.astype(float).sum()
    shown = (speed or 1e7) * seconds  # nodes of the second training, about
    share = 0.0 if nodes is None else min(1.0, shown / nodes)
    few = _with_buckets(game, np.maximum(np.minimum(game.buckets, _FEWEST_BUCKETS), share * game.buckets))
    smaller = few.infosets.sum() / infosets
    found = _trained(_scaled(config, few, smaller), seconds)
    if speed is not None and (plain := _unpruned(config)) is not None:
        speed *= found.speed / _trained(_scaled(plain, few, smaller), seconds).speed
    if nodes is None:
        return MeasuredPlay(speed, found.last)
    seen = min(1.0, found.nodes / (nodes * smaller))  # of the run
    return MeasuredPlay(speed, float(1 / (seen / found.mean + (1 - seen) / found.last)))


def _unpruned(config: Config) -> Config | None:
    """The configuration without sampled pruning; None where it has none."""
    solver = config.solver
    if not isinstance(solver, ExternalSamplingConfig) or not solver.negative_regret_pruning:
        return None
    return msgspec.structs.replace(config, solver=msgspec.structs.replace(solver, negative_regret_pruning=False))


class _Training(NamedTuple):
    """Nodes touched, by which speed, and nodes an iteration: over all, and in the last part."""

    nodes: int
    speed: float
    mean: float
    last: float


def _trained(solver: Any, seconds: float) -> _Training:
    assert isinstance(solver, SampledSolver)
    solver.warm_up()
    points = [(0.0, 0, 0)]
    began = time.thread_time()
    while points[-1][0] < seconds:
        _, nodes, iterations = points[-1]
        done, touched = solver.run(nodes, _NO_LIMIT, _NO_LIMIT)
        points.append((time.thread_time() - began, nodes + touched, iterations + done))
    spent, nodes, iterations = points[-1]
    half = next(point for point in points if point[0] >= spent / 2 or point is points[-2])
    late = next(point for point in points if point[0] >= (1 - _LAST_SHARE) * spent or point is points[-2])
    return _Training(
        nodes,
        (nodes - half[1]) / (spent - half[0]),
        nodes / iterations,
        (nodes - late[1]) / (iterations - late[2]),
    )


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
