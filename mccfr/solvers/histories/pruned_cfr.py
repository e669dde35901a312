"""CFR and CFR+ with regret-based pruning (Brown & Sandholm 2015) as a solver on named tables.

The algorithm is in `mccfr.solvers.histories.regret_based_pruning`.  A row is one infoset, a slot is one action of a
row.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.solvers.histories.history_cfr import check_tables, new_tables, new_walk, strategy_of
from mccfr.solvers.histories.pruning_catchup import (
    REACH,
    SUM,
    MetRowMarks,
    NodeFacts,
    Pruned,
    PrunedInfosets,
    PruningArrays,
    PruningScratch,
)
from mccfr.solvers.histories.regret_based_pruning import bring_all_forward, run_pruned
from mccfr.solvers.histories.sequences import sequence_form
from mccfr.solvers.minimisers import Tables
from mccfr.solvers.variants import Variant
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import table_name
from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, NO_SLOT, TERMINAL
from storage.schema import ArraySpec

_SUMS = ("reach_sum", "payoff_sum", "assumed", "pruned_regret")
_SLOT_TABLES = ("regret", "strategy_sum", *_SUMS, "pruned_since", "bound_sum")
_ROW_TABLES = ("value_sum",)
_BATCH = 1024


def pruned_tables(game: Game, variant: Variant) -> tuple[ArraySpec, ...]:
    """Return names, shapes and dtypes of `PrunedCfr`'s tables, for each player who ever acts.

    They hold regrets, strategy sums and the state of pruning.  All are [slots, 1] float64, except `value_sum` [rows, 1]
    float64 and `pruned_since` [slots, 1] uint32.  A row is an infoset, a slot one action of it.

    Raises `ValueError` unless the variant is CFR or CFR+: regret matching without discounts, or regret matching plus
    without a discount of positive regrets.  Also raises it for an optimistic variant.
    """
    plus = variant.regret_minimiser == "regret-matching-plus"
    plain = variant.regret_minimiser == "regret-matching" and variant.beta == inf
    if not (plus or plain) or variant.optimistic or variant.alpha != inf:
        raise ValueError(
            "pruning = 'regret-based' is for regret-matching without discounts and for regret-matching-plus (variants "
            f"cfr and cfr+), and the variant has regret_minimiser = {variant.regret_minimiser!r}, optimistic = "
            f"{variant.optimistic}, alpha = {variant.alpha}, beta = {variant.beta}: choose pruning = 'partial'"
        )
    specs = []
    for player in np.flatnonzero(game.tree.row_slots[:2]).tolist():
        slots, rows = int(game.tree.row_slots[player]), int(game.tree.row_count[player])
        for kind in _SLOT_TABLES:
            dtype = "uint32" if kind == "pruned_since" else "float64"
            specs.append(ArraySpec(table_name(kind, player), (slots, 1), dtype, ("slot", "column")))
        specs += [ArraySpec(table_name(kind, player), (rows, 1), "float64", ("row", "column")) for kind in _ROW_TABLES]
    return tuple(specs)


@njit
def _bounds(tree, best, sign):
    """Fill best [N] with an upper bound of each node's value to a player, in chips.

    The bound is the value if both players together maximise it.

    tree  TreeArrays of N nodes
    sign  1 for player 0, -1 for player 1
    """
    for node in range(tree.kind.shape[0] - 1, -1, -1):
        if tree.kind[node] == TERMINAL:
            best[node] = sign * tree.fixed[node]
            continue
        largest, mean = -np.inf, 0.0
        for child in range(tree.first[node], tree.first[node] + tree.count[node]):
            largest = max(largest, best[child])
            mean += tree.probability[child] * best[child]
        best[node] = mean if tree.kind[node] == CHANCE else largest


def _joined(cells: npt.NDArray[Any], offset: int) -> npt.NDArray[np.int64]:
    """Convert one player's slots (infoset actions) to numbers over both players: plus `offset`.

    cells   slots of the player, or NO_SLOT, which does not change
    offset  0 for player 0; for player 1 the number of player 0's slots

    The result is int64.
    """
    return np.where(cells == NO_SLOT, NO_SLOT, cells + offset).astype(np.int64)


def _groups(
    keys: npt.NDArray[np.int64], members: npt.NDArray[np.int64], count: int
) -> tuple[npt.NDArray[np.int64], ...]:
    """Group members [n] by their keys [n], which are 0 to count-1.

    Returns (first [count+1], grouped [n]): the members of key k are grouped[first[k] : first[k+1]].
    """
    order = np.argsort(keys, kind="stable")
    return np.searchsorted(keys[order], np.arange(count + 1)).astype(np.int64), members[order].astype(np.int64)


def infosets_of(game: Game) -> PrunedInfosets:
    """Return the `PrunedInfosets` of a game: both players' infosets in one numbering.

    Raises `ValueError` for a game that deals cards outside its tree, and if a player lacks perfect recall.
    """
    (one, two), last, chance = sequence_form(game)
    arrays, slots, rows = game.tree.arrays, len(one.row_of), len(one.above)
    above = np.concatenate([one.above, _joined(two.above, slots)])
    row = np.where(arrays.player == 1, rows, 0) + arrays.row.astype(np.int64)
    decisions = np.flatnonzero(arrays.kind == DECISION)
    led = np.flatnonzero(above != NO_SLOT)
    below_first, below = _groups(above[led], led, slots + len(two.row_of))
    node_first, node = _groups(row[decisions], decisions, len(above))
    joined_last = np.stack([_joined(last[0], 0), _joined(last[1], slots)])
    parent, upper, ends = game.tree.parent, np.zeros(len(arrays.kind)), np.ones(slots + len(two.row_of), np.uint8)
    for player in range(2):
        best = np.zeros(len(upper))
        _bounds(arrays, best, 1.0 - 2 * player)
        after = (arrays.player[parent] == player) & (parent != NO_PARENT)
        upper[after] = best[after]
        ends[joined_last[player, after & (arrays.kind != TERMINAL)]] = 0
    return PrunedInfosets(
        np.concatenate([one.starts, two.starts[1:] + slots]),
        above,
        np.concatenate([one.row_of, two.row_of + rows]),
        np.repeat(np.arange(2), [rows, len(two.above)]),
        below_first,
        below,
        node_first,
        node,
        ends,
        NodeFacts(upper, row, joined_last, chance),
    )


class PrunedCfr:
    """CFR or CFR+ with regret-based pruning; continues from given tables and counters bit for bit.

    tables         {name: array} of regrets, strategy sums and the state of pruning; changed in place at the end of each
                   batch of iterations. `regret` holds bounds where `pruned_since` is not 0, and CFR+ has negative
                   regrets. `strategy_sum` is out of date where players are not visited: use `average_strategy`
    iteration      iterations done so far
    nodes_touched  decision, chance and terminal nodes visited so far, those of best responses included
    """

    def __init__(
        self,
        game: Game,
        variant: Variant,
        *,
        threshold: float,
        tables: Mapping[str, npt.NDArray[Any]] | None = None,
        iteration: int = 0,
        nodes_touched: int = 0,
    ) -> None:
        """Prepare CFR or CFR+ with regret-based pruning on a game.

        threshold  least number of iterations that pruning of an action is estimated to skip; actions that end the game
                   need none
        tables     tables to continue from; None: new ones

        Raises `ValueError` for a variant other than CFR and CFR+, a threshold below 1, or tables that do not fit.  Also
        raises it for a game that deals cards outside its tree, or without perfect recall.
        """
        if not threshold >= 1:
            raise ValueError(f"prune_threshold = {threshold}: it must be at least 1 iteration")
        specs = pruned_tables(game, variant)
        self.game, self.variant = game, variant
        self.tables = dict(new_tables(specs) if tables is None else tables)
        check_tables(specs, self.tables)
        self.iteration, self.nodes_touched = iteration, nodes_touched
        self._pruning = _new_arrays(infosets_of(game), threshold, variant.regret_minimiser == "regret-matching-plus")
        self._walk = new_walk(game, "float64")
        self._load()

    def iterate(self, count: int) -> None:
        """Run `count` iterations and change the tables in place; 0 only compiles the kernels."""
        last = self.iteration + count
        for first in range(self.iteration, last + 1, _BATCH):
            batch = min(_BATCH, last - first)
            begins = self._weights(self.iteration + 1, self.iteration + batch), self.iteration + 1
            arrays, alternating = self.game.tree.arrays, int(self.variant.alternating)
            self.nodes_touched += int(run_pruned(arrays, self._pruning, self._walk, *begins, alternating))
            self.iteration += batch
            self._store()

    def average_strategy(self) -> Strategy:
        """Return the average strategy of both players; the tables do not change.

        The weight of an infoset is the sum over iterations of the iteration's weight times own reach.
        """
        bring_all_forward(self._pruning, self._walk)
        average = self._split(self._pruning.state.tables.strategy_sum)
        self._load()  # restores the state, so that this call does not affect later rounding
        return average

    def current_strategy(self) -> Strategy:
        """Return the players' strategy of the next iteration; the tables do not change.

        Actions that are pruned have probability 0.
        """
        bring_all_forward(self._pruning, self._walk)
        self._load()
        return self._split(self._walk.sigma)

    def _weights(self, first: int, last: int) -> npt.NDArray[np.float64]:
        """Return [n] the weights t^γ of the iterations t = `first` to `last` in the average strategy.

        γ is the variant's averaging power.
        """
        return np.arange(first, last + 1, dtype=np.float64) ** self.variant.powers(1)[2]

    def _split(self, cells: npt.NDArray[Any]) -> Strategy:
        slots = int(self.game.tree.row_slots[0])
        return strategy_of(self.game, [cells[:slots], cells[slots:]])

    def _parts(self) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield pairs of 1-D views: a player's part of an array of kernels, and the player's table.

        Both hold the same quantity, such as regrets.  Players who never act have no tables and no pairs.
        """
        state = self._pruning.state
        fields = state._asdict() | {kind: getattr(state.tables, kind)[:, 0] for kind in ("regret", "strategy_sum")}
        for kind in (*_SLOT_TABLES, *_ROW_TABLES):
            first = 0
            for player in range(2):
                table = self.tables.get(table_name(kind, player))
                if table is not None:
                    yield fields[kind][first : first + len(table)], table[:, 0]
                    first += len(table)

    def _load(self) -> None:
        """Copy the tables into the kernels' arrays.

        Also set `PruningScratch.totals` (by player: total weight of iterations, number of the opponent's traversals) to
        those after `self.iteration`.
        """
        for cells, table in self._parts():
            cells[:] = table
        totals = self._pruning.scratch.totals
        totals[:, SUM] = np.cumsum(self._weights(1, self.iteration))[-1:].sum()  # same rounding as adding one by one
        totals[:, REACH] = self.iteration

    def _store(self) -> None:
        """Copy the kernels' arrays into the tables."""
        for cells, table in self._parts():
            table[:] = cells


