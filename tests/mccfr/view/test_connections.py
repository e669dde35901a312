"""What a browser, or whatever connects, may do to the page's server: bounded in number and time, told in a sentence."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from pages_server import ask, serving
from random_policy import policy
from sessions import wait_for

from mccfr.view import Spots
from mccfr.view.connections import Limits
from mccfr.view.playing import Playing
from mccfr.view.solving import MOST_SOLVES, BusyError, Solving

SHORT = Limits(connections=3, idle=0.2, request=0.3, answer=0.3)


@pytest.fixture(scope="module")
def spots():
    return Spots(policy(), "random")


@pytest.fixture(scope="module")
def served(spots):
    with serving(spots) as found:
        yield found


def answers(served, data, slowly=0.0):
    """(status, error or length of the body) of each answer to bytes that are sent as they are."""
    with socket.create_connection(("127.0.0.1", served.server_port), timeout=30) as connection:
        with suppress(ConnectionError):
            for piece in [data] if not slowly else [data[place : place + 1] for place in range(len(data))]:
                connection.sendall(piece)
                time.sleep(slowly)
        if not slowly:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as came:
            return list(read_answers(came))


def read_answers(came):
    while line := came.readline():
        assert line.startswith(b"HTTP/1.1 "), line
        status, length = int(line.split()[1]), 0
        while (header := came.readline().strip()) != b"":
            name, _, value = header.partition(b": ")
            length = int(value) if name.lower() == b"content-length" else length
        body = came.read(length)
        assert len(body) == length
        yield status, json.loads(body)["error"] if status >= 400 else length


def request(served, line="GET /api/game HTTP/1.1", *headers, host=True, body=b""):
    given = [line, *([f"Host: 127.0.0.1:{served.server_port}"] * host), *headers, "", ""]
    return "\r\n".join(given).encode("latin-1") + body


POST = "POST /api/play/deal HTTP/1.1"
JSON = "Content-Type: application/json"


def test_what_is_no_request_of_ours_is_refused_in_a_sentence(served):
    """One answer each, and then the connection is closed: what follows is not read."""
    for status, said, *given in (
        (400, "the Content-Length is '999", POST, JSON, "Content-Length: " + "9" * 5_000),
        (400, "the Content-Length is '-1'", POST, JSON, "Content-Length: -1"),
        (400, "at most 65,536 bytes", POST, JSON, "Content-Length: 65537"),
        (400, "one number is needed", POST, JSON, "Content-Length: 2", "Content-Length: 2"),
        (400, "one number is needed", POST, JSON, "Content-Length: \xb2"),
        (411, "send the body in one piece", POST, JSON),
        (411, "send the body in one piece", POST, JSON, "Transfer-Encoding: chunked"),
        (400, "one number is needed", POST, JSON, "Transfer-Encoding: chunked", "Content-Length: 2"),
        (400, "one number is needed", POST, JSON, "Content-Length: 2 2"),
        (400, "one number is needed", POST, JSON, "Content-Length: "),
        (400, "a GET request has no body here", "GET /api/game HTTP/1.1", "Content-Length: 5"),
        (400, "a GET request has no body here", "GET / HTTP/1.1", "Transfer-Encoding: chunked"),
        (421, "this server answers to", "GET /api/game HTTP/1.1", "Host: evil.example"),
        (400, "ask for a path", "GET http://127.0.0.1/api/game HTTP/1.1"),
        (400, "ask for a path", "GET http://[/api/game HTTP/1.1"),
        (400, "no request of HTTP", "GET /api/game"),
        (400, "no request of HTTP", "GET /api/game?line=r300 c HTTP/1.1"),
        (400, "no request of HTTP", "GET /api/game HTTPS/1.1"),
        (400, "no request of HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        (505, "HTTP 1.0 and 1.1", "GET /api/game HTTP/2.0"),
        (505, "HTTP 1.0 and 1.1", "GET /api/game HTTP/0.9"),
        (414, "longer than 65,536 bytes", "GET /" + "a" * 70_000 + " HTTP/1.1"),
        (431, "more than 100: send fewer", "GET / HTTP/1.1", *["X: y"] * 200),
        (431, "longer than 65,536 bytes", "GET / HTTP/1.1", "X: " + "y" * 70_000),
        (431, "longer than 65,536 bytes", "GET / HTTP/1.1", *["X: " + "y" * 60_000] * 9),
        (405, "only GET and POST", "BREW /api/game HTTP/1.1"),
        (405, "only GET and POST", "PUT /api/game HTTP/1.1", "Content-Length: 5"),
        (404, "there is no '/api/game\\x00' here", "GET /api/game\0 HTTP/1.1"),
        (404, "there is no '/\\xff' here", "GET /\xff HTTP/1.1"),
        (400, "query is not understood", "GET /api/spot?line=%ff HTTP/1.1"),
        (400, "query is not understood", "GET /api/spot?line=\xff&&= HTTP/1.1"),
        (400, "at most 2,000", "GET /api/spot?line=" + "c" * 60_000 + " HTTP/1.1"),
    ):
        found = answers(served, request(served, *given, body=b"" if status in (404, 400) else b"{}"))
        assert found[0][0] == status and said in found[0][1], (given[0][:80], found)
        assert len(found) == 1 and found[0][1].isprintable() and len(found[0][1]) <= 500


def test_requests_come_one_after_the_other_on_a_connection(served):
    several = request(served) + request(served, POST, JSON, "Content-Length: 2", body=b"{}") + request(served)
    assert [status for status, _ in answers(served, several)] == [200] * 3
    expecting = request(served, POST, JSON, "Content-Length: 2", "Expect: 100-continue", body=b"{}")
    assert [status for status, _ in answers(served, expecting)] == [100, 200]
    large = request(served, POST, JSON, "Content-Length: 99999", "Expect: 100-continue")
    assert [status for status, _ in answers(served, large)] == [400]


def test_pages_of_others_are_refused_before_anything_is_done(served, monkeypatch):
    """What changes nothing as well; a link to the page is followed."""
    own, port = f"http://127.0.0.1:{served.server_port}", served.server_port
    with monkeypatch.context() as patched:
        patched.setattr(served, "shelf", None)
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
            {"Sec-Fetch-Site": "something-new"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{port + 1}"},
            {"Origin": f"https://127.0.0.1:{port}"},
        ):
            for path, body in (("/api/game", None), ("/api/spot?line=", None), ("/api/play/sit", {}), ("/x", None)):
                status, _, found = ask(served, path, "GET" if body is None else "POST", body=body, **headers)
                assert status == 403 and b"answers its own page only" in found, (headers, path)
        status, _, found = ask(served, "/api/play/sit", "POST", body={}, **{"Content-Type": "text/plain"})
        assert status == 400 and b"own page" in found
        for site in ("cross-site", "same-site", "same-origin", "none"):
            assert ask(served, "/", **{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": site})[0] == 200
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": own}, {}):
        assert ask(served, "/api/game", **headers)[0] == 200
    assert ask(served, "/api/play/sit", "POST", body={"seed": 1}, Origin=own)[0] == 200


def test_a_request_has_a_time_for_all_of_it(spots):
    """A byte now and then keeps nothing open: neither in headers nor in a body; a silent connection is closed."""
    with serving(spots, limits=SHORT) as served:
        body = request(served, POST, JSON, "Content-Length: 4000") + b" " * 9
        for data, slowly in ((request(served), 0.05), (request(served)[:20], 0.02), (body, 0.003)):
            began = time.monotonic()
            [(status, said)] = answers(served, data, slowly)
            assert status == 408 and said == "the request has not come within 0.3 s: send it again"
            assert time.monotonic() - began < 10
        with socket.create_connection(("127.0.0.1", served.server_port), timeout=30) as silent:
            assert silent.recv(10) == b""


@contextmanager
def connections(served, count):
    """So many that say nothing, and are in."""
    found = [socket.create_connection(("127.0.0.1", served.server_port)) for _ in range(count)]
    wait_for(lambda: served.open >= count, 20)
    yield found
    for each in found:
        each.close()


def test_only_so_many_connections_are_answered(spots):
    """One more is told when to come again; where very many come, they are closed at once."""
    limits = Limits(connections=3, idle=20.0)
    with serving(spots, limits=limits) as served, connections(served, 3) as full:
        status, _, body = ask(served, "/api/game")
        assert status == 503 and b"3 connections are open, which is all there are: try again when one" in body
        before = threading.active_count()
        crowd = [socket.create_connection(("127.0.0.1", served.server_port)) for _ in range(40)]
        for each in crowd[20:]:
            with each, suppress(ConnectionError):
                assert each.recv(10) == b""
        assert threading.active_count() <= before + 3
        for each in [*crowd[:20], *full]:
            each.close()
        wait_for(lambda: not served.open, 20)
        assert ask(served, "/api/game")[0] == 200


def test_who_takes_no_answer_is_hung_up_on(served, monkeypatch):
    with (
        serving(Spots(policy(), "x" * 30_000_000), limits=SHORT) as slow,
        socket.create_connection(("127.0.0.1", slow.server_port)) as connection,
    ):
        connection.sendall(request(slow))
        wait_for(lambda: not slow.open, 20)


@pytest.mark.parametrize("error", [OverflowError("too\nlarge"), KeyError("x"), RecursionError(), MemoryError()])
def test_whatever_goes_wrong_is_told_in_a_sentence(served, spots, monkeypatch, caplog, error):
    """The page learns its kind, the terminal one line with the place; and the server goes on."""

    def fails(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(spots, "spot", fails)
        status, _, body = ask(served, "/api/spot?line=")
    kind = type(error).__name__
    assert (status, list(json.loads(body))) == (500, ["error"]) and f"({kind}): the terminal says more".encode() in body
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith("mccfr: GET '/api/spot?line=' failed at test_connections.py:") and kind in told
    assert told.isprintable()
    assert ask(served, "/api/spot?line=")[0] == 200


# --- work under way ---

RIVER = {"line": "r200c/cc/cc/", "board": "Kc7d2s4h9d"}


def until_done(solving):
    wait_for(lambda: solving.state()["done"])
    return solving.state()


@contextmanager
def stages_that_wait(monkeypatch):
    """Stages that go on when they may: what has begun, and the event."""
    begun, go_on = [], threading.Event()

    def stage(self, job, *_):
        begun.append(job.iterations)
        assert go_on.wait(60)
        return {}

    monkeypatch.setattr(Solving, "_stage", stage)
    try:
        yield begun, go_on
    finally:
        go_on.set()


def test_of_spots_that_are_asked_for_at_once_the_newest_alone_is_solved(spots, monkeypatch):
    """One thread solves for a strategy, whatever is asked; what was stopped or is older is not begun."""
    with stages_that_wait(monkeypatch) as (begun, go_on):
        solving, before = Solving(spots), threading.active_count()
        for iterations in range(1, 16):
            solving.start(**RIVER, iterations=iterations)
        assert threading.active_count() <= before + 1
        go_on.set()
        found = until_done(solving)
    assert found["done"] and found["iterations"] == 15
    assert begun[-1] == 15 and len(begun) <= 4


def test_only_so_many_strategies_are_solved_at_a_time(spots, monkeypatch):
    """A spot that was stopped counts until it has ended."""
    others = [Spots(policy(), f"other {number}") for number in range(MOST_SOLVES)]
    with stages_that_wait(monkeypatch) as (begun, go_on), serving(spots, *others) as served:
        for of in range(MOST_SOLVES):
            assert ask(served, "/api/solve", "POST", body={**RIVER, "of": of})[0] == 200
            wait_for(lambda of=of: len(begun) > of)
            assert ask(served, "/api/solve/stop", "POST", body={"of": of})[0] == 200
        late = {**RIVER, "of": MOST_SOLVES}
        status, _, body = ask(served, "/api/solve", "POST", body=late)
        assert status == 503 and b"try again when one of them is done" in body and len(begun) <= MOST_SOLVES
        assert ask(served, "/api/solve", "POST", body=RIVER)[0] == 200
        go_on.set()
        wait_for(lambda: ask(served, "/api/solve", "POST", body=late)[0] == 200)
        assert until_done(served.shelf.shown(MOST_SOLVES).solving)["done"]


def test_a_spot_that_is_stopped_ends_within_its_stage(spots):
    """Thousands of iterations would take half a minute."""
    solving = Solving(spots)
    solving.start(**RIVER, iterations=5_000)
    wait_for(lambda: (solving.state()["result"] or {"iterations": 0})["iterations"] >= 40)
    solving.stop()
    began, found = time.monotonic(), until_done(solving)
    assert time.monotonic() - began < 5 and found["done"] and not found["problem"]
    assert found["result"]["iterations"] < 5_000


def test_a_mistake_in_solving_is_told(spots, monkeypatch):
    monkeypatch.setattr(Solving, "_stage", lambda *_: {}["missing"])
    solving = Solving(spots)
    solving.start(**RIVER)
    assert until_done(solving)["problem"] == "'missing'"


def test_others_wait_a_moment_while_the_strategy_thinks(spots):
    table = Playing(spots, patience=0.01)
    with table._lock(), pytest.raises(BusyError, match="is thinking about this hand: try again when it has acted"):
        table.state()
    assert table.state() == {"hand": None}
