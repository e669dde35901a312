"""Cells of 16 bits: rounded right on average, exactly; the naive twin of a store; training, resuming, discounts.

Shows:

* 16-bit cells are rounded right on average, exactly, and as a naive twin does it
  (test_rounding_is_right_on_average_exactly, test_stores_are_as_the_naive_twin_makes_them; planted:
  test_rounded_to_nearest_a_cell_stands_still, test_training_with_cells_rounded_to_nearest_is_caught)
* They learn what float32 learns; a stopped run goes on with the same bits
  (test_leduc_on_int16_comes_as_near_as_on_float32, test_int16_learns_leduc,
  test_a_run_stopped_and_one_in_a_piece_have_the_same_tables)
"""

from fractions import Fraction

import numpy as np
import pytest
from harness import MERGED_LEDUC, Trainer, same_tables
from mutants import mutant

from abstraction.kernels.jit import njit
from mccfr.rounding import SCALE_ZERO
from mccfr.solvers.sampling import rows
from mccfr.solvers.sampling.cells import cell_number, row_at
from mccfr.solvers.sampling.external import packed
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import table_name
from mccfr.tables.narrow import numbers, saturated
from storage.schema import ArraySpec

LANES, DRAWS = 8, 1 << 23
NEAREST = np.uint64(1 << 63)
"""A word by which every lane is rounded to nearest: the planted error."""


@njit
def add(cells, scales, actions, addend, word):
    rows.add_row(cells, row_at(cells, scales, 0, 0), actions, addend, 0, 1.0, word)


@njit
def total_over_draws(cells, scales, kept, actions, addend, total):
    """Add up, exactly, what cells become over all random numbers there are; `total` [8] float64, in place."""
    scale = scales[0]
    for draw in range(DRAWS):
        for k in range(actions):
            cells[k] = kept[k]
        scales[0] = scale
        word = np.uint64(draw) << np.uint64(41)  # by a lower half of 0 every lane draws the upper bits
        rows.add_row(cells, row_at(cells, scales, 0, 0), actions, addend, 0, 1.0, word)
        for k in range(actions):
            total[k] += cell_number(cells, row_at(cells, scales, 0, 0), k)


def table(values=()):
    """(cells, scales) of one row; `values` are taken up as they are, if they can be."""
    cells, scales = np.zeros(LANES, np.int16), np.zeros(1, np.uint8)
    if len(values):
        add(cells, scales, len(values), np.array([*values, *[0] * (LANES - len(values))], np.float32), NEAREST)
    return cells, scales


def as_numbers(cells, scales):
    return numbers(cells[None], scales[None], np.array([0, LANES]))[0]


def test_rounding_is_right_on_average_exactly():
    """Over every random number that a lane can draw the mean of a cell is what was added up, to the last bit.

    Additions reach down to 2^-20 of a step, below what float32 keeps of the sum; the row's scale rises on the way.
    """
    step = 2.0**-14
    values = np.array([1.0, 1.0, -1.0, 0.25, 0.5, 0.0, -0.125, 1.0])
    cells, scales = table(values)
    assert as_numbers(cells, scales).tolist() == values.tolist()
    steps = np.array([0.75, 2.0**-20, -(2.0**-18), 0.0, -0.25, 0.0, 1 / 16, -0.5])
    addend = np.float32(steps * step + 1.5 * (values == 0.5))
    total = np.zeros(LANES)
    total_over_draws(cells, scales, cells.copy(), LANES, addend, total)
    assert (total / DRAWS).tolist() == (values + addend).tolist()


def naive_store(values, word):
    """(cells as numbers, scale) of exact values [n] by definition, and which of them are a hair from the other way."""
    low, high = int(word) & 0xFFFFFFFF, int(word) >> 32
    largest = max(abs(float(np.float32(float(v)))) for v in values) * (1 + 2.0**-14)
    exponent = int(np.floor(np.log2(largest))) - 14 if largest else -100
    unit = Fraction(2) ** exponent
    found, close = [], []
    for lane, value in enumerate(values):
        bits = ((high + low * (lane * 0x9E3779B9 & 0xFFFFFFFF)) & 0xFFFFFFFF) >> 9
        exact = abs(value) / unit + Fraction(bits, DRAWS)
        close.append(abs(exact - round(exact)) < Fraction(1, 1 << 20))
        found.append(float(exact.__floor__() * unit) * (-1 if value < 0 else 1))
    return found, exponent + SCALE_ZERO, close


