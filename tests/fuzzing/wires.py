"""Fuzzed network input: HTTP requests, ACPC messages, and answers of two poker servers."""

import io
import json
import socket
from copy import deepcopy
from functools import cache
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

from acpc import plan, rules
from gtowizard_double import Wizard
from random_policy import policy
from slumbot_double import Double
from strategies import partly_reached_strategy

from abstraction.cards import card_text
from fuzzing import Format, damaged
from fuzzing.lines import real_line, tree_line
from mccfr.config.game_tables import LeducGame
from mccfr.games.registry import build_game
from mccfr.matches.acpc import VERSION, TableError
from mccfr.matches.acpc_session import AcpcSession
from mccfr.matches.bot_sessions import _betting
from mccfr.matches.dealer import Clock, LocalSeat, MatchDealer
from mccfr.matches.dealer_connections import DealerPort, listening
from mccfr.matches.dealer_seat import RemoteSeat, seat_all
from mccfr.matches.gtowizard import WizardServer, play_wizard_hands
from mccfr.matches.json_http import read_body
from mccfr.matches.programs import PROGRAMS
from mccfr.matches.slumbot import SlumbotSession
from mccfr.matches.socket_lines import Lines
from mccfr.policy.strategy_profile import Profile
from mccfr.trees.street_amounts import street_line, tree_start
from mccfr.view import Spots, StrategyList
from mccfr.view.application import _GET, _POST
from mccfr.view.server import ViewServer, _Channel

_NAMES = ("line", "board", "of", "boards", "hand", "seed", "iterations", "action", "resolve", "method", "x")
_NASTY = ("", "0", "-1", "1", "2", "9" * 30, "9" * 400, "%ff", "%00", "\0", "\u0663", "1e3", "river", "unsafe", "null")
_NUMBERS = (None, True, 0, -1, 7, 10**30, 10**400, 1.5, float("nan"))
_ANYTHING = (*_NUMBERS, "", "x", "\0", "\ud800", [], [1], {}, "b" * 5_000)
_PIECES = (*b"% & = HTTP/1.1 HTTP/2".split(), b"\r\n", b"GET ", b"Host: x\r\n", b"Transfer-Encoding: chunked\r\n")
_SLUMBOT = (b"[", b"{", b"null", b'"token"', b"\n", b"b300", b"k/")
_WIZARD = (b"[", b"{", b"null", b'"b900"', b"\n", b"_", b"true")
_ORIGINS = "Origin: http://127.0.0.1:1", "Origin: null", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"
_OTHERS = "Expect: 100-continue", "Content-Length: 2", "Connection: close", "Transfer-Encoding: chunked"
_HEADERS = (*_ORIGINS, *_OTHERS, "X: " + "y" * 70_000)


class _Wire:
    """A connection that delivers given bytes and then ends; `sent` collects the bytes sent to it."""

    def __init__(self, data):
        self._left, self.sent = data, bytearray()

    def recv_into(self, room):
        data = self.recv(len(room))
        room[: len(data)] = data
        return len(data)

    def recv(self, most):
        data, self._left = self._left[:most], self._left[most:]
        return data

    def makefile(self, *_):
        return io.BytesIO()

    def sendall(self, data):
        self.sent += data

    def send(self, data):
        self.sent += data
        return len(data)

    def fileno(self):
        return -1

    def getsockopt(self, *_):
        return 1 << 16  # size of the send buffer in bytes

    def _nothing(self, *_):
        """Do nothing."""

    settimeout = setblocking = setsockopt = shutdown = close = _nothing


# --- requests ---


@cache
def _leduc():
    return build_game(LeducGame(ranks=4), Path())


