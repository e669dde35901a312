"""The last layer of a network, solved for: what minibatches leave there of their noise is taken out again.

A network's output is linear in its last layer, so whatever the layers before it make of the inputs, the loss over a
whole memory is a quadratic form in the last layer's weights.  Its least point is the solution of as many linear
equations as there are units, for each action by itself; the pass over the memory that adds them up goes forward only,
a third of what steps over the same samples take.  A small multiple of the squared weights (ridge regression) is added,
so that they stay small where the memory says next to nothing of them.  It is of the weights, not of their change: with
an output that sees more units than there are infosets, changes added up from fit to fit until weights were thousands of
times as large as what they give, and the steps of the next fit, through such weights, ruined the layers before.

Regrets of single traversals are many times as large as their means, so the noise of minibatches decides what a fit is
worth (docs/measured/deep.md has figures).  Layers before the last one take it in as well, but what they pass on is only
what the last one has to choose from.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mccfr.solvers.deep.fitting import Batch
from mccfr.solvers.deep.network import Network

RIDGES = {"last": 1e-6, "all": 1e-4}
"""What is added to the squared error for each squared weight, as a share of the mean squared output of a unit, by what
the output sees.  More of it is wrong where few units are enough, less leaves large weights where there are many:
docs/measured/deep.md has figures."""


def solve_output(network: Network, parameters: npt.NDArray[np.float32], batches: Iterable[Batch], ridge: float) -> None:
    """Set the last layer, in place, to what has the least weighted squared error over all samples of `batches`.

    ridge  one of RIDGES

    Legal actions of a row are the first ones.  Batches without weight change nothing.
    """
    source, weight, bias = network.output_layer(parameters)
    units, actions = weight.shape
    products, sums = np.zeros((actions, units + 1, units + 1)), np.zeros((units + 1, actions))
    for batch in batches:
        seen = np.ones((len(batch.weight), units + 1))
        seen[:, :units] = network.forward(parameters, batch.given)[source]
        weighed, counts = seen * batch.weight[:, None], batch.legal.sum(axis=1)
        for count in np.unique(counts):
            here = counts == count
            products[: int(count)] += weighed[here].T @ seen[here]
        sums += seen.T @ (batch.total * batch.legal)
    for action in range(actions):
        scale = np.trace(products[action]) / (units + 1)
        if scale > 0:
            found = np.linalg.solve(products[action] + ridge * scale * np.eye(units + 1), sums[:, action])
            weight[:, action], bias[action] = found[:units], found[units]
