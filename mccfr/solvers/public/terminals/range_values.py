"""Computes terminal values on one board, for as many ranges side by side as fill a cache line.

A *lane* is the number of a range side by side with others.  A *column* is a cell of a range on a board: a hand, or
hands that share a bucket.  With ranges side by side, `[column, lane]`, running totals and sums by card are vectors.  A
hand a, b meets the whole range minus the hands with a, minus those with b, plus those with both.  A showdown sweeps the
hands in order of strength and takes this difference twice: before and after the hands of equal strength are added.  The
sums begin at minus half of their totals, so the two add up to weaker minus stronger, and ties cancel (Johanson et al.
2011, "Accelerating best response calculation in large extensive games").

Ranges come as rows, `[row, column]`, and are transposed in blocks by loads and shuffles, which are several times faster
than compiled loops.  A block is 8 x 8 float32 or 4 x 4 float64 cells; all cells of the last block are written too.
Differences that are only rounding (`mccfr.common.float_tolerance`) become 0.

In kernels `ranges` is a Ranges, `lanes` a TerminalLanes, and `player` the player whose hands are valued.  `board` is an
index in `ranges`, `used` the number of lanes in use.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.common.float_tolerance import card_removal_share
from mccfr.solvers.public.hand_lists import EVERYTHING, NOT_READ
from mccfr.solvers.public.range_sums import Ranges
from mccfr.solvers.public.terminals.balances import balance
from mccfr.solvers.public.terminals.lane_code import (
    I64,
    LINE_BYTES,
    Code,
    aligned_zeros,
    counting,
    is_clear,
    transposed,
)
from mccfr.solvers.regret import as_element

NOWHERE = -1
"""Stands for "no row" where a row number is stored."""
RUN_OUTS = 16
"""Most first-street run-outs in one task of a thread: as many as a cache line has float32 cells."""


class Jobs(NamedTuple):
    """J jobs; each is a fold, a showdown, or one of each that meet the same range of the opponent.

    source  [J] int64     row of the opponent's range, in an array of ranges
    ending  [2, J] int64  row that receives the values of the fold (0) or showdown (1); NOWHERE: the job has none
    chips   [2, J] float  factor of the values. Fold: the valued player's chips, negative for a loss. Showdown: the
                          winner's chips less half the rake; at a run-out, times the probability of one board
    rake    [J] float     half of the pot's rake in chips. It is subtracted for every pair of hands at a showdown, won
                          or lost, so a loser pays none in all. `public_chance` does not use it
    order   [J] int64     job numbers in the order in which `public_chance` does them; other kernels ignore it
    """

    source: npt.NDArray[np.int64]
    ending: npt.NDArray[np.int64]
    chips: npt.NDArray[np.floating]
    rake: npt.NDArray[np.floating]
    order: npt.NDArray[np.int64]


def new_jobs(count: int, dtype: npt.DTypeLike) -> Jobs:
    """Return zeroed Jobs for `count` groups of terminals; `dtype` is that of chips and rake."""
    ending, chips = np.zeros((2, count), np.int64), np.zeros((2, count), dtype)
    return Jobs(np.zeros(count, np.int64), ending, chips, np.zeros(count, dtype), np.zeros(count, np.int64))


class Aim(NamedTuple):
    """Destinations of the values of L lanes, ranges side by side.

    target  [L] int64  row that receives a lane's values
    factor  [L]        factor of the values
    limit   [L]        values that are closer to 0 before the factor become 0
    """

    target: npt.NDArray[np.int64]
    factor: npt.NDArray[np.floating]
    limit: npt.NDArray[np.floating]


class TerminalLanes(NamedTuple):
    """Scratch for terminal values: L lanes (ranges side by side), N nodes, C cards, H hands.

    W is the largest number of columns on a board plus 1, rounded up; a column is a hand, or hands that share a bucket.

    reach       [max(W, H+1), L]  opponent's ranges by column of a board, or by hand; the row after them is 0 if read
    disjoint    [W, L]            reach of the opponent's hands that each hand can meet
    won         [W, L]            reach that each hand beats minus reach that beats it
    total       [C+3, L]          sums of reach by card, at the rows that `EveryHand.card` names
    running     [C+3, L]          the same sums during a sweep
    aim         Aim               destinations of the lanes
    jobs        Jobs              N+L jobs
    job_of      [N] int64         for each row of ranges, the number of the last job that meets this range
    hand_value  [H, L]            values of run-outs by hand
    """

    reach: npt.NDArray[np.floating]
    disjoint: npt.NDArray[np.floating]
    won: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]
    running: npt.NDArray[np.floating]
    aim: Aim
    jobs: Jobs
    job_of: npt.NDArray[np.int64]
    hand_value: npt.NDArray[np.floating]


def new_terminal_lanes(ranges: Ranges, rows: int, width: int, hands: int, dtype: npt.DTypeLike) -> TerminalLanes:
    """Return scratch for walks with `rows` ranges of `width` cells each, in a game of `hands` hands."""
    lanes, longest, rows = LINE_BYTES // np.dtype(dtype).itemsize, max(width, hands + 1), max(rows, RUN_OUTS)
    sums = 1 + max(NOT_READ, int(ranges.every.card.max(initial=0)))
    return TerminalLanes(
        aligned_zeros((longest, lanes), dtype),
        aligned_zeros((width, lanes), dtype),
        aligned_zeros((width, lanes), dtype),
        aligned_zeros((sums, lanes), dtype),
        aligned_zeros((sums, lanes), dtype),
        Aim(np.zeros(lanes, np.int64), aligned_zeros((lanes,), dtype), aligned_zeros((lanes,), dtype)),
        new_jobs(rows + lanes, dtype),
        np.zeros(rows, np.int64),
        aligned_zeros((hands, lanes), dtype),
    )


@intrinsic
def load_ranges(typing_context, reach, rows, source, count, used):
    """Copy a range to each lane: set reach[k, l] = rows[source[l], k] for k < count and l < used."""

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "reach rows source")
        count_, used_ = arguments[3:]
        size = code.lanes("reach")[1]
        with counting(builder, I64(0), used_, size) as lane:
            taken = [code.at("rows", code.index("source", builder.add(lane, I64(j)))) for j in range(size)]
            with counting(builder, I64(0), count_, size) as k:
                block = transposed(builder, [code.block(row, k, size) for row in taken])
                for i, column in enumerate(block):
                    row = code.at("reach", builder.add(k, I64(i)))
                    code.store(column, builder.gep(row, [lane]))
        return context.get_dummy_value()

    return types.void(reach, rows, source, types.int64, types.int64), codegen


@intrinsic
def store_values(typing_context, rows, target, table, factor, limit, count, used):
    """Set rows[target[l], k] = factor[l] · table[k, l], or 0 if table[k, l] is closer to 0 than limit[l].

    It is done for k < count and l < used: the values of each lane go to one row.
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "rows target table factor limit")
        count_, used_ = arguments[5:]
        size = code.lanes("table")[1]
        nothing = ir.Constant(code.vector("table", size), [0.0] * size)
        with counting(builder, I64(0), used_, size) as lane:
            given = [code.at("rows", code.index("target", builder.add(lane, I64(j)))) for j in range(size)]
            factor_, limit_ = (code.block(code.data(name), lane, size) for name in ("factor", "limit"))
            with counting(builder, I64(0), count_, size) as k:
                block = []
                for i in range(size):
                    found = code.block(code.at("table", builder.add(k, I64(i))), lane, size)
                    scaled = builder.fmul(found, factor_)
                    block.append(builder.select(is_clear(builder, found, limit_), scaled, nothing))
                for row, column in zip(given, transposed(builder, block), strict=True):
                    code.store(column, builder.gep(row, [k]))
        return context.get_dummy_value()

    return types.void(rows, target, table, factor, limit, types.int64, types.int64), codegen


