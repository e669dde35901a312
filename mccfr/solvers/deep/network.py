"""Small networks as a list of layers over one flat array of parameters, with gradients.

Matrix products are numpy's.  A network of 10,000 to 100,000 parameters needs no deep-learning library.  Networks
compute in the dtype of their parameters: float32 in training, float64 in tests of gradients.
"""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.common.rng import uniform

Array = npt.NDArray[np.floating]
_LEAST_VARIANCE = 1e-6
_SET_THREADS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@cache
def use_one_thread() -> bool:
    """Make this process compute matrix products in one thread; return False for an unknown library.

    The number of threads changes their last bits.
    """
    root = Path(np.__file__).parent
    for path in sorted([*root.parent.glob("numpy.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]):
        library = ctypes.CDLL(str(path))
        for name in _SET_THREADS:
            if hasattr(library, name):
                getattr(library, name)(1)
                return True
    return False


class Columns(NamedTuple):
    """A layer with the columns first to stop-1 of the input."""

    first: int
    stop: int


class Dense(NamedTuple):
    """A full layer, source · W + b, with W [inputs, outputs] at `at` in the parameters and b after it.

    source     index of the layer before; -1: the network's input, which may be row numbers of a one-hot matrix
    rectified  whether the result is max(·, 0)
    skip       whether the source is added before that
    biased     False: there is no b, and the result is not rectified
    """

    source: int
    inputs: int
    outputs: int
    at: int
    rectified: bool = True
    skip: bool = False
    biased: bool = True


class Join(NamedTuple):
    """A layer that puts the results of several layers side by side."""

    sources: tuple[int, ...]


class Normalise(NamedTuple):
    """A layer that scales each row to mean 0 and variance 1."""

    source: int


Layer = Columns | Dense | Join | Normalise


class LayerBuilder:
    """Builds a network; both methods add a layer and return its index."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.size = 0

    def add(self, layer: Columns | Join | Normalise) -> int:
        """Add a layer without parameters."""
        self.layers.append(layer)
        return len(self.layers) - 1

    def dense(
        self, source: int, inputs: int, outputs: int, *, rectified: bool = True, skip: bool = False, biased: bool = True
    ) -> int:
        """Add a full layer; see `Dense`."""
        self.layers.append(Dense(source, inputs, outputs, self.size, rectified, skip, biased))
        self.size += inputs * outputs + outputs * biased
        return len(self.layers) - 1


class Network:
    """A network of P parameters.

    layers  the last is the output
    size    P
    join    index of the layer that joins all that depends on cards with all that depends on bets; None: there is none
    """

    def __init__(self, layers: Sequence[Layer], size: int, join: int | None = None) -> None:
        self.layers, self.size, self.join = tuple(layers), size, join
        self._learns: list[bool] = []  # whether a layer's result depends on parameters; else it needs no gradient
        for layer in self.layers:
            joins = isinstance(layer, Join) and any(self._learns[source] for source in layer.sources)
            self._learns.append(joins or isinstance(layer, Dense | Normalise))

    def initial(self, state: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        """Return [P] initial parameters, uniform within ±1/√inputs; `state` is advanced."""
        parameters = np.zeros(self.size)
        _fill_uniform(state, parameters)
        for layer in self.layers:
            if isinstance(layer, Dense):
                parameters[_span(layer)] /= np.sqrt(layer.inputs)
        return parameters.astype(np.float32)

    def forward(self, parameters: Array, inputs: Array | npt.NDArray[np.int64]) -> list[Array]:
        """Return the result of every layer for an input [n, F]; the last is the output.

        The input may be [n] row numbers of a one-hot matrix.
        """
        results: list[Array] = []
        for layer in self.layers:
            results.append(_result(layer, parameters, inputs, results))
        return results

    def output_layer(self, parameters: Array) -> tuple[int, Array, Array]:
        """Return (index of its source layer, weights [U, A], bias [A]) of the last layer.

        Weights and bias are views of the parameters.
        """
        layer = self.layers[-1]
        assert isinstance(layer, Dense) and layer.source >= 0 and not layer.rectified
        return layer.source, *_weights(layer, parameters)

    def backward(
        self,
        parameters: Array,
        inputs: Array | npt.NDArray[np.int64],
        layers: list[Array],
        slope: Array,
        gradient: Array,
    ) -> None:
        """Fill `gradient` [P] from the gradient `slope` [n, A] of a loss at the output, in place.

        layers  results of `forward` on the same input; its rows must be distinct if they are numbers

        The cells of `slope` are overwritten.
        """
        slopes: list[Array | None] = [None] * len(layers)
        slopes[-1] = slope
        for number in range(len(layers) - 1, -1, -1):
            layer, delta = self.layers[number], slopes[number]
            if delta is None:
                continue
            if isinstance(layer, Dense):
                weight, _ = _weights(layer, parameters)
                steps, bias_steps = _weights(layer, gradient)
                if layer.biased:
                    _cut(delta, layers[number], layer.rectified, bias_steps)
                source = inputs if layer.source < 0 else layers[layer.source]
                if source.ndim == 1:
                    steps[:] = 0
                    steps[source] = delta
                else:
                    np.matmul(source.T, delta, out=steps)
                if layer.source >= 0 and self._learns[layer.source]:
                    _add(slopes, layer.source, delta @ weight.T + delta if layer.skip else delta @ weight.T)
            elif isinstance(layer, Join):
                at = 0
                for joined in layer.sources:
                    width = layers[joined].shape[1]
                    _add(slopes, joined, np.ascontiguousarray(delta[:, at : at + width]))
                    at += width
            elif isinstance(layer, Normalise):
                normalised, before = layers[number], layers[layer.source]
                scale = _deviation(before - before.mean(axis=1, keepdims=True))
                centred = delta - delta.mean(axis=1, keepdims=True)
                projected = centred - normalised * (delta * normalised).mean(axis=1, keepdims=True)
                _add(slopes, layer.source, projected / scale)


def _result(
    layer: Layer,
    parameters: Array,
    inputs: Array | npt.NDArray[np.int64],
    results: Sequence[Array] | Mapping[int, Array],
) -> Array:
    """Return a layer's result from the inputs [n, F] and the results of the layers before it."""
    if isinstance(layer, Dense):
        source = inputs if layer.source < 0 else results[layer.source]
        weight, bias = _weights(layer, parameters)
        output: Array = weight[source] if source.ndim == 1 else source @ weight
        if layer.skip:
            output += source
        if layer.biased:
            _finish(output, bias, layer.rectified)
        return output
    if isinstance(layer, Columns):
        return cast(Array, inputs[:, layer.first : layer.stop])
    if isinstance(layer, Join):
        return np.concatenate([results[source] for source in layer.sources], axis=1)
    output = results[layer.source] - results[layer.source].mean(axis=1, keepdims=True)
    output /= _deviation(output)
    return output


class SplitNetwork:
    """Evaluates a network in parts: the cards' part, the bets' part, and the rest.

    A hand on a board occurs at many decisions, and a decision with many hands.  So each part is evaluated once, up to
    the sum in the first layer that needs both.  Only the rest is evaluated for each pair.  Results are equal up to
    rounding.
    """

    def __init__(self, network: Network, card_columns: int) -> None:
        """Prepare a network with a join, whose first `card_columns` inputs are cards."""
        assert network.join is not None
        join, first = network.layers[network.join : network.join + 2]
        assert isinstance(join, Join) and isinstance(first, Dense)
        self._layers, self._columns, self._first, self._place = network.layers, card_columns, first, network.join + 1
        self._cards, self._bets = join.sources

    @property
    def width(self) -> int:
        """Return U, the outputs of the first layer that needs both."""
        return self._first.outputs

    def cards(self, parameters: Array, values: Array) -> Array:
        """Return [n, U] the cards' part of the first layer that needs both, from cards [n, card columns]."""
        card_result = np.ascontiguousarray(self._part(self._cards, parameters, values))
        return card_result @ _weights(self._first, parameters)[0][: card_result.shape[1]]

    def bets(self, parameters: Array, values: Array) -> Array:
        """Return [n, U] the bets' part of that layer, bias included, from bets [n, bet columns]."""
        wide = np.zeros((len(values), self._columns + values.shape[1]), values.dtype)
        wide[:, self._columns :] = values
        bet_result, (weight, bias) = self._part(self._bets, parameters, wide), _weights(self._first, parameters)
        bet_result = np.ascontiguousarray(bet_result)
        return bet_result @ weight[-bet_result.shape[1] :] + bias

    def rest(self, parameters: Array, joined: Array) -> Array:
        """Return [n, A] the output, from the rectified sum [n, U] of both parts."""
        results: dict[int, Array] = {self._place: joined}
        for number in range(self._place + 1, len(self._layers)):
            results[number] = _result(self._layers[number], parameters, joined, results)
        return results[len(self._layers) - 1]

    def _part(self, number: int, parameters: Array, values: Array) -> Array:
        """Return the result of a layer that depends only on cards or only on bets."""
        layer = self._layers[number]
        sources = layer.sources if isinstance(layer, Join) else () if isinstance(layer, Columns) else (layer.source,)
        results = {source: self._part(source, parameters, values) for source in sources}
        return _result(layer, parameters, values, results)


def _deviation(centred: Array) -> Array:
    """Return [n, 1] standard deviations of rows with mean 0."""
    return np.sqrt((centred * centred).mean(axis=1, keepdims=True) + centred.dtype.type(_LEAST_VARIANCE))


def _add(slopes: list[Array | None], number: int, slope: Array) -> None:
    before = slopes[number]
    slopes[number] = slope if before is None else before + slope


def _span(layer: Dense) -> slice:
    return slice(layer.at, layer.at + layer.inputs * layer.outputs + layer.outputs * layer.biased)


def _weights(layer: Dense, flat: Array) -> tuple[Array, Array]:
    """Return W [inputs, outputs] and b [outputs] of a layer, as views of a flat array [P]."""
    middle = layer.at + layer.inputs * layer.outputs
    return flat[layer.at : middle].reshape(layer.inputs, layer.outputs), flat[middle : _span(layer).stop]


@njit
def _finish(result, bias, rectified):
    """Add a bias [outputs] to every row of result [n, outputs], and rectify it if `rectified`, in place."""
    for row in range(result.shape[0]):
        for k in range(result.shape[1]):
            number = result[row, k] + bias[k]
            result[row, k] = max(number, number * 0) if rectified else number


@njit
def _cut(slope, result, rectified, steps):
    """Set slope [n, outputs] to 0 where a rectified layer gave 0, and steps [outputs] to its sums."""
    for k in range(steps.shape[0]):
        steps[k] = 0
    for row in range(slope.shape[0]):
        for k in range(slope.shape[1]):
            passed = slope[row, k] if result[row, k] > 0 or not rectified else slope[row, k] * 0
            slope[row, k] = passed
            steps[k] += passed


@njit
def _fill_uniform(state, numbers):
    """Fill an array with random numbers in [-1, 1), in place."""
    for k in range(numbers.shape[0]):
        numbers[k] = 2.0 * uniform(state) - 1.0


def stacked_network(
    inputs: int, actions: int, layers: int, units: int, cards: int = 0, *, reads_all: bool = False
) -> Network:
    """Return a stack of `layers` hidden layers of `units`, as in the Leduc runs of Single Deep CFR.

    cards      leading columns that are cards, so that they can be evaluated apart from bets (`SplitNetwork`); 0: none
    reads_all  whether the output sees every hidden layer, and not only the last
    """
    builder, source, width = LayerBuilder(), -1, inputs
    if cards:
        source = builder.add(Join((builder.add(Columns(0, cards)), builder.add(Columns(cards, inputs)))))
    join, hidden = source if cards else None, []
    for _ in range(layers):
        source, width = builder.dense(source, width, units), units
        hidden.append(source)
    _output(builder, hidden, units, actions, reads_all)
    return Network(builder.layers, builder.size, join)


def branches(
    groups: Sequence[int], bets: int, actions: int, units: int, card_units: int, *, reads_all: bool = False
) -> Network:
    """Return the network of Brown et al. 2019, section 5.1: card branch, bet branch, trunk with skips.

    groups     columns of each group of cards: counts of ranks, suits and cards, so that a product is the sum of their
               embeddings
    bets       columns after them
    reads_all  whether the output sees every layer of the trunk; the last is normalised
    """
    builder, at, embedded = LayerBuilder(), 0, []
    for columns in groups:
        part = builder.add(Columns(at, at + columns))
        embedded.append(builder.dense(part, columns, units, rectified=False, biased=False))
        at += columns
    cards = builder.dense(builder.add(Join(tuple(embedded))), units * len(groups), card_units)
    cards = builder.dense(cards, card_units, card_units)
    cards = builder.dense(cards, card_units, units)
    line = builder.dense(builder.add(Columns(at, at + bets)), bets, units)
    line = builder.dense(line, units, units, skip=True)
    join = builder.add(Join((cards, line)))
    trunk = [builder.dense(join, 2 * units, units)]
    for _ in range(2):
        trunk.append(builder.dense(trunk[-1], units, units, skip=True))
    _output(builder, [*trunk[:-1], builder.add(Normalise(trunk[-1]))], units, actions, reads_all)
    return Network(builder.layers, builder.size, join)


def _output(builder: LayerBuilder, hidden: Sequence[int], units: int, actions: int, reads_all: bool) -> None:
    """Add an output after the last of some layers of `units`, or after all of them joined."""
    if reads_all and len(hidden) > 1:
        builder.dense(builder.add(Join(tuple(hidden))), units * len(hidden), actions, rectified=False)
    else:
        builder.dense(hidden[-1], units, actions, rectified=False)
