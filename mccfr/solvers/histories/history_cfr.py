"""Full-width CFR over explicit histories in any variant, with or without partial pruning.

The tree holds every history, so a row of a player's tables is one infoset; a slot is one action of a row.  The
traversal is that of Zinkevich et al. 2007; variants are in `mccfr.solvers.variants`.  With alternating updates player 0
traverses and updates first, then player 1 against the updated player 0, and so on.  With simultaneous updates one
traversal serves all.

A traversal has two passes over node records.  The forward pass computes the others' reach of each player (times
chance).  With more than two players there is a backward pass for each, because their values are not opposites.  The
backward pass computes the value of each node, and adds up the counterfactual values of each action over the histories
of an infoset.  Then regrets and sums are updated row by row.  With perfect recall own reach is the same at all
histories of a row, so the average strategy is updated once a row.

Partial pruning (Brown & Sandholm 2015, sections 1 and 2.2) skips histories that no traverser's opponent reaches.  Their
counterfactual values are 0, so regrets and average strategies do not change.

With `zero_reach` the players play best responses where their own reach is 0 (section 3).  A strategy after an action of
probability 0 changes no other player's regret in that iteration.  There a best response counts as played: no regret
after the action grows, and the action gets the best response's value.  The paper's condition R <= -Δ(I) is not used,
because the bound (8) does not need it.  Best responses are exact: one for each infoset, summed over its histories.

In kernels `tree` is a TreeArrays of N nodes, `walk` a HistoryWalk, `side` a HistorySide of the player concerned, and
`step` a Step.  Values are float64 throughout; tables are float32 or float64.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, njit, part_njit
from mccfr.games.game import Game
from mccfr.solvers.histories.sequences import Sequences, sequence_form
from mccfr.solvers.minimisers import Rows, Step, Tables, current_strategy, update_average, update_regrets
from mccfr.solvers.variants import Variant
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableSet, table_name
from mccfr.trees.compiled import CHANCE, NO_SLOT, TERMINAL
from storage.schema import ArraySpec

BOTH = -1
"""Value of `traverser` for a simultaneous update of all players; otherwise it is a player's number."""

_BATCH = 1024  # iterations of one call, whose steps are computed beforehand
_DTYPES = ("float32", "float64")


class HistorySide(NamedTuple):
    """One player's tables and scratch for kernels: R rows (infosets), S slots (actions of all rows).

    starts      [R+1] int64     first slot of each row, and the end of the last
    above       [R] int64       slot of the player's last action before each row, or NO_SLOT
    last        [N] int32       slot of the player's last action before each node of the tree, or NO_SLOT
    tables      Tables [S, 1]   regrets, the regrets that give the next strategy, and strategy sums
    sigma       [S, 1]          current strategy, in the tables' dtype: a view of `HistoryWalk.sigma`
    increment   [S, 1] float64  counterfactual values of actions in this traversal, 0 between traversals: a view of
                                `HistoryWalk.increment`
    slot_reach  [S] float64     scratch: own reach after each action
    row_reach   [R] float64     scratch: own reach of each row, later the row's counterfactual value
    """

    starts: npt.NDArray[np.int64]
    above: npt.NDArray[np.int64]
    last: npt.NDArray[np.int32]
    tables: Tables
    sigma: npt.NDArray[np.floating]
    increment: npt.NDArray[np.float64]
    slot_reach: npt.NDArray[np.float64]
    row_reach: npt.NDArray[np.float64]


class HistoryWalk(NamedTuple):
    """Arrays of a traversal: N nodes, D of them inner nodes; C cells: the slots of all P players.

    cell       [N] int64       first cell of the decision's row, at decisions
    sigma      [C, 1]          current strategies, in the tables' dtype
    increment  [C, 1] float64  counterfactual values of actions in this traversal; 0 between traversals
    order      [D] int64       inner nodes in the order visited
    stack      [D] int64       inner nodes to visit
    reach      [P, N] float64  reach of all players but player p, times that of chance; with regret-based pruning the
                               reach of player p alone, times that of chance
    value      [N] float64     value in chips: of two players to player 0, of more to the player whose backward pass it
                               is.  At terminals it is the payoff
    payoffs    [P, N] float64  payoffs in chips of three and more players; [2, 0] for two
    players    (0, .., P-1)    its length is the number of players, known to the compiler
    """

    cell: npt.NDArray[np.int64]
    sigma: npt.NDArray[np.floating]
    increment: npt.NDArray[np.float64]
    order: npt.NDArray[np.int64]
    stack: npt.NDArray[np.int64]
    reach: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    payoffs: npt.NDArray[np.float64]
    players: tuple[int, ...]


