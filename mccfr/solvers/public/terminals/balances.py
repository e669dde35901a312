"""Precomputes results of run-outs between hands, for all-ins before the river.

A run-out walks every possible board in every iteration to find numbers that depend only on hands and boards.  These are
the boards on which a hand beats another, minus those on which it loses.  With the numbers in a matrix, values are the
matrix times a range.  On narrow ranges this is some tens of times less work, and exact, since the entries are integers.
A board gets a matrix if this is less work than the walk and memory remains.

A *column* is a cell of a range on a board: a hand, or hands that share a bucket.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, njit, part_njit, types
from mccfr.cards.card_lists import ListedCards, of_hands
from mccfr.solvers.public.range_sums import Ranges
from mccfr.solvers.public.terminals.lane_code import I64, Code, counting, swept
from mccfr.solvers.regret import as_element

NO_BALANCES = -1
_SWEEPS = 4
"""Matrix cells that take as long as one hand of one board in the walk of a run-out."""


class Balances(NamedTuple):
    """Precomputed results of run-outs between hands, a matrix for each of some boards; T boards, X cells.

    first  [T] int64    index in `cells` of the first cell of a board's matrix; `NO_BALANCES`: it has none
    cells  [X] float32  matrices [columns of player 0, columns of player 1]. Each is followed by the number of hands in
                        each column, first player 0's columns, then player 1's

    A column is a cell of a range on the board: a hand, or hands that share a bucket.  A matrix entry is a sum over
    pairs of hands, one of each column: the last-street boards that player 0's hand wins minus those that it loses.
    """

    first: npt.NDArray[np.int64]
    cells: npt.NDArray[np.float32]


def no_balances(boards: int) -> Balances:
    """Return balances without a matrix for any of `boards` boards."""
    return Balances(np.full(boards, NO_BALANCES), np.zeros(0, np.float32))


def make_balances(
    cards: ListedCards, ranges: Ranges, last: npt.NDArray[np.int64], streets: Sequence[int], room: int
) -> Balances:
    """Return run-out results between hands for boards of some streets, as Balances.

    A run-out is an all-in before the last street.  Each board's results are one matrix.

    ranges   Ranges: hands and columns of each board
    last     [T, 2] last-street boards that follow each board: first and end
    streets  numbers of the streets, from 0, whose boards may get matrices; the last street is not one of them
    room     number of cells that all matrices together may have

    A board gets a matrix only if it is less work than walking its run-outs.  A street gets none if its matrices do not
    all fit into the cells that are left.
    """
    starts = np.cumsum([0, *(len(boards) for boards in cards.board_cards)])
    held = np.flatnonzero(cards.reach.any(axis=0))  # often about 50 of 1,326
    cards, every, found, columns = (
        of_hands(cards, held),
        ranges.every,
        no_balances(int(starts[-1])),
        np.diff(ranges.first),
    )
    strength, hand = np.ascontiguousarray(cards.strength, np.int32), np.searchsorted(held, every.hand)
    for street in streets:
        boards = np.arange(starts[street], starts[street + 1])
        boards = boards[(columns[:, boards] > 0).all(axis=0)]
        mine, theirs = columns[:, boards]
        walked = (last[boards, 1] - last[boards, 0]) * (mine + theirs)
        boards, mine, theirs = (each[mine * theirs <= _SWEEPS * walked] for each in (boards, mine, theirs))
        ends = len(found.cells) + np.cumsum(mine * theirs + mine + theirs)
        if not len(boards) or ends[-1] > room:
            continue
        found.first[boards] = np.append(len(found.cells), ends[:-1])
        found = Balances(found.first, np.append(found.cells, np.zeros(ends[-1] - len(found.cells), np.float32)))
        hands, most = (every.first, hand, every.column, ranges.first), np.diff(every.first)[:, boards].max(axis=1)
        showdowns = strength, last[boards] - starts[-2]
        room_for = np.zeros(most, np.int32), np.zeros(most[1], np.int32)
        count_boards(hands, np.ascontiguousarray(cards.hand_cards, np.int64), showdowns, boards, found, room_for)
    return found


@part_njit
def _meet(mine, theirs, hand_cards):
    """Return whether hands number `mine` and `theirs` of hand_cards [H, cards] share no card; -1: no card."""
    for one in range(hand_cards.shape[1]):
        for other in range(hand_cards.shape[1]):
            if hand_cards[mine, one] >= 0 and hand_cards[mine, one] == hand_cards[theirs, other]:
                return False
    return True


@part_njit
def _count(mine, theirs, strengths, won, there):
    """Count for each pair of hands the boards that the first one wins minus those that it loses.

    mine, theirs  [n] and [m] numbers of hands
    strengths     [B, H] int32; below 0: the hand shares a card with the board
    won           [n, m] int32 receives the counts of each hand of `mine` against each of `theirs`
    there         [m] int32 scratch
    """
    for i in range(mine.shape[0]):
        for j in range(theirs.shape[0]):
            won[i, j] = 0
    for row in range(strengths.shape[0]):
        for j in range(theirs.shape[0]):
            there[j] = strengths[row, theirs[j]]
        for i in range(mine.shape[0]):
            here, out = strengths[row, mine[i]], won[i]
            if here < 0:
                continue  # the hand shares a card with the board
            for j in range(theirs.shape[0]):
                beaten = np.int32(here > there[j]) - np.int32(here < there[j])
                out[j] += beaten * np.int32(there[j] >= 0)


@njit
def count_boards(hands, hand_cards, showdowns, boards, balances, room):
    """Fill the matrices of `boards` in `balances`, and after each the numbers of hands of its columns.

    A matrix has for pairs of hands the last-street boards that player 0 wins, minus those that it loses.

    hands       arrays (`first`, `hand` and `column` of EveryHand; `first` of Ranges). The numbers in `hand` are rows of
                `hand_cards` and columns of `strength`
    hand_cards  [H, cards] int64; -1 for missing cards
    showdowns   (strength [B, H] int32, first and end [n, 2] of the last-street boards below each board)
    room        ([h, k], [k]) int32 scratch for h and k hands of the players
    """
    first, hand, column, first_column = hands
    won, there = room
    for n in range(boards.shape[0]):
        board = boards[n]
        mine, theirs = (first[0, board], first[0, board + 1]), (first[1, board], first[1, board + 1])
        below = showdowns[0][showdowns[1][n, 0] : showdowns[1][n, 1]]
        _count(hand[mine[0] : mine[1]], hand[theirs[0] : theirs[1]], below, won, there)
        rows = first_column[0, board + 1] - first_column[0, board]
        columns = first_column[1, board + 1] - first_column[1, board]
        at, sizes = balances.first[board], balances.first[board] + rows * columns
        for i in range(mine[0], mine[1]):
            row = at + column[i] * columns
            balances.cells[sizes + column[i]] += np.float32(1)
            for j in range(theirs[0], theirs[1]):
                if _meet(hand[i], hand[j], hand_cards):
                    balances.cells[row + column[j]] += np.float32(won[i - mine[0], j - theirs[0]])
        for j in range(theirs[0], theirs[1]):
            balances.cells[sizes + rows + column[j]] += np.float32(1)


@intrinsic
def _times_lanes(typing_context, tables, span, used):
    """Set won[i] to the sum over j of cells[at + i·row_step + j·step] · reach[j], in each lane.

    tables  (won [., L], reach [., L], cells [X]), L lanes (ranges side by side)
    span    (at, rows, columns, row_step, step), with i < rows and j < columns
    used    number of lanes
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "won reach cells")
        at, rows, columns, row_step, step = (builder.extract_value(arguments[1], i) for i in range(5))
        last = builder.sub(rows, I64(1))

        def body(kind):
            # As many sums as registers hold, so that additions do not wait for each other.
            together = 4 * code.lanes("won")[0] // kind.count
            nothing, element = ir.Constant(kind, [0.0] * kind.count), code.element("won")
            flags = ("contract",)
            spread = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
            with counting(builder, I64(0), rows, together) as i:
                behind = [builder.add(i, I64(k)) for k in range(together)]
                mine = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in behind]
                starts = [builder.add(at, builder.mul(row, row_step)) for row in mine]

                def add(j, sums):
                    reach, place = code.load(code.row("reach", j)), builder.mul(j, step)
                    found = []
                    for start, total in zip(starts, sums, strict=True):
                        cell = builder.load(builder.gep(code.data("cells"), [builder.add(start, place)]))
                        cell = cell if cell.type == element else builder.fpext(cell, element)
                        one = builder.insert_element(ir.Constant(kind, ir.Undefined), cell, I64(0))
                        cell = builder.shuffle_vector(one, one, spread)
                        found.append(builder.fadd(total, builder.fmul(cell, reach, flags=flags), flags=flags))
                    return found

                for row, total in zip(mine, swept(builder, I64(0), columns, [nothing] * together, add), strict=True):
                    code.store(total, code.row("won", row))

        code.by_width("won", arguments[2], body)
        return context.get_dummy_value()

    return types.void(tables, types.UniTuple(types.int64, 5), types.int64), codegen


@part_njit
def balance(ranges, balances, player, board, used, lanes):
    """Set lanes.won [column, lane] of a player for run-outs of a board, by the board's matrix.

    For each hand it is the number of last-street boards won minus lost against each of the opponent's hands, times that
    hand's reach, summed up.  For a column of several hands it is their mean.  The opponent's ranges are in
    `lanes.reach` [column, lane]; a lane is one of several ranges side by side.

    ranges    Ranges: columns of each board
    balances  Balances; `board` must have a matrix
    used      number of lanes in use
    lanes     TerminalLanes
    """
    rows = ranges.first[0, board + 1] - ranges.first[0, board]
    columns = ranges.first[1, board + 1] - ranges.first[1, board]
    at, tables, one = balances.first[board], (lanes.won, lanes.reach, balances.cells), np.int64(1)
    sizes, count = at + rows * columns, rows
    if player == 0:
        _times_lanes(tables, (at, rows, columns, columns, one), used)
    else:
        _times_lanes(tables, (at, columns, rows, one, columns), used)
        sizes, count = sizes + rows, columns
    for k in range(count):
        size = balances.cells[sizes + k]
        size = as_element(lanes.won, size if player == 0 else -size)
        for lane in range(used):
            lanes.won[k, lane] /= size
