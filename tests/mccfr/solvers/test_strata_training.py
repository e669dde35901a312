"""Training by strata: deals, updates of the first street, convergence and planted errors.

Shows:

* Strata with quotas deal the hands of the game with the right frequencies
  (test_strata_with_quotas_deal_with_the_probabilities_of_the_game,
  test_deals_of_all_strata_have_the_frequencies_of_the_deck; planted:
  test_planted_equal_quotas_are_caught, test_planted_equal_weights_of_isomorphic_boards_are_caught,
  test_planted_isomorphic_flops_weighted_alike)
* After an interval, the first street gets each stratum's changes once, then floors and discounts
  (test_an_interval_adds_the_changes_of_each_stratum_once; planted: test_planted_errors_in_an_interval_are_caught)
* At equal nodes, strata learn as fast as the ordinary sampler
  (test_strata_learn_as_fast_as_the_ordinary_sampler_over_forty_seeds)
"""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from stratified import LEDUC_12, Stratified

from mccfr.cards.board_strata import in_strata, stratum_dealers
from mccfr.cards.deals import card_masks, new_deals
from mccfr.config.toml_files import config_from
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.poker import leduc
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.solver import Share
from mccfr.tables.table_layout import private_tables

LEDUC_4 = {"name": "leduc", "ranks": 4}
PRUNED = {"negative_regret_pruning": True, "prune_after_nodes": 0, "prune_below_bb": 1.0, "floor_bb": 1.5}


# --- deals ---


def draw_probabilities(alias_table):
    """Return [boards] the probability with which the alias method draws each board."""
    chance = alias_table.accept.copy()
    np.add.at(chance, alias_table.alias, 1 - alias_table.accept)
    return chance / len(chance)


def pairs(cards):
    """Return [hands, hands] the probability of each pair of hands."""
    masks = cards.hand_masks()
    weight = np.outer(*cards.reach) * ((masks[:, None] & masks) == 0)
    return weight / weight.sum()


def free(cards):
    """Return [boards, hands, hands] whether a second-street board shares no card with a pair of hands."""
    hit = (cards.hand_masks() & card_masks(cards.board_cards[1])[:, None]) != 0
    return ~hit[:, :, None] & ~hit[:, None, :]


def dealt_by_game(cards):
    """Return [boards, hands, hands] probabilities in the game: a pair of hands, then a possible board."""
    left = free(cards)
    return pairs(cards) * left / left.sum(axis=0).clip(1)


def dealt_by_strata(cards, strata, quotas):
    """Return the same probabilities by strata with quotas: a board by its weight, then a pair of hands."""
    mixed = np.zeros(free(cards).shape)
    for stratum, dealer in enumerate(stratum_dealers(cards, strata, 0)):
        chances = dict(zip(strata.boards[stratum].tolist(), draw_probabilities(dealer._drawn), strict=True))
        for board, chance in chances.items():
            held = pairs(cards) * free(cards)[board]
            mixed[board] += quotas[stratum] / sum(quotas) * chance * held / held.sum()
    return mixed


def unequal_leduc():
    """Return Leduc with random range weights, in three strata of unequal shares."""
    game = leduc(config_from({"game": LEDUC_4}, "test").game)
    reach = np.random.default_rng(3).uniform(0.2, 1, game.cards.reach.shape)
    cards, strata = in_strata(replace(game.cards, reach=reach), 3)
    return replace(game, cards=cards, strata=strata)


def check_deals(game, quotas):
    """Check that strata with these quotas have the game's probabilities of deals.

    The changes of the first street depend only on the deals.
    """
    found = dealt_by_strata(game.cards, game.strata, quotas)
    np.testing.assert_allclose(found, dealt_by_game(game.cards), rtol=0, atol=1e-12)


def test_strata_with_quotas_deal_with_the_probabilities_of_the_game():
    game = unequal_leduc()
    assert len(set(game.strata.shares.tolist())) == 3
    check_deals(game, game.strata.shares)
    assert Stratified(5).barrier.strata.shares.tolist() == [6, 4, 6, 4, 4]  # boards of equal probability


def test_planted_equal_quotas_are_caught():
    with pytest.raises(AssertionError):
        check_deals(unequal_leduc(), [1, 1, 1])


