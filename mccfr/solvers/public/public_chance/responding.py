"""CFR-BR on sampled boards: an opponent who learns before the last street, and responds best on it.

Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games" (AAAI 2012), section 4:
the opponent of CFR-BR is a hybrid, a regret minimiser in the trunk of the game and a best response below it, so that
a sampled part of the game is enough for an iteration.  Here the trunk ends where the last street begins, the sample is
one board, and both players learn in one run, each against an opponent of his own.  In turn for player 0 and player 1
(`responded_traversals`): a walk of his opponent finds for every hand the best response on this board to the player's
present strategy, and updates the opponent's regrets in the trunk; a walk of his own meets both.

What is exact: on the last street nobody has more to learn, so that the response to the player's ranges on one board is
what a best response of the whole game does there.  What is sampled: boards.  Changed from the paper: its trunk is the
part of the game before the flop or turn, and its opponent abstracts nothing there; here `trunk` says what he remembers,
and a coarse one gives a little away.  All tables are discounted as in DCFR (Brown & Sandholm 2019), by period; where
those of opponents are not, whole hold'em gives away a quarter more after as many boards.  Learners remember negative
regrets (beta = 1), as what a bucket gains swings by whole pots from board to board and a bad action that is soon
forgotten is soon tried again; opponents forget them (beta = 0), as they answer what the learner does now (whole hold'em
after 4,000 boards: 614 mbb/g; both forget 677, both remember 702; docs/measured/evaluation.md); on a finer trunk half
of it (beta = 0.5), as was best there of what was tried.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.rng import ACTIONS, second_word, seed_stream
from mccfr.solvers.public.public_chance.sampling import (
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
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import SLOT_FIRST, table_name
from storage.schema import ArraySpec

TRUNK = "trunk_regret"
"""Kind of the tables of the opponents' regrets."""
OPTIONS = PublicChanceOptions(Schedule("dcfr", period_nodes=100_000, beta=1.0), plus=False)
"""How updates of learners are weighted."""
OF_OPPONENTS = Schedule("dcfr", period_nodes=100_000)
"""Discounts of opponents' regrets on the learners' buckets."""
OF_FINER = Schedule("dcfr", period_nodes=100_000, beta=0.5)
"""Discounts of opponents' regrets on buckets of their own."""


def responding_specs(
    game: Game, trunk: Game, regret_dtype: str = "float32", sum_dtype: str = "float32", kind: str = TRUNK
) -> tuple[ArraySpec, ...]:
    """The tables of a run: those of public chance sampling, and of each player as an opponent his regrets, of `TRUNK`
    before the last street, [slot, bucket] on the buckets of `trunk`.
    """
    rows, acts = game.tree.row_slots, game.tree.row_count[: -2 if kind == TRUNK else None]
    trunks = [
        ArraySpec(table_name(kind, block), (int(rows[block]), int(trunk.buckets[block])), regret_dtype, SLOT_FIRST)
        for block in map(int, np.flatnonzero(acts))
    ]
    return (*table_specs(game, regret_dtype, sum_dtype), *trunks)


class RespondedSampling(PublicChanceSampling):
    """One worker's iterations on tables that other workers may share.

    game    with cards beside its betting tree
    tables  arrays of `responding_specs` by name, changed in place; None: new ones, in float32
    trunk   the same game on the opponents' buckets; None: on the same
    seed, worker, state, options   as of `PublicChanceSampling`
    kind    of the opponents' tables; any but `TRUNK`: they learn on all streets, and respond best on none
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
        kind: str = TRUNK,
    ) -> None:
        responds = kind == TRUNK
        tables = new_tables(responding_specs(game, trunk or game, kind=kind)) if tables is None else tables
        super().__init__(game, options, tables, seed, worker, state, ordered=responds)
        regret, sums = self._kernel_tables
        cell, sum_cell = np.zeros((1, 1), self._dtype), np.zeros((1, 1), sums[0].dtype)
        if self._sweep is not None:
            others = (OF_OPPONENTS if trunk is None else OF_FINER) if responds else options.schedule
            self._sweep.also([table for name, table in tables.items() if name.startswith(kind)], others)
        self._of_learner = []
        for learner in range(2):
            mine = [block % 2 == learner for block in range(len(regret))]
            trunks = [tables.get(table_name(kind, block), cell) for block in range(len(regret))]
            chosen = zip(mine, regret, trunks, sums, strict=True)
            blocks = [(own, kept) if is_mine else (other, sum_cell) for is_mine, own, other, kept in chosen]
            self._of_learner.append(VectorTables(*map(tuple, zip(*blocks, strict=True))))
        self._trunk = None if trunk is None else trunk.cards
        room = len(self._trees.kind), game.cards.most_hands
        self._responses = [new_response(1 - learner, *room) if responds else new_response() for learner in range(2)]

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
        """One player's part of the next iteration, at ranges of the caller's: for games that begin before their tree.

        Unlike a run's iterations it keeps sums of the opponent too, on the last street of his responses.

        ranges  2 × [H] both players' weights of their hands; hands outside of the game's are left out
        Returns [H] counterfactual values of the opponent's hands on the board that is drawn, by his strategy before the
        last street and his response on it; 0 for hands that hit it.  Their mean over all boards is what a full-width
        traversal finds, but for one factor: the share of boards that leave any two hands.
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
