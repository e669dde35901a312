"""Bots whose server closes, resets or stalls the connection in the middle of a hand.

Shows:

* A bot that is disconnected within a hand connects again and finishes it
  (test_a_bot_connects_again_and_finishes_the_hand)
* A bot whose server is gone ends with status 1 and names the hand
  (test_a_bot_without_a_server_names_the_unfinished_hand,
  test_an_unfinished_hand_over_http_is_named)
"""

import socket
import struct
import threading
import time
from contextlib import contextmanager

import pytest
from acpc import visit
from commands import call
from slumbot_double import http_server

from mccfr.matches.dealer_connections import listening

TO_ACT, OVER = b"MATCHSTATE:1:7::|AsKd\r\n", b"MATCHSTATE:1:7:f:|AsKd\r\n"
"""Hand 7 before the bot acts, and after it has folded."""


def closed(connection):
    """Do nothing: the caller closes the connection."""


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_a_line(connection):
    connection.sendall(OVER[:12])
    time.sleep(1)


def finished(connection):
    connection.sendall(OVER)


@contextmanager
def server(*ends):
    """Yield the port of a server that deals hand 7 on each connection, and ends each by its function."""
    with listening("127.0.0.1", 0) as listener:

        def deal():
            for end in ends:
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as lines:
                    assert lines.readline().startswith(b"VERSION")
                    connection.sendall(TO_ACT)
                    assert lines.readline().startswith(TO_ACT.strip() + b":f")
                    end(connection)
            listener.close()

        thread = threading.Thread(target=deal)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("end", [closed, reset])
def test_a_bot_connects_again_and_finishes_the_hand(end):
    seen = []
    with server(end, end, finished) as port:
        visit(port, seen.append, "always-fold", patience=5, silence=5)
    assert [(hand.number, hand.betting, hand.chips) for hand in seen] == [(7, "f", (50.0, -50.0))]


@pytest.mark.parametrize("end", [closed, reset, half_a_line])
def test_a_bot_without_a_server_names_the_unfinished_hand(end, capsys):
    with server(end) as port:
        asked = "bot", "acpc", "always-fold", "127.0.0.1", port, "--patience", "0.3s", "--silence", "0.5s"
        status, out, err = call(capsys, *asked)
    assert status == 1 and not out and "hand 7 was not finished" in err.splitlines()[-1], err


class FailingServer:
    """Slumbot's interface: deals a hand, then closes the connection, stalls or answers with an error."""

    def __init__(self, status):
        self.status = status

    def handle(self, where, *_):
        """Return (status, answer); status None closes the connection."""
        hand = {"token": "t", "client_pos": 1, "hole_cards": ["As", "Kd"], "action": "", "board": []}
        if where != "new_hand" and self.status == 408:
            time.sleep(1)
        return (200, hand) if where == "new_hand" else (self.status, {})


@pytest.mark.parametrize("status", [None, 408, 500])
def test_an_unfinished_hand_over_http_is_named(capsys, status):
    with http_server(FailingServer(status)) as url:
        asked = "bot", "slumbot", "always-fold", "--url", url, "--hands", 2, "--silence", "0.5s"
        ended = call(capsys, *asked)
    assert ended.status == 1 and not ended.out and "hand 0 was not finished" in ended.err, ended
