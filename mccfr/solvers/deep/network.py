"""Small neural networks: a list of layers over one flat array of parameters, with gradients.

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
    """Make this process compute numpy's matrix products in one thread; return whether that succeeded.

    It fails if numpy's wheel has no OpenBLAS, or one in which no known function sets the number of threads.  With
    another number of threads the products' last bits may differ.
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
    """A layer that selects the columns first to stop-1 of the network's input."""

    first: int
    stop: int


class Dense(NamedTuple):
    """A fully connected layer: source · W + b.

    source     index of the layer whose result it takes; -1: the network's input, which may be columns of one-hot inputs
    inputs     columns of the source
    outputs    units: columns of the result
    at         index of W [inputs, outputs] in the flat parameters; b [outputs] follows it
    rectified  True: the result is max(·, 0)
    skip       True: the source is added to the product before b and the rectification
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
    """A layer that concatenates the columns of several layers' results; `sources` are the layers' indices."""

    sources: tuple[int, ...]


class Normalise(NamedTuple):
    """A layer that shifts and scales each row of layer `source` to mean 0 and variance 1."""

    source: int


Layer = Columns | Dense | Join | Normalise


class LayerBuilder:
    """Collects the layers of a network; `add` and `dense` each add one and return its index."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.size = 0

    def add(self, layer: Columns | Join | Normalise) -> int:
        """Add a layer without parameters; return its index."""
        self.layers.append(layer)
        return len(self.layers) - 1

    def dense(
        self, source: int, inputs: int, outputs: int, *, rectified: bool = True, skip: bool = False, biased: bool = True
    ) -> int:
        """Add a fully connected layer, max(source · W + b, 0) by default; return its index.

        source     index of the layer whose result it takes; -1: the network's input
        inputs     columns of the source
        outputs    units: columns of the result
        rectified  False: no max(·, 0)
        skip       True: the source is added to the product before b
        biased     False: there is no b, and the result is not rectified
        """
        self.layers.append(Dense(source, inputs, outputs, self.size, rectified, skip, biased))
        self.size += inputs * outputs + outputs * biased
        return len(self.layers) - 1


