"""Schedule of training with more tables than memory: one block of strata after the other.

A *stratum* is the part of the deals with certain boards of the second street (`mccfr.cards.board_strata`).  A *block*
is a group of strata.  If the tables of all blocks do not fit, memory holds two blocks and the disk the others.

Each *cycle* trains every block once, in a *turn*.  The order is drawn from (seed, cycle).  A turn gives each stratum of
the block its share of the cycle's iterations, split into intervals (`mccfr.solvers.strata_training`).  The changes of
the first street are added to the totals before the next turn begins.  `mccfr.runs.session.strata.block_pools` follows
the schedule, `BlockCache` of `block_cache` beside it moves blocks between memory and disk, and `StratumWorker` of
`mccfr.solvers.strata_training` trains a stratum.

The discount weight of updates is fixed during a cycle.  So the result depends on seed, strata, blocks and cycle length,
and not on the number of blocks in memory or of workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, pairwise
from math import ceil

from mccfr.config.run_tables import CYCLE_ITERATIONS, Config
from mccfr.solvers.solver import WorkerState
from mccfr.solvers.strata_training import Barrier, Interval


@dataclass(frozen=True)
class Position:
    """Progress of the schedule between two turns; a turn trains one block of strata.

    turns  number of turns that have ended since the run began, over all cycles
    nodes  nodes that the run had touched when the current cycle began
    """

    turns: int = 0
    nodes: int = 0


def turns_of(config: Config) -> tuple[int, int]:
    """Return (number of blocks of strata, iterations in a cycle); `run.strata` must be set.

    A cycle trains every block once; its iterations are those of all blocks together.  If `run.blocks` is not set, each
    stratum is a block.
    """
    run = config.run
    assert run.strata is not None
    return run.blocks or run.strata, run.cycle_iterations or CYCLE_ITERATIONS


def block_bounds(strata: int, blocks: int) -> list[int]:
    """Return [blocks+1] bounds: block b has strata bounds[b] to bounds[b+1]-1, as equal as possible.

    A stratum is a group of second-street boards.
    """
    return [block * strata // blocks for block in range(blocks + 1)]


def turn_order(seed: int, cycle: int, blocks: int) -> list[int]:
    """Return the numbers of the blocks, 0 to blocks-1, in the order in which a cycle trains them.

    A block is a group of strata.  The order depends on seed and cycle; all orders are equally likely.

    cycle  number of the cycle, from 0 on
    """
    return sorted(range(blocks), key=lambda block: sha256(f"turn {seed} {cycle} {block}".encode()).digest())


def cycle_quotas(shares: Sequence[int], iterations: int, cycle: int) -> list[int]:
    """Return a list [N]: the iterations of each stratum in cycle number `cycle`, counted from 0.

    shares      [N] probability of each stratum, up to a common factor
    iterations  iterations of all strata together in a cycle

    A stratum is a group of second-street boards; a cycle trains all strata once.  Running sums are rounded, so each
    stratum's total over all cycles differs from its exact share by less than one.  Each cycle has exactly `iterations`.
    """
    ends = list(accumulate(shares, initial=0))

    def so_far(cycles: int) -> list[int]:
        totals = [cycles * iterations * end // ends[-1] for end in ends]
        return [after - before for before, after in pairwise(totals)]

    return [now - before for now, before in zip(so_far(cycle + 1), so_far(cycle), strict=True)]


def least_cycle_iterations(shares: Sequence[int]) -> int:
    """Return a length of a cycle, in iterations, that gives each stratum one or more of them.

    A cycle trains each stratum (group of second-street boards) once.

    shares  [N] probability of each stratum, up to a common factor
    """
    return ceil(3 * sum(shares) / min(shares))


class BlockSchedule:
    """Schedules out-of-core training: the block to train, its intervals, ends of turns and cycles.

    A block is a group of strata.  A turn trains one block, a cycle has a turn for each block.  An interval is the part
    of a turn between two additions of first-street changes.

    barrier           `Barrier` that determines the length of intervals and their parameters
    blocks            number of blocks
    cycle_iterations  iterations of all blocks together in a cycle
    bounds            [blocks+1] block b has strata bounds[b] to bounds[b+1]-1
    position          progress of the schedule; assign it to continue an earlier schedule
    """

    def __init__(self, barrier: Barrier, blocks: int, cycle_iterations: int) -> None:
        self._barrier, self._iterations = barrier, cycle_iterations
        self._seed: int = barrier.algorithm.config.solver.seed
        self.bounds = block_bounds(barrier.strata.count, blocks)
        self.position = Position()
        self._left: list[tuple[Interval, list[int]]] = []  # intervals of the current turn, in reverse order
        self._under_way = False

    @property
    def blocks(self) -> int:
        """Return the number of blocks into which the strata are divided."""
        return len(self.bounds) - 1

    def block(self, ahead: int = 0) -> int:
        """Return the number, from 0, of the block in training; between two turns, of the next one.

        ahead  number of turns to look ahead; 1: the block after that one
        """
        cycle, turn = divmod(self.position.turns + ahead, self.blocks)
        return turn_order(self._seed, cycle, self.blocks)[turn]

    @property
    def between(self) -> bool:
        """Return whether no turn (the training of one block) is in progress."""
        return not self._under_way

    @property
    def between_cycles(self) -> bool:
        """Return whether no cycle (one turn of every block) is in progress."""
        return self.between and self.position.turns % self.blocks == 0

    def begin(self, states: Sequence[WorkerState]) -> tuple[Interval, list[int]]:
        """Return (the next interval, list [N] of each stratum's iterations in it); begin a turn if needed.

        Strata of other blocks have 0 iterations.

        states  [N] counters of each stratum; if a turn begins, they determine its intervals
        """
        if self.between:
            self._begin_turn(states)
        return self._left.pop()

    def _begin_turn(self, states: Sequence[WorkerState]) -> None:
        if self.between_cycles:
            self.position = Position(self.position.turns, sum(state.nodes for state in states))
        block = self.block()
        strata = range(self.bounds[block], self.bounds[block + 1])
        every = cycle_quotas(self._barrier.strata.shares.tolist(), self._iterations, self.position.turns // self.blocks)
        turn = [quota if stratum in strata else 0 for stratum, quota in enumerate(every)]
        iterations = sum(turn)
        iterations_before = sum(state.iterations for state in states)
        count = max(1, ceil(iterations / self._barrier.interval_iterations(iterations_before)))
        parts = [[quota * (k + 1) // count - quota * k // count for quota in turn] for k in reversed(range(count))]
        self._left = [(self._barrier.interval(self.position.nodes, max(1, sum(part))), part) for part in parts]
        self._under_way = True

    def end(self) -> bool:
        """Record that the current interval has ended; return whether its turn has ended as well.

        The caller must have added the interval's changes of the first street to the totals before.
        """
        if self._left:
            return False
        began = self.position
        self.position, self._under_way = Position(began.turns + 1, began.nodes), False
        return True
