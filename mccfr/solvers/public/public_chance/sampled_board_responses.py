"""CFR-BR on sampled boards: the opponent learns before the last street and responds best on it.

Source: Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games" (AAAI 2012),
section 4.  There the opponent is a regret minimiser in the trunk of the game and a best response below it.  So an
iteration needs only a sampled part of the game.

Here the trunk ends before the last street, and the sample is one board.  Both players learn in one run, each against an
opponent of its own: a second strategy for the other seat.  For each player in turn (`responded_traversals`) there are
two walks.  The opponent's walk finds each hand's best response on this board to the player's current strategy, and
updates the opponent's regrets in the trunk.  The player's own walk meets the opponent's trunk strategy and then this
best response.

Exact: the response on the last street.  Sampled: boards.  Changed from the paper: the opponent's trunk there is the
part before the flop or turn, without abstraction.  Here the opponent may have its own buckets in the trunk, and coarse
ones cost a little accuracy.

All tables are discounted as in DCFR (Brown & Sandholm 2019), whenever a period of nodes touched ends.  Learners keep
negative regrets (beta = 1): a bucket's gain varies by whole pots between boards, and a forgotten bad action would soon
be played again.  Opponents forget them (beta = 0), because they respond to the current strategy.  After 4,000 boards of
whole hold'em the exploitability on eight flops is 614 mbb/g this way, 677 if both forget and 702 if neither does
(docs/measured/evaluation.md).  Without the opponents' discounts it is a quarter more.  On finer buckets opponents have
beta = 0.5, the best of the values tried.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mccfr.common.rng import ACTIONS, second_word, seed_stream
from mccfr.games.game import Game
from mccfr.solvers.public.public_chance.public_chance_sampling import (
    PublicChanceOptions,
    PublicChanceSampling,
    PublicChanceState,
    new_tables,
    table_specs,
)
from mccfr.solvers.public.public_chance.traversal import (
    Task,
    VectorTables,
    new_response,
    responded_traversals,
    sampled_traversals,
)
from mccfr.solvers.public.sampled_board import SampledBoard, rebucketed
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import SLOT_FIRST, table_name
from storage.schema import ArraySpec

TRUNK = "trunk_regret"
"""Kind of the tables that hold the opponents' regrets."""
OPTIONS = PublicChanceOptions(Schedule("dcfr", period_nodes=100_000, beta=1.0), plus=False)
"""Weights and discounts of the learners' updates."""
OF_OPPONENTS = Schedule("dcfr", period_nodes=100_000)
"""Discounts of the opponents' regrets on the learners' buckets."""
OF_FINER = Schedule("dcfr", period_nodes=100_000, beta=0.5)
"""Discounts of the opponents' regrets on buckets of their own."""


def responding_specs(
    game: Game, trunk: Game, regret_dtype: str = "float32", sum_dtype: str = "float32"
) -> tuple[ArraySpec, ...]:
    """Return the specs (name, shape, dtype) of the players' tables and of the opponents' regrets.

    game                     Game with the players' buckets
    trunk                    the same game with the opponents' buckets, which only the part before the last street (the
                             trunk) uses
    regret_dtype, sum_dtype  "float32" or "float64": dtypes of regrets (the opponents' too) and of strategy sums

    Opponents have regrets before the last street only.  All tables are [slot, bucket]; a slot is one action of a
    decision.
    """
    rows, acts = game.tree.row_slots, game.tree.row_count[:-2]
    trunks = [
        ArraySpec(table_name(TRUNK, block), (int(rows[block]), int(trunk.buckets[block])), regret_dtype, SLOT_FIRST)
        for block in map(int, np.flatnonzero(acts))
    ]
    return (*table_specs(game, regret_dtype, sum_dtype), *trunks)


