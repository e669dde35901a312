"""Strategy sums in float32 over long runs: random rounding is unbiased.

Shows:

* Strategy sums in float32 are unbiased after 40 million additions (test_forty_million_additions_are_unbiased)
* The test detects a biased rounding (planted: test_a_biased_rounding_is_detected)
"""

from math import exp

import numpy as np
import pytest
from harness import LEDUC, Trainer, fixed_profile, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from mutants import mutant
from same import assert_same_arrays

from abstraction.kernels.jit import allocating_njit, njit, nogil_njit
from mccfr.common import rounding
from mccfr.common.rng import new_stream, next_word, random_at, second_word, uniform
from mccfr.common.rounding import added, lane_bits, rounded
from mccfr.solvers.dcfr_discount import discount_sum_table
from mccfr.solvers.public.public_chance import public_chance_sampling as public_chance
from mccfr.solvers.sampling import packed_rows as row_module
from mccfr.solvers.sampling.outcome.paths import DEALS_TOGETHER
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import table_name

LARGE = 2.0**24
"""A sum after some 10^8 additions: one addition is less than half a unit in its last place."""
RMS = 2.1e-4
"""Largest standard deviation of a randomly rounded sum, relative to the sum."""

TO_NEAREST = ("builder.or_(mantissa, _alike(integer, 127 << 23))", "_alike(integer, 0x3FC00000)")
HALF_THE_BITS = ("_alike(product.type, 32 - _EXTRA)", "_alike(product.type, 33 - _EXTRA)")
ALIKE_IN_ALL_LANES = ("builder.mul(lane, _alike(lane.type, _LANE))", "_alike(low.type, 0)")


def planted(edit):
    """Return the vector code for rows with an error in its rounding."""
    return mutant(row_module, using={"mccfr.common.rounding": mutant(rounding, edit)})


# --- bits ------------------------------------------------------------------------------------------------------------


@njit
def bits_of(word, lane):
    return lane_bits(word, lane)


@allocating_njit
def draws(seed, count, lanes, bits, choices):
    """Fill bits [count, lanes] for rounding and choices [count] of external sampling."""
    state = new_state(seed)
    for k in range(count):
        word = second_word(state)
        for lane in range(lanes):
            bits[k, lane] = lane_bits(word, lane)
        choices[k] = uniform(state)


@allocating_njit
def draws_of_paths(seed, count, lanes, bits, choices):
    """Fill bits and choices like `draws`, with the words of outcome sampling on paths of eight decisions."""
    state, word = new_state(seed), np.uint64(0)
    for k in range(count):
        level = np.uint64(k % 8)
        if level == 0:
            word = next_word(state)
        for lane in range(lanes):
            bits[k, lane] = lane_bits(random_at(~word, level), lane)
        choices[k] = np.float64(random_at(word, level) >> np.uint64(32)) * 2.0**-32


@allocating_njit
def new_state(seed):
    state = np.zeros(4, np.uint64)
    for i in range(4):
        state[i] = random_at(np.uint64(seed), np.uint64(i))
    return state


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 5000))
def test_bits_of_a_lane_equal_integer_arithmetic(word, lane):
    low, high = word % 2**32, word >> 32
    assert bits_of(np.uint64(word), lane) == (high + low * lane * 0x9E3779B9) % 2**32 >> 3


@pytest.mark.parametrize("drawn", [draws, draws_of_paths], ids=["external", "outcome"])
def test_bits_are_uniform_and_uncorrelated(drawn):
    """Test means, chi-squares of upper and lower bits, and correlations of lanes and choices."""
    count, lanes = 1 << 17, 8
    bits, choices = np.zeros((count, lanes), np.int64), np.zeros(count)
    drawn(3, count, lanes, bits, choices)
    assert bits.min() >= 0 and bits.max() < 2**29
    columns = np.column_stack([bits / 2.0**29, choices])
    assert np.all(abs(columns.mean(axis=0) - 0.5) < 4.5 * np.sqrt(1 / 12 / count))
    for lane in range(lanes):
        for part in (bits[:, lane] >> 21, bits[:, lane] & 255, (bits[:, lane] >> 25) * 16 + (choices * 16).astype(int)):
            square = ((np.bincount(part, minlength=256) - count / 256) ** 2).sum() / (count / 256)
            assert abs(square - 255) < 4.5 * np.sqrt(2 * 255)
        for other in range(lane):
            part = (bits[:, lane] >> 25) * 16 + (bits[:, other] >> 25)
            square = ((np.bincount(part, minlength=256) - count / 256) ** 2).sum() / (count / 256)
            assert abs(square - 255) < 4.5 * np.sqrt(2 * 255)
    for lag in range(4):
        found = np.corrcoef(columns[: count - lag].T, columns[lag:].T)[: lanes + 1, lanes + 1 :]
        assert np.all(abs(found - (np.eye(lanes + 1) if lag == 0 else 0)) < 4.7 / np.sqrt(count))


