"""Local best response: equal to a naive implementation, below the best response, planted errors.

Shows:

* Local best response equals a naive implementation on Leduc and with bets outside of the tree
  (test_leduc_equals_a_naive_implementation, test_bets_outside_of_the_tree_equal_a_naive_implementation,
  test_simple_leduc_strategies_equal_the_reference)
* It never wins more than the exact best response (test_local_best_response_wins_no_more_than_a_best_response)
* The test detects a responder who sees hidden cards, shared bucket maps and wrong translations
  (test_a_responder_who_sees_the_opponents_hand_is_caught, test_a_responder_who_sees_the_last_board_early_is_caught,
  test_one_bucket_map_for_both_is_caught, test_a_reach_with_only_the_likeliest_translation_is_caught,
  test_a_translation_redrawn_at_each_decision_is_caught, test_a_responder_who_sees_the_river_early_is_caught)
* Its 95 % intervals cover the exact value as often as stated (test_intervals_cover_the_exact_value)
"""

from dataclasses import replace
from functools import cache

import local_response
import numpy as np
import pytest
from harness import KUHN, LEDUC
from places import RUNS
from small_games import game_of, own_buckets
from strategies import random_strategy, tabulate

import mccfr
from mccfr.common.intervals import ratio95
from mccfr.config.game_tables import Menu, PokerGame
from mccfr.config.toml_files import load_config
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.local_best_response import LEAST_HANDS, local_best_response
from mccfr.evaluation.local_best_response.hand import Responder
from mccfr.evaluation.local_best_response.lbr_evaluation import _ListedSamples, enumerated
from mccfr.evaluation.local_best_response.responder_deals import ListedHand, ListedTable
from mccfr.evaluation.local_best_response.settings import SETTINGS, SOLVED_SIZES, ResponderBetting
from mccfr.evaluation.samples import Effort
from mccfr.games.betting import BettingRules, BettingState, Seats
from mccfr.games.registry import build_game
from mccfr.games.translation import real_betting
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import Strategy, pure_strategy, uniform_strategy

REAL_RULES = BettingRules((1, 1), (0, 0), lambda state: (), stack=30, minimum_bet=1, board_cards=(0, 1))


@cache
def other_bets():
    """Return no-limit Leduc in a tree with bets of 0.5 and 2 pots; the full game has every bet."""
    menu = Menu(first=("0.5p", "2p"), later=("2p",), max_bets=2)
    game = build_game(PokerGame(antes=(1, 1), stack=30, board_cards=[0, 1], menu=menu), None)
    return replace(game, real_rules=REAL_RULES)


def exact(game, strategy, setting="fcpa"):
    return local_best_response(Profile(game, strategy), setting, betting=real_betting(game))


def twin(game, strategy):
    rules = game.real_rules
    actions = real_betting(game).actions if rules is None else local_response.pot_or_all_in(rules)
    return local_response.value(game, strategy, actions)


def difference(game, seed=0):
    """Return the larger difference of the two seats between library and naive implementation."""
    strategy, offset = random_strategy(game, seed), np.array([game.offset_chips, -game.offset_chips])
    return np.abs(np.array(exact(game, strategy).best_response_chips) - offset - twin(game, strategy)).max()


# --- equal to a naive implementation ---


@pytest.mark.parametrize("seed", range(3))
def test_leduc_equals_a_naive_implementation(seed):
    assert difference(LEDUC, seed) < 1e-12


@pytest.mark.parametrize("name", ["kuhn", "clairvoyance"])
@pytest.mark.parametrize("seed", range(3))
def test_other_games_equal_a_naive_implementation(name, seed):
    assert difference(game_of(name), seed) < 1e-12


@pytest.mark.parametrize("seed", range(2))
def test_players_with_different_buckets_equal_a_naive_implementation(seed):
    assert difference(own_buckets(LEDUC), seed) < 1e-12