def test_planted_equal_weights_of_isomorphic_boards_are_caught(monkeypatch):
    game = unequal_leduc()
    alike = [np.ones(len(weights)) for weights in game.strata.weights]
    with pytest.raises(AssertionError):
        check_deals(replace(game, strata=replace(game.strata, weights=alike)), game.strata.shares)


def test_deals_depend_only_on_seed_stratum_and_number():
    game = unequal_leduc()
    dealers, again = (stratum_dealers(game.cards, game.strata, 7) for _ in range(2))
    for stratum, dealer in enumerate(dealers):
        deals, parts = new_deals(4000, 2), new_deals(1500, 2)
        dealer.draw(100, 4000, deals)
        again[stratum].draw(1100, 1500, parts)
        for whole, part in zip(deals, parts, strict=True):
            np.testing.assert_array_equal(whole[1000:2500], part)
        first = game.strata.first[:, 1]
        assert (deals.bucket[:, 2:] >= first[stratum]).all() and (deals.bucket[:, 2:] < first[stratum + 1]).all()
        chances = dealt_by_strata(game.cards, game.strata, np.eye(3)[stratum])
        hands = np.bincount(deals.bucket[:, 0], minlength=8) / 4000
        np.testing.assert_allclose(hands, chances.sum(axis=(0, 2)), atol=5 * np.sqrt(0.25 / 4000))


# --- shares ---


