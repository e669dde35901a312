"""Restricted Nash responses, between a best response to a fixed strategy and an equilibrium.

Source: Johanson, Zinkevich & Bowling, "Computing Robust Counter-Strategies" (NIPS 2007), section 4.  The opponent plays
the fixed strategy with probability p, drawn once for each deal and unknown to the responder, and learns otherwise.  In
an equilibrium of that game the responder gains nearly as much from the fixed strategy as a best response does.  It is
far less exploitable.

The responder trains against the mixture of both as one behaviour strategy (Kuhn 1953), which is exact with perfect
recall.  The learning part of the opponent trains against the responder as usual.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.games.perfect_recall import parent_buckets
from mccfr.solvers.locked_tables import LockedCells
from mccfr.solvers.minimisers import Step
from mccfr.solvers.minimisers import Tables as StepTables
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.public_walk import Scope, step_rows, train
from mccfr.solvers.public.street_arrays import FOLLOW, Views, new_scratch, street_tables
from mccfr.solvers.public.vector_cfr import absorb, freeze, table_specs
from mccfr.solvers.public.walk_threads import alone
from mccfr.solvers.variants import variant
from mccfr.tables.strategy import Strategy, average_strategy, row_starts
from mccfr.tables.table_layout import TableSet, table_name
from mccfr.trees.betting_lines import previous_own_actions

_VARIANT, _DTYPE = "dcfr", "float64"
Tables = Sequence[npt.NDArray[np.float64]]


class Mixture:
    """Computes the behaviour strategy of a player who draws one of two strategies before the deal.

    The player keeps the drawn strategy to the end of the hand.  The opponent does not know which it is.
    """

    def __init__(self, game: Game, player: int) -> None:
        """Prepare mixtures for a player; raise `ValueError` if it has imperfect recall."""
        self._game, self._player = game, player
        self._parent = [parent_buckets(game, block) for block in range(2 * game.tree.streets)]
        if any(self._parent[block] is None for block in range(2 + player, len(self._parent), 2)):
            raise ValueError(f"{game.name} has imperfect recall: a mixture of its strategies is not a strategy of it")
        self._taken = previous_own_actions(game.tree)

    def write(self, share: float, one: Tables, other: Tables, out: Tables) -> None:
        """Write to `out` the mixture that plays `one` with probability `share` and else `other`.

        share            probability of `one`, from 0 to 1, drawn once for the whole hand
        one, other, out  tables [slots, buckets] of action probabilities by block; the player's blocks of `out` are
                         changed in place

        A block is a street and player, a slot is one action of a decision.  Rows that neither strategy reaches get
        `share` · one + (1 - `share`) · other.
        """
        tree, reach = self._game.tree, dict[int, npt.NDArray[np.float64]]()
        arrays = tree.arrays
        for node in tree.decisions[arrays.player[tree.decisions] == self._player].tolist():  # parents before children
            block, slot, count = (int(of[node]) for of in (arrays.block, arrays.slot, arrays.count))
            here = np.repeat([[share], [1 - share]], self._game.buckets[block], axis=1)
            if (child := self._taken[node]) >= 0:
                over = int(tree.parent[child])
                came = int(arrays.block[over])
                cell = int(arrays.slot[over]) + child - int(arrays.first[over])
                here = reach[over] * np.stack([one[came][cell], other[came][cell]])
                for street in range(came + 2, block + 1, 2):
                    here = here[:, self._parent[street]]
            reach[node], total = here, here.sum(axis=0)
            part = np.where(total > 0, here[0] / np.where(total > 0, total, 1), share)
            rows = slice(slot, slot + count)
            out[block][rows] = part * one[block][rows] + (1 - part) * other[block][rows]


class RestrictedNash:
    """CFR of a responder and of an opponent who plays a fixed strategy with a given probability.

    For each player in turn, both current strategies are written to tables.  Then one walk of the public tree gives the
    player's regrets against the other's strategy.

    mixture    Mixture that combines the opponent's fixed strategy with its learning one
    tables     {name: [slot, bucket] float64} regrets and strategy sums of the responder and of the opponent's learning
               part
    iteration  iterations done
    """

    def __init__(self, game: Game, responder: int, fixed: Tables, share: float) -> None:
        """Prepare a game with listed cards.

        responder  player who responds; the other player is the opponent
        fixed      [slots, buckets] for each block (street and player): the opponent's fixed strategy, action
                   probabilities; the responder's part is not read
        share      probability of the fixed strategy, from 0 to 1

        Raises `ValueError` if the opponent has imperfect recall, and for cards that cannot be listed.
        """
        self.game, self.iteration, self._variant = game, 0, variant(_VARIANT)
        self.mixture, self._responder, self._fixed, self._share = Mixture(game, 1 - responder), responder, fixed, share
        self._specs = table_specs(game, self._variant, _DTYPE)
        self.tables = {spec.name: np.zeros(spec.shape) for spec in self._specs}
        self._starts = [row_starts(game, block) for block in range(2 * game.tree.streets)]
        self._frozen, self._opponents, self._regrets, self._sums = (
            [np.zeros_like(table) for table in self._by_block("regret")] for _ in range(4)
        )
        self._locked = LockedCells(game)
        self._public = public_tree(replace(game, cards=game.listed_cards()))
        streets = range(1), range(1, self._public.streets)
        self._root, self._below = (new_scratch(self._public, of, _DTYPE) for of in streets)

    def _by_block(self, kind: str) -> list[npt.NDArray[np.float64]]:
        """Return a list of the tables [slot, bucket] of a kind by block, 2·street + player.

        kind  "regret" or "strategy_sum"

        A block without decisions has a table of one cell, 0.
        """
        return [self.tables.get(table_name(kind, block), np.zeros((1, 1))) for block in range(len(self._starts))]

    def average_strategy(self) -> Strategy:
        """Return the average strategy of the responder and of the opponent's learning part.

        The opponent's fixed strategy is not mixed in: `mixture.write` does that.  Rows of weight 0 are uniform.
        """
        return average_strategy(self.game, TableSet(self.tables, self._specs))

    def iterate(self, count: int = 1) -> None:
        """Run `count` iterations and change the tables in place."""
        for _ in range(count):
            step = self._variant.step(self.iteration + 1)
            for player in range(2):
                self._freeze(step)
                self._meet(player)
                self._train(step, player)
                self._absorb(step, player)
            self.iteration += 1

    def _meet(self, player: int) -> None:
        """Write to the tables `_opponents` the strategy against which `player` trains.

        The responder trains against the mixture of the opponent's fixed and learning strategies.  The opponent trains
        against the responder's current strategy.

        `_freeze` must have written the current strategies before.
        """
        if player == self._responder:
            self.mixture.write(self._share, self._fixed, self._frozen, self._opponents)
            return
        for block in range(1 - player, len(self._opponents), 2):
            self._opponents[block][:] = self._frozen[block]

    def _train(self, step: Step, player: int) -> None:
        """Walk the tree; add the changes of a player's tables to `_regrets` and `_sums`, which are 0 before.

        step  Step of the iteration
        """
        regrets, frozen, sums = (street_tables(of, player) for of in (self._regrets, self._frozen, self._sums))
        opponents, public = street_tables(self._opponents, 1 - player), self._public
        views = (Views(regrets, frozen, sums), Views(opponents, opponents, opponents))
        scope = Scope(player, player, *public.boards.root.tolist())
        self._root.by_hand.value[FOLLOW].fill(0)
        steps = step_rows([step], self.iteration + 1)
        train(public, views[::-1] if player else views, steps, scope, self._root, self._below, alone(public))

    def _block_tables(self, block: int) -> StepTables:
        regret, sums = (self._by_block(kind)[block] for kind in ("regret", "strategy_sum"))
        return StepTables(regret, regret, sums)

    def _freeze(self, step: Step) -> None:
        """Write both current strategies to `_frozen`; locked rows get their fixed probabilities.

        step  Step of the iteration, which gives the rule from regrets to strategies
        """
        for block, starts in enumerate(self._starts):
            freeze(step, self._block_tables(block), starts, self._frozen[block])
        self._locked.hold(self._frozen)

    def _absorb(self, step: Step, player: int) -> None:
        """Add the changes from `_train` to a player's tables, with discounts, and set them to 0.

        step  Step of the iteration, which gives the discounts and the strategy's weight
        """
        for block in range(player, len(self._starts), 2):
            increments = (self._regrets[block], self._sums[block])
            absorb(step, self._block_tables(block), self._starts[block], increments, np.ones(increments[0].shape[1]))
            for table in increments:
                table.fill(0)