@intrinsic
def _sum_lanes(typing_context, total, reach, place, card, rows, first, stop, used):
    """Set `total` to the sums of ranges by card and over all hands, for at least `used` lanes.

    place  [F] row of `reach` of each entry (a hand of a list)
    card   [F, 2] rows of `total` of its cards

    The hands are entries first to stop-1; `rows` is the number of rows of `total`.
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "total reach place card")
        rows_, first_, stop_, used_ = arguments[4:]

        def body(kind):
            nothing, whole, run = ir.Constant(kind, [0.0] * kind.count), code.room(kind), code.begin_run(kind)
            builder.store(nothing, whole)
            with counting(builder, I64(0), rows_) as row:
                code.store(nothing, code.row("total", row))
            with counting(builder, first_, stop_) as entry:
                code.add_hand("total", whole, run, entry, code.index("place", entry))
            code.end_run("total", run)
            code.store(builder.load(whole), code.row("total", I64(EVERYTHING)))

        code.by_width("total", used_, body)
        return context.get_dummy_value()

    return types.void(total, reach, place, card, *[types.int64] * 4), codegen


@intrinsic
def _meet_lanes(typing_context, tables, hands, first, stop, used):
    """Set disjoint[place[e]] to the reach that shares no card with entry e, from first to stop-1.

    tables  (disjoint, total, reach), all [., L]; total has sums of the opponent's reach by card
    hands   (place, card, same) of the player's entries (hands of a list): column, rows of its cards in `total`, and row
            of the same two cards in `reach`
    used    number of lanes
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "disjoint total reach place card same")
        first_, stop_, used_ = arguments[2:]

        def body(kind):
            whole = code.load(code.row("total", I64(EVERYTHING)))
            with counting(builder, first_, stop_) as entry:
                itself = code.load(code.row("reach", code.index("same", entry)))
                found = builder.fadd(code.rest("total", whole, entry), itself)
                code.store(found, code.row("disjoint", code.index("place", entry)))

        code.by_width("total", used_, body)
        return context.get_dummy_value()

    return types.void(tables, hands, *[types.int64] * 3), codegen


