"""The last layer of a network, solved for: what minibatches leave there of their noise is taken out again.

A network's output is linear in its last layer, so whatever the layers before it make of the inputs, the loss over a
whole memory is a quadratic form in the last layer's weights.  Its least point is the solution of as many linear
equations as there are units, for each action by itself; the pass over the memory that adds them up goes forward only,
a third of what steps over the same samples take.  A small multiple of the squared change (ridge regression) is added,
so that weights stay as they are where the memory says nothing of them.

Regrets of single traversals are many times as large as their means, so the noise of minibatches decides what a fit is
worth (docs/deep.md has figures).  Layers before the last one take it in as well, but what they pass on is only what
the last one has to choose from.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mccfr.solvers.deep.fitting import Batch
from mccfr.solvers.deep.network import Network

_RIDGE = 1e-6  # of the mean squared output of a unit


def solve_output(network: Network, parameters: npt.NDArray[np.float32], batches: Iterable[Batch]) -> None:
    """Set the last layer, in place, to what has the least weighted squared error over all samples of `batches`.

    Legal actions of a row are the first ones.  Batches without weight change nothing.
    """
    source, weight, bias = network.output_layer(parameters)
    units, actions = weight.shape
    products, gaps = np.zeros((actions, units + 1, units + 1)), np.zeros((units + 1, actions))
    for batch in batches:
        layers = network.forward(parameters, batch.given)
        seen = np.ones((len(batch.weight), units + 1))
        seen[:, :units] = layers[source]
        weighed, counts = seen * batch.weight[:, None], batch.legal.sum(axis=1)
        for count in np.unique(counts):
            here = counts == count
            products[: int(count)] += weighed[here].T @ seen[here]
        gaps += seen.T @ ((batch.total - batch.weight[:, None] * layers[-1]) * batch.legal)
    for action in range(actions):
        scale = np.trace(products[action]) / (units + 1)
        if scale > 0:
            change = np.linalg.solve(products[action] + _RIDGE * scale * np.eye(units + 1), gaps[:, action])
            weight[:, action] += change[:units]
            bias[action] += change[units]
