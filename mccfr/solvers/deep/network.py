"""Small networks as a list of layers over one flat array of parameters, with gradients.

Matrix products are numpy's.  A network of 10,000 to 100,000 parameters needs no deep-learning library.  Networks
compute in the dtype of their parameters: float32 in training, float64 in tests of gradients.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.common.rng import uniform

Array = npt.NDArray[np.floating]
_LEAST_VARIANCE = 1e-6


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
    """Builds a network; every method adds a layer and returns its index."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.size = 0

    def _add(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1

    def columns(self, first: int, stop: int) -> int:
        """Add a layer with part of the input."""
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
        """Add a full layer; see `Dense`."""
        place = self._add(Dense(source, inputs, outputs, self.size, rectified, skip, biased))
        self.size += inputs * outputs + outputs * biased
        return place

    def join(self, sources: Sequence[int]) -> int:
        """Add a layer that joins others."""
        return self._add(Join(tuple(sources)))

    def normalise(self, source: int) -> int:
        """Add a normalised layer."""
        return self._add(Normalise(source))


class Network:
    """A network of P parameters.

    layers  the last is the output
    size    P
    """

    def __init__(self, layers: Sequence[Layer], size: int) -> None:
        self.layers, self.size = tuple(layers), size
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

    def forward(self, parameters: Array, given: Array | npt.NDArray[np.int64]) -> list[Array]:
        """Return the result of every layer for an input [n, F]; the last is the output.

        The input may be [n] row numbers of a one-hot matrix.
        """
        found: list[Array] = []
        for layer in self.layers:
            found.append(_made(layer, parameters, given, found))
        return found

    def output_layer(self, parameters: Array) -> tuple[int, Array, Array]:
        """Return (index of its source layer, weights [U, A], bias [A]) of the last layer.

        Weights and bias are views of the parameters.
        """
        layer = self.layers[-1]
        assert isinstance(layer, Dense) and layer.source >= 0 and not layer.rectified
        return layer.source, *_weights(layer, parameters)

    def backward(
        self, parameters: Array, given: Array | npt.NDArray[np.int64], found: list[Array], slope: Array, gradient: Array
    ) -> None:
        """Fill `gradient` [P] from the gradient `slope` [n, A] of a loss at the output, in place.

        found  results of `forward` on the same input; its rows must be distinct if they are numbers

        The cells of `slope` are overwritten.
        """
        slopes: list[Array | None] = [None] * len(found)
        slopes[-1] = slope
        for place in range(len(found) - 1, -1, -1):
            layer, here = self.layers[place], slopes[place]
            if here is None:
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
                if layer.source >= 0 and self._learns[layer.source]:
                    _add(slopes, layer.source, here @ weight.T + here if layer.skip else here @ weight.T)
            elif isinstance(layer, Join):
                at = 0
                for joined in layer.sources:
                    width = found[joined].shape[1]
                    _add(slopes, joined, np.ascontiguousarray(here[:, at : at + width]))
                    at += width
            elif isinstance(layer, Normalise):
                made, before = found[place], found[layer.source]
                scale = _deviation(before - before.mean(axis=1, keepdims=True))
                flat = here - here.mean(axis=1, keepdims=True) - made * (here * made).mean(axis=1, keepdims=True)
                _add(slopes, layer.source, flat / scale)


def _made(
    layer: Layer,
    parameters: Array,
    given: Array | npt.NDArray[np.int64],
    found: Sequence[Array] | Mapping[int, Array],
) -> Array:
    """Return a layer's result from the input and the results `found` of the layers before."""
    if isinstance(layer, Dense):
        source = given if layer.source < 0 else found[layer.source]
        weight, bias = _weights(layer, parameters)
        made: Array = weight[source] if source.ndim == 1 else source @ weight
        if layer.skip:
            made += source
        if layer.biased:
            _finish(made, bias, layer.rectified)
        return made
    if isinstance(layer, Columns):
        return cast(Array, given[:, layer.first : layer.stop])
    if isinstance(layer, Join):
        return np.concatenate([found[source] for source in layer.sources], axis=1)
    made = found[layer.source] - found[layer.source].mean(axis=1, keepdims=True)
    made /= _deviation(made)
    return made


class SplitNetwork:
    """Evaluates a network in parts: the cards' part, the bets' part, and the rest.

    A hand on a board occurs at many decisions, and a decision with many hands.  So each part is evaluated once, up to
    the sum in the first layer that needs both.  Only the rest is evaluated for each pair.  Results are equal up to
    rounding.
    """

    def __init__(self, network: Network, card_columns: int) -> None:
        """Prepare a network whose first `card_columns` inputs are cards.

        Raises `ValueError` unless cards and bets first meet in a join.
        """
        self._layers, self._columns = network.layers, card_columns
        sees: list[frozenset[str]] = []
        for layer in self._layers:
            if isinstance(layer, Columns):
                parts = ["cards"] * (layer.first < card_columns) + ["bets"] * (layer.stop > card_columns)
                sees.append(frozenset(parts))
            elif isinstance(layer, Join):
                sees.append(frozenset().union(*(sees[source] for source in layer.sources)))
            else:
                sees.append(sees[layer.source] if layer.source >= 0 else frozenset(("cards", "bets")))
        both = [place for place, seen in enumerate(sees) if len(seen) == 2]
        join, first = self._layers[both[0]], self._layers[both[1]]
        if not isinstance(join, Join) or not isinstance(first, Dense) or first.skip or not first.rectified:
            raise ValueError("cards and bets of this network do not meet in a join and a rectified layer")
        self._first, self._place, self._sees = first, both[1], sees
        self._cards = tuple(source for source in join.sources if "cards" in sees[source])
        self._bets = tuple(source for source in join.sources if "bets" in sees[source])
        if (*self._cards, *self._bets) != join.sources:
            raise ValueError("this network joins bets before cards")

    @property
    def width(self) -> int:
        """Return U, the outputs of the first layer that needs both."""
        return self._first.outputs

    def cards(self, parameters: Array, values: Array) -> Array:
        """Return [n, U] the cards' part of the first layer that needs both, from cards [n, card columns]."""
        joined = self._part("cards", self._cards, parameters, values)
        return joined @ _weights(self._first, parameters)[0][: joined.shape[1]]

    def bets(self, parameters: Array, values: Array) -> Array:
        """Return [n, U] the bets' part of that layer, bias included, from bets [n, bet columns]."""
        wide = np.zeros((len(values), self._columns + values.shape[1]), values.dtype)
        wide[:, self._columns :] = values
        joined, (weight, bias) = self._part("bets", self._bets, parameters, wide), _weights(self._first, parameters)
        return joined @ weight[-joined.shape[1] :] + bias

    def rest(self, parameters: Array, joined: Array) -> Array:
        """Return [n, A] the output, from the rectified sum [n, U] of both parts."""
        found: dict[int, Array] = {self._place: joined}
        for place in range(self._place + 1, len(self._layers)):
            found[place] = _made(self._layers[place], parameters, joined, found)
        return found[len(self._layers) - 1]

    def _part(self, what: str, sources: tuple[int, ...], parameters: Array, values: Array) -> Array:
        """Return the joined results of `sources`, from layers that see only cards or only bets."""
        found: dict[int, Array] = {}
        for place, layer in enumerate(self._layers):
            if self._sees[place] == {what}:
                found[place] = _made(layer, parameters, values, found)
        return np.concatenate([found[source] for source in sources], axis=1)


def _deviation(centred: Array) -> Array:
    """Return [n, 1] standard deviations of rows with mean 0."""
    return np.sqrt((centred * centred).mean(axis=1, keepdims=True) + centred.dtype.type(_LEAST_VARIANCE))


def _add(slopes: list[Array | None], place: int, slope: Array) -> None:
    before = slopes[place]
    slopes[place] = slope if before is None else before + slope


def _span(layer: Dense) -> slice:
    return slice(layer.at, layer.at + layer.inputs * layer.outputs + layer.outputs * layer.biased)


def _weights(layer: Dense, flat: Array) -> tuple[Array, Array]:
    """Return W [inputs, outputs] and b [outputs] of a layer, as views of a flat array [P]."""
    middle = layer.at + layer.inputs * layer.outputs
    return flat[layer.at : middle].reshape(layer.inputs, layer.outputs), flat[middle : _span(layer).stop]


@njit
def _finish(made, bias, rectified):
    """Add a bias [outputs] to every row of made [n, outputs], and rectify it if asked, in place."""
    for row in range(made.shape[0]):
        for k in range(made.shape[1]):
            number = made[row, k] + bias[k]
            made[row, k] = max(number, number * 0) if rectified else number


@njit
def _cut(slope, made, rectified, steps):
    """Set slope [n, outputs] to 0 where a rectified layer gave 0, and steps [outputs] to its sums."""
    for k in range(steps.shape[0]):
        steps[k] = 0
    for row in range(slope.shape[0]):
        for k in range(slope.shape[1]):
            kept = slope[row, k] if made[row, k] > 0 or not rectified else slope[row, k] * 0
            slope[row, k] = kept
            steps[k] += kept


@njit
def _fill_uniform(state, numbers):
    """Fill an array with random numbers in [-1, 1), in place."""
    for k in range(numbers.shape[0]):
        numbers[k] = 2.0 * uniform(state) - 1.0


def plain(inputs: int, actions: int, layers: int, units: int, cards: int = 0, *, reads_all: bool = False) -> Network:
    """Return a stack of `layers` hidden layers of `units`, as in the Leduc runs of Single Deep CFR.

    cards      leading columns that are cards, so that they can be evaluated apart from bets (`SplitNetwork`); 0: none
    reads_all  whether the output sees every hidden layer, and not only the last
    """
    builder, source, width = LayerBuilder(), -1, inputs
    if cards:
        source = builder.join((builder.columns(0, cards), builder.columns(cards, inputs)))
    hidden = []
    for _ in range(layers):
        source, width = builder.dense(source, width, units), units
        hidden.append(source)
    _output(builder, hidden, units, actions, reads_all)
    return Network(builder.layers, builder.size)


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
        part = builder.columns(at, at + columns)
        embedded.append(builder.dense(part, columns, units, rectified=False, biased=False))
        at += columns
    cards = builder.dense(builder.join(embedded), units * len(groups), card_units)
    cards = builder.dense(cards, card_units, card_units)
    cards = builder.dense(cards, card_units, units)
    line = builder.dense(builder.columns(at, at + bets), bets, units)
    line = builder.dense(line, units, units, skip=True)
    trunk = [builder.dense(builder.join([cards, line]), 2 * units, units)]
    for _ in range(2):
        trunk.append(builder.dense(trunk[-1], units, units, skip=True))
    _output(builder, [*trunk[:-1], builder.normalise(trunk[-1])], units, actions, reads_all)
    return Network(builder.layers, builder.size)


def _output(builder: LayerBuilder, hidden: Sequence[int], units: int, actions: int, reads_all: bool) -> None:
    """Add an output after the last of some layers of `units`, or after all of them joined."""
    if reads_all and len(hidden) > 1:
        builder.dense(builder.join(hidden), units * len(hidden), actions, rectified=False)
    else:
        builder.dense(hidden[-1], units, actions, rectified=False)
