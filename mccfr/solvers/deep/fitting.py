"""Fits a network to a memory by minibatches and Adam (Kingma & Ba 2015).

The loss is the weighted mean of squared errors over the legal actions.  Weights are relative to the memory's mean, so
that the bound on the gradient's norm has the same meaning in every iteration.  Adam starts anew with each fit, so its
state does not outlive an iteration.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.solvers.deep.network import Array, Network
from mccfr.solvers.deep.sample_memory import Memory, MergedSamples, SampleOrder, merge, merge_some

_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8
LONGEST_GRADIENT = 1.0
"""Bound of the gradient's norm, as in Brown et al. 2019."""


@dataclass(frozen=True)
class Descent:
    """Options of fitting a network.

    steps          number of minibatches
    learning_rate  rate of the first step
    decays         whether the rate falls linearly to 0 over the steps
    longest        bound of the gradient's norm
    """

    steps: int
    learning_rate: float
    decays: bool
    longest: float = LONGEST_GRADIENT


@dataclass(frozen=True)
class Inputs:
    """Network inputs of a player's infosets: I infosets, A actions.

    features  [I, F] float32; None: one-hot vectors, given as numbers of infosets
    legal     [I, A] float32  1 for the actions of an infoset
    """

    features: npt.NDArray[np.float32] | None
    legal: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[np.int64]) -> Array | npt.NDArray[np.int64]:
        """Return the inputs of some infosets."""
        return rows if self.features is None else self.features[rows]


@njit
def adam(parameters, gradient, first, second, step, rate, longest):
    """Do one step of Adam with the gradient cut to norm `longest`.

    step  counted from 1

    The arrays `parameters`, `first` and `second` [P] change in place.
    """
    squares = 0.0
    for k in range(gradient.shape[0]):
        squares += np.float64(gradient[k]) * np.float64(gradient[k])
    cut = np.float32(min(1.0, longest / max(np.sqrt(squares), 1e-30)))
    a, b = np.float32(_FIRST), np.float32(_SECOND)
    scale = np.float32(rate / (1.0 - _FIRST**step))
    root = np.float32(1.0 / np.sqrt(1.0 - _SECOND**step))
    for k in range(gradient.shape[0]):
        slope = gradient[k] * cut
        first[k] = a * first[k] + (np.float32(1.0) - a) * slope
        second[k] = b * second[k] + (np.float32(1.0) - b) * slope * slope
        parameters[k] -= scale * first[k] / (np.sqrt(second[k]) * root + np.float32(_SMALL))


class Batch(NamedTuple):
    """Samples of a minibatch: n rows, A actions.

    given   [n, F], or [n] rows of a one-hot matrix
    weight  [n] float64
    total   [n, A] float64, weight times the target
    legal   [n, A] float32, 1 for legal actions
    """

    given: Array | npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    legal: npt.NDArray[np.float32]


class Batches(Protocol):
    """A source of minibatches."""

    weight: float
    """Mean weight of all samples of a minibatch."""

    def next(self) -> Batch:
        """Return the next minibatch; its arrays may be reused."""


class MergedBatches:
    """Minibatches of a memory of listed infosets, with samples of one infoset merged."""

    def __init__(
        self, inputs: Inputs, memory: Memory, held: int, batch: int | None, merged: MergedSamples, start: int
    ) -> None:
        """Prepare minibatches of `batch` samples (None: all) from the first `held` samples of a memory.

        merged  scratch
        start   determines the order of the samples
        """
        self.weight = float(memory.weight[:held].sum(dtype=np.float64)) / held * (batch or held)
        self._inputs, self._memory, self._batch, self._merged = inputs, memory, batch, merged
        self._walk = SampleOrder(held, start)
        self._found = 0 if batch is not None else merge(memory, held, merged)[0]

    def next(self) -> Batch:
        """Return the next minibatch; its arrays are reused."""
        merged = self._merged
        if self._batch is not None:
            self._found = merge_some(self._memory, self._walk.take(self._batch), merged)
        found, rows = self._found, merged.row[: self._found]
        return Batch(self._inputs.take(rows), merged.weight[:found], merged.total[:found], self._inputs.legal[rows])


def fit(
    network: Network,
    parameters: npt.NDArray[np.float32],
    batches: Batches,
    descent: Descent,
    *,
    shares: bool = False,
) -> None:
    """Fit parameters [P], in place.

    shares  whether outputs become probabilities by a softmax over the legal actions
    """
    gradient, first, second = np.zeros((3, network.size), np.float32)
    scale = 2.0 / batches.weight
    for step in range(descent.steps):
        batch = batches.next()
        layers = network.forward(parameters, batch.given)
        weight, total = (batch.weight[:, None] * scale).astype(np.float32), (batch.total * scale).astype(np.float32)
        slope = loss_slope(layers[-1], weight, total, batch.legal, shares=shares)
        network.backward(parameters, batch.given, layers, slope, gradient)
        rate = descent.learning_rate * ((1.0 - step / descent.steps) if descent.decays else 1.0)
        adam(parameters, gradient, first, second, step + 1, rate, descent.longest)


def loss_slope(output: Array, weight: Array, total: Array, legal: Array, *, shares: bool) -> Array:
    """Return [n, A] the gradient of the loss at the network's output.

    weight  [n, 1]
    total   [n, A] weight times the mean target

    The loss is the sum over n rows of weight/2 · squared error; illegal actions have no part in it.
    """
    if not shares:
        return (weight * output - total) * legal
    probability = softmax(output, legal)
    slope = (weight * probability - total) * legal
    return probability * (slope - (probability * slope).sum(axis=1, keepdims=True))


def softmax(output: Array, legal: Array) -> Array:
    """Return [n, A] probabilities of the legal actions."""
    highest = np.where(legal > 0, output, -np.inf).max(axis=1, keepdims=True)
    powers = np.exp(np.minimum(output - highest, 0)) * legal
    return powers / powers.sum(axis=1, keepdims=True)
