"""Locked rows in the tables of sampled algorithms: regrets so large that updates do not change them.

The sampling kernels do not know of locks.  Regrets of a locked row are its probabilities times 10^30, or -10^30 for
probability 0.  No increment changes such floating-point numbers, and regret matching gives back the probabilities.
Strategy sums are the probabilities times 10^30, so the average is the lock, also at infosets that are never visited.
Code that multiplies tables or floors regrets must write the locks again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import NO_BUCKET
from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableSet

_VAST = 1e30  # increments below 1e30 / 2^24 change nothing; eight of it are less than the largest float32 number


def check_locks(game: Game) -> None:
    """Raise `ValueError` for infosets in which some actions are locked (fixed) and others free.

    There regret matching plays all actions while no regret is positive, the locked ones included.
    """
    is_locked = [] if game.tree.locks is None else [shares >= 0 for shares in game.tree.locks.shares.values()]
    if any(bool((some.any(axis=0) & ~some.all(axis=0)).any()) for some in is_locked):
        raise ValueError(
            "game.locks that forbid one action and leave the others free are for solver.algorithm = 'cfr': take the "
            "action out of game.menu, as game.menu.river.button.later = [] does, or lock the other actions as well"
        )


class LockedCells:
    """Writes a game's locked rows (infosets with a fixed strategy) into regret and strategy tables.

    Locks that are given for single hands are first converted to locks of their buckets.
    """

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
        """Write the regrets and strategy sums of locked (fixed) actions into a run's tables, in place.

        tables  a TableSet; for a game without locks any mapping, which is not read

        Regrets are within ±10^30, sums from 0 to 10^30.
        """
        if not self._rows:
            return
        assert isinstance(tables, TableSet)
        for block, slots, shares in self._rows:
            regret, sums = (tables.rows(kind, block)[:, slots] for kind in ("regret", "strategy_sum"))  # type: ignore[index]
            is_locked = shares >= 0
            regret[is_locked] = np.where(shares > 0, _VAST * shares, -_VAST)[is_locked]
            sums[is_locked] = (_VAST * shares)[is_locked]

    def hold(self, tables: Sequence[npt.NDArray[np.floating]]) -> None:
        """Write the locked (fixed) probabilities into strategy tables, in place.

        tables  [slots, buckets] probabilities of each street and player; a slot is one action of a decision

        Where only some actions are locked, the free actions share the rest in proportion, or equally if all are 0.
        Rows that already agree with their lock keep their bits.
        """
        for block, slots, shares in self._rows:
            current, is_locked = tables[block][slots].T, shares >= 0
            changed = (is_locked & (current != shares)).any(axis=1)
            current, is_locked, locked = current[changed], is_locked[changed], np.maximum(shares[changed], 0)
            free = np.where(is_locked, 0, current)
            free = np.where(free.sum(axis=1, keepdims=True) > 0, free, ~is_locked)
            remaining = 1 - locked.sum(axis=1, keepdims=True)
            total = np.maximum(free.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            tables[block][slots, changed] = np.where(is_locked, locked, free * remaining / total).T


def with_locked_rows(game: Game, strategy: Strategy) -> Strategy:
    """Return the strategy with the exact probabilities of locked rows (infosets of fixed strategy).

    Probabilities that are computed from strategy sums are rounded.  Without locks the result is `strategy` itself.
    """
    cells = LockedCells(game)
    if not cells:
        return strategy
    blocks = range(len(strategy.probability))
    tables = [np.array(strategy.probability[block]) for block in blocks]
    cells.hold([table.T for table in tables])
    return Strategy(tables, [strategy.weight[block] for block in blocks])


def locked_actions_of(game: Game, node: int) -> npt.NDArray[np.bool_]:
    """Return [buckets, A] bool: True where an action of decision `node` is locked (fixed) for a bucket."""
    locks, block = game.tree.locks, int(game.tree.arrays.block[node])
    if locks is None or node not in locks.shares:
        return np.zeros((int(game.buckets[block]), int(game.tree.arrays.count[node])), bool)
    shares = locks.shares[node]
    return (_by_bucket(game, block, shares) if locks.by_hand else shares.T) >= 0


def _by_bucket(game: Game, block: int, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return [buckets, A] locked (fixed) probabilities of a decision's A actions; -1 if not locked.

    block   2·street + player of the decision
    shares  [A, H] locked probabilities of each hand, -1 if not locked

    Buckets without a hand are not locked.  Hands that share a bucket must have the same lock, which is not checked.
    """
    bucket = game.listed_cards().bucket[block // 2][block % 2]
    table = np.full((int(game.buckets[block]), len(shares)), -1.0)
    board, hand = np.nonzero(bucket != NO_BUCKET)
    table[bucket[board, hand]] = shares.T[hand]
    return table