@cache
def _server(name):
    """Return a page server that has stopped to listen; its application answers requests from a `_Wire`."""
    source = policy() if name == b"holdem" else Profile(_leduc(), partly_reached_strategy(_leduc()))
    strategies = StrategyList([("one", lambda: Spots(source, "one"))])
    strategies.shown(0).solving._stage = lambda *_: {}  # no solving, which would take seconds and outlive the test
    with patch("mccfr.view.server.THREADS", 1), ViewServer(strategies, 0) as server:
        server.application.names = "127.0.0.1:1", "localhost:1"
    server.add_task, server.pull_trigger = lambda _: None, lambda: None
    return server


def _leduc_line(rng):
    return tree_line(rng, _leduc().tree), tree_start(_leduc().tree)


def _values(rng, game):
    """Return the values of a request as pages send them, some replaced by invalid ones."""
    line, start = (real_line(rng, rules()), rules().line_start) if game == "holdem" else _leduc_line(rng)
    if rng.random() < 0.95:
        line = street_line(line, start)
    cards = rng.sample(range(52 if game == "holdem" else 8), rng.choice((0, 1, 3, 4, 5)))
    board = "".join(card_text(card) for card in cards) if game == "holdem" else rng.choice(("", "2", "3", "A"))
    given = {"line": line, "board": board, "of": 0, "boards": 1, "hand": rng.randrange(3)}
    given |= {"seed": rng.choice((0, 1, 2**63 - 1, 2**63, -1)), "iterations": rng.randrange(9)}
    given |= {"action": rng.choice(("c", "f", "b", "b300", "r300", "b1e400", "b-1", "b" * 99))}
    given |= {"resolve": rng.choice(("", "river", "flop:unsafe:9999999999", "turn:x")), "method": "unsafe"}
    for name in given:
        if rng.random() < 0.05:
            given[name] = rng.choice(_NASTY)
    return given


def _request(rng, game):
    """Return an HTTP request, often with invalid values or headers."""
    path = rng.choice(("/", "/view.js", "/nothing", "//[", "http://[", "*", *3 * (*_GET, *_POST)))
    post = path in _POST and (path not in _GET or rng.random() < 0.5)
    known = [*(_POST if post else _GET).get(path, (None, _NAMES))[1], "of"]
    if game == "holdem" and path == "/api/values":
        path = "/api/spot"  # values before the river take a second
    given = {name: value for name, value in _values(rng, game).items() if name in known and rng.random() < 0.9}
    if rng.random() < 0.1:
        given[rng.choice(_NAMES)] = rng.choice(_ANYTHING[:-1])
    if post:
        body = json.dumps(given).encode()
        body = damaged(rng, body, (b"null", b"[", b'{"a":' * 50, b"\\ud800")) if rng.random() < 0.2 else body
        length = len(body) if rng.random() < 0.85 else rng.choice((0, -1, 10**9, "9" * 5_000, ""))
        head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", f"Content-Length: {length}"]
    else:
        encode = str if rng.random() < 0.2 else lambda value: quote(str(value), errors="replace")
        query = "&".join(f"{name}={encode(value)}" for name, value in given.items())
        head, body = [f"GET {path}{'?' * bool(query)}{query} HTTP/1.1"], b""
    head += ["Host: 127.0.0.1:1", *(rng.choice(_HEADERS) for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))))]
    return "\r\n".join([*head, "", ""]).encode("utf-8", "replace") + body


def _requests(rng):
    """Return `GAME REQUESTS`: one to three requests of a connection, sometimes with random bytes changed."""
    game = rng.choice(("holdem", *5 * ["leduc"]))
    data = b"".join(_request(rng, game) for _ in range(rng.choice((1, 1, 1, 2, 3))))
    return game.encode() + b" " + (damaged(rng, data, _PIECES) if rng.random() < 0.3 else data)


