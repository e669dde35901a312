"""Connections to a dealer's port: handshake of players, refused clients, returning players."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from acpc import cut, dealing, plan, scripted, session, visit
from refusals import refused
from sessions import wait_for

from mccfr.matches.acpc import TableError
from mccfr.matches.acpc_bot import play_acpc
from mccfr.matches.dealer import Clock
from mccfr.matches.dealer_connections import MOST_VISITORS, DealerPort, listening
from mccfr.matches.programs import PROGRAMS
from mccfr.matches.socket_lines import FirstMessages, Lines

CALLER = PROGRAMS["always-call"]
VERSION = b"VERSION:2.0.0\r\n"


def connected(port, data=b"", address="127.0.0.1"):
    """Connect from `address`, send `data`, and return the connection."""
    found = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(address, 0))
    with suppress(ConnectionError):  # the dealer may close the connection meanwhile
        found.sendall(data)
    return found


def ended(connection):
    """Return True if the other side closes the connection."""
    with connection, suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


INVALID_CLIENTS = {
    "a browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a scan": b"",
    "a flood": b"x" * 5_000_000,
    "many lines": b"hello\r\n" * 500_000,
    "bytes": bytes(range(256)) * 4 + b"\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n",
    "another version": b"VERSION:1.0.0\r\n",
    "nothing first": b"\r\n" + VERSION,
}


def test_clients_without_a_valid_handshake_are_disconnected_and_the_match_waits():
    of = plan(hands=2)
    with dealing(of, [scripted(CALLER, of)], ports=[0], wait=60) as (port, came, said):
        for name, data in INVALID_CLIENTS.items():
            connection = connected(port, data)
            if name == "a scan":
                connection.close()
            else:
                assert ended(connection), name
        visit(port)
    assert "error" not in came and came["score"][0].hands == 2
    assert sum("its connection is closed" in text for text in said) == len(INVALID_CLIENTS)
    assert all(text.isprintable() and len(text) < 300 for text in said)


def test_silent_connections_do_not_delay_a_match():
    """Neither before the match nor while the dealer waits for a disconnected player."""
    of, one = plan(hands=4), session("policy")
    with dealing(of, [scripted(CALLER, of)], ports=[0], wait=60) as (port, came, _):
        silent = [connected(port, data) for data in (b"", b"VERSION:2", b"")]
        cut(one, port)
        silent += [connected(port, data) for data in (b"", b"VERSION:2")]
        play_acpc(one, "127.0.0.1", port, patience=10, silence=30)
    assert "error" not in came and came["score"][0].hands == 4
    assert all(map(ended, silent))


@contextmanager
def dealer_port(greeting=20.0):
    shown = []
    found = DealerPort(listening("127.0.0.1", 0), shown.append, greeting)
    try:
        yield found, int(found.where.rpartition(":")[2]), shown
    finally:
        found.close()


def test_each_client_has_its_own_time_limit_for_the_handshake():
    with dealer_port(greeting=0.1) as (at, port, shown):
        late = [connected(port), connected(port, b"VERS")]
        refused("no client has connected in time", at.wait, 0.3, lambda *_: True, error=TimeoutError)
        assert all(map(ended, late)) and at.visitors() == []
        assert [text.partition(" has not sent VERSION:2.0.0 within 0.1 s")[1] != "" for text in shown] == [True, True]


def test_the_number_of_waiting_connections_is_limited():
    """New connections replace the oldest silent ones, but no client that has sent its handshake."""
    with dealer_port() as (at, port, shown), connected(port, VERSION):
        greeted = []
        with suppress(TimeoutError):
            at.wait(0.05, lambda visitor, _: greeted.append(visitor))
        crowd = [connected(port) for _ in range(2 * MOST_VISITORS)]
        assert len(at.visitors()) == MOST_VISITORS and greeted[0] in at.visitors()
        assert sum("makes room" in text for text in shown) == MOST_VISITORS + 1
        with connected(port, VERSION) as player:
            visitor, text = at.wait(20, lambda *_: True)
            assert (visitor.port, text) == (player.getsockname()[1], "")
            visitor.lines.close()
        for each in crowd:
            each.close()


def test_a_flood_of_lines_ends_after_the_response_time():
    """Send comments and wrong lines while the dealer reads: time and messages are bounded."""
    of = plan(hands=2)
    for data in (b"# hello\r\n", b"nonsense\r\n", b"\n", b"nonsense" + 4_000 * b"x" + b"\r\n"):
        clock = Clock(response=0.3)
        with dealing(of, [scripted(CALLER, of)], ports=[0], clock=clock) as (port, came, said):
            connection = connected(port, VERSION)
            began = time.monotonic()
            with connection, suppress(OSError):
                while time.monotonic() - began < 20:
                    connection.sendall(data * (100_000 // len(data)))
        assert time.monotonic() - began < 2 and "has not answered for 0.3 s" in str(came["error"])
        assert sum(map(len, said)) < 30_000


def test_the_timeout_also_applies_to_buffered_lines():
    now = [0.0]
    with socket.create_server(("127.0.0.1", 0)) as server, connected(server.getsockname()[1], b"a\nb\nc\n"):
        connection, _ = server.accept()
        lines = Lines(connection, lambda: now[0])
        assert lines.read(1) == b"a\n" and lines.waiting
        with pytest.raises(TimeoutError):
            lines.read(0)
        now[0] = 7.0
        assert lines.read(1) == b"b\n"
        lines.close()


def test_only_the_first_messages_are_shown():
    shown = []
    few = FirstMessages(shown.append, 3)
    for number in range(100):
        few(str(number))
    assert shown == ["0", "1", "2", "further messages of this kind are not shown"]


# --- lost connections ---


class CallingClient:
    """A client that calls, written with plain sockets."""

    def __init__(self, port, address="127.0.0.1"):
        self.connection = connected(port, VERSION, address)
        self.lines = self.connection.makefile("rb")

    def next_state(self):
        """Return the next state in which this player acts first in a hand."""
        for line in self.lines:
            text = line.strip().decode()
            _, position, _, betting, _ = text.split(":")
            if position == "1" and betting == "":
                return text
        raise EOFError

    def call(self):
        self.connection.sendall(f"{self.next_state()}:c\r\n".encode())

    def cut(self):
        self.lines.close()
        self.connection.close()


def test_only_the_players_address_gets_its_seat_back():
    """The dealer disconnects clients from other addresses that connect earlier with a valid handshake."""
    of, one = plan(hands=4), session("policy")
    with dealing(of, [scripted(CALLER, of)], ports=[0]) as (port, came, said):
        cut(one, port)
        strangers = [connected(port, VERSION, "127.0.0.2") for _ in range(3)]
        assert all(map(ended, strangers))
        play_acpc(one, "127.0.0.1", port, patience=10, silence=30)
    assert "error" not in came and came["score"][0].hands == 4
    assert sum("is not Bob, whose address is 127.0.0.1" in text for text in said) == 3


def test_of_several_reconnecting_clients_the_one_that_acts_gets_the_seat():
    of, one = plan(hands=4), session("policy")
    with dealing(of, [scripted(CALLER, of)], ports=[0]) as (port, came, _):
        cut(one, port)
        idle = [connected(port, VERSION), connected(port, VERSION + b"nonsense\r\n# hello\r\n")]
        play_acpc(one, "127.0.0.1", port, patience=10, silence=30)
        assert all(map(ended, idle))
    assert "error" not in came and came["score"][0].hands == 4


def test_a_client_at_a_full_table_is_refused_at_once():
    """If the client waited, it would get the seat of a player who loses the connection."""
    of = plan(hands=8)
    with dealing(of, [scripted(CALLER, of)], ports=[0]) as (port, came, said):
        sitting = CallingClient(port)
        first = sitting.next_state()
        waiting = connected(port, VERSION)
        sitting.connection.sendall(f"{first}:c\r\n".encode())
        assert ended(waiting)
        sitting.cut()
        visit(port)
    assert "error" not in came and any("finds no free seat" in text for text in said)


def ports(messages):
    return [int(text.rpartition(":")[2]) for text in messages if text.startswith("waiting for")]


def close_all(messages, players):
    """Wait until all players have connected, then close their connections."""
    wait_for(lambda: sum("has connected" in text for text in messages) >= len(players), 20)
    for each in players:
        each.close()


def play(port, name="always-call", *, one=None):
    """Start a player in a thread; return the thread."""

    def run():
        with suppress(TableError, ConnectionError):
            play_acpc(one or session(name), "127.0.0.1", port, patience=1, silence=30)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_players_with_separate_ports_may_both_lose_their_connection():
    of, seen = plan(hands=6), [[], []]
    players = [session("policy", which, seen[which].append) for which in range(2)]
    with dealing(of, ports=[0, 0]) as (_, came, said):
        close_all(said, [connected(port, VERSION) for port in ports(said)])
        for thread in [play(port, one=one) for one, port in zip(players, ports(said), strict=True)]:
            thread.join()
    assert came["score"][0].hands == 6 and [len(each) for each in seen] == [6, 6]
    assert came["score"][0].chips == sum(hand.chips[hand.position] for hand in seen[0])


def test_a_match_ends_if_disconnected_players_cannot_be_distinguished():
    """End a match of two clients from one address and port, whose seats could be exchanged."""
    with dealing(plan(hands=6), ports=[0]) as (port, came, said):
        close_all(said, [connected(port, VERSION), connected(port, VERSION)])
        play(port).join()
    assert " and a client from there may be either: give each player a port of its own" in str(came["error"])


def test_a_client_that_leaves_before_the_match_loses_its_seat():
    """The dealer gives the seat of a client that leaves to the next one; the second seat stays."""
    with dealing(plan(hands=2), ports=[0]) as (port, came, said):
        connected(port, VERSION).close()
        for thread in [play(port), play(port)]:
            thread.join()
    assert "error" not in came and came["score"][0].hands == 2
    came = [text.partition(" has connected")[0] for text in said if "has connected" in text]
    assert came[:2] in (["Ada", "Ada"], ["Ada", "Bob"])
