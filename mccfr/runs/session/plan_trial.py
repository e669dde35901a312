"""Measures the speed of a planned run by a short training on its own tree and tables.

Nodes per iteration change as strategies are learnt: in full-deck hold'em they halve. They are therefore known only if
the training visits each infoset several times.

Negative-regret pruning begins later than the measurement ends. So the later half of the measurement prunes with scaled
thresholds. Regrets grow with the nodes touched, and thresholds in proportion to the training's length prune about the
same actions.
"""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf, log
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
from mccfr.config.solver_tables import ExternalSamplingConfig, SolverConfig
from mccfr.games.game import Game
from mccfr.solvers.game_from_config import opponents_buckets, planned_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.solver import Algorithm, Share
from mccfr.solvers.strata_training import (
    Barrier,
    StratumWorker,
    first_states,
    first_street_names,
    with_copies,
)
from mccfr.tables.table_layout import TableSet, private_tables, table_name
from storage import free_space
from storage.schema import ArraySpec
from storage.table_formats import compressed_share

SECONDS = 1.0
"""Seconds of processor time of a trial (short training) of a game with at most `_INFOSETS` infosets."""
_INFOSETS, _LONGEST = 2e7, 8.0  # trials of more infosets are longer in proportion, up to so many times
_MOST_BYTES = 1 << 30  # tables of a trial; larger ones are hardly slower
_MEMORY_SHARE = 0.25
_VISITS = 10  # nodes per infoset after which nodes per iteration hardly change
_NO_LIMIT = 2**62
_ENDLESS_NODES = 1e11  # assumed length of a run without a limit of nodes
_RANDOM_BITS = 4  # of values at the end of a run, beyond those of a trial: as fits compressed checkpoints of four runs
_TINY = 1e-12


class MeasuredPlay(NamedTuple):
    """Result of a trial, a short training.

    nodes_per_second     nodes touched per second of processor time by one worker
    nodes_per_iteration  nodes touched by an iteration; None: not known, because the trial is too short or has random
                         buckets
    compressed           estimated size of the tables in the run's last, compressed checkpoint, as a share of their full
                         size
    """

    nodes_per_second: float
    nodes_per_iteration: float | None
    compressed: float = 1.0


def measured_play(config: Config, base: Path, game: Game) -> MeasuredPlay | None:
    """Measure a training of a few seconds of processor time; return None if its tables are too large.

    The figures are of the later half of the time, because the first iterations may compile kernels. A run whose boards
    are divided into strata, groups with buckets of their own, is measured in them if all tables fit, else without them.
    In full-deck hold'em, random buckets replace those that are not built. Fewer random buckets are taken if the tables
    exceed 1 GiB or a quarter of the available memory. In other games, tables above that quarter are too large.

    base  directory that the configuration's files are relative to
    game  the game of `config`, whose buckets need not be built
    """
    layout, most = algorithm_of(config).layout(game), _MEMORY_SHARE * free_space.available_memory_bytes()
    if game.strata is not None and layout.nbytes <= min(_MOST_BYTES, most) and not _lacks_buckets(config, base, game):
        return _trained(config, game, 1.0, keeps_length=True)
    run = msgspec.structs.replace(config.run, strata=None, blocks=None, cycle_iterations=None)
    trial = msgspec.structs.replace(config, run=run, tables=msgspec.structs.replace(config.tables, memory_budget=None))
    if config.run.strata is not None:
        game = planned_game(trial, base)
        layout = algorithm_of(trial).layout(game)
    share = min(1.0, min(_MOST_BYTES, most) / layout.nbytes)
    random = game.cards.shared_bytes > 0 and (share < 1 or _lacks_buckets(config, base, game))
    if random:
        game = _with_random_buckets(game, share)
    elif layout.nbytes > most:
        return None
    return _trained(trial, game, share if random else 1.0, keeps_length=not random)


def _lacks_buckets(config: Config, base: Path, game: Game) -> bool:
    """Return whether the game takes buckets from files and lacks one, of its own or its opponents'."""
    tables = (config.abstraction, opponents_buckets(config, base))
    built = config.abstraction is not None and all(is_built(base / each.path) for each in tables if each is not None)
    return game.cards.shared_bytes > 0 and not built


