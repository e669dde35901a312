"""Solves for the last layer of a network, which removes the noise of minibatches there.

The output is linear in the last layer, so the loss over a whole memory is a quadratic form in its weights.  Its minimum
solves one linear equation for each unit, separately for each action.  The pass over the memory goes forward only, a
third of the cost of training steps on the same samples.

A small multiple of the squared weights (ridge regression) keeps weights small where the memory has little information.
The penalty is on the weights and not on their change: changes add up from fit to fit.

Regrets of single traversals are many times as large as their means, so the noise of minibatches limits a fit
(docs/measured/deep.md has figures).
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from mccfr.solvers.deep.fitting import Batch
from mccfr.solvers.deep.network import Network

RIDGES = {"last": 1e-6, "all": 1e-4}
"""Penalty of each squared weight, as a share of a unit's mean squared output.

The keys say which layers the output sees.  A larger penalty biases outputs that see few units; a smaller one leaves
large weights with many units.  docs/measured/deep.md has figures.
"""


def solve_output(network: Network, parameters: npt.NDArray[np.float32], batches: Iterable[Batch], ridge: float) -> None:
    """Set the last layer, in place, to the least weighted squared error over all samples of `batches`.

    ridge  one of RIDGES

    The legal actions of a row must be the first ones.  Batches without weight change nothing.
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
