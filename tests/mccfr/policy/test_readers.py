"""Readers in C and JavaScript for two to six seats, and the test vectors for readers.

Shows:

* Readers in C and JavaScript pass test vectors for two, three and six seats, off-tree actions included (planted:
  test_readers_remember_a_hand_that_folds_to_a_limp)
"""

import json

import numpy as np
import pytest
from commands import command, refusal
from policies import write_random
from random_policy import policy as random_policy
from reader_programs import pass_vectors, reader_program
from small_games import TURN

from mccfr.config.game_tables import GoofspielGame, HoldemGame, KuhnGame, LeducGame, Menu
from mccfr.games.line_text import line_start
from mccfr.games.translation import Translation, actions_of, real_betting
from mccfr.policy import Policy
from mccfr.policy.export.vectors import draw_vectors
from mccfr.policy.query import HandReader, hand_readings, played, query
from mccfr.trees.betting_lines import line_text
from mccfr.trees.street_amounts import street_line

SIZES = {"first": ("0.5p", "1p"), "later": ("1p", "allin"), "max_bets": 2}
GAMES = {
    "two": HoldemGame(stack=1_000, menu=Menu(**SIZES, limp=False)),
    "three": HoldemGame(
        seats=3, stack=1_500, menu=Menu(**SIZES, limp="small_blind"), flop_players=2, rake="5%", rake_cap=60
    ),
    "six": HoldemGame(
        seats=6,
        stacks=(800, 700, 1_000.5, 400, 1_600, 800),
        big_blind_ante=100,
        menu=Menu(first=("1p", "allin"), later=("allin",), max_bets=2, limp=False),
        flop_players=2,
    ),
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory, slot_abstractions, tables_read_once):
    """Return a random policy of each game."""
    folder = tmp_path_factory.mktemp("policies")
    return {
        name: Policy.open(write_random(folder / name, game, slot_abstractions[1]), check=False)
        for name, game in GAMES.items()
    }


@pytest.mark.parametrize("language", ["c", "js"])
@pytest.mark.parametrize("name", GAMES)
def test_readers_pass_the_vectors(policies, tmp_path, name, language):
    vectors = list(draw_vectors(policies[name], 100 if language == "c" else 25))
    readings = [vector["readings"] for vector in vectors]
    if language == "c":
        assert {vector["street"] for vector in vectors} == {0, 1, 2, 3}
        assert sum(len(each) > 1 for each in readings) > 2
        assert name == "two" or sum(each[0]["node"] < 0 for each in readings) > 5
    pass_vectors(reader_program(language, tmp_path), policies[name].path, vectors)


def flop_vectors(policy, line, board="Kc7d2s"):
    """Return test vectors of a line to the flop for some hands."""
    betting, cards = real_betting(policy.game), policy.game.cards
    state, _ = betting.read(line)
    vectors = []
    for hand in ("AcAd", "KhQd", "9c8c", "7h3s"):
        first, bucket = (cards.hand_bucket(street, state.player, hand, (None, board)[street]) for street in (0, 1))
        readings = hand_readings(policy, betting, actions_of(line), state.player, first)
        mean = played(policy, betting, readings, state, bucket)
        vectors.append({"line": line, "hand": hand, "board": board, "actions": list(mean)})
        vectors[-1]["probabilities"] = list(mean.values())
    return vectors


@pytest.mark.parametrize("language", ["c", "js"])
def test_readers_remember_a_hand_that_folds_to_a_limp(policies, tmp_path, language, monkeypatch):
    """The small blind limps, which the tree lacks. The big blind's check may be a fold in the tree."""
    program, policy = reader_program(language, tmp_path), policies["two"]
    for line in ("cc/", "cc/cr300"):
        pass_vectors(program, policy.path, flop_vectors(policy, line))
    monkeypatch.setattr(HandReader, "outcomes", lambda reader, *what: reader.betting.outcomes(*what))
    with pytest.raises(AssertionError):
        pass_vectors(program, policy.path, flop_vectors(policy, "cc/cr300"))


# --- test vectors ---


LIMPLESS = Menu(first=("1p",), later=("1p",), max_bets=3, limp=False)
SHALLOW = HoldemGame(stack=1_000, menu=Menu(first=("0.5p", "1.5p"), later=("1p",), max_bets=2))


@pytest.mark.parametrize("config", [KuhnGame(), LeducGame(), TURN], ids=["kuhn", "leduc", "turn"])
def test_vectors_equal_query_answers(tmp_path, config):
    policy = Policy.open(write_random(tmp_path / "policy", config))
    vectors = list(draw_vectors(policy, 50))
    assert vectors == list(draw_vectors(policy, 50)) != list(draw_vectors(policy, 50, seed=1))
    assert_query_agrees(policy, vectors)


