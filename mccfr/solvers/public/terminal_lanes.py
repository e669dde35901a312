"""Terminal values of ranges on one board, as many ranges side by side as fill a cache line.

Lying side by side, `[hand, lane]`, running totals and sums by card are vectors, an instruction or two each; gathered
look-ups for one range at a time took five times as long.  A hand a, b meets the whole range less what holds a, less
what holds b, plus what holds both.  At a showdown one sweep in order of strength takes the same before and after the
hands of equal strength are added, with sums that begin at minus half of their totals: the two add up to weaker minus
stronger, and ties, the same hand among them, cancel.  (Inclusion and exclusion: Johanson et al. 2011, "Accelerating
best response calculation in large extensive games".)

Ranges come as rows, `[row, place]`, and are transposed by loads and shuffles, square blocks of 32 bytes a row, both
ways: what compilers make of such loops, gather instructions, is several times slower.  Small street trees have few
ranges: where they fill no more than half of the lanes, sweeps take half of a cache line.

Exact up to rounding; differences that are nothing but rounding (`mccfr.noise`) are set to 0.
"""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.noise import card_removal_share
from mccfr.solvers.public.range_sums import EVERYTHING, NO_CARD, NOT_READ, Ranges
from mccfr.solvers.regret import as_element

_LINE_BYTES, _BLOCK_BYTES = 64, 32
_I64 = ir.IntType(64)
NOWHERE = -1
RUN_OUTS = 16
"""Run-outs of a first street that are one task: as many as lie side by side in float32."""


