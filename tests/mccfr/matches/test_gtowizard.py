"""Hands at a test server of the GTO Wizard researcher interface: legality, load, broken connections.

Shows:

* Through all failures of a GTO Wizard test server, bots play legal hands with PokerKit's chips
  (test_hands_are_legal_through_every_failure)
"""

import re
import threading

import pytest
from acpc import player, rules
from gtowizard_double import GAME, Wizard
from refusals import refusals, refused
from slumbot_double import http_server

from mccfr.matches import gtowizard
from mccfr.matches.acpc import TableError
from mccfr.matches.json_http import http_post

SECRET = {"X-API-KEY": "k3y"}


def programs(number):
    return player(("min-raise", "odd-size", "always-all-in", "random", "policy")[number % 5], number)


def wizard_server(url, wait=lambda _: None):
    return gtowizard.WizardServer(http_post(url, 60, SECRET), wait=wait)


def play(hands, faults, seed):
    """Play hands over HTTP; the total chips of known results are ten times the server's AIVAT."""
    double = Wizard(programs, seed, faults)
    players = [player("policy", 1) for _ in range(gtowizard.AT_ONCE)]
    with http_server(double) as url:
        server = wizard_server(url)
        found = list(gtowizard.play_wizard_hands(players, rules(), server, hands))
        most = double.busiest
        left = gtowizard.finish_open(players[0], rules(), server)
    seen = [one for one in found if not isinstance(one, gtowizard.UnknownResultError)]
    assert not double.refused and not double.open() and len(found) == hands
    assert 1 < most <= gtowizard.AT_ONCE + left
    won = [one.hand.chips[one.hand.position] for one in seen]
    chips, own_count = sum(won), [chips for chips, one in zip(won, seen, strict=True) if chips and chips == one.aivat]
    assert chips - sum(own_count) == pytest.approx(10 * (sum(one.aivat for one in seen) - sum(own_count)))
    assert max(own_count, default=-1) < 0
    assert {one.hand.position for one in seen} == {0, 1}
    return double, len(found) - len(seen), left, chips


def test_hands_are_legal_through_every_failure():
    """Some of the 60 hands end without a known result, or are dealt without an answer."""
    double, unseen, left, _ = play(60, 0.02, 3)
    assert double.failed and len(double.hands) >= 60 + left
    assert unseen + left < 30
    assert play(20, 0.0, 4)[1:3] == (0, 0)


def test_an_action_that_the_server_has_received_is_not_sent_again():
    """The connection breaks after every action, and the server receives each action once."""
    double, received = Wizard(lambda _: player("always-call"), 1), []
    handle = double.handle

    def drop_answer(where, body, headers):
        answer = handle(where, body, headers)
        if where.endswith("/act"):
            received.append(where)
            return None, None
        return answer

    double.handle = drop_answer
    with http_server(double) as url:
        server = wizard_server(url)
        found = list(gtowizard.play_wizard_hands([player("min-raise")], rules(), server, 6))
    assert not double.refused and len(received) > 20
    unseen = [one for one in found if isinstance(one, gtowizard.UnknownResultError)]
    assert len(found) == 6 and unseen and all(re.match(r"hand \d+ of the server has ended", str(one)) for one in unseen)
    assert all(one.hand.betting.endswith("f") for one in found if one not in unseen)


def test_open_hands_are_played_to_their_end():
    double = Wizard(programs, 5)
    with http_server(double) as url:
        server = wizard_server(url)
        opened = [server.new_hand() for _ in range(4)]
        assert len(server.open_hands()) == len([one for one in opened if one.seen.won is None])
        assert gtowizard.finish_open(player("policy"), rules(), server) > 0 and double.open() == []


def test_retry_waits_double_up_to_15_seconds_and_end_after_20_tries():
    waits = []
    with http_server(Wizard(programs, faults=1.0)) as url:
        refused("HTTP status 503: 'busy', 20 times", wizard_server(url, waits.append).new_hand, error=TableError)
    assert len(waits) == 19 and all(1 <= wait <= 2 for wait in waits[:1]) and 7.5 <= min(waits[3:]) <= max(waits) <= 15
    tries = []
    with http_server(Wizard(programs, most=0)) as url:
        refused("409: 'Cannot start", wizard_server(url, tries.append).new_hand, error=TableError)
    assert len(tries) == 19


def test_a_wrong_key_is_not_tried_again():
    with http_server(Wizard(programs, key="other")) as url:
        refused("401: 'Invalid API key': give a --key-file", wizard_server(url, pytest.fail).new_hand, error=TableError)


def test_one_player_computes_at_a_time_and_an_error_ends_the_match(monkeypatch):
    inside, most = [], []

    class Fragile(type(player("policy"))):
        def choose(self, seed=None):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.001)
            inside.pop()
            return super().choose(seed)

    source = player("policy").policy
    players = [Fragile(source) for _ in range(gtowizard.AT_ONCE)]
    with http_server(Wizard(programs, 7)) as url:
        list(gtowizard.play_wizard_hands(players, rules(), wizard_server(url), 10))
        assert max(most) == 1
        monkeypatch.setattr(gtowizard, "read_wizard_hand", lambda _: 1 / 0)
        hands = gtowizard.play_wizard_hands(players, rules(), wizard_server(url), 10)
        refused("division", next, hands, error=ZeroDivisionError)


def hand(**changed):
    """Return a hand as the server's JSON, with some fields changed."""
    double = Wizard(programs, 1)
    double.hands[1] = None
    _, answer = double.handle("hands", {"game_name": "HUNL 200BB"}, SECRET)
    state = answer["game_state"] | {"is_hand_over": False, "action_history": ["b300"]}
    return {
        **answer,
        "game_state": {**state, **{k: v for k, v in changed.items() if k in state}},
        **{k: v for k, v in changed.items() if k not in state},
    }


test_invalid_hands_are_refused = refusals(
    ("holds no hand", []),
    ("holds no hand", {"hand_id": 1}),
    ("holds no hand", hand(hand_id="1")),
    ("holds no hand", hand(players=None)),
    ("are not one and GTO Wizard", hand(players=[])),
    ("not with stacks of 200 big blinds", hand(game={**GAME, "starting_stack": 10_000})),
    ("not with stacks of 200 big blinds", hand(game={**GAME, "stack_reset_per_hand": False})),
    ("and not 0 or 3 or 4 or 5 cards", hand(board_cards="2c3d")),
    ("are not k, c, f, bN and _", hand(action_history=["b300", "x"])),
    ("winnings are missing", hand(is_hand_over=True)),
    ("aivat_score is", hand(is_hand_over=True, winnings=1, aivat_score="x")),
    call=gtowizard.read_wizard_hand,
    error=TableError,
)


def test_key_files_are_checked_and_access_by_others_is_reported(tmp_path):
    key, shown = tmp_path / "key", []
    refused("No such file", gtowizard.read_key, key, shown.append)
    for wrong in ("", "two words", "x" * 2000, "ß"):
        key.write_text(wrong)
        refused("holds no key", gtowizard.read_key, key, shown.append)
    key.write_text("k3y\n")
    key.chmod(0o600)
    assert gtowizard.read_key(key, shown.append) == "k3y" and not shown
    key.chmod(0o640)
    assert gtowizard.read_key(key, shown.append) == "k3y" and "chmod 600" in shown[0]
    refused("the key would be sent unencrypted", http_post, "http://example.org", 1, SECRET)