class Plan(NamedTuple):
    """Parameters of a batch of K iterations.

    rule         None: regret matching; else the code of NormalHedge or the address of a user's rule
    predicts     None: no prediction; else OPTIMISTIC (the last increment of regrets counts twice in the next strategy)
                 or PREDICTIVE (it counts once more, after discounts)
    alternating  1: players traverse and update in turn; 0: all at once
    prune        1: skip histories that no traverser's opponent reaches; 0: visit all
    zero_reach   1: best responses where own reach is 0; 0: no such responses
    factors      [K, 4] float64, for each iteration: factors of positive and of negative regrets, factor of the strategy
                 sums, weight of the strategy
    """

    rule: int | None
    predicts: int | None
    alternating: int
    prune: int
    zero_reach: int
    factors: npt.NDArray[np.float64]


@njit
def _strategies(step, side):
    """Write the current strategy at every infoset of a player to `side.sigma`."""
    for row in range(side.above.shape[0]):
        first = side.starts[row]
        current_strategy(step, side.tables, Rows(first, side.starts[row + 1] - first, 0, 1), side.sigma, first)


@part_njit
def _averages(step, side):
    """Multiply a player's strategy sums by `step.keep`, then add the current strategy, in place.

    The strategy is weighted by `step.weight` and own reach.  Own reach is also written to `side.slot_reach` and
    `side.row_reach`.
    """
    for row in range(side.above.shape[0]):
        first, above = side.starts[row], side.above[row]
        rows = Rows(first, side.starts[row + 1] - first, 0, 1)
        reach = 1.0 if above == NO_SLOT else side.slot_reach[above]
        side.row_reach[row] = reach
        for slot in range(first, side.starts[row + 1]):
            side.slot_reach[slot] = reach * side.sigma[slot, 0]
        update_average(step, side.tables, rows, side.sigma, first, side.row_reach[row : row + 1])


@part_njit
def _regrets(step, side):
    """Update a player's regrets from the values in `side.increment`, and set these to 0.

    Regrets are discounted by the factors in `step`.  The value of each row (infoset) is written to `side.row_reach`.
    """
    for row in range(side.above.shape[0]):
        first, stop = side.starts[row], side.starts[row + 1]
        value = 0.0
        for slot in range(first, stop):
            value += side.sigma[slot, 0] * side.increment[slot, 0]
        side.row_reach[row] = value
        total = side.row_reach[row : row + 1]
        update_regrets(step, side.tables, Rows(first, stop - first, 0, 1), side.increment, first, total)
        for slot in range(first, stop):
            side.increment[slot, 0] = 0.0


@part_njit
def _reached(walk, node, traverser):
    """Return whether, for some traverser, the other players and chance reach a node.

    They do if the product of their probabilities is above 0.

    traverser  a player, or BOTH for all
    """
    found = False
    for one in range(len(walk.players)):
        found = found or (traverser in (one, BOTH) and walk.reach[one, node] > 0.0)
    return found


@part_njit
def _forward(tree, walk, traverser, prune):
    """Compute `walk.reach` of every visited node and list the inner ones in `walk.order`.

    traverser  a player, or BOTH for all
    prune      1: skip nodes that no traverser's opponents reach; 0: visit all

    Returns (inner nodes visited, all nodes visited).
    """
    order, stack, reach, sigma = walk.order, walk.stack, walk.reach, walk.sigma
    reach[:, 0] = 1.0
    height, visited, touched = 0, 0, 1
    if tree.kind[0] != TERMINAL:
        stack[0], height = 0, 1
    while height > 0:
        height -= 1
        node = stack[height]
        order[visited] = node
        visited += 1
        kind, player, cell = tree.kind[node], tree.player[node], walk.cell[node]
        for a in range(tree.count[node] - 1, -1, -1):
            child = tree.first[node] + a
            share = tree.probability[child] if kind == CHANCE else sigma[cell + a, 0]
            for one in range(len(walk.players)):
                reach[one, child] = reach[one, node] if one == player else reach[one, node] * share
            if prune and not _reached(walk, child, traverser):
                continue
            touched += 1
            if tree.kind[child] != TERMINAL:
                stack[height] = child
                height += 1
    return visited, touched


