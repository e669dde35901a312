"""Estimates a run's memory, disk and time before anything is created, and checks that they fit."""

from collections.abc import Mapping, Sequence
from math import ceil, prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from abstraction.buckets import is_abstraction
from abstraction.recipe import load_recipe
from mccfr.config.run_tables import Config
from mccfr.evaluation.methods import method_for
from mccfr.games.bucketed import foreseen
from mccfr.games.game import Game
from mccfr.games.history_counts import count_histories
from mccfr.games.registry import build_game
from mccfr.runs.results.average_strategies import IN_MEMORY_BYTES
from mccfr.runs.results.checkpoint_evaluator import check_evaluation
from mccfr.runs.session.huge_pages import huge_page_plan
from mccfr.runs.session.pools import training_problem
from mccfr.runs.session.shared_deck import shared_bytes
from mccfr.runs.session.speed_trial import MeasuredPlay, measured_play
from mccfr.runs.session.strata.block_slots import frame_blocks, live_specs, partition
from mccfr.solvers.coverage_estimate import CoverageEstimate
from mccfr.solvers.game_from_config import configured_game, form_for, stratified, with_opponents
from mccfr.solvers.out_of_core import turns_of
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.strata_training import stratum_buckets
from mccfr.tables.row_tables import NEAR_BYTES
from mccfr.tables.table_layout import SLOT_FIRST, TableLayout, table_name
from storage import free_space, live_tables
from storage.damage import reading
from storage.disk_speed import disk_speed
from storage.durable import error_text
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
            whole = np.minimum(whole, NEAR_BYTES)
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


def make_plan(config: Config, base: Path, *, seconds: float = 0.0) -> dict[str, Any]:
    """Return the tree size, table sizes, memory, disk, visits and time of a run.

    base     directory that the configuration's files are relative to
    seconds  training time to measure speed and nodes per iteration, a few times longer with pruning; 0: assume both

    Raises `ValueError` for an invalid game, algorithm or evaluation, and for a measurement on an abstraction that is
    not built.
    """
    if (problem := training_problem(config)) is not None:
        raise ValueError(problem)
    game = _foreseen_game(config, base, measured=seconds > 0)
    check_evaluation(config.evaluation, game)
    layout = planned_layout(config, game)
    expected = algorithm_of(config).forecast(game)
    tried = _tried(config, base, game, layout, seconds) if seconds else None
    streets, kind = range(game.tree.streets), (config.tables.format, config.tables.checkpoint_compression)
    per_street = [sum(s.nbytes for s in layout.specs if f"/street{street}/" in s.name) for street in streets]
    memory, written = planned_memory(config, game, layout), layout.nbytes / COMMIT_BYTES_PER_SECOND[kind]
    found = {
        "game": game.name,
        **game.counts(),
        "histories": count_histories(game),
        "buckets_per_street": [[int(game.buckets[2 * s + p]) for p in (0, 1)] for s in streets],
        "table_bytes": live_tables.live_bytes(layout.specs, format=config.tables.format),
        "bytes_per_street": per_street,
        **_strata(config, game, layout),
        **_turns(config, game, layout, expected, tried),
        "bytes_per_table": {spec.name: spec.nbytes for spec in layout.specs},
        **memory,
        "checkpoint_bytes": layout.nbytes,  # before compression
        "checkpoint_seconds": written,
        "checkpoint_pause_seconds": layout.nbytes / COPY_BYTES_PER_SECOND if memory["copy_bytes"] else written,
        "checkpoints_kept": checkpoints_kept(config),
        "disk_bytes": disk_bytes(config, layout),
        **_time(config, game, expected, tried),
        "huge_pages": huge_page_plan(layout),
    }
    planned = algorithm_of(config).planned(game, layout)
    if "seconds_per_iteration" in planned:
        if tried is not None and tried.nodes_per_second is not None:
            planned["seconds_per_iteration"] = tried.nodes_per_iteration / tried.nodes_per_second
        if config.run.iterations is not None:
            found["seconds"] = config.run.iterations * planned["seconds_per_iteration"]
    return {**found, **planned}


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
    game = with_opponents(foreseen(game, load_recipe(base / wanted.recipe)), config, base)
    return form_for(stratified(game, config), config)


