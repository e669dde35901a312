"""Chooses a few bet sizes for each decision of an endgame, those that lose least.

A spot is an endgame given by both players' ranges, the board, the pot and the stacks. A menu is the bet sizes that a
game allows: the fine menu has all that can be chosen, the default menu a few.

The decisions are chosen one after the other: first bets before raises, early streets before later ones. For each
decision, trees that differ only in its sizes are solved side by side. Decisions that are still to be chosen have the
sizes of the default menu. The first size is the one with the best value for the player to act. Each further size is the
best addition. Both are among every second size of the fine menu. Then sizes move to their neighbours while that gains.

* A first bet is judged in the whole betting of its street, so both players adapt to it.
* A raise of the first street is judged by the rest of the hand, with both players' ranges when it is made.
* On later streets both ranges are those at the start of the street, and few of the boards are used. After two streets
  the ranges are averages over the boards.
* Rare decisions keep sizes of the default menu.

The first version of GTO Wizard's "Dynamic Sizing" removed one size after another and solved again. That misjudges sizes
which can replace each other: removing any one of them costs nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.game import Game
from mccfr.games.line_sizes import LineTree, line_tree
from mccfr.games.subgame import nodes_below
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.merged_rows import in_dtype
from mccfr.solvers.public.public_tree import public_tree, with_betting
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import Variant
from mccfr.tables.table_layout import table_name
from mccfr.trees.compiled import DECISION, NO_PARENT, CompiledTree, TreeArrays, numbered_rows

Floats = npt.NDArray[np.float64]

ITERATIONS = 40
"""Iterations of each comparison of sizes.

On six rivers, pairs of sizes chosen by 30 and 60 iterations lost 0.025 and 0.019 % of the pot; by 20 they lost more.
"""
RARE = 0.005
"""Least product of both players' reaches at a decision whose sizes are chosen.

