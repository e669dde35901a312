"""Arrays for the walk of a street tree: tables of both players, the current board, and scratch arrays."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import by_reference
from mccfr.solvers.public.narrow_rows import Int16Rows
from mccfr.solvers.public.public_tree import PublicTree
from mccfr.solvers.public.terminals.lane_code import aligned_zeros
from mccfr.solvers.public.terminals.range_values import TerminalLanes, new_terminal_lanes

FOLLOW, RESPOND = 0, 1
"""Indices of the values of the traverser's hands: with its strategy, and with a best response."""

_VECTOR = 16  # float32 cells of a vector register
_MOST_STREETS = 4


@by_reference
class Views(NamedTuple):
    """A player's tables for a walk, one [slot, bucket] table for each street.

    A walk in place updates rows when it visits them; other training collects increments in tables of their own.
    A slot is one action of a decision.

    regret        in place: the regrets; in training not in place: increments of regrets; with fixed strategies:
                  `no_tables`, or [slot, row] tables that receive the best response of a traverser whose infosets all
                  have their own row
    basis         in place: the table that gives the current strategy; in training not in place: the current strategy;
                  with fixed strategies: probabilities, or strategy sums if in place
    strategy_sum  in place: the strategy sums; in training not in place: their increments; with fixed strategies:
                  `no_tables`
    narrow        tables with 16-bit cells instead, in place or as fixed strategy sums; the other tables then have one
                  cell
    """

    regret: tuple[npt.NDArray[np.floating], ...]
    basis: tuple[npt.NDArray[np.floating], ...]
    strategy_sum: tuple[npt.NDArray[np.floating], ...]
    narrow: Int16Rows | None = None


def street_tables(tables: Sequence[npt.NDArray[Any]], player: int) -> tuple[npt.NDArray[Any], ...]:
    """Return a player's tables by street, chosen from the tables of all blocks (street and player).

    Streets that the game lacks get a table of one cell. The tuple always has the same length, so that kernels are not
    compiled anew for each number of streets.
    """
    chosen = tables[player::2]
    return (*chosen, *[np.zeros((1, 1), chosen[0].dtype)] * (_MOST_STREETS - len(chosen)))


def narrow_tables(
    kinds: Sequence[Sequence[npt.NDArray[Any]]], starts: Sequence[npt.NDArray[np.int64]], player: int
) -> Int16Rows:
    """Return a player's tables of 16-bit cells from those of all blocks.

    kinds   regrets, strategy sums, and the scales of both
    starts  [rows+1] for each block: the first slot of each row, and the end of the last
    """
    tables = [street_tables(blocks, player) for blocks in kinds]
    row = [np.repeat(np.arange(len(of) - 1), np.diff(of)) for of in starts[player::2]]
    row += [np.zeros(1, np.int64)] * (len(tables[0]) - len(row))
    return Int16Rows(tables[0], tables[1], tables[2], tables[3], tuple(row))


def no_tables(dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], ...]:
    """Return empty tables for a walk that neither reads nor fills them; None would compile kernels anew."""
    return (np.zeros((0, 0), dtype),) * _MOST_STREETS


class Traversal(NamedTuple):
    """Parameters of one player's walk.

    player        the traverser
    in_place      in training: rows are updated when visited; with fixed strategies: views hold strategy sums
    views         the traverser's tables
    opponent      the opponent's tables that give its strategy; `opponent_narrow` if they have 16-bit cells
    iteration     seed for rounding 16-bit cells
    respond_from  street from which best responses are taken; before it RESPOND follows the strategy
    """

    player: int
    in_place: bool | None
    views: Views
    opponent: tuple[npt.NDArray[np.floating], ...]
    opponent_narrow: Int16Rows | None = None
    iteration: int = 0
    respond_from: int = 0


class BettingRound(NamedTuple):
    """Numbers of a street, of a street tree on it, and of the board on which the tree is walked."""

    street: int
    tree: int
    board: int


class LineRanges(NamedTuple):
    """A player's ranges at the N members (nodes) of street trees, in vectors of W cells.

    row    [N] int32  row of `reach` that belongs to a member
    reach  [N, W]     deal weights times the player's strategy so far
    """

    row: npt.NDArray[np.int32]
    reach: npt.NDArray[np.floating]


class StreetExchange(NamedTuple):
    """Ranges and values passed between streets, by hand: S streets, H hands, K tasks, V values of a hand.

    reach  [2, S, H]  ranges passed down to a street: the traverser's, the opponent's
    value  [S, V, H]  values passed up from it
    task   [K, V, H]  values found by tasks
    """

    reach: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]
    task: npt.NDArray[np.floating]


@by_reference
class StreetScratch(NamedTuple):
    """Scratch arrays for one street tree of each street: N nodes, A cells, W cells a vector, S streets.

    In training V = 1 (FOLLOW).  With fixed strategies V = 2, or 1: FOLLOW alone, or RESPOND alone if `Views` collect
    nothing.

    member_first  [S] int64       first row of a street in arrays of N rows
    cell_first    [S] int64       first row of a street in sigma
    own           LineRanges      ranges of the traverser; set in training only
    opponent      LineRanges      ranges of the opponent
    value         [V, N+1, W]     counterfactual values of the traverser's hands; the last row is spare
    sigma         [A, W]          the traverser's strategy
    wide          [X+1, W]        rows of 16-bit cells as floats, for at most X actions
    by_hand       StreetExchange  ranges and values passed between streets
    state         [S, 4] int64    stack: street tree, board, end of boards, member
    lanes         TerminalLanes   ranges side by side, for terminals
    """

    member_first: npt.NDArray[np.int64]
    cell_first: npt.NDArray[np.int64]
    own: LineRanges
    opponent: LineRanges
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    wide: npt.NDArray[np.floating]
    by_hand: StreetExchange
    state: npt.NDArray[np.int64]
    lanes: TerminalLanes


def new_scratch(public: PublicTree, streets: range, dtype: npt.DTypeLike, values: int = 1) -> StreetScratch:
    """Return scratch arrays for walks of the streets `streets`, with `values` values for each hand."""
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
        StreetExchange(
            np.zeros((2, public.streets, hands), dtype),
            np.zeros((public.streets, values, hands), dtype),
            np.zeros((len(public.tasks), values, hands), dtype),
        ),
        np.zeros((public.streets, 4), np.int64),
        new_terminal_lanes(public.ranges, rows, width, hands, dtype),
    )


def one_value(room: StreetScratch) -> StreetScratch:
    """Return scratch arrays that share the memory of others, for walks with one value for each hand."""
    handed = [np.zeros((len(of), 1, of.shape[2]), of.dtype) for of in (room.by_hand.value, room.by_hand.task)]
    return room._replace(value=room.value[:1], by_hand=room.by_hand._replace(value=handed[0], task=handed[1]))
