"""Locked rows in the tables of sampling: cells that are so large that nothing they are added is seen.

A sampler's kernel knows of no locks.  Regrets of a locked row are its shares times 10^30, and -10^30 where one is 0:
floating-point numbers that no increment changes, and regret matching makes the shares of them.  Strategy sums are the
shares times 10^30 likewise, so that the average is the lock, also where nobody gets.  Whatever multiplies tables, or
keeps regrets above a floor, has them written anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import NO_BUCKET
from mccfr.games.game import Game
from mccfr.tables.layout import TableSet
from mccfr.tables.strategy import Strategy

_VAST = 1e30  # 2^24 of it are far more than any run adds up, and eight of it less than the largest float32


def check_locks(game: Game) -> None:
    """Raise `ValueError` for rows of which some actions alone are given: where nothing is regretted all are played."""
    given = [] if game.tree.locks is None else [shares >= 0 for shares in game.tree.locks.shares.values()]
    if any(bool((some.any(axis=0) & ~some.all(axis=0)).any()) for some in given):
        raise ValueError(
            "game.locks that bar an action, and leave the others free, are for solver.algorithm = 'cfr': take the "
            "action out of game.menu, as game.menu.river.button.later = [] does, or say what is done instead"
        )


class LockedCells:
    """The locked rows of a game, by buckets."""

    def __init__(self, game: Game) -> None:
        arrays, locks = game.tree.arrays, game.tree.locks
        self._rows: list[tuple[int, slice, npt.NDArray[np.float64]]] = []
        for node, shares in ({} if locks is None else locks.shares).items():
            block, slot = int(arrays.block[node]), int(arrays.slot[node])
            table = _by_bucket(game, block, shares) if locks is not None and locks.by_hand else shares.T
            self._rows.append((block, slice(slot, slot + len(shares)), table))

    def __bool__(self) -> bool:
        return bool(self._rows)

    def write(self, tables: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write them into a `TableSet`, in place; what is free stays as it is."""
        if not self._rows:
            return
        assert isinstance(tables, TableSet)
        for block, slots, shares in self._rows:
            regret, sums = (tables.rows(kind, block)[:, slots] for kind in ("regret", "strategy_sum"))  # type: ignore[index]
            given = shares >= 0
            regret[given] = np.where(shares > 0, _VAST * shares, -_VAST)[given]
            sums[given] = (_VAST * shares)[given]

    def hold(self, tables: Sequence[npt.NDArray[np.floating]]) -> None:
        """Put the locks into tables of probabilities by block, [slots, buckets], in place.

        Of a row of which some actions are locked, the free ones share what is left in proportion, or equally where
        they had nothing.  Rows that agree with their lock already keep their bits.
        """
        for block, slots, shares in self._rows:
            here, given = tables[block][slots].T, shares >= 0
            changed = (given & (here != shares)).any(axis=1)
            here, given, locked = here[changed], given[changed], np.maximum(shares[changed], 0)
            free = np.where(given, 0, here)
            free = np.where(free.sum(axis=1, keepdims=True) > 0, free, ~given)
            left = 1 - locked.sum(axis=1, keepdims=True)
            total = np.maximum(free.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            tables[block][slots, changed] = np.where(given, locked, free * left / total).T


def with_locked_rows(game: Game, strategy: Strategy) -> Strategy:
    """The strategy with rows of which all is given as they are given, to the last bit: sums round."""
    cells = LockedCells(game)
    if not cells:
        return strategy
    blocks = range(len(strategy.probability))
    tables = [np.array(strategy.probability[block]) for block in blocks]
    cells.hold([table.T for table in tables])
    return Strategy(tables, [strategy.weight[block] for block in blocks])


def given_actions(game: Game, node: int) -> npt.NDArray[np.bool_]:
    """[buckets, A] whether a decision's actions are given, and not learnt."""
    locks, block = game.tree.locks, int(game.tree.arrays.block[node])
    if locks is None or node not in locks.shares:
        return np.zeros((int(game.buckets[block]), int(game.tree.arrays.count[node])), bool)
    shares = locks.shares[node]
    return (_by_bucket(game, block, shares) if locks.by_hand else shares.T) >= 0


def _by_bucket(game: Game, block: int, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[buckets, actions] of shares by hand, where every hand on a board has a bucket of its own, or one with alike."""
    bucket = game.cards.listed().bucket[block // 2][block % 2]
    table = np.full((int(game.buckets[block]), len(shares)), -1.0)
    board, hand = np.nonzero(bucket != NO_BUCKET)
    table[bucket[board, hand]] = shares.T[hand]
    return table
