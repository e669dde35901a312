"""Estimates a run's memory, disk and time before anything is created, and checks that they fit.

`plan --measure` trains for a moment on tables of the run's size. Nodes per iteration change as strategies are learnt:
in whole hold'em they halve. They are therefore known only if the training visits each infoset several times.
Negative-regret pruning begins later than the measurement ends, so the measurement is without it. With pruning, a node
costs about 1.5 times as much (docs/measured/performance.md, sampled pruning).
"""

import time
from collections.abc import Mapping, Sequence
from math import ceil, prod
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from abstraction.buckets import is_abstraction
from abstraction.recipe import load_recipe
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import ExternalSamplingConfig
from mccfr.evaluation.methods import method_for
from mccfr.games.bucketed import with_planned_buckets
from mccfr.games.game import Game
from mccfr.games.registry import build_game
from mccfr.runs.results.average_strategies import IN_MEMORY_BYTES
from mccfr.runs.results.checkpoint_evaluator import check_evaluation
from mccfr.runs.session.plan_verdict import verdict
from mccfr.runs.session.pools import training_problem
from mccfr.runs.session.shared_deck import shared_bytes
from mccfr.runs.session.strata.block_slots import frame_blocks, live_specs, partition
from mccfr.solvers.coverage_estimate import CoverageEstimate
from mccfr.solvers.game_from_config import configured_game, form_for, stratified, with_opponents
from mccfr.solvers.out_of_core import turns_of
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.solver import Share
from mccfr.solvers.strata_training import stratum_buckets
from mccfr.tables.row_tables import LARGEST_EXPANDED_BYTES
from mccfr.tables.table_layout import SLOT_FIRST, TableLayout, private_tables, table_name
from storage import free_space, live_tables
from storage.damage import reading
from storage.disk_speed import disk_speed
from storage.durable import error_text
from storage.huge_page_counts import gives_huge_pages
from storage.schema import ArraySpec

NODES_PER_SECOND = 3e7
"""Assumed nodes per second of one worker; docs/measured/performance.md has measurements."""
COPY_BYTES_PER_SECOND = 3e9
"""Assumed speed of copying tables while the workers are paused."""
COMMIT_BYTES_PER_SECOND = {
    ("zarr", "auto"): 8e7,
    ("hdf5", "auto"): 3e7,
    ("zarr", "none"): 1.2e8,
    ("hdf5", "none"): 1.2e8,
}
"""Raw bytes per second of a commit, by format and compression, while workers use all processors. Measured with two
workers on two processors and a disk of 160 MB/s.
"""

FEW_CYCLES = 300
"""Number of out-of-core cycles in a run below which a warning is given (docs/measured/strata.md)."""
WEAR_BYTES = 100e12
"""Bytes written by a run above which a warning is given: a sixth of the typical rating of a 1 TB disk."""

_HUGE_PAGE_BYTES, _HUGE_PAGE_GAIN = (1e7, 1e8, 3e8, 1.5e9), (1.0, 1.11, 1.23, 1.27)
"""Table sizes in bytes, and the speed of external sampling with huge pages relative to 4 KiB pages
(docs/measured/performance.md).
"""
_SWITCH = "'echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled' as root, or Linux 6.1,"

_MOST_BYTES = 4 << 30  # largest tables on which speed is measured
_MEMORY_SHARE = 0.5
_PRUNED_NODE = 1.5  # time of a node with pruning, relative to one without
_VISITS = 10  # nodes per infoset after which nodes per iteration hardly change
_NO_LIMIT = 2**62
_DISK_MARGIN = 1.2  # training over moving time of a proposed cycle: disks are not always as fast as measured
_PROCESS_BYTES = 200 << 20  # interpreter, libraries and compiled kernels of a process


def planned_layout(config: Config, game: Game) -> TableLayout:
    """Return the layout of the tables of a new run of `config`."""
    return algorithm_of(config).layout(game)


def evaluation_bytes(config: Config, game: Game, layout: TableLayout) -> int:
    """Return the bytes that an evaluation needs besides the tables: strategies and listed boards.

    Strategies read row by row from strategy sums need memory only for small blocks. Those evaluated on the tables
    themselves (`Method.in_place`) need none. All others are expanded.
    """
    algorithm, needed = algorithm_of(config), []
    slots_first = any(spec.name.startswith("strategy_sum/") and spec.axes == SLOT_FIRST for spec in layout.specs)
    for method in [method_for(game, name) for name in config.evaluation.chosen]:
        whole = 8 * game.buckets * (game.tree.row_slots + game.tree.row_count)
        if method.reads_rows and algorithm.averages.of_sums:
            whole = np.minimum(whole, LARGEST_EXPANDED_BYTES)
        if slots_first and method.in_place(game):
            whole = np.zeros_like(whole)
        elif algorithm.averages.of_sums:
            whole = whole + [_as_numbers_bytes(layout, block) for block in range(len(whole))]
        needed.append(int(whole.sum()) * (1 + method.meets) + method.listing_bytes(game))
    return max(needed)


