"""Opens the pool of workers that a run's settings require."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mccfr.config.run_tables import Config
from mccfr.games.game import Game
from mccfr.runs.directory.run import LIVE, Run
from mccfr.runs.session.strata.block_pools import InlineBlockPool, ProcessBlockPool
from mccfr.runs.session.strata.block_slots import live_specs
from mccfr.runs.session.strata.strata_pool import InlineStrata, StrataPool
from mccfr.runs.session.worker_pool import InlinePool, Pool, ProcessPool
from mccfr.solvers.registry import algorithm_of
from storage.cleanup import closed_after
from storage.live_tables import create_live


def training_problem(config: Config) -> str | None:
    """Return a sentence on why a configuration cannot be trained, or None."""
    return algorithm_of(config).problem() or pool_kind(config).problem(config)


class PoolOpener(Protocol):
    """Opens the pool of a run.

    force  do not check memory
    """

    def __call__(self, run: Run, game: Game, *, force: bool = False) -> AbstractContextManager[Pool]:
        """Return the pool as a context manager."""


@contextlib.contextmanager
def open_pool(run: Run, game: Game, *, force: bool = False) -> Iterator[Pool]:
    """Open the pool of a run's settings on tables of zeros; both end with the `with` statement.

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
    """Return the pool class for a configuration."""
    processes = config.run.workers > 0
    if config.tables.memory_budget is not None:
        return ProcessBlockPool if processes else InlineBlockPool
    if config.run.strata is not None:
        return StrataPool if processes else InlineStrata
    return ProcessPool if processes else InlinePool