At rarer decisions default sizes stay.  A reach is the weight of the player's range there as a share of its weight at
the root of the spot.
"""
MOST_BOARDS = None, None, 6, 4
"""Boards used below each board of the street before; the index is the number of streets; None: all."""
_EQUAL = 1e25  # regret of each compared tree: too large for increments to change, so all are played equally often
_NO_REACH = 1e-6  # share of a hand's weight that is kept, because kernels need the same hands everywhere


@dataclass(frozen=True)
class SizeMenus:
    """Bet sizes among which the choice is made, and how many are chosen.

    fine     betting rules with all sizes that can be chosen
    default  betting rules with the sizes of decisions for which none are chosen yet
    counts   by street, (for first bets, for raises): the number of sizes to choose; None: the default sizes stay
    """

    fine: BettingRules
    default: BettingRules
    counts: Sequence[tuple[int | None, int | None]]

    def count(self, state: BettingState) -> int | None:
        """Return the number of bet sizes to choose at a decision; None: default sizes stay.

        Default sizes are those that the betting rules `default` of these menus allow there.
        """
        return self.counts[state.street][min(state.bets, 1)]


class SizeChoice:
    """Chooses the bet sizes of a spot, one decision after the other, by solving trees with other sizes.

    A spot is an endgame given by both players' ranges, the board, the pot and the stacks.
    """

    def __init__(self, spot: Game, menus: SizeMenus, variant: Variant, workers: int = 1) -> None:
        """Prepare the choice for a spot, with the CFR variant that solves its trees.

        spot     Game of the endgame, without fixed strategies (locks). Its tree is ignored, and hands that differ only
                 by a renaming of suits must have buckets of their own
        menus    SizeMenus: the sizes that can be chosen, and how many
        workers  number of threads; the choice does not depend on it
        """
        self.spot, self.menus, self._variant, self._workers = spot, menus, variant, workers
        self._chosen = dict[str, Sequence[float]]()
        self._public = public_tree(replace(spot, tree=self._tree().tree), some=True)

    def choose(self, progress: Callable[[int], object]) -> dict[str, Sequence[float]]:
        """Return {betting line: chosen amounts}, in chips that a player puts in over the hand.

        The key is the text of the actions that lead to the decision, such as "cr300c".

        progress  called before each decision with the number of decisions that are done
        """
        while todo := self._next_decisions(here := self._tree()):
            cfr = self._solved(here.tree, self.spot.listed_cards().reach)
            for line in todo:
                progress(len(self._chosen))
                self._chosen[line] = self._best(here, line, cfr)
        return self._chosen

    def _tree(self, line: str | None = None) -> LineTree:
        """Return the betting tree with the sizes chosen so far, and else those of the default menu.

        line  text of the actions that lead to one decision, which has all sizes of the fine menu; None: no decision has
        """

        def sizes(at: str, state: BettingState) -> Sequence[float]:
            if at == line:
                return self.menus.fine.raise_targets(state)
            return self._chosen[at] if at in self._chosen else self.menus.default.raise_targets(state)

        return line_tree(self.menus.fine, sizes)

    def _next_decisions(self, here: LineTree) -> list[str]:
        """Return the betting lines (texts of actions) that lead to the decisions to choose next.

        These decisions do not depend on each other.  The list is empty if all are chosen.

        here  tree with the sizes chosen so far
        """
        order = {
            line: (here.state[line].street, here.state[line].bets, here.state[line].acted)
            for line in here.sizes
            if line not in self._chosen and self.menus.count(here.state[line]) is not None
        }
        first = min(order.values(), default=None)
        return [line for line in order if order[line] == first]

    def _best(self, here: LineTree, line: str, cfr: VectorCfr) -> Sequence[float]:
        """Return the chosen amounts to raise to at the decision after `line`, in chips over the hand.

        here  tree with the sizes chosen so far
        line  text of the actions that lead to the decision
        cfr   solver that has solved this tree

        If no more sizes are possible than are to be chosen, all are returned.  At a rare decision (`RARE`) the first of
        the default sizes are returned, as many as are to be chosen.
        """
        state, dealt = here.state[line], self.spot.listed_cards().reach
        count, amounts = self.menus.count(state) or 0, self.menus.fine.raise_targets(state)
        if len(amounts) <= count:
            return amounts
        if (self._reach(cfr, here.node(line)).sum(axis=1) / dealt.sum(axis=1)).prod() < RARE:
            return here.sizes[line][:count]
        fine = self._tree(line)
        node, top = fine.node(line), here.node(line)
        if state.street or not state.bets:
            top = street_root(here.tree, top)
        ranges = np.where(dealt > 0, np.maximum(self._reach(cfr, top), _NO_REACH * dealt), 0.0)
        first = fine.tree.children(node)[-len(amounts)]
        root = street_root(fine.tree, node) if state.street or not state.bets else node

        def values(sets: Sequence[frozenset[int]]) -> Floats:
            gone = [[first + place for place in range(len(amounts)) if place not in each] for each in sets]
            return self._values(side_by_side(fine.tree, root, gone, state.player), len(sets), state.player, ranges)

        return [amounts[place] for place in sorted(best_subset(len(amounts), count, values))]

    def _solved(self, tree: CompiledTree, reach: Floats, equal: tuple[int, int] | None = None) -> VectorCfr:
        """Solve a betting tree by `ITERATIONS` iterations of CFR and return its solver.

        tree   betting tree of the spot, or trees side by side
        reach  [2, H] ranges at the root
        equal  (player at the root, n): its first n actions there are played equally often; None: nothing is fixed
        """
        game = replace(self.spot, tree=tree, cards=replace(self.spot.listed_cards(), reach=reach))
        cfr = VectorCfr(game, self._variant, "float32", self._workers, public=with_betting(self._public, game))
        self._public = cfr.public  # with results of run-outs
        if equal is not None:
            cfr.tables[table_name("regret", equal[0])][: equal[1]] = _EQUAL
        cfr.iterate(ITERATIONS)
        return cfr

    def _values(self, tree: CompiledTree, actions: int, player: int, ranges: Floats) -> Floats:
        """Solve a tree and return [actions] values of the root actions, in chips times weight.

        While the tree is solved, all root actions are played equally often.  A value is the sum of the counterfactual
        values of the player's hands, each times the hand's weight in `ranges`.

        tree     betting tree; its root is a decision of `player`
        actions  number of root actions
        player   player who acts at the root
        ranges   [2, H] both players' ranges at the root
        """
        cfr = self._solved(tree, ranges, (player, actions))
        sums = [
            cfr.tables.get(table_name("strategy_sum", block), np.zeros((1, 1), np.float32))
            for block in range(2 * tree.streets)
        ]
        walk = Walk(in_dtype(cfr.public, np.float32), sums, self._workers, sums=True)
        found: Floats = walk.hand_values(cfr.game, player, [0]).actions[0] @ ranges[player]
        return found

    def _reach(self, cfr: VectorCfr, node: int) -> Floats:
        """Return [2, H] both players' ranges at a decision by the average strategies of a solver.

        cfr   solver of a betting tree
        node  decision of this tree

        Each action on the way multiplies the weights of the acting player's hands by its probability, averaged over the
        boards of its street.
        """
        tree, cards = cfr.game.tree, cfr.game.listed_cards()
        arrays, reach, path = tree.arrays, cards.reach.copy(), tree.path(node)
        for above, child in pairwise(path):
            (street, player), slot = divmod(int(arrays.block[above]), 2), int(arrays.slot[above])
            sums = cfr.tables[table_name("strategy_sum", int(arrays.block[above]))]
            rows = sums[slot : slot + int(arrays.count[above])].astype(np.float64)
            total = rows.sum(axis=0)
            taken = rows[child - int(arrays.first[above])]
            share = np.divide(taken, total, out=np.full(len(total), 1 / len(rows)), where=total > 0)
            bucket = np.asarray(cards.bucket[street])[player]
            played = np.where(bucket >= 0, share[np.maximum(bucket, 0)], 0.0).sum(axis=0)
            reach[player] *= played / np.maximum((bucket >= 0).sum(axis=0), 1)
        return reach


def best_subset(total: int, count: int, values: Callable[[Sequence[frozenset[int]]], Floats]) -> frozenset[int]:
    """Return the indices of `count` of `total` ascending sizes that have a high value together.

    First sizes are added one by one, each the best addition.  Candidates are every second size and the last; if these
    are used up, all others.  Then one size at a time moves to a neighbour while that gains.

    values  function that takes a list of index sets and returns an array with the value of each set; each set is passed
            to it once
    """
    known = dict[frozenset[int], float]()

    def best(sets: Sequence[frozenset[int]]) -> frozenset[int]:
        new = [each for each in dict.fromkeys(sets) if each not in known]
        known.update(zip(new, values(new).tolist() if new else (), strict=True))
        return max(sets, key=known.__getitem__)

    kept, coarse = frozenset[int](), {*range(0, total, 2), total - 1}
    for _ in range(count):
        kept = best([kept | {item} for item in sorted(coarse - kept or {*range(total)} - kept)])
    while True:
        moves = [(old, old + step) for old in sorted(kept) for step in (-1, 1)]
        new = best([kept, *(kept - {old} | {to} for old, to in moves if 0 <= to < total and to not in kept)])
        if new == kept:
            return kept
        kept = new


def street_root(tree: CompiledTree, node: int) -> int:
    """Return the first decision on the street of decision `node`, on the path from the root to it."""
    streets = tree.arrays.block // 2
    return next(above for above in tree.path(node) if streets[above] == streets[node])


def side_by_side(tree: CompiledTree, top: int, gone: Sequence[Sequence[int]], player: int) -> CompiledTree:
    """Return one tree that joins copies of `tree`: at its root `player` chooses the copy to play.

    top   decision of `tree`; above it, a copy has only the actions that lead to it
    gone  for each copy, the nodes that are left out with everything below them
    """
    above, inside, parts = tree.path(top)[:-1], nodes_below(tree, top), []
    below = {node: nodes_below(tree, node) for node in set(chain.from_iterable(gone))}
    for nodes in gone:
        out = np.concatenate([np.zeros(0, np.int64), *[below[node] for node in nodes]])
        parts.append(np.concatenate([np.array(above, np.int64), np.setdiff1d(inside, out)]))
    source = np.concatenate([np.zeros(1 + len(parts), np.int64), *[part[1:] for part in parts]])
    parent, begin = np.zeros(len(source), np.int32), 1 + len(parts)
    for copy, part in enumerate(parts):
        number = np.full(len(tree.parent), -1)
        number[part] = begin - 1 + np.arange(len(part))
        number[part[0]] = 1 + copy
        parent[begin : begin + len(part) - 1] = number[tree.parent[part[1:]]]
        begin += len(part) - 1
    parent[0] = NO_PARENT
    arrays = TreeArrays._make(column[source] for column in tree.arrays)
    arrays.player[0] = arrays.block[0] = player
    count = np.bincount(parent[1:], minlength=len(source)).astype(np.int32)
    first = np.full(len(source), -1, np.int32)
    first[parent[:0:-1]] = np.arange(len(source) - 1, 0, -1)
    block = np.where(arrays.kind == DECISION, arrays.block, -1).astype(np.int8)
    rows = numbered_rows(block, count, 2 * tree.streets)
    return CompiledTree(
        arrays._replace(block=block, count=count, first=first, slot=rows.slot, row=rows.row),
        parent,
        ["", *(tree.label[node] for node in source[1:].tolist())],
        tree.streets,
        rows.row_slots,
        rows.row_count,
    )
