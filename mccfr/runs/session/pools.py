"""Which pool a run's settings ask for, on tables of its layout."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mccfr.games.game import Game
from mccfr.runs.directory.run import LIVE, Run
from mccfr.runs.session.pool import InlinePool, Pool, ProcessPool
from mccfr.runs.session.strata.frames import live_specs
from mccfr.runs.session.strata.pool import InlineStrata, StrataPool
from mccfr.runs.session.strata.turns import InlineTurns, TurnsPool
from storage.live import LiveTables, create_live


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
    with create_live(specs, format=tables.format, live_dir=tables.live_dir, link=run.path(LIVE), force=force) as live:
        pool = _kind(run, game)(run, game, live)
        try:
            yield pool
        finally:
            pool.close()


def _kind(run: Run, game: Game) -> Callable[[Run, Game, LiveTables], Pool]:
    processes = run.config.run.workers > 0
    if game.strata is None:
        return ProcessPool if processes else InlinePool
    if run.config.tables.resident is None:
        return StrataPool if processes else InlineStrata
    return TurnsPool if processes else InlineTurns
