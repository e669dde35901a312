"""Which pool a run's settings ask for, on tables of its layout."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.runs.directory.run import LIVE, Run
from mccfr.runs.session.pool import InlinePool, Pool, ProcessPool
from mccfr.runs.session.strata.frames import live_specs
from mccfr.runs.session.strata.pool import InlineStrata, StrataPool
from mccfr.runs.session.strata.turns import InlineTurns, TurnsPool
from mccfr.solvers.registry import algorithm_of
from storage.cleanup import closed_after
from storage.live import create_live


def training_problem(config: Config) -> str | None:
    """Why a configuration cannot be trained, by its algorithm or its pool, in a sentence; None: it can."""
    return algorithm_of(config).problem() or pool_kind(config).problem(config)


class PoolOpener(Protocol):
    """Opens the pool of a run; `force`: although the tables take more memory than they should."""

    def __call__(self, run: Run, game: Game, *, force: bool = False) -> AbstractContextManager[Pool]:
        """The pool, for a `with` statement."""


@contextlib.contextmanager
def open_pool(run: Run, game: Game, *, force: bool = False) -> Iterator[Pool]:
    """The pool of a run's settings on tables of zeros; both go at the end of the `with` statement.

    `force`: although the tables take more memory than they should.  Raises `MemoryError` or `OSError` where they find
    no room.
    """
    tables = run.config.tables
    specs = live_specs(run.config, game, run.layout(game))
    kind = pool_kind(run.config)
    with create_live(specs, format=tables.format, live_dir=tables.live_dir, link=run.path(LIVE), force=force) as live:
        pool = kind(run, game, live)
        with closed_after(pool.close):
            yield pool


def pool_kind(config: Config) -> type[InlinePool | ProcessPool]:
    """The pool that a configuration asks for."""
    processes = config.run.workers > 0
    if config.tables.resident is not None:
        return TurnsPool if processes else InlineTurns
    if config.run.strata is not None:
        return StrataPool if processes else InlineStrata
    return ProcessPool if processes else InlinePool
