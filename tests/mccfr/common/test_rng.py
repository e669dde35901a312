"""Random streams against the published algorithms in plain integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstraction.kernels.jit import allocating_njit
from mccfr.common.rng import ACTIONS, DEALS, EVALUATION, below, new_stream, next_word, uniform

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def rotated(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


def xoshiro(state):
    """One step of xoshiro256** (Blackman & Vigna 2021, figure 1) on a list of four integers."""
    result = rotated(state[1] * 5 & MASK, 7) * 9 & MASK
    t = state[1] << 17 & MASK
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = rotated(state[3], 45)
    return result


def split_mix(z):
    """Output function of SplitMix64 (Steele, Lea & Flood 2014)."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def derived(seed, worker, purpose, counter):
    """Return four words: SplitMix64 hashes in each key, then continues from there."""
    z = 0
    for key in (seed, worker, purpose, counter):
        z = split_mix((z ^ key) + GOLDEN & MASK)
    return [split_mix(z + i * GOLDEN & MASK) for i in range(1, 5)]


@allocating_njit
def draw_uniforms(state, count):
    drawn = np.zeros(count)
    for i in range(count):
        drawn[i] = uniform(state)
    return drawn


@allocating_njit
def draw_below(state, n, count):
    tally = np.zeros(n, np.int64)
    for _ in range(count):
        tally[below(state, n)] += 1
    return tally


def test_known_answers_of_both_generators():
    """Compare first outputs with those printed with the algorithms.

    xoshiro256** starts from the state 1, 2, 3, 4, and SplitMix64 from 0.
    """
    state = np.array([1, 2, 3, 4], np.uint64)
    known = [11520, 0, 1509978240, 1215971899390074240, 1216172134540287360, 607988272756665600]
    assert [int(next_word(state)) for _ in known] == known
    assert split_mix(GOLDEN) == 0xE220A8397B1DCDAF


PURPOSES = st.sampled_from([ACTIONS, DEALS, EVALUATION])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 1023), PURPOSES, st.integers(0, 2**63 - 1))
def test_streams_equal_the_plain_algorithm(seed, worker, purpose, counter):
    state, plain = new_stream(seed, worker, purpose, counter), derived(seed, worker, purpose, counter)
    assert state.tolist() == plain
    assert [int(next_word(state)) for _ in range(20)] == [xoshiro(plain) for _ in range(20)]
    assert state.tolist() == plain
    assert uniform(state) == (xoshiro(plain) >> 11) / 2**53


def test_streams_differ_in_every_key():
    keys = [(0, 0, 1, 0), (1, 0, 1, 0), (0, 1, 1, 0), (0, 0, 2, 0), (0, 0, 1, 1)]
    assert len({tuple(new_stream(*key).tolist()) for key in keys}) == len(keys)


def test_uniforms_are_uniform_and_independent():
    drawn = draw_uniforms(new_stream(4, 0), 1_000_000)
    assert 0 <= drawn.min() < 1e-4
    assert 1 - 1e-4 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 5 / np.sqrt(12e6)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 5e-3
    counts = np.bincount((drawn * 100).astype(int), minlength=100)
    assert ((counts - 1e4) ** 2 / 1e4).sum() == pytest.approx(99, abs=5 * np.sqrt(2 * 99))


def test_below_draws_every_number_equally_often():
    counts = draw_below(new_stream(5, 0), 7, 700_000)
    assert ((counts - 1e5) ** 2 / 1e5).sum() < 6 + 5 * np.sqrt(12)
