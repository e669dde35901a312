"""Single Deep CFR with exact tables instead of networks, against tabular algorithms.

Shows:

* Deep CFR with exact tables instead of networks is batched linear MCCFR with a sampled average
  (test_deep_cfr_with_tables_equals_batched_linear_mccfr)
* The explicit average is the reach-weighted mean of the visited strategies
  (test_the_explicit_average_is_the_reach_weighted_mean_of_visited_strategies,
  test_the_average_over_stored_networks_equals_the_running_average)
* Planted errors are detected: shifted weights, averages without reach, wrong player's nodes (planted:
  test_iteration_weights_shifted_by_one_are_caught, test_an_average_without_reach_weights_is_caught,
  test_maximum_for_mean_and_samples_at_the_wrong_players_nodes_are_caught)
"""

from dataclasses import replace
from functools import cache

import deep
import numpy as np
import pytest
from mutants import mutant
from refusals import refusals

from mccfr.config.game_tables import GoofspielGame, KuhnGame, LeducGame
from mccfr.games.registry import build_game
from mccfr.solvers.deep import infosets as listing
from mccfr.solvers.deep import single_deep_cfr, training_state, traversals
from mccfr.solvers.deep.infosets import list_infosets

GAMES = {"kuhn": KuhnGame(), "leduc": LeducGame(merge_suits=True), "goofspiel": GoofspielGame(cards=3)}
ITERATIONS = {"kuhn": 12, "leduc": 8, "goofspiel": 8}


@cache
def game_of(name):
    return build_game(GAMES[name], None, None)


@cache
def recorded(name, **changed):
    return deep.record(game_of(name), deep.options(fit="table", **changed), ITERATIONS[name])


def flat(infosets, strategy_rows):
    """Return [infosets, actions] probabilities of a strategy whose rows are given by block."""
    table = np.zeros((len(infosets), infosets.width))
    places = infosets.numbering
    for block, rows in enumerate(strategy_rows):
        count = int(places.rows[block] * places.buckets[block])
        here = slice(int(places.base[block]), int(places.base[block]) + count)
        if count:
            table[here][infosets.legal[here]] = rows.ravel()
    return table


def differences_from_twin(found, name):
    """Return the largest differences of strategies and of the average of the memories from a naive twin."""
    infosets, config = found.cfr.state.infosets, found.cfr.state.config
    expected, sums = deep.twin(game_of(name), infosets, config, found.cfr.iteration)
    assert [(m.player, m.iteration) for m in found.met] == [(m.player, m.iteration) for m in expected]
    strategies = max(np.abs(a.sigma - b.sigma).max() for a, b in zip(found.met, expected, strict=True))
    totals = sums.sum(axis=1, keepdims=True)
    wanted = np.where(totals > 0, sums / np.where(totals > 0, totals, 1), infosets.uniform())
    average = flat(infosets, found.cfr.state.average("network", found.cfr.iteration).probability)
    return strategies, np.abs(average - wanted).max()


@pytest.mark.parametrize("name", GAMES)
def test_deep_cfr_with_tables_equals_batched_linear_mccfr(name):
    found = recorded(name)
    assert max(differences_from_twin(found, name)) < 1e-9
    assert found.cfr.state.tables["counters/player0"][0] < found.cfr.state.config.memory  # nothing was evicted


def difference_of_average(found):
    """Return the largest difference of the `sd` average from a mean weighted by iteration and own reach."""
    infosets, game = found.cfr.state.infosets, found.cfr.state.game
    average = flat(infosets, found.cfr.state.average("sd", found.cfr.iteration).probability)
    worst = 0.0
    for player in range(2):
        for infoset, sequence in deep.own_sequences(game, infosets, player).items():
            weights = [m.iteration * deep.reach_of(sequence, m.sigma) for m in found.met if m.player == player]
            rows = [m.sigma[infoset] for m in found.met if m.player == player]
            total = sum(weights)
            wanted = np.average(rows, axis=0, weights=weights) if total else infosets.uniform()[infoset]
            worst = max(worst, float(np.abs(wanted - average[infoset]).max()))
    return worst


