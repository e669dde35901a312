"""Responders with bets that the policy's tree has not: what they meet is what a table has, and they win by it.

Shows:

* A responder with bets of his own is trained in what a table would be, does not see what they are taken for, and wins
  more (test_what_is_won_in_the_tree_of_training_is_what_is_won_at_the_table,
  test_readings_are_drawn_by_their_probabilities_and_not_seen, test_who_may_bet_more_wins_more,
  test_planted_separate_rows_are_caught)
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from commands import command, refusal
from harness import Trainer
from refusals import refused
from same import assert_same_arrays
from strategies import random_strategy

from mccfr.common.rng import EVALUATION
from mccfr.config.game_tables import Menu, PokerGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.joint_tree import joint_tree
from mccfr.evaluation.trained_best_response import menus, trained_best_response
from mccfr.evaluation.trained_best_response.menus import against_policy, with_menu
from mccfr.evaluation.trained_best_response.scoring import ResponderScores
from mccfr.evaluation.trained_best_response.training import Training
from mccfr.games.registry import build_game
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.responder import PUBLIC, SAMPLERS
from mccfr.solvers.responder import learnt_strategy as by_cells
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION

POT = PokerGame(blinds=[2, 1], stack=30, first_player=[2, 1], menu=Menu(first=("1p",), later=("1p",)))
WIDE = Menu(first=("0.5p", "0.8p", "1p", "allin"), later=("1p", "allin"), max_bets=3)


def pot_game():
    return build_game(POT, None)


def learnt_strategy(training):
    """Both players of each seat's tree, as a strategy of it: responders by regret matching, the policy as it is."""
    found = []
    for game, tables in zip(training._games, training._tables, strict=True):
        blocks, weights = [], []
        for block, buckets in enumerate(game.buckets.tolist()):
            cells = np.maximum(tables.rows("regret", block)[:, : game.tree.row_slots[block]].astype(float), 0)
            arrays = game.tree.arrays
            for node in np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block)).tolist():
                row = slice(int(arrays.slot[node]), int(arrays.slot[node] + arrays.count[node]))
                cells[:, row] += cells[:, row].sum(axis=1, keepdims=True) == 0
                cells[:, row] /= cells[:, row].sum(axis=1, keepdims=True)
            blocks.append(cells)
            weights.append(np.ones((buckets, int(game.tree.row_count[block]))))
        found.append(Strategy(tuple(blocks), tuple(weights)))
    return found


def trained(side, own, nodes=3_000, sampler=PUBLIC):
    training = Training(own, side, 5, sampler)
    training.train(nodes, 1, lambda: False)
    return training


def test_what_is_won_in_the_tree_of_training_is_what_is_won_at_the_table():
    """Exactly, from each seat: the tree with readings as decisions, and the meeting that head-to-head walks."""
    game = pot_game()
    side, own = Profile(game, random_strategy(game, 1)), with_menu(game, WIDE)
    training = trained(side, own)
    units = ResponderScores([Profile(own, by_cells(own, training.learnt("regret matching")))], side, 0, EVALUATION)
    found = sum(units.play(board) for board in range(units.listed))
    for seat, strategy in enumerate(learnt_strategy(training)):
        value = evaluate_exact(training._games[seat], strategy).value_chips
        assert found[seat] / found[2] == pytest.approx((1 - 2 * seat) * value, abs=1e-6)  # regrets are float32


@pytest.mark.parametrize("seat", [0, 1])
def test_readings_are_drawn_by_their_probabilities_and_not_seen(seat):
    game = pot_game()
    own = with_menu(game, WIDE)
    tree, drawn = against_policy(own, game, seat)
    arrays, players = tree.arrays, tree.arrays.player
    meeting = joint_tree((own, game) if seat == 0 else (game, own))
    draws = np.flatnonzero((arrays.kind == DECISION) & (arrays.touched == 0))
    assert len(draws) > 10 and (players[draws] == 1 - seat).all()
    assert len(arrays.kind) == len(meeting.factor) + len(draws)
    found = []
    for node in draws.tolist():
        block, count = int(arrays.block[node]), int(arrays.count[node])
        first = int(arrays.slot[node] - game.tree.row_slots[block])
        shares = drawn[block][first : first + count]
        assert count > 1 and shares.sum() == pytest.approx(1) and (shares > 0).all()
        assert players[tree.parent[node]] == seat  # he bets, and the policy reads it
        assert (tree.parent[list(tree.children(node))] == node).all()
        found += shares.tolist()
    assert sorted(found) == sorted(meeting.factor[meeting.factor < 1])
    # A raise after either reading is one and the same row of his: he does not know which it was.
    rows = [rows_below(tree, node, seat) for node in draws.tolist()]
    shared = [set.intersection(*each) for each in rows if all(each)]
    assert shared and any(shared)


