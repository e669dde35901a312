"""Public chance sampling (Johanson, Bard, Lanctot, Gibson & Bowling 2012, section 5.1).

An iteration draws one full board and walks it (`traversal`) once for each player, the second against the first one's
updated regrets.  What it adds to the tables is on average, up to one constant for all streets, what a full-width
iteration would add; where no board is drawn it is a full-width iteration.

Changed from the paper: listed boards are drawn in rounds (`BoardSource`), and updates are weighted or discounted by
period, as in the other samplers; or regrets are floored at 0 and strategy sums weighted by n^gamma in period n, as in
CFR+ (Tammelin 2014).  A period should be about one round of the boards, and where they are many a hundred of them
(`period_nodes`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.noise import CARD_REMOVAL
from mccfr.rng import ACTIONS, second_word, seed_stream
from mccfr.solvers.public.public_chance.traversal import (
    Task,
    VectorTables,
    new_response,
    new_scratch,
    sampled_traversals,
)
from mccfr.solvers.public.sampled_board import BoardSource, SampledBoard
from mccfr.solvers.sweep import Sweep
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import SLOT_FIRST, TableSet, table_name
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.trees.streets import street_trees
from storage.schema import ArraySpec

_BLOCKS = 8
_NOBODY = new_response()
_ROUND_BOARDS = 48  # what counts as a round where boards are not listed
_MOST_BOARDS = 100  # of a period: where a round has thousands, its first boards would weigh too much for too long


@dataclass(frozen=True)
class PublicChanceOptions:
    """How updates are weighted.

    schedule    periods and discount; its `gamma` is also the power of the averaging of regret matching plus
    plus        regret matching plus: regrets below 0 are set to 0, and strategy sums weighted by n^gamma; the
                schedule's kind must be "none"
    """

    schedule: Schedule = field(default_factory=Schedule)
    plus: bool = True

    def weights(self, nodes: int) -> tuple[float, float]:
        """Factors of new regrets and of new strategy sums after so many nodes."""
        if self.plus:
            return 1.0, float(self.schedule.effective_period(nodes)) ** self.schedule.gamma
        return self.schedule.weight(nodes), self.schedule.weight(nodes)


@dataclass
class PublicChanceState:
    """What a worker must remember to go on bit for bit: boards follow from the iteration's number."""

    iterations: int = 0
    nodes: int = 0
    ends: int = 0  # period ends that have been swept (`dcfr`, worker 0)


def table_specs(game: Game, regret_dtype: str = "float32", sum_dtype: str = "float32") -> tuple[ArraySpec, ...]:
    """The tables of a run: `regret` and `strategy_sum` [slot, bucket] of each street and player who acts there."""
    specs = []
    for block in map(int, np.flatnonzero(game.tree.row_count)):
        shape = (int(game.tree.row_slots[block]), int(game.buckets[block]))
        for kind, dtype in (("regret", regret_dtype), ("strategy_sum", sum_dtype)):
            specs.append(ArraySpec(table_name(kind, block), shape, dtype, SLOT_FIRST))
    return tuple(specs)


def new_tables(specs: tuple[ArraySpec, ...]) -> dict[str, npt.NDArray[np.generic]]:
    """Zeroed tables in this process's own memory."""
    return {spec.name: np.zeros(spec.shape, spec.dtype) for spec in specs}


def period_nodes(game: Game) -> int:
    """About the nodes that both traversals of every listed board touch, or of a hundred: a good length of a period."""
    return 2 * game.tree.nodes * min(game.cards.boards or _ROUND_BOARDS, _MOST_BOARDS)


def sampled_average(game: Game, tables: Mapping[str, npt.NDArray[np.generic]]) -> Strategy:
    """The average strategy of `strategy_sum` tables [slot, bucket]; `ValueError` for sums no run writes."""
    return average_strategy(game, TableSet(tables, table_specs(game)))