@pytest.mark.parametrize("name", GAMES)
def test_the_explicit_average_is_the_reach_weighted_mean_of_visited_strategies(name):
    assert difference_of_average(recorded(name)) < 1e-12


@pytest.mark.parametrize("wrong", ["t + player", "t + 1 - player"])
def test_iteration_weights_shifted_by_one_are_caught(wrong):
    module = mutant(
        single_deep_cfr, ("self._note_strategy(1 - player, t,", f"self._note_strategy(1 - player, {wrong},")
    )
    found = deep.record(game_of("leduc"), deep.options(fit="table"), 8, module.SingleDeepCfr)
    assert difference_of_average(found) > 1e-3


def test_an_average_without_reach_weights_is_caught(monkeypatch):
    monkeypatch.setattr(listing, "own_reach", lambda order, parent, sigma, reach: reach.fill(1.0))
    assert difference_of_average(deep.record(game_of("leduc"), deep.options(fit="table"), 8)) > 1e-2


PLAYED = """                opponent_samples += 1
                child[node] = first + choose(sigma, infoset * width, count, uniform(state))
                order[tail]"""
SAMPLED = """            value[node] = mean
            samples.infoset[regret_samples] = infoset
"""
BEFORE = """            if span[5] == 1:
                for k in range(count):
                    mean = max(mean, value[first + k])
            if span[5] == 2:
                plays.infoset[opponent_samples] = infoset
                for k in range(count):
                    plays.value[opponent_samples, k] = sigma[infoset * width + k]
                opponent_samples += 1
"""


SPAN = """            span = np.array([player, first, stop, self._config.seed, number + first], np.int64)
            deals"""


@cache
def wrong_traversals():
    """Return external sampling that makes one of two errors.

    Error 1 returns the largest action value instead of the mean; error 2 stores strategies at the traverser's nodes.
    """
    edits = (
        (PLAYED, PLAYED.replace("opponent_samples += 1", "opponent_samples += span[5] != 2")),
        (SAMPLED, BEFORE + SAMPLED),
    )
    return mutant(traversals, *edits)


@pytest.mark.parametrize("error", [0, 1, 2])
def test_maximum_for_mean_and_samples_at_the_wrong_players_nodes_are_caught(error):
    edits = [(SPAN, SPAN.replace("first]", f"first, {error}]"))]
    if error == 2:
        stored = 'self._offer({0}, "strategy_memory", self._samples({0}, t, plays'
        edits.append((stored.format("1 - player"), stored.format("player")))
    module = mutant(single_deep_cfr, *edits)
    module.traversals = wrong_traversals()
    strategies, average = differences_from_twin(
        deep.record(game_of("leduc"), deep.options(fit="table"), 8, module.SingleDeepCfr), "leduc"
    )
    assert (strategies > 1e-2, average > 1e-2) == ((False, False), (True, True), (False, True))[error]


def small_networks(**changed):
    small = {"units": 8, "layers": 2, "steps": 20, "strategy_steps": 20, "card_units": 8, "batch": 64}
    return deep.options(**{**small, **changed})


@pytest.mark.parametrize("changed", [{}, {"network": "branches"}, {"batch": "all"}])
def test_the_average_over_stored_networks_equals_the_running_average(changed):
    config = small_networks(**changed)
    found = deep.record(game_of("leduc"), config, 5, dtype="float32")
    state = found.cfr.state
    for one, other in zip(state.average("sd", 5).probability, state.average_of_networks().probability, strict=True):
        assert np.abs(one - other).max() < 1e-12
    weights = [found.cfr.state.tables[f"networks/player{player}/weight"][:6].tolist() for player in range(2)]
    fitted = [found.cfr.state.tables[f"networks/player{player}/iteration"][:6].tolist() for player in range(2)]
    assert weights == [[1, 2, 3, 4, 5, 0]] * 2
    assert fitted == [[1, 2, 3, 4, 5, 0], [0, 1, 2, 3, 4, 0]]


