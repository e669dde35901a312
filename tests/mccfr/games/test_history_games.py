"""Own and imported games with hidden moves in the tree: counts, payoffs, names, kernels, refusals."""

import re
import sys
from functools import partial

import numpy as np
import pyspiel
import pytest
from commands import call
from harness import Trainer
from naive import check_order
from openspiel import turn_based_goofspiel
from refusals import refusals, refused

import mccfr
from mccfr.config.game_tables import OpenSpielGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games import openspiel_import
from mccfr.games.openspiel_import import import_openspiel
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees import history_compiler as history_tree
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL
from mccfr.trees.history_compiler import Chance, Decision, build_history_tree


def node_at(game, line):
    """Return the node that a line of labels leads to."""
    node = 0
    for label in line.split():
        node = next(child for child in game.tree.children(node) if game.tree.label[child] == label)
    return node


def infoset_name(game, node):
    arrays = game.tree.arrays
    return game.tree.infoset_names[arrays.player[node]][arrays.row[node]]


@pytest.mark.parametrize(
    ("cards", "reveal", "decisions", "terminals", "infosets"),
    [
        (2, "bids", 3, 4, 2),
        (3, "bids", 31, 36, 20),
        (3, "result", 31, 36, 16),
        (4, "bids", 501, 576, 322),
        (5, "bids", 12_531, 14_400, 8_052),
    ],
)
def test_goofspiel_counts(cards, reveal, decisions, terminals, infosets):
    game = mccfr.game("goofspiel", cards=cards, reveal=reveal)
    check_order(game.tree)
    assert np.bincount(game.tree.arrays.kind, minlength=3)[[DECISION, TERMINAL]].tolist() == [decisions, terminals]
    assert (game.counts()["infosets"], game.counts()["nodes"]) == (infosets, decisions + terminals)
    assert len(set(game.tree.infoset_names[0])) == game.infosets[0] == len(game.tree.infoset_names[0])


@pytest.mark.parametrize("cards", [4, 5])
@pytest.mark.parametrize("reveal", ["bids", "result"])
def test_goofspiel_pays_twice_what_openspiel_pays(cards, reveal):
    """Compare every history and infoset with OpenSpiel, which forgets the order of revealed bids."""
    game = mccfr.game("goofspiel", cards=cards, reveal=reveal)
    todo, seen, infosets, payoffs = [(0, turn_based_goofspiel(cards, reveal).new_initial_state())], 0, set(), set()
    while todo:
        node, state = todo.pop()
        seen += 1
        children = game.tree.children(node)
        assert [game.tree.label[child] for child in children] == [str(a + 1) for a in state.legal_actions()]
        if state.is_terminal():
            assert game.tree.arrays.fixed[node] == 2 * state.returns()[0]
            payoffs.add(game.tree.arrays.fixed[node])
        else:
            assert game.tree.arrays.player[node] == state.current_player()
            infosets.add((state.current_player(), state.information_state_string()))
        todo.extend((child, state.child(int(game.tree.label[child]) - 1)) for child in children)
    assert seen == len(game.tree.arrays.kind) and len(payoffs) > 5
    assert len(infosets) == game.infosets.sum() if reveal == "result" else len(infosets) < game.infosets.sum()


def test_second_player_does_not_see_the_bid():
    game = mccfr.game("goofspiel", cards=4)
    arrays = game.tree.arrays
    siblings = [node_at(game, f"3 1 {bid}") for bid in (1, 2, 4)]
    assert len({(arrays.row[node], arrays.slot[node], arrays.block[node]) for node in siblings}) == 1
    assert infoset_name(game, siblings[0]) == infoset_name(game, node_at(game, "3 1")) == "3 1"
    assert arrays.row[node_at(game, "3 2 1")] != arrays.row[siblings[0]]


def test_with_reveal_result_players_see_only_the_results_of_bids():
    game = mccfr.game("goofspiel", cards=4, reveal="result")
    names = {"3 1": "3+", "3 2": "3+", "3 1 4 4 1": "1- 4=", "3 4": "3-"}
    assert {line: infoset_name(game, node_at(game, line)) for line in names} == names


def two_steps(history, *, names):
    """Return a history of a game in which player 0 acts twice; `names` has the infosets."""
    if len(history) == 2:
        return float(history == (0, 1))
    return Decision(0, names[history], ["l", "r"], [(*history, 0), (*history, 1)])


def test_planted_loss_of_recall_is_refused():
    kept = build_history_tree((), lambda h: two_steps(h, names={(): "", (0,): "l", (1,): "r"}))
    assert kept.row_count.tolist() == [3, 0]
    again, twice = {(): "", (0,): "again", (1,): "again"}, {(): "", (0,): "", (1,): "r"}  # twice on one path
    refused(
        "not of perfect recall: player 0 .* infoset 'again'", build_history_tree, (), partial(two_steps, names=again)
    )
    refused("not of perfect recall", build_history_tree, (), partial(two_steps, names=twice))