def test_isomorphic_boards_share_a_stratum_and_no_table_grows():
    plain = leduc(config_from({"game": LEDUC_12}, "test").game)
    trained = Stratified(5)
    assert trained.game.buckets.tolist() == plain.buckets.tolist()
    assert [len(boards) for boards in trained.game.strata.boards] == [6, 4, 6, 4, 4]
    ranks = [
        {int(plain.cards.board_cards[1][board, -1]) // 2 for board in boards} for boards in trained.game.strata.boards
    ]
    assert sum(map(len, ranks)) == 12 == len(set.union(*ranks))


# --- changes of an interval ---


def check_interval(trained):
    """Check one interval: totals get each stratum's changes, then floors and discounts apply.

    The check trains each stratum again by itself, in reverse order, from the tables before the interval.
    """
    game, algorithm, nodes = trained.game, trained.algorithm, trained.nodes
    before = {name: table.copy() for name, table in trained.totals.items()}
    later = {name: table.copy() for name, table in trained.tables.items()}
    states = [replace(state, rng=list(state.rng)) for state in trained.states]
    trained.interval()
    schedule, added = algorithm.schedule, {name: np.zeros_like(table) for name, table in before.items()}
    iterations = 0
    for stratum in reversed(range(len(states))):
        tables = private_tables(trained.layout)
        for name, table in later.items():
            tables[name][...] = 0 if name.startswith("strategy_sum/street0") else before.get(name, table)
        begun = {name: tables[name].astype(np.float64) for name in before}
        solver, quota = (
            algorithm.solver(game, tables, Share()),
            trained.states[stratum].iterations - states[stratum].iterations,
        )
        solver.run_stratum(stratum, states[stratum], nodes, quota)
        iterations += quota
        assert states[stratum].rng == trained.states[stratum].rng
        for name in before:
            added[name] += tables[name] - begun[name]
    for name, table in trained.totals.items():
        wanted = before[name] + added[name]
        if name.startswith("regret/"):
            np.maximum(wanted, algorithm.first_floor(trained.game, nodes), out=wanted)
        np.testing.assert_allclose(table, wanted, rtol=0, atol=1e-5)  # changes are integers in units of about 2^-21
    if algorithm.first_floor(trained.game, nodes) == -inf:  # each iteration visits the first decision once
        row = (trained.totals["strategy_sum/street0/player0"] - before["strategy_sum/street0/player0"])[:, :2]
        assert row.sum() == pytest.approx(schedule.weight(nodes) * iterations, rel=1e-6)


def begun(**solver):
    trained = Stratified(5, **{"seed": 3, "period_nodes": 3000, **solver})
    trained.train(700)
    return trained


@pytest.mark.parametrize("solver", [{}, PRUNED], ids=["linear", "pruned"])
def test_an_interval_adds_the_changes_of_each_stratum_once(solver):
    trained = begun(**solver)
    for _ in range(3):
        check_interval(trained)
    if "floor_bb" in solver:
        floor = trained.algorithm.first_floor(trained.game, trained.nodes)
        assert min(trained.totals[f"regret/street0/player{p}"].min() for p in (0, 1)) >= floor


class AddedTwice(Stratified):
    def train_strata(self, interval, quotas, order):
        super().train_strata(interval, quotas, order)
        self.changes *= 2


class RepeatedFromTheWrongStreet(Stratified):
    """Repeats the last stratum's interval with the first street as it is after the barrier."""

    def train_strata(self, interval, quotas, order):
        super().train_strata(interval, quotas, order[:-1])
        kept = {name: table.copy() for name, table in self.totals.items()}
        self.barrier.add(interval, self.changes)
        super().train_strata(interval._replace(), quotas, order[-1:])  # a new object makes the worker copy the street
        for name, table in kept.items():
            self.totals[name][...] = table


class WeightThatChanges(Stratified):
    def train_strata(self, interval, quotas, order):
        for stratum in order:
            later = interval._replace(nodes=interval.nodes + 3000 * (stratum > 2))
            super().train_strata(later, quotas, [stratum])


class FloorsPerCopy(Stratified):
    def train_strata(self, interval, quotas, order):
        work, own = self.worker.solver, self.worker.solver._own
        work._own = lambda nodes: tuple(pruning._replace(first_floor=pruning.floor) for pruning in own(nodes))
        super().train_strata(interval, quotas, order)


@pytest.mark.parametrize(
    ("planted", "solver"),
    [(AddedTwice, {}), (RepeatedFromTheWrongStreet, {}), (WeightThatChanges, {}), (FloorsPerCopy, PRUNED)],
    ids=["changes added twice", "wrong first street", "weight that changes", "floors per copy"],
)
def test_planted_errors_in_an_interval_are_caught(planted, solver):
    trained = begun(**solver)
    trained.__class__ = planted
    with pytest.raises(AssertionError):
        for _ in range(3):
            check_interval(trained)


def test_overflow_of_64_bit_changes_is_detected():
    trained = begun()
    interval, quotas = trained.barrier.begin(trained.states)
    assert not trained.worker.run(0, trained.states[0], quotas[0], interval._replace(scale=2.0**70))


def test_outcome_sampling_in_strata_converges():
    trained = Stratified(4, algorithm="outcome-sampling")
    trained.train(10_000)
    first = evaluate_exact(trained.game, trained.average()).exploitability_chips
    trained.train(60_000)
    assert evaluate_exact(trained.game, trained.average()).exploitability_chips < first / 2


def ratio(seed, iterations):
    """Return the exploitability with four strata over that of the ordinary sampler at equal nodes."""
    trained = Stratified(4, seed=seed)
    trained.train(iterations)
    config = config_from({"game": LEDUC_12, "solver": {"period_nodes": 1_000_000, "seed": seed}}, "test")
    game, algorithm = configured_game(config, None), type(trained.algorithm)(config)
    tables = private_tables(algorithm.layout(game))
    solver = algorithm.solver(game, tables, Share())
    while (nodes := solver.state.nodes) < trained.nodes:
        solver.run(nodes, trained.nodes - nodes, 2**60)
    ordinary = algorithm.averages.strategy(game, tables, solver.state.nodes, solver.state.iterations)
    found = [
        evaluate_exact(*pair).exploitability_chips for pair in ((trained.game, trained.average()), (game, ordinary))
    ]
    return found[0] / found[1]


def test_strata_learn_as_fast_as_the_ordinary_sampler_at_equal_nodes():
    assert np.mean([ratio(seed, 100_000) for seed in range(2)]) == pytest.approx(1.0, abs=0.25)


@pytest.mark.slow
def test_strata_learn_as_fast_as_the_ordinary_sampler_over_forty_seeds():
    found = np.array([ratio(seed, 300_000) for seed in range(40)])
    half = 2.03 * found.std(ddof=1) / np.sqrt(len(found))
    assert found.mean() - half > 0.9 and found.mean() + half < 1.1