@pytest.mark.parametrize("changed", [{}, {"fit": "table", "horizon": None}, {"keep_networks": 2, "horizon": None}])
def test_resuming_from_tables_changes_no_bit(changed):
    assert resuming_changes_no_table(single_deep_cfr, {"memory": 300, **changed})


def resuming_changes_no_table(module, changed):
    """Return True if 6 iterations, and 2, 1 and 3 iterations with resuming between, give equal tables."""
    game, config = game_of("leduc"), small_networks(**changed)
    whole, resumed = (deep.new_tables(game, config, "float32") for _ in range(2))
    module.SingleDeepCfr(game, config, whole).iterate(6)
    done = 0
    for count in (2, 1, 3):
        module.SingleDeepCfr(game, config, resumed, done).iterate(count)
        done += count
    return all(whole[name].tobytes() == resumed[name].tobytes() for name in whole)


def test_iteration_weights_changed_by_resuming_are_caught():
    edit = (
        "self.iteration, self.nodes_touched = iteration, nodes",
        "self.iteration, self.nodes_touched = iteration + (iteration > 0), nodes",
    )
    assert not resuming_changes_no_table(mutant(single_deep_cfr, edit), {})


def ignores_unfilled_memory(module, fit):
    """Return True if training ignores the cells of the memory that hold no sample."""
    game, config = game_of("leduc"), small_networks(fit=fit)
    strategies = []
    for poison in (0.0, np.nan):
        tables = deep.new_tables(game, config, "float32")
        for name, table in tables.items():
            if name.startswith("memory") and not name.endswith("infoset"):
                table[:] = poison
        cfr = single_deep_cfr.SingleDeepCfr(game, config, tables)
        cfr.state = module.TrainingState(game, config, tables)
        cfr.iterate(2)
        strategies.append(cfr.sigma)
    return bool((strategies[0] == strategies[1]).all())


@pytest.mark.parametrize("fit", ["table", "network"])
def test_training_ignores_memory_without_samples(fit):
    assert ignores_unfilled_memory(training_state, fit)


def test_training_on_unfilled_memory_is_caught():
    edit = (
        'min(int(self.tables[f"counters/player{player}"][columns_of_kind.counter]), len(columns[-1]))',
        "len(columns[-1])",
    )
    assert not ignores_unfilled_memory(mutant(training_state, edit), "table")


def state_with_cell(name, cell):
    config = deep.options(fit="table")
    tables = deep.record(game_of("leduc"), config, 1).cfr.state.tables
    tables[name].flat[0] = cell
    training_state.TrainingState(game_of("leduc"), config, tables)


def without_recall():
    game = game_of("leduc")
    cards = replace(game.cards, bucket=[game.cards.bucket[0] * 0, *game.cards.bucket[1:]])
    assert len(list_infosets(replace(game, cards=cards))) == len(list_infosets(game))  # the flop separates them
    list_infosets(replace(game, cards=replace(game.cards, bucket=[game.cards.bucket[0], game.cards.bucket[1] * 0])))


def train_past_the_horizon():
    config = small_networks(horizon=2)
    cfr = single_deep_cfr.SingleDeepCfr(game_of("kuhn"), config, deep.new_tables(game_of("kuhn"), config))
    cfr.iterate(2)
    cfr.iterate()


test_refusals = refusals(
    ("memory/player1/infoset", lambda: state_with_cell("memory/player1/infoset", 144)),
    ("counters/player0", lambda: state_with_cell("counters/player0", -1)),
    ("perfect recall", without_recall),
    ("horizon = 2", train_past_the_horizon),
)
