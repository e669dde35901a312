"""Estimates a run's memory, disk and time before anything is created, and checks that they fit."""

from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstraction.recipe import load_recipe
from mccfr.config.run_tables import Config
from mccfr.evaluation.methods.registry import method_for
from mccfr.games.game import Game
from mccfr.runs.results.average_strategies import IN_MEMORY_BYTES
from mccfr.runs.results.checkpoint_evaluator import check_evaluation
from mccfr.runs.session.plan_time import permanent_checkpoints, planned_time
from mccfr.runs.session.plan_trial import MeasuredPlay, measured_play
from mccfr.runs.session.plan_verdict import verdict
from mccfr.runs.session.pools import training_problem
from mccfr.runs.session.shared_deck import copied_bytes, shared_bytes
from mccfr.runs.session.similar_runs import similar_runs
from mccfr.runs.session.strata.block_slots import divided, first_specs, live_specs
from mccfr.solvers.coverage_estimate import CoverageEstimate
from mccfr.solvers.game_from_config import opponents_buckets, planned_game
from mccfr.solvers.out_of_core import turns_of
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.strata_training import stratum_buckets
from mccfr.tables.row_tables import LARGEST_EXPANDED_BYTES
from mccfr.tables.table_layout import SLOT_FIRST, TableLayout, table_name
from storage import free_space, live_tables
from storage.damage import reading
from storage.durable import error_text
from storage.huge_page_counts import gives_huge_pages
from storage.schema import ArraySpec
from storage.table_formats import raw_bytes

if TYPE_CHECKING:
    from abstraction.build import Builder, Progress

Room = Callable[[Config, Game, TableLayout, Path], str | None]
"""Returns, as `space_problem`, a sentence if memory or disk are too small for a run."""

NODES_PER_SECOND = 3e7
"""Assumed nodes per second of one worker where no trial fits in memory."""
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

_HUGE_PAGE_BYTES, _HUGE_PAGE_GAIN = (1e7, 1e8, 3e8, 1.5e9), (1.0, 1.11, 1.23, 1.27)
"""Table sizes in bytes, and the speed of external sampling with huge pages relative to 4 KiB pages
(docs/measured/performance.md).
"""
_SWITCH = "'echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled' as root, or Linux 6.1,"

_TRIED_SECONDS = 5.0  # no trial is made if an iteration is expected to take longer
_LIBRARY_BYTES = 72 << 20  # pages of interpreter and libraries, which all processes share
_COORDINATOR_BYTES, _WORKER_BYTES = 55 << 20, 46 << 20  # of their own, kernels compiled before
_LAUNCHER_BYTES, _RANK_BYTES = 38 << 20, 62 << 20  # of several machines: MPI included
_COORDINATOR_NODE_BYTES, _WORKER_NODE_BYTES = 110, 200  # of each node of the betting tree
_READING_BYTES = 73 << 20  # while bucket tables are read, besides the tables
_DECK_BYTES = 180 << 20  # of a coordinator with bucket tables in training, besides the tables
_DOCUMENT_BYTES = 1900  # of a checkpoint's, or a block's, manifest, state and metadata
_TABLE_DOCUMENT_BYTES = 1330  # of each of its tables, in addition


def planned_layout(config: Config, game: Game) -> TableLayout:
    """Return the layout (names, shapes, dtypes) of the tables of a new run of `config`."""
    return algorithm_of(config).layout(game)


