"""Sample memories: reservoir sampling, merging, minibatches.

Shows:

* Minibatches visit every sample before any sample again
  (test_a_sample_order_visits_every_sample_once_per_pass_and_evenly)
* Every sample stays in the reservoir with the same probability, also after resuming
  (test_every_sample_stays_with_equal_probability_also_after_resuming)
"""

import numpy as np
import pytest
from mutants import mutant

from mccfr.solvers.deep import sample_memory

WIDTH = 2


def empty(room, dtype=np.float64):
    return sample_memory.Memory(np.zeros(room, np.int32), np.zeros(room, dtype), np.zeros((room, WIDTH), dtype))


def new_samples(count, first=0, weight=1.0):
    """Return samples whose infoset is their number."""
    number = np.arange(first, first + count)
    return sample_memory.Memory(number, np.full(count, weight), np.stack([number, -number], axis=1).astype(np.float64))


def inclusion(module, pieces, room=40, seeds=2000):
    """Return how often each sample stayed in the reservoir, and chi-square against equal probabilities."""
    total = sum(pieces)
    stayed = np.zeros(total)
    for seed in range(seeds):
        held, seen = empty(room), 0
        for piece in pieces:
            seen = module.insert(held, new_samples(piece, seen), seen, seed, 0)
        stayed[held.infoset] += 1
    expected = seeds * room / total
    variance = expected * (1 - room / total)
    return stayed, float(((stayed - expected) ** 2 / variance).sum()) * (total - 1) / total


def test_every_sample_stays_with_equal_probability_also_after_resuming():
    """Chi-square has 99 degrees of freedom: values above 160 have a probability below 1 in 10,000."""
    whole, square = inclusion(sample_memory, [100])
    cut, _ = inclusion(sample_memory, [37, 12, 51])
    assert (whole == cut).all()
    assert 55 < square < 160


def test_a_reservoir_that_takes_every_sample_is_caught():
    wrong = mutant(sample_memory, ("_UNIT * np.float64(number + 1)", "_UNIT * 40.0"))
    assert inclusion(wrong, [100])[1] > 1000


def test_merged_samples_keep_means_weights_and_errors():
    random = np.random.default_rng(0)
    held, count = empty(60), 50
    held.infoset[:], held.weight[:] = random.integers(0, 7, 60), random.uniform(1, 2, 60)
    held.value[:] = random.normal(size=(60, WIDTH))
    merged = sample_memory.new_merged(9, WIDTH)
    found, weights, squares = sample_memory.merge(held, count, merged)
    table = sample_memory.means(held, count, merged)
    for infoset in range(9):
        here = held.infoset[:count] == infoset
        if here.any():
            wanted = np.average(held.value[:count][here], axis=0, weights=held.weight[:count][here])
            assert np.abs(table[infoset] - wanted).max() < 1e-12
        else:
            assert not table[infoset].any()
    assert found == len(np.unique(held.infoset[:count]))
    assert abs(weights - held.weight[:count].sum()) < 1e-12
    output = random.normal(size=(9, WIDTH))
    error, explained = sample_memory.squared_error(held, count, output, merged)
    left = held.weight[:count, None] * (held.value[:count] - output[held.infoset[:count]]) ** 2
    assert abs(error - left.sum() / weights) < 1e-12
    assert abs(explained - (1 - left.sum() / squares)) < 1e-12


def test_minibatches_draw_every_stored_sample_equally_often():
    held = empty(50)
    sample_memory.insert(held, new_samples(30, weight=2.0), 0, 0, 0)
    merged, walk, counts = sample_memory.new_merged(50, WIDTH), sample_memory.SampleOrder(30, 12345), np.zeros(50)
    for _ in range(300):
        found = sample_memory.merge_some(held, walk.take(64), merged)
        assert merged.weight[:found].sum() == 128
        assert (merged.place == -1).all()
        counts[merged.row[:found]] += merged.weight[:found] / 2
    assert not counts[30:].any()
    assert (counts[:30] == 640).all()


@pytest.mark.parametrize("held", [1, 2, 3, 10, 89, 1000, 46368, 123457])
def test_a_sample_order_visits_every_sample_once_per_pass_and_evenly(held):
    walk = sample_memory.SampleOrder(held, 2**64 - 1)
    numbers = np.concatenate([walk.take(held // 3), walk.take(held - held // 3)])
    assert sorted(numbers.tolist()) == list(range(held))
    for stretch in (10, 300) if held > 10_000 else ():
        for _ in range(20):
            part = np.sort(walk.take(stretch)) / held
            assert np.abs(part - (np.arange(stretch) + 0.5) / stretch).max() < 5 / stretch
