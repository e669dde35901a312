"""Evaluates the networks of a deep CFR policy with numpy only: the explicit average strategy."""

import json
from pathlib import Path

import numpy as np


def advantages(parameters, features, actions, layers=3, units=64, readout="last"):
    """Return the advantages [n, A] that a network gives for inputs `features` [n, F]."""
    at, values, hidden = 0, features, []
    for width in (*[units] * layers, actions):
        if len(hidden) == layers and readout == "all":
            values = np.concatenate(hidden, axis=1)
        inputs = values.shape[1]
        weight = parameters[at : at + inputs * width].reshape(inputs, width)
        bias = parameters[at + inputs * width : at + inputs * width + width]
        at += inputs * width + width
        values = values @ weight + bias
        if at < len(parameters):
            values = np.maximum(values, 0)
            hidden.append(values)
    return values


def strategy(advantage, counts):
    """Return the strategy [n, A] of regret matching; without positive advantages, the best action.

    counts  [n] number of legal actions, which come first
    """
    legal = np.arange(advantage.shape[1]) < counts[:, None]
    positive = np.maximum(advantage, 0) * legal
    total = positive.sum(axis=1, keepdims=True)
    best = np.where(legal, advantage, -np.inf)
    best = best == best.max(axis=1, keepdims=True)
    return np.where(total > 0, positive / np.maximum(total, 1e-30), best / best.sum(axis=1, keepdims=True))


def average(folder, player):
    """Return a player's explicit average strategy [I, A]; 0 at infosets that no network reaches."""
    folder = Path(folder)
    about = json.loads((folder / "networks.json").read_text())
    networks, weights, players = (np.load(folder / f"{name}.npy") for name in ("networks", "weights", "players"))
    counts, parents = (np.load(folder / f"{name}_player{player}.npy") for name in ("actions", "parents"))
    file = folder / f"inputs_player{player}.npy"
    inputs = np.load(file) if file.exists() else np.eye(len(counts), dtype=np.float32)  # one-hot code of the infoset
    size, solver = about["parameters"][player], about["solver"]
    sums = np.zeros((len(counts), about["actions"]))
    for place in np.flatnonzero(players == player):
        shape = about["actions"], solver["layers"], solver["units"], solver["readout"]
        sigma, reach = strategy(advantages(networks[place, :size], inputs, *shape), counts), np.ones(len(counts))
        for infoset, cell in enumerate(parents):
            if cell >= 0:
                reach[infoset] = reach[cell // about["actions"]] * sigma.flat[cell]
        sums += weights[place] * reach[:, None] * sigma
    return sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-30)