@inline_njit
def node_value(tree, walk, node):
    """Compute the value in chips of an inner node from its children and write it to `walk.value`."""
    first, total = tree.first[node], 0.0
    for a in range(tree.count[node]):
        share = tree.probability[first + a] if tree.kind[node] == CHANCE else walk.sigma[walk.cell[node] + a, 0]
        if share > 0.0:  # values of actions with probability 0 may be of an earlier iteration
            total += share * walk.value[first + a]
    walk.value[node] = total


@part_njit
def _backward(tree, walk, traverser, visited):
    """Compute values of visited inner nodes; add traversers' counterfactual values to `walk.increment`.

    traverser  a player, or BOTH for all
    visited    number of inner nodes visited, in `walk.order`; the last one is handled first
    """
    mirrored = len(walk.players) == 2
    for position in range(visited - 1, -1, -1):
        node = walk.order[position]
        node_value(tree, walk, node)
        player = tree.player[node]
        if tree.kind[node] == CHANCE or (traverser != player and traverser != BOTH):  # noqa: PLR1714 - types differ
            continue
        others, first, cell = walk.reach[player, node], tree.first[node], walk.cell[node]
        if others > 0.0:
            weight = -others if mirrored and player == 1 else others
            for a in range(tree.count[node]):
                walk.increment[cell + a, 0] += weight * walk.value[first + a]


@part_njit
def _respond(tree, walk, side, player, visited):
    """Write the counterfactual values of a player's actions, with best responses where own reach is 0.

    The game has two players.  The values go to `side.increment`, which must be 0 before.  Best responses go to the
    infosets of `side.sigma` with own reach 0 (`side.row_reach`).  They take the first of equal actions.

    player   0 or 1, the player of `side`
    visited  number of inner nodes that a traversal has just visited, in `walk.order`; `walk.reach` must be computed
    """
    increment, sigma, sign = side.increment, side.sigma, 1.0 - 2.0 * player
    for position in range(visited):
        node = walk.order[position]
        for child in range(tree.first[node], tree.first[node] + tree.count[node]):
            if tree.kind[child] == TERMINAL and side.last[child] != NO_SLOT:
                increment[side.last[child], 0] += sign * walk.reach[player, child] * walk.value[child]
    for row in range(side.above.shape[0] - 1, -1, -1):
        first, stop = side.starts[row], side.starts[row + 1]
        if side.row_reach[row] == 0.0:
            best = first
            for slot in range(first, stop):
                sigma[slot, 0] = 0.0
                if increment[slot, 0] > increment[best, 0]:
                    best = slot
            sigma[best, 0] = 1.0
        if side.above[row] != NO_SLOT:
            for slot in range(first, stop):
                increment[side.above[row], 0] += sigma[slot, 0] * increment[slot, 0]


@part_njit
def _set_payoffs(tree, walk, player):
    """Copy a player's payoffs in chips to `walk.value` at terminals, in a game of three or more players."""
    for node in range(walk.value.shape[0]):
        if tree.kind[node] == TERMINAL:
            walk.value[node] = walk.payoffs[player, node]


@part_njit
def _traverse(tree, sides, walk, plan, step, traverser):
    """Run one traversal and the traversers' updates; return the number of nodes touched.

    sides      tuple of a `HistorySide` for each player, by player number
    plan       Plan: pruning and best responses
    traverser  a player, or BOTH for all
    """
    visited, touched = _forward(tree, walk, traverser, plan.prune)
    players = len(walk.players)
    if not plan.zero_reach and players == 2:
        _backward(tree, walk, traverser, visited)
    for player in range(players):
        if traverser in (player, BOTH):
            if players > 2:
                _set_payoffs(tree, walk, player)
                _backward(tree, walk, player, visited)
            _averages(step, sides[player])
            if plan.zero_reach:
                _respond(tree, walk, sides[player], player, visited)
            _regrets(step, sides[player])
    return touched