def _tried(config: Config, base: Path, game: Game, layout: TableLayout, seconds: float) -> MeasuredPlay | None:
    """Measure a short training; for strata, that of the ordinary sampler, which has as many rows."""
    if config.run.strata is not None:
        run = msgspec.structs.replace(config.run, strata=None, blocks=None, cycle_iterations=None)
        tables = msgspec.structs.replace(config.tables, memory_budget=None)
        config = msgspec.structs.replace(config, run=run, tables=tables)
        game = configured_game(config, base)
        layout = planned_layout(config, game)
    return measured_play(config, game, layout, seconds)


def _speed(tried: MeasuredPlay | None) -> float:
    """Return the measured or assumed nodes per second of one worker."""
    return (tried.nodes_per_second if tried is not None else None) or NODES_PER_SECOND


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
    config: Config, game: Game, layout: TableLayout, expected: CoverageEstimate | None, tried: MeasuredPlay | None
) -> dict[str, Any]:
    """Return the length, number and written bytes of out-of-core cycles; {} without `tables.memory_budget`.

    Raises `ValueError` if `tables.memory_budget` is too small.
    """
    if config.tables.memory_budget is None:
        return {}
    parts = partition(config, game, layout)
    frames, (blocks, iterations) = frame_blocks(config, layout, parts), turns_of(config)
    sizes = [parts.nbytes(block) for block in range(blocks)]
    # In each block, a worker trains one stratum at a time.
    speed = _speed(tried) * max(1, min(config.run.workers, (config.run.strata or 1) // blocks))
    each = tried.nodes_per_iteration if tried is not None else None if expected is None else expected.nodes
    trained = None if each is None else iterations * each / speed
    found: dict[str, Any] = {
        "blocks": blocks,
        "largest_block_bytes": max(sizes),
        "resident_bytes": sum(spec.nbytes for spec in live_specs(config, game, layout)),
        "cycle_iterations": iterations,
        "cycle_training_seconds": trained,
        "cycle_moving_seconds": 0.0,
        "cycle_seconds": None,
        "proposed_cycle_iterations": None,
        "cycles": None,
        "written_bytes": None,
        "disk_write_bytes_per_second": None,
        "disk_read_bytes_per_second": None,
    }
    if len(frames) < blocks:
        disk = disk_speed(Path())
        found |= {
            "disk_write_bytes_per_second": disk.write,
            "disk_read_bytes_per_second": disk.read,
            "cycle_moving_seconds": sum(sizes) / disk.write + sum(sizes) / disk.read,
        }
    if trained is not None:
        found["cycle_seconds"] = max(trained, found["cycle_moving_seconds"])
        if len(frames) < blocks:
            found["proposed_cycle_iterations"] = _two_digits(
                _DISK_MARGIN * found["cycle_moving_seconds"] * iterations / trained
            )
    total: float | None = config.run.iterations
    if config.run.nodes is not None and each is not None:
        total = config.run.nodes / each
    if total is not None:
        found["cycles"] = total / iterations
        found["written_bytes"] = ceil(total / iterations) * sum(sizes) if len(frames) < blocks else sum(sizes)
    found["turn_warnings"] = _turn_warnings(found)
    return found


def _two_digits(number: float) -> int:
    """Return a number from 10 on, rounded up to two digits."""
    unit = 10 ** max(0, len(str(int(number))) - 2)
    return ceil(number / unit) * unit


def _turn_warnings(found: Mapping[str, Any]) -> list[str]:
    """Return sentences on cycles that are too short, too few or write too much."""
    said = []
    training, moving = found["cycle_training_seconds"], found["cycle_moving_seconds"]
    if training is not None and training < moving:
        said.append(
            f"the disk is what is waited for: a cycle trains for {training:,.3g} seconds and moves blocks for "
            f"{moving:,.3g}; with run.cycle_iterations = {found['proposed_cycle_iterations']} training takes longer"
        )
    if found["cycles"] is not None and found["cycles"] < FEW_CYCLES:
        said.append(
            f"{found['cycles']:,.0f} cycles are few: below {FEW_CYCLES} the order of blocks may show in strategies; "
            "train longer, or lower run.cycle_iterations"
        )
    if found["written_bytes"] is not None and found["written_bytes"] > WEAR_BYTES:
        said.append(
            f"{found['written_bytes'] / 1e12:,.0f} TB will be written, and a disk of 1 TB is often rated for 600: "
            "raise run.cycle_iterations, or tables.memory_budget"
        )
    return said


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
    asked = points.every_checkpoint or points.at_end or points.at_nodes or points.at_iterations
    strategies = evaluation_bytes(config, game, layout) if asked else 0
    least = tables + beside_bytes(config, game)
    return {
        "bucket_table_bytes": shared_bytes(game, algorithm_of(config)),
        "copy_bytes": copy,
        "evaluation_bytes": strategies,
        "least_memory_bytes": least,
        "memory_bytes": least + max(copy, sums + strategies),
        "memory_available_bytes": free_space.available_memory_bytes(),
    }


def _time(config: Config, game: Game, expected: CoverageEstimate | None, tried: MeasuredPlay | None) -> dict[str, Any]:
    """Return time and visits at the run's limit of nodes, or else of iterations."""
    if tried is not None:
        visits = None if expected is None else expected.visits
        if expected is not None and visits is not None:
            visits = visits * (tried.nodes_per_iteration / expected.nodes)
        expected = CoverageEstimate(tried.nodes_per_iteration, visits)
    speed, nodes = _speed(tried) * max(1, config.run.workers), _nodes(config, expected)
    found: dict[str, Any] = {
        "seconds": None if nodes is None else nodes / speed,
        "nodes_per_second_assumed": speed,
        "measured": tried is not None,
        "nodes_per_iteration": None,
        "iterations_per_second": None,
        "iterations": config.run.iterations if config.run.nodes is None else None,
        "visits_per_infoset_per_street": None,
    }
    if expected is not None:
        found["nodes_per_iteration"] = expected.nodes
        found["iterations_per_second"] = speed / expected.nodes
        if nodes is not None:
            found["iterations"] = nodes / expected.nodes
        if nodes is not None and expected.visits is not None:
            infosets = np.maximum(1, game.infosets.reshape(-1, 2).sum(axis=1))
            found["visits_per_infoset_per_street"] = (nodes / expected.nodes * expected.visits / infosets).tolist()
    return found


def _nodes(config: Config, expected: CoverageEstimate | None) -> int | None:
    """Return the nodes of the whole run from its limit of nodes or iterations; None if it has neither."""
    if config.run.nodes is None and config.run.iterations is not None and expected is not None:
        return round(config.run.iterations * expected.nodes)
    return config.run.nodes


def beside_bytes(config: Config, game: Game) -> int:
    """Return the memory that a run needs besides its live tables: bucket tables and processes."""
    return shared_bytes(game, algorithm_of(config)) + (config.run.workers + 1) * _PROCESS_BYTES


def checkpoints_kept(config: Config) -> int:
    """Return the number of permanently kept checkpoints: one per evaluation point with `evaluation.keep`."""
    points = config.evaluation
    return len(set(points.at_nodes)) + len(set(points.at_iterations)) if points.keep else 0


def disk_bytes(config: Config, layout: TableLayout) -> int:
    """Return the largest disk use of a run's checkpoints, including one that is being written."""
    return (config.run.keep_checkpoints + 1 + checkpoints_kept(config)) * layout.nbytes


def room_problem(
    config: Config, game: Game, layout: TableLayout, directory: Path, live: Sequence[ArraySpec] | None = None
) -> str | None:
    """Return a sentence if memory or disk are too small for a run in `directory`, or None.

    The sentence has the bytes needed and available.

    live  tables in this machine's memory, if they differ from the configuration's

    Raises `ValueError` if the live directory does not exist.
    """
    tables = config.tables
    try:
        live_tables.check_room(
            live_specs(config, game, layout) if live is None else live,
            format=tables.format,
            live_dir=tables.live_dir,
            beside_bytes=beside_bytes(config, game),
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
