"""Connections to the page's server: limits on number and time, error messages."""

import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from pages_server import ask, serving
from random_policy import policy
from sessions import wait_for

from mccfr.view import Spots
from mccfr.view.application import MOST_ALIKE
from mccfr.view.page_table import PageTable
from mccfr.view.resolve_request import MOST_SOLVES, BusyError, Solving
from mccfr.view.server import CONNECTIONS


@pytest.fixture(scope="module")
def spots():
    return Spots(policy(), "random")


@pytest.fixture(scope="module")
def served(spots):
    with serving(spots) as found:
        yield found


def answers(served, data):
    """(status, error or length of the body) of each answer to bytes that are sent as they are."""
    with connected(served) as connection:
        with suppress(ConnectionError):
            connection.sendall(data)
        with connection.makefile("rb") as came:
            return list(read_answers(came))


def connected(served, data=b""):
    connection = socket.create_connection(("127.0.0.1", served.server_port), timeout=60)
    connection.sendall(data)
    return connection


def read_answers(came):
    with suppress(ConnectionError):  # what was sent beside the first request is not read
        while line := came.readline():
            assert line.startswith(b"HTTP/1."), line
            status, headers = int(line.split()[1]), {}
            while (header := came.readline().strip()) != b"":
                name, _, value = header.decode().partition(": ")
                headers[name] = value
            assert headers["Connection"] == "close" and "default-src 'none'" in headers["Content-Security-Policy"]
            body = came.read(int(headers["Content-Length"]))
            yield status, json.loads(body)["error"] if status >= 400 else len(body)


def request(served, line="GET /api/game HTTP/1.1", *headers, host=True, body=b""):
    given = [line, *([f"Host: 127.0.0.1:{served.server_port}"] * host), *headers, "", ""]
    return "\r\n".join(given).encode("latin-1") + body


POST = "POST /api/play/deal HTTP/1.1"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"


