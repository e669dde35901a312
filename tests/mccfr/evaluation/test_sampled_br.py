"""Sampled best response: equal to enumeration on all boards, a lower bound on sampled boards.

Shows:

* On all boards, sampled best response equals enumeration from each street
  (test_over_all_boards_sampled_br_equals_enumeration_from_each_street)
* On sampled boards, first-street choices are scored on boards that did not select them
  (test_first_street_choices_are_scored_on_a_board_that_did_not_select_them)
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from naive_value import naive_value
from random_policy import policy
from refusals import refusals, refused
from small_games import game_of, own_buckets
from strategies import random_strategy, tabulate

from mccfr.config.game_tables import PokerGame
from mccfr.evaluation.board_game import board_game, card_game
from mccfr.evaluation.methods.registry import measure
from mccfr.evaluation.methods.sampled_methods import street_number
from mccfr.evaluation.preflop_best_response import SecondStreetBoards
from mccfr.evaluation.sampled_best_response import BestResponseSamples, sampled_best_response
from mccfr.evaluation.samples import Effort
from mccfr.evaluation.stratified_boards import (
    BoardSamples,
    BoardStrata,
    flops_in_order,
    sample_boards,
    stratified95,
    units_each,
)
from mccfr.games.registry import build_game
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import RESPOND
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.street_trees import AT_DECISION

MERGED = PokerGame(ranks=3, suits=2, board_cards=[0, 1, 1], antes=[1, 1], stack=3, merge_suits=True)
PAIRS = PokerGame(ranks=3, suits=2, hole_cards=2, board_cards=[0, 1], antes=[1, 1], stack=3)
CONFIGS = {"merged": MERGED, "pairs": PAIRS}
NAMES = ["leduc", "pairs", "merged"]


@cache
def game(name):
    return build_game(CONFIGS[name], None) if name in CONFIGS else game_of(name)


def both(name, strategy, street):
    return [naive_value(game(name), strategy, player, street) for player in range(2)]


def board_by_board(samples):
    BoardSamples.draw(samples, samples.most)
    return np.array([samples.play(sample) for sample in range(samples.most)])


# --- against the definition ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_over_all_boards_sampled_br_equals_enumeration_from_each_street(name, seed):
    strategy = random_strategy(game(name), seed)
    for street in range(game(name).tree.streets):
        found = sampled_best_response(Profile(game(name), strategy), street)
        expected = both(name, strategy, street)
        assert found.exact and found.ci95_chips == (found.value_chips, found.value_chips)
        assert found.best_response_chips == pytest.approx(expected, abs=1e-9)
        assert found.value_chips == pytest.approx(sum(expected) / 2, abs=1e-9)
        if seed:
            continue
        samples = BestResponseSamples(Profile(game(name), strategy), street)
        if samples.first is not None:
            continue  # test_preflop_best_response
        played = board_by_board(samples)
        won = played[:, :2].sum(axis=0) / played[:, 2].sum() + [game(name).offset_chips, -game(name).offset_chips]
        assert won == pytest.approx(expected, abs=1e-9)


def test_first_street_choices_are_scored_on_a_board_that_did_not_select_them():
    name, strategy = "leduc", random_strategy(game("leduc"), 5)
    units = SecondStreetBoards(Profile(game(name), strategy), 3, 6)
    units.draw(5)
    found, first = np.array([units.play(unit) for unit in range(5)]), units.first
    worth = found[:, :-2].reshape(5, *first._shape)
    for player in range(2):
        choice = first._walk(player, worth[1:, player].sum(0), None)[1]
        assert choice, "the player decides on the first street"
        members = np.flatnonzero(first._trees.kind[: first._trees.first[1]] == AT_DECISION).tolist()
        nodes = [node for node in game(name).tree.decisions.tolist() if game(name).tree.street[node] == 0]
        node_of = dict(zip(members, nodes, strict=True))
        action = {node_of[member]: best for member, best in choice.items()}

        def act(node, hand, action=action):
            return action[node][hand]

        below = replace(game(name), cards=game(name).cards.after(1, units.boards[0]))
        expected = naive_value(below, strategy, player, 1, act, whole=True)
        assert first._walk(player, worth[0, player], choice)[0].sum() == pytest.approx(expected, abs=1e-9)


def test_planted_a_responder_who_sees_the_river_early_wins_more():
    name = "merged"
    strategy = random_strategy(game(name), 0)
    cards = game(name).cards
    won, weight = np.zeros(2), 0.0
    for river in range(len(cards.board_cards[2])):
        public, tables = board_game(game(name), strategy, 2, river)
        walk = Walk(public, tables)
        won += [walk.values(player, 1)[RESPOND] for player in range(2)]
        weight += public.joint_weight
    assert (won / weight).sum() / 2 > sum(both(name, strategy, 1)) / 2 + 1e-3


def test_planted_a_responder_who_sees_the_other_hand_wins_more():
    name = "leduc"
    strategy, cards = random_strategy(game(name), 0), game(name).cards
    seen, weight = 0.0, 0.0
    for other in np.flatnonzero(cards.reach[1]).tolist():
        reach = cards.reach.copy()
        reach[1, np.arange(len(reach[1])) != other] = 0
        one = replace(game(name), cards=replace(cards, reach=reach))
        found = board_by_board(BestResponseSamples(Profile(one, strategy), 1))
        seen, weight = seen + found[:, 0].sum(), weight + found[:, 2].sum()
    assert seen / weight > naive_value(game(name), strategy, 0, 1) + 1e-3


def test_each_player_has_own_buckets():
    """The planted error, one bucket map for both players, changes the value."""
    own = game("leduc")
    other = own_buckets(own)
    strategy = random_strategy(other, 4)
    for street in range(2):
        expected = [naive_value(other, strategy, player, street) for player in range(2)]
        found = sampled_best_response(Profile(other, strategy), street).best_response_chips
        assert found == pytest.approx(expected, abs=1e-9)
    assert sampled_best_response(Profile(own, strategy), 1).best_response_chips != pytest.approx(expected, abs=1e-3)


# --- full hold'em ---


def holdem():
    found = policy()
    return found.game, tabulate(found.game, found.probabilities)


def test_the_game_on_one_board_of_the_deck_is_consistent():
    own, strategy = holdem()
    deck = own.cards.after(2, [0, 17, 30, 51])
    assert [len(boards) for boards in deck.board_cards] == [1, 1, 1, 48]
    assert (deck.reach > 0).sum() == 2 * 1128
    public, tables = card_game(own, strategy, own.cards.after(3, [0, 17, 30, 51, 8]))
    walk = Walk(public, tables)
    follow = [walk.values(player, 3) for player in range(2)]
    assert follow[0][0] == pytest.approx(-follow[1][0], rel=1e-9)
    assert all(found[1] > found[0] for found in follow)
    narrow, other = board_game(own, strategy, 3, [0, 17, 30, 51, 8])
    assert narrow.reach.dtype == other[0].dtype == np.float32, "as evaluations walk it"
    walk = Walk(narrow, other)
    for player in range(2):  # pots reach 40,000 chips
        found = walk.values(player, 3) / narrow.joint_weight
        assert found == pytest.approx(follow[player] / public.joint_weight, abs=0.02)


def test_boards_of_the_deck_follow_from_seed_and_strata():
    cards = policy().game.cards
    boards = sample_boards(cards, 3, BoardStrata.of(40, 2, None), 7)
    assert boards == sample_boards(cards, 3, BoardStrata.of(40, 2, None), 7)
    assert boards != sample_boards(cards, 3, BoardStrata.of(40, 2, None), 8)
    assert all(len(set(board)) == 5 for board in boards)
    place = {tuple(flop): number for number, flop in enumerate(flops_in_order().tolist())}
    assert [place[tuple(board[:3])] * 20 // 22_100 for board in boards] == np.repeat(np.arange(20), 2).tolist()


# --- strata and intervals ---


@pytest.mark.parametrize("units", [5, 6, 11, 20])
@pytest.mark.parametrize("boards", [None, 60])
def test_stratified_intervals_cover_the_truth(units, boards):
    """92 to 98 % of 1,000 intervals cover the truth, for 4 populations of boards of unequal weight."""
    size, covered = boards or 22_100, 0
    place = np.linspace(0, 1, size)
    weight = 1 + place
    strata = BoardStrata.of(units, units_each(units), boards)
    for population in range(4):
        value = weight * (3 * place + np.random.default_rng([units, population]).gamma(4, 0.25, size))
        truth = value.sum() / weight.sum()
        for seed in range(250 * population, 250 * population + 250):
            if boards:
                drawn = np.array(sample_boards(None, 0, strata, seed))
            else:
                share = (strata.stratum + np.random.default_rng([seed, units]).random(units)) / len(strata.size)
                drawn = (share * size).astype(int)
            _, (low, high) = stratified95(value[drawn], weight[drawn], strata)
            covered += low <= truth <= high
    assert 0.92 <= covered / 1000 <= 0.98


def test_planted_strata_of_unequal_size_need_their_weights():
    """Draw seven boards in strata of three and four: without the weights the estimate is biased."""
    value, weight = np.array([0, 0, 0, 7.0, 7, 7, 7]), np.ones(7)
    found, forgotten = [], []
    for seed in range(200):
        strata = BoardStrata.of(4, 2, 7)
        drawn = np.array(sample_boards(None, 0, strata, seed))
        found.append(stratified95(value[drawn], weight[drawn], strata)[0])
        forgotten.append(value[drawn].mean())
    assert np.mean(found) == pytest.approx(4) and abs(np.mean(forgotten) - 4) > 0.4


@pytest.mark.parametrize("boards", [6, 30, 61])
def test_no_stratum_has_more_samples_than_boards(boards):
    for units in range(5, boards):
        strata = BoardStrata.of(units, units_each(units), boards)
        assert strata.size.sum() == boards and (np.bincount(strata.stratum) <= strata.size).all()


def test_the_interval_over_all_boards_has_width_0():
    value, weight = np.arange(6.0), np.ones(6)
    assert stratified95(value, weight, BoardStrata.of(6, 1, 6)) == (2.5, (2.5, 2.5))
    refused("a stratum of several boards has one sample", stratified95, value[:3], weight[:3], BoardStrata.of(3, 1, 6))


# --- as a method ---


def test_the_record_states_method_bound_and_interval():
    own = game_of("leduc")
    record = measure("sampled-br", Profile(own, random_strategy(own, 7)), from_street="1", boards=5, seed=2)
    assert (record["method"], record["bound"], record["from"], record["boards"]) == ("sampled-br", "lower", 1, 5)
    low, high = record["ci95_chips"]
    assert low < record["value_chips"] == record["exploitability_chips"] < high
    assert sum(record["best_response_chips"]) / 2 == pytest.approx(record["value_chips"])
    assert street_number(policy().game, "turn") == 2


def test_workers_and_time_budget_do_not_change_values():
    own = game("merged")
    side = Profile(own, random_strategy(own, 1))
    one = sampled_best_response(side, 2, 20, 3)
    assert one == sampled_best_response(side, 2, 20, 3, Effort(2))
    timed = sampled_best_response(side, 2, seed=3, effort=Effort(seconds=0.2))
    assert timed == sampled_best_response(side, 2, timed.samples, 3)


def evaluated(method, name="leduc", **options):
    game = game_of(name)
    measure(method, Profile(game, uniform_strategy(game)), **options)


test_refusals = refusals(
    ("leduc has no street 'river': it has 0, 1", lambda: evaluated("sampled-br", from_street="river")),
    ("boards = 3: at least 5 are needed, for an interval", lambda: evaluated("sampled-br", boards=3)),
    ("the method exact has no --from; what it takes: --flops", lambda: evaluated("exact", from_street="1")),
    ("the method exact has no --from", lambda: evaluated("exact", "kuhn", from_street="1")),
    ("leduc is evaluated at once, over all deals: leave out --flops, --seed", lambda: evaluated("exact", flops=20)),
)