def rows_below(tree, node, seat):
    """Of each reading of a draw, the responder's rows where he acts next."""
    found = []
    for child in tree.children(node):
        below = tree.children(child) if tree.arrays.kind[child] == DECISION else []
        found.append(
            {
                (int(tree.arrays.block[each]), int(tree.arrays.row[each]))
                for each in below
                if tree.arrays.kind[each] == DECISION and tree.arrays.player[each] == seat
            }
        )
    return found


def test_the_policys_own_bets_change_nothing():
    game = pot_game()
    side, own = Profile(game, random_strategy(game, 2)), with_menu(game, POT.menu)
    assert against_policy(own, game, 0) == (own.tree, {})
    plain, same = trained(side, game), trained(side, own)
    assert_same_arrays(plain.arrays(), same.arrays())


@cache
def near_equilibrium():
    """The average of external sampling in the tree of pot-sized bets, and what a best response there wins from it."""
    game = pot_game()
    side = Profile(game, Trainer(game).train(100_000).strategy)
    return side, evaluate_exact(game, side.strategy).exploitability_chips


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_who_may_bet_more_wins_more(sampler, tmp_path):
    """Far more than the best response with the policy's bets, and no more than one who sees what his own stand for."""
    side, within = near_equilibrium()
    wide = tmp_path / "wide.toml"
    sizes = 'first = ["0.5p", "0.8p", "1p", "allin"]\nlater = ["1p", "allin"]\nmax_bets = 3\n'
    wide.write_text(f'[game]\nname = "poker"\nblinds = [2, 1]\n[game.menu]\n{sizes}')
    found = trained_best_response(side, menu=wide, nodes=100_000, sampler=sampler)
    assert within < 0.2 and found.value_chips > 1
    training = trained(side, with_menu(side.game, WIDE), nodes=1)
    for seat, strategy in enumerate(learnt_strategy(training)):
        seeing = evaluate_exact(training._games[seat], strategy).best_response_chips[seat]
        assert found.best_response_chips[seat] <= seeing + 1e-6


def test_menus_that_do_not_suit_are_refused_in_a_sentence(tmp_path, capsys):
    run = tmp_path / "run"
    assert command("solve", "kuhn", "--run", run, "--iterations", 50, "--set", "run.workers=0") == 0
    capsys.readouterr()
    for menu, said in (
        ("hunl-quick", "a responder's menu is for no-limit games with"),
        ("leduc", "has no [game.menu]"),
        ("hunl-quik", "did you mean 'hunl-quick'"),
    ):
        told = refusal(capsys, "evaluate", run, "--method", "trained-br", "--nodes", 1000, "--responder-menu", menu)
        assert said in told
    game = pot_game()
    refused("could only fold", with_menu, game, Menu(first=(), later=(), limp=False))


def test_planted_separate_rows_are_caught(monkeypatch):
    """A responder who sees what his bet was taken for: the tree's value is no longer that of the table."""
    real = menus.joint_tree

    def seeing(games):
        meeting = real(games)
        tree, arrays = meeting.tree, meeting.tree.arrays
        mine = np.flatnonzero((arrays.kind == DECISION) & (arrays.player == 0))
        row, slot, slots, rows = arrays.row.copy(), arrays.slot.copy(), tree.row_slots.copy(), tree.row_count.copy()
        for node in mine.tolist():
            block = int(arrays.block[node])
            row[node], slot[node] = rows[block], slots[block]
            rows[block] += 1
            slots[block] += int(arrays.count[node])
        own_rows = arrays._replace(row=row, slot=slot)
        return meeting._replace(tree=replace(tree, arrays=own_rows, row_slots=slots, row_count=rows))

    monkeypatch.setattr(menus, "joint_tree", seeing)
    with pytest.raises(AssertionError):
        test_readings_are_drawn_by_their_probabilities_and_not_seen(0)