def _as_numbers_bytes(layout: TableLayout, block: int) -> int:
    """Return the memory of a block's 16-bit sums as float32; large ones are in a temporary file."""
    name = table_name("strategy_sum", block)
    cells = sum(prod(spec.shape) for spec in layout.specs if spec.name == name and spec.numpy_dtype.itemsize == 2)
    return min(4 * cells, IN_MEMORY_BYTES)


def make_plan(config: Config, base: Path, directory: Path = Path(), *, seconds: float = 0.0) -> dict[str, Any]:
    """Return the tree size, table sizes, memory, disk, visits, time and verdict of a run.

    base       directory that the configuration's files are relative to
    directory  of the run, existing or not
    seconds    training time to measure speed and nodes per iteration; 0: assume both

    Raises `ValueError` for an invalid game, algorithm or evaluation, and for a measurement on an abstraction that is
    not built.
    """
    if (problem := training_problem(config)) is not None:
        raise ValueError(problem)
    game = _foreseen_game(config, base, measured=seconds > 0)
    check_evaluation(config, game)
    layout = planned_layout(config, game)
    trial = _trial(config, base, game, layout, seconds) if seconds else None
    expected = _estimate(algorithm_of(config).forecast(game), trial)
    speed = NODES_PER_SECOND if trial is None else trial.nodes_per_second
    streets, kind = range(game.tree.streets), (config.tables.format, config.tables.checkpoint_compression)
    per_street = [sum(s.nbytes for s in layout.specs if f"/street{street}/" in s.name) for street in streets]
    memory, written = planned_memory(config, game, layout), layout.nbytes / COMMIT_BYTES_PER_SECOND[kind]
    found = {
        "game": game.name,
        **game.counts(),
        "infosets_per_street": game.infosets.reshape(-1, game.tree.players).sum(axis=1).tolist(),
        "buckets_per_street": game.buckets.reshape(-1, game.tree.players).tolist(),
        "table_bytes": live_tables.live_bytes(layout.specs, format=config.tables.format),
        "bytes_per_street": per_street,
        **_strata(config, game, layout),
        **_turns(config, game, layout, expected, speed),
        "bytes_per_table": {spec.name: spec.nbytes for spec in layout.specs},
        **memory,
        "checkpoint_bytes": layout.nbytes,  # before compression
        "checkpoint_seconds": written,
        "plain_checkpoint_seconds": layout.nbytes / COMMIT_BYTES_PER_SECOND[(kind[0], "none")],
        "checkpoint_pause_seconds": layout.nbytes / COPY_BYTES_PER_SECOND if memory["copy_bytes"] else written,
        "permanent_checkpoints": permanent_checkpoints(config),
        "disk_bytes": disk_bytes(config, layout),
        **_time(config, game, expected, speed),
        "measured": trial is not None,
        "huge_pages": huge_page_plan(layout),
    }
    planned = algorithm_of(config).planned(game, layout)
    if "seconds_per_iteration" in planned:
        if trial is not None and trial.nodes_per_iteration is not None:
            planned["seconds_per_iteration"] = trial.nodes_per_iteration / speed
        if config.run.iterations is not None:
            found["seconds"] = config.run.iterations * planned["seconds_per_iteration"]
    found |= planned
    return found | verdict(config, found, space_problem(config, game, layout, directory))


def _foreseen_game(config: Config, base: Path, *, measured: bool) -> Game:
    """Return the game of a configuration, with the recipe's bucket counts if a small deck is not built."""
    wanted = config.abstraction
    if wanted is None or wanted.recipe is None or is_abstraction(base / wanted.path):
        return configured_game(config, base)
    game = build_game(config.game, base, wanted)
    if game.cards.shared_bytes:  # whole hold'em has its sizes from the recipe
        return configured_game(config, base)
    if measured:
        raise ValueError(
            f"{base / wanted.path} is not built yet, and --measure trains: build it with mccfr abstraction build "
            f"{wanted.recipe}"
        )
    game = with_opponents(with_planned_buckets(game, load_recipe(base / wanted.recipe)), config, base)
    return form_for(stratified(game, config), config)