@njit
def _run(tree, sides, walk, plan):
    """Run the K iterations of a `Plan`; change the tables of `sides` in place; return the nodes touched.

    sides  tuple of a `HistorySide` for each player, by player number
    """
    touched = 0
    for k in range(plan.factors.shape[0]):
        factors = plan.factors[k]
        step = Step(plan.rule, plan.predicts, factors[0], factors[1], factors[2], factors[3])
        for player in range(len(sides)):
            _strategies(step, sides[player])
        for turn in range(len(sides) if plan.alternating else 1):
            traverser = turn if plan.alternating else BOTH
            touched += _traverse(tree, sides, walk, plan, step, traverser)
            if plan.alternating and turn + 1 < len(sides):
                _strategies(step, sides[turn])
    return touched


def history_tables(game: Game, variant: Variant, dtype: str = "float64") -> tuple[ArraySpec, ...]:
    """Return names, shapes and dtypes of `HistoryCfr`'s tables.

    They are [slots, 1] for each player who ever acts; a slot is one action of an infoset.

    There are regrets and strategy sums; an optimistic variant also has predicted regrets.

    Raises `ValueError` for a dtype other than float32 and float64.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"dtype = {dtype!r}: float32 or float64 is needed")
    return tuple(
        ArraySpec(
            table_name(kind, player, game.tree.players),
            (int(game.tree.row_slots[player]), 1),
            dtype,
            ("slot", "column"),
        )
        for player in np.flatnonzero(game.tree.row_slots[: game.tree.players]).tolist()
        for kind in variant.table_kinds
    )


def new_tables(specs: tuple[ArraySpec, ...]) -> dict[str, npt.NDArray[Any]]:
    """Return {name: new array} for the specs of tables, filled with each spec's initial value."""
    return {spec.name: np.full(spec.shape, spec.fill, spec.dtype) for spec in specs}


