"""What a walk of a street tree works on: strategies and tables of both players, where it is, and room for it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.solvers.public.narrow_rows import NarrowRows
from mccfr.solvers.public.public_tree import PublicTree
from mccfr.solvers.public.terminals.lane_code import aligned_zeros
from mccfr.solvers.public.terminals.values import TerminalLanes, new_terminal_lanes

FOLLOW, RESPOND = 0, 1
"""Values of the traverser's hands: of his strategy, and, where strategies are fixed, of a best response."""

_VECTOR = 16  # float32 cells of a vector register
_MOST_STREETS = 4


class Views(NamedTuple):
    """A player's tables as a walk takes them, street by street, [slot, bucket] each.

    In place: the variant's tables.
    Otherwise: regret and strategy_sum collect increments, basis holds the current strategy.
    Where strategies are fixed: basis holds the strategy, probabilities or, in place, strategy sums, and the others are
    `no_tables`; or regret, [slot, row] like the tables of training, gets the best response of a traverser whose every
    infoset has a row of its own; or strategy_sum, of twice as many rows, gets what his own range wins by each action,
    and by the best one for each hand.

    narrow  tables with cells of 16 bits, in place, or sums of fixed strategies; what stands before it are tables of one
            cell then
    """

    regret: tuple[npt.NDArray[np.floating], ...]
    basis: tuple[npt.NDArray[np.floating], ...]
    strategy_sum: tuple[npt.NDArray[np.floating], ...]
    narrow: NarrowRows | None = None


def street_tables(tables: Sequence[npt.NDArray[Any]], player: int) -> tuple[npt.NDArray[Any], ...]:
    """A player's tables out of those of all blocks, as `Views` has them; blocks without rows hold one cell.

    Always as many: kernels would be compiled anew for each number of streets.
    """
    chosen = tables[player::2]
    return (*chosen, *[np.zeros((1, 1), chosen[0].dtype)] * (_MOST_STREETS - len(chosen)))


def narrow_tables(
    kinds: Sequence[Sequence[npt.NDArray[Any]]], starts: Sequence[npt.NDArray[np.int64]], player: int
) -> NarrowRows:
    """A player's tables out of those of all blocks; kinds: regrets, sums, and their scales; starts as `row_starts`."""
    tables = [street_tables(blocks, player) for blocks in kinds]
    row = [np.repeat(np.arange(len(of) - 1), np.diff(of)) for of in starts[player::2]]
    row += [np.zeros(1, np.int64)] * (len(tables[0]) - len(row))
    return NarrowRows(tables[0], tables[1], tables[2], tables[3], tuple(row))


def no_tables(dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], ...]:
    """In the place of tables that a walk neither reads nor fills; None instead would compile kernels anew."""
    return (np.zeros((0, 0), dtype),) * _MOST_STREETS


class Traversal(NamedTuple):
    """Who traverses, whether rows are updated in place, his tables, the opponent's basis and what goes with it.

    iteration     by which rows of 16-bit cells are rounded
    respond_from  as of `Scope`
    """

    player: int
    in_place: bool
    views: Views
    opponent: tuple[npt.NDArray[np.floating], ...]
    opponent_narrow: NarrowRows | None = None
    iteration: int = 0
    respond_from: int = 0


class BettingRound(NamedTuple):
    """A street tree on a board."""

    street: int
    tree: int
    board: int


class LineRanges(NamedTuple):
    """A player's ranges at the N members of street trees.  W cells a vector.

    row    [N] int32  row of `reach` that belongs to a member
    reach  [N, W]     deal weights times his strategy
    """

    row: npt.NDArray[np.int32]
    reach: npt.NDArray[np.floating]


class HandedOn(NamedTuple):
    """What goes from street to street, by hand.  S streets, H hands, K tasks, V values of a hand.

    reach  [2, S, H]  ranges handed down to a street: the traverser's, the opponent's
    value  [S, V, H]  values handed up from it
    task   [K, V, H]  values that tasks found
    """

    reach: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]
    task: npt.NDArray[np.floating]


class StreetScratch(NamedTuple):
    """Room for one street tree of every street.  N members, A cells, W cells a vector, S streets.

    V = 2 values where strategies are fixed, else 1: FOLLOW alone, or, of fixed strategies whose `Views` collect
    nothing, RESPOND alone.

    member_first  [S] int64     first row of a street in what has N rows
    cell_first    [S] int64     first row of a street in sigma
    own           ranges of the traverser; kept up in training only
    opponent      of the opponent
    value         [V, N+1, W]   counterfactual values of the traverser's hands; the last row is anybody's
    sigma         [A, W]        the traverser's strategy
    wide          [X+1, W]      rows of 16-bit cells as they are worked on, X most actions
    by_hand       what goes from street to street
    state         [S, 4] int64  street tree, board, end of boards, member: the stack
    lanes         ranges side by side, for terminals
    """

    member_first: npt.NDArray[np.int64]
    cell_first: npt.NDArray[np.int64]
    own: LineRanges
    opponent: LineRanges
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    wide: npt.NDArray[np.floating]
    by_hand: HandedOn
    state: npt.NDArray[np.int64]
    lanes: TerminalLanes


def new_scratch(public: PublicTree, streets: range, dtype: npt.DTypeLike, values: int = 1) -> StreetScratch:
    """Room for walks of some of the streets, with so many values of each hand."""
    here = np.isin(np.arange(public.streets), streets)
    members, cells = public.trees.most * here
    longest, hands = int(np.diff(public.ranges.first, axis=1).max()), public.reach.shape[1]
    rows, width = max(1, int(members.sum())), -(-(longest + 1) // _VECTOR) * _VECTOR
    own, opponent = (LineRanges(np.zeros(rows, np.int32), aligned_zeros((rows, width), dtype)) for _ in range(2))
    return StreetScratch(
        np.cumsum(members) - members,
        np.cumsum(cells) - cells,
        own,
        opponent,
        aligned_zeros((values, rows + 1, width), dtype),
        aligned_zeros((max(1, int(cells.sum())), width), dtype),
        aligned_zeros((1 + int(public.trees.actions.max(initial=1)), width), dtype),
        HandedOn(
            np.zeros((2, public.streets, hands), dtype),
            np.zeros((public.streets, values, hands), dtype),
            np.zeros((len(public.tasks), values, hands), dtype),
        ),
        np.zeros((public.streets, 4), np.int64),
        new_terminal_lanes(public.ranges, rows, width, hands, dtype),
    )


def one_value(room: StreetScratch) -> StreetScratch:
    """The same room for walks with one value of each hand."""
    handed = [np.zeros((len(of), 1, of.shape[2]), of.dtype) for of in (room.by_hand.value, room.by_hand.task)]
    return room._replace(value=room.value[:1], by_hand=room.by_hand._replace(value=handed[0], task=handed[1]))