def test_a_forgotten_observation_violates_perfect_recall():
    """Refuse a game in which player 1 observes chance at the first decision and forgets it later."""

    def expand(history, names=("seen {}", "{}")):
        if not history:
            return Chance(["h", "t"], [0.5, 0.5], ["h", "t"])
        if len(history) == 3:
            return 1.0
        return Decision(1, names[len(history) - 1].format(history), ["0"], [history + "0"])

    assert build_history_tree("", expand).row_count.tolist() == [0, 4]
    refused("not of perfect recall: player 1", build_history_tree, "", partial(expand, names=("seen {}", "forgot")))


def test_builder_refusals(monkeypatch):
    def expand(history):
        if len(history) == 2:
            return 0.0
        moves = range(2 + len(history) * history[0]) if history else range(2)
        return Decision(len(history), "", [str(m) for m in moves], [(*history, m) for m in moves])

    refused("infoset '' of player 1 has the actions 0 1 in one history and 0 1 2 in", build_history_tree, (), expand)
    refused("without actions", build_history_tree, (), lambda _: Decision(0, "", [], []))
    monkeypatch.setattr(history_tree, "MAX_NAME_BYTES", 100)
    long = Decision(0, "n" * 101, ["0"], [()])
    refused("names of player 0's infosets take more than 100 bytes", build_history_tree, (), lambda _: long)


def test_counting_stops_at_the_limit():
    calls = []

    def expand(history):
        calls.append(history)
        return Decision(0, history, ["0", "1"], [history + "0", history + "1"])

    limits = {"max_histories": 1000, "name": "the endless game"}
    refused(
        "the endless game has at least 1,001 histories; 1,000 are allowed", build_history_tree, "", expand, **limits
    )
    assert len(calls) == 500
    exact = build_history_tree((), lambda h: 0.0 if h else Decision(0, "", ["0", "1"], [(0,), (1,)]), max_histories=3)
    assert len(exact.arrays.kind) == 3


MATRIX = mccfr.game("matrix", payoffs=[[1, 0.9], [-0.7, 1]])
KUHN_TREE = import_openspiel(OpenSpielGame(game="kuhn_poker"))
GOOFSPIEL = [mccfr.game("goofspiel", cards=4, reveal=reveal) for reveal in ("bids", "result")]


@pytest.mark.parametrize(
    ("game", "uniform", "value", "algorithm", "iterations", "bound"),
    [
        (MATRIX, 0.4, 16.3 / 18, "external", 20_000, 0.005),
        (MATRIX, 0.4, 16.3 / 18, "outcome", 200_000, 0.01),
        *((game, 2.5, 0, "external", 30_000, 0.05) for game in GOOFSPIEL),
        *((game, 2.5, 0, "outcome", 500_000, 0.1) for game in GOOFSPIEL),
        (KUHN_TREE, 11 / 24, -1 / 18, "external", 50_000, 0.01),
    ],
)
def test_general_kernels_solve_games_with_histories(game, uniform, value, algorithm, iterations, bound):
    assert evaluate_exact(game, uniform_strategy(game)).exploitability_chips == pytest.approx(uniform)
    run = Trainer(game, algorithm, schedule=Schedule("linear", 10_000), seed=1).train(iterations)
    found = evaluate_exact(game, run.strategy)
    assert found.exploitability_chips < bound
    assert found.value_chips == pytest.approx(value, abs=bound)
    # Three nodes on each path; external sampling visits both actions of the traverser: 5 and 4 nodes.
    if game is MATRIX:
        assert run.nodes == iterations * (9 if algorithm == "external" else 6)


def imported(text):
    return import_openspiel(OpenSpielGame(game=text))


@pytest.mark.parametrize(
    ("text", "histories", "infosets"),
    [
        ("kuhn_poker", 58, [6, 6]),
        ("leduc_poker", 9_457, [468, 468]),
        ("liars_dice(dice_sides=4)", 8_181, [512, 512]),
        ("turn_based_simultaneous_game(game=matrix_rps())", 13, [1, 1]),
        ("breakthrough(rows=3,columns=2)", 69, [19, 14]),  # no information_state_string, but perfect information
        ("pig(horizon=5)", 8_003, [1_461, 1_340]),
    ],
)
def test_states_names_and_payoffs_equal_those_of_openspiel(text, histories, infosets):
    game, spiel = imported(text), pyspiel.load_game(text)
    tree, arrays = game.tree, game.tree.arrays
    todo, seen, named = [(0, spiel.new_initial_state())], 0, spiel.get_type().provides_information_state_string
    while todo:
        node, state = todo.pop()
        seen += 1
        assert [tree.label[child] for child in tree.children(node)] == [str(a) for a in state.legal_actions()]
        if state.is_terminal():
            assert arrays.kind[node] == TERMINAL and arrays.fixed[node] == state.returns()[0]
        elif state.is_chance_node():
            assert arrays.kind[node] == CHANCE and arrays.player[node] == -1
            assert arrays.probability[list(tree.children(node))].tolist() == [p for _, p in state.chance_outcomes()]
        else:
            assert arrays.player[node] == (player := state.current_player())
            assert not named or tree.infoset_names[player][arrays.row[node]] == state.information_state_string()
        todo.extend((child, state.child(int(tree.label[child]))) for child in tree.children(node))
    counts = game.counts()
    assert seen == len(arrays.kind) == histories == counts["nodes"] + counts["chance_nodes"]
    assert counts["infosets_per_player"] == infosets and np.all(arrays.touched == 1)