@intrinsic
def _win_lanes(typing_context, tables, theirs, mine, span):
    """Set won[place[e]] to the reach that entry e beats minus the reach that beats it.

    tables  (won, running, total, reach), all [., L]; total has sums of the other player's reach by card
    theirs  (place, card): rows of the other player's hands in reach, and of their cards in sums
    mine    (place, card, group) of the player's entries (hands of a list) by strength; a group has equal strength
    span    (rows of sums, first and stop of the groups, first entry of the player, first of the other, lanes used)
    """

    def codegen(context, builder, signature, arguments):
        names = "won running total reach their_place their_card place card group"
        code = Code(context, builder, signature.args, arguments, names)
        rows, first, stop, mine, theirs, used = (builder.extract_value(arguments[3], i) for i in range(6))
        code.by_width("won", used, lambda kind: _sweep(code, kind, rows, first, stop, mine, theirs))
        return context.get_dummy_value()

    return types.void(tables, theirs, mine, types.UniTuple(types.int64, 6)), codegen


def _sweep(code, kind, rows, first, stop, mine, theirs):
    """Emit the code of `_win_lanes`, a showdown sweep from weak to strong, for vectors of type `kind`."""
    builder = code.builder
    half, whole, run = ir.Constant(kind, [-0.5] * kind.count), code.room(kind), code.begin_run(kind)
    with counting(builder, I64(0), rows) as row:
        code.store(builder.fmul(half, code.load(code.row("total", row))), code.row("running", row))
    builder.store(builder.fmul(half, code.load(code.row("total", I64(EVERYTHING)))), whole)
    at_mine, at_theirs = code.room(I64), code.room(I64)
    builder.store(mine, at_mine)
    builder.store(theirs, at_theirs)

    def add_until(stop):
        with counting(builder, builder.load(at_theirs), stop) as entry:
            code.add_hand("running", whole, run, entry, code.index("their_place", entry), "their_card")
        code.end_run("running", run)
        builder.store(stop, at_theirs)

    with counting(builder, first, stop) as g:
        cell = builder.mul(g, I64(3))
        own, weaker, equal = (code.index("group", builder.add(cell, I64(i))) for i in range(3))
        begin, end = builder.load(at_mine), builder.add(mine, own)
        for which, until in enumerate((weaker, equal)):
            add_until(builder.add(theirs, until))
            now = builder.load(whole)
            with counting(builder, begin, end) as entry:
                place = code.row("won", code.index("place", entry))
                found = code.rest("running", now, entry)
                code.store(builder.fadd(code.load(place), found) if which else found, place)
        builder.store(end, at_mine)


