"""Networks: gradients against float64 differences, the loss, Adam, network inputs.

Shows:

* Network gradients equal those of the loss summed over single samples
  (test_gradients_equal_differences_of_the_loss_over_single_samples)
* A solved last layer is the least-squares solution; the test detects illegal actions in it
  (test_a_solved_last_layer_equals_least_squares_over_single_samples; planted:
  test_a_last_layer_solved_for_illegal_actions_is_caught)
* Planted errors of loss, memory, reservoir and resuming are detected (planted:
  test_illegal_actions_in_the_loss_are_caught, test_training_on_unfilled_memory_is_caught,
  test_a_reservoir_that_takes_every_sample_is_caught, test_iteration_weights_changed_by_resuming_are_caught)
"""

import numpy as np
import pytest
from mutants import mutant
from refusals import refused

from mccfr.common.rng import new_stream
from mccfr.config.game_tables import GoofspielGame, KuhnGame, LeducGame
from mccfr.config.solver_tables import DeepCfrConfig
from mccfr.games.registry import build_game
from mccfr.solvers.deep import fitting, network
from mccfr.solvers.deep.infosets import list_infosets
from mccfr.solvers.deep.network_inputs import features
from mccfr.solvers.deep.training_state import make_network, match_regrets

LEDUC = build_game(LeducGame(), None, None)
ACTIONS = 3
RIDGE = 1e-4


def networks():
    """Return {name: (network, inputs)}; inputs are [samples, features] or row numbers of a one-hot."""
    values = np.random.default_rng(0)
    return {
        "plain": (network.stacked_network(7, ACTIONS, 3, 6), values.normal(size=(5, 7))),
        "one-hot": (network.stacked_network(9, ACTIONS, 2, 6), np.array([3, 0, 8, 5, 1])),
        "branches": (network.branches((4, 4), 5, ACTIONS, 6, 8), values.normal(size=(5, 13))),
        "plain, all read": (network.stacked_network(7, ACTIONS, 3, 6, reads_all=True), values.normal(size=(5, 7))),
        "branches, all read": (network.branches((4,), 5, ACTIONS, 6, 8, reads_all=True), values.normal(size=(5, 9))),
    }


def naive_loss(output, targets, weights, legal, shares):
    """Return half the sum of weight · squared error, sample by sample."""
    if shares:
        powers = np.exp(output) * legal
        output = powers / powers.sum(axis=1, keepdims=True)
    total = 0.0
    for row, (target, weight) in enumerate(zip(targets, weights, strict=True)):
        for values, share in zip(target, weight, strict=True):
            total += 0.5 * share * float((legal[row] * (output[row] - values) ** 2).sum())
    return total


def gradients(name, shares, module=fitting):
    """Return a loss's gradient and finite differences, for three samples of each of five infosets."""
    net, given = networks()[name]
    random = np.random.default_rng(1)
    legal = (np.arange(ACTIONS) < np.array([2, 3, 2, 3, 3])[:, None]).astype(np.float64)
    targets = random.uniform(size=(5, 3, ACTIONS)) * legal[:, None]
    weights = random.uniform(1, 3, size=(5, 3))
    parameters = net.initial(new_stream(0, 0)).astype(np.float64)
    found, gradient = net.forward(parameters, given), np.zeros(net.size)
    total = (weights[:, :, None] * targets).sum(axis=1)
    slope = module.loss_slope(found[-1], weights.sum(axis=1)[:, None], total, legal, shares=shares)
    net.backward(parameters, given, found, slope, gradient)
    differences = np.zeros(net.size)
    for k in range(net.size):
        losses = []
        for step in (1e-6, -1e-6):
            moved = parameters.copy()
            moved[k] += step
            losses.append(naive_loss(net.forward(moved, given)[-1], targets, weights, legal, shares))
        differences[k] = (losses[0] - losses[1]) / 2e-6
    return gradient, differences


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("name", ["plain", "one-hot", "branches", "plain, all read", "branches, all read"])
def test_gradients_equal_differences_of_the_loss_over_single_samples(name, shares):
    gradient, differences = gradients(name, shares)
    assert np.abs(differences).max() > 0.01
    assert np.abs(gradient - differences).max() < 1e-7


def test_illegal_actions_in_the_loss_are_caught():
    edit = ("return (weight * output - total) * legal", "return weight * output - total")
    gradient, differences = gradients("plain", False, mutant(fitting, edit))
    assert np.abs(gradient - differences).max() > 1e-3


