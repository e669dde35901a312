"""Games with hidden moves in the tree: counts, layout, payoffs, general kernels, refused input."""

from functools import partial

import numpy as np
import pyspiel
import pytest
from harness import Trainer
from naive import check_order
from refusals import refused

from mccfr.config.game_tables import GoofspielGame, MatrixGame, OpenSpielGame
from mccfr.games.goofspiel import goofspiel
from mccfr.games.matrix import matrix
from mccfr.games.openspiel_import import import_openspiel
from mccfr.solvers.histories.history_values import best_response_value, expected_value
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import row_starts, uniform_strategy
from mccfr.trees import history_compiler as history_tree
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL
from mccfr.trees.history_compiler import Chance, Decision, build_history_tree


def turn_based_goofspiel(cards, reveal="bids"):
    hidden = "True" if reveal == "result" else "False"
    return pyspiel.load_game(
        f"turn_based_simultaneous_game(game=goofspiel(num_cards={cards},points_order=ascending,imp_info={hidden},"
        "returns_type=point_difference))"
    )


def count_states(game):
    """Histories and infosets of an OpenSpiel game."""
    histories, infosets, todo = 0, set(), [game.new_initial_state()]
    while todo:
        state = todo.pop()
        histories += 1
        if state.current_player() >= 0:
            infosets.add((state.current_player(), state.information_state_string()))
        todo.extend(state.child(action) for action in state.legal_actions())
    return histories, len(infosets)


def node_at(game, line):
    """The node that a line of labels leads to."""
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
        (4, "result", 501, 576, 162),
        (5, "bids", 12_531, 14_400, 8_052),
        (5, "result", 12_531, 14_400, 2_124),
    ],
)
def test_goofspiel_counts(cards, reveal, decisions, terminals, infosets):
    game = goofspiel(GoofspielGame(cards=cards, reveal=reveal))
    assert (game.tree.arrays.kind == DECISION).sum() == decisions
    assert (game.tree.arrays.kind == TERMINAL).sum() == terminals
    assert game.counts()["infosets"] == infosets
    assert game.counts()["nodes"] == decisions + terminals
    assert len(set(game.tree.infoset_names[0])) == game.infosets[0] == len(game.tree.infoset_names[0])


@pytest.mark.parametrize("cards", [4, 5])
def test_goofspiel_counts_are_openspiels(cards):
    game = goofspiel(GoofspielGame(cards=cards, reveal="result"))
    assert count_states(turn_based_goofspiel(cards, "result")) == (len(game.tree.arrays.kind), game.infosets.sum())
    # With bids revealed OpenSpiel forgets their order and has fewer infosets, but the same histories.
    game = goofspiel(GoofspielGame(cards=cards, reveal="bids"))
    histories, infosets = count_states(turn_based_goofspiel(cards, "bids"))
    assert histories == len(game.tree.arrays.kind)
    assert infosets < game.infosets.sum()


@pytest.mark.parametrize("reveal", ["bids", "result"])
def test_goofspiel_pays_twice_what_openspiel_pays(reveal):
    game = goofspiel(GoofspielGame(cards=4, reveal=reveal))
    todo = [(0, turn_based_goofspiel(4, reveal).new_initial_state())]
    payoffs = set()
    while todo:
        node, state = todo.pop()
        children = game.tree.children(node)
        assert [game.tree.label[child] for child in children] == [str(a + 1) for a in state.legal_actions()]
        if state.is_terminal():
            assert game.tree.arrays.fixed[node] == 2 * state.returns()[0]
            payoffs.add(game.tree.arrays.fixed[node])
        else:
            assert game.tree.arrays.player[node] == state.current_player()
        todo.extend((child, state.child(int(game.tree.label[child]) - 1)) for child in children)
    assert len(payoffs) > 5


def test_second_player_does_not_see_the_bid():
    game = goofspiel(GoofspielGame(cards=4))
    arrays = game.tree.arrays
    siblings = [node_at(game, f"3 1 {bid}") for bid in (1, 2, 4)]
    assert len({(arrays.row[node], arrays.slot[node], arrays.block[node]) for node in siblings}) == 1
    assert infoset_name(game, siblings[0]) == infoset_name(game, node_at(game, "3 1")) == "3 1"
    assert arrays.row[node_at(game, "3 2 1")] != arrays.row[siblings[0]]