@intrinsic
def _spread_lanes(typing_context, hand_value, won, column, hand, renamed, limit, first, stop):
    """Add won[column[e]] to hand_value[renamed[hand[e]]] for entries (hands of a list) first to stop-1.

    renamed  [H] image of each hand under a renaming of suits
    limit    [L] for each lane (range): values closer to 0 count as 0
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "hand_value won column hand renamed limit")
        first_, stop_ = arguments[6:]
        width = code.width = code.lanes("won")[0]
        nothing = ir.Constant(code.vector("won", width), [0.0] * width)
        limit_ = code.block(code.data("limit"), I64(0), width)
        with counting(builder, first_, stop_) as entry:
            found = code.load(code.row("won", code.index("column", entry)))
            found = builder.select(is_clear(builder, found, limit_), found, nothing)
            place = code.row("hand_value", code.index("renamed", code.index("hand", entry)))
            code.store(builder.fadd(code.load(place), found), place)
        return context.get_dummy_value()

    return types.void(hand_value, won, column, hand, renamed, limit, types.int64, types.int64), codegen


# --- kernels ---


@part_njit
def _sum_range(ranges, player, board, their_place, used, lanes):
    """Set `lanes.total` to `player`'s reach by card in `used` ranges, and set rounding limits.

    their_place  row in `lanes.reach` of each of `player`'s hands; here `player` is the opponent of the valued player
    """
    every, total, limit = ranges.every, lanes.total, lanes.aim.limit
    first, stop = every.first[player, board], every.first[player, board + 1]
    _sum_lanes(total, lanes.reach, their_place, every.card, np.int64(total.shape[0]), first, stop, used)
    share = as_element(limit, card_removal_share(limit))
    for lane in range(limit.shape[0]):
        limit[lane] = share * total[EVERYTHING, lane]


@part_njit
def _win(ranges, player, board, their_place, used, lanes):
    """Set `lanes.won` of a player's hands: reach that each one beats minus reach that beats it.

    their_place  row in `lanes.reach` of each of the other player's hands

    Call `_sum_range` of the other player first.
    """
    span = (
        np.int64(lanes.total.shape[0]),
        ranges.group_first[player, board],
        ranges.group_first[player, board + 1],
        ranges.first[player, board],
        ranges.every.first[1 - player, board],
        used,
    )
    tables = (lanes.won, lanes.running, lanes.total, lanes.reach)
    _win_lanes(tables, (their_place, ranges.every.card), (ranges.place, ranges.card, ranges.group), span)


@part_njit
def _aim(lanes, kind, start, used, nowhere):
    """Set `lanes.aim` for one kind of terminals: target row and factor of `used` jobs from `start` on.

    kind     0: folds; 1: showdowns
    nowhere  target row of the other lanes, and of jobs without such a terminal

    Job start+l is in lane l.  Returns whether there are any such terminals.
    """
    found, aim, jobs = False, lanes.aim, lanes.jobs
    for lane in range(aim.target.shape[0]):
        member = jobs.ending[kind, start + lane] if lane < used else NOWHERE
        found |= member != NOWHERE
        aim.target[lane] = member if member != NOWHERE else nowhere
        aim.factor[lane] = jobs.chips[kind, start + lane]
    return found


@part_njit
def _is_raked(jobs, start, used):
    """Return whether a showdown in any of the `used` jobs from number `start` on has rake."""
    raked = False
    for job in range(start, start + used):
        raked |= jobs.ending[1, job] != NOWHERE and jobs.rake[job] > 0
    return raked


@part_njit
def _meet(ranges, player, board, used, lanes):
    """Set `lanes.disjoint`, the other player's reach that each hand meets, for `used` ranges.

    Call `_sum_range` of the other player first.
    """
    tables, hands = (lanes.disjoint, lanes.total, lanes.reach), (ranges.place, ranges.card, ranges.same)
    _meet_lanes(tables, hands, ranges.first[player, board], ranges.first[player, board + 1], used)


@part_njit
def _take_rake(lanes, start, count):
    """Convert `lanes.won` from reach to chips after rake, for the jobs from `start` on.

    Rounding errors become 0.  Call it after `_aim`, whose factors become 1 and limits 0.

    count  number of the player's columns
    """
    aim, rake, zero = lanes.aim, lanes.jobs.rake, as_element(lanes.won, 0.0)
    for k in range(count):
        for lane in range(aim.limit.shape[0]):
            won, disjoint = lanes.won[k, lane], lanes.disjoint[k, lane]
            won = aim.factor[lane] * (won if abs(won) > aim.limit[lane] else zero)
            lanes.won[k, lane] = won - rake[start + lane] * (disjoint if abs(disjoint) > aim.limit[lane] else zero)
    for lane in range(aim.limit.shape[0]):
        aim.factor[lane], aim.limit[lane] = as_element(aim.factor, 1.0), as_element(aim.limit, 0.0)


@part_njit
def value_jobs(ranges, player, board, jobs, reach, lanes, value):
    """Write the values of a player's hands at the terminals of the first `jobs` jobs to rows of `value`.

    reach  [N, W] ranges of the other player by column of the board
    lanes  TerminalLanes; its `jobs` give the rows of ranges and values, and the chips
    value  [N+1, W] by column of the board, chips times the other player's reach; the last row is overwritten
    """
    other, width, nowhere = 1 - player, lanes.aim.target.shape[0], value.shape[0] - 1
    count = ranges.first[player, board + 1] - ranges.first[player, board]
    other_count = ranges.first[other, board + 1] - ranges.first[other, board]
    source, aim = lanes.jobs.source, lanes.aim
    for lane in range(width):
        source[jobs + lane] = source[max(jobs - 1, 0)]  # unused lanes repeat a range
    for start in range(0, jobs, width):
        used = np.int64(min(width, jobs - start))
        load_ranges(lanes.reach, reach, source[start:], other_count, used)
        for lane in range(width):
            lanes.reach[other_count, lane] = as_element(reach, 0.0)
        _sum_range(ranges, other, board, ranges.every.place, used, lanes)
        folds, raked = _aim(lanes, np.int64(0), start, used, nowhere), _is_raked(lanes.jobs, start, used)
        if folds or raked:
            _meet(ranges, player, board, used, lanes)
        if folds:
            store_values(value, aim.target, lanes.disjoint, aim.factor, aim.limit, count, used)
        if _aim(lanes, np.int64(1), start, used, nowhere):
            _win(ranges, player, board, ranges.every.place, used, lanes)
            if raked:
                _take_rake(lanes, start, count)
            store_values(value, aim.target, lanes.won, aim.factor, aim.limit, count, used)


@part_njit
def _walk_run_outs(ranges, copies, span, used, lanes):
    """Set `lanes.won`, the reach that a hand beats minus what beats it, summed over boards to follow.

    span  (player, street, board, first and stop of the last-street boards below it)

    The opponent's ranges are in `lanes.disjoint` [column of the board, lane].
    """
    player, street, board, first_board, stop_board = span
    other, width, dealt = 1 - player, lanes.aim.target.shape[0], copies.first[street + 1]
    every, mine = ranges.every, ranges.first[player, board]
    for entry in range(every.first[other, board], every.first[other, board + 1]):
        for lane in range(width):
            lanes.reach[every.hand[entry], lane] = lanes.disjoint[every.column[entry], lane]
    for hand in range(lanes.hand_value.shape[0]):
        for lane in range(width):
            lanes.hand_value[hand, lane] = as_element(lanes.won, 0.0)
    for below in range(first_board, stop_board):
        if dealt[below] == dealt[below + 1]:
            continue  # represented by another board
        _sum_range(ranges, other, below, every.ranked, used, lanes)
        _win(ranges, player, below, every.ranked, used, lanes)
        first, stop = every.first[player, below], every.first[player, below + 1]
        for i in range(dealt[below], dealt[below + 1]):
            renamed = copies.hand[copies.renaming[i]]
            arrays = (every.column, every.hand, renamed, lanes.aim.limit)
            _spread_lanes(lanes.hand_value, lanes.won, *arrays, first, stop)
    for k in range(ranges.first[player, board + 1] - mine):
        for lane in range(width):
            lanes.won[k, lane] = lanes.hand_value[ranges.hand[mine + k], lane]


@part_njit
def value_run_outs(public, span, jobs, reach, lanes, value):
    """Write the values of run-outs (all-ins before the last street), summed over boards that may follow.

    span   (traverser, street, board, first and stop of the last-street boards below it)
    jobs   number of jobs; their rows of values are lanes.jobs.ending[1], their factors lanes.jobs.chips[1]
    reach  [N, W] ranges of the other player by column of the board
    value  [N+1, W] by column of the board; the last row is overwritten

    Rake is the same on every board, and each pair of hands has equally many boards.  So it is taken once, from the
    reach met on the board before them.
    """
    player, _, board, _, _ = span
    ranges, other, width = public.ranges, 1 - player, lanes.aim.target.shape[0]
    other_count = ranges.first[other, board + 1] - ranges.first[other, board]
    count = ranges.first[player, board + 1] - ranges.first[player, board]
    source, aim, known = lanes.jobs.source, lanes.aim, public.balances.first[board] >= 0
    for lane in range(width):
        source[jobs + lane] = source[max(jobs - 1, 0)]
    for start in range(0, jobs, width):
        used = np.int64(min(width, jobs - start))
        load_ranges(lanes.reach if known else lanes.disjoint, reach, source[start:], other_count, used)
        if known:
            balance(ranges, public.balances, player, board, used, lanes)
        else:
            _walk_run_outs(ranges, public.copies, span, used, lanes)
        _aim(lanes, np.int64(1), start, used, value.shape[0] - 1)
        if _is_raked(lanes.jobs, start, used):
            load_ranges(lanes.reach, reach, source[start:], other_count, used)
            for lane in range(width):
                lanes.reach[other_count, lane] = as_element(reach, 0.0)
            _sum_range(ranges, other, board, ranges.every.place, used, lanes)
            _meet(ranges, player, board, used, lanes)
            _take_rake(lanes, start, count)
        for lane in range(width):
            aim.limit[lane] = as_element(value, 0.0)
        store_values(value, aim.target, lanes.won, aim.factor, aim.limit, count, used)
