"""Networks of deep CFR without this package: the explicit average in numpy."""

import json
from pathlib import Path

import numpy as np


def advantages(parameters, features, actions, layers=3, units=64, readout="last"):
    """[n, A] of inputs [n, F] by a plain network."""
    at, made, hidden = 0, features, []
    for width in (*[units] * layers, actions):
        if len(hidden) == layers and readout == "all":
            made = np.concatenate(hidden, axis=1)
        inputs = made.shape[1]
        weight = parameters[at : at + inputs * width].reshape(inputs, width)
        bias = parameters[at + inputs * width : at + inputs * width + width]
        at += inputs * width + width
        made = made @ weight + bias
        if at < len(parameters):
            made = np.maximum(made, 0)
            hidden.append(made)
    return made


def played(advantage, counts):
    """[n, A] by regret matching over the first `counts` [n] actions; where none is positive, the largest."""
    legal = np.arange(advantage.shape[1]) < counts[:, None]
    positive = np.maximum(advantage, 0) * legal
    total = positive.sum(axis=1, keepdims=True)
    best = np.where(legal, advantage, -np.inf)
    best = best == best.max(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.maximum(total, 1e-30), best / best.sum(axis=1, keepdims=True))


def average(folder, player):
    """[I, A] the explicit average at a player's infosets; 0 where no network gets to."""
    about = json.loads((Path(folder) / "networks.json").read_text())
    networks, weights, players = (np.load(Path(folder) / f"{name}.npy") for name in ("networks", "weights", "players"))
    inputs, counts, parents = (
        np.load(Path(folder) / f"{name}_player{player}.npy") for name in ("inputs", "actions", "parents")
    )
    size, solver = about["parameters"][player], about["solver"]
    sums = np.zeros((len(counts), about["actions"]))
    for place in np.flatnonzero(players == player):
        shape = about["actions"], solver["layers"], solver["units"], solver["readout"]
        said = advantages(networks[place, :size], inputs, *shape)
        sigma, reach = played(said, counts), np.ones(len(counts))
        for infoset, cell in enumerate(parents):
            if cell >= 0:
                reach[infoset] = reach[cell // about["actions"]] * sigma.flat[cell]
        sums += weights[place] * reach[:, None] * sigma
    return sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-30)
