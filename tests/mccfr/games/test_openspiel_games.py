"""Import of OpenSpiel games: counts, names, error messages."""

import re
import sys

import numpy as np
import pyspiel
import pytest
from commands import call
from refusals import refusals, refused

import mccfr
from mccfr.config.game_tables import OpenSpielGame
from mccfr.games import openspiel_import
from mccfr.games.openspiel_import import import_openspiel
from mccfr.trees.compiled import CHANCE, TERMINAL


def imported(text):
    return import_openspiel(OpenSpielGame(game=text))


@pytest.mark.parametrize(
    ("text", "nodes", "chance_nodes", "infosets"),
    [
        ("kuhn_poker", 54, 4, [6, 6]),
        ("leduc_poker", 9_300, 157, [468, 468]),
        ("liars_dice(dice_sides=4)", 8_176, 5, [512, 512]),
        ("turn_based_simultaneous_game(game=matrix_rps())", 13, 0, [1, 1]),
        (
            "turn_based_simultaneous_game(game=goofspiel(num_cards=4,points_order=ascending,imp_info=True))",
            1_077,
            0,
            162,
        ),
        ("breakthrough(rows=3,columns=2)", 69, 0, [19, 14]),  # no information_state_string, but perfect information
        ("pig(horizon=5)", 7_603, 400, [1_461, 1_340]),
    ],
)
def test_counts(text, nodes, chance_nodes, infosets):
    game = imported(text)
    counts = game.counts()
    assert (counts["nodes"], counts["chance_nodes"]) == (nodes, chance_nodes)
    assert counts["infosets"] == np.sum(infosets)
    if not np.isscalar(infosets):
        assert counts["infosets_per_player"] == infosets
    assert len(game.tree.arrays.kind) == nodes + chance_nodes
    assert np.all(game.tree.arrays.touched == 1)


def test_states_names_and_payoffs_are_openspiels():
    game = imported("leduc_poker")
    tree, arrays = game.tree, game.tree.arrays
    todo, seen = [(0, pyspiel.load_game("leduc_poker").new_initial_state())], 0
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
            assert arrays.player[node] == state.current_player()
            assert tree.infoset_names[state.current_player()][arrays.row[node]] == state.information_state_string()
        todo.extend((child, state.child(int(tree.label[child]))) for child in tree.children(node))
    assert seen == len(arrays.kind) == 9_457
    assert game.pot_chips == 13


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
    said = call(capsys, "query", tmp_path / "policy", "2 0 1").out
    assert "who knows '0b'" in said and "  Pass\n" in said and "  Bet\n" in said
    assert call(capsys, "verify", tmp_path / "policy").status == 0


def named(text, monkeypatch):
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
    call=named,
)


class PretendGame:
    """A game whose type is Kuhn poker's, but for one field."""

    def __init__(self, **changed):
        self.game = pyspiel.load_game("kuhn_poker")
        self.declared = self.game.get_type()
        self.changed = changed

    def get_type(self):
        return type("Declared", (), {**{n: getattr(self.declared, n) for n in dir(self.declared)}, **self.changed})

    def num_players(self):
        return 2

    def new_initial_state(self):
        return self.game.new_initial_state()


def test_sampled_chance_is_refused(monkeypatch):
    """OpenSpiel ships no game that fails in this alone."""
    plain, sampled = PretendGame(), PretendGame(chance_mode=pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC)
    monkeypatch.setattr(pyspiel, "load_game", lambda _: plain)
    assert imported("kuhn_poker").counts()["nodes"] == 54
    monkeypatch.setattr(pyspiel, "load_game", lambda _: sampled)
    refused("samples its chance moves", imported, "kuhn_poker")


def test_payoffs_that_do_not_sum_to_zero_are_refused(monkeypatch):
    """A game may declare zero sum and pay otherwise: prisoner's dilemma under a false flag."""
    honest = pyspiel.load_game("turn_based_simultaneous_game(game=matrix_pd())")
    lying = PretendGame()
    lying.new_initial_state = honest.new_initial_state
    monkeypatch.setattr(pyspiel, "load_game", lambda _: lying)
    refused(r"'kuhn_poker', after the history .*: the payoffs 5.0 and 5.0 sum to 10; only zero", imported, "kuhn_poker")


def test_limit_of_histories(monkeypatch):
    monkeypatch.setattr(openspiel_import, "MOST_HISTORIES", 57)
    refused("histories", imported, "kuhn_poker")
    monkeypatch.setattr(openspiel_import, "MOST_HISTORIES", 58)
    assert len(imported("kuhn_poker").tree.arrays.kind) == 58


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    refused(r"needs the package open_spiel: run tools/bootstrap openspiel", imported, "kuhn_poker")