@pytest.mark.parametrize("seed", range(2))
def test_bets_outside_of_the_tree_equal_a_naive_implementation(seed):
    assert difference(other_bets(), seed) < 1e-12


def test_tables_in_column_major_order_give_the_same_result():
    strategy = random_strategy(LEDUC, 5)
    narrow = Strategy(tuple(np.asfortranarray(table) for table in strategy.probability), strategy.weight)
    assert exact(LEDUC, narrow) == exact(LEDUC, strategy)


# --- the reference ---


def raising(game):
    def choose(node, bucket):
        labels = [game.tree.label[child] for child in game.tree.children(node)]
        chosen = next((k for k, label in enumerate(labels) if label[0] == "r"), labels.index("c"))
        return np.eye(len(labels))[chosen]

    return tabulate(game, choose)


REFERENCE = {"uniform": 2.178241, "always call": 1.466667, "always raise": 2.1, "always fold": 1.0}
"""Gain of local best response on Leduc in chips, from an independent implementation."""


@pytest.mark.parametrize("name", REFERENCE)
def test_simple_leduc_strategies_equal_the_reference(name):
    makers = {
        "uniform": uniform_strategy,
        "always call": lambda game: pure_strategy(game, "c"),
        "always raise": raising,
        "always fold": lambda game: pure_strategy(game, "f"),
    }
    assert exact(LEDUC, makers[name](LEDUC)).value_chips == pytest.approx(REFERENCE[name], abs=5e-7)


def test_16_iterations_of_cfr_plus_equal_the_reference():
    """The reference weights iteration t by t."""
    solver = mccfr.solver(LEDUC, "cfr", variant="cfr+", averaging_power=1)
    solver.run(iterations=16)
    assert evaluate_exact(LEDUC, solver.strategy()).exploitability_chips == pytest.approx(0.276194, abs=5e-7)
    assert exact(LEDUC, solver.strategy()).value_chips == pytest.approx(0.198429, abs=5e-7)


# --- below the best response ---


def test_sampled_local_best_response_is_below_exploitability():
    """Use a small no-limit hold'em game with four streets."""
    game = build_game(load_config(RUNS / "twin-20.toml").game, RUNS)
    strategy = random_strategy(game)
    best = evaluate_exact(game, strategy).exploitability_chips
    found = local_best_response(Profile(game, strategy), hands=200)
    assert 0 < found.ci95_chips[0] < found.value_chips < best


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_local_best_response_wins_no_more_than_a_best_response(first):
    """Check 100 random policies of Leduc in both seats."""
    for seed in range(first, first + 50):
        strategy = random_strategy(LEDUC, seed)
        found, best = exact(LEDUC, strategy), evaluate_exact(LEDUC, strategy)
        for own, most in zip(found.best_response_chips, best.best_response_chips, strict=True):
            assert own <= most + 1e-9
        assert found.value_chips > 0.3 * best.exploitability_chips, "the bound is not trivial"


# --- planted errors ---


def test_a_responder_who_sees_the_opponents_hand_is_caught(monkeypatch):
    begun = ListedTable.first_boards

    def seeing(table, seat, hand, draws=None):
        for deal, weight in begun(table, seat, hand, draws):
            for other in np.flatnonzero(weight):
                yield deal, np.where(np.arange(len(weight)) == other, weight, 0)

    monkeypatch.setattr(ListedTable, "first_boards", seeing)
    assert difference(LEDUC) > 0.1
    calling = pure_strategy(LEDUC, "c")
    assert exact(LEDUC, calling).value_chips > evaluate_exact(LEDUC, calling).exploitability_chips + 0.1


def test_a_responder_who_sees_the_last_board_early_is_caught(monkeypatch):
    begun = ListedTable.first_boards

    def seeing(table, seat, hand, draws=None):
        for deal, weight in begun(table, seat, hand, draws):
            for following, factor in deal.following:
                early = ListedHand(table, seat, hand, deal.street, deal._board, draws)
                early.__dict__["equity"] = following.equity
                early.__dict__["_following"] = [(following, (factor > 0).astype(float))]
                yield early, weight * factor

    monkeypatch.setattr(ListedTable, "first_boards", seeing)
    assert difference(LEDUC) > 0.01