def check_tables(specs: tuple[ArraySpec, ...], tables: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise `ValueError` unless every table of the specs exists with its shape and dtype, in C order."""
    for spec in specs:
        table = tables.get(spec.name)
        if table is None or table.shape != spec.shape or table.dtype != spec.dtype or not table.flags.c_contiguous:
            described = "absent" if table is None else f"{table.dtype} of the shape {table.shape}"
            raise ValueError(
                f"table {spec.name} is {described}; {spec.dtype} of the shape {spec.shape} in C order is needed"
            )


def new_walk(game: Game, dtype: str) -> HistoryWalk:
    """Return the `HistoryWalk` of a game, with the payoffs filled in.

    dtype  dtype of the tables
    """
    arrays, players = game.tree.arrays, game.tree.players
    inner, cells = int((arrays.kind != TERMINAL).sum()), int(game.tree.row_slots.sum())
    payoffs = np.zeros((2, 0)) if game.tree.payoffs is None else np.ascontiguousarray(game.tree.payoffs.T)
    return HistoryWalk(
        first_cells(game)[np.maximum(arrays.player, 0)] + arrays.slot,
        np.zeros((cells, 1), dtype),
        np.zeros((cells, 1)),
        np.zeros(inner, np.int64),
        np.zeros(inner, np.int64),
        np.zeros((players, len(arrays.kind))),
        np.where(arrays.kind == TERMINAL, arrays.fixed, 0.0),
        payoffs,
        tuple(range(players)),
    )


def first_cells(game: Game) -> npt.NDArray[np.int64]:
    """Return [P] the index of each player's first slot among the slots of all players, player 0's first.

    A slot is one action of an infoset.
    """
    slots = game.tree.row_slots[: game.tree.players]
    return np.cumsum(slots) - slots


class HistoryCfr:
    """CFR on a game whose tree holds every history; continues from given tables and counters bit for bit.

    tables         {name: array [slots, 1]} of regrets and strategy sums, and of predicted regrets if the variant is
                   optimistic; changed in place
    iteration      iterations done so far
    nodes_touched  decision, chance and terminal nodes visited so far, the root included
    """

    def __init__(
        self,
        game: Game,
        variant: Variant,
        dtype: str = "float64",
        *,
        partial_pruning: bool = False,
        zero_reach: bool = False,
        tables: Mapping[str, npt.NDArray[Any]] | None = None,
        iteration: int = 0,
        nodes_touched: int = 0,
    ) -> None:
        """Prepare CFR on a game.

        dtype            "float32" or "float64", of the tables
        partial_pruning  skip histories that no traverser's opponent reaches
        zero_reach       play best responses where own reach is 0; for two players
        tables           tables to continue from; None: new ones

        Raises `ValueError` for an unknown dtype and for tables that do not fit.  Also raises it for a game without
        perfect recall, or that deals cards outside its tree (`mccfr.games.history_tree` puts them into it).
        """
        specs = history_tables(game, variant, dtype)
        self.game, self.variant, self.prune, self.zero_reach = game, variant, partial_pruning, zero_reach
        self.tables = dict(new_tables(specs) if tables is None else tables)
        check_tables(specs, self.tables)
        self.iteration, self.nodes_touched = iteration, nodes_touched
        form = sequence_form(game)
        self._walk = new_walk(game, dtype)
        self._sides = tuple(
            self._side(player, one, form.last[player], dtype) for player, one in enumerate(form.players)
        )

    def _side(self, player: int, one: Sequences, last: npt.NDArray[np.int32], dtype: str) -> HistorySide:
        slots, empty = len(one.row_of), np.zeros((0, 1), dtype)
        first, players = int(first_cells(self.game)[player]), self.game.tree.players
        regret, strategy_sum, *predicted = (
            self.tables.get(table_name(kind, player, players), empty) for kind in self.variant.table_kinds
        )
        return HistorySide(
            one.starts,
            one.above,
            last,
            Tables(regret, predicted[0] if predicted else regret, strategy_sum),
            self._walk.sigma[first : first + slots],
            self._walk.increment[first : first + slots],
            np.zeros(slots),
            np.zeros(len(one.above)),
        )

    def iterate(self, count: int) -> None:
        """Run `count` iterations and change the tables in place; 0 only compiles the kernels."""
        last = self.iteration + count
        for first in range(self.iteration, last + 1, _BATCH):
            batch = min(_BATCH, last - first)
            self.nodes_touched += int(_run(self.game.tree.arrays, self._sides, self._walk, self._plan(batch)))
            self.iteration += batch

    def _plan(self, batch: int) -> Plan:
        steps = [self.variant.step(self.iteration + 1 + k) for k in range(max(batch, 1))]
        factors = np.array([(s.positive, s.negative, s.keep, s.weight) for s in steps[:batch]], np.float64)
        flags = int(self.variant.alternating), int(self.prune), int(self.zero_reach)
        return Plan(steps[0].rule, steps[0].predicts, *flags, factors.reshape(-1, 4))

    def average_strategy(self) -> Strategy:
        """Return the average strategy of all players in float64.

        The weight of a row (infoset) is the sum over iterations of the iteration's weight times own reach.
        """
        return strategy_of(self.game, [side.tables.strategy_sum for side in self._sides])

    def current_strategy(self) -> Strategy:
        """Return the strategy of all players in the next iteration, which the regrets give.

        In it every infoset has weight 1, up to rounding.
        """
        step = self.variant.step(self.iteration + 1)
        for side in self._sides:
            _strategies(step, side)
        return strategy_of(self.game, [side.sigma for side in self._sides])


def strategy_of(game: Game, sums: list[npt.NDArray[Any]]) -> Strategy:
    """Return the strategy in proportion to the sums of each infoset; it is uniform if all are 0.

    sums  list with an array [slots, 1] of each player, such as its strategy sums; a slot is one action of an infoset

    The weight of an infoset is the total of its sums.  Raises `ValueError` if a cell is negative or not finite.
    """
    players = game.tree.players
    tables = {table_name("strategy_sum", player, players): cells.reshape(1, -1) for player, cells in enumerate(sums)}
    return average_strategy(game, TableSet(tables))
