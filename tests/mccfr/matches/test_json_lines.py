"""`mccfr bot json`: decisions as JSON lines on standard input.

Shows:

* A table program in any language gets legal actions by JSON lines (test_a_whole_match_is_played_by_lines)
"""

import io
import json
import random

import pytest
from commands import call, refusal
from policies import write_random

from mccfr.config.game_tables import HoldemGame, LeducGame, Menu
from mccfr.games.betting import amount_text
from mccfr.games.full_betting import real_rules
from mccfr.games.translation import apply_action
from mccfr.matches.json_lines import answer_lines
from mccfr.matches.players import PlayManner
from mccfr.trees.street_amounts import street_line

GAME = HoldemGame(menu=Menu(first=("0.5p", "1p", "allin"), later=("1p", "allin")))
CARDS = "AhAd", "Ks7c2d9h9s"


@pytest.fixture(scope="module")
def policy(tmp_path_factory, slot_abstractions, tables_read_once):
    return str(write_random(tmp_path_factory.mktemp("lines") / "policy", GAME, slot_abstractions[1]))


def answers(policy, decisions, seed=0):
    return list(answer_lines(policy, PlayManner(), seed, (json.dumps(decision) for decision in decisions)))


def test_a_whole_match_is_played_by_lines(policy):
    """Hands against random legal bets: each answer is legal."""
    rules, draw = real_rules(GAME), random.Random(1)
    asked, current = 0, []
    bot = answer_lines(policy, PlayManner(), 3, iter(lambda: json.dumps(current[0]), None))
    for number in range(40):
        state, line, position = rules.start(), "", number % 2
        while not isinstance(state, int):
            if state.player == position:
                board = CARDS[1][: 2 * (0, 3, 4, 5)[state.street]]
                typed = {"line": street_line(line, rules.line_start), "board": board, "number": number}
                current[:] = [{"position": position, "hand": CARDS[0]} | typed]
                action, asked = next(bot)["action"], asked + 1
                if action[0] == "b":
                    action = f"r{amount_text(float(action[1:]) + state.put_in_before)}"
            else:
                most = min(20_000, int(state.to_call * 4))
                raises = [f"r{draw.randint(int(state.lowest_raise), most)}"] if state.lowest_raise < most else []
                action = draw.choice(["c", *raises])
            after = apply_action(rules, state, action)  # raises for an illegal action
            line += action + "/" * (not isinstance(after, int) and after.street != state.street)
            state = after
    assert asked > 80


def test_number_and_seed_fix_the_draws(policy):
    decision = {"position": 0, "hand": "AhAd", "line": "b370"}
    again = [answers(policy, [decision | {"number": 5}], seed=seed) for seed in (0, 0)]
    assert again[0] == again[1]
    assert len({found["action"] for found in answers(policy, [decision | {"number": n} for n in range(60)])}) > 1


def test_invalid_requests_are_answered_with_an_error(policy):
    whole = {"position": 1, "hand": "AhAd", "line": "b300c/c", "board": "Kc7d2s"}
    for change, words in (
        ({"position": 2}, "it must be from 0 to 1"),
        ({"hand": "AhAx"}, "AhAx"),
        ({"line": "b300c/b50"}, "a bet must put in 100 to"),
        ({"line": "r300c/r600"}, "r300 can mean chips put in on this street"),
        ({"line": "b300c/"}, "not the turn of position 1"),
        ({"board": "Kc7d"}, "board"),
        ({"board": "Kc7d2s3c"}, "has more cards than the street"),
        ({"stacks": [100, 5]}, "two amounts above the big blind"),
        ({"cards": "x"}, "unknown field"),
    ):
        (found,) = answers(policy, [whole | change])
        assert words in found["error"], found
    bad, good = answers(policy, [{}, whole])
    assert "position" in bad["error"] and good["action"][0] in "cb"
    (found,) = answers(policy, [whole | {"stacks": [20_000, 900]}])
    assert found["action"] in ("c", "b600") or float(found["action"][1:]) <= 600


def test_the_command_answers_lines(tmp_path, monkeypatch, capsys):
    out = write_random(tmp_path / "leduc", LeducGame())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"position": 0, "hand": "Kc"}\n{\n')))
    first, second = map(json.loads, call(capsys, "bot", "json", out).out.splitlines())
    assert first["action"] in ("c", "b2") and "error" in second
    assert "give the directory of a policy or a run" in refusal(capsys, "bot", "json", "odd-size")
