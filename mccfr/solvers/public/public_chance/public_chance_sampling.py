"""Public chance sampling (Johanson, Bard, Lanctot, Gibson & Bowling 2012, section 5.1).

An iteration draws one full board and walks it (`traversal`) once for each player.  The second player plays against the
first one's updated regrets.  The expected update is that of a full-width iteration, up to one constant for all streets.

Changes from the paper: listed boards are drawn in rounds (`BoardSource`), and updates are weighted or discounted by
period, as in the other samplers.  Alternatively regrets are floored at 0 and strategy sums are weighted by n^gamma in
period n, as in CFR+ (Tammelin 2014).  A period should be about one round of the boards, or a hundred boards if there
are more (`period_nodes`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mccfr.common.float_tolerance import CARD_REMOVAL
from mccfr.common.rng import ACTIONS, second_word, seed_stream
from mccfr.games.game import Game
from mccfr.solvers.dcfr_discount import DcfrDiscount
from mccfr.solvers.public.public_chance.traversal import (
    Task,
    VectorTables,
    new_response,
    new_scratch,
    sampled_traversals,
)
from mccfr.solvers.public.sampled_board import BoardSource, SampledBoard
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import SLOT_FIRST, TableSet, table_name
from mccfr.trees.street_trees import street_trees
from storage.schema import ArraySpec

_BLOCKS = 8
_NO_RESPONSE = new_response()
_ROUND_BOARDS = 48  # length of a round if boards are not listed
_MOST_BOARDS = 100  # in a period: in longer ones the first boards keep too much weight for too long


@dataclass(frozen=True)
class PublicChanceOptions:
    """Weights and discounts of updates.

    schedule  periods and discount; its `gamma` is also the power γ with `plus`
    plus      regret matching plus: regrets are floored at 0, and strategy sums of period n are weighted by n^γ; needs
              the schedule kind "none"
    """

    schedule: Schedule = field(default_factory=Schedule)
    plus: bool = True

    def weights(self, nodes: int) -> tuple[float, float]:
        """Return (factor of new regrets, factor of new strategy sums) for the next iteration.

        nodes  nodes touched by all workers so far
        """
        if self.plus:
            return 1.0, float(self.schedule.effective_period(nodes)) ** self.schedule.gamma
        return self.schedule.weight(nodes), self.schedule.weight(nodes)


@dataclass
class PublicChanceState:
    """Counts that a worker needs to continue bit for bit: iterations, nodes, discounts.

    iterations  iterations that this worker has done
    nodes       nodes that this worker has touched
    ends        number of ends of discount periods at which this worker has discounted the tables

    Boards follow from the iteration number.
    """

    iterations: int = 0
    nodes: int = 0
    ends: int = 0  # period ends at which tables were discounted (`dcfr`, worker 0)


def table_specs(game: Game, regret_dtype: str = "float32", sum_dtype: str = "float32") -> tuple[ArraySpec, ...]:
    """Return names, shapes [slot, bucket] and dtypes of the tables of regrets and strategy sums.

    There are two for each block (street and player) with decisions; a slot is one action of a decision.
    """
    specs = []
    for block in map(int, np.flatnonzero(game.tree.row_count)):
        shape = (int(game.tree.row_slots[block]), int(game.buckets[block]))
        for kind, dtype in (("regret", regret_dtype), ("strategy_sum", sum_dtype)):
            specs.append(ArraySpec(table_name(kind, block), shape, dtype, SLOT_FIRST))
    return tuple(specs)


def new_tables(specs: tuple[ArraySpec, ...]) -> dict[str, npt.NDArray[np.generic]]:
    """Return {name: array of zeros} for the tables of `specs`, in this process's own memory."""
    return {spec.name: np.zeros(spec.shape, spec.dtype) for spec in specs}


def period_nodes(game: Game) -> int:
    """Return the default discount period in nodes: those of both players' traversals of each listed board.

    At most a hundred boards count; if boards are not listed, a period has 48 of them.
    """
    return 2 * game.tree.nodes * min(game.cards.boards or _ROUND_BOARDS, _MOST_BOARDS)


def sampled_average(game: Game, tables: Mapping[str, npt.NDArray[np.generic]]) -> Strategy:
    """Return the average strategy of `strategy_sum` tables [slot, bucket].

    tables  {name: array} with the strategy sums; other tables are ignored

    A slot is one action of a decision.  Raises `ValueError` for a sum that is negative or not finite.
    """
    return average_strategy(game, TableSet(tables, table_specs(game)))


class PublicChanceSampling:
    """Runs iterations of one worker; several workers may add to the same tables without locks.

    game          Game whose cards are dealt outside of its betting tree
    options       weights and discounts of updates; None: regret matching plus without discounts
    tables        arrays of `table_specs` by name, changed in place; None: new ones, in float32
    seed, worker  together the seed of the random boards, so that each worker has its own
    state         state to continue from, changed in place; None: a new run
    ordered       whether boards have their hands in order of strength; else ascending by number

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
        *,
        ordered: bool = False,
    ) -> None:

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
        self._sweep = DcfrDiscount(*swept, self.options.schedule, (seed, worker)) if sweeps else None

    @property
    def nodes_touched(self) -> int:
        """Return the number of public nodes that this worker has touched since the run began."""
        return self.state.nodes

    def average_strategy(self) -> Strategy:
        """Return both players' average strategy by the strategy sums so far, which all workers add to."""
        return sampled_average(self.game, self.tables)

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache, without changing the tables."""
        board = self._source.board(0)
        self._traverse(board._replace(count=np.zeros_like(board.count), rows=np.zeros_like(board.rows)), 0.0, 0.0)
        if self._sweep is not None:
            self._sweep.warm_up()

    def run(self, iterations: int, node_limit: int | None = None, total_nodes: int | None = None) -> tuple[int, int]:
        """Run iterations; return their number and the number of nodes they touched.

        It stops after `iterations`, or after the first iteration that brings this call to `node_limit` nodes.
        `total_nodes` is the number of nodes that all workers have touched before this call (default: this worker's).
        It determines the discount period, and so the weight of updates.
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
        task = Task(0, regret_weight, sum_weight, int(self.options.plus), word, _NO_RESPONSE)
        return int(sampled_traversals(self._trees, self._kernel_tables, board, task, 2, self._scratch))


def _check_options(options: PublicChanceOptions) -> None:
    if options.plus and options.schedule.kind != "none":
        raise ValueError(
            f"discount = {options.schedule.kind!r} with floored regrets: floored runs weight their sums by period "
            "already; use discount = 'none', or leave regrets unfloored"
        )


def _kernel_tables(
    game: Game, tables: Mapping[str, npt.NDArray[np.generic]]
) -> tuple[VectorTables, np.dtype[np.generic]]:
    """Return (VectorTables of the tables by block, dtype of regrets) after a check of the tables.

    Raises `ValueError` for a table that is missing, has another shape or dtype, or cannot be changed in place.
    """
    regret_dtype, sum_dtype = (
        next((table.dtype for name, table in tables.items() if name.startswith(f"{kind}/")), None)
        for kind in ("regret", "strategy_sum")
    )
    if regret_dtype not in CARD_REMOVAL or sum_dtype not in CARD_REMOVAL:
        raise ValueError(f"tables of {regret_dtype} and {sum_dtype}: float32 or float64 regrets and sums are needed")
    by_kind: dict[str, list[npt.NDArray[np.generic]]] = {}
    for kind, dtype in (("regret", regret_dtype), ("strategy_sum", sum_dtype)):
        # One length for nearly all games, because kernels are compiled for each length.
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
