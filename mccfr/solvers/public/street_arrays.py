"""Arrays for a walk of one street's betting: players' tables, the board, and scratch arrays."""

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

    A slot is one action of a decision.  Tables depend on the walk: training in place (rows are updated when they are
    visited), training by increments (added up in tables of their own), or fixed strategies.

    regret        in place: the regrets; by increments: increments of regrets; fixed: empty, or tables that receive a
                  best response (1 for the best action, else 0) of a traverser whose hands on each board have their own
                  rows
    basis         in place: regrets that give the current strategy; by increments: the current strategy; fixed:
                  probabilities, or strategy sums if `in_place` of the walk is True
    strategy_sum  in place: the strategy sums; by increments: their increments; fixed: empty
    narrow        Int16Rows: tables with 16-bit cells, used instead of the others in place or for fixed strategy sums;
                  None: the others are used
    """

    regret: tuple[npt.NDArray[np.floating], ...]
    basis: tuple[npt.NDArray[np.floating], ...]
    strategy_sum: tuple[npt.NDArray[np.floating], ...]
    narrow: Int16Rows | None = None


def street_tables(tables: Sequence[npt.NDArray[Any]], player: int) -> tuple[npt.NDArray[Any], ...]:
    """Return a player's tables by street, chosen from the tables of all blocks.

    tables  [slot, bucket] tables by block (street and player), 2·street + player

    The tuple always has four tables, so that kernels are not compiled anew for each number of streets.  Streets that
    the game lacks get a table of one cell.
    """
    chosen = tables[player::2]
    return (*chosen, *[np.zeros((1, 1), chosen[0].dtype)] * (_MOST_STREETS - len(chosen)))


def narrow_tables(
    kinds: Sequence[Sequence[npt.NDArray[Any]]], starts: Sequence[npt.NDArray[np.int64]], player: int
) -> Int16Rows:
    """Return a player's tables of 16-bit cells from those of all blocks (2·street + player).

    kinds   four lists of tables by block: regrets, strategy sums, scales of regrets, scales of strategy sums. A row's
            cells of one bucket are in units of 2^(scale - 128)
    starts  [rows+1] for each block: the first slot of each row (decision), and the end of the last
    """
    tables = [street_tables(blocks, player) for blocks in kinds]
    row = [np.repeat(np.arange(len(of) - 1), np.diff(of)) for of in starts[player::2]]
    row += [np.zeros(1, np.int64)] * (len(tables[0]) - len(row))
    return Int16Rows(tables[0], tables[1], tables[2], tables[3], tuple(row))


def no_tables(dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], ...]:
    """Return an empty table for each street, for a walk that neither reads nor fills it.

    They have the type that kernels are compiled for; None in their place would compile kernels anew.
    """
    return (np.zeros((0, 0), dtype),) * _MOST_STREETS


class Traversal(NamedTuple):
    """Parameters of one player's walk.

    player           the traverser
    in_place         True, or None for False. In training: rows are updated when they are visited. With fixed
                     strategies: `Views.basis` holds strategy sums, not probabilities
    views            the traverser's tables
    opponent         the opponent's tables that give its strategy: [slot, bucket] by street, its `Views.basis`
    opponent_narrow  None, or the opponent's tables with 16-bit cells, used instead of `opponent`
    iteration        seed for rounding 16-bit cells
    respond_from     first street on which the traverser's best response deviates; before it, it follows the strategy
    fixed            True: strategies are fixed and only values are computed; so too if a kernel's `step` is None
    """

    player: int
    in_place: bool | None
    views: Views
    opponent: tuple[npt.NDArray[np.floating], ...]
    opponent_narrow: Int16Rows | None
    iteration: int
    respond_from: int
    fixed: bool


class BettingRound(NamedTuple):
    """A street tree (betting of a street after one line of earlier streets) and a board for it.

    street  number of the street, from 0
    tree    number of the street tree among those of all streets
    board   number of the board among those of all streets
    """

    street: int
    tree: int
    board: int


class LineRanges(NamedTuple):
    """A player's ranges at the N nodes of street trees, in vectors of W cells.

    A cell is a hand of the board, or hands that share a bucket.

    row    [N] int32  row of `reach` with the range at a node; several nodes may share one
    reach  [N, W]     weight of the hand in the player's range at the root, times the probabilities of the player's
                      actions so far
    """

    row: npt.NDArray[np.int32]
    reach: npt.NDArray[np.floating]


class StreetExchange(NamedTuple):
    """Ranges and values passed between streets, by number of the hand: S streets, H hands, K tasks.

    V is the number of values of a hand: of the strategy, of a best response, or both.  A task is a part of the walk
    below the first street that one thread does.

    reach  [2, S, H]  ranges passed down to a street: the traverser's (used in training only), the opponent's
    value  [S, V, H]  values of the traverser's hands passed up from a street
    task   [K, V, H]  values of the traverser's hands computed by each task
    """

    reach: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]
    task: npt.NDArray[np.floating]


@by_reference
class StreetScratch(NamedTuple):
    """Scratch arrays of a walk, with room for one street tree of each of its streets.

    A street tree is the betting of one street after one betting line of earlier streets.  N nodes, A actions of one
    player, at most X at a decision; S streets; W cells of a vector.  A cell is a hand of a board, or hands that share a
    bucket.

    In training V = 1: the value of the strategy (FOLLOW).  With fixed strategies V = 2 adds that of a best response
    (RESPOND).  V = 1 is then only that of the best response, which follows the strategy before street `respond_from`.

    member_first  [S] int64       first row of a street in arrays of N rows
    cell_first    [S] int64       first row of a street in sigma
    own           LineRanges      ranges of the traverser; `reach` is set in training only
    opponent      LineRanges      ranges of the opponent
    value         [V, N+1, W]     counterfactual values of the traverser's hands; the last row is spare
    sigma         [A, W]          the traverser's strategy
    wide          [X+1, W]        rows of 16-bit cells as floats
    by_hand       StreetExchange  ranges and values passed between streets
    state         [S, 4] int64    stack, a row for each street: street tree that is walked, current board, end of its
                                  boards, and the exit (node to the next street) where the walk is
    lanes         TerminalLanes   scratch for the values of folds and showdowns of several ranges side by side
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
    """Return scratch arrays of zeros for walks of some streets.

    public   PublicTree that is walked
    streets  streets whose betting the scratch has room for; ranges and values passed between streets have room for all
    dtype    of ranges, strategies and values: float32 or float64
    values   number of values of each hand: 1, or 2 for fixed strategies (of the strategy and of a best response)
    """
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
    """Return scratch for one value of each hand, which shares most arrays with the scratch `room`.

    room  StreetScratch for one or two values of each hand

    Only `by_hand.value` and `by_hand.task` are new arrays, filled with zeros; `value` is a view.
    """
    handed = [np.zeros((len(of), 1, of.shape[2]), of.dtype) for of in (room.by_hand.value, room.by_hand.task)]
    return room._replace(value=room.value[:1], by_hand=room.by_hand._replace(value=handed[0], task=handed[1]))