def _new_arrays(infosets: PrunedInfosets, threshold: float, restarts: bool) -> PruningArrays:
    """Return the kernels' arrays with the state before the first iteration.

    threshold  least number of iterations that pruning of an action is estimated to skip; actions that end the game
               need none
    restarts   True for CFR+: a positive gain replaces a regret of 0 or below instead of being added to it
    """
    rows, cells, nodes = len(infosets.above), len(infosets.row_of), len(infosets.by_node.row)
    regret, strategy_sum = np.zeros((2, cells, 1))
    sums: dict[str, Any] = {kind: np.zeros(cells) for kind in (*_SUMS, "bound_sum")}
    since, value_sum = np.zeros(cells, np.uint32), np.zeros(rows)
    state = Pruned(Tables(regret, regret, strategy_sum), **sums, pruned_since=since, value_sum=value_sum)
    visited, settled, after, met, path = np.zeros((5, rows), np.int64)
    marks, by_row = MetRowMarks(visited, settled, np.zeros(2, np.int64)), (met, after, path)
    waiting, stack, (gain, payoff, scale) = np.zeros(cells, np.int64), np.zeros(nodes, np.int64), np.zeros((3, cells))
    scratch = PruningScratch(marks, *by_row, waiting, stack, gain, payoff, scale, np.zeros((2, 2)))
    return PruningArrays(infosets, state, scratch, float(threshold), int(restarts))
