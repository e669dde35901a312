"""Full-width CFR over a public tree for all hands at once, in every variant, with threads.

An iteration is one traversal for each player (`public_walk`).  With alternating updates player 1 plays against the
updated player 0; with simultaneous ones both play against the strategies at the start of the iteration.  Tables are
[slot, bucket] for each street and player; with the iteration number they are the whole state.

Rows are updated in place if updates alternate and each hand on each board has a bucket of its own, numbered board by
board.  Hands that are alike but for suits may share one (`merged_rows`).  Otherwise a traversal reads current
strategies from a table and collects its changes of regrets and strategy sums in two more, which are added afterwards.
Each of the three takes the memory of the regrets.

The *nodes touched* by a traversal are public nodes: the decisions and terminals of each street's betting, for each
board.  A chance node counts wherever cards are dealt to continue (the end of a street, a run-out).  Boards that stand
for others by a renaming of suits are counted once (`mccfr.cards.suit_symmetry`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_allocating_njit, nogil_njit
from abstraction.kernels.parallel import kernel_array
from mccfr.cards.card_lists import ListedCards
from mccfr.games.game import Game
from mccfr.solvers.minimisers import Rows, Step, Tables, current_strategy, update_average, update_regrets
from mccfr.solvers.public.merged_rows import in_dtype, tree_by_rows
from mccfr.solvers.public.narrow_rows import Int16Rows
from mccfr.solvers.public.public_tree import PublicTree, public_tree, with_balances
from mccfr.solvers.public.public_walk import Scope, step_rows, train
from mccfr.solvers.public.street_arrays import StreetScratch, Views, narrow_tables, new_scratch, street_tables
from mccfr.solvers.public.walk_threads import WalkThread, shares_by_cost, walk_together
from mccfr.solvers.variants import Variant
from mccfr.tables.int16_cells import number_dtype
from mccfr.tables.strategy import Strategy, average_strategy, row_starts
from mccfr.tables.table_layout import ROW_FIRST, SLOT_FIRST, TableSet, table_name
from mccfr.trees.street_trees import AT_SHOWDOWN
from storage.schema import ArraySpec

NARROW = "int16"
DTYPES = ("float32", "float64", NARROW)
Array = npt.NDArray[np.floating]


def table_specs(game: Game, variant: Variant, dtype: str = "float32") -> tuple[ArraySpec, ...]:
    """Return the specs (name, shape [slot, bucket], dtype) of the tables; nothing is allocated.

    A slot is one action of a decision.  Tables of int16 have further tables of scales, [decision, bucket] uint8
    (`narrow_rows`).  Raises `ValueError` for a dtype other than float32, float64 and int16.  Also raises it for int16
    with predictions (an optimistic variant) or simultaneous updates.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype = {dtype!r}: one of {', '.join(DTYPES)} is needed")
    if dtype == NARROW and (variant.optimistic or not variant.alternating):
        raise ValueError(f"dtype = {NARROW!r} is for alternating updates without predictions: use 'float32'")
    specs = []
    for block in np.flatnonzero(game.tree.row_count).tolist():
        slots, rows, buckets = (int(of[block]) for of in (game.tree.row_slots, game.tree.row_count, game.buckets))
        for kind in variant.table_kinds:
            specs.append(ArraySpec(table_name(kind, block), (slots, buckets), dtype, SLOT_FIRST))
            if dtype == NARROW:
                specs.append(ArraySpec(table_name(f"{kind}_scale", block), (rows, buckets), "uint8", ROW_FIRST))
    return tuple(specs)


def _check_narrow(game: Game, dtype: str, *, in_place: bool) -> None:
    if dtype == NARROW and not in_place:
        raise ValueError(
            f"dtype = {NARROW!r} is for games in which every hand on every board has a row of its own, or shares it "
            f"with hands alike, and {game.name} has buckets: take 'float32'"
        )


def _threads(public: PublicTree, workers: int) -> int:
    """Return the number of threads: `workers`, but at most one for each task of `public.tasks`.

    It is at least 1.  A task is a part of the walk below the first street.
    """
    return max(1, min(workers, len(public.tasks)))