class _StrataTraining:
    """Trains all strata, one interval in each call, as a worker of the run does in the middle of the run.

    A stratum is a group of second-street boards. An interval is the training between two additions of the strata's
    changes to the first street's tables. Several objects may train the same tables in threads. They begin with
    different strata, so that they seldom write the same rows. Workers of a run have a copy of the first street each;
    these objects share one, so its values are only about those of a run.
    """

    def __init__(self, algorithm: Algorithm, game: Game, tables: TableSet, share: Share) -> None:
        assert isinstance(algorithm, SampledAlgorithm) and game.strata is not None
        totals = {name: np.zeros(tables[name].shape) for name in first_street_names(game)}
        self._barrier = Barrier(game, algorithm, totals)
        self._worker = StratumWorker(game, algorithm, totals, tables, np.zeros(self._barrier.parts.cells, np.int64))
        self._states, self._run = first_states(algorithm, game.strata.count), algorithm.config.run
        first = game.strata.count * share.worker // share.workers
        self._order = [*range(first, game.strata.count), *range(first)]

    def warm_up(self) -> None:
        self._worker.solver.warm_up()

    def _totals(self) -> tuple[int, int]:
        return sum(state.iterations for state in self._states), sum(state.nodes for state in self._states)

    def run(self, total_nodes: int, node_limit: int, iteration_limit: int) -> tuple[int, int]:
        """Train one interval and return its (iterations, nodes touched).

        The arguments have no effect; `Solver.run` has the same. The first call trains the run's first interval. Further
        calls train intervals as long as those in the middle of the run.
        """
        del total_nodes, node_limit, iteration_limit
        counts, (interval, amounts) = self._totals(), self._barrier.begin(self._states)
        for stratum in self._order:
            self._worker.run(stratum, self._states[stratum], amounts[stratum], interval)
        self._barrier.add(interval, self._worker.changes)
        self._worker.changes[:] = 0
        done, touched = (after - before for after, before in zip(self._totals(), counts, strict=True))
        end = min((self._run.nodes or _ENDLESS_NODES) * done / touched, self._run.iterations or _NO_LIMIT)
        for state in self._states:
            state.iterations = max(state.iterations, int(end / 2 / len(self._states)))
        return done, touched