class MeasuredPlay(NamedTuple):
    """Result of a trial.

    nodes_per_second     of one worker, by processor time
    nodes_per_iteration  None if the trial is too short to show it
    """

    nodes_per_second: float
    nodes_per_iteration: float | None


def measured_play(config: Config, game: Game, layout: TableLayout, seconds: float) -> MeasuredPlay | None:
    """Measure a training of about `seconds` of processor time; None if its tables do not fit in memory.

    The figures are of the later half of the time, because the first iterations may compile kernels.
    """
    solver, price = config.solver, 1.0
    if isinstance(solver, ExternalSamplingConfig) and solver.negative_regret_pruning:
        solver, price = msgspec.structs.replace(solver, negative_regret_pruning=False), _PRUNED_NODE
    algorithm = algorithm_of(msgspec.structs.replace(config, solver=solver))
    if layout.nbytes > min(_MOST_BYTES, _MEMORY_SHARE * free_space.available_memory_bytes()):
        return None
    share = Share(workers=max(1, config.run.workers) if algorithm.traits.one_process else 1)
    training, nodes, iterations = algorithm.solver(game, private_tables(layout), share), 0, 0
    training.warm_up()
    most, last = config.run.nodes or _NO_LIMIT, config.run.iterations or _NO_LIMIT
    points, began = [(0.0, 0, 0)], time.process_time()
    while (points[-1][0] < seconds or len(points) < 3) and nodes < most and iterations < last:
        done, touched = training.run(nodes, most - nodes, last - iterations)
        nodes, iterations = nodes + touched, iterations + done
        points.append((time.process_time() - began, nodes, iterations))
    half = next(point for point in points if point[0] >= points[-1][0] / 2 or point is points[-2])
    spent, trained = points[-1][0] - half[0], nodes - half[1]
    seen = not isinstance(algorithm, SampledAlgorithm) or nodes >= _VISITS * game.infosets.sum(dtype=float)
    return MeasuredPlay(trained / spent / price, trained / max(1, iterations - half[2]) if seen else None)


def _trial(config: Config, base: Path, game: Game, layout: TableLayout, seconds: float) -> MeasuredPlay | None:
    """Measure a short training; for strata, that of the ordinary sampler, which has as many rows."""
    if config.run.strata is not None:
        run = msgspec.structs.replace(config.run, strata=None, blocks=None, cycle_iterations=None)
        tables = msgspec.structs.replace(config.tables, memory_budget=None)
        config = msgspec.structs.replace(config, run=run, tables=tables)
        game = configured_game(config, base)
        layout = planned_layout(config, game)
    return measured_play(config, game, layout, seconds)


def _estimate(expected: CoverageEstimate | None, trial: MeasuredPlay | None) -> CoverageEstimate | None:
    """Return the estimate of an iteration with the measured number of nodes, if it is known."""
    if trial is None or trial.nodes_per_iteration is None:
        return expected
    nodes, visits = trial.nodes_per_iteration, None if expected is None else expected.visits
    return CoverageEstimate(nodes, None if expected is None or visits is None else visits * (nodes / expected.nodes))


def huge_page_plan(layout: TableLayout) -> dict[str, Any]:
    """Return the fields of `huge_pages` in `plan`, for this machine.

    given   whether the tables of this run would get huge pages
    gain    expected ratio of sampling speeds with and without them, by table size
    advice  a sentence on the setting to change; None if it would not help
    """
    given = gives_huge_pages()
    gain = float(np.interp(np.log(max(1, layout.nbytes)), np.log(_HUGE_PAGE_BYTES), _HUGE_PAGE_GAIN))
    advice = f"{_SWITCH} may make sampling {gain:.2f} times as fast" if gain > 1 and not given else None
    return {"given": given, "gain": round(gain, 3), "advice": advice}


