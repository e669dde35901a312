"""EV of hands for a strategy against itself, by naive enumeration; policies that store EVs.

Shows:

* The EV of each hand for a strategy against itself equals naive enumeration of deals
  (test_bucket_evs_of_leduc_at_street_starts_equal_enumeration,
  test_hand_evs_of_holdem_equal_enumeration_of_opponent_hands)
* `export --values` stores these EVs, and readers in Python, C and JavaScript find them (test_a_policy_stores_hand_evs,
  test_readers_find_values_where_streets_begin)
"""

from itertools import pairwise, product

import numpy as np
import pytest
from manifests import flip
from policies import document, write_random
from random_policy import policy
from refusals import refused
from strategies import partly_reached_strategy

from abstraction.cards import parse_cards
from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.evaluation.decision_values import decision_values
from mccfr.evaluation.hand_values import Below, root_values
from mccfr.games.registry import build_game
from mccfr.policy import Policy, Profile, verify_policy, write_policy
from mccfr.policy.policy_values import PolicyValues, StreetValues
from mccfr.runs.reporter import Silent
from mccfr.runs.results.run_export import policy_values
from mccfr.trees.betting_lines import find_node
from mccfr.trees.compiled import DECISION


def naive(source, node, buckets, showdown):
    """Return the chips of player 0 below a node with one deal; buckets [street][player].

    `showdown` is the result for player 0.
    """
    arrays = source.game.tree.arrays
    if arrays.kind[node] != DECISION:
        return arrays.fixed[node] + arrays.showdown[node] * showdown
    street, player = divmod(int(arrays.block[node]), 2)
    played = source.probabilities(node, int(buckets[street][player]))
    children = source.game.tree.children(node)
    return sum(
        share * naive(source, child, buckets, showdown) for share, child in zip(played, children, strict=True) if share
    )


def reach(source, node, buckets, player):
    """Return the probability of a player's actions on the path to a node."""
    arrays, path, found = source.game.tree.arrays, source.game.tree.path(node), 1.0
    for above, below in pairwise(path):
        street, who = divmod(int(arrays.block[above]), 2)
        if who == player:
            found *= source.probabilities(above, int(buckets[street][player]))[below - arrays.first[above]]
    return found


def test_bucket_evs_of_leduc_at_street_starts_equal_enumeration():
    """Enumerate every pair of hands on every board; a player's own reach does not count."""
    game = build_game(LeducGame(), None)
    source, cards = Profile(game, partly_reached_strategy(game)), game.cards
    found, exact = root_values(source)
    assert exact and [(one.street, one.player) for one in found] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for one in found:
        for column, node in ((0, one.nodes[0]), (len(one.nodes) - 1, one.nodes[-1])):
            won, weight = np.zeros((2, len(one.value)))
            for first, second, board in product(range(6), range(6), range(len(cards.board_cards[1]))):
                held = cards.hand_cards[[first, second], 0].tolist()
                if len({*held, int(cards.board_cards[1][board, 0])}) < 3:
                    continue
                path = [int(cards.board_parent[1][board]), board]
                buckets = [[int(cards.bucket[s][p, path[s], (first, second)[p]]) for p in (0, 1)] for s in (0, 1)]
                result = np.sign(int(cards.strength[board, first]) - int(cards.strength[board, second]))
                other, bucket = 1 - one.player, buckets[one.street][one.player]
                share = reach(source, int(node), buckets, other)
                value = naive(source, int(node), buckets, float(result))
                won[bucket] += share * (-value if one.player else value)
                weight[bucket] += share
            known = weight > 0
            assert one.value[known, column] == pytest.approx(won[known] / weight[known], abs=1e-9)
            assert np.isnan(one.value[~known, column]).all()


def test_hand_evs_of_holdem_equal_enumeration_of_opponent_hands():
    """On the river, enumerate the opponent's hands with given ranges, for EVs of hands and actions."""
    source = policy()
    dealing, board = source.game.cards.at_table(), tuple(parse_cards("Kc7d2s4hAs"))
    below = Below(source, dealing, find_node(source.game.tree, "r200c/cc/cc/r400"))
    live, strength = dealing.live(3, board), dealing.strengths(board)
    weights = np.random.default_rng(5).random((2, dealing.hand_count)) * live
    found = decision_values(source, dealing, (below.node, board), weights, (0, 0))
    assert found.exact and found.boards == 1
    refused("is not one of the tree's decisions", Below, source, dealing, -1)
    rows = [dealing.bucket_row(street, 0, board[: (0, 3, 4, 5)[street]]) for street in range(4)]
    for player, hand in ((0, int(np.flatnonzero(live)[700])), (1, int(np.flatnonzero(live)[45]))):
        others = np.flatnonzero((dealing.hand_masks() & dealing.hand_masks()[hand] == 0) & live)
        values: dict[tuple[int, int, int], float] = {}

        def value(node, other, hand=hand, player=player, values=values):
            result = int(np.sign(int(strength[hand]) - int(strength[other]))) * (-1 if player else 1)
            key = node, int(rows[3][other]), result
            if key not in values:
                buckets = [[row[hand], row[other]][:: -1 if player else 1] for row in rows]
                values[key] = naive(source, node, buckets, result) * (-1 if player else 1)
            return values[key]

        met = weights[1 - player, others]
        expected = met @ [value(below.node, other) for other in others.tolist()] / met.sum()
        assert found.hands[player, hand] == pytest.approx(expected, abs=1e-8)
        if player == below.player:
            for action, child in enumerate(source.game.tree.children(below.node)):
                expected = met @ [value(child, other) for other in others.tolist()] / met.sum()
                assert found.actions[action, hand] == pytest.approx(expected, abs=1e-8)
    assert found.mean(0).mean == pytest.approx(-found.mean(1).mean)


def test_a_policy_stores_hand_evs(tmp_path):
    """Write, verify and read EVs at street starts; a policy without EVs refuses to return them."""
    plain = Policy.open(write_random(tmp_path / "plain", KuhnGame()))
    refused("export it with --values", plain.values, 0, 0)
    game = build_game(LeducGame(), None)
    strategy = partly_reached_strategy(game)
    values = policy_values(Profile(game, strategy), 1, Silent())
    out = tmp_path / "leduc"
    write_policy(out, game, document(LeducGame()), strategy, provenance={}, values=values)
    assert verify_policy(out) == []
    for check in (True, False):
        found = Policy.open(out, check=check)
        for one in values.streets:
            for column, node in enumerate(one.nodes.tolist()):
                assert np.array_equal(
                    found.values(node, one.player), one.value[:, column].astype(np.float32), equal_nan=True
                )
        refused("does not begin a street", found.values, 1, 0)
        refused("it must be 0 or 1", found.values, 0, 2)
    assert found.meta["values"]["bound"] == "exact"
    name = "value_street1_player0.npy"
    flip(out / name, -1)
    assert name in verify_policy(out)[0]
    drawn = PolicyValues([StreetValues(0, 0, np.zeros(1), np.zeros((1, 1)))], boards=7).fields()
    assert (drawn["bound"], drawn["boards"]) == ("estimate", 7)
