"""Matches, bots and tables of three players: rotations, intervals, commands.

Shows:

* In a match of three, each player holds every hand in every seat (planted: test_a_missing_rotation_is_detected)
* `match`, `play`, `dealer` and `bot json` play and re-solve with three seats
  (test_a_match_of_three_needs_a_name_for_each_seat, test_a_person_plays_at_a_table_of_three,
  test_a_policy_of_three_plays_at_the_dealer, test_json_lines_of_three, test_each_command_resolves_hands_of_three)
"""

import json

import numpy as np
import pytest
from acpc import contender_of, program, solved_again
from commands import answer, call, refusal
from pokerkit_table import histories
from policies import write_random
from random_policy import policy
from refusals import refused

import mccfr
from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.evaluation.samples import Effort
from mccfr.games.translation import real_betting
from mccfr.matches.json_lines import answer_lines
from mccfr.matches.match import Match
from mccfr.matches.players import AS_WRITTEN, PlayManner
from mccfr.matches.seat_match import SeatMatch, match_of_seats
from mccfr.matches.terminal_player import play_person
from mccfr.play.policy_seat import PolicySpec
from mccfr.play.resolving.resolving_table import settings_of
from mccfr.play.table import play_hand, won_chips

MENU = Menu(first=("1p",), later=("allin",), max_bets=2, limp=False)


def contender(purify=False, **keys):
    source = policy(MENU, 2_000.0, 3, flop_players=2, **keys)
    return contender_of(source, spec=PolicySpec(source, purify))


def test_equal_players_win_the_same_on_every_deal():
    """Purified policies draw no actions, so each player loses only the rake."""
    playing = SeatMatch([contender(purify=True, rake="5%")] * 3, seed=2)
    chips = np.array([playing.play(sample) for sample in range(40)])
    assert np.allclose(chips, chips[:, :1]) and chips.min() < 0 and chips.max() <= 0
    without = SeatMatch([contender(purify=True)] * 3, seed=2)
    assert not np.array([without.play(sample) for sample in range(40)]).any()


def naive_chips(contenders, playing, sample):
    """Return each contender's mean chips on a deal that each plays once in every seat."""
    chips = np.zeros(3)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        betting, dealing = playing.betting, playing.dealing
        players, deal = [contenders[which].spec.player(betting) for which in order], dealing.deal(2, sample)
        chips[order] += won_chips(playing.game, dealing, deal, play_hand(players, betting, dealing, deal, sample))
    return chips / 3


def test_a_missing_rotation_is_detected(monkeypatch):
    """Planted error: the second rotation is played twice, the third never."""
    contenders = [contender(purify=True), program("always-call"), program("always-fold")]
    playing = SeatMatch(contenders, seed=2)
    expected = [naive_chips(contenders, playing, sample) for sample in range(20)]
    assert np.allclose([playing.play(sample) for sample in range(20)], expected)
    right = SeatMatch.hand
    monkeypatch.setattr(SeatMatch, "hand", lambda self, sample, rotation: right(self, sample, min(rotation, 1)))
    assert not np.allclose([playing.play(sample) for sample in range(20)], expected)


def test_each_player_has_its_own_mean_and_interval():
    players = [contender(), program("always-call"), program("random")]
    found = match_of_seats(players, 300, 3, Effort())
    assert (found.hands, found.deals.shape) == (300, (100, 3))
    assert sum(figure.mean_chips for figure in found.figures) == pytest.approx(0)
    for place, figure in enumerate(found.figures):
        low, high = figure.ci95_chips
        assert low < figure.mean_chips < high and figure.mean_chips == pytest.approx(found.deals[:, place].mean())
    again = match_of_seats([players[1], players[2], players[0]], 300, 3, Effort())
    assert again.figures[0].mean_chips != again.figures[2].mean_chips
    refused("at least 300 are needed", match_of_seats, players, 200, 3, Effort())


def test_invalid_matches_of_three_are_refused():
    refused("has 3 players, and 2 were given", SeatMatch, [contender(), program("random")])
    refused("are programs", SeatMatch, [program("random")] * 3)
    refused("is for two players", Match, [contender(), program("random")])
    other = contender(rake="5%")
    refused("the rake is", SeatMatch, [contender(), program("random"), other])


# --- an exported policy ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory, slot_abstractions, tables_read_once):
    game = HoldemGame(seats=3, stack=2_000, menu=MENU, flop_players=2)
    return write_random(tmp_path_factory.mktemp("three") / "policy", game, slot_abstractions[1])


def test_a_match_of_three_needs_a_name_for_each_seat(folder, capsys, tmp_path):
    found = answer(capsys, "match", folder, "always-call", folder, "--hands", 300, "--seed", 1)
    assert [player["name"] for player in found["players"]] == [str(folder), "always-call", str(folder)]
    assert (found["hands"], found["deals"]) == (300, 100)
    assert sum(player["mean_chips"] for player in found["players"]) == pytest.approx(0)
    again = mccfr.match(folder, ["always-call", folder], 300, seed=1)
    assert again.mean_chips == found["mean_chips"] == found["players"][0]["mean_chips"] and again.hands == 300
    status, out, _ = call(capsys, "match", folder, "always-call", "random", "--hands", 300)
    assert status == 0 and out.count("mbb/g (95 %") == 3 and "100 deals in every rotation" in out
    assert "has 3 players, and 2 were given" in refusal(capsys, "match", folder, "random")
    assert "a tournament has matches of two players" in refusal(capsys, "rank", folder, "random")
    assert "of two players only" in refusal(capsys, "match", folder, folder, folder, "--log", tmp_path / "x.stars.txt")


