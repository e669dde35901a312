"""Subgame re-solving on games with exact answers: its bound, and its variants.

Shows:

* Safe re-solving keeps its stated bound on exploitability on Leduc
  (test_safe_resolving_keeps_within_its_bound, test_safe_resolving_of_fifty_blueprints)
* Coin Toss is solved with the probabilities of the paper (test_coin_toss_has_the_probabilities_of_the_paper)
* The same for nested and reach subgame solving (test_nested_resolving_keeps_within_its_bound,
  test_reach_margins_keep_within_the_bound, test_hands_in_a_shared_bucket_get_one_strategy_within_the_bound,
  test_safe_resolving_of_three_blueprints_of_small_holdem)
* The same with sampled boards (test_sampled_boards_keep_within_the_bound_and_lower_exploitability)
* The blueprint is kept if the solution gives away too much
  (test_solving_begins_with_the_current_strategy, test_the_current_strategy_is_kept_if_the_solution_gives_away_too_much)
* The test detects wrong scales, learners, ranges, reaches and margins (planted:
  test_errors_of_sampled_solving_are_caught, test_a_response_to_another_range_is_caught,
  test_errors_of_the_gadget_are_caught, test_boards_divide_a_reach_margin)
"""

from functools import cache

import msgspec
import numpy as np
import pytest
from mutants import mutant
from refusals import refusals
from small_games import RUNS, coin_toss, game_of, shared_buckets
from strategies import random_strategy

from mccfr.config.game_tables import PokerGame
from mccfr.config.toml_files import load_config
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.poker import poker
from mccfr.games.registry import build_game
from mccfr.play.resolving import Effort, all_spots, gadgets, resolve_street, solve
from mccfr.play.resolving.all_spots import ResolvedStrategy
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.play.resolving.solve import resolve
from mccfr.solvers.public import best_response
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.public_chance import sampled_board_responses
from mccfr.solvers.public.street_arrays import FOLLOW, RESPOND
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import table_name

ROUNDING = 1e-9
LEDUC = "leduc, suits merged"
THREE_STREETS = PokerGame(
    ranks=2,
    suits=3,
    board_cards=[0, 1, 1],
    antes=[1, 1],
    raise_sizes=[1, 2, 2],
    max_raises=[1, 1, 1],
    stack=7,
    merge_suits=True,
)
MOST_EXCESS = 0.08
"""Chips that 25 iterations on sampled boards may give away from an equilibrium; planted errors give more."""
SAFE = ("maxmargin", "resolving")


@cache
def blueprint(name, iterations):
    """Return the average strategy of so many DCFR iterations, and its exploitability in chips."""
    game = game_of(name)
    cfr = VectorCfr(game, PRESETS["dcfr"], "float64")
    cfr.iterate(iterations)
    strategy = cfr.average_strategy()
    return strategy, evaluate_exact(game, strategy).exploitability_chips


def exploitability(game, strategy):
    return evaluate_exact(game, strategy).exploitability_chips


def within_bound(game, strategy, found):
    """Return True if re-solving gives away no more than its bound."""
    before, after = (exploitability(game, each) for each in (strategy, found.strategy))
    return (
        after <= before + found.bound_chips.sum() / 2 + ROUNDING
        and (found.excess_chips <= found.bound_chips + ROUNDING).all()
    )


# --- published values ---


def player_0_wins(method, reach=False):
    """Return player 0's best-response value of Coin Toss after player 1's guess is re-solved."""
    game, strategy = coin_toss()
    found = resolve_street(game, strategy, 1, method, Effort(500), players=(1,), reach=reach).strategy
    return evaluate_exact(game, found).best_response_chips[0], found.probability[3][0]


def test_coin_toss_has_the_probabilities_of_the_paper():
    """Compare with the paper: an equilibrium gives player 0 nothing and guesses heads with 1/4.

    Of the played coins 3/5 are heads, so unsafe re-solving always guesses heads. Player 0 then sells heads for 1/2 and
    plays tails for 1. If both hands are worth 0 in play, only guesses of one half are safe. But player 0 gives away 1/2
    by playing heads. With this reach margin the smaller of 2q - 1/2 and 1 - 2q is largest at q = 3/8.
    """
    game, strategy = coin_toss()
    assert evaluate_exact(game, strategy).best_response_chips[0] == pytest.approx(0.25)
    for method, reach, wins, heads in (
        ("unsafe", False, 0.75, 1),
        ("resolving", False, 0.25, 0.5),
        ("maxmargin", False, 0.25, 0.5),
        ("maxmargin", True, 0.125, 0.375),
    ):
        won, guess = player_0_wins(method, reach)
        assert won == pytest.approx(wins, abs=2e-3) and guess[0] == pytest.approx(heads, abs=2e-3), (method, reach)
    assert player_0_wins("resolving", reach=True)[0] < 0.25 + 2e-3