def _read_requests(data):
    """Answer the requests; raises `ValueError` for a status of 400 or more, or if there is no answer.

    Server errors, except 501 and 503, raise `AssertionError`.
    """
    game, _, data = data.partition(b" ")
    wire = _Wire(data)
    channel = _Channel(_server(game), wire, ("127.0.0.1", 2), _server(game).adj, {})
    while channel.connected and not channel.requests:
        channel.handle_read()
    if channel.requests:
        channel.service()
        assert not channel.requests  # the request is answered
    statuses = list(_statuses(io.BytesIO(wire.sent)))
    if failed := [status for status in statuses if status[0] >= 500 and status[0] not in (501, 503)]:
        raise AssertionError(failed)
    refused = [status for status in statuses if status[0] >= 400]
    if refused or not statuses:
        raise ValueError(f"refused with status {refused}, or not answered")


def _statuses(stream):
    """Yield (status, error message) of each answer; raises `AssertionError` for an invalid answer."""
    while line := stream.readline():
        assert line.startswith(b"HTTP/1."), line
        status, length = int(line.split()[1]), 0
        while (header := stream.readline()) != b"\r\n":
            length = int(header.split()[1]) if header.startswith(b"Content-Length:") else length
        body = stream.read(length)
        yield status, json.loads(body)["error"] if status >= 400 else ""
        assert len(body) == length and not (status == 400 and b"out of range float" in body.lower())


# --- lines of a match ---

_MATCH = plan(hands=2)
_TURNS = (*b"MATCHSTATE: : | / r300 cc AsKd".split(), b"\r\n", b"# x\r\n", b"c" * 5_000, b"VERSION:2.0.0\r\n")


@cache
def _bot_betting():
    return _betting(_MATCH.game)


def _session(name, seed=1):
    return AcpcSession(PROGRAMS[name](_bot_betting(), seed=seed), rules())


class _Recorded(LocalSeat):
    """A player whose received and sent messages are recorded."""

    def __init__(self, session):
        super().__init__(session)
        self.received, self.answers = [], []

    def tell(self, line):
        self.received.append(line)
        super().tell(line)

    def ask(self, line, seconds):
        self.answers.append(super().ask(line, seconds))
        return self.answers[-1]


@cache
def _match(name, seed):
    """Play a match; return (messages that a calling player gets, answers of the other player)."""
    caller, other = _Recorded(_session("always-call")), _Recorded(_session(name, seed))
    dealer = MatchDealer(_MATCH, [caller, other])
    for number in range(_MATCH.hands):
        dealer.play(number)
    return caller.received, other.answers


def _changed(rng, lines):
    """Return a match's lines as bytes, with some lines changed, removed, repeated or inserted."""
    lines = list(lines)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
        place, kind = rng.randrange(len(lines)), rng.randrange(6)
        if kind == 0:
            state, _, action = lines[place].rpartition(":")
            lines[place] = f"{state}:{rng.choice(('f', 'c', 'r0', 'r300', 'r99999999', 'x', '', action * 2))}"
        elif kind == 1:
            lines[place] = lines[rng.randrange(len(lines))]
        elif kind == 2:
            lines.insert(place, rng.choice(("# said", ";", "", "nonsense", lines[place])))
        elif kind == 3 and len(lines) > 1:
            del lines[place]
        else:
            lines[place] = damaged(rng, lines[place].encode(), _TURNS).decode("latin-1")
    data = "\r\n".join([*lines, ""]).encode("latin-1")
    return damaged(rng, data, _TURNS) if rng.random() < 0.2 else data


def _lines(rng, which):
    lines = _match(rng.choice(list(PROGRAMS)), rng.randrange(8))[which]
    return _changed(rng, lines if which == 0 else [VERSION, *lines])


def _in_words(read):
    """Return `read` with a check that the message of each `TableError` can be printed in a terminal."""

    def checked(data):
        try:
            read(data)
        except TableError as error:
            assert str(error).isprintable() and len(str(error)) < 600
            raise

    return checked


def _bot(data):
    """Follow a match to its end, as `play_acpc` does; raises `ValueError` if it does not end."""
    session, lines, answers = _session("always-call"), Lines(_Wire(data)), 0
    while (line := lines.read(60)) is not None:
        answers += session.answer(line) is not None
    if not answers or not session.between_hands:
        raise ValueError("the match has not come to an end")