def test_one_bucket_map_for_both_is_caught(monkeypatch):
    def own(deal):
        return np.maximum(deal._table.cards.bucket[deal.street][deal._seat, deal._board], 0)

    monkeypatch.setattr(ListedHand, "buckets", own)
    assert difference(LEDUC) < 1e-12, "where both have one map, nothing is wrong"
    assert difference(own_buckets(LEDUC)) > 0.01


def test_a_reach_with_only_the_likeliest_translation_is_caught(monkeypatch):
    translations = ResponderBetting._translations_of

    def likeliest(lines, place, state, action):
        found = translations(lines, place, state, action)
        return [(max(found, key=lambda drawn: drawn[1])[0], 1.0)]

    monkeypatch.setattr(ResponderBetting, "_translations_of", likeliest)
    assert difference(LEDUC) < 1e-12, "where every bet is in the tree, nothing is drawn"
    assert difference(other_bets()) > 0.01


def test_a_translation_redrawn_at_each_decision_is_caught(monkeypatch):
    answered = Responder._answered

    def redrawn(responder, state, ranges, deal):
        whole = sum(ranges.values())
        if not whole.any():
            return 0.0
        shares = {place: weight.sum() / whole.sum() for place, weight in ranges.items()}
        return answered(responder, state, {place: whole * share for place, share in shares.items()}, deal)

    monkeypatch.setattr(Responder, "_answered", redrawn)
    assert difference(LEDUC) < 1e-12
    assert difference(other_bets()) > 1e-4


# --- sampled ---


@pytest.mark.parametrize(("game", "seed"), [("leduc", 0), ("leduc", 1), ("two hole cards", 0)])
def test_sampled_deals_agree_with_enumeration(game, seed):
    built = game_of(game)
    side = Profile(built, random_strategy(built, seed))
    lines = ResponderBetting(real_betting(built), "2")
    units = _ListedSamples(side, lines, seed=3)
    found = np.array([units.play(unit) for unit in range(1500)])
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - enumerated(side, lines)) < 4 * error).all()
    assert (error < 0.1).all(), "or the comparison says nothing"


def units_of(game, strategy, count):
    """Return the result of each of `count` samples, as the mean over both seats."""
    side = Profile(game, strategy)
    units = _ListedSamples(side, ResponderBetting(real_betting(game), "2"), seed=0)
    return np.array([units.play(unit).mean() for unit in range(count)])


def coverage(replications, truth):
    """Return the share of replications [n, hands] whose interval covers the truth."""
    ends = [ratio95(some, np.ones(replications.shape[1]))[1] for some in replications]
    return np.mean([low <= truth <= high for low, high in ends])


def test_intervals_of_resampled_deals_cover_their_mean():
    """Draw 500 replications of 100 deals from 1,500 deals of Leduc; their mean is the truth."""
    found = units_of(LEDUC, random_strategy(LEDUC, 2), 1500)
    drawn = np.random.default_rng(0).choice(found, (500, LEAST_HANDS))
    assert 0.92 <= coverage(drawn, found.mean()) <= 0.98


@pytest.mark.slow
def test_intervals_cover_the_exact_value():
    """Play 500 replications of 100 different deals of Kuhn."""
    strategy = random_strategy(KUHN, 2)
    found = units_of(KUHN, strategy, 500 * LEAST_HANDS).reshape(500, LEAST_HANDS)
    assert 0.92 <= coverage(found, exact(KUHN, strategy).value_chips) <= 0.98