def test_the_pot_is_the_largest_payoff():
    assert imported("leduc_poker").pot_chips == 13


def test_names_of_actions_and_infosets_are_kept_in_policies(tmp_path, capsys):
    solver = mccfr.solver(imported("kuhn_poker"), "cfr")
    solver.run(iterations=50)
    policy = solver.save(tmp_path / "policy")
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (2, 0, 1):
        state.apply_action(action)
    found = policy.query("2 0 1")
    assert found["infoset"] == state.information_state_string() == "0b" and found["role"] == "second player"
    assert [each["name"] for each in found["actions"]] == [state.action_to_string(a) for a in state.legal_actions()]
    assert policy.game.tree.action_names[1:4] == ["Deal:0", "Deal:1", "Deal:2"]
    printed = call(capsys, "query", tmp_path / "policy", "2 0 1").out
    assert "who knows '0b'" in printed and "  Pass\n" in printed and "  Bet\n" in printed
    assert call(capsys, "verify", tmp_path / "policy").status == 0


def refused_import(text, monkeypatch):
    monkeypatch.setattr(openspiel_import, "MOST_HISTORIES", 2000)
    raise ValueError(refused(re.escape(repr(text)), imported, text))


test_refusals = refusals(
    ("OpenSpiel has no game of the name 'no_such_game'", "no_such_game(players=2)"),
    ("OpenSpiel has no game of the name ''", ""),
    ("OpenSpiel says: Unknown parameter 'cards'", "kuhn_poker(cards=4)"),
    ("OpenSpiel says: ", "kuhn_poker(players="),
    ("is for 3 players; exactly two are needed", "kuhn_poker(players=3)"),
    (r"is not zero sum \(IDENTICAL\)", "tiny_hanabi"),
    (r"is not zero sum \(GENERAL_SUM\)", "turn_based_simultaneous_game(game=matrix_pd())"),
    (r"simultaneous moves; .* try 'turn_based_simultaneous_game\(game=matrix_rps\(\)\)'", "matrix_rps"),
    (r"try 'turn_based_simultaneous_game\(game=goofspiel\(num_cards=4\)\)'", "goofspiel(num_cards=4)"),
    ("is not turn-based", "mfg_crowd_modelling"),
    ("does not tell infosets apart .* perfect recall is needed", "dark_chess"),
    (
        "pays before its end .* all payoffs must be at terminals",
        "turn_based_simultaneous_game(game=repeated_game(stage_game=matrix_mp(),num_repetitions=2))",
    ),
    (
        "not of perfect recall: player 0 forgets earlier actions or observations at the infoset 'Current player",
        "turn_based_simultaneous_game(game=goofspiel(num_cards=4,points_order=ascending,imp_info=False))",
    ),
    call=refused_import,
)


class PretendGame:
    """A game with the type of Kuhn poker, of which some fields are changed."""

    def __init__(self, text="kuhn_poker", **changed):
        self.game, declared = pyspiel.load_game(text), pyspiel.load_game("kuhn_poker").get_type()
        self.declared = {**{name: getattr(declared, name) for name in dir(declared)}, **changed}
        self.num_players, self.new_initial_state = self.game.num_players, self.game.new_initial_state

    def get_type(self):
        return type("Declared", (), self.declared)


def test_sampled_chance_and_a_false_zero_sum_type_are_refused(monkeypatch):
    """Change the declared type: no game of OpenSpiel has only sampled chance as a reason for refusal."""
    games = [
        PretendGame(),
        PretendGame(chance_mode=pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC),
        PretendGame("turn_based_simultaneous_game(game=matrix_pd())"),
    ]
    monkeypatch.setattr(pyspiel, "load_game", lambda _: games[0])
    assert imported("kuhn_poker").counts()["nodes"] == 54
    for words in ("samples its chance moves", r"after the history .*: the payoffs 5.0 and 5.0 sum to 10; only zero"):
        games.pop(0)
        refused(words, imported, "kuhn_poker")


def test_limit_of_histories(monkeypatch):
    monkeypatch.setattr(openspiel_import, "MOST_HISTORIES", 57)
    refused("histories", imported, "kuhn_poker")
    monkeypatch.setattr(openspiel_import, "MOST_HISTORIES", 58)
    assert len(imported("kuhn_poker").tree.arrays.kind) == 58


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    refused(r"needs the package open_spiel: run tools/bootstrap openspiel", imported, "kuhn_poker")
