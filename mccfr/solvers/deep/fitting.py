"""Fitting a network to a memory: minibatches, Adam, and what is left to explain.

The loss is the weighted mean of squared errors over the legal actions; weights are relative to the memory's mean, so
that the bound on the gradient's norm means the same at every iteration.  Adam (Kingma & Ba 2015) begins anew with each
fit, so nothing of it outlives an iteration.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.solvers.deep.memory import Memory, Merged, SampleOrder, merge, merge_some
from mccfr.solvers.deep.network import Array, Network

_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8
LONGEST_GRADIENT = 1.0
"""As in Brown et al. 2019."""


@dataclass(frozen=True)
class Descent:
    """How a network is fitted.

    steps          minibatches
    learning_rate  of the first step
    decays         linearly to 0 over the steps
    longest        gradient
    """

    steps: int
    learning_rate: float
    decays: bool
    longest: float = LONGEST_GRADIENT


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
def adam(parameters, gradient, first, second, step, rate, longest):
    """One step of Adam on a gradient cut to a length of `longest`; the first four [P] are changed in place.

    step  from 1
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
    """Samples that are fitted to at once.  n rows, A actions.

    given   [n, F], or [n] rows of a one-hot: inputs
    weight  [n] float64
    total   [n, A] float64 weight times the target
    legal   [n, A] float32 1 where there is such an action
    """

    given: Array | npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    legal: npt.NDArray[np.float32]


class Batches(Protocol):
    """Where minibatches come from."""

    weight: float
    """Of all samples of a minibatch, on the mean."""

    def next(self) -> Batch:
        """The next minibatch; its arrays may be those of the one before, filled anew."""


class MergedBatches:
    """Minibatches of a memory of listed infosets, samples of one infoset merged."""

    def __init__(
        self, inputs: Inputs, memory: Memory, held: int, batch: int | None, merged: Merged, start: int
    ) -> None:
        """The first `held` samples of a memory, `batch` at a time (None: all); `merged` is scratch.

        start  number that the order of the samples follows from
        """
        self.weight = float(memory.weight[:held].sum(dtype=np.float64)) / held * (batch or held)
        self._inputs, self._memory, self._batch, self._merged = inputs, memory, batch, merged
        self._walk = SampleOrder(held, start)
        self._found = 0 if batch is not None else merge(memory, held, merged)[0]

    def next(self) -> Batch:
        """As `Batches.next`."""
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
    """Fit `parameters` [P], in place.

    shares  outputs are made into probabilities by a softmax over the legal actions
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
