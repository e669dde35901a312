"""Measures the speed of a planned run by a short training on its own tree and tables.

Nodes per iteration change as strategies are learnt: in whole hold'em they halve. They are therefore known only if the
training visits each infoset several times. Negative-regret pruning begins later than the measurement ends, so the
measurement is without it. With pruning, a node costs about 1.5 times as much (docs/measured/performance.md, sampled
pruning).
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from abstraction.boards import canonical_boards, used_slots
from abstraction.buckets import bucket_dtype, is_built, unused
from abstraction.cards import COMBO_COUNT
from mccfr.cards.full_deck import WholeDeck
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import ExternalSamplingConfig
from mccfr.games.game import Game
from mccfr.solvers.game_from_config import opponents_buckets, planned_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.solver import Share
from mccfr.tables.table_layout import private_tables
from storage import free_space

SECONDS = 1.0
"""Processor time of a trial."""
_MOST_BYTES = 1 << 30  # tables of a trial; larger ones are hardly slower
_MEMORY_SHARE = 0.25
_PRUNED_NODE = 1.5  # time of a node with pruning, relative to one without
_VISITS = 10  # nodes per infoset after which nodes per iteration hardly change
_NO_LIMIT = 2**62


class MeasuredPlay(NamedTuple):
    """Result of a trial.

    nodes_per_second     of one worker, by processor time
    nodes_per_iteration  None if the trial is too short to show it
    """

    nodes_per_second: float
    nodes_per_iteration: float | None


def measured_play(config: Config, base: Path, game: Game) -> MeasuredPlay | None:
    """Measure a training of `SECONDS` of processor time; None if its tables do not fit in memory.

    The figures are of the later half of the time, because the first iterations may compile kernels. A run in strata is
    measured without strata. Buckets of whole hold'em that are not built, or too many for this machine, are
    replaced by random ones.

    base  directory that the configuration's files are relative to
    game  the game of `config`, whose buckets need not be built
    """
    solver, price = config.solver, 1.0
    if isinstance(solver, ExternalSamplingConfig) and solver.negative_regret_pruning:
        pruned = 1 - min(1.0, solver.prune_after_nodes / max(1, config.run.nodes or _NO_LIMIT))
        solver, price = msgspec.structs.replace(solver, negative_regret_pruning=False), 1 + pruned * (_PRUNED_NODE - 1)
    layout, most = algorithm_of(config).layout(game), _MEMORY_SHARE * free_space.available_memory_bytes()
    run = msgspec.structs.replace(config.run, strata=None, blocks=None, cycle_iterations=None)
    tables = msgspec.structs.replace(config.tables, memory_budget=None)
    trial = msgspec.structs.replace(config, solver=solver, run=run, tables=tables)
    if config.run.strata is not None:
        game = planned_game(trial, base)
        layout = algorithm_of(trial).layout(game)
    share = min(1.0, min(_MOST_BYTES, most) / layout.nbytes)
    random = game.cards.shared_bytes > 0 and (share < 1 or not _has_buckets(config, base))
    if random:
        game = _with_random_buckets(game, share)
    elif layout.nbytes > most:
        return None
    return _trained(trial, game, price, keeps_length=not random)


def _has_buckets(config: Config, base: Path) -> bool:
    """Return whether the buckets of all hands are in files."""
    tables = (config.abstraction, opponents_buckets(config, base))
    return config.abstraction is not None and all(is_built(base / table.path) for table in tables if table is not None)


def _trained(config: Config, game: Game, price: float, *, keeps_length: bool) -> MeasuredPlay:
    """Train and return the figures.

    price         time of a node of the run, relative to one of the trial
    keeps_length  whether iterations of the run touch as many nodes as those of the trial
    """
    algorithm = algorithm_of(config)
    share = Share(workers=max(1, config.run.workers) if algorithm.traits.one_process else 1)
    training, nodes, iterations = algorithm.solver(game, private_tables(algorithm.layout(game)), share), 0, 0
    training.warm_up()
    most, last = config.run.nodes or _NO_LIMIT, config.run.iterations or _NO_LIMIT
    points, began = [(0.0, 0, 0)], time.process_time()
    while (points[-1][0] < SECONDS or len(points) < 3) and nodes < most and iterations < last:
        done, touched = training.run(nodes, most - nodes, last - iterations)
        nodes, iterations = nodes + touched, iterations + done
        points.append((time.process_time() - began, nodes, iterations))
    half = next(point for point in points if point[0] >= points[-1][0] / 2 or point is points[-2])
    spent, trained = points[-1][0] - half[0], nodes - half[1]
    seen = not isinstance(algorithm, SampledAlgorithm) or nodes >= _VISITS * game.infosets.sum(dtype=float)
    length = trained / max(1, iterations - half[2]) if keeps_length and seen else None
    return MeasuredPlay(trained / spent / price, length)


def _with_random_buckets(game: Game, share: float) -> Game:
    """Return a game of whole hold'em with a share of its buckets, at random hands."""
    random = {
        name: _random_deck(cards, share)
        for name in ("cards", "opponent_cards")
        if isinstance(cards := getattr(game, name), WholeDeck)
    }
    return replace(game, **random)  # type: ignore[arg-type]


def _random_deck(deck: WholeDeck, share: float) -> WholeDeck:
    counts = np.ceil(deck.buckets * share).astype(np.int64)

    def load() -> Sequence[npt.NDArray[Any]]:
        return [_random_table(deck.cards_on(street), int(counts[street, 0])) for street in range(deck.streets)]

    return replace(deck, buckets=counts, load=load, memory=None, histories=None)


def _random_table(cards: int, count: int) -> npt.NDArray[Any]:
    """Return [boards, 1326] random buckets of canonical boards of so many cards."""
    if not cards:
        return np.zeros((1, COMBO_COUNT), bucket_dtype(count))
    used = used_slots(canonical_boards(cards))
    dtype = bucket_dtype(count)
    table = np.random.default_rng(cards).integers(count, size=used.shape, dtype=dtype)
    table[~used] = unused(dtype)
    return table
