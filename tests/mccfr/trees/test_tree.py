"""Compiled trees: counts of named betting menus, order of nodes, packed form.

Shows:

* Betting trees have the published counts and follow independent implementations of the rules
  (test_counts_of_named_menus, test_holdem_rules)
"""

from dataclasses import replace

import numpy as np
import pytest
from harness import KUHN, LEDUC, with_chance_in_tree
from refusals import refused

from mccfr.config.game_tables import Menu, PokerGame
from mccfr.games import betting_tree
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.poker import poker
from mccfr.trees.compiled import TERMINAL, can_pack, pack

HALF = ("0.5p", "1p", "allin")
POT = ("1p", "allin")
# By name: menu for stacks of 20,000 chips and blinds 50 and 100; nodes, decisions and actions by street.  The counts
# are from an independent implementation, those of S also from enumeration there.  Menu L is in test_plan.py.
PERFT = {
    "S": (Menu(first=POT, later=POT), 3_362, [20, 100, 340, 900], [57, 264, 856, 2_184]),
    "M2": (Menu(first=HALF, later=POT, max_bets=2), 18_634, [12, 100, 884, 5_812], [33, 280, 2_472, 15_848]),
    "M": (Menu(first=HALF, later=POT), 38_322, [40, 400, 2_520, 11_520], [117, 1_124, 6_836, 30_244]),
}
TOY = poker(PokerGame(antes=(1, 1), stack=5))


def holdem_tree(menu):
    """Return the betting tree of heads-up no-limit hold'em over four streets."""
    return build_tree(holdem_rules(20_000, (50, 100), 0, menu))


@pytest.mark.parametrize("name", PERFT)
def test_counts_of_named_menus(name):
    menu, nodes, decisions, actions = PERFT[name]
    tree = holdem_tree(menu)
    street = tree.arrays.block[tree.decisions] // 2
    assert tree.nodes == nodes
    assert np.bincount(street).tolist() == decisions
    assert np.bincount(street, weights=tree.arrays.count[tree.decisions]).tolist() == actions
    assert tree.row_count.sum() == sum(decisions)
    assert tree.row_slots.sum() == sum(actions)
    assert pack(tree).nbytes == 32 * sum(decisions)


def test_every_action_has_its_node_and_every_chance_is_flagged():
    """Check the kinds of leaves and the chance nodes counted by each node."""
    tree = holdem_tree(PERFT["S"][0])
    arrays, labels = tree.arrays, np.array(tree.label)
    leaf = arrays.kind == TERMINAL
    assert arrays.count.sum() == tree.nodes - 1
    assert not arrays.showdown[~leaf].any()
    assert (arrays.fixed[leaf & (labels == "f")] != 0).all()
    assert (arrays.showdown[leaf & (labels == "c")] >= 100).all()
    assert set(labels[leaf]) == {"f", "c"}
    street = np.append(arrays.block // 2, 0)[tree.parent]  # of the parent; the root has none
    all_in = leaf & (arrays.showdown == 20_000)
    assert (arrays.touched[all_in] == 1 + (street[all_in] < 3)).all()
    later = (arrays.block // 2 > street) & ~leaf
    later[0] = False
    assert (arrays.touched[~leaf] == 1 + later[~leaf]).all()


def test_a_tree_above_the_node_limit_is_refused(monkeypatch):
    monkeypatch.setattr(betting_tree, "MAX_NODES", 3_361)
    refused(r"at least 3,36\d nodes; 3,361 are allowed: lower raises", holdem_tree, PERFT["S"][0])
    monkeypatch.setattr(betting_tree, "MAX_NODES", 3_362)
    assert holdem_tree(PERFT["S"][0]).nodes == 3_362


def test_small_trees():
    assert (KUHN.tree.nodes, len(KUHN.tree.decisions)) == (9, 4)
    assert (LEDUC.tree.nodes, len(LEDUC.tree.decisions)) == (85, 36)
    assert LEDUC.infosets.sum() == 936
    line = KUHN.tree.label.index("f")
    assert [KUHN.tree.label[node] for node in KUHN.tree.path(line)] in (["", "c", "b", "f"], ["", "b", "f"])


def changed(tree, node, **cells):
    """Return the tree with some cells of one record changed."""
    columns = {name: column.copy() for name, column in tree.arrays._asdict().items()}
    for name, cell in cells.items():
        columns[name][node] = cell
    return replace(tree, arrays=type(tree.arrays)(**columns))


def refused_trees():
    """Return trees that cannot be packed, by error message."""
    arrays = KUHN.tree.arrays
    showdown = int(np.flatnonzero(arrays.showdown)[0])
    bet = KUHN.tree.label.index("b")
    return {
        "has 12 actions": poker(PokerGame(antes=(1, 1), stack=12)).tree,
        "node 1 is not of the form": changed(KUHN.tree, showdown, fixed=1.0),  # both a fixed payoff and a showdown
        "node 0 is not of the form": changed(KUHN.tree, bet, kind=TERMINAL, showdown=2.0),  # a terminal has leaves
        "cannot be packed": with_chance_in_tree(KUHN).tree,
    }


@pytest.mark.parametrize("message", refused_trees())
def test_trees_of_another_shape_are_not_packed(message):
    tree = refused_trees()[message]
    refused(message, pack, tree)
    assert not can_pack(tree)
    assert can_pack(KUHN.tree)