class _Trial:
    """Short training on its own tables, to measure speed and compressibility for a plan.

    Each call of `train` continues the one before, possibly with another `[solver]` table.

    nodes, iterations  counts of all calls together
    """

    def __init__(self, config: Config, game: Game) -> None:
        algorithm = algorithm_of(config)
        self._config, self._game, self.layout = config, game, algorithm.layout(game)
        if game.strata is not None:
            self.layout = with_copies(self.layout)
        self.tables = private_tables(self.layout)
        self._share = Share(workers=max(1, config.run.workers) if algorithm.traits.one_process else 1)
        self.nodes = self.iterations = 0
        self._found = inf, 0.0

    def train(self, solver: SolverConfig, seconds: float, most: int, last: int) -> tuple[float, float]:
        """Return (processor seconds per node, nodes per iteration) of a training's later half.

        The first batch is not part of the time, because it may compile kernels and allocates most pages of the
        tables. If an earlier call has reached the limits, its figures are returned.

        solver   `[solver]` table with which to train
        seconds  processor time of this call
        most     limit of the nodes of the whole trial, all calls together
        last     limit of its iterations, likewise
        """
        if self.nodes >= most or self.iterations >= last:
            return self._found
        algorithm = algorithm_of(msgspec.structs.replace(self._config, solver=solver))
        training = self._training(algorithm, self._share)
        training.warm_up()
        clock = time.process_time if algorithm.traits.one_process else time.thread_time

        def goes_on() -> bool:
            return self.nodes < most and self.iterations < last

        def batch() -> tuple[float, int, int]:
            done, touched = training.run(self.nodes, most - self.nodes, last - self.iterations)
            self.nodes, self.iterations = self.nodes + touched, self.iterations + done
            return clock(), self.nodes, self.iterations

        points = [(clock(), self.nodes, self.iterations), batch()]
        if goes_on():
            del points[0]
        with self._other_workers(algorithm, most, last):
            while goes_on() and (len(points) < 2 or points[-1][0] - points[0][0] < seconds):
                points.append(batch())
        middle = (points[0][0] + points[-1][0]) / 2
        half = next(point for point in points if point[0] >= middle or point is points[-2])
        nodes = self.nodes - half[1]
        self._found = (points[-1][0] - half[0]) / nodes, nodes / max(1, self.iterations - half[2])
        return self._found

    def _training(self, algorithm: Algorithm, share: Share) -> Any:
        if self._game.strata is not None:
            return _StrataTraining(algorithm, self._game, self.tables, share)
        return algorithm.solver(self._game, self.tables, share)

    @contextmanager
    def _other_workers(self, algorithm: Algorithm, most: int, last: int) -> Iterator[None]:
        """Let threads train the same tables during the `with` block, as the run's other workers will.

        So the measured speed includes that processors of one core slow each other down. This thread and the others
        together are at most as many as the processors. No threads are started for algorithms that train in one process,
        with threads of their own.

        most, last  limits of nodes and of iterations, passed to the solver of each thread
        """
        count, ended = min(self._config.run.workers, len(os.sched_getaffinity(0))), threading.Event()

        def work(worker: int) -> None:
            training = self._training(algorithm, Share(worker, count))
            while not ended.is_set():
                training.run(self.nodes, most, last)

        others = range(1, 1 if algorithm.traits.one_process else count)
        threads = [threading.Thread(target=work, args=(worker,)) for worker in others]
        try:
            for thread in threads:
                thread.start()
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def compressed(self, left: float = 1.0) -> float:
        """Return the tables' estimated size in a compressed checkpoint, as a share of full size.

        The trial's cells are first changed to resemble those at the end of the run (`plausible`).

        left  share of the trial's zeros that are still zero at the end of the run
        """
        tree, random = self._game.tree, np.random.default_rng(0)
        slots = {
            table_name(kind, block, tree.players): int(count)
            for kind in ("regret", "strategy_sum")
            for block, count in enumerate(tree.row_slots)
        }

        def change(spec: ArraySpec, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return plausible(chunk, slots.get(spec.name, 0), left, random)

        return compressed_share(self.layout.specs, self.tables, self._config.tables.format, change)

    def zeros(self) -> float:
        """Return the share of the tables' cells that are zero, from 0 to 1; padding does not count."""
        cells = (
            len({name.split("/")[0] for name in self.tables}) * (self._game.buckets * self._game.tree.row_slots).sum()
        )
        return 1 - sum(np.count_nonzero(table) for table in self.tables.values()) / cells


def _trained(config: Config, game: Game, share: float, *, keeps_length: bool) -> MeasuredPlay:
    """Train for a few seconds; return the speed, nodes per iteration and compressed size.

    config        configuration to train; of the run, or the same without `run.strata` and `tables.memory_budget`
    game          game to train, possibly with random buckets
    share         number of buckets of `game` over those of the run, at most 1
    keeps_length  True: iterations of the run touch as many nodes as those of the trial, because buckets are not random
    """
    trial, solver = _Trial(config, game), config.solver
    seconds = SECONDS * float(np.clip(game.infosets.sum(dtype=float) / _INFOSETS, 1, _LONGEST))
    limits = config.run.nodes or _NO_LIMIT, config.run.iterations or _NO_LIMIT
    if not isinstance(algorithm_of(config), SampledAlgorithm):
        cost, length = trial.train(solver, seconds, *limits)
        return MeasuredPlay(1 / cost, length if keeps_length else None, trial.compressed())
    may_prune = isinstance(solver, ExternalSamplingConfig) and solver.negative_regret_pruning
    plain = msgspec.structs.replace(solver, negative_regret_pruning=False) if may_prune else solver
    cost, length = trial.train(plain, seconds / 2, *limits)
    nodes, trained, zeros = float(min(limits[0], limits[1] * length)), trial.nodes, trial.zeros()
    if isinstance(solver, ExternalSamplingConfig) and may_prune and solver.prune_after_nodes < nodes:
        price, length = trial.train(_shortened(solver, nodes, trained), seconds / 2, _NO_LIMIT, _NO_LIMIT)
        cost += (1 - solver.prune_after_nodes / nodes) * (price - cost)
    else:
        cost, length = trial.train(plain, seconds / 2, *limits)
    seen = keeps_length and trial.nodes >= _VISITS * game.infosets.sum(dtype=float)
    longer = trial.nodes / trained, min(nodes, _ENDLESS_NODES) * share / trial.nodes
    left = zeros_left(trial.zeros() / max(zeros, _TINY), *longer)
    return MeasuredPlay(1 / cost, length if seen else None, trial.compressed(left))


def zeros_left(fallen: float, longer: float, run: float) -> float:
    """Return the share of a trial's zero cells that are still zero at the end of the run.

    A trial is a short training. The number of zero cells is assumed to fall like a power of the nodes touched, because
    infosets are visited at very different rates. Returns 1 if the number did not fall in the trial, or fell to 0.

    fallen  zero cells at the end of the trial over zero cells after the first half of its time
    longer  nodes of the trial over nodes of this half
    run     nodes of the run over nodes of the trial, for equal numbers of buckets
    """
    if not 0 < fallen < 1 or longer <= 1:
        return 1.0
    return float(min(1.0, run ** (log(fallen) / log(longer))))


def plausible(chunk: npt.NDArray[Any], slots: int, left: float, random: np.random.Generator) -> npt.NDArray[Any]:
    """Return a trial's table cells changed to resemble a run's end, to see how they compress.

    Cells at zero get values of other cells, except for padding. The lowest bits of each value are made random, because
    those of sums of many numbers look random.

    chunk  [buckets, columns] rows of a table of regrets or strategy sums
    slots  number of first columns that a run can change; the others are padding
    left   share of the cells at zero that stays; 1: the run ends with the cells of the trial
    """
    if chunk.dtype.kind != "f" or left >= 1 or not chunk.any():
        return chunk
    cells, changed = chunk.copy(), chunk != 0
    filled = ~changed & (np.arange(chunk.shape[1]) < slots) & (random.random(chunk.shape) >= left)
    cells[filled] = random.choice(chunk[changed], np.count_nonzero(filled))
    words = cells.view(f"u{chunk.itemsize}")
    words ^= np.where(cells != 0, random.integers(1 << _RANDOM_BITS, size=chunk.shape, dtype=words.dtype), 0)
    return cells


def _shortened(solver: ExternalSamplingConfig, nodes: float, trained: int) -> ExternalSamplingConfig:
    """Return a `[solver]` table with regret thresholds by which a trial prunes about like the run.

    A trial is a short training. An action whose regret is below a threshold is pruned: traversals skip it. The
    thresholds are scaled, and correspond to the middle of the part of the run that prunes.

    nodes    nodes of the run
    trained  nodes of the trial before it prunes, half of its nodes
    """
    share = 2 * trained / ((solver.prune_after_nodes + min(nodes, _ENDLESS_NODES)) / 2)
    below, floor = share * solver.prune_below_bb, share * solver.floor_bb
    return msgspec.structs.replace(solver, prune_after_nodes=0, prune_below_bb=below, floor_bb=floor)


def _with_random_buckets(game: Game, share: float) -> Game:
    """Return a hold'em game with random buckets.

    share  number of random buckets over the number of the game's buckets
    """
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

    return replace(deck, buckets=counts, load=load, read_into=None, memory=None, histories=None)


def _random_table(cards: int, count: int) -> npt.NDArray[Any]:
    """Return [boards, 1326] unsigned integers: random buckets of all hands on canonical boards.

    A canonical board stands for all boards that differ from it only by a renaming of suits. Before the flop (`cards` 0)
    all hands have bucket 0. Hands that share a card with a board have the largest number of the dtype.

    cards  number of board cards
    count  number of buckets
    """
    if not cards:
        return np.zeros((1, COMBO_COUNT), bucket_dtype(count))
    used = used_slots(canonical_boards(cards))
    dtype = bucket_dtype(count)
    table = np.random.default_rng(cards).integers(count, size=used.shape, dtype=dtype)
    table[~used] = unused(dtype)
    return table