def nodes_of_traversal(public: PublicTree, cards: ListedCards) -> int:
    """Return the number of public nodes that one player's traversal touches.

    cards  ListedCards of the game of `public`

    For each walked board these are the decisions and terminals of its street, and the chance nodes where further cards
    are dealt.
    """
    trees = public.trees
    run_out = (trees.kind == AT_SHOWDOWN) & (np.repeat(trees.street, np.diff(trees.first)) + 1 < public.streets)
    of_tree = np.add.reduceat(1 + run_out, trees.first[:-1])
    street_of = np.repeat(np.arange(public.streets), [len(boards) for boards in cards.board_cards])
    walked = np.bincount(street_of, public.copies.times > 0, public.streets)
    return int((of_tree * walked[trees.street]).sum())


@nogil_njit
def freeze(step, tables, starts, strategy):
    """Write the current strategy of all rows of a block (street and player) to strategy [slot, bucket].

    A row is one decision, a slot one action of it.

    step    Step: rule of the current strategy
    tables  Tables of the block; `basis` gives the strategy
    starts  [rows+1] int64 first slot of each row and the end of the last
    """
    for row in range(starts.shape[0] - 1):
        rows = Rows(starts[row], starts[row + 1] - starts[row], np.int64(0), strategy.shape[1])
        current_strategy(step, tables, rows, strategy, starts[row])


@nogil_allocating_njit
def absorb(step, tables, starts, increments, ones):
    """Add increments to the regrets and strategy sums of a block (street and player), with discounts.

    step        Step: factors of this iteration
    tables      Tables of the block, changed in place
    starts      [rows+1] int64 first slot of each row (decision) and the end of the last
    increments  (of regrets, of strategy sums), both [slot, bucket]; a slot is one action of a row
    ones        [buckets] cells of 1 in the tables' dtype
    """
    zeros = np.zeros_like(ones)
    for row in range(starts.shape[0] - 1):
        start = starts[row]
        rows = Rows(start, starts[row + 1] - start, np.int64(0), ones.shape[0])
        update_regrets(step, tables, rows, increments[0], start, zeros)
        update_average(step, tables, rows, increments[1], start, ones)


