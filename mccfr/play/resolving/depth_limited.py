"""Solving one street of a spot: behind it the opponent chooses how he goes on, among a few fixed ways.

Brown, Sandholm & Amos 2018, "Depth-limited solving for imperfect-information games".  What a state behind the last
street solved is worth depends on what both players do there, which in turn depends on how they came: no single value
says it.  So whoever is solved for goes on by the strategy in force, and the opponent, with each hand, chooses one of
several *continuations* as that street ends, before the next card lies: the strategy in force, or the same biased
towards folding, calling or raising (the probability of these actions times ten: the paper's "bias approach").  A
strategy that is good against only one of them would be found out by another.

A spot so limited is a game of its own (`DepthLimitedSpot`): at each way into the next street the tree gets a decision
of the opponent's, whose actions lead to copies of what follows.  Strategies of the copies are fixed; only the first
street is solved, and best responses are taken there alone.

This is an approximation: an opponent who goes on in some way that is no mean of the continuations may win more.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.play.resolving.spot import Floats, RootValues, Spot, Tables
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import FOLLOW
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION, NO_PARENT, CompiledTree, TreeArrays, numbered_rows
from mccfr.trees.streets import AT_DECISION

CONTINUATIONS = ("", "f", "c", "r")
"""What the opponent's choices are biased towards: nothing, folds, calls and checks, or bets and raises."""
BIAS = 10.0
"""How many times as likely an action becomes that a continuation is biased towards; as in the paper."""


class DepthLimitedSpot(Spot):
    """A spot of which one street is solved; see the module.  K continuations.

    whole   the spot itself, to its end
    fixed   by block of later streets [slots, buckets]: strategies that do not change, the opponent's by copy
    copies  [n] to which continuation nodes of later streets belong
    """

    def __init__(self, spot: Spot, strategy: Tables, player: int, continuations: Sequence[str] = CONTINUATIONS) -> None:
        """Limit a spot for a player.

        strategy       in force, as `Spot.tables`: how both go on
        player         whose strategy is solved for; the other one chooses
        continuations  what the choices are biased towards, "" for nothing

        Raises `ValueError` for a spot of the last street, which has nothing behind it.
        """
        if spot.game.tree.streets == 1:
            raise ValueError("the last street is solved to its end: no street is left to be limited")
        self.node, self.street, self.origin = spot.node, spot.street, spot.origin
        self.known, self.merged, self.whole = spot.known, spot.merged, spot
        made = _with_choices(spot.game.tree, 1 - player, continuations)
        self._made, self._first = made, strategy
        self.nodes, self.copies = spot.nodes[made.origin], made.copy
        self.game = replace(spot.game, tree=made.tree)
        self.fixed = {
            block: self._continued(strategy[block], block, continuations if block % 2 != player else None)
            for block in range(2, 2 * made.tree.streets)
        }

    def _continued(
        self, rows: npt.NDArray[np.floating], block: int, continuations: Sequence[str] | None
    ) -> npt.NDArray[np.floating]:
        """A block's table, every copy of a decision as it goes on; None: all as in force."""
        inside, before = self.game.tree, self.whole.game.tree
        found = np.zeros((int(inside.row_slots[block]), rows.shape[1]))
        for node in np.flatnonzero(inside.arrays.block == block).tolist():
            slot, count = int(inside.arrays.slot[node]), int(inside.arrays.count[node])
            first = int(before.arrays.slot[self._made.origin[node]])
            here = rows[first : first + count]
            if continuations is not None:
                labels = [inside.label[child] for child in inside.children(node)]
                here = biased(here, labels, continuations[self.copies[node]])
            found[slot : slot + count] = here
        return found

    # --- strategies ---

    def tables(self, strategy: Strategy) -> Tables:
        """As `Spot.tables`: of the first street what a strategy does, behind it what is fixed; choices are even."""
        inside, known = self.game.tree, self.whole.tables(strategy)
        found = [np.zeros((int(inside.row_slots[block]), known[block].shape[1])) for block in range(2)]
        for node, slots, first in self._first_street():
            block, count = int(inside.arrays.block[node]), int(inside.arrays.count[node])
            found[block][slots] = 1 / count if first is None else known[block][first : first + count]
        return [*found, *self.fixed.values()]

    def to_the_end(self, found: Tables) -> Tables:
        """Tables of the spot itself: the first street of `found`, and behind it the strategy in force."""
        tables = [table.copy() for table in self._first]
        for node, slots, first in self._first_street():
            if first is not None:
                block, count = int(self.game.tree.arrays.block[node]), int(self.game.tree.arrays.count[node])
                tables[block][first : first + count] = found[block][slots]
        return tables

    def _first_street(self) -> list[tuple[int, slice, int | None]]:
        """(decision, its cells, first cell of the same decision in the spot itself or None) of the first street."""
        inside, before, found = self.game.tree.arrays, self.whole.game.tree.arrays, []
        for node in np.flatnonzero((inside.kind == DECISION) & (inside.block < 2)).tolist():
            slot, origin = int(inside.slot[node]), int(self._made.origin[node])
            first = None if self._made.chooses[node] else int(before.slot[origin])
            found.append((node, slice(slot, slot + int(inside.count[node])), first))
        return found

    def after_choice(self, node: int) -> int:
        """Where the strategy in force goes on from a decision of `game`: behind the opponent's choice, if it is one."""
        return int(self.game.tree.arrays.first[node]) if self._made.chooses[node] else node

    # --- values ---

    def best_response(self, player: int, other: Floats, tables: Tables) -> RootValues:
        """As `Spot.best_response`, of one who responds on the first street, choices included, and goes on as fixed.

        What a hand wins by each way out of the first street depends on the other player's range alone, so one walk of
        both strategies tells all of them.
        """
        reach = self.weights.copy()
        reach[1 - player] = other
        walk = Walk(self.public._replace(reach=reach), [table.astype(np.float64, copy=False) for table in tables])
        walk.values(player)
        first, stop = self.public.ranges.first[player, :2]
        trees, hands = self.public.trees, self.public.ranges.hand[first:stop]
        members, begins = int(trees.first[1]), int(walk.root.member_first[0])
        value = walk.root.value[FOLLOW, begins : begins + members, : len(hands)].copy()
        for member in range(members - 1, -1, -1):  # children come after their parents
            if trees.kind[member] == AT_DECISION:
                child = int(trees.child[member])
                below = value[child : child + int(trees.actions[member])]
                value[member] = below.max(axis=0) if trees.player[member] == player else below.sum(axis=0)
        found = np.zeros((1 + int(trees.actions[0]), reach.shape[1]))
        found[0, hands] = value[0]
        found[1:, hands] = value[int(trees.child[0]) : int(trees.child[0]) + int(trees.actions[0])]
        return RootValues(found[0], found[1:])