# --- the bound of safe re-solving ---


def check_blueprints(counts, iterations):
    game = game_of(LEDUC)
    before, after = [], {method: [] for method in SAFE}
    for count in counts:
        strategy, loses = blueprint(LEDUC, count)
        before.append(loses)
        for method in SAFE:
            found = resolve_street(game, strategy, 1, method, Effort(iterations))
            assert within_bound(game, strategy, found), (count, method)
            after[method].append(exploitability(game, found.strategy))
    means = {method: np.mean(values) for method, values in after.items()}
    print(f"blueprints {np.mean(before):.5f} chips, re-solved {means}")
    assert np.mean(after["maxmargin"]) < np.mean(before)


def test_safe_resolving_keeps_within_its_bound():
    check_blueprints((2, 12), 25)


@pytest.mark.slow
def test_safe_resolving_of_fifty_blueprints():
    check_blueprints(sorted({round(1.12**k) for k in range(75)})[:50], 200)


def test_reach_margins_keep_within_the_bound():
    """Use reach margins summed along the path, for a strategy that gives much away."""
    game = game_of(LEDUC)
    strategy = random_strategy(game, 3)
    assert within_bound(game, strategy, resolve_street(game, strategy, 1, "maxmargin", Effort(40), reach=True))


def share_of_margins(module):
    """Return by line: the sum that boards add to alternatives, over four times the reach margin."""
    game, found = game_of(LEDUC), []
    strategy, cards = random_strategy(game, 3), game.cards.listed()
    for node in all_spots.roots(game, 1):
        last = game.tree.parent[node]
        if game.tree.label[node] != "c" or game.tree.parent[last] != 0:
            continue  # the opponent has decided more than once, or we have decided after the opponent
        spots = [(Spot(game, node, board), cards.path(1, board).__getitem__) for board in range(6)]
        added = sum(module.reach_gains(spot, of, 0, strategy) * (spot.weights[1] > 0) for spot, of in spots)
        before = Spot(game, last, 0)
        values = before.best_response(1, before.ranges(strategy)[0], before.tables(strategy))
        found.append(added.sum() / (values.value - values.action[node - game.tree.arrays.first[last]]).sum() / 4)
    return found


def test_boards_divide_a_reach_margin():
    """Divide a margin among the four boards that a pair of hands leaves; planted: all of it on each."""
    assert share_of_margins(all_spots) == pytest.approx([1, 1])
    wrong = mutant(all_spots, ("chips * weight_now, weight_before,", "chips, np.ones_like(chips),"))
    assert share_of_margins(wrong) == pytest.approx([5 / 4, 5 / 4])


def test_the_gap_without_a_gadget_is_the_gain_of_best_responses(monkeypatch):
    """The gap is per compatible pair of hands at the spot; best responses use the solver's kernel."""
    monkeypatch.setattr(best_response, "value", None)
    game = game_of(LEDUC)
    here, strategy = Spot(game, all_spots.roots(game, 1)[0], 0), random_strategy(game, 3)
    ours, other = ranges = here.ranges(strategy)
    found = resolve(here, 0, ranges, None, "unsafe", Effort(5))
    gains = ours @ here.best_response(0, other, found.tables).value + other @ found.values
    assert found.gap_chips == pytest.approx(gains / (ours @ here.dealing.disjoint_weight(other)))


@cache
def three_streets():
    """Return a three-street game, a good strategy, and the same with a random second street."""
    game = poker(THREE_STREETS)
    cfr = VectorCfr(game, PRESETS["dcfr"], "float64")
    cfr.iterate(300)
    good, weak = cfr.average_strategy(), random_strategy(game, 5)
    tables = [(weak if block in (2, 3) else good).probability[block] for block in range(6)]
    return game, good, Strategy(tables, good.weight)