def test_the_hands_of_three_are_read_by_pokerkit(folder, capsys, tmp_path):
    """PokerKit's chips of each player equal those of the match."""
    log = tmp_path / "hands.phhs"
    found = answer(capsys, "match", folder, "random", "odd-size", "--hands", 300, "--seed", 1, "--log", log)
    won = dict.fromkeys(("policy", "random", "odd-size"), 0.0)
    for hand, state in histories(log):
        for name, before, after in zip(hand.players, hand.starting_stacks, state.stacks, strict=True):
            won[name] += float(after) - float(before)
    assert [mean / 300 for mean in won.values()] == pytest.approx([one["mean_chips"] for one in found["players"]])


def test_a_policy_of_three_plays_at_the_dealer(folder, capsys, tmp_path):
    of = ("dealer", "--hands", 30, "--duplicate", "--with", "random", "--with", folder, "--with", "odd-size")
    found = answer(capsys, *of, "--log", tmp_path / "log")
    assert [player["name"] for player in found["players"]] == ["random", "policy", "odd-size"]
    assert sum(player["chips"] for player in found["players"]) == 0 and found["pairs"] == 10
    assert (tmp_path / "log").read_text().splitlines()[-1].startswith("SCORE:")
    assert "of two players only" in refusal(capsys, *of, "--phhs", tmp_path / "x.stars.txt")
    assert call(capsys, *of, "--phhs", tmp_path / "x.phhs").status == 0
    assert sum(len(hand.players) for hand, _ in histories(tmp_path / "x.phhs")) == 90
    assert "is for 3 players" in refusal(capsys, "dealer", "--players", 4, "--with", folder)


def test_each_command_resolves_hands_of_three(folder, capsys, monkeypatch):
    """`match`, `dealer`, `play` and `bot json` re-solve the river once two players are left."""
    seen, name = solved_again(monkeypatch), f"{folder} --resolve river:unsafe:2"
    found = answer(capsys, "match", name, "always-call", "always-fold", "--hands", 300, "--seed", 1)
    assert sum(player["mean_chips"] for player in found["players"]) == pytest.approx(0) and len(seen) > 20
    found = answer(capsys, "dealer", "--hands", 30, "--with", name, "--with", "always-call", "--with", "always-fold")
    assert sum(player["chips"] for player in found["players"]) == 0 and {left for left, _ in seen} == {2}
    asked = ("dealer", "--hands", 30, "--with", "always-call", "--with", name, "--with", "always-fold")
    assert answer(capsys, *asked)["hands"] == 30
    assert "that does not re-solve" in refusal(capsys, *asked, "--purify")
    monkeypatch.setattr("mccfr.cli.bot_commands._read_line", lambda _: "c")
    status, out, _ = call(capsys, "play", folder, "--hands", 3, "--seed", 2, "--resolve", "river:unsafe:2")
    assert status == 0 and "re-solves its hands, once two players are left whose actions its tree has" in out
    request = '{"position": 1, "hand": "AhKd", "line": "b350fc/cc/cc/", "board": "Qs7h2d3c9s"}'
    (found,) = answer_lines(str(folder), PlayManner(resolve=settings_of("river:unsafe:2")), 1, [request])
    assert found["action"][0] in "cb" and seen[-1][1] == "r350fc/cc/cc/"


def test_a_person_plays_at_a_table_of_three(folder, capsys, monkeypatch, tmp_path):
    answers = iter(["f", "c", "r 50%", "a", *["c"] * 200])
    shown = []
    source = contender()
    hands = list(play_person(source.spec, source.spec.game, 12, 5, lambda _: next(answers), shown.append))
    assert [hand.position for hand in hands] == [0, 2, 1] * 4 and all(len(hand.hands) == 3 for hand in hands)
    text = "\n".join(shown)
    for words in ("you are SB (small blind)", "you are BTN (button)", "  BB ", "  BTN ", "shows"):
        assert words in text
    assert "The policy" not in text
    monkeypatch.setattr("mccfr.cli.bot_commands._read_line", lambda _: "f")
    status, out, _ = call(capsys, "play", folder, "--hands", 3, "--seed", 2, "--log", tmp_path / "x.phhs")
    assert [hand.players.index("you") for hand, _ in histories(tmp_path / "x.phhs")] == [0, 2, 1]
    assert out.count("You neither win nor lose chips.") == 1  # a fold on the button
    assert status == 0 and "You played" in out and " against SB " in out


def test_json_lines_of_three(folder):
    lines = [
        '{"position": 2, "hand": "AhKd"}',
        '{"position": 1, "hand": "AhKd", "line": "b350f"}',
        '{"position": 1, "hand": "AhKd", "line": "b350cc/c", "board": "Qs7h2d", "stacks": [1500, 2000, 900]}',
        '{"position": 0, "hand": "AhKd", "line": "b350cc/", "board": "Qs7h2d", "number": 4}',
        '{"position": 3, "hand": "AhKd"}',
        '{"position": 1, "hand": "AhKd", "stacks": [2000, 2000]}',
    ]
    first, second, third, fourth, wrong, few = answer_lines(str(folder), AS_WRITTEN, 1, lines)
    assert first["action"] in ("f", "b350") and second["action"][0] in "fcb"
    assert third["action"] == "c" or third["action"][0] == "b"
    assert fourth == {"action": "c"}  # the small blind's call is not in the tree: it checks
    assert "from 0 to 2" in wrong["error"] and "3 amounts" in few["error"]
    betting = real_betting(contender().spec.game)
    assert betting.players == 3 and json.dumps(first)