def test_a_second_word_does_not_change_the_stream():
    state, other = new_stream(3, 1), new_stream(3, 1)
    s0, s3 = int(state[0]), int(state[3])
    x = (s0 + s3) % 2**64
    assert int(second_word(state)) == ((x << 23 | x >> 41) + s0) % 2**64
    assert next_word(state) == next_word(other)
    np.testing.assert_array_equal(state, other)


# --- one rounding ----------------------------------------------------------------------------------------------------


@njit
def rounded_to(array, number, bits):
    return rounded(array, number, bits)


@njit
def sum_of(array, total, addend, bits):
    return added(array, total, addend, bits)


@settings(max_examples=300, deadline=None)
@given(
    st.floats(2.0**-80, 2.0**80, width=32), st.floats(2.0**-20, 1, width=32), st.integers(0, 2**29 - 1), st.booleans()
)
def test_a_sum_is_rounded_to_a_float32_neighbour_with_the_expected_probability(total, part, bits, whole):
    """Probabilities have 23 bits; for sums just below a power of two that of rounding down is halved."""
    addend = np.float32(total) if whole else np.float32(total) * np.float32(part)
    found, exact = float(sum_of(NARROW_CELL, np.float32(total), addend, bits)), total + float(addend)
    nearest = np.float32(exact)
    rest = exact - float(nearest)
    step = float(np.nextafter(nearest, np.float32(np.inf))) - float(nearest)  # one unit in its last place
    drawn = (bits >> 6) / 2**23
    expected = int(np.floor(np.float32(rest / step) + np.float32(1 + drawn))) - 1
    assert found == float((nearest.view(np.int32) + np.int32(expected)).view(np.float32))
    assert sum_of(WIDE_CELL, total, float(addend), bits) == exact


NARROW_CELL, WIDE_CELL = np.zeros(1, np.float32), np.zeros(1)


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e30, 1e30), st.integers(0, 2**29 - 1))
def test_a_number_is_rounded_to_a_float32_neighbour_with_the_expected_probability(number, bits):
    """The probability of each neighbour is linear in the number; float32 numbers do not change."""
    found = rounded_to(NARROW_CELL, number, bits)
    assert rounded_to(WIDE_CELL, number, bits) == number
    if abs(number) < 2.0**-126:
        assert abs(found - number) <= 2.0**-149
        return
    inner = np.float32(number)  # the neighbour closer to 0
    if abs(float(inner)) > abs(number):
        inner = np.nextafter(inner, np.float32(0))
    outer = np.nextafter(inner, np.float32(np.copysign(np.inf, number)))
    share = (number - float(inner)) / (float(outer) - float(inner))
    assert found == (outer if bits >= 2**29 * (1 - share) and share > 0 else inner)


@pytest.mark.parametrize("number", [0.0, 1.0, 2.0**-126, 2.0**-149, 16_777_216.0, float(np.finfo(np.float32).max)])
def test_numbers_of_float32_are_not_changed(number):
    for bits in (0, 1, 2**28, 2**29 - 1):
        assert rounded_to(NARROW_CELL, number, bits) == number
        assert rounded_to(NARROW_CELL, np.inf, bits) == np.inf
        assert np.isnan(rounded_to(NARROW_CELL, np.nan, bits))
        assert rounded_to(NARROW_CELL, 5e-324, bits) == 0


# --- many additions --------------------------------------------------------------------------------------------------