def test_only_the_result_is_seen():
    game = goofspiel(GoofspielGame(cards=4, reveal="result"))
    assert infoset_name(game, node_at(game, "3 1")) == infoset_name(game, node_at(game, "3 2")) == "3+"
    assert infoset_name(game, node_at(game, "3 1 4 4 1")) == "1- 4="
    assert infoset_name(game, node_at(game, "3 4")) == "3-"


@pytest.mark.parametrize(
    "game",
    [
        goofspiel(GoofspielGame(cards=4)),
        goofspiel(GoofspielGame(cards=4, reveal="result")),
        matrix(MatrixGame(payoffs=[[1, 0.9], [-0.7, 1], [0, 0]])),
        import_openspiel(OpenSpielGame(game="liars_dice(dice_sides=2)")),
    ],
    ids=["goofspiel", "goofspiel-result", "matrix", "liars-dice"],
)
def test_layout(game):
    tree, arrays = game.tree, game.tree.arrays
    check_order(tree)
    assert np.array_equal(np.sort(arrays.first[arrays.count > 0]), np.unique(arrays.first[arrays.count > 0]))
    # Depth-first: below the first child lies everything up to the next child's own children.
    for node in range(len(arrays.kind)):
        inner = [arrays.first[child] for child in tree.children(node) if arrays.count[child]]
        assert inner == sorted(inner)
        assert not inner or inner[0] == arrays.first[node] + arrays.count[node]
    assert np.all(arrays.touched == 1) and tree.streets == 1 and not game.cards.dealt
    assert np.array_equal(arrays.block, arrays.player)
    for player in range(2):
        own = arrays.player == player
        starts = row_starts(game, player)
        assert np.array_equal(np.unique(arrays.row[own]), np.arange(tree.row_count[player]))
        assert np.array_equal(starts[arrays.row[own]], arrays.slot[own])
        assert np.array_equal(np.diff(starts)[arrays.row[own]], arrays.count[own])
        assert len(tree.infoset_names[player]) == tree.row_count[player]
    chance = np.flatnonzero(arrays.kind == CHANCE)
    assert all(abs(arrays.probability[list(tree.children(node))].sum() - 1) < 1e-12 for node in chance)
    assert np.all(arrays.probability[[c for n in tree.decisions for c in tree.children(int(n))]] == 1)


def two_steps(history, *, names):
    """Return a history of a game in which player 0 acts twice; `names` has the infosets."""
    if len(history) == 2:
        return float(history == (0, 1))
    return Decision(0, names[history], ["l", "r"], [(*history, 0), (*history, 1)])


def test_planted_loss_of_recall_is_refused():
    kept = build_history_tree((), lambda h: two_steps(h, names={(): "", (0,): "l", (1,): "r"}))
    assert kept.row_count.tolist() == [3, 0]
    again, twice = {(): "", (0,): "again", (1,): "again"}, {(): "", (0,): "", (1,): "r"}  # twice on one path
    for names, words in (
        (again, "not of perfect recall: player 0 .* infoset 'again'"),
        (twice, "not of perfect recall"),
    ):
        refused(words, build_history_tree, (), partial(two_steps, names=names))


def test_what_was_seen_before_counts_as_recall():
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


def trained(game, algorithm, iterations, seed):
    """A run of a general kernel with linear weights."""
    return Trainer(game, algorithm, schedule=Schedule("linear", 10_000), seed=seed).train(iterations)


def exploitability(game, strategy):
    return (best_response_value(game, strategy, 0) + best_response_value(game, strategy, 1)) / 2


MATRIX = matrix(MatrixGame(payoffs=[[1, 0.9], [-0.7, 1]]))
KUHN_TREE = import_openspiel(OpenSpielGame(game="kuhn_poker"))
GOOFSPIEL = [goofspiel(GoofspielGame(cards=4, reveal=reveal)) for reveal in ("bids", "result")]


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
    assert exploitability(game, uniform_strategy(game)) == pytest.approx(uniform)
    run = trained(game, algorithm, iterations, seed=1)
    assert exploitability(game, run.strategy) < bound
    assert expected_value(game, run.strategy) == pytest.approx(value, abs=bound)
    if (
        game is MATRIX
    ):  # three nodes on each path; external sampling visits both actions of the traverser: 5 and 4 nodes
        assert run.nodes == iterations * (9 if algorithm == "external" else 6)