def evaluation_bytes(config: Config, game: Game, layout: TableLayout) -> int:
    """Return the bytes of memory that an evaluation needs besides the tables: strategies and board lists.

    It is the largest need of a method in `[evaluation]`. Usually all action probabilities are in memory, twice if the
    method has an opponent. A method that reads strategy sums decision by decision needs at most LARGEST_EXPANDED_BYTES
    of probabilities for the tables of one street and player. A method that evaluates on the run's own tables
    (`Method.in_place`, if the slots of sums are their first axis) needs no memory for probabilities.
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
    """Return the bytes of memory that 16-bit strategy sums of a street and player take as float32.

    Beyond IN_MEMORY_BYTES they are in a temporary file, so the result is at most that. It is 0 for other sums.

    block  number of the street and player
    """
    name = table_name("strategy_sum", block)
    cells = sum(prod(spec.shape) for spec in layout.specs if spec.name == name and spec.numpy_dtype.itemsize == 2)
    return min(4 * cells, IN_MEMORY_BYTES)


def make_plan(
    config: Config,
    base: Path,
    directory: Path = Path(),
    *,
    speed: float | None = None,
    machines: int = 1,
    budget: float | None = None,
    room: Room | None = None,
) -> dict[str, Any]:
    """Return a run's plan, {field: value}: tree and table sizes, memory, disk, visits, time, verdict.

    `mccfr plan --json` prints these fields.

    base       directory that the configuration's files are relative to
    directory  of the run, existing or not
    speed      nodes per second of one worker; None: measured by a short training, or assumed where none is possible
    machines   machines of `run.workers` workers each that share the training
    budget     seconds in which the run must end; a run without a limit trains for so long
    room       function that returns a sentence if memory or disk are too small, else None. None: `space_problem`

    Raises `ValueError` for an invalid game, algorithm or evaluation.
    """
    if (problem := training_problem(config)) is not None:
        raise ValueError(problem)
    game = planned_game(config, base)
    check_evaluation(config, game)
    layout = planned_layout(config, game)
    streets, memory = range(game.tree.streets), planned_memory(config, game, layout, machines)
    per_street = [sum(s.nbytes for s in layout.specs if f"/street{street}/" in s.name) for street in streets]
    planned = algorithm_of(config).planned(game, layout)
    tried = speed is None and planned.get("seconds_per_iteration", 0.0) < _TRIED_SECONDS
    trial = measured_play(config, base, game) if tried else None
    play = trial or MeasuredPlay(speed or NODES_PER_SECOND, None)
    found = {
        "game": game.name,
        **game.counts(),
        "infosets_per_street": game.infosets.reshape(-1, game.tree.players).sum(axis=1).tolist(),
        "buckets_per_street": game.buckets.reshape(-1, game.tree.players).tolist(),
        "table_bytes": live_tables.live_bytes(layout.specs, format=config.tables.format),
        "bytes_per_street": per_street,
        **_strata(config, game, layout, machines),
        "bytes_per_table": {spec.name: spec.nbytes for spec in layout.specs},
        **memory,
        **_checkpoints(config, game, layout, machines, copied=memory["copy_bytes"] > 0),
        "measured": trial is not None,
        "huge_pages": huge_page_plan(layout),
        "abstraction_seconds": sum(builder.missing_seconds() for builder in builders(config, base)),
        **planned,
    }
    found |= planned_time(config, game, layout, found, _estimate(config, game, play), play, (machines, budget))
    found["similar_runs"] = similar_runs(config, found)
    lacks = [builder.memory_problem() for builder in builders(config, base)]
    lacks.append((room or space_problem)(config, game, layout, directory))
    return found | verdict(config, found, [lack for lack in lacks if lack is not None])


def _checkpoints(config: Config, game: Game, layout: TableLayout, machines: int, *, copied: bool) -> dict[str, Any]:
    """Return the fields on checkpoints: bytes of one, bytes of all on disk, seconds to write one.

    machines  number of machines that share the training
    copied    whether tables are first copied in memory, so that workers go on while the copy is written
    """
    form, compression = config.tables.format, config.tables.checkpoint_compression
    written = layout.nbytes / COMMIT_BYTES_PER_SECOND[(form, compression)]
    return {
        "checkpoint_bytes": layout.nbytes,  # before compression
        "checkpoint_seconds": written,
        "plain_checkpoint_seconds": layout.nbytes / COMMIT_BYTES_PER_SECOND[(form, "none")],
        "checkpoint_pause_seconds": layout.nbytes / COPY_BYTES_PER_SECOND if copied else written,
        "stored_bytes": stored_bytes(config, game, layout, machines),
        "description_bytes": description_bytes(config, game, layout, machines),
        "disk_bytes": disk_bytes(config, game, layout, machines),
    }


def _estimate(config: Config, game: Game, play: MeasuredPlay) -> CoverageEstimate | None:
    """Return the expected nodes touched and visits of each node in an iteration; None if not known.

    If a short training (`play`) has measured the nodes of an iteration, this number is taken. The visits that the
    algorithm estimates are then scaled in the same proportion; without an estimate they are an empty array.
    """
    expected = algorithm_of(config).forecast(game)
    if play.nodes_per_iteration is None:
        return expected
    nodes, none = play.nodes_per_iteration, np.zeros(0)
    return CoverageEstimate(nodes, none if expected is None else expected.visits * (nodes / expected.nodes))


def huge_page_plan(layout: TableLayout) -> dict[str, Any]:
    """Return the field `huge_pages` of a plan, a dict on the speed-up by larger memory pages.

    given   whether this machine gives huge pages to the tables
    gain    expected speed of sampling with huge pages over that without, for the size of the tables
    advice  a sentence on the setting to change; None if it would not help
    """
    given = gives_huge_pages()
    gain = float(np.interp(np.log(max(1, layout.nbytes)), np.log(_HUGE_PAGE_BYTES), _HUGE_PAGE_GAIN))
    advice = f"{_SWITCH} may make sampling {gain:.2f} times as fast" if gain > 1 and not given else None
    return {"given": given, "gain": round(gain, 3), "advice": advice}


def _strata(config: Config, game: Game, layout: TableLayout, machines: int) -> dict[str, Any]:
    """Return the fields on strata; {} without strata.

    Strata are groups of boards of the second street with buckets of their own. The fields are the number of strata, the
    bytes of tables of the largest stratum, and the bytes of the tables that all strata share. `idle_workers` are the
    workers beyond one per stratum.
    """
    if game.strata is None:
        return {}
    first = np.zeros(game.strata.count, np.int64)  # bytes of each stratum
    for spec in layout.specs:
        first += np.diff(stratum_buckets(game, spec.name)) * (spec.nbytes // spec.shape[0])
    return {
        "strata": game.strata.count,
        "shared_bytes": sum(spec.nbytes for spec in layout.specs if "/street0/" in spec.name),
        "largest_stratum_bytes": int(first.max()),
        "idle_workers": max(0, machines * config.run.workers - game.strata.count),
    }


def builders(config: Config, base: Path, progress: "Progress | None" = None) -> "list[Builder]":
    """Return a builder for each card abstraction that the configuration says how to build.

    It does so by a recipe, a TOML file with settings of the buckets. There may be two abstractions: the players', and
    one that the algorithm cfr-br uses for opponents.

    base      directory that the configuration's files are relative to
    progress  receives the progress of building; None: it is not reported
    """
    from abstraction.build import Builder

    wanted, workers = (config.abstraction, opponents_buckets(config, base)), max(1, config.run.workers)
    return [
        Builder(load_recipe(base / table.recipe), base / table.path, workers, progress)
        for table in wanted
        if table is not None and table.recipe is not None
    ]


def planned_memory(config: Config, game: Game, layout: TableLayout, machines: int = 1) -> dict[str, int]:
    """Return {purpose: bytes} of a run's memory, with the total `memory_bytes`; of one machine if several.

    A checkpoint's copy of the tables is made only if it fits, so `least_memory_bytes` excludes it. The copy's strategy
    sums remain in memory for the evaluation afterwards. No copy is made without worker processes, with
    `tables.memory_budget`, or if all evaluations use the run's own tables. Several machines divide the tables after the
    first street among them, and make no copy.
    """
    tables = live_tables.live_bytes(live_specs(config, game, layout), format=config.tables.format)
    if machines > 1:
        first = live_tables.live_bytes(first_specs(layout), format=config.tables.format)
        tables = first + (tables - first) // machines
    in_place = all(method_for(game, name).in_place(game) for name in config.evaluation.chosen)
    copied = config.run.workers and config.tables.memory_budget is None and not in_place and machines == 1
    copy = layout.nbytes if copied else 0
    sums = sum(spec.nbytes for spec in layout.specs if spec.name.startswith("strategy_sum")) if copy else 0
    points = config.evaluation
    strategies = evaluation_bytes(config, game, layout) if points.measures else 0
    least, training = (tables + needed(config, game, machines > 1) for needed in (fixed_memory_bytes, _training_bytes))
    return {
        "bucket_table_bytes": shared_bytes(game, algorithm_of(config)),
        "copy_bytes": copy,
        "evaluation_bytes": strategies,
        "least_memory_bytes": least,
        "memory_bytes": max(least, training + max(copy, sums + strategies)),
        "memory_available_bytes": free_space.available_memory_bytes(),
    }


def fixed_memory_bytes(config: Config, game: Game, in_cluster: bool = False) -> int:
    """Return the bytes of memory that a run needs besides the tables in training.

    It is the larger of the needs at the start and in training. At the start, bucket tables that are copied to shared
    memory are in memory twice.

    in_cluster  the run has several machines; the memory is that of the coordinator's machine
    """
    training, algorithm = _training_bytes(config, game, in_cluster), algorithm_of(config)
    buckets, copied = shared_bytes(game, algorithm), copied_bytes(game, algorithm)
    started = buckets + copied + _LIBRARY_BYTES + _COORDINATOR_BYTES + _READING_BYTES
    return max(training, started) if buckets else training


def _training_bytes(config: Config, game: Game, in_cluster: bool) -> int:
    """Return the bytes of memory that a run's bucket tables and processes take during training.

    The tables of regrets and strategy sums are not included.

    in_cluster  the run has several machines; the memory is that of the coordinator's machine
    """
    workers, buckets = (
        config.run.workers or int(config.run.strata is not None),
        shared_bytes(game, algorithm_of(config)),
    )
    own = _COORDINATOR_BYTES + workers * _WORKER_BYTES
    if in_cluster:
        own = _LAUNCHER_BYTES + (1 + workers) * _RANK_BYTES
    own += len(game.tree.arrays.kind) * (_COORDINATOR_NODE_BYTES + workers * _WORKER_NODE_BYTES)
    return buckets + _LIBRARY_BYTES + own + (_DECK_BYTES if buckets else 0)


def stored_bytes(config: Config, game: Game, layout: TableLayout, machines: int = 1) -> int:
    """Return the largest size of a checkpoint's tables on disk, in bytes.

    It includes padding in files without compression, and in files for parts of the tables. Runs out of core and on
    several machines have such files for groups of boards. Other files count with the size of their cells before
    compression.
    """
    if blocks := _stored_blocks(config, game, machines):
        parts, kind = divided(game, layout, blocks), config.tables.format
        later = sum(live_tables.live_bytes(parts.parts(block), format=kind) for block in range(blocks))
        return later + sum(map(raw_bytes, first_specs(layout)))
    raw = config.tables.checkpoint_compression == "none"
    return sum(map(raw_bytes, layout.specs)) if raw else layout.nbytes


def _stored_blocks(config: Config, game: Game, machines: int) -> int:
    """Return the number of parts of the tables (blocks) with files of their own; 0 for no parts.

    A block is the table rows of some groups of second-street boards, which have buckets of their own. Runs out of core
    (`tables.memory_budget`) and on several machines have such blocks.
    """
    if config.tables.memory_budget is not None:
        return turns_of(config)[0]
    return 0 if machines == 1 or game.strata is None else game.strata.count


def description_bytes(config: Config, game: Game, layout: TableLayout, machines: int = 1) -> int:
    """Return the estimated bytes on disk of a checkpoint's manifests, states and metadata."""
    first, blocks = len(first_specs(layout)), _stored_blocks(config, game, machines)
    tables = first + max(1, blocks) * (len(layout.specs) - first)
    return (1 + blocks) * _DOCUMENT_BYTES + tables * _TABLE_DOCUMENT_BYTES


