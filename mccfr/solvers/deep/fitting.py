"""Fits a network to a memory of samples by Adam (Kingma & Ba 2015), then may solve its last layer.

A memory holds samples of regrets or strategies at infosets, from the traversals of Deep CFR.

The loss is the weighted mean of squared errors over the legal actions.  Weights are divided by their mean over the
memory, so that the bound on the gradient's norm has the same meaning in every iteration.  Each fit starts Adam with
moments of 0, so Adam's state does not outlive an iteration.

Solving for the last layer (`solve_output`) removes the noise of minibatches in this layer.  Regrets of single
traversals are many times as large as their means, so this noise limits a fit (docs/measured/deep.md has figures).  The
output is linear in the last layer, so the loss over a whole memory is a quadratic form in its weights.  Its minimum
solves a system of linear equations for each action, with one equation for each unit and one for the bias.  The pass
over the memory goes forward only, a third of the cost of training steps on the same samples.  A small multiple of the
squared weights (ridge regression) keeps weights small where the memory has little information.  The penalty is on the
weights and not on their change: changes add up from fit to fit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.solvers.deep.network import Array, Network
from mccfr.solvers.deep.sample_memory import Memory, MergedSamples, SampleOrder, merge, merge_some

_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8
LONGEST_GRADIENT = 1.0
"""Bound of the gradient's norm, as in Brown et al. 2019."""
RIDGES = {"last": 1e-6, "all": 1e-4}
"""Penalty of each squared weight of a solved last layer, as a share of a unit's mean squared output.

The keys are values of `solver.readout`: the output layer takes the last hidden layer, or all of them.  A larger penalty
biases outputs of few units; a smaller one leaves large weights with many units.  docs/measured/deep.md has figures.
"""


@dataclass(frozen=True)
class Inputs:
    """Network inputs of a player's I infosets, with F columns and at most A actions.

    features  [I, F] float32; None: one-hot vectors, represented by the infosets' numbers
    legal     [I, A] float32  1 for the actions of an infoset, else 0
    """

    features: npt.NDArray[np.float32] | None
    legal: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[np.int64]) -> Array | npt.NDArray[np.int64]:
        """Return inputs [n, F] of infosets number `rows` [n]; for one-hot vectors `rows` itself."""
        return rows if self.features is None else self.features[rows]


@njit
def adam(parameters, gradient, first, second, step, rate, longest):
    """Do one step of Adam (Kingma & Ba 2015, algorithm 1) with the gradient scaled down to norm `longest`.

    parameters     [P] float32 parameters of the network, changed in place
    gradient       [P] float32
    first, second  [P] float32 running means of gradient and squared gradient, changed in place
    step           number of the step, counted from 1
    rate           learning rate
    longest        largest norm of the gradient; a shorter gradient is not scaled
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
    """A minibatch of n samples, or of n infosets with their samples merged; F input columns, A actions.

    given   [n, F] network inputs; or [n] int64, for each the column of its one-hot input that is 1
    weight  [n] float64    weight in the loss
    total   [n, A] float64 weight times the target (regrets or probabilities)
    legal   [n, A] float32 1 for legal actions, else 0
    """

    given: Array | npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    legal: npt.NDArray[np.float32]


class Batches(Protocol):
    """Source of the minibatches to which `fit` fits a network, one step for each."""

    weight: float
    """Total weight of a minibatch's samples, as the mean over minibatches."""

    def next(self) -> Batch:
        """Return the next minibatch; the next call may overwrite its arrays."""


class MergedBatches:
    """Minibatches from a memory whose samples name infosets by number.

    The samples of a minibatch at one infoset are merged into one row: their weights and weighted targets are added.
    """

    def __init__(
        self, inputs: Inputs, memory: Memory, samples: int, batch: int | None, merged: MergedSamples, start: int
    ) -> None:
        """Prepare minibatches of `batch` samples (None: all) from the first `samples` samples of a memory.

        inputs  network inputs of the player's infosets
        merged  scratch with an entry for each of the player's infosets; every minibatch overwrites it
        start   any number; determines the order of the samples
        """
        self.weight = float(memory.weight[:samples].sum(dtype=np.float64)) / samples * (batch or samples)
        self._inputs, self._memory, self._batch, self._merged = inputs, memory, batch, merged
        self._walk = SampleOrder(samples, start)
        self._found = 0 if batch is not None else merge(memory, samples, merged)[0]

    def next(self) -> Batch:
        """Return the next minibatch; the next call may overwrite its arrays."""
        merged = self._merged
        if self._batch is not None:
            self._found = merge_some(self._memory, self._walk.take(self._batch), merged)
        count, rows = self._found, merged.row[: self._found]
        return Batch(self._inputs.take(rows), merged.weight[:count], merged.total[:count], self._inputs.legal[rows])


