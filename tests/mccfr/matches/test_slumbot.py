"""Hands at a test server of Slumbot's interface: legal actions, tokens, invalid answers."""

import socket
import threading

import pytest
from acpc import player, rules
from refusals import refusals, refused
from slumbot_double import Double, http_server

from mccfr.config.game_tables import HoldemGame
from mccfr.matches.acpc import TableError
from mccfr.matches.json_http import http_post
from mccfr.matches.json_server_hand import check_game
from mccfr.matches.slumbot import SlumbotSession

PROGRAMS = ["always-call", "min-raise", "odd-size", "always-all-in", "random", "policy"]


def play(name, hands, post=None, seed=3):
    """Play hands at the test server: it refuses no action, and both sides compute the same chips."""
    double = Double(player(name, 2), seed)
    session = SlumbotSession(player("policy"), rules(), post or double.post)
    found = [session.play_hand(number) for number in range(hands)]
    assert not double.refused
    assert all(hand.chips is not None and all(hand.holes) for hand in found)
    return found, double


@pytest.mark.parametrize("name", PROGRAMS)
def test_hands_are_legal_and_both_sides_agree(name):
    found, double = play(name, 20)
    assert len({hand.betting for hand in found}) > 3 and double.tokens > 5
    assert {hand.position for hand in found} == {0, 1}


def test_hands_are_played_over_http_after_a_login():
    double = Double(player("random", 2), 5)
    with http_server(double) as url:
        post = http_post(url, 20)
        session = SlumbotSession(player("policy"), rules(), post)
        session.login("ada", "secret")
        assert [session.play_hand(number).number for number in range(3)] == [0, 1, 2]
        assert not double.refused
        with pytest.raises(TableError, match=r"new_hand answers with HTTP status 400: 'the token is not the newest'"):
            post("new_hand", {"token": "an old one"})


GOOD = {"action": "b200", "client_pos": 0, "hole_cards": ["As", "Kd"], "board": [], "token": "t"}
SHOWN = {**GOOD, "action": "b200c/kk/kk/kk", "board": ["2c", "3d", "7h", "9s", "Jc"], "bot_hole_cards": ["4c", "5h"]}


test_impossible_answers_are_refused = refusals(
    ("is no JSON object", []),
    (r"refuses /new_hand: 'go away\x1b'", {"error_msg": "go away\x1b"}),
    ("token after /new_hand is '5'", {**GOOD, "token": 5}),
    ("client_pos is 'True'", {**GOOD, "client_pos": True}),
    ("hole_cards is", {**GOOD, "hole_cards": ["As"]}),
    ("hole_cards is", {**GOOD, "hole_cards": ["As", "as"]}),
    ("a card twice", {**GOOD, "hole_cards": ["As", "As"]}),
    ("board is", {**GOOD, "board": ["2c", "3d"]}),
    ("is not that of", {**GOOD, "board": ["2c", "3d", "As"]}),
    ("not written with k, c, f, bN", {**GOOD, "action": "b200x"}),
    ("not written with k, c, f, bN", {**GOOD, "action": 7}),
    ("a raise must be to 200", {**GOOD, "action": "b50"}),
    ("to 20000 chips in the hand", {**GOOD, "action": "b30000"}),
    ("k cannot be in the action", {**GOOD, "action": "k"}),
    ("do not end where they should", {**GOOD, "action": "b200ck", "board": ["2c", "3d", "7h"]}),
    ("no player is to act", {**GOOD, "action": ""}),
    ("no player is to act", {**GOOD, "action": "f"}),
    ("where the hand is not over", {**GOOD, "winnings": 100}),
    ("no number", {**GOOD, "action": "f", "winnings": "x"}),
    ("no number of chips that can be won", {**GOOD, "action": "f", "winnings": 10**400}),
    ("no number of chips that can be won", {**SHOWN, "board": [], "action": "b20000c", "winnings": float("nan")}),
    ("says 100 chips were won, and they are 50", {**GOOD, "action": "f", "winnings": 100}),
    ("says -200 chips were won, and they are 200", {**SHOWN, "winnings": -200}),
    call=lambda answer: SlumbotSession(player("policy"), rules(), lambda where, body: answer).play_hand(0),
    error=TableError,
)


def test_unreachable_servers_and_unsuitable_policies_are_refused():
    refused("an address such as https://HOST/api", http_post, "ftp://somewhere", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(TableError, match=r"has not answered /new_hand within 0.2 s"):
            http_post(f"http://127.0.0.1:{port}", 0.2)("new_hand", {})
    refused("cannot be reached for", http_post(f"http://127.0.0.1:{port}", 1), "new_hand", {}, error=TableError)
    with pytest.raises(ValueError, match=r"stacks of 20000, blinds 50/100, and P is for stacks of 10000"):
        check_game(HoldemGame(stack=10_000.0), "P")


def test_answers_that_are_no_json_are_refused():
    def serve(listener, data):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(data)

    for data, said in (
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "is no JSON object"),
        (b"nonsense\x1b[2J\r\n\r\n", r"cannot be reached for /new_hand: 'nonsense\\x1b"),
        (b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\n[]", "HTTP status 500"),
    ):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=serve, args=(listener, data))
            thread.start()
            post = http_post(f"http://127.0.0.1:{listener.getsockname()[1]}/", 20)
            refused(said, SlumbotSession(player("policy"), rules(), post).play_hand, 0, error=TableError)
            thread.join()