def test_what_is_no_request_of_ours_is_refused_in_a_sentence(served, capfd):
    """One answer each, and then the connection is closed; the terminal stays empty."""
    for status, said, *given in (
        (400, "no request of HTTP", POST, JSON, "Content-Length: " + "9" * 5_000),
        (400, "no request of HTTP", POST, JSON, "Content-Length: -1"),
        (413, "at most 65,536 bytes", POST, JSON, "Content-Length: 65537"),
        (400, "not JSON", POST, JSON),
        (501, "with its Content-Length", POST, JSON, "Transfer-Encoding: gzip"),
        (400, "send application/json", POST, "Content-Length: 2"),
        (421, "this server answers to", "GET /api/game HTTP/1.1", "Host: evil.example"),
        (400, "ask for a path", "GET http://127.0.0.1/api/game HTTP/1.1"),
        (400, "no request of HTTP", "GET http://[/api/game HTTP/1.1"),
        (400, "no request of HTTP", "GET /api/game?line=b300 c HTTP/1.1"),
        (400, "no request of HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        (431, "65,536 bytes or more", "GET /" + "a" * 70_000 + " HTTP/1.1"),
        (431, "65,536 bytes or more", "GET / HTTP/1.1", *["X: " + "y" * 60_000] * 9),
        (405, "only GET and POST", "BREW /api/game HTTP/1.1"),
        (404, "there is no '/api/game\\x00' here", "GET /api/game\0 HTTP/1.1"),
        (404, "there is no '/\\xff' here", "GET /%ff HTTP/1.1"),
        (400, "query is not understood", "GET /api/spot?line=%ff HTTP/1.1"),
        (400, "of length <= 2000", "GET /api/spot?line=" + "c" * 60_000 + " HTTP/1.1"),
    ):
        found = answers(served, request(served, *given, body=b"{}"))
        assert found and found[0][0] == status and said in found[0][1], ([one[:80] for one in given], found)
        assert len(found) == 1 and found[0][1].isprintable() and len(found[0][1]) <= 500
    assert capfd.readouterr() == ("", "")


def test_a_connection_carries_one_request(served):
    """Of several the first is answered; old and new clients, and bodies in pieces, are."""
    chunks = [b"1\r\n{\r\n", b"1;x=y\r\n}\r\n", b"0\r\n\r\n"]
    for data in (
        request(served) * 3,
        request(served, "GET /api/game HTTP/1.0", "Connection: keep-alive"),
        request(served, "GET /api/game", "Connection: keep-alive"),
        request(served, "GET /api/game HTTP/2.0"),
        request(served, "GET /api/game HTTP/1.1", "Content-Length: 2", body=b"{}"),
        request(served, "GET /api/game HTTP/1.1", "Expect: 100-continue"),
        request(served, POST, JSON, "Content-Length: 2", "Expect: 100-continue", body=b"{}"),
        request(served, POST, JSON, CHUNKED, body=b"".join(chunks)),
    ):
        assert [status for status, _ in answers(served, data)] == [200], data
    for status, body in ((400, b"x\r\n"), (413, b"1\r\n{\r\n" * 20_000)):
        assert [found for found, _ in answers(served, request(served, POST, JSON, CHUNKED, body=body))] == [status]
    with connected(served, request(served, "HEAD /api/game HTTP/1.1")) as connection:
        assert connection.makefile("rb").read().endswith(b"\r\n\r\n")


def test_pages_of_others_are_refused_before_anything_is_done(served, monkeypatch):
    """Refuse requests from other pages, reads too; follow links to the page."""
    own, port = f"http://127.0.0.1:{served.server_port}", served.server_port
    with monkeypatch.context() as patched:
        patched.setattr(served.application, "shelf", None)
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


HALF = {
    "nothing": lambda served: b"",
    "half a header": lambda served: b"GET /api/ga",
    "a header without its end": lambda served: request(served)[:-2],
    "half a body": lambda served: request(served, POST, JSON, "Content-Length: 4000", body=b"{"),
    "an answer that is not read": lambda served: request(served, "GET /view.js HTTP/1.1"),
}


@pytest.mark.parametrize("half", HALF)
def test_slow_connections_keep_nobody_off_the_page(served, half, monkeypatch):
    """Answer a request within a second among more half-sent ones than connections, best of three.

    Other programs may work on this machine. No connection is closed for its time.
    """
    monkeypatch.setattr("mccfr.view.server.SECONDS", 600.0)
    seconds = []
    with ExitStack() as slow:
        for count in (CONNECTIONS, 150, 150):
            for _ in range(count):
                slow.enter_context(connected(served, HALF[half](served)))
            began = time.monotonic()
            assert ask(served, "/api/game")[0] == 200
            seconds.append(time.monotonic() - began)
            assert len(served.active_channels) <= CONNECTIONS
    assert min(seconds) < 1


def test_a_request_has_a_time_for_all_of_it(served, monkeypatch):
    """A byte now and then keeps nothing open, neither in headers nor in a body; nor does urgent data."""
    monkeypatch.setattr("mccfr.view.server.SECONDS", 0.3)
    body = request(served, POST, JSON, "Content-Length: 4000")
    for data in (b"", request(served)[:20], body):
        with connected(served, data) as slow, suppress(ConnectionError):
            slow.settimeout(0.02)
            began = time.monotonic()
            while time.monotonic() - began < 60:
                with suppress(TimeoutError):
                    assert slow.recv(10) == b""
                    break
                slow.sendall(b"x" if data else b"")
            assert time.monotonic() - began < 30
    with connected(served) as urgent:
        monkeypatch.setattr("mccfr.view.server.SECONDS", 20.0)
        urgent.send(b"x", socket.MSG_OOB)
        with suppress(ConnectionError):
            assert urgent.recv(10) == b""


def test_who_reads_no_answer_is_hung_up_on(monkeypatch):
    monkeypatch.setattr("mccfr.view.server.SECONDS", 0.3)
    with serving(Spots(policy(), "x" * 30_000_000)) as slow, connected(slow, request(slow)):
        wait_for(lambda: slow.active_channels, 20)
        wait_for(lambda: not slow.active_channels, 20)


def test_requests_that_wait_leave_others_their_turn(served, spots, monkeypatch):
    """So many for one path, and the next is told when to come again; other paths are answered."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def waits(*_, **__):
        begun.release()
        assert go_on.wait(60)
        return {}

    monkeypatch.setattr(spots, "spot", waits)
    with ExitStack() as waiting:
        every = [
            waiting.enter_context(connected(served, request(served, "GET /api/spot?line= HTTP/1.1")))
            for _ in range(MOST_ALIKE)
        ]
        assert all(begun.acquire(timeout=60) for _ in every)
        status, _, body = ask(served, "/api/spot?line=")
        assert status == 503 and b"8 requests for /api/spot are being answered: try again when one is done" in body
        assert ask(served, "/api/game")[0] == 200
        go_on.set()
        for one in every:
            with one.makefile("rb") as came:
                assert list(read_answers(came)) == [(200, 2)]
    assert ask(served, "/api/spot?line=")[0] == 200


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

RIVER = {"line": "b200c/cc/cc/", "board": "Kc7d2s4h9d"}


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
        assert until_done(served.application.shelf.shown(MOST_SOLVES).solving)["done"]


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
    table = PageTable(spots, patience=0.01)
    with table._lock(), pytest.raises(BusyError, match="is thinking about this hand: try again when it has acted"):
        table.state()
    assert table.state() == {"hand": None}