def test_stores_are_as_the_naive_twin_makes_them():
    rng, compared = np.random.default_rng(5), 0
    for _ in range(300):
        actions = int(rng.integers(1, LANES + 1))
        cells, scales = table()
        guard = cells.copy()
        exact = [Fraction(0)] * actions
        for _ in range(3):
            before = [Fraction(float(x)) for x in as_numbers(cells, scales)[:actions]]
            addend = np.zeros(LANES, np.float32)
            addend[:actions] = rng.normal(size=actions) * 10.0 ** rng.uniform(-4, 6)
            word = rng.integers(0, 2**64, dtype=np.uint64)
            add(cells, scales, actions, addend, word)
            exact = [old + Fraction(float(x)) for old, x in zip(before, addend, strict=False)]
            expected, scale, close = naive_store(exact, word)
            found = as_numbers(cells, scales)[:actions].tolist()
            assert all(x == y for x, y, hair in zip(found, expected, close, strict=True) if not hair)
            assert scales[0] == scale
            compared += actions - sum(close)
        assert (cells[actions:] == guard[actions:]).all()  # nothing beyond the row
    assert compared > 3000


def test_rounded_to_nearest_a_cell_stands_still():
    """The planted error: 20,000 additions of a third of a step come to nothing, and by random words to their sum."""
    for word, reached in ((NEAREST, False), (None, True)):
        cells, scales = table([16384.0, 1.0])
        rng = np.random.default_rng(1)
        for _ in range(20_000):
            drawn = rng.integers(0, 2**64, dtype=np.uint64) if word is None else word
            add(cells, scales, 2, np.array([0.0, 1 / 3, *[0] * 6], np.float32), drawn)
        found = float(as_numbers(cells, scales)[1])
        assert (abs(found - 6667.7) < 4 * np.sqrt(20_000 * 2 / 9)) == reached
        assert reached or found == 1.0


def test_cells_that_are_cut_off_are_counted():
    scale = ArraySpec("regret_scale/street0/player0", (1, 1), "uint8", ("bucket", "row"))
    cells, scales = table([3e38, 1.0])
    assert saturated({scale.name: scales[None]}, [scale]) == 1
    assert saturated({"regret/street0/player0": cells[None]}, []) is None


SCHEDULES = {"none": Schedule(), "linear": Schedule("linear", 20_000)}


def trained(dtype, algorithm="external", *, discount="none", iterations=20_000, seed=0, **options):
    options |= {"regret_dtype": dtype, "sum_dtype": dtype, "schedule": SCHEDULES[discount], "seed": seed}
    return Trainer(MERGED_LEDUC, algorithm, **options).train(iterations)


@pytest.mark.parametrize("discount", SCHEDULES)
def test_leduc_on_int16_comes_as_near_as_on_float32(discount):
    """Scales grow with the weights of `linear`."""
    wide = np.mean([trained("float32", discount=discount, seed=s).exploitability_chips for s in range(3)])
    narrow = np.mean([trained("int16", discount=discount, seed=s).exploitability_chips for s in range(3)])
    assert narrow < 1.5 * wide


def test_a_run_on_int16_goes_on_as_if_it_had_never_stopped():
    whole, stopped = (
        trained("int16", discount="linear", iterations=3000),
        trained("int16", discount="linear", iterations=1234),
    )
    assert same_tables(stopped.resume().train(3000), whole)
    assert same_tables(trained("int16", discount="linear", iterations=3000, batch=17), whole)


BOUNDS = {"external": (200_000, 0.06), "outcome": (1_000_000, 0.25)}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", BOUNDS)
def test_int16_learns_leduc(algorithm):
    iterations, chips = BOUNDS[algorithm]
    for discount in SCHEDULES:
        assert trained("int16", algorithm, discount=discount, iterations=iterations).exploitability_chips < chips, (
            discount
        )


@pytest.mark.slow
def test_training_with_cells_rounded_to_nearest_is_caught():
    """The planted error in the kernel: regrets and sums stall, and exploitability with them."""
    word = "np.uint64(1 << 63)"
    nearest = mutant(
        packed,
        ("word = random_at(~second_word(rng), place)", f"word = {word}"),
        ("sum_weight, second_word(rng))", f"sum_weight, {word})"),
    )
    right = trained("int16", iterations=200_000).exploitability_chips
    wrong = trained("int16", iterations=200_000, kernels=nearest).exploitability_chips
    assert right < BOUNDS["external"][1] < wrong / 2


def test_tables_of_int16_are_half_as_large():
    wide, narrow = (Trainer(MERGED_LEDUC, regret_dtype=d, sum_dtype=d).tables for d in ("float32", "int16"))
    for kind in ("regret", "strategy_sum"):
        name = table_name(kind, 2)
        assert 2 * narrow[name].nbytes == wide[name].nbytes
        assert narrow[table_name(f"{kind}_scale", 2)].nbytes == narrow[name].shape[0] * MERGED_LEDUC.tree.row_count[2]