class VectorCfr:
    """Runs full-width CFR on a game with cards: `iterate` trains, `average_strategy` returns the result.

    tables     {name: array [slot, bucket]} of regrets, strategy sums and others of the variant (`table_specs`); changed
               in place
    iteration  iterations done
    public     the public tree; if `in_place`, hands that share a bucket share a column; evaluations reuse it
    in_place   whether rows are updated when they are visited: if updates alternate, and each hand on each board has its
               own bucket or shares it with hands alike up to suits
    """

    def __init__(
        self,
        game: Game,
        variant: Variant,
        dtype: str = "float32",
        workers: int = 1,
        tables: Mapping[str, Array] | None = None,
        iteration: int = 0,
        public: PublicTree | None = None,
    ) -> None:
        """Prepare a game; the result does not depend on the number of threads.

        dtype    of the tables: "float32", "float64" or "int16"
        workers  threads that share the work below the first street
        tables   tables of a run that continues after `iteration`; None: allocate new ones
        public   the game's public tree if it exists already; its ranges are not changed

        Raises `ValueError` for chance nodes in the tree, cards that cannot be listed, `workers` below 1, and an unknown
        dtype.  Also raises it for tables that are missing or do not fit, and for int16 with predictions, or if rows
        cannot be updated in place.
        """
        if workers < 1:
            raise ValueError(f"workers = {workers}: at least one thread is needed")
        self.game, self.variant, self.workers, self.iteration = game, variant, workers, iteration
        by_rows = tree_by_rows(game, public) if variant.alternating else None
        self.public = public = with_balances(by_rows or public or public_tree(game), game)
        specs = self._specs = table_specs(game, variant, dtype)
        self.in_place = by_rows is not None
        _check_narrow(game, dtype, in_place=self.in_place)
        numbers = str(number_dtype(np.dtype(dtype)))
        self._dtype, self._field = dtype, in_dtype(public, numbers)
        if tables is None:
            tables = {spec.name: np.zeros(spec.shape, spec.dtype) for spec in specs}
        if missing := [spec.name for spec in specs if spec.name not in tables]:
            raise ValueError(f"table {missing[0]} is missing: the variant needs {', '.join(variant.table_kinds)}")
        self.tables = {spec.name: kernel_array(tables[spec.name], spec.shape, spec.dtype, spec.name) for spec in specs}
        self._nodes = nodes_of_traversal(public, game.listed_cards())
        self._starts = [row_starts(game, block) for block in range(2 * public.streets)]
        self._root = new_scratch(self._field, range(1), numbers)
        below = range(1, public.streets)
        self._scratch = [new_scratch(self._field, below, numbers) for _ in range(_threads(public, workers))]
        self._shares = shares_by_cost(public, rows_apart=self.in_place)
        if not self.in_place:
            self._frozen = [np.zeros_like(table) for table in self._by_block("regret")]
            self._increments = [(np.zeros_like(table), np.zeros_like(table)) for table in self._frozen]
        self._views = tuple(self._player_views(player) for player in range(2))

    # --- tables ---

    def _by_block(self, kind: str) -> list[Array]:
        """Return a list of the tables [slot, bucket] of a kind by block 2·street + player.

        kind  first part of the tables' names, such as "regret"

        Tables of scales of 16-bit cells are [decision, bucket].  A player who never acts on a street has a table of one
        cell, 0, there.
        """
        empty = np.zeros((1, 1), np.uint8 if kind.endswith("_scale") else self._dtype)
        return [self.tables.get(table_name(kind, block), empty) for block in range(2 * self.public.streets)]

    def _basis(self) -> list[Array]:
        """Return a list of the regret tables that give the current strategies, by block 2·street + player."""
        return self._by_block("predicted_regret" if self.variant.optimistic else "regret")

    def _player_views(self, player: int) -> Views:
        """Return a player's tables for a walk, by street, as Views: its own tables if `in_place`.

        Else they are the tables of current strategies and of increments.
        """
        if self.in_place:
            regret, basis, sums = self._by_block("regret"), self._basis(), self._by_block("strategy_sum")
        else:
            regret, basis, sums = [i[0] for i in self._increments], self._frozen, [i[1] for i in self._increments]
        narrow = None
        if self._dtype == NARROW:
            narrow, nothing = self._narrow_rows(player), np.zeros((1, 1), np.float32)
            regret = basis = sums = [nothing] * len(regret)
        mine = [street_tables(tables, player) for tables in (regret, basis, sums)]
        return Views(mine[0], mine[1], mine[2], narrow)

    def _narrow_rows(self, player: int) -> Int16Rows:
        kinds = ("regret", "strategy_sum", "regret_scale", "strategy_sum_scale")
        return narrow_tables([self._by_block(kind) for kind in kinds], self._starts, player)

    @property
    def nodes_touched(self) -> int:
        """Return the number of public nodes that both players' traversals have touched so far."""
        return 2 * self._nodes * self.iteration

    def average_strategy(self) -> Strategy:
        """Return both players' average strategy; rows that were never reached are uniform."""
        return average_strategy(self.game, TableSet(self.tables, self._specs))

    def current_strategy(self) -> Strategy:
        """Return both players' strategy of the next iteration, which the regrets give.

        In this Strategy every row (infoset) has weight 1.
        """
        probability, weight = [], []
        for block, starts in enumerate(self._starts):
            tables = self._block_tables(block)
            if self._dtype == NARROW and len(starts) > 1:
                numbers = TableSet(self.tables, self._specs).numbers("regret", block, starts)
                assert numbers is not None
                tables = Tables(*[np.ascontiguousarray(numbers.T)] * 3)
            sigma = np.zeros_like(tables.regret)
            freeze(self.variant.step(self.iteration + 1), tables, starts, sigma)
            slots, buckets = int(starts[-1]), int(self.game.buckets[block])
            probability.append(np.zeros((buckets, 0)) if not slots else sigma.T.astype(np.float64))
            weight.append(np.ones((buckets, len(starts) - 1)))
        return Strategy(tuple(probability), tuple(weight))

    # --- iterations ---

    def iterate(self, count: int = 1) -> None:
        """Run `count` iterations and change the tables in place.

        If rows are updated in place, a count of 0 only compiles the kernels.
        """
        steps = [self.variant.step(self.iteration + 1 + i) for i in range(max(count, 1))]
        if self.in_place:
            self._walk(steps, range(2), count)
            self.iteration += count
            return
        for step in steps[:count]:
            self._collect_increments(step)
            self.iteration += 1

    def traverse(self, player: int, ranges: Sequence[Array]) -> Array:
        """Run one player's part of the next iteration with given ranges.

        player  player whose regrets and strategy sums are updated
        ranges  2 × [H] both players' weights of their hands at the root; hands that the game does not deal are ignored.
                They stay the ranges of later calls

        Returns [H] counterfactual values of the player's hands with the strategies before the update; 0 for hands that
        the player cannot hold.  The caller must increase `iteration` once both players have traversed.  Raises
        `ValueError` if hands share rows, or rows are not updated in place.
        """
        if not self.in_place or self._field.ranges.merged:
            raise ValueError(f"{self.game.name}: ranges can be given only where every hand on every board has its row")
        for own, given in zip(self._field.reach, ranges, strict=True):
            own[:] = given
        self._root.by_hand.value.fill(0)
        self._walk([self.variant.step(self.iteration + 1)], range(player, player + 1))
        return self._root.by_hand.value[0, 0].copy()

    def _collect_increments(self, step: Step) -> None:
        """Run an iteration whose walks collect changes in tables of their own, then add them.

        The changes are those of regrets and strategy sums.  With alternating updates they are added after each player's
        walk, else after both.

        step  Step of the iteration; the caller must increase `iteration` afterwards
        """
        self._freeze(step, range(2))
        for player in range(2):
            self._walk([step], range(player, player + 1))
            if self.variant.alternating:
                self._absorb(step, player)
                self._freeze(step, range(player, player + 1))
        if not self.variant.alternating:
            for player in range(2):
                self._absorb(step, player)

    def _walk(self, steps: Sequence[Step], players: range, count: int = 1) -> None:
        """Run some players' traversals for the first `count` iterations of `steps`, in all threads.

        steps    Step of each iteration: its discounts, weight and regret rule
        players  players who traverse, one after the other in each iteration
        """
        first, stop = self._field.boards.root.tolist()
        rule, predicts = (steps[0].rule, steps[0].predicts) if self.in_place else (None, None)  # else set by `freeze`
        scope = Scope(
            players[0], players[-1], first, stop, in_place=self.in_place or None, rule=rule, predicts=predicts
        )
        rows = step_rows(steps[:count], self.iteration + 1)

        def work(crew: WalkThread, scratch: StreetScratch) -> None:
            train(self._field, self._views, rows, scope, self._root, scratch, crew)

        walk_together(work, self._shares, self._scratch)

    def _block_tables(self, block: int) -> Tables:
        return Tables(self._by_block("regret")[block], self._basis()[block], self._by_block("strategy_sum")[block])

    def _freeze(self, step: Step, players: range) -> None:
        """Write the current strategies of some players to `_frozen`, [slot, bucket] by block.

        step  Step of the iteration, which gives the rule from regrets to strategies
        """
        for block, starts in enumerate(self._starts):
            if block % 2 in players:
                freeze(step, self._block_tables(block), starts, self._frozen[block])

    def _absorb(self, step: Step, player: int) -> None:
        """Add the collected changes to a player's tables, with discounts; set the changes to 0.

        step  Step of the iteration, which gives the discounts and the strategy's weight
        """
        for block in range(player, len(self._frozen), 2):
            increments = self._increments[block]
            ones = np.ones(increments[0].shape[1], self._dtype)
            absorb(step, self._block_tables(block), self._starts[block], increments, ones)
            for table in increments:
                table.fill(0)