def disk_bytes(config: Config, game: Game, layout: TableLayout, machines: int = 1) -> int:
    """Return the most bytes of disk that a run's checkpoints take, with one that is being written."""
    each = stored_bytes(config, game, layout, machines) + description_bytes(config, game, layout, machines)
    return (config.run.keep_checkpoints + 1 + permanent_checkpoints(config)) * each


def space_problem(
    config: Config, game: Game, layout: TableLayout, directory: Path, live: Sequence[ArraySpec] | None = None
) -> str | None:
    """Return a sentence if memory or disk are too small for a run in `directory`, or None.

    The sentence has the bytes needed and available.

    directory  directory of the run, existing or not
    live       names, shapes and dtypes of the tables in the memory of a cluster's coordinator; None: not on a cluster,
               the tables of the configuration

    Raises `ValueError` if `tables.live_dir`, the directory of the tables in memory, does not exist.
    """
    tables = config.tables
    try:
        live_tables.check_free_space(
            live_specs(config, game, layout) if live is None else live,
            format=tables.format,
            live_dir=tables.live_dir,
            fixed_memory_bytes=fixed_memory_bytes(config, game, in_cluster=live is not None),
        )
    except NotADirectoryError as error:
        raise ValueError(error.strerror or str(error)) from None
    except MemoryError as error:
        workers = config.run.workers
        taken = f"; {workers} workers take {free_space.bytes_text(workers * _WORKER_BYTES)} of that"
        return f"{error}{taken if workers > 1 and live is None else ''}"
    except OSError as error:
        return error_text(error)
    with reading(directory):
        there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.is_dir())
        saved = sum(
            free_space.tree_bytes(path) for name in ("checkpoints", "blocks") if (path := directory / name).is_dir()
        )
    needed, free = max(0, disk_bytes(config, game, layout) - saved), free_space.free_bytes(there)
    if needed <= free:
        return None
    fewer = config.run.keep_checkpoints + (free - needed) // stored_bytes(config, game, layout)
    lower = f"set run.keep_checkpoints = {fewer}, " if fewer > 0 else ""
    return (
        f"the run's checkpoints need up to {needed:,} bytes of disk and {there} has {free:,} bytes free: {lower}free "
        f"some, or choose a directory on another disk"
    )