def resolve_streets(game, strategy, streets, method, effort):
    """Re-solve several streets in order, each against the last result; add bounds and excesses."""
    parts = []
    for street in streets:
        parts.append(resolve_street(game, parts[-1].strategy if parts else strategy, street, method, effort))
    bound, excess = (sum(getattr(part, name) for part in parts) for name in ("bound_chips", "excess_chips"))
    return ResolvedStrategy(
        parts[-1].strategy, bound, excess, max(part.gap_chips for part in parts), sum(part.spots for part in parts)
    )


def test_nested_resolving_keeps_within_its_bound():
    game, _, strategy = three_streets()
    found = resolve_streets(game, strategy, (1, 2), "resolving", Effort(15))
    assert within_bound(game, strategy, found)
    assert exploitability(game, found.strategy) < exploitability(game, strategy)


def exploitability_after(kind, module=all_spots):
    """Return the exploitability after the random second street and the third street are re-solved."""
    game, _, strategy = three_streets()
    found = module.resolve_street(game, strategy, 1, kind, Effort(60))
    assert within_bound(game, strategy, found)
    return exploitability(game, found.strategy)


@pytest.mark.parametrize(("kind", "most"), [("resolving", 0.1), ("maxmargin", 0.12)])
def test_hands_that_do_not_enter_the_spot_are_still_answered(kind, most):
    """The gadget also enters hands by mistake, with a small weight; planted: weight 0."""
    assert exploitability_after(kind) < most
    assert exploitability_after(kind, mutant_all_spots(("0.5 / (cfr.iteration + 1)", "0.0"))) > most


# --- sampled boards: shared buckets on later streets, best responses on the last street ---


LOOSE = ("MOST_EXCESS = 0.005", "MOST_EXCESS = 1e9")


def sampled(strategy, *edits):
    """Return a three-street strategy, re-solved from the second on sampled boards, whatever it gives away."""
    module = mutant_all_spots(LOOSE, *edits)
    return module.resolve_street(three_streets()[0], strategy, 1, "resolving", Effort(25), players=(0,), merged=True)


def test_sampled_boards_keep_within_the_bound_and_lower_exploitability():
    """Re-solve a strategy with a random second street, and an equilibrium, which cannot improve."""
    game, good, strategy = three_streets()
    found, again = sampled(strategy), sampled(good)
    assert within_bound(game, strategy, found) and within_bound(game, good, again)
    assert exploitability(game, found.strategy) < 0.5 * exploitability(game, strategy)
    assert again.excess_chips[0] < MOST_EXCESS
    more = (exploitability(game, again.strategy) - exploitability(game, good)) * 2
    assert more == pytest.approx(again.excess_chips[0], rel=0.1)  # the alternatives are an equilibrium's own values


@pytest.mark.parametrize(
    "edit",
    [
        ("gadget.update(values * (self._factor / BOARDS),", "gadget.update(values / BOARDS,"),
        ("self._cfr.answered(self._side.player, at_root)", "self._cfr.answered(1 - self._side.player, at_root)"),
        ("self._at_root(gadget.opponent_range(0.5 / (self._iteration + 1)))", "[self._side.ours, self._side.ours]"),
    ],
)
def test_errors_of_sampled_solving_are_caught(edit):
    """Plant values on a wrong scale, the wrong player's response, and our range for both players."""
    assert sampled(three_streets()[1], edit).excess_chips[0] > MOST_EXCESS


def answered_values(module=sampled_board_responses):
    """Return the opponent's values on all boards, with responses on the last street."""
    game, good, strategy = three_streets()
    here = Spot(game, all_spots.roots(game, 1)[0], 0, merged=True)
    ranges, tables = here.ranges(strategy), here.tables(good)
    cfr, found = module.RespondedSampling(here.game), np.zeros(ranges.shape[1])
    for _ in range(len(here.game.cards.listed().board_cards[-1])):  # each board once
        for block, table in enumerate(tables):  # regrets whose current strategy is the given one
            for kind in ("regret", "trunk_regret"):
                if (name := table_name(kind, block)) in cfr.tables:
                    cfr.tables[name][:] = table
        found += cfr.answered(0, ranges)
    walk = Walk(here.public._replace(reach=ranges), tables)
    walk.values(1, respond_from=1)
    return found * here.board_factor / cfr.state.iterations, walk.root.by_hand.value[0, RESPOND]


def test_responses_on_all_boards_equal_best_responses_on_the_last_street():
    found, exact = answered_values()
    assert found == pytest.approx(exact, rel=1e-4, abs=1e-4)


