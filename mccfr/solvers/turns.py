"""Strata in turn: blocks of strata trained one after the other, so that two of them in memory are enough.

In every *cycle* each block has one *turn*, in an order that is drawn anew from (seed, cycle).  A turn gives each of the
block's strata its share of the cycle's iterations, rounded so that all cycles so far have exactly theirs, in intervals
as strata have them otherwise (`mccfr.solvers.strata`): its changes of the first street are added to the totals before
the next turn begins.
What an update weighs is fixed over a whole cycle, and the first street is discounted where a cycle ends.

So what a run in turn trains follows from seed, strata, blocks and the length of a cycle; how many blocks are in memory,
and who trains them, decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, pairwise
from math import ceil

from mccfr.config.tables import CYCLE_ITERATIONS, Config
from mccfr.solvers.solver import WorkerState
from mccfr.solvers.strata import Barrier, Interval


@dataclass(frozen=True)
class Position:
    """Between two turns: how many have ended, and nodes touched by all strata when the present cycle began."""

    turns: int = 0
    nodes: int = 0


def turns_of(config: Config) -> tuple[int, int]:
    """(blocks, iterations of a cycle) of a configuration with `tables.resident`."""
    run = config.run
    assert run.strata is not None
    return run.blocks or run.strata, run.cycle_iterations or CYCLE_ITERATIONS


def block_bounds(strata: int, blocks: int) -> list[int]:
    """[blocks+1] block b is of strata bounds[b] .. bounds[b+1]-1: as many each as can be."""
    return [block * strata // blocks for block in range(blocks + 1)]


def turn_order(seed: int, cycle: int, blocks: int) -> list[int]:
    """The blocks in the order of a cycle: every order is as likely."""
    return sorted(range(blocks), key=lambda block: sha256(f"turn {seed} {cycle} {block}".encode()).digest())


def cycle_quotas(shares: Sequence[int], iterations: int, cycle: int) -> list[int]:
    """Iterations of each stratum in a cycle of so many: cycles 0 .. cycle have exactly their number together.

    Running sums of shares are rounded, so that each stratum has its share of all iterations so far to less than one.
    """
    ends = list(accumulate(shares, initial=0))

    def so_far(cycles: int) -> list[int]:
        known = [cycles * iterations * end // ends[-1] for end in ends]
        return [after - before for before, after in pairwise(known)]

    return [now - before for now, before in zip(so_far(cycle + 1), so_far(cycle), strict=True)]


def least_cycle_iterations(shares: Sequence[int]) -> int:
    """Iterations with which each stratum is sure to have some in every cycle, and none less than none."""
    return ceil(3 * sum(shares) / min(shares))


class Turns:
    """The schedule: which block is trained next, in which intervals, and when a cycle is over.

    position  the turns that have ended; set it to go on from elsewhere
    """

    def __init__(self, barrier: Barrier, blocks: int, cycle_iterations: int) -> None:
        self._barrier, self._iterations = barrier, cycle_iterations
        self._seed: int = barrier.algorithm.config.solver.seed
        self.bounds = block_bounds(barrier.strata.count, blocks)
        self.position = Position()
        self._left: list[tuple[Interval, list[int]]] = []  # of the present turn, the next one last
        self._under_way = False

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    def block(self, ahead: int = 0) -> int:
        """The block of the turn that is under way, or comes next; or of one so many turns ahead."""
        cycle, place = divmod(self.position.turns + ahead, self.blocks)
        return turn_order(self._seed, cycle, self.blocks)[place]

    @property
    def between(self) -> bool:
        """Whether no turn is under way."""
        return not self._under_way

    @property
    def between_cycles(self) -> bool:
        """Whether no cycle is under way."""
        return self.between and self.position.turns % self.blocks == 0

    def begin(self, states: Sequence[WorkerState]) -> tuple[Interval, list[int]]:
        """The next interval and the strata's quotas in it."""
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
        done = sum(state.iterations for state in states)
        count = max(1, ceil(iterations / self._barrier.interval_iterations(done)))
        parts = [[quota * (k + 1) // count - quota * k // count for quota in turn] for k in reversed(range(count))]
        self._left = [(self._barrier.interval(self.position.nodes, max(1, sum(part))), part) for part in parts]
        self._under_way = True

    def end(self) -> bool:
        """Note that an interval was trained and added; whether its turn is over."""
        if self._left:
            return False
        began = self.position
        self.position, self._under_way = Position(began.turns + 1, began.nodes), False
        return True
