"""Automatic bet sizes (`--bets auto:N`): the chosen sizes lose the least EV.

Shows:

* Of single sizes of a polarised range, the best one is chosen
  (planted: test_a_polarised_range_bets_the_largest_size)
* A choice is repeatable with any number of threads (test_a_choice_is_repeatable_with_any_number_of_threads)
* Chosen sizes lose less than fixed ones (test_chosen_sizes_lose_less_than_fixed_ones)
"""

from dataclasses import replace

import numpy as np
import pytest

from mccfr.cards.card_lists import joint_weight
from mccfr.games.line_sizes import line_tree
from mccfr.runs.session.spot_sizes import TypedSizes, size_choice
from mccfr.solvers.public.best_response import values
from mccfr.solvers.public.size_choice import best_subset, side_by_side, street_root
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS

POLAR = {"board": "AcAd7h7s2c", "ranges": {"oop": "AA,43s,43o", "ip": "KK,QQ"}, "pot": 100, "effective_stack": 200}
"""The best hands or bluffs against hands of middle strength: the EV of a bet rises with its size."""
RIVER = {
    "board": "QsJh2h7c3d",
    "ranges": {"oop": "TT+,AQs+,KQs,QTs,98s,A5s", "ip": "77+,ATs+,KQs,87s,T9s,54s"},
    "pot": 60,
    "effective_stack": 100,
}
TURN = {**RIVER, "board": "QsJh2h7c", "ranges": {"oop": "TT+,AQs,98s", "ip": "77+,ATs,T9s"}}


def chosen(spot, count, street, workers=1, bets="auto:{}"):
    choice = size_choice(spot, TypedSizes(bets.format(count), f"auto:{count}", {}), street, workers)
    return choice, choice.choose(lambda count: None)


def test_a_polarised_range_bets_the_largest_size():
    choice, sizes = chosen(POLAR, 1, 3)
    assert sizes[""] == [choice.menus.fine.stack]


def test_subset_search_moves_to_better_neighbours_and_evaluates_each_subset_once():
    evaluated = []

    def value(sets):
        evaluated.extend(sets)
        return np.array([-sum(min(abs(item - goal) for item in each) for goal in (3, 7)) for each in sets], float)

    assert best_subset(10, 2, value) == {3, 7}
    assert len(evaluated) == len(set(evaluated)) < 6 + 5 + 10
    assert best_subset(10, 10, value) == set(range(10))


def test_trees_side_by_side_have_the_values_of_separate_trees():
    choice = size_choice(RIVER, TypedSizes("auto:1", "auto:1", {}), 3, 1)
    fine, menu = choice.menus.fine, choice.menus.default
    whole = line_tree(fine, lambda line, state: menu.raise_targets(state))
    bets = [node for node in whole.tree.children(0) if whole.tree.label[node][0] == "r"]
    both = side_by_side(whole.tree, 0, [[bets[0]], bets[1:]], 1)
    assert both.nodes == 1 + sum(
        line_tree(fine, lambda line, state, own=own: own if line == "" else menu.raise_targets(state)).tree.nodes
        for own in (whole.sizes[""][1:], whole.sizes[""][:1])
    )
    together = choice._values(both, 2, 1, choice.spot.cards.reach) / joint_weight(choice.spot.cards)
    alone = []
    for own in (whole.sizes[""][1:], whole.sizes[""][:1]):
        tree = line_tree(fine, lambda line, state, own=own: own if line == "" else menu.raise_targets(state)).tree
        game = replace(choice.spot, tree=tree)
        cfr = VectorCfr(game, PRESETS["dcfr"])
        cfr.iterate(400)
        alone.append(values(game, cfr.average_strategy())[1, 0])
    assert together == pytest.approx(alone, abs=0.003 * choice.spot.pot_chips)


def test_a_choice_is_repeatable_with_any_number_of_threads():
    found = [chosen(TURN, 1, 2, workers)[1] for workers in (1, 2)]
    assert found[0] == found[1]
    assert {len(line_sizes) for line_sizes in found[0].values()} == {1}


def test_a_street_begins_at_its_first_decision():
    choice = size_choice(TURN, TypedSizes("auto:1", "auto:1", {}), 2, 1)
    tree = choice._tree()
    assert street_root(tree.tree, tree.node("c")) == 0
    assert street_root(tree.tree, tree.node("ccc")) == tree.node("cc")


@pytest.mark.parametrize("count", [1, 2])
def test_chosen_sizes_lose_less_than_fixed_ones(count, monkeypatch):
    choice, sizes = chosen(RIVER, count, 3)
    fine = choice.menus.fine

    def value(own):
        tree = line_tree(fine, lambda line, state: own.get(line) or fine.raise_targets(state)).tree
        game = replace(choice.spot, tree=tree)
        cfr = VectorCfr(game, PRESETS["dcfr"])
        cfr.iterate(300)
        return values(game, cfr.average_strategy())[0, 0]

    best, every = value({"": sizes[""]}), fine.raise_targets(choice._tree().state[""])
    fixed = [value({"": every[place : place + count]}) for place in range(len(every) - count + 1)]
    assert best >= max(fixed) - 0.0005 * choice.spot.pot_chips
    assert best > min(fixed) + 0.001 * choice.spot.pot_chips