def test_a_response_to_another_range_is_caught():
    """Plant an error: boards keep the hand weights of the deal."""
    wrong = mutant(sampled_board_responses, ("board.weight[one, :count] = given[board.hand[one, :count]]", "pass"))
    found, exact = answered_values(wrong)
    assert np.abs(found - exact).max() > 0.01


def excess_by_start(iterations, share, module=solve, monkeypatch=None, merged=True):
    """Return the chips given away from an equilibrium: solved without and with it as the start."""
    game, good, _ = three_streets()
    here = Spot(game, all_spots.roots(game, 1)[0], 0, merged=merged)
    ranges, tables = here.ranges(good), here.tables(good)
    value = here.best_response(1, ranges[0], tables).value
    monkeypatch.setattr(module, "MOST_EXCESS", share)
    effort = Effort(iterations)
    return [module.resolve(here, 0, ranges, value, effort=effort, initial=of).excess_chips for of in (None, tables)]


@pytest.mark.parametrize(("merged", "iterations"), [(True, 1), (False, 1), (False, 3)])
def test_solving_begins_with_the_current_strategy(monkeypatch, merged, iterations):
    """After few iterations it gives away less than solving without a start."""
    cold, warm = excess_by_start(iterations, 1.0, monkeypatch=monkeypatch, merged=merged)
    assert cold > 0.01
    assert warm < 0.25 * cold
    assert warm > 0 or not merged  # one iteration on all boards gives the strategy itself


def test_the_current_strategy_is_kept_if_the_solution_gives_away_too_much(monkeypatch):
    """The planted error skips the check."""
    assert excess_by_start(1, 1e-6, monkeypatch=monkeypatch)[1] < 1e-6
    wrong = mutant(solve, ("not result.excess_chips > MOST_EXCESS", "not result.excess_chips > 1e9 * MOST_EXCESS"))
    assert excess_by_start(1, 1e-6, wrong, monkeypatch)[1] > 1e-3


def test_solving_stops_at_its_precision():
    game = game_of(LEDUC)
    strategy, _ = blueprint(LEDUC, 2)
    here = Spot(game, all_spots.roots(game, 1)[0], 0)
    found = resolve(here, 0, here.ranges(strategy), None, "unsafe", Effort(100_000, precision_chips=0.05))
    assert found.gap_chips <= 0.05 and found.iterations < 1_000


@pytest.fixture
def here():
    game = game_of(LEDUC)
    return Spot(game, all_spots.roots(game, 1)[0], 0)


@pytest.fixture
def ranges(here):
    return here.ranges(blueprint(LEDUC, 2)[0])


def merged(here):
    return Spot(here.origin, here.node, 0, merged=True)


def shared_boards():
    lossy = shared_buckets(poker(TWO_CARDS), 1)
    resolve_street(lossy, random_strategy(lossy, 4), 1, "maxmargin", Effort(10))


test_unsolvable_input_is_refused = refusals(
    ("resolving, maxmargin, unsafe", lambda here, ranges: resolve(here, 0, ranges, None, "gadget")),
    ("needs the opponent's alternatives", lambda here, ranges: resolve(here, 0, ranges, None)),
    ("with no hand: choose another node", lambda here, ranges: resolve(here, 0, 0 * ranges, None, "unsafe")),
    ("not one of the tree's decisions", lambda here: Spot(here.origin, -1, 0)),
    ("not for sampled boards", lambda here, ranges: resolve(merged(here), 0, ranges, ranges[1], "maxmargin")),
    ("boards share buckets", shared_boards),
)


TWO_CARDS = msgspec.structs.replace(THREE_STREETS, ranks=3, hole_cards=2, max_raises=[0, 1, 1])


def test_hands_in_a_shared_bucket_get_one_strategy_within_the_bound():
    """Hands are merged by suit; solved separately, rounding would choose among equal strategies."""
    game = poker(TWO_CARDS)
    strategy = random_strategy(game, 4)
    found = resolve_street(game, strategy, 1, "maxmargin", Effort(30))
    assert within_bound(game, strategy, found)
    assert exploitability(game, found.strategy) < exploitability(game, strategy)