def last_layer_error(name, module=fitting):
    """Return the largest relative difference of a solved last layer from least squares by sample."""
    net, given = networks()[name]
    random, counts = np.random.default_rng(6), np.array([2, 3, 2, 3, 3])
    legal = (np.arange(ACTIONS) < counts[:, None]).astype(np.float64)
    targets, weights = random.normal(size=(5, 3, ACTIONS)), random.uniform(1, 3, size=(5, 3))
    parameters = net.initial(new_stream(0, 0)).astype(np.float64)
    source, weight, bias = net.output_layer(parameters)
    seen = np.hstack([net.forward(parameters, given)[source], np.ones((5, 1))])
    total = (weights[:, :, None] * targets).sum(axis=1)
    batch = fitting.Batch(given, weights.sum(axis=1), total, legal)
    parts = [fitting.Batch(*(part[rows] for part in batch)) for rows in ([3, 0], [1, 2, 4])]
    module.solve_output(net, parameters, parts, RIDGE)
    worst = 0.0
    for action in range(ACTIONS):
        rows = [(row, sample) for row in range(5) for sample in range(3) if action < counts[row]]
        weigh = np.sqrt([weights[row, sample] for row, sample in rows])
        wanted = np.array([targets[row, sample, action] for row, sample in rows])
        matrix = np.array([seen[row] for row, _ in rows]) * weigh[:, None]
        size = matrix.shape[1]
        ridge = np.sqrt(RIDGE * (matrix**2).sum() / size) * np.eye(size)
        wanted = np.linalg.lstsq(np.vstack([matrix, ridge]), np.append(wanted * weigh, np.zeros(size)))[0]
        found = np.append(weight[:, action], bias[action])
        worst = max(worst, np.abs(found - wanted).max() / np.abs(wanted).max())
    return worst


@pytest.mark.parametrize("name", ["plain", "one-hot", "branches", "plain, all read"])
def test_a_solved_last_layer_equals_least_squares_over_single_samples(name):
    assert last_layer_error(name) < 1e-6


def test_a_last_layer_solved_for_illegal_actions_is_caught():
    assert last_layer_error("plain", mutant(fitting, ("products[: int(count)] +=", "products[:] +="))) > 1e-3


def test_adam_equals_its_formula():
    random = np.random.default_rng(2)
    parameters, first, second = (random.uniform(size=40).astype(np.float32) for _ in range(3))
    direction = random.normal(size=40)
    for length in (0.5, 2.0):
        gradient = (direction * (length / np.linalg.norm(direction))).astype(np.float32)
        moved = [a.copy() for a in (parameters, first, second)]
        fitting.adam(moved[0], gradient, moved[1], moved[2], 7, 1e-2, 1.0)
        cut = gradient.astype(np.float64) * min(1, 1 / length)
        mean, square = 0.9 * first + 0.1 * cut, 0.999 * second + 0.001 * cut**2
        step = 1e-2 * (mean / (1 - 0.9**7)) / (np.sqrt(square / (1 - 0.999**7)) + 1e-8)
        assert np.abs(moved[0] - (parameters - step)).max() < 1e-6


def test_regret_matching_and_its_fallback():
    advantages = np.array([[3.0, 1, -2], [-1, -1, -4], [-2, -3, 99]])
    sigma = np.zeros((4, 3))
    match_regrets(advantages, np.array([0, 3, 3, 2]), 1, sigma)
    assert sigma[1:].tolist() == [[0.75, 0.25, 0], [0.5, 0.5, 0], [1, 0, 0]]


@pytest.mark.parametrize("game", [LeducGame(), LeducGame(merge_suits=True), LeducGame(ranks=5), KuhnGame()])
def test_every_infoset_has_different_features(game):
    game = build_game(game, None, None)
    infosets = list_infosets(game)
    for player in range(2):
        values = features(game, infosets, player).values
        assert len(values) == infosets.count(player)
        assert len(np.unique(values, axis=0)) == len(values)


def test_the_features_of_one_infoset():
    """Compute by hand the inputs of Leduc's king of clubs after a check and a bet of 2 chips."""
    infosets = list_infosets(LEDUC)
    found = features(LEDUC, infosets, 0)
    tree = LEDUC.tree
    node = next(n for n in tree.decisions.tolist() if [tree.label[k] for k in tree.path(n)[1:]] == ["c", "r3"])
    bucket = LEDUC.cards.hand_bucket(0, 0, "Kc", None)
    block = int(tree.arrays.block[node])
    row = int(infosets.numbering.base[block] + bucket * infosets.numbering.rows[block] + tree.arrays.row[node])
    cards, bets = np.split(found.values[row], [sum(found.groups)])
    assert found.groups == (11, 11)
    king, clubs, king_of_clubs = 1, 3, 5 + 4  # the ranks are in alphabetical order: J, K, Q
    assert np.flatnonzero(cards).tolist() == [king, clubs, king_of_clubs]
    assert bets[:4].tolist() == [1, 0, 1, 1]
    assert bets[-1] == pytest.approx(4 / tree.put_in[tree.decisions].sum(axis=1).max())


def test_games_without_cards_have_one_hot_inputs():
    game = build_game(GoofspielGame(cards=3), None, None)
    infosets = list_infosets(game)
    net, inputs = make_network(game, infosets, 0, DeepCfrConfig(units=4))
    assert inputs.features is None
    rows = np.array([2, 0])
    one_hot = np.eye(infosets.count(0), dtype=np.float32)
    parameters = net.initial(new_stream(1, 0))
    by_number, by_product = (net.forward(parameters, given)[-1] for given in (inputs.take(rows), one_hot[rows]))
    assert np.abs(by_number - by_product).max() < 1e-6
    refused("use 'plain'", make_network, game, infosets, 0, DeepCfrConfig(network="branches"))
