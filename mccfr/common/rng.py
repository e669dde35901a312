"""Random numbers for kernels by xoshiro256**, whose state [4] uint64 is the caller's array.

Source: Blackman & Vigna 2021, "Scrambled Linear Pseudorandom Number Generators".  Numba's own generator takes 21 ns a
draw in place of 1.3 ns, and hides its state, which a checkpoint needs.

SplitMix64's finaliser hashes (seed, worker, purpose, counter) to the state of a stream.  So the deal of any iteration
can be drawn without those before it.
"""

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, njit, part_njit, types

ACTIONS, DEALS, ROUNDING, EVALUATION = 1, 2, 3, 4
"""Purposes of a stream: actions sampled in traversals; the deal of one iteration; rounding of discounted sums; boards
of evaluations, which must differ from those of training."""

RESERVOIR, MINIBATCH, PARAMETERS = 16, 17, 18
"""Purposes in Deep CFR: reservoir sampling of memories; minibatches; initial parameters of networks."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@part_njit
def _mix(z):
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit
def seed_stream(state, seed, worker, purpose, counter):
    """Set `state` [4] uint64 in place to the start of the stream (seed, worker, purpose, counter).

    seed     seed of the run or evaluation
    worker   number of the worker, or another number that tells streams apart
    purpose  use of the numbers, such as `ACTIONS` or `DEALS`
    counter  number within the purpose, such as the iteration of a deal
    """
    z = _mix(np.uint64(seed) + _GOLDEN)
    z = _mix((z ^ np.uint64(worker)) + _GOLDEN)
    z = _mix((z ^ np.uint64(purpose)) + _GOLDEN)
    z = _mix((z ^ np.uint64(counter)) + _GOLDEN)
    for i in range(4):
        z += _GOLDEN
        state[i] = _mix(z)


@njit
def next_word(state):
    """Return the next 64 random bits (uint64); advances `state` [4] uint64 in place."""
    word = state[1] * np.uint64(5)
    word = ((word << np.uint64(7)) | (word >> np.uint64(57))) * np.uint64(9)
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return word


@njit
def second_word(state):
    """Return 64 further random bits (uint64) of the current `state` [4] uint64, without advancing it.

    They are the output of xoshiro256++, from words 0 and 3 of the state.  `next_word` returns bits of word 1.
    """
    word = state[0] + state[3]
    return ((word << np.uint64(23)) | (word >> np.uint64(41))) + state[0]


@njit
def uniform(state):
    """Return a float64 in [0, 1) with 53 random bits; advances `state` [4] uint64 in place."""
    return np.float64(next_word(state) >> np.uint64(11)) * _UNIT


@part_njit
def below(state, n):
    """Return a random int64 in [0, n); advances `state` [4] uint64 in place.

    n must be far below 2^53; the bias is below n·2^-53.
    """
    return np.int64(uniform(state) * n)


@intrinsic
def random_at(typing_context, word, step):
    """Return random 64-bit number `step` of the sequence that starts from the random `word`, all uint64.

    It is output number `step` of the generator wyrand (Wang Yi) with seed `word`: the two halves of a 128-bit product,
    combined by xor.  It depends on the two arguments only, so that a sampled path can be repeated.
    """

    def codegen(context, builder, signature, arguments):
        word_, step_ = arguments
        double = ir.IntType(128)
        state = builder.add(word_, builder.mul(builder.add(step_, step_.type(1)), step_.type(0xA0761D6478BD642F)))
        other = builder.xor(state, state.type(0xE7037ED1A0B428DB))
        product = builder.mul(builder.zext(state, double), builder.zext(other, double))
        high = builder.trunc(builder.lshr(product, double(64)), state.type)
        return builder.xor(builder.trunc(product, state.type), high)

    return types.uint64(types.uint64, types.uint64), codegen


def new_stream(seed: int, worker: int, purpose: int = ACTIONS, counter: int = 0) -> npt.NDArray[np.uint64]:
    """Return the state [4] uint64 at the start of the stream (seed, worker, purpose, counter).

    seed     seed of the run or evaluation
    worker   number of the worker, or another number that tells streams apart
    purpose  use of the numbers, such as `ACTIONS` or `DEALS`
    counter  number within the purpose, such as the iteration of a deal
    """
    state = np.zeros(4, np.uint64)
    seed_stream(state, np.uint64(seed), np.uint64(worker), np.uint64(purpose), np.uint64(counter))
    return state
