"""Emits vector code for lanes: the cells of a row, one for each of several ranges side by side.

Compiled loops that gather or transpose such cells are several times slower than these loads and shuffles.
"""

from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import types
from mccfr.solvers.public.hand_lists import NO_CARD, NOT_READ

LINE_BYTES, _BLOCK_BYTES = 64, 32
I64 = ir.IntType(64)


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros; its first cell is at the start of a cache line (64 bytes)."""
    size, cells = np.dtype(dtype).itemsize, int(np.prod(shape))
    room = np.zeros(cells + LINE_BYTES // size, dtype)
    start = -room.ctypes.data % LINE_BYTES // size
    aligned: npt.NDArray[Any] = room[start : start + cells].reshape(shape)
    return aligned


@contextmanager
def counting(builder, start, stop, step=1):
    """Emit a loop around the code that the `with` block emits, and yield its int64 index.

    start, stop  LLVM int64 values; the index goes from start to at most stop-1
    step         Python int by which the index grows
    """
    before, function = builder.block, builder.function
    head, body, end = (function.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(I64)
    i.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", i, stop), body, end)
    builder.position_at_end(body)
    yield i
    i.add_incoming(builder.add(i, I64(step)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)


class Code:
    """Emits the LLVM code of a numba intrinsic, with access to its array arguments by name.

    An intrinsic is a function whose LLVM code is written by Python code.  The constructor's arguments:

    context, builder  numba's target context, llvmlite's `IRBuilder`
    kinds, values     numba types and LLVM values of the intrinsic's arguments; other arguments than arrays are ignored
    names             text with a name for each array, in order, arrays in tuples included
    """

    def __init__(self, context, builder, kinds, values, names):
        self.builder, self._context = builder, context
        self.width = 0  # lanes of a vector: see `by_width`
        arrays = []
        for kind, value in zip(kinds, values, strict=True):
            parts = kind.types if isinstance(kind, types.BaseTuple) else ()
            inside = [builder.extract_value(value, i) for i in range(len(parts))]
            arrays += zip([kind, *parts], [value, *inside], strict=True)
        arrays = [(kind, value) for kind, value in arrays if isinstance(kind, types.Array)]
        self._made = {
            name: (kind, context.make_array(kind)(context, builder, value))
            for name, (kind, value) in zip(names.split(), arrays, strict=True)
        }

    def data(self, name):
        """Return a pointer to an array's first cell."""
        return self._made[name][1].data

    def element(self, name):
        """Return the LLVM type of an array's cells."""
        return self.data(name).type.pointee

    def vector(self, name, count):
        """Return the LLVM type of a vector of `count` cells, of the cell type of the array `name`."""
        return ir.VectorType(self.element(name), count)

    def by_width(self, name, used, body):
        """Emit the code of `body` twice: for the first half of an array's lanes, and for all.

        name  name of the array; its lanes are the cells of a row of 64 bytes
        used  number of lanes in use; the compiled code takes the half if they suffice
        body  function that emits code, called with the LLVM type of a vector of the lanes
        """
        lanes = self.lanes(name)[0]
        few = self.builder.icmp_signed("<=", used, I64(lanes // 2))
        with self.builder.if_else(few) as branches:
            for branch, self.width in zip(branches, (lanes // 2, lanes), strict=True):
                with branch:
                    body(self.vector(name, self.width))

    def lanes(self, name):
        """Return two numbers of an array's cells: those in a row of 64 bytes, and those in 32 bytes."""
        size = self._made[name][0].dtype.bitwidth // 8
        return LINE_BYTES // size, _BLOCK_BYTES // size

    def index(self, name, position):
        """Emit a load of the cell with index `position` of an array of integers >= 0, as int64."""
        cell = self.builder.load(self.builder.gep(self.data(name), [position]))
        return cell if cell.type == I64 else self.builder.zext(cell, I64)

    def row(self, name, row):
        """Emit a pointer to the first cells of a row of an array whose rows have 64 bytes, as a vector.

        name  name of the array
        row   LLVM number of the row

        The vector has `width` cells, all or half of the row; only code inside `by_width` may use it.
        """
        cell = self.builder.gep(self.data(name), [self.builder.mul(row, I64(self.lanes(name)[0]))])
        return self.builder.bitcast(cell, self.vector(name, self.width).as_pointer())

    def cells(self, name):
        """Emit the number of cells of a row of a two-dimensional array."""
        kind, array = self._made[name]
        strides = self.builder.extract_value(array.strides, 0)
        return self.builder.sdiv(strides, strides.type(kind.dtype.bitwidth // 8))

    def length(self, name, axis):
        """Emit the length of an array along an axis."""
        return self.builder.extract_value(self._made[name][1].shape, axis)

    def at(self, name, row):
        """Emit a pointer to the first cell of a row of a two-dimensional array."""
        return self.builder.gep(self.data(name), [self.builder.mul(row, self.cells(name))])

    def load(self, pointer):
        """Emit a load of a vector from a pointer, which need only be aligned to 4 bytes."""
        return self.builder.load(pointer, align=4)

    def store(self, value, pointer):
        """Emit a store of a vector at a pointer, which need only be aligned to 4 bytes."""
        self.builder.store(value, self.builder.bitcast(pointer, value.type.as_pointer()), align=4)

    def block(self, pointer, index, count):
        """Emit a load of a vector of `count` cells, which begins `index` cells after a pointer."""
        cell = self.builder.gep(pointer, [index])
        kind = ir.VectorType(pointer.type.pointee, count)
        return self.load(self.builder.bitcast(cell, kind.as_pointer()))

    def room(self, kind):
        """Emit a local variable of type `kind` and return the pointer to it."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def cards(self, entry, card="card"):
        """Emit loads of two row numbers: those of a hand's two cards in the sums of reach by card.

        entry  number of the hand in the array named `card`, which has two row numbers for each hand
        """
        first = self.builder.mul(entry, I64(2))
        return self.index(card, first), self.index(card, self.builder.add(first, I64(1)))

    def begin_run(self, kind):
        """Emit two variables for `add_hand`, and return the two pointers to them.

        The first variable is a vector of type `kind`: the sum of reach of the hands that hold a card.  This card is the
        second one of the hand that was added last.  The second variable is its row number in the sums by card.
        """
        run = self.room(kind), self.room(I64)
        self.builder.store(ir.Constant(kind, [0.0] * kind.count), run[0])
        self.builder.store(I64(NOT_READ), run[1])
        return run

    def end_run(self, sums, run):
        """Emit a store of the sum by card that the variables `run` hold to its row of `sums`.

        sums  name of the array of sums by card
        run   the pointers of `begin_run`
        """
        self.store(self.builder.load(run[0]), self.row(sums, self.builder.load(run[1])))

    def add_hand(self, sums, whole, run, entry, position, cards="card"):
        """Emit the addition of one hand's reach to the sums by card and to the sum of all hands.

        Only code inside `by_width` may call it.  Consecutive hands usually share their second card, so its sum stays in
        a variable of `run` until a hand with another second card follows.

        sums      name of the array of sums by card, with the rows of `hand_lists.NO_CARD`; for a card that the hand
                  lacks, the row NOT_READ receives the addition
        whole     pointer to the vector with the sum of all hands
        run       the pointers of `begin_run`; call `end_run` after the last hand
        entry     LLVM int64: index of the hand in the array `cards`
        position  LLVM int64: index of the hand's row in the array "reach"
        cards     name of an array [., 2]: for each hand the two row numbers of its cards in `sums`
        """
        builder = self.builder
        reach = self.load(self.row("reach", position))
        builder.store(builder.fadd(builder.load(whole), reach), whole)
        first, second = (
            builder.select(builder.icmp_unsigned("==", card, I64(NO_CARD)), I64(NOT_READ), card)
            for card in self.cards(entry, cards)
        )
        with builder.if_then(builder.icmp_signed("!=", second, builder.load(run[1]))):
            self.end_run(sums, run)
            builder.store(self.load(self.row(sums, second)), run[0])
            builder.store(second, run[1])
        pointer = self.row(sums, first)
        self.store(builder.fadd(self.load(pointer), reach), pointer)
        builder.store(builder.fadd(builder.load(run[0]), reach), run[0])

    def rest(self, sums, whole, entry):
        """Emit a range's sum of reach minus the sums by card of a hand's two cards.

        sums   name of the array of sums by card
        whole  vector, the sum of reach of all hands
        entry  number of the hand in the array "card", which has two row numbers of `sums` for each hand
        """
        difference = whole
        for card in self.cards(entry):
            difference = self.builder.fsub(difference, self.load(self.row(sums, card)))
        return difference


def transposed(builder, rows):
    """Emit the transpose of a square block, a list of n vectors of n cells (n = 4 or 8); return its rows.

    The result is a list of n vectors.
    """
    count = len(rows)
    half = count // 2

    def shuffled(one, other, chosen):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), count), chosen)
        return builder.shuffle_vector(one, other, mask)

    pairs = []  # cells of 64 bits
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
    transposed_rows = [None] * count
    lower = [*range(half), *range(count, count + half)]
    columns = len(fours) // 2
    for c in range(columns):
        for pair in range(2):
            one, other = fours[c][pair], fours[c + columns][pair]
            row = 2 * c + pair
            transposed_rows[row] = shuffled(one, other, lower)
            transposed_rows[row + half] = shuffled(one, other, [p + half for p in lower])
    return transposed_rows


def is_clear(builder, value, limit):
    """Emit a vector of booleans: whether each cell's absolute value is at least that in `limit`."""
    below = builder.fsub(ir.Constant(limit.type, [0.0] * limit.type.count), limit)
    return builder.or_(builder.fcmp_ordered(">=", value, limit), builder.fcmp_ordered("<=", value, below))


def swept(builder, start, stop, carried, body):
    """Emit a loop over start to stop-1 that renews values in each step; return the last values.

    carried  list of LLVM values before the first step; they stay in registers
    body     function of (k, values before step k) that emits the step and returns the list of new values
    """
    before = builder.block
    head, inside, after = (builder.append_basic_block(name) for name in ("head", "inside", "behind"))
    builder.branch(head)
    builder.position_at_end(head)
    k = builder.phi(I64)
    carried_phis = [builder.phi(value.type) for value in carried]
    for phi, value in zip([k, *carried_phis], [start, *carried], strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed("<", k, stop), inside, after)
    builder.position_at_end(inside)
    following = body(k, carried_phis)
    for phi, value in zip([k, *carried_phis], [builder.add(k, I64(1)), *following], strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return carried_phis


def first_cells(context, builder, kind, value):
    """Return a list of pointers to the first cells of the arrays in a tuple.

    kind   numba type of the tuple
    value  its LLVM value
    """
    parts = [builder.extract_value(value, i) for i in range(len(kind.types))]
    return [context.make_array(each)(context, builder, part).data for each, part in zip(kind.types, parts, strict=True)]