def test_workers_and_resuming_do_not_change_the_result(tmp_path):
    side = Profile(LEDUC, random_strategy(LEDUC))
    alone = local_best_response(side, hands=150, seed=4)
    assert alone == local_best_response(side, hands=150, seed=4, effort=Effort(2, keep=tmp_path / "kept"))
    seen = []
    again = Effort(keep=tmp_path / "kept")
    with steps_reported(lambda *step: seen.append(step)):
        assert alone == local_best_response(side, hands=150, seed=4, effort=again)
    assert seen == []
    assert alone != local_best_response(side, hands=150, seed=5)
    short = local_best_response(side, effort=Effort(seconds=1e-3))
    assert short.samples == LEAST_HANDS and short.ci95_chips[0] < short.value_chips < short.ci95_chips[1]
    with pytest.raises(ValueError, match="holds samples of another evaluation"):
        local_best_response(Profile(LEDUC, uniform_strategy(LEDUC)), hands=150, seed=4, effort=again)


# --- settings ---


def test_settings_have_the_published_actions():
    rules = replace(REAL_RULES, first_player=(0,) * 4, board_cards=(0, 3, 1, 1), stack=20_000, put_in=(100, 100))
    game = replace(other_bets(), real_rules=None)
    betting = real_betting(game)
    state = BettingState((100, 100), 0, last_raise=100)
    facing = state._replace(put_in=(100, 300), last_raise=200, seats=Seats(acted=1))

    def actions(setting, street, state, solved_from=None):
        lines = ResponderBetting(betting, setting, solved_from)
        lines.betting = object.__new__(type(real_betting(other_bets())))
        lines.betting.rules, lines.betting.whole_chips = rules, True
        return lines._actions(state._replace(street=street))

    pot = ["c", "r300", "r20000"]
    assert [actions("1", street, facing) for street in range(4)] == [["f", "c"]] * 4
    assert [actions("2", street, state) for street in range(4)] == [["c"], ["c"], pot, pot]
    assert actions("2", 3, facing) == ["f", "c", "r900", "r20000"]
    assert [actions("fcpa", street, state) for street in range(4)] == [pot] * 4
    later = state._replace(put_in=(2000, 3000), last_raise=100)
    assert [len(actions("3", street, later)) for street in range(4)] == [1, 1, 58, 58]
    assert [len(actions("4", street, later)) for street in range(4)] == [1, 58, 2, 2]
    sizes = [float(action[1:]) for action in actions("3", 2, later)[2:]]
    assert sizes[0] == 3600 and sizes[-1] == 20_000, "from a tenth of the pot after the call to all-in"
    assert np.diff(np.log(np.array(sizes) - 3000)) == pytest.approx(np.log(17_000 / 600) / 55, rel=0.02)
    sizes = [float(action[1:]) for action in actions("3", 2, facing)[2:]]
    assert sizes[0] == 500 and len(sizes) < 56, "sizes below the least raise are that raise"
    assert actions("3", 2, later, solved_from=3) == actions("3", 2, later), "few from the street that is solved"
    few = [f"r{3000 + round(share * 6000)}" for share in SOLVED_SIZES[:-1]]
    assert actions("3", 3, later, solved_from=3) == ["f", "c", *few, "r20000"], "five pots are beyond all-in here"
    assert set(SETTINGS) == {"1", "2", "3", "4", "fcpa"}


def test_in_full_trees_setting_1_only_folds_and_calls_and_others_use_all_bets():
    strategy = random_strategy(LEDUC, 1)
    whole = exact(LEDUC, strategy, "2")
    assert all(exact(LEDUC, strategy, setting) == whole for setting in ("3", "4", "fcpa"))
    found = local_response.value(
        LEDUC, strategy, lambda state: [a for a in real_betting(LEDUC).actions(state) if a in ("f", "c")]
    )
    assert exact(LEDUC, strategy, "1").best_response_chips == pytest.approx(found, abs=1e-12)
    assert exact(LEDUC, strategy, "1").value_chips < whole.value_chips