def _deal(data):
    """Play a match over a real connection; the player sends the lines of `data` in any case."""

    def tell(text):
        if "closed" in text or "disconnected" in text:
            raise ValueError(text)

    port = DealerPort(listening("127.0.0.1", 0), tell)
    seat = RemoteSeat(port, [], "Bob", tell)
    try:
        with socket.create_connection(("127.0.0.1", int(port.where.rpartition(":")[2]))) as player:
            player.sendall(data)
            if b"\n" not in data:
                player.shutdown(socket.SHUT_WR)
            seat_all([seat], 60)
            player.shutdown(socket.SHUT_WR)
            dealer = MatchDealer(_MATCH, [LocalSeat(_session("always-call")), seat], Clock(60, 60))
            for number in range(_MATCH.hands):
                dealer.play(number)
    finally:
        seat.close()
        port.close()


# --- answers of poker servers ---


def _altered_answers(rng, answers, pieces):
    """Return answers as JSON lines; some have a value of another type, or changed bytes."""
    answers = deepcopy(answers)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        table = answer = rng.choice(answers)
        while tables := [each for each in _values_of(table) if each and isinstance(each, dict | list)]:
            if rng.random() < 0.3:
                break
            table = rng.choice(tables)
        name = rng.choice([*table, "error_msg", "token"] if isinstance(table, dict) else range(len(table)))
        table[name] = deepcopy(rng.choice((*_ANYTHING, *answer.values())))
    data = "\n".join(map(json.dumps, answers)).encode()
    return damaged(rng, data, pieces) if rng.random() < 0.3 else data


def _values_of(table):
    return table.values() if isinstance(table, dict) else table


@cache
def _answers(seed):
    """Return the test server's answers in some hands with a calling player."""
    found, double = [], Double(PROGRAMS["random"](_bot_betting(), seed=seed), seed)

    def post(where, body):
        found.append(double.post(where, body))
        return found[-1]

    session = SlumbotSession(PROGRAMS["always-call"](_bot_betting()), rules(), post)
    for number in range(3):
        session.play_hand(number)
    return found


def _answering(left):
    """Return a `post` function of a server that gives the answers in `left` one after the other."""

    def post(where, _):
        if not left:
            raise ValueError("the server closed the connection")
        return read_body(where, 200, left.pop(0))

    return post


def _slumbot(data):
    """Play hands until the server has no more answers."""
    left = data.split(b"\n")
    session, number = SlumbotSession(PROGRAMS["always-call"](_bot_betting()), rules(), _answering(left)), 0
    while left:
        session.play_hand(number)
        number += 1


@cache
def _wizard_answers(seed):
    """Return the test server's answers in some hands with a calling player, one hand at a time."""
    found, double = [], Wizard(lambda number: PROGRAMS["random"](_bot_betting(), seed=seed + number), seed)

    def post(where, body):
        found.append(double.handle(where, body, {"X-API-KEY": "k3y"})[1])
        return found[-1]

    list(play_wizard_hands([PROGRAMS["always-call"](_bot_betting())], rules(), WizardServer(post), 3))
    return deepcopy(found)


def _wizard(data):
    """Play hands until the server has no more answers."""
    left = data.split(b"\n")

    server = WizardServer(_answering(left), wait=lambda _: None)
    while left:
        list(play_wizard_hands([PROGRAMS["always-call"](_bot_betting())], rules(), server, 1))


VIEW = Format(_requests, _read_requests, seconds=60)  # re-solving the first hand compiles kernels
BOT = Format(lambda rng: _lines(rng, 0), _in_words(_bot))
DEALER = Format(lambda rng: _lines(rng, 1), _deal)
SLUMBOT = Format(lambda rng: _altered_answers(rng, _answers(rng.randrange(20)), _SLUMBOT), _in_words(_slumbot))
GTOWIZARD = Format(lambda rng: _altered_answers(rng, _wizard_answers(rng.randrange(20)), _WIZARD), _in_words(_wizard))
