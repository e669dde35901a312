"""Readers in C and JavaScript, for two to six seats.

Shows:

* Readers in C and JavaScript pass the test vectors of policies with two, three and six seats, with bets and calls that
  the tree lacks (planted: test_readers_remember_a_hand_that_folds_to_a_limp)
"""

import pytest
from policies import write_random
from reader_programs import pass_vectors, reader_program

from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.translation import actions_of, real_betting
from mccfr.policy import Policy
from mccfr.policy.export.vectors import draw_vectors
from mccfr.policy.query import HandReader, hand_readings, played

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
    """A random policy of each game."""
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