STRATEGIES = 64
SEED = np.uint64(0x0123456789ABCDEF)


def strategies():
    """Return [64, 8] float32 strategies in multiples of 2^-20, which float64 adds exactly."""
    generator = np.random.default_rng(2)
    shares = generator.dirichlet(np.full(8, 0.5), STRATEGIES)
    whole = np.floor(shares * 2**20)
    whole[:, 0] += 2**20 - whole.sum(axis=1)
    return (whole / 2**20).astype(np.float32)


def adder(module):
    """Return a kernel that adds the strategies in turn to rows of eight cells."""
    add_row = module.add_row

    @nogil_njit
    def add_in_turn(sums, first, stop, sigma, count, seed):
        step = np.uint64(0)
        for t in range(count):
            for row in range(first, stop):
                add_row(sums, row * 8, 8, sigma, ((t + row) & 63) * 8, 1.0, random_at(seed, step))
                step += np.uint64(1)

    return add_in_turn


def errors_after(module, rows_, count):
    """Return the relative error of each cell after `count` additions to each of `rows_` rows."""
    sigma, sums, add_in_turn = strategies(), np.zeros(rows_ * 8 + 8, np.float32), adder(module)
    add_in_turn(sums, 0, rows_, sigma.ravel(), count, SEED)
    times = np.zeros((rows_, STRATEGIES), np.int64)  # number of additions of each strategy to each row
    for row in range(rows_):
        turn = (np.arange(STRATEGIES) - row) % STRATEGIES  # number of the first addition
        times[row] = (count - turn + STRATEGIES - 1) // STRATEGIES
    truth = times.astype(float) @ sigma.astype(float)
    return (sums[: rows_ * 8].reshape(rows_, 8) / truth - 1).ravel()


def assert_unbiased(errors):
    """Check that the mean is within 3 standard errors of 0 and the root mean square below 0.03 %."""
    rms = float(np.sqrt((errors**2).mean()))
    assert rms < 3e-4, rms
    assert abs(errors.mean()) < 3 * rms / np.sqrt(len(errors)), (errors.mean(), rms)


def test_forty_million_additions_are_unbiased():
    """The root mean square also follows its formula; sums rounded to nearest would be off by a tenth."""
    errors = errors_after(row_module, 16, 40_000_000)
    assert_unbiased(errors)
    assert 1e-4 < np.sqrt((errors**2).mean()) < 1.2 * RMS


@pytest.mark.parametrize("edit", [TO_NEAREST, HALF_THE_BITS], ids=["to nearest", "half the bits"])
def test_a_biased_rounding_is_detected(edit):
    errors = errors_after(planted(edit), 4, 40_000_000)
    with pytest.raises(AssertionError):
        assert_unbiased(errors)
    assert abs(errors.mean()) > 0.01


def test_lanes_that_share_their_bits_are_detected():
    """Rows have eight equal sums; with equal bits in all lanes they would have equal errors."""
    spread = []
    for module in (row_module, planted(ALIKE_IN_ALL_LANES)):
        add_in_turn, sums = adder(module), np.full(64 * 8 + 8, 2.0**20, np.float32)
        add_in_turn(sums, 0, 64, np.full(STRATEGIES * 8, 1 / 64, np.float32), 10_000, SEED)
        spread.append(sums[:512].reshape(64, 8).std(axis=1).mean())
    assert spread[0] > 1 and spread[1] == 0


# --- whole kernels ---------------------------------------------------------------------------------------------------


def from_large_sums(algorithm, general, sum_dtype, **options):
    """Return a run of Leduc with a constant strategy, whose sums begin at LARGE."""
    run = Trainer(LEDUC, algorithm, general=general, sum_dtype=sum_dtype, seed=5, **options)
    profile = fixed_profile(LEDUC, 7)
    for name, table in run.tables.items():
        if name in profile:
            table[:, : profile[name].shape[1]] = profile[name]
        elif name.startswith("strategy_sum/"):
            table[:] = LARGE
    return run


def growth(run):
    """Return the growth of every sum that can grow, as one float64 array."""
    found = [run.tables[table_name("strategy_sum", block)][:, slots].ravel() for block, slots, _ in rows(LEDUC)]
    return np.concatenate(found).astype(np.float64) - LARGE