class TerminalLanes(NamedTuple):
    """Room for terminal values.  L lanes, W cells a vector of hands, N members, C cards, H hands.

    reach    [W, L]      ranges under way, by place in a board's list, or [H, L] by hand; a row behind them is 0
    met      [W, L]      reach that each hand meets
    won      [W, L]      reach that it beats less reach that beats it
    total    [C+3, L]    sums by row of `EveryHand.card`
    running  [C+3, L]    the same while a sweep is under way
    factor, limit  [L]   what values are multiplied with; those closer to 0 are set to 0
    target   [L] int64   the row that values go to
    source   [N+L] int64    jobs: the row of the range they take
    ending   [2, N+L] int64 the member whose value a fold gives (0) or a showdown (1), NOWHERE: none
    chips    [2, N+L]       what that value is multiplied with
    job_of   [N] int64      the last job that took the range of a row
    hand_value  [H, L]   values of run-outs by hand
    """

    reach: npt.NDArray[np.floating]
    met: npt.NDArray[np.floating]
    won: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]
    running: npt.NDArray[np.floating]
    factor: npt.NDArray[np.floating]
    limit: npt.NDArray[np.floating]
    target: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    ending: npt.NDArray[np.int64]
    chips: npt.NDArray[np.floating]
    job_of: npt.NDArray[np.int64]
    hand_value: npt.NDArray[np.floating]


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[np.floating]:
    """Zeros that begin with a cache line."""
    size, cells = np.dtype(dtype).itemsize, int(np.prod(shape))
    room = np.zeros(cells + _LINE_BYTES // size, dtype)
    start = -room.ctypes.data % _LINE_BYTES // size
    found: npt.NDArray[np.floating] = room[start : start + cells].reshape(shape)
    return found


def new_terminal_lanes(ranges: Ranges, rows: int, width: int, hands: int, dtype: npt.DTypeLike) -> TerminalLanes:
    """Room for walks with so many rows of ranges, `width` cells each, of a game with so many hands."""
    lanes, longest, rows = _LINE_BYTES // np.dtype(dtype).itemsize, max(width, hands + 1), max(rows, RUN_OUTS)
    sums = 1 + max(NOT_READ, int(ranges.every.card.max(initial=0)))
    return TerminalLanes(
        aligned_zeros((longest, lanes), dtype),
        aligned_zeros((width, lanes), dtype),
        aligned_zeros((width, lanes), dtype),
        aligned_zeros((sums, lanes), dtype),
        aligned_zeros((sums, lanes), dtype),
        aligned_zeros((lanes,), dtype),
        aligned_zeros((lanes,), dtype),
        np.zeros(lanes, np.int64),
        np.zeros(rows + lanes, np.int64),
        np.zeros((2, rows + lanes), np.int64),
        np.zeros((2, rows + lanes), dtype),
        np.zeros(rows, np.int64),
        aligned_zeros((hands, lanes), dtype),
    )


# --- code ---


@contextmanager
def _counting(builder, start, stop, step=1):
    """A loop from start to stop, both int64."""
    before, function = builder.block, builder.function
    head, body, end = (function.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(_I64)
    i.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", i, stop), body, end)
    builder.position_at_end(body)
    yield i
    i.add_incoming(builder.add(i, _I64(step)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)


class _Code:
    """What the intrinsics below are written with: one call's arrays by their names."""

    def __init__(self, context, builder, kinds, values, names):
        self.builder, self._context = builder, context
        self.width = 0  # lanes that are worked on: see `by_width`
        self.names = names.split()
        self._made = {
            name: (kind, context.make_array(kind)(context, builder, value))
            for name, kind, value in zip(self.names, kinds, values, strict=False)
            if isinstance(kind, types.Array)
        }

    def data(self, name):
        """Pointer to an array's first cell."""
        return self._made[name][1].data

    def element(self, name):
        """Its cells' type."""
        return self.data(name).type.pointee

    def vector(self, name, count):
        """A vector of its cells."""
        return ir.VectorType(self.element(name), count)

    def by_width(self, name, used, body):
        """The code of `body` twice, for all lanes of an array, and for half of them where no more are used."""
        lanes = self.lanes(name)[0]
        few = self.builder.icmp_signed("<=", used, _I64(lanes // 2))
        with self.builder.if_else(few) as branches:
            for branch, self.width in zip(branches, (lanes // 2, lanes), strict=True):
                with branch:
                    body(self.vector(name, self.width))

    def lanes(self, name):
        """Lanes of a row, and of a block."""
        size = self._made[name][0].dtype.bitwidth // 8
        return _LINE_BYTES // size, _BLOCK_BYTES // size

    def index(self, name, place):
        """An unsigned cell as int64."""
        cell = self.builder.load(self.builder.gep(self.data(name), [place]))
        return cell if cell.type == _I64 else self.builder.zext(cell, _I64)

    def row(self, name, row):
        """Pointer to the lanes of a row that are worked on, as a vector."""
        cell = self.builder.gep(self.data(name), [self.builder.mul(row, _I64(self.lanes(name)[0]))])
        return self.builder.bitcast(cell, self.vector(name, self.width).as_pointer())

    def at(self, name, row):
        """Pointer to the first cell of a row of an array of two axes."""
        kind, made = self._made[name]
        strides = self.builder.extract_value(made.strides, 0)
        cells = self.builder.sdiv(strides, strides.type(kind.dtype.bitwidth // 8))
        return self.builder.gep(self.data(name), [self.builder.mul(row, cells)])

    def load(self, pointer):
        """A vector at a pointer, aligned as its cells."""
        return self.builder.load(pointer, align=4)

    def store(self, value, pointer):
        """The other way."""
        self.builder.store(value, self.builder.bitcast(pointer, value.type.as_pointer()), align=4)

    def block(self, pointer, place, count):
        """A block of cells from a place behind a pointer on."""
        cell = self.builder.gep(pointer, [place])
        kind = ir.VectorType(pointer.type.pointee, count)
        return self.load(self.builder.bitcast(cell, kind.as_pointer()))

    def room(self, kind):
        """A variable."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def cards(self, entry, card="card"):
        """The rows of sums that a hand's cards have."""
        first = self.builder.mul(entry, _I64(2))
        return self.index(card, first), self.index(card, self.builder.add(first, _I64(1)))

    def add_hand(self, sums, whole, entry, place, cards="card"):
        """Add the range of a hand of the other player's to sums by card and to the whole."""
        builder = self.builder
        reach = self.load(self.row("reach", place))
        builder.store(builder.fadd(builder.load(whole), reach), whole)
        for card in self.cards(entry, cards):
            row = builder.select(builder.icmp_unsigned("==", card, _I64(NO_CARD)), _I64(NOT_READ), card)
            pointer = self.row(sums, row)
            self.store(builder.fadd(self.load(pointer), reach), pointer)

    def rest(self, sums, whole, entry):
        """The whole less what holds a card of a hand."""
        found = whole
        for card in self.cards(entry):
            found = self.builder.fsub(found, self.load(self.row(sums, card)))
        return found


def _transposed(builder, rows):
    """A square block: [j] lane i of what [i] lane j was."""
    count = len(rows)
    half = count // 2

    def shuffled(one, other, chosen):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), count), chosen)
        return builder.shuffle_vector(one, other, mask)

    pairs = []  # of 64 bits each
    if count == 8:
        for i in range(0, count, 2):
            one, other = rows[i], rows[i + 1]
            low = [0, 8, 1, 9, 4, 12, 5, 13]
            pairs.append((shuffled(one, other, low), shuffled(one, other, [p + 2 for p in low])))
    else:
        pairs = [(row,) for row in rows]
    # Now 64-bit cells: within halves of 128 bits, then across them.
    wide = 2 if count == 8 else 1
    fours = []
    for i in range(0, len(pairs), 2):
        for one, other in zip(pairs[i], pairs[i + 1], strict=True):
            low = [p + half * h for h in range(2) for p in (*range(wide), *range(count, count + wide))]
            fours.append((shuffled(one, other, low), shuffled(one, other, [p + wide for p in low])))
    found = [None] * count
    lower = [*range(half), *range(count, count + half)]
    columns = len(fours) // 2
    for c in range(columns):
        for place in range(2):
            one, other = fours[c][place], fours[c + columns][place]
            row = 2 * c + place
            found[row] = shuffled(one, other, lower)
            found[row + half] = shuffled(one, other, [p + half for p in lower])
    return found


def _clear(builder, found, limit):
    """Which lanes are not closer to 0 than a limit."""
    below = builder.fsub(ir.Constant(limit.type, [0.0] * limit.type.count), limit)
    return builder.or_(builder.fcmp_ordered(">=", found, limit), builder.fcmp_ordered("<=", found, below))


@intrinsic
def _load_lanes(typing_context, reach, rows, source, count, used):
    """reach[k, l] = rows[source[l], k] for the first `used` lanes, in whole blocks."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature.args, arguments, "reach rows source")
        count_, used_ = arguments[3:]
        size = code.lanes("reach")[1]
        with _counting(builder, _I64(0), used_, size) as lane:
            taken = [code.at("rows", code.index("source", builder.add(lane, _I64(j)))) for j in range(size)]
            with _counting(builder, _I64(0), count_, size) as k:
                block = _transposed(builder, [code.block(row, k, size) for row in taken])
                for i, column in enumerate(block):
                    row = code.at("reach", builder.add(k, _I64(i)))
                    code.store(column, builder.gep(row, [lane]))
        return context.get_dummy_value()

    return types.void(reach, rows, source, types.int64, types.int64), codegen


@intrinsic
def _store_lanes(typing_context, rows, target, table, factor, limit, count, used):
    """rows[target[l], k] = factor[l] · table[k, l], or 0 where that is closer to 0 than limit[l]."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature.args, arguments, "rows target table factor limit")
        count_, used_ = arguments[5:]
        size = code.lanes("table")[1]
        nothing = ir.Constant(code.vector("table", size), [0.0] * size)
        with _counting(builder, _I64(0), used_, size) as lane:
            given = [code.at("rows", code.index("target", builder.add(lane, _I64(j)))) for j in range(size)]
            factor_, limit_ = (code.block(code.data(name), lane, size) for name in ("factor", "limit"))
            with _counting(builder, _I64(0), count_, size) as k:
                block = []
                for i in range(size):
                    found = code.block(code.at("table", builder.add(k, _I64(i))), lane, size)
                    scaled = builder.fmul(found, factor_)
                    block.append(builder.select(_clear(builder, found, limit_), scaled, nothing))
                for row, column in zip(given, _transposed(builder, block), strict=True):
                    code.store(column, builder.gep(row, [k]))
        return context.get_dummy_value()

    return types.void(rows, target, table, factor, limit, types.int64, types.int64), codegen


@intrinsic
def _sum_lanes(typing_context, total, reach, place, card, rows, first, stop, used):
    """total = sums by card, and of everything, of `used` ranges at least, whose rows in reach are place[first:stop]."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature.args, arguments, "total reach place card")
        rows_, first_, stop_, used_ = arguments[4:]

        def body(kind):
            nothing, whole = ir.Constant(kind, [0.0] * kind.count), code.room(kind)
            builder.store(nothing, whole)
            with _counting(builder, _I64(0), rows_) as row:
                code.store(nothing, code.row("total", row))
            with _counting(builder, first_, stop_) as entry:
                code.add_hand("total", whole, entry, code.index("place", entry))
            code.store(builder.load(whole), code.row("total", _I64(EVERYTHING)))

        code.by_width("total", used_, body)
        return context.get_dummy_value()

    return types.void(total, reach, place, card, *[types.int64] * 4), codegen


@intrinsic
def _meet_lanes(typing_context, met, total, reach, place, card, same, first, stop, used):
    """met[place[e]] = what the hand of entry e in first .. stop-1 meets."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature.args, arguments, "met total reach place card same")
        first_, stop_, used_ = arguments[6:]

        def body(kind):
            whole = code.load(code.row("total", _I64(EVERYTHING)))
            with _counting(builder, first_, stop_) as entry:
                itself = code.load(code.row("reach", code.index("same", entry)))
                found = builder.fadd(code.rest("total", whole, entry), itself)
                code.store(found, code.row("met", code.index("place", entry)))

        code.by_width("total", used_, body)
        return context.get_dummy_value()

    return types.void(met, total, reach, place, card, same, *[types.int64] * 3), codegen


@intrinsic
def _win_lanes(typing_context, won, running, total, reach, their_place, their_card, place, card, group, span):
    """won[place[e]] = what the hand of entry e beats less what beats it, for a player's hands in order of strength.

    their_place, their_card  rows of the other player's hands in reach, and of their cards in sums
    span                     (rows of sums, first and stop of the groups, first entry of the player's, of the other's,
                             lanes that are used)
    """

    def codegen(context, builder, signature, arguments):
        names = "won running total reach their_place their_card place card group"
        code = _Code(context, builder, signature.args, arguments, names)
        rows, first, stop, mine, theirs, used = (builder.extract_value(arguments[9], i) for i in range(6))
        code.by_width("won", used, lambda kind: _sweep(code, kind, rows, first, stop, mine, theirs))
        return context.get_dummy_value()

    spans = types.UniTuple(types.int64, 6)
    return types.void(won, running, total, reach, their_place, their_card, place, card, group, spans), codegen


def _sweep(code, kind, rows, first, stop, mine, theirs):
    """What `_win_lanes` does, with vectors of a kind."""
    builder = code.builder
    half, whole = ir.Constant(kind, [-0.5] * kind.count), code.room(kind)
    with _counting(builder, _I64(0), rows) as row:
        code.store(builder.fmul(half, code.load(code.row("total", row))), code.row("running", row))
    builder.store(builder.fmul(half, code.load(code.row("total", _I64(EVERYTHING)))), whole)
    at_mine, at_theirs = code.room(_I64), code.room(_I64)
    builder.store(mine, at_mine)
    builder.store(theirs, at_theirs)

    def add_until(stop):
        with _counting(builder, builder.load(at_theirs), stop) as entry:
            code.add_hand("running", whole, entry, code.index("their_place", entry), "their_card")
        builder.store(stop, at_theirs)

    with _counting(builder, first, stop) as g:
        cell = builder.mul(g, _I64(3))
        own, weaker, equal = (code.index("group", builder.add(cell, _I64(i))) for i in range(3))
        begin, end = builder.load(at_mine), builder.add(mine, own)
        for which, until in enumerate((weaker, equal)):
            add_until(builder.add(theirs, until))
            now = builder.load(whole)
            with _counting(builder, begin, end) as entry:
                place = code.row("won", code.index("place", entry))
                found = code.rest("running", now, entry)
                code.store(builder.fadd(code.load(place), found) if which else found, place)
        builder.store(end, at_mine)


@intrinsic
def _spread_lanes(typing_context, hand_value, won, column, hand, renamed, limit, first, stop):
    """hand_value[renamed[hand[e]]] += won[column[e]] for entries first .. stop-1, noise left out."""

    def codegen(context, builder, signature, arguments):
        code = _Code(context, builder, signature.args, arguments, "hand_value won column hand renamed limit")
        first_, stop_ = arguments[6:]
        width = code.width = code.lanes("won")[0]
        nothing = ir.Constant(code.vector("won", width), [0.0] * width)
        limit_ = code.block(code.data("limit"), _I64(0), width)
        with _counting(builder, first_, stop_) as entry:
            found = code.load(code.row("won", code.index("column", entry)))
            found = builder.select(_clear(builder, found, limit_), found, nothing)
            place = code.row("hand_value", code.index("renamed", code.index("hand", entry)))
            code.store(builder.fadd(code.load(place), found), place)
        return context.get_dummy_value()

    return types.void(hand_value, won, column, hand, renamed, limit, types.int64, types.int64), codegen


# --- kernels ---


@part_njit
def _sum_range(ranges, player, board, their_place, used, lanes):
    """Set `lanes.total` and `lanes.limit` for `used` ranges of the one who is met, in `lanes.reach` by their_place."""
    every, total = ranges.every, lanes.total
    first, stop = every.first[player, board], every.first[player, board + 1]
    _sum_lanes(total, lanes.reach, their_place, every.card, np.int64(total.shape[0]), first, stop, used)
    share = as_element(lanes.limit, card_removal_share(lanes.limit))
    for lane in range(lanes.limit.shape[0]):
        lanes.limit[lane] = share * total[EVERYTHING, lane]


@part_njit
def _win(ranges, player, board, their_place, used, lanes):
    """Set `lanes.won` of a player's hands on a board, after `_sum_range` of the other's."""
    span = (
        np.int64(lanes.total.shape[0]),
        ranges.group_first[player, board],
        ranges.group_first[player, board + 1],
        ranges.first[player, board],
        ranges.every.first[1 - player, board],
        used,
    )
    arrays = (their_place, ranges.every.card, ranges.place, ranges.card, ranges.group)
    _win_lanes(lanes.won, lanes.running, lanes.total, lanes.reach, *arrays, span)


@part_njit
def _aim(lanes, kind, start, used, nowhere):
    """Set `lanes.target` and `lanes.factor` for a kind of ending of the jobs from `start` on; whether there are any."""
    found = False
    for lane in range(lanes.target.shape[0]):
        member = lanes.ending[kind, start + lane] if lane < used else NOWHERE
        found |= member != NOWHERE
        lanes.target[lane] = member if member != NOWHERE else nowhere
        lanes.factor[lane] = lanes.chips[kind, start + lane]
    return found


@part_njit
def value_jobs(ranges, player, board, jobs, reach, lanes, value):
    """Values of a player's hands at the endings of all jobs: rows of value [N+1, W]; the last row is overwritten.

    reach [N, W] has the ranges of the other player by column of the board.
    """
    other, width, nowhere = 1 - player, lanes.target.shape[0], value.shape[0] - 1
    mine, stop = ranges.first[player, board], ranges.first[player, board + 1]
    count, other_count = stop - mine, ranges.first[other, board + 1] - ranges.first[other, board]
    for lane in range(width):
        lanes.source[jobs + lane] = lanes.source[max(jobs - 1, 0)]  # lanes that are left over repeat a range
    for start in range(0, jobs, width):
        used = np.int64(min(width, jobs - start))
        _load_lanes(lanes.reach, reach, lanes.source[start:], other_count, used)
        for lane in range(width):
            lanes.reach[other_count, lane] = as_element(reach, 0.0)
        _sum_range(ranges, other, board, ranges.every.place, used, lanes)
        if _aim(lanes, np.int64(0), start, used, nowhere):
            arrays = (lanes.total, lanes.reach, ranges.place, ranges.card, ranges.same)
            _meet_lanes(lanes.met, *arrays, mine, stop, used)
            _store_lanes(value, lanes.target, lanes.met, lanes.factor, lanes.limit, count, used)
        if _aim(lanes, np.int64(1), start, used, nowhere):
            _win(ranges, player, board, ranges.every.place, used, lanes)
            _store_lanes(value, lanes.target, lanes.won, lanes.factor, lanes.limit, count, used)


@part_njit
def value_run_outs(ranges, copies, span, jobs, reach, lanes, value):
    """As `value_jobs`, for showdowns of a street whose boards are dealt out, summed over the boards that may follow.

    span  (traverser, street, board, first and stop of the last-street boards below it)
    The jobs' members are lanes.ending[1], their factors lanes.chips[1].
    """
    player, street, board, first_board, stop_board = span
    other, width, dealt = 1 - player, lanes.target.shape[0], copies.first[street + 1]
    every, mine = ranges.every, ranges.first[player, board]
    other_count = ranges.first[other, board + 1] - ranges.first[other, board]
    count = ranges.first[player, board + 1] - mine
    for lane in range(width):
        lanes.source[jobs + lane] = lanes.source[max(jobs - 1, 0)]
    for start in range(0, jobs, width):
        used = np.int64(min(width, jobs - start))
        _load_lanes(lanes.met, reach, lanes.source[start:], other_count, used)
        for entry in range(every.first[other, board], every.first[other, board + 1]):
            for lane in range(width):
                lanes.reach[every.hand[entry], lane] = lanes.met[every.column[entry], lane]
        for hand in range(lanes.hand_value.shape[0]):
            for lane in range(width):
                lanes.hand_value[hand, lane] = as_element(value, 0.0)
        for below in range(first_board, stop_board):
            if dealt[below] == dealt[below + 1]:
                continue  # another board's values are its own
            _sum_range(ranges, other, below, every.ranked, used, lanes)
            _win(ranges, player, below, every.ranked, used, lanes)
            first, stop = every.first[player, below], every.first[player, below + 1]
            for i in range(dealt[below], dealt[below + 1]):
                renamed = copies.hand[copies.renaming[i]]
                arrays = (every.column, every.hand, renamed, lanes.limit)
                _spread_lanes(lanes.hand_value, lanes.won, *arrays, first, stop)
        for k in range(count):
            for lane in range(width):
                lanes.met[k, lane] = lanes.hand_value[ranges.hand[mine + k], lane]
        _aim(lanes, np.int64(1), start, used, value.shape[0] - 1)
        for lane in range(width):
            lanes.limit[lane] = as_element(value, 0.0)
        _store_lanes(value, lanes.target, lanes.met, lanes.factor, lanes.limit, count, used)
