"""Fitting a network to a memory: minibatches, Adam, and what is left to explain.

The loss is the weighted mean of squared errors over the legal actions; weights are relative to the memory's mean, so
that the bound on the gradient's norm means the same at every iteration.  Adam (Kingma & Ba 2015) begins anew with each
fit, so nothing of it outlives an iteration.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from abstraction.jit import njit
from mccfr.solvers.deep.memory import Memory, Merged, draw, merge
from mccfr.solvers.deep.network import Array, Network

_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Descent:
    """How a network is fitted.

    steps          minibatches
    batch          samples of each; None: the whole memory
    learning_rate  of the first step
    decays         linearly to 0 over the steps
    norm           longest gradient
    """

    steps: int
    batch: int | None
    learning_rate: float
    decays: bool
    norm: float


@dataclass(frozen=True)
class Inputs:
    """What a network is shown of a player's infosets.  I of them, A actions.

    features  [I, F] float32; None: each infoset by its number, a one-hot
    legal     [I, A] float32 1 where there is such an action
    """

    features: npt.NDArray[np.float32] | None
    legal: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[np.int64]) -> Array | npt.NDArray[np.int64]:
        """Inputs of some infosets."""
        return rows if self.features is None else self.features[rows]


@njit
def adam(parameters, gradient, first, second, step, rate, norm):
    """One step of Adam on a gradient cut to a length of `norm` at most; the first four [P] are changed in place.

    step  from 1
    """
    squares = 0.0
    for k in range(gradient.shape[0]):
        squares += np.float64(gradient[k]) * np.float64(gradient[k])
    cut = np.float32(min(1.0, norm / max(np.sqrt(squares), 1e-30)))
    a, b = np.float32(_FIRST), np.float32(_SECOND)
    scale = np.float32(rate / (1.0 - _FIRST**step))
    root = np.float32(1.0 / np.sqrt(1.0 - _SECOND**step))
    for k in range(gradient.shape[0]):
        slope = gradient[k] * cut
        first[k] = a * first[k] + (np.float32(1.0) - a) * slope
        second[k] = b * second[k] + (np.float32(1.0) - b) * slope * slope
        parameters[k] -= scale * first[k] / (np.sqrt(second[k]) * root + np.float32(_SMALL))


def fit(
    network: Network,
    parameters: npt.NDArray[np.float32],
    inputs: Inputs,
    memory: Memory,
    held: int,
    descent: Descent,
    merged: Merged,
    state: npt.NDArray[np.uint64],
    *,
    shares: bool = False,
) -> None:
    """Fit `parameters` [P], in place, to the first `held` samples of a memory.

    merged  scratch for the player's infosets
    state   [4] uint64 draws minibatches; advanced
    shares  outputs are made into probabilities by a softmax over the legal actions
    """
    gradient, first, second = np.zeros((3, network.size), np.float32)
    mean = float(memory.weight[:held].sum(dtype=np.float64)) / held
    drawn = np.zeros(descent.batch or 0, np.int64)
    found = 0 if descent.batch is not None else merge(memory, held, merged)[0]
    count = descent.batch or held
    for step in range(descent.steps):
        if descent.batch is not None:
            found = draw(memory, held, drawn, state, merged)
        rows = merged.row[:found]
        given = inputs.take(rows)
        layers = network.forward(parameters, given)
        scale = 2.0 / (count * mean)
        weight = (merged.weight[:found, None] * scale).astype(np.float32)
        total = (merged.total[:found] * scale).astype(np.float32)
        slope = loss_slope(layers[-1], weight, total, inputs.legal[rows], shares=shares)
        network.backward(parameters, given, layers, slope, gradient)
        rate = descent.learning_rate * ((1.0 - step / descent.steps) if descent.decays else 1.0)
        adam(parameters, gradient, first, second, step + 1, rate, descent.norm)


def loss_slope(output: Array, weight: Array, total: Array, legal: Array, *, shares: bool) -> Array:
    """[n, A] slope, at a network's output, of the sum over n merged infosets of weight/2 · squared error.

    weight [n, 1], total [n, A] weight times the mean target; illegal actions have no part in it.
    """
    if not shares:
        return (weight * output - total) * legal
    probability = softmax(output, legal)
    slope = (weight * probability - total) * legal
    return probability * (slope - (probability * slope).sum(axis=1, keepdims=True))


def softmax(output: Array, legal: Array) -> Array:
    """[n, A] probabilities of the legal actions."""
    highest = np.where(legal > 0, output, -np.inf).max(axis=1, keepdims=True)
    powers = np.exp(np.minimum(output - highest, 0)) * legal
    return powers / powers.sum(axis=1, keepdims=True)
