"""Chooses and opens a run's pool of workers, which train the tables in one or more processes."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.directory.run import LIVE, Run
from mccfr.runs.session.strata.block_pools import BlockPool
from mccfr.runs.session.strata.block_slots import live_specs
from mccfr.runs.session.strata.strata_pool import StrataPool
from mccfr.runs.session.worker_pool import InlinePool, Pool, ProcessPool
from mccfr.solvers.registry import algorithm_of
from storage.cleanup import closed_after
from storage.live_tables import create_live


def training_problem(config: Config) -> str | None:
    """Return a sentence on why a configuration cannot be trained, or None."""
    return algorithm_of(config).problem() or pool_kind(config).problem(config)


PoolOpener = Callable[..., AbstractContextManager[Pool]]
"""Opens the pool of a run, as `open_pool`: on this machine, or on several."""


@contextlib.contextmanager
def open_pool(run: Run, game: Game, *, force: bool = False) -> Iterator[Pool]:
    """Create a run's tables for training, filled with zeros, and the pool of its workers.

    Both exist during the `with` block, which gets the pool.

    force  do not check memory

    Raises `MemoryError` or `OSError` if the tables do not fit.
    """
    tables = run.config.tables
    specs = live_specs(run.config, game, run.layout(game))
    kind = pool_kind(run.config)
    with create_live(specs, format=tables.format, live_dir=tables.live_dir, link=run.path(LIVE), force=force) as live:
        pool = kind(run, game, live)
        with closed_after(pool.close):
            yield pool


def pool_kind(config: Config) -> type[InlinePool | ProcessPool]:
    """Return the pool class for `run.workers`, `run.strata` and `tables.memory_budget`.

    * InlinePool: no workers; training is in this process
    * ProcessPool: worker processes, each of which trains on all boards
    * StrataPool: with `run.strata`; worker processes, each of which trains some strata (groups of boards)
    * BlockPool: with `tables.memory_budget`; like StrataPool, but tables of strata that do not train may be on disk
    """
    if config.run.strata is not None or config.tables.memory_budget is not None:
        return StrataPool if config.tables.memory_budget is None else BlockPool
    return ProcessPool if config.run.workers else InlinePool
