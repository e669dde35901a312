"""Small networks as a list of layers over one flat array of parameters, with the gradient of each.

Matrix products are numpy's; a network of 10,000 to 100,000 parameters with one fixed gradient needs nothing more.
Networks work in the dtype of their parameters: float32 in training, float64 where gradients are checked.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import njit
from mccfr.rng import uniform

Array = npt.NDArray[np.floating]
_LEAST_VARIANCE = 1e-6


class Columns(NamedTuple):
    """Columns first..stop-1 of the input."""

    first: int
    stop: int


class Dense(NamedTuple):
    """source · W + b: W [inputs, outputs] at `at` in the parameters, b after it.

    source     place of the layer it takes; -1: the network's input, which may be rows of a one-hot matrix as numbers
    rectified  max(·, 0) of the result
    skip       the source is added before that
    biased     False: there is no b, and nothing is rectified
    """

    source: int
    inputs: int
    outputs: int
    at: int
    rectified: bool = True
    skip: bool = False
    biased: bool = True


class Join(NamedTuple):
    """Results of several layers side by side."""

    sources: tuple[int, ...]


class Normalise(NamedTuple):
    """Each row to mean 0 and variance 1."""

    source: int


Layer = Columns | Dense | Join | Normalise


class Builder:
    """Puts a network together: every method adds a layer and returns its place."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.size = 0

    def _add(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1

    def columns(self, first: int, stop: int) -> int:
        """Part of the input."""
        return self._add(Columns(first, stop))

    def dense(
        self,
        source: int,
        inputs: int,
        outputs: int,
        *,
        rectified: bool = True,
        skip: bool = False,
        biased: bool = True,
    ) -> int:
        """A full layer; see `Dense`."""
        place = self._add(Dense(source, inputs, outputs, self.size, rectified, skip, biased))
        self.size += inputs * outputs + outputs * biased
        return place

    def join(self, sources: Sequence[int]) -> int:
        """Layers side by side."""
        return self._add(Join(tuple(sources)))

    def normalise(self, source: int) -> int:
        """A normalised layer."""
        return self._add(Normalise(source))


class Network:
    """A network of P parameters.

    Attributes:
        layers: the last is the output
        size:   P
    """

    def __init__(self, layers: Sequence[Layer], size: int) -> None:
        self.layers, self.size = tuple(layers), size

    def initial(self, state: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        """[P] parameters to begin with: weights and biases uniform within ±1/√inputs; `state` is advanced."""
        parameters = np.zeros(self.size)
        _fill_uniform(state, parameters)
        for layer in self.layers:
            if isinstance(layer, Dense):
                parameters[_span(layer)] /= np.sqrt(layer.inputs)
        return parameters.astype(np.float32)

    def forward(self, parameters: Array, given: Array | npt.NDArray[np.int64]) -> list[Array]:
        """What every layer makes of an input [n, F], or of [n] rows of a one-hot matrix; the last is the output."""
        found: list[Array] = []
        for layer in self.layers:
            if isinstance(layer, Dense):
                source = given if layer.source < 0 else found[layer.source]
                weight, bias = _weights(layer, parameters)
                made = weight[source] if source.ndim == 1 else source @ weight
                if layer.skip:
                    made += source
                if layer.biased:
                    _finish(made, bias, layer.rectified)
            elif isinstance(layer, Columns):
                made = given[:, layer.first : layer.stop]
            elif isinstance(layer, Join):
                made = np.concatenate([found[source] for source in layer.sources], axis=1)
            else:
                made = found[layer.source] - found[layer.source].mean(axis=1, keepdims=True)
                made /= _deviation(made)
            found.append(made)
        return found

    def backward(
        self, parameters: Array, given: Array | npt.NDArray[np.int64], found: list[Array], slope: Array, gradient: Array
    ) -> None:
        """Fill `gradient` [P], in place, from the slope [n, A] of a loss at the output, which is used up.

        found  of `forward` on the same input, whose rows are all different where they are numbers
        """
        slopes: list[Array | None] = [None] * len(found)
        slopes[-1] = slope
        for place in range(len(found) - 1, -1, -1):
            layer, here = self.layers[place], slopes[place]
            if here is None or isinstance(layer, Columns):
                continue
            if isinstance(layer, Dense):
                weight, _ = _weights(layer, parameters)
                steps, bias_steps = _weights(layer, gradient)
                if layer.biased:
                    _cut(here, found[place], layer.rectified, bias_steps)
                source = given if layer.source < 0 else found[layer.source]
                if source.ndim == 1:
                    steps[:] = 0
                    steps[source] = here
                else:
                    np.matmul(source.T, here, out=steps)
                if layer.source >= 0:
                    _add(slopes, layer.source, here @ weight.T + here if layer.skip else here @ weight.T)
            elif isinstance(layer, Join):
                at = 0
                for joined in layer.sources:
                    width = found[joined].shape[1]
                    _add(slopes, joined, np.ascontiguousarray(here[:, at : at + width]))
                    at += width
            else:
                made, before = found[place], found[layer.source]
                scale = _deviation(before - before.mean(axis=1, keepdims=True))
                flat = here - here.mean(axis=1, keepdims=True) - made * (here * made).mean(axis=1, keepdims=True)
                _add(slopes, layer.source, flat / scale)


def _deviation(centred: Array) -> Array:
    """[n, 1] standard deviation of rows of mean 0."""
    return np.sqrt((centred * centred).mean(axis=1, keepdims=True) + centred.dtype.type(_LEAST_VARIANCE))


def _add(slopes: list[Array | None], place: int, slope: Array) -> None:
    before = slopes[place]
    slopes[place] = slope if before is None else before + slope


def _span(layer: Dense) -> slice:
    return slice(layer.at, layer.at + layer.inputs * layer.outputs + layer.outputs * layer.biased)


def _weights(layer: Dense, flat: Array) -> tuple[Array, Array]:
    """W [inputs, outputs] and b [outputs] of a layer, as views of a flat array [P]."""
    middle = layer.at + layer.inputs * layer.outputs
    return flat[layer.at : middle].reshape(layer.inputs, layer.outputs), flat[middle : _span(layer).stop]


@njit
def _finish(made, bias, rectified):
    """Add a bias [outputs] to every row of made [n, outputs], and cut below 0 where it is rectified, in place."""
    for row in range(made.shape[0]):
        for k in range(made.shape[1]):
            number = made[row, k] + bias[k]
            made[row, k] = max(number, number * 0) if rectified else number


@njit
def _cut(slope, made, rectified, steps):
    """Set slope [n, outputs] to 0 where a rectified layer made 0, and `steps` [outputs] to its sums, in place."""
    for k in range(steps.shape[0]):
        steps[k] = 0
    for row in range(slope.shape[0]):
        for k in range(slope.shape[1]):
            kept = slope[row, k] if made[row, k] > 0 or not rectified else slope[row, k] * 0
            slope[row, k] = kept
            steps[k] += kept


@njit
def _fill_uniform(state, numbers):
    """Fill with numbers in [-1, 1), in place."""
    for k in range(numbers.shape[0]):
        numbers[k] = 2.0 * uniform(state) - 1.0


def plain(inputs: int, actions: int, layers: int, units: int) -> Network:
    """A plain stack: `layers` hidden layers of `units`, as in the Leduc runs of Single Deep CFR."""
    builder, source, width = Builder(), -1, inputs
    for _ in range(layers):
        source, width = builder.dense(source, width, units), units
    builder.dense(source, width, actions, rectified=False)
    return Network(builder.layers, builder.size)


def branches(groups: Sequence[int], bets: int, actions: int, units: int, card_units: int) -> Network:
    """Brown et al. 2019, section 5.1: a branch of cards, one of bets, and a trunk with skips whose end is normalised.

    groups  columns of each group of cards: ranks, suits and cards, each counted, so that a product with the embeddings
            of all three is their sum over the unordered group
    bets    columns after them
    """
    builder, at, embedded = Builder(), 0, []
    for columns in groups:
        part = builder.columns(at, at + columns)
        embedded.append(builder.dense(part, columns, units, rectified=False, biased=False))
        at += columns
    cards = builder.dense(builder.join(embedded), units * len(groups), card_units)
    cards = builder.dense(cards, card_units, card_units)
    cards = builder.dense(cards, card_units, units)
    line = builder.dense(builder.columns(at, at + bets), bets, units)
    line = builder.dense(line, units, units, skip=True)
    trunk = builder.dense(builder.join([cards, line]), 2 * units, units)
    for _ in range(2):
        trunk = builder.dense(trunk, units, units, skip=True)
    builder.dense(builder.normalise(trunk), units, actions, rectified=False)
    return Network(builder.layers, builder.size)