def fit(
    network: Network, parameters: Array, batches: Batches, config: DeepCfrConfig, steps: int, *, shares: bool = False
) -> None:
    """Fit a network's parameters [P] float32 by a step of Adam for each of `steps` minibatches, in place.

    batches  source of the minibatches
    config   gives `learning_rate` and its `decay`
    shares   True: targets are probabilities, which a softmax of the outputs over the legal actions predicts; False:
             targets are regrets, which the outputs predict
    """
    gradient, first, second = np.zeros((3, network.size), np.float32)
    scale = 2.0 / batches.weight
    for step in range(steps):
        batch = batches.next()
        layers = network.forward(parameters, batch.given)
        weight, total = (batch.weight[:, None] * scale).astype(np.float32), (batch.total * scale).astype(np.float32)
        slope = loss_slope(layers[-1], weight, total, batch.legal, shares=shares)
        network.backward(parameters, batch.given, layers, slope, gradient)
        rate = config.learning_rate * ((1.0 - step / steps) if config.decay == "linear" else 1.0)
        adam(parameters, gradient, first, second, step + 1, rate, LONGEST_GRADIENT)


def loss_slope(output: Array, weight: Array, total: Array, legal: Array, *, shares: bool) -> Array:
    """Return [n, A] the gradient of the loss with respect to the network's output.

    The loss is the sum over n rows of weight/2 · squared error; illegal actions have no part in it.

    output  [n, A] of the network
    weight  [n, 1] weight of each row
    total   [n, A] weight times the mean target
    legal   [n, A] 1 for legal actions, else 0
    shares  whether the error is that of the softmax of the output, not of the output itself
    """
    if not shares:
        return (weight * output - total) * legal
    probability = softmax(output, legal)
    slope = (weight * probability - total) * legal
    return probability * (slope - (probability * slope).sum(axis=1, keepdims=True))


def softmax(output: Array, legal: Array) -> Array:
    """Return [n, A] the softmax of output [n, A] over the legal actions (legal [n, A] is 1); others get 0."""
    highest = np.where(legal > 0, output, -np.inf).max(axis=1, keepdims=True)
    powers = np.exp(np.minimum(output - highest, 0)) * legal
    return powers / powers.sum(axis=1, keepdims=True)


def solve_output(network: Network, parameters: Array, batches: Iterable[Batch], ridge: float) -> None:
    """Set the last layer, in place, so that the weighted squared error over all `batches` is least.

    parameters  [P] float32 of the network; those of the last layer are changed
    ridge       penalty of each squared weight and bias, as a share of the weighted sum of a unit's squared outputs
                (mean over units)

    Each sample's legal actions must be the first ones.  An action without samples of positive weight keeps its weights.
    """
    source, weight, bias = network.output_layer(parameters)
    units, actions = weight.shape
    products, sums = np.zeros((actions, units + 1, units + 1)), np.zeros((units + 1, actions))
    for batch in batches:
        hidden = np.ones((len(batch.weight), units + 1))
        hidden[:, :units] = network.forward(parameters, batch.given)[source]
        weighed, counts = hidden * batch.weight[:, None], batch.legal.sum(axis=1)
        for count in np.unique(counts):
            with_count = counts == count
            products[: int(count)] += weighed[with_count].T @ hidden[with_count]
        sums += hidden.T @ (batch.total * batch.legal)
    for action in range(actions):
        scale = np.trace(products[action]) / (units + 1)
        if scale > 0:
            solution = np.linalg.solve(products[action] + ridge * scale * np.eye(units + 1), sums[:, action])
            weight[:, action], bias[action] = solution[:units], solution[units]