@pytest.mark.parametrize("general", [False, True], ids=["packed", "general"])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_large_float32_sums_grow_like_float64_sums(algorithm, general):
    """Compare with the same additions to float64 sums; rounding to nearest would add nothing."""
    iterations = 100_000 if general else 300_000
    narrow, wide = (from_large_sums(algorithm, general, form).train(iterations) for form in ("auto", "float64"))
    assert narrow.tables["strategy_sum/street0/player0"].dtype == np.float32
    found, expected = growth(narrow), growth(wide)
    grown = expected > 0
    assert np.all(found[~grown] == 0) and np.all(expected[~grown] == 0)
    bound = np.sqrt(2 * expected[grown].sum())  # an addition x has a variance of at most x·ulp, here 2
    assert abs(found.sum() - expected.sum()) < 3 * bound
    assert np.all(abs(found - expected)[grown] < 5.5 * np.sqrt(2 * expected[grown]) + 2)
    assert np.array_equal(narrow.rng, wide.rng)
    for name in (name for name in wide.tables if name.startswith("regret")):
        np.testing.assert_array_equal(narrow.tables[name], wide.tables[name], err_msg=name)


@pytest.mark.parametrize("general", [False, True], ids=["packed", "general"])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_rounding_does_not_depend_on_where_a_run_stops(algorithm, general):
    options = {"schedule": Schedule("dcfr", 5_000), "general": general, "seed": 3}
    group = {"external": 1, "outcome": DEALS_TOGETHER}[algorithm]
    whole = Trainer(LEDUC, algorithm, **options).train(3_200)
    parts = Trainer(LEDUC, algorithm, batch=7 * group, **options)
    parts = parts.train(1_120).resume().train(1_120 + group).resume().train(3_200)
    assert_same_arrays(whole.tables, parts.tables)
    assert whole.tables["strategy_sum/street1/player1"].dtype == np.float32


# --- public chance sampling ------------------------------------------------------------------------------------------


def whole_boards(options, iterations, start):
    """Return a run of public chance sampling on Leduc in float32, whose sums begin at `start`."""
    tables = public_chance.new_tables(public_chance.table_specs(LEDUC))
    for name, table in tables.items():
        if name.startswith("strategy_sum/"):
            table[:] = start
    run = public_chance.PublicChanceSampling(LEDUC, options, tables, 3)
    run.run(iterations)
    return run


def joined(tables, kind="strategy_sum"):
    return np.concatenate([t.ravel() for name, t in sorted(tables.items()) if name.startswith(kind)]).astype(float)


def test_large_sums_of_public_chance_sampling_grow_like_small_ones():
    """A board adds less than half a unit in the last place; compare with sums that begin at 0."""
    options, start = public_chance.PublicChanceOptions(Schedule(), False), 2.0**31
    large, small = (whole_boards(options, 8_000, first) for first in (start, 0.0))
    np.testing.assert_array_equal(joined(large.tables, "regret"), joined(small.tables, "regret"))
    found, expected = joined(large.tables) - start, joined(small.tables)
    assert np.all(found[expected == 0] == 0) and expected.sum() > 1000
    bound = np.sqrt(256 * expected.sum())  # an addition x has a variance of at most x·ulp
    assert 0 < abs(found.sum() - expected.sum()) < 3 * bound
    assert abs(found.sum() / expected.sum() - 1) < 0.1


def test_discounts_of_whole_tables_are_unbiased():
    """Apply 10,000 factors of 1 - 2^-26; rounding to nearest would change nothing."""
    table, state = np.full((16, 500), 12_345_678.0, np.float32), new_stream(1, 0)
    for _ in range(10_000):
        discount_sum_table(table, 1 - 2.0**-26, np.uint64(next_word(state)))
    errors = (table / (12_345_678.0 * exp(-10_000 * 2.0**-26)) - 1).ravel().astype(float)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(errors.size) and 0 < errors.std() < 3e-5
    assert abs(errors.mean()) < 1e-6 < 10_000 * 2.0**-26 / 10
    assert abs(np.corrcoef(errors.reshape(16, 500))[np.triu_indices(16, 1)]).max() < 4.5 / np.sqrt(500)