class RespondedSampling(PublicChanceSampling):
    """Runs CFR-BR on sampled boards in one worker; each player learns against an opponent of its own.

    game          Game whose cards are dealt outside of its betting tree, with the players' buckets
    tables        arrays of `responding_specs` by name, changed in place; None: new ones, in float32
    trunk         the same game with the opponents' buckets; None: opponents have the players' buckets
    seed, worker  numbers that select the random boards
    state         PublicChanceState to continue from, changed in place; None: a new run
    options       PublicChanceOptions: weights of the players' updates and discounts of their tables

    Raises `ValueError` for a game without cards, tables of another form or options that contradict each other.
    """

    def __init__(
        self,
        game: Game,
        tables: Mapping[str, npt.NDArray[np.generic]] | None = None,
        trunk: Game | None = None,
        seed: int = 0,
        worker: int = 0,
        state: PublicChanceState | None = None,
        options: PublicChanceOptions = OPTIONS,
    ) -> None:
        tables = new_tables(responding_specs(game, trunk or game)) if tables is None else tables
        super().__init__(game, options, tables, seed, worker, state, ordered=True)
        regret, sums = self._kernel_tables
        cell, sum_cell = np.zeros((1, 1), self._dtype), np.zeros((1, 1), sums[0].dtype)
        if self._sweep is not None:
            others = OF_OPPONENTS if trunk is None else OF_FINER
            self._sweep.also([table for name, table in tables.items() if name.startswith(TRUNK)], others)
        self._of_learner = []
        for learner in range(2):
            mine = [block % 2 == learner for block in range(len(regret))]
            trunks = [tables.get(table_name(TRUNK, block), cell) for block in range(len(regret))]
            chosen = zip(mine, regret, trunks, sums, strict=True)
            blocks = [(own, kept) if is_mine else (other, sum_cell) for is_mine, own, other, kept in chosen]
            self._of_learner.append(VectorTables(*map(tuple, zip(*blocks, strict=True))))
        self._trunk = None if trunk is None else trunk.cards
        room = len(self._trees.kind), game.cards.most_hands
        self._responses = [new_response(1 - learner, *room) for learner in range(2)]

    def _traverse(self, board: SampledBoard, regret_weight: float, sum_weight: float) -> int:
        drawn, trunk = self._source.drawn(self.state.iterations), self._trunk
        bucket = None if trunk is None else trunk.board_hands(drawn).bucket
        word, floored, nodes = np.uint64(second_word(self._rng)), int(self.options.plus), 0
        for learner in range(2):
            other = 1 - learner
            mixed = board if bucket is None else rebucketed(board, other, bucket)
            task = Task(other, regret_weight, sum_weight, floored, word, self._responses[learner])
            nodes += int(responded_traversals(self._trees, self._of_learner[learner], mixed, task, self._scratch))
        return nodes

    def answered(self, learner: int, ranges: Sequence[npt.NDArray[np.floating]]) -> npt.NDArray[np.float64]:
        """Run the next iteration's traversals for one learner, with given ranges; return values.

        learner  player who learns; the other, its opponent, responds
        ranges   2 × [H] both players' weights of their hands; hands that the game does not deal are ignored

        Returns [H] counterfactual values of the opponent's hands on the drawn board; 0 for hands that share a card with
        it.  The opponent plays its current strategy before the last street, and its best response on the last street.
        The values' mean over all boards is that of a full-width traversal times a constant: the share of boards
        compatible with any two hands.

        Unlike an iteration of a run, this also updates the opponent's strategy sums, on the last street with its best
        responses.  The object must have no `trunk`.  Do not call `run` afterwards: boards keep the given ranges.
        """
        state, other, response = self.state, 1 - learner, self._responses[learner]
        if self._sweep is not None:
            state.ends = self._sweep.run(state.ends, state.nodes)
        seed_stream(self._rng, *self._stream, np.uint64(ACTIONS), np.uint64(state.iterations))
        board, word = self._source.board(state.iterations), np.uint64(second_word(self._rng))
        for one, given in enumerate(ranges):
            count = int(board.count[one])
            board.weight[one, :count] = given[board.hand[one, :count]]
        tables = VectorTables(self._of_learner[learner].regret, self._kernel_tables.strategy_sum)
        task = Task(other, *self.options.weights(state.nodes), int(self.options.plus), word, response)
        response.walk[0] += 1
        nodes = int(sampled_traversals(self._trees, tables, board, task, other + 1, self._scratch))
        found, count = np.zeros(len(ranges[other])), int(board.count[other])
        found[board.hand[other, :count]] = self._scratch.value[0, :count]
        task = task._replace(traverser=learner)
        nodes += int(sampled_traversals(self._trees, tables, board, task, learner + 1, self._scratch))
        state.iterations, state.nodes = state.iterations + 1, state.nodes + nodes
        return found
