"""Which pool a run's settings ask for, on live tables of its layout."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mccfr.games.game import Game
from mccfr.runs.pool import InlinePool, Pool, ProcessPool
from mccfr.runs.rundir import LIVE, Run
from mccfr.runs.strata.pool import InlineStrata, StrataPool
from storage.live import create_live


class PoolOpener(Protocol):
    """Opens the pool of a run; `force`: although the tables take more memory than they should."""

    def __call__(self, run: Run, game: Game, *, force: bool = False) -> AbstractContextManager[Pool]:
        """The pool, for a `with` statement."""


@contextlib.contextmanager
def open_pool(run: Run, game: Game, *, force: bool = False) -> Iterator[Pool]:
    """The pool of a run's settings on live tables of zeros; both go at the end of the `with` statement.

    `force`: although the tables take more memory than they should.  Raises `MemoryError` or `OSError` where they find
    no room.
    """
    tables = run.config.tables
    with create_live(
        run.layout(game).specs, format=tables.format, live_dir=tables.live_dir, link=run.path(LIVE), force=force
    ) as live:
        inline, processes = (InlinePool, ProcessPool) if game.strata is None else (InlineStrata, StrataPool)
        pool: Pool = (processes if run.config.run.workers else inline)(run, game, live)
        try:
            yield pool
        finally:
            pool.close()
