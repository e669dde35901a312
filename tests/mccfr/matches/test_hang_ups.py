"""Servers that hang up in the middle of a hand: the connection is closed, reset, or silent after half a line.

Shows:

* A bot whose connection is closed or reset within a hand connects again and finishes the hand
  (test_a_bot_connects_again_and_finishes_the_hand)
* A bot that loses its server within a hand ends with status 1, and names the hand
  (test_a_bot_without_a_server_names_the_hand_that_was_not_finished,
  test_a_hand_over_http_that_was_not_finished_is_named)
"""

import socket
import struct
import threading
import time
from contextlib import contextmanager

import pytest
from acpc import visit
from commands import call
from slumbot_double import served

from mccfr.matches.dealer_connections import listening

ASKED, OVER = b"MATCHSTATE:1:7::|AsKd\r\n", b"MATCHSTATE:1:7:f:|AsKd\r\n"
"""Hand 7 before the bot acts, and after it has folded."""


def closed(connection):
    """The connection is closed."""


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_a_line(connection):
    connection.sendall(OVER[:12])
    time.sleep(1)


def finished(connection):
    connection.sendall(OVER)


@contextmanager
def server(*ends):
    """Yield the port of a server that deals hand 7 on each connection, and ends each in its way."""
    with listening("127.0.0.1", 0) as listener:

        def deal():
            for end in ends:
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as lines:
                    assert lines.readline().startswith(b"VERSION")
                    connection.sendall(ASKED)
                    assert lines.readline().startswith(ASKED.strip() + b":f")
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
def test_a_bot_without_a_server_names_the_hand_that_was_not_finished(end, capsys):
    with server(end) as port:
        asked = "bot", "acpc", "always-fold", "127.0.0.1", port, "--patience", "0.3s", "--silence", "0.5s"
        status, out, err = call(capsys, *asked)
    assert status == 1 and not out and "hand 7 was not finished" in err.splitlines()[-1], err


class Leaving:
    """A server with Slumbot's interface that deals a hand and is gone, or silent, or out of order."""

    def __init__(self, status):
        self.status = status

    def handle(self, where, *_):
        """As `slumbot_double.Double`; no status: it hangs up."""
        dealt = {"token": "t", "client_pos": 1, "hole_cards": ["As", "Kd"], "action": "", "board": []}
        if where != "new_hand" and self.status == 408:
            time.sleep(1)
        return (200, dealt) if where == "new_hand" else (self.status, {})


@pytest.mark.parametrize("status", [None, 408, 500])
def test_a_hand_over_http_that_was_not_finished_is_named(capsys, status):
    with served(Leaving(status)) as url:
        asked = "bot", "slumbot", "always-fold", "--url", url, "--hands", 2, "--silence", "0.5s"
        ended = call(capsys, *asked)
    assert ended.status == 1 and not ended.out and "hand 0 was not finished" in ended.err, ended