def assert_query_agrees(policy, vectors):
    for vector in vectors:
        typed = street_line(vector["line"], line_start(policy.game))
        answer = query(policy, typed, vector["hand"], vector["board"] or None)
        assert answer["player"] == vector["player"]
        shares = [action["probability"] for action in answer["actions"]]
        assert shares == pytest.approx(vector["probabilities"], abs=1e-12)
        chips = [float(action[1:]) for action in vector["actions"] if action[0] == "r" and action != "r"]
        assert chips == [action["to_chips"] for action in answer["actions"]][len(answer["actions"]) - len(chips) :]
        assert sum(vector["probabilities"]) == pytest.approx(1)
        assert sum(reading["probability"] for reading in vector["readings"]) == pytest.approx(1)
        at = vector["street"], vector["player"], vector["hand"], vector["board"] or None
        assert policy.game.cards.hand_bucket(*at) == vector["bucket"]


def test_vectors_of_full_holdem_have_bets_outside_of_the_tree(tmp_path, slot_abstractions, tables_read_once):
    """The tree has two sizes and no all-in: bets are between, above and below, or read as calls."""
    policy = Policy.open(write_random(tmp_path / "policy", SHALLOW, slot_abstractions[1]), check=False)
    vectors = list(draw_vectors(policy, 200))
    assert_query_agrees(policy, vectors)
    betting = real_betting(policy.game)
    assert isinstance(betting, Translation)
    readings = [reading for vector in vectors for reading in vector["readings"]]
    assert sum(len(vector["readings"]) > 1 for vector in vectors) > 25
    assert sum(reading["node"] < 0 <= reading["after_call"] for reading in readings) > 5
    assert sum(vector["actions"] == ["c"] for vector in vectors) > 5


@pytest.mark.parametrize("seats", [2, 3])
def test_vectors_of_trees_without_limps_equal_query_answers(seats):
    policy = random_policy(LIMPLESS, 1_000.0, seats, flop_players=2) if seats > 2 else random_policy(LIMPLESS, 1_000.0)
    vectors = list(draw_vectors(policy, 100))
    assert_query_agrees(policy, vectors)
    limped = [vector for vector in vectors if "/" in vector["line"] and "r" not in vector["line"].split("/")[0]]
    assert any(len(vector["readings"]) > 1 for vector in limped), "no hand has checked a limp that the tree lacks"


def test_the_big_blinds_hand_that_folds_to_a_limp_stays_folded(monkeypatch):
    """The button limps, and the small blind folds: in the tree the button raises."""
    policy = random_policy(LIMPLESS, 1_000.0, 3, flop_players=2)
    monkeypatch.setattr(type(policy), "probabilities", lambda *_: np.array([0.25, 0.75, 0.0]))
    betting = real_betting(policy.game)
    state, _ = betting.read("cfc/")
    readings = [betting.at(each, state) for each in hand_readings(policy, betting, ["c", "f", "c"], 1, 0)]
    lines = [line_text(policy.game.tree, each.node if each.node >= 0 else each.closed) for each in readings]
    assert lines == ["r350fc/", "r350ff"] and [each.probability for each in readings] == [0.75, 0.25]
    assert (readings[0].node >= 0, readings[1].node) == (True, -1)
    assert betting.real_actions(readings[1], state) == ["c"]
    after = betting.apply(betting.apply(state, "c"), "r300")
    assert betting.real_actions(betting.at(readings[1], after), after) == ["f"]


def test_vectors_are_written_as_lines_and_overwrite_only_vectors(tmp_path, capsys):
    policy, out = write_random(tmp_path / "policy", LeducGame()), tmp_path / "vectors.jsonl"
    for count in (3, 5):
        assert command("export", policy, out, "--vectors", count) == 0
        assert [json.loads(text)["street"] in (0, 1) for text in out.read_text().splitlines()] == [True] * count
    capsys.readouterr()
    message = refusal(capsys, "export", policy, out, "--vectors", 3, "--quantise", "uint8")
    assert "--quantise has no effect with --vectors" in message
    out.write_text("notes")
    assert str(out) in refusal(capsys, "export", policy, out, "--vectors", 3)
    assert out.read_text() == "notes"
    goofspiel = write_random(tmp_path / "goofspiel", GoofspielGame(cards=3))
    assert "deals no cards" in refusal(capsys, "export", goofspiel, tmp_path / "other", "--vectors", 3)