@pytest.mark.slow
def test_safe_resolving_of_three_blueprints_of_small_holdem():
    """Re-solve all 810 spots of the third street, for blueprints from weak to good."""
    game = build_game(load_config(RUNS / "twin-20.toml").game, RUNS)
    for iterations in (3, 10, 40):
        cfr = VectorCfr(game, PRESETS["dcfr"], "float64")
        cfr.iterate(iterations)
        strategy = cfr.average_strategy()
        before, found = exploitability(game, strategy), resolve_street(game, strategy, 2, "maxmargin", Effort(20))
        after, bound = exploitability(game, found.strategy), before + found.bound_chips.sum() / 2
        print(f"{iterations} iterations: {before:.4f} chips, {found.spots} spots -> {after:.4f}, bound {bound:.4f}")
        assert within_bound(game, strategy, found)


# --- planted errors ---


def mutant_all_spots(*edits, of=solve):
    """Return `all_spots` with errors planted in a module that it uses."""
    wrong = mutant(of, *edits)
    return mutant(all_spots, using={of.__name__: wrong})


def beyond_bound(wrong, strategy, method="resolving"):
    game = game_of(LEDUC)
    found = wrong.resolve_street(game, strategy, 1, method, Effort(40))
    return not within_bound(game, strategy, found)


def self_play(here, player, other, tables):
    """Return the values of a player's hands under the player's own strategy."""
    reach = here.weights.copy()
    reach[1 - player] = other
    walk = Walk(here.public._replace(reach=reach), tables)
    walk.values(player)
    return walk.root.by_hand.value[0, FOLLOW]


def alternatives_from_self_play():
    right = "allowed = spot.best_response(1 - player, ranges[player], before).value"
    wrong = mutant(all_spots, (right, "allowed = self_play(spot, 1 - player, ranges[player], before)"))
    wrong.self_play = self_play
    return wrong


REACH = ("ours, deal = ranges[player] / scale", "ours, deal = ranges[1 - player] / scale")
ROOT = ("spot.weights[1 - player]\n", "spot.weights[1 - player] * (ranges[1 - player] > 0)\n")


@pytest.mark.parametrize(
    ("make_wrong", "make_strategy"),
    [
        (lambda: mutant_all_spots(REACH), lambda: random_strategy(game_of(LEDUC), 1)),
        (alternatives_from_self_play, lambda: blueprint(LEDUC, 2)[0]),
        (lambda: mutant_all_spots(ROOT), lambda: random_strategy(game_of(LEDUC), 1)),
    ],
    ids=["reach of the wrong player in the gadget", "alternatives from self-play", "a root hand left out"],
)
def test_errors_of_the_gadget_are_caught(make_wrong, make_strategy):
    """A root hand: the opponent can hold it, but would not reach this spot with it by the blueprint."""
    wrong, strategy = make_wrong(), make_strategy()
    assert beyond_bound(wrong, strategy) and not beyond_bound(all_spots, strategy)


def learning_gap(module, kind):
    """Return how much less the learned average range wins against fixed values than the best range."""
    rng, values = np.random.default_rng(3), np.array([-2.0, 5.0, 1.0, 4.0, 0.5, 3.0])
    reach, alternatives, others = rng.uniform(0.5, 1, 6), rng.normal(size=6), np.array([1.0, 9.0, 2.0, 0.0, 5.0, 3.0])
    gadget = getattr(module, kind)(*([reach, alternatives, others] if kind == "Maxmargin" else [reach, alternatives]))
    for iteration in range(1, 400):
        gadget.update(values, PRESETS["dcfr"].step(iteration))
    range_, beside = gadget.average()
    return abs(gadget.best(values) - (range_ @ values + beside))


@pytest.mark.parametrize("kind", ["Maxmargin", "Resolving"])
def test_a_gadget_learns_the_best_range_against_fixed_values(kind):
    assert learning_gap(gadgets, kind) < 0.01


def test_gains_without_the_weight_of_compatible_hands_are_caught():
    wrong = mutant(gadgets, ("(values - self._alternatives) * self._share", "values - self._alternatives"))
    assert learning_gap(wrong, "Maxmargin") > 0.5


def test_an_own_range_not_updated_after_a_re_solve_is_caught():
    """Plant the error: solve the last street with the range of the second street's blueprint."""
    game, solved, strategy = three_streets()
    wrong = mutant(all_spots, ("ranges, before = spot.ranges(strategy)", "ranges, before = spot.ranges(BLUEPRINT)"))
    wrong.BLUEPRINT = strategy
    assert within_bound(game, solved, resolve_street(game, solved, 2, "maxmargin", Effort(20)))
    assert not within_bound(game, solved, wrong.resolve_street(game, solved, 2, "maxmargin", Effort(20)))