def _strata(config: Config, game: Game, layout: TableLayout) -> dict[str, Any]:
    """Return the sizes of strata, and the number of workers without one; {} without strata."""
    if game.strata is None:
        return {}
    first = np.zeros(game.strata.count, np.int64)  # bytes of each stratum
    for spec in layout.specs:
        first += np.diff(stratum_buckets(game, spec.name)) * (spec.nbytes // spec.shape[0])
    return {
        "strata": game.strata.count,
        "shared_bytes": sum(spec.nbytes for spec in layout.specs if "/street0/" in spec.name),
        "largest_stratum_bytes": int(first.max()),
        "idle_workers": max(0, config.run.workers - game.strata.count),
    }


def _turns(
    config: Config, game: Game, layout: TableLayout, expected: CoverageEstimate | None, speed: float
) -> dict[str, Any]:
    """Return length, number and bytes of out-of-core cycles; {} without `tables.memory_budget`.

    Raises `ValueError` if `tables.memory_budget` is too small.
    """
    if config.tables.memory_budget is None:
        return {}
    parts = partition(config, game, layout)
    frames, (blocks, iterations) = frame_blocks(config, layout, parts), turns_of(config)
    sizes = [parts.nbytes(block) for block in range(blocks)]
    # In each block, a worker trains one stratum at a time.
    speed *= max(1, min(config.run.workers, (config.run.strata or 1) // blocks))
    each = None if expected is None else expected.nodes
    trained = None if each is None else iterations * each / speed
    disk = disk_speed(Path()) if len(frames) < blocks else None
    moving = 0.0 if disk is None else sum(sizes) / disk.write + sum(sizes) / disk.read
    total: float | None = config.run.iterations
    if config.run.nodes is not None and each is not None:
        total = config.run.nodes / each
    cycles = None if total is None else total / iterations
    proposed = None if disk is None or trained is None else _two_digits(_DISK_MARGIN * moving * iterations / trained)
    found: dict[str, Any] = {
        "blocks": blocks,
        "largest_block_bytes": max(sizes),
        "resident_bytes": sum(spec.nbytes for spec in live_specs(config, game, layout)),
        "cycle_iterations": iterations,
        "cycle_training_seconds": trained,
        "cycle_moving_seconds": moving,
        "cycle_seconds": None if trained is None else max(trained, moving),
        "proposed_cycle_iterations": proposed,
        "cycles": cycles,
        "written_bytes": None if cycles is None else sum(sizes) * (1 if disk is None else ceil(cycles)),
        "disk_write_bytes_per_second": None if disk is None else disk.write,
        "disk_read_bytes_per_second": None if disk is None else disk.read,
    }
    return {**found, "turn_warnings": _turn_warnings(found)}


def _two_digits(number: float) -> int:
    """Return a number from 10 on, rounded up to two digits."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return ceil(number / unit) * unit


def _turn_warnings(plan: Mapping[str, Any]) -> list[str]:
    """Return sentences on cycles that are too short, too few or write too much.

    A length of cycles is advised only if the disk keeps up with it, and enough cycles remain.
    """
    warnings = []
    training, moving, proposed = (
        plan[key] for key in ("cycle_training_seconds", "cycle_moving_seconds", "proposed_cycle_iterations")
    )
    cycles, length = plan["cycles"], plan["cycle_iterations"]
    longest = None if cycles is None else int(cycles * length / FEW_CYCLES)  # cycle that leaves enough of them
    if training is not None and training < moving:
        few = (
            ""
            if longest is None or proposed <= longest
            else f", and {FEW_CYCLES * proposed:,} iterations in all are enough"
        )
        warnings.append(
            f"training waits for the disk: a cycle trains for {training:,.3g} seconds and moves blocks for "
            f"{moving:,.3g}; with run.cycle_iterations = {proposed} training takes longer{few}"
        )
    if longest is not None and cycles < FEW_CYCLES:
        lower = longest > 0 and (proposed is None or longest >= proposed)
        advice = f"set run.cycle_iterations = {longest}" if lower else f"train for {FEW_CYCLES * length:,} iterations"
        warnings.append(
            f"{cycles:,.0f} cycles are few: below {FEW_CYCLES} the order of blocks may show in strategies; {advice}"
        )
    if plan["written_bytes"] is not None and plan["written_bytes"] > WEAR_BYTES:
        calmer = ceil(length * plan["written_bytes"] / WEAR_BYTES)
        fits = longest is not None and calmer <= longest
        warnings.append(
            f"{plan['written_bytes'] / 1e12:,.0f} TB will be written, and a disk of 1 TB is often rated for 600: "
            + (f"set run.cycle_iterations = {calmer}" if fits else "raise tables.memory_budget")
        )
    return warnings


def planned_memory(config: Config, game: Game, layout: TableLayout) -> dict[str, int]:
    """Return the run's memory by purpose, and in total.

    A checkpoint's copy of the tables is made only if it fits, so `least_memory_bytes` excludes it. Its strategy sums
    remain for the evaluation afterwards. No copy is made if strategies are evaluated in place.
    """
    tables = live_tables.live_bytes(live_specs(config, game, layout), format=config.tables.format)
    in_place = all(method_for(game, name).in_place(game) for name in config.evaluation.chosen)
    copy = layout.nbytes if config.run.workers and config.tables.memory_budget is None and not in_place else 0
    sums = sum(spec.nbytes for spec in layout.specs if spec.name.startswith("strategy_sum")) if copy else 0
    points = config.evaluation
    strategies = evaluation_bytes(config, game, layout) if points.measures else 0
    least = tables + fixed_memory_bytes(config, game)
    return {
        "bucket_table_bytes": shared_bytes(game, algorithm_of(config)),
        "copy_bytes": copy,
        "evaluation_bytes": strategies,
        "least_memory_bytes": least,
        "memory_bytes": least + max(copy, sums + strategies),
        "memory_available_bytes": free_space.available_memory_bytes(),
    }


def _time(config: Config, game: Game, expected: CoverageEstimate | None, speed: float) -> dict[str, Any]:
    """Return time and visits at the run's first limit; `speed` is one worker's."""
    speed = speed * max(1, config.run.workers)
    nodes = _nodes(config, expected, speed)
    iterations: float | None = config.run.iterations if config.run.nodes is None else None
    visits = None
    if nodes is not None and expected is not None:
        iterations = nodes / expected.nodes
        if expected.visits is not None:
            infosets = np.maximum(1, game.infosets.reshape(-1, game.tree.players).sum(axis=1))
            visits = (iterations * expected.visits / infosets).tolist()
    return {
        "seconds": None if nodes is None else nodes / speed,
        "nodes_per_second_assumed": speed,
        "nodes_per_iteration": None if expected is None else expected.nodes,
        "iterations_per_second": None if expected is None else speed / expected.nodes,
        "iterations": iterations,
        "visits_per_infoset_per_street": visits,
    }


def _nodes(config: Config, expected: CoverageEstimate | None, speed: float) -> int | None:
    """Return the nodes of the whole run, or of its first session, at its first limit; None if it has none.

    speed  nodes per second of all workers
    """
    limits = config.run
    found = [] if limits.nodes is None else [limits.nodes]
    if limits.iterations is not None and expected is not None:
        found.append(round(limits.iterations * expected.nodes))
    if limits.seconds is not None:
        found.append(round(limits.seconds * speed))
    return min(found, default=None)


def fixed_memory_bytes(config: Config, game: Game) -> int:
    """Return the memory that a run needs besides its live tables: bucket tables and processes."""
    workers = config.run.workers or int(config.run.strata is not None)
    return shared_bytes(game, algorithm_of(config)) + (workers + 1) * _PROCESS_BYTES


def permanent_checkpoints(config: Config) -> int:
    """Return the number of permanently kept checkpoints: one per evaluation point with `evaluation.keep`."""
    points = config.evaluation
    return len(set(points.at_nodes)) + len(set(points.at_iterations)) if points.keep else 0


def disk_bytes(config: Config, layout: TableLayout) -> int:
    """Return the largest disk use of a run's checkpoints, including one that is being written."""
    return (config.run.keep_checkpoints + 1 + permanent_checkpoints(config)) * layout.nbytes


def space_problem(
    config: Config, game: Game, layout: TableLayout, directory: Path, live: Sequence[ArraySpec] | None = None
) -> str | None:
    """Return a sentence if memory or disk are too small for a run in `directory`, or None.

    The sentence has the bytes needed and available.

    live  tables in this machine's memory, if they differ from the configuration's

    Raises `ValueError` if the live directory does not exist.
    """
    tables = config.tables
    try:
        live_tables.check_free_space(
            live_specs(config, game, layout) if live is None else live,
            format=tables.format,
            live_dir=tables.live_dir,
            fixed_memory_bytes=fixed_memory_bytes(config, game),
        )
    except NotADirectoryError as error:
        raise ValueError(error.strerror or str(error)) from None
    except MemoryError as error:
        workers = config.run.workers
        taken = f"; {workers} workers take {free_space.bytes_text(workers * _PROCESS_BYTES)} of that"
        return f"{error}{taken if workers > 1 else ''}"
    except OSError as error:
        return error_text(error)
    with reading(directory):
        there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.is_dir())
        saved = sum(
            free_space.tree_bytes(path) for name in ("checkpoints", "blocks") if (path := directory / name).is_dir()
        )
    needed, free = max(0, disk_bytes(config, layout) - saved), free_space.free_bytes(there)
    if needed <= free:
        return None
    return (
        f"the run's checkpoints need up to {needed:,} bytes of disk and {there} has {free:,} bytes free: lower "
        f"run.keep_checkpoints, free some, or choose a directory on another disk"
    )