def biased(rows: npt.NDArray[np.floating], labels: Sequence[str], towards: str) -> npt.NDArray[np.floating]:
    """[A, n] strategies [A, n] of a decision, with actions `BIAS` times as likely whose labels begin with `towards`."""
    factor = [BIAS if towards and label[0] == towards else 1.0 for label in labels]
    raised = rows * np.array(factor)[:, None]
    return raised / np.where(total := raised.sum(axis=0), total, 1)


class _Continuations(NamedTuple):
    """A tree with choices of one player before its second street.  n nodes.

    tree
    origin   [n]  the node that each stands for; of a choice that which follows it
    copy     [n]  which continuation it belongs to, on later streets
    chooses  [n]  whether it is a choice
    """

    tree: CompiledTree
    origin: npt.NDArray[np.int64]
    copy: npt.NDArray[np.int64]
    chooses: npt.NDArray[np.bool_]


def _with_choices(tree: CompiledTree, chooser: int, names: Sequence[str]) -> _Continuations:
    """A betting tree where each way into the second street is a choice between copies of what follows."""
    kind, first, count = (getattr(tree.arrays, name).tolist() for name in ("kind", "first", "count"))
    later = ((tree.arrays.kind == DECISION) & (tree.arrays.block >= 2)).tolist()
    origin, parent, copy, chooses, label = [0], [NO_PARENT], [0], [False], [""]
    begins = [-1]
    todo = [0]
    while todo:
        node = todo.pop()
        here = origin[node]
        if kind[here] != DECISION:
            continue
        begins[node] = len(origin)
        if chooses[node]:
            below = [(here, number, False, f"choice {name}".strip()) for number, name in enumerate(names)]
        else:
            enters = not later[here]
            below = [
                (child, copy[node], enters and later[child], tree.label[child])
                for child in range(first[here], first[here] + count[here])
            ]
        for child, number, choice, text in below:
            todo.append(len(origin))
            origin.append(child)
            parent.append(node)
            copy.append(number)
            chooses.append(choice)
            label.append(text)
            begins.append(-1)
    found = _Arrays(np.array(origin), np.array(parent, np.int32), np.array(chooses), np.array(begins, np.int32))
    return _Continuations(
        _compiled(tree, found, chooser, len(names), label), found.origin, np.array(copy), found.chooses
    )


class _Arrays(NamedTuple):
    """The shape of a tree with choices, as `_Continuations` has it; `first` [n] children or -1."""

    origin: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int32]
    chooses: npt.NDArray[np.bool_]
    first: npt.NDArray[np.int32]


def _compiled(tree: CompiledTree, made: _Arrays, chooser: int, choices: int, label: list[str]) -> CompiledTree:
    """The tree of a shape, rows numbered anew."""
    arrays, chooses = tree.arrays, made.chooses
    count = np.where(chooses, choices, arrays.count[made.origin]).astype(np.int32)
    block = np.where(chooses, chooser, arrays.block[made.origin]).astype(np.int8)
    rows = numbered_rows(block, count, 2 * tree.streets)
    return CompiledTree(
        TreeArrays._make(column[made.origin] for column in arrays)._replace(
            player=np.where(chooses, chooser, arrays.player[made.origin]).astype(np.int8),
            block=block,
            count=count,
            first=made.first,
            slot=rows.slot,
            row=rows.row,
            touched=np.where(chooses, np.int8(1), arrays.touched[made.origin]),
        ),
        made.parent,
        label,
        tree.streets,
        rows.row_slots,
        rows.row_count,
    )