class Network:
    """A neural network; its P parameters are not kept here but given to methods as a flat array.

    layers  in order of computation; the result of the last is the output
    size    P
    join    index of the `Join` layer of two sources, one that depends on cards only and one on bets only; None: there
            is none, and `SplitNetwork` cannot evaluate the network
    """

    def __init__(self, layers: Sequence[Layer], size: int, join: int | None = None) -> None:
        self.layers, self.size, self.join = tuple(layers), size, join
        self._learns: list[bool] = []  # whether a layer's result depends on parameters; else it needs no gradient
        for layer in self.layers:
            joins = isinstance(layer, Join) and any(self._learns[source] for source in layer.sources)
            self._learns.append(joins or isinstance(layer, Dense | Normalise))

    def initial(self, state: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
        """Return [P] random float32 weights and biases, uniform within ±1/√(inputs of their layer).

        state  [4] uint64 state of the random generator, which is advanced
        """
        parameters = np.zeros(self.size)
        _fill_uniform(state, parameters)
        for layer in self.layers:
            if isinstance(layer, Dense):
                parameters[_span(layer)] /= np.sqrt(layer.inputs)
        return parameters.astype(np.float32)

    def forward(self, parameters: Array, inputs: Array | npt.NDArray[np.int64]) -> list[Array]:
        """Return the result [n, units] of every layer; the last one is the output [n, A].

        parameters  [P]
        inputs      [n, F]; or [n] int64, for each row the column of a one-hot input that is 1
        """
        results: list[Array] = []
        for layer in self.layers:
            results.append(_result(layer, parameters, inputs, results))
        return results

    def output_layer(self, parameters: Array) -> tuple[int, Array, Array]:
        """Return the last layer's (index of its source layer of U units, weights [U, A], bias [A]).

        Weights and bias are views of `parameters` [P].
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
        """Fill `gradient` with the gradient of a loss with respect to the parameters, in place.

        parameters  [P]
        inputs      [n, F], or [n] int64 columns of one-hot inputs, which must be distinct
        layers      results of `forward` on the same parameters and inputs
        slope       [n, A] gradient of the loss with respect to the output; it may be overwritten
        gradient    [P]
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
    """Return a layer's result [n, units].

    parameters  [P] of the network
    inputs      [n, F] inputs of the network; or [n] int64, for each row the column of a one-hot input that is 1
    results     results [n, units] of earlier layers, by index of the layer
    """
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
    """Evaluates a network in three parts: layers of cards only, layers of bets only, and the rest.

    A hand on a board occurs at many decisions, and a decision with many hands.  The first layer that takes both cards
    and bets multiplies their joined results by one matrix.  That product is the sum of a term of the cards (`cards`)
    and a term of the bets (`bets`), each computed once.  Only `rest` is evaluated for each pair of hand and decision.
    Results are those of `Network.forward` up to rounding.
    """

    def __init__(self, network: Network, card_columns: int) -> None:
        """Prepare a network with a layer that joins cards and bets.

        card_columns  number of leading columns of its inputs that are cards
        """
        assert network.join is not None
        join, first = network.layers[network.join : network.join + 2]
        assert isinstance(join, Join) and isinstance(first, Dense)
        self._layers, self._columns, self._first, self._place = network.layers, card_columns, first, network.join + 1
        self._cards, self._bets = join.sources

    @property
    def width(self) -> int:
        """Return U, the number of units of the first layer that takes both cards and bets."""
        return self._first.outputs

    def cards(self, parameters: Array, values: Array) -> Array:
        """Return [n, U], the term of n hands in the first layer that takes both cards and bets.

        parameters  [P]
        values      [n, card columns] network inputs of the cards
        """
        card_result = np.ascontiguousarray(self._part(self._cards, parameters, values))
        return card_result @ _weights(self._first, parameters)[0][: card_result.shape[1]]

    def bets(self, parameters: Array, values: Array) -> Array:
        """Return [n, U], the term of n decisions in the first layer that takes cards and bets.

        It includes the layer's bias.

        parameters  [P]
        values      [n, bet columns] network inputs of the bets
        """
        wide = np.zeros((len(values), self._columns + values.shape[1]), values.dtype)
        wide[:, self._columns :] = values
        bet_result, (weight, bias) = self._part(self._bets, parameters, wide), _weights(self._first, parameters)
        bet_result = np.ascontiguousarray(bet_result)
        return bet_result @ weight[-bet_result.shape[1] :] + bias

    def rest(self, parameters: Array, joined: Array) -> Array:
        """Return the network's output [n, A] from the first layer that takes cards and bets.

        parameters  [P]
        joined      [n, U] result of that layer: max(cards' term + bets' term, 0)
        """
        results: dict[int, Array] = {self._place: joined}
        for number in range(self._place + 1, len(self._layers)):
            results[number] = _result(self._layers[number], parameters, joined, results)
        return results[len(self._layers) - 1]

    def _part(self, number: int, parameters: Array, values: Array) -> Array:
        """Return the result [n, units] of layer `number`, which depends only on cards or only on bets.

        parameters  [P]
        values      [n, columns] network inputs; columns that the layer does not use may be missing at the end
        """
        layer = self._layers[number]
        sources = layer.sources if isinstance(layer, Join) else () if isinstance(layer, Columns) else (layer.source,)
        results = {source: self._part(source, parameters, values) for source in sources}
        return _result(layer, parameters, values, results)


def _deviation(centred: Array) -> Array:
    """Return [n, 1] standard deviations of rows [n, units] with mean 0; 1e-6 is added to each variance."""
    return np.sqrt((centred * centred).mean(axis=1, keepdims=True) + centred.dtype.type(_LEAST_VARIANCE))


def _add(slopes: list[Array | None], number: int, slope: Array) -> None:
    before = slopes[number]
    slopes[number] = slope if before is None else before + slope


def _span(layer: Dense) -> slice:
    return slice(layer.at, layer.at + layer.inputs * layer.outputs + layer.outputs * layer.biased)


def _weights(layer: Dense, flat: Array) -> tuple[Array, Array]:
    """Return a layer's (W [inputs, outputs], b [outputs, or 0 without bias]), as views of `flat` [P]."""
    middle = layer.at + layer.inputs * layer.outputs
    return flat[layer.at : middle].reshape(layer.inputs, layer.outputs), flat[middle : _span(layer).stop]


@njit
def _finish(result, bias, rectified):
    """Add bias [outputs] to result [n, outputs], then set negatives to 0 if `rectified`, in place."""
    for row in range(result.shape[0]):
        for k in range(result.shape[1]):
            number = result[row, k] + bias[k]
            result[row, k] = max(number, number * 0) if rectified else number


@njit
def _cut(slope, result, rectified, steps):
    """Carry a gradient back through max(·, 0) of a layer in place; sum it up for the layer's bias.

    slope      [n, outputs] gradient with respect to the layer's result; becomes 0 where a rectified result is 0
    result     [n, outputs] the layer's result
    rectified  whether the layer is rectified
    steps      [outputs] receives the gradient with respect to the bias: the sums of `slope` over rows
    """
    for k in range(steps.shape[0]):
        steps[k] = 0
    for row in range(slope.shape[0]):
        for k in range(slope.shape[1]):
            passed = slope[row, k] if result[row, k] > 0 or not rectified else slope[row, k] * 0
            slope[row, k] = passed
            steps[k] += passed


@njit
def _fill_uniform(state, numbers):
    """Fill numbers [P] float64 with uniform random numbers in [-1, 1); advance state [4] uint64."""
    for k in range(numbers.shape[0]):
        numbers[k] = 2.0 * uniform(state) - 1.0


def stacked_network(
    inputs: int, actions: int, layers: int, units: int, cards: int = 0, *, reads_all: bool = False
) -> Network:
    """Return a network of fully connected hidden layers, as in the Leduc runs of Steinberger 2019.

    inputs     number of input columns
    actions    number of outputs
    layers     number of hidden layers, with `units` units each
    cards      number of leading columns that are cards, which `SplitNetwork` evaluates apart from bets; 0: no split
    reads_all  True: the output layer takes every hidden layer; False: only the last
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

    groups      number of columns of each group of cards; they count ranks, suits and cards, so that a product with W is
                the sum of their embeddings
    bets        number of columns of bets, which follow those of cards
    actions     number of outputs
    units       units of each embedding and layer, but for the card branch's first two layers
    card_units  units of the card branch's first two layers
    reads_all   True: the output layer takes every layer of the trunk; False: only the last. The last one is normalised
                in both cases
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
    """Add the output layer to a network: `actions` outputs, not rectified.

    hidden     indices of the hidden layers, with `units` units each
    reads_all  True: the output layer takes all of them joined; False: the last one
    """
    if reads_all and len(hidden) > 1:
        builder.dense(builder.add(Join(tuple(hidden))), units * len(hidden), actions, rectified=False)
    else:
        builder.dense(hidden[-1], units, actions, rectified=False)