class PublicChanceSampling:
    """One worker's iterations on tables that other workers may share: all add without locks, as in the other samplers.

    game     with cards beside its betting tree
    tables   arrays of `table_specs` by name, changed in place; None: new ones, in float32
    seed, worker   name the stream of boards
    state    to go on from; changed as iterations are run
    seats    the players who learn; another one's regrets never change
    ordered  whether boards have their hands in order of strength

    Raises `ValueError` for a game without cards, tables of another form or options that contradict each other.
    """

    def __init__(
        self,
        game: Game,
        options: PublicChanceOptions | None = None,
        tables: Mapping[str, npt.NDArray[np.generic]] | None = None,
        seed: int = 0,
        worker: int = 0,
        state: PublicChanceState | None = None,
        seats: Sequence[int] = (0, 1),
        *,
        ordered: bool = False,
    ) -> None:
        self._seats = seats
        self.options, self.state = options or PublicChanceOptions(), state or PublicChanceState()
        _check_options(self.options)
        self.game, self.tables = game, new_tables(table_specs(game)) if tables is None else tables
        self._worker = worker
        self._kernel_tables, self._dtype = _kernel_tables(game, self.tables)
        self._source = BoardSource(game, self._dtype, seed, worker, ordered=ordered)
        self._trees = street_trees(game.tree)
        self._scratch = new_scratch(self._trees, game.cards.most_hands, game.cards.deck_size, self._dtype)
        self._stream = np.uint64(seed), np.uint64(worker)
        self._rng = np.zeros(4, np.uint64)
        swept = self._kernel_tables.regret, self._kernel_tables.strategy_sum
        sweeps = self.options.schedule.sweeps and worker == 0
        self._sweep = Sweep(*swept, self.options.schedule, (seed, worker)) if sweeps else None

    @property
    def nodes_touched(self) -> int:
        """Public nodes this worker has visited."""
        return self.state.nodes

    def average_strategy(self) -> Strategy:
        """The average strategy of the tables so far."""
        return sampled_average(self.game, self.tables)

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels without touching the tables."""
        board = self._source.board(0)
        self._traverse(board._replace(count=np.zeros_like(board.count), rows=np.zeros_like(board.rows)), 0.0, 0.0)
        if self._sweep is not None:
            self._sweep.warm_up()

    def run(self, iterations: int, node_limit: int | None = None, total_nodes: int | None = None) -> tuple[int, int]:
        """Run iterations and return how many, and their nodes.

        It stops after `iterations`, or after the first that reaches `node_limit` nodes from here.  `total_nodes` is the
        count of all workers so far (default: this one's own); periods follow it.
        """
        begun = self.state.nodes if total_nodes is None else total_nodes
        done, nodes = 0, 0
        while done < iterations and (node_limit is None or nodes < node_limit):
            if self._sweep is not None:
                self.state.ends = self._sweep.run(self.state.ends, begun + nodes)
            seed_stream(self._rng, *self._stream, np.uint64(ACTIONS), np.uint64(self.state.iterations))
            touched = self._traverse(self._source.board(self.state.iterations), *self.options.weights(begun + nodes))
            self.state.iterations += 1
            self.state.nodes += touched
            done, nodes = done + 1, nodes + touched
        return done, nodes

    def _traverse(self, board: SampledBoard, regret_weight: float, sum_weight: float) -> int:
        word = np.uint64(second_word(self._rng))
        task = Task(min(self._seats), regret_weight, sum_weight, int(self.options.plus), word, _NOBODY)
        tables, stop = self._kernel_tables, max(self._seats) + 1
        return int(sampled_traversals(self._trees, tables, board, task, stop, self._scratch))


def _check_options(options: PublicChanceOptions) -> None:
    if options.plus and options.schedule.kind != "none":
        raise ValueError(
            f"discount = {options.schedule.kind!r} with floored regrets: floored runs weight their sums by period "
            "already; use discount = 'none', or leave regrets unfloored"
        )


def _kernel_tables(
    game: Game, tables: Mapping[str, npt.NDArray[np.generic]]
) -> tuple[VectorTables, np.dtype[np.generic]]:
    """The tables by block, checked, and the dtype of regrets."""
    regret_dtype, sum_dtype = (
        next((table.dtype for name, table in tables.items() if name.startswith(f"{kind}/")), None)
        for kind in ("regret", "strategy_sum")
    )
    if regret_dtype not in CARD_REMOVAL or sum_dtype not in CARD_REMOVAL:
        raise ValueError(f"tables of {regret_dtype} and {sum_dtype}: float32 or float64 regrets and sums are needed")
    by_kind: dict[str, list[npt.NDArray[np.generic]]] = {}
    for kind, dtype in (("regret", regret_dtype), ("strategy_sum", sum_dtype)):
        # One length for nearly all games: kernels are compiled for each length anew.
        by_kind[kind] = [np.zeros((1, 1), dtype) for _ in range(max(_BLOCKS, len(game.tree.row_count)))]
    for spec in table_specs(game, str(regret_dtype), str(sum_dtype)):
        table = tables.get(spec.name)
        if table is None or table.shape != spec.shape or table.dtype != spec.dtype:
            found = "missing" if table is None else f"{table.dtype} {table.shape}"
            raise ValueError(f"the table {spec.name} is {found}: {spec.dtype} {spec.shape} is needed")
        if not (table.flags.c_contiguous and table.flags.writeable):
            raise ValueError(f"the table {spec.name} is read-only or not contiguous: it is changed in place")
        kind, street, player = spec.name.split("/")
        by_kind[kind][2 * int(street.removeprefix("street")) + int(player.removeprefix("player"))] = table
    return VectorTables(tuple(by_kind["regret"]), tuple(by_kind["strategy_sum"])), np.dtype(regret_dtype)  # type: ignore[arg-type]
