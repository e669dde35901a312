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
def server(spots):
    with serving(spots) as found:
        yield found


def answers(server, data):
    """Send raw bytes; return (status, error or length of the body) of each answer."""
    with connected(server) as connection:
        with suppress(ConnectionError):
            connection.sendall(data)
        with connection.makefile("rb") as came:
            return list(read_answers(came))


def connected(server, data=b""):
    connection = socket.create_connection(("127.0.0.1", server.server_port), timeout=60)
    connection.sendall(data)
    return connection


def read_answers(came):
    with suppress(ConnectionError):  # the server closes without reading further requests
        while line := came.readline():
            assert line.startswith(b"HTTP/1."), line
            status, headers = int(line.split()[1]), {}
            while (header := came.readline().strip()) != b"":
                name, _, value = header.decode().partition(": ")
                headers[name] = value
            assert headers["Connection"] == "close" and "default-src 'none'" in headers["Content-Security-Policy"]
            body = came.read(int(headers["Content-Length"]))
            yield status, json.loads(body)["error"] if status >= 400 else len(body)


def request(server, line="GET /api/game HTTP/1.1", *headers, host=True, body=b""):
    given = [line, *([f"Host: 127.0.0.1:{server.server_port}"] * host), *headers, "", ""]
    return "\r\n".join(given).encode("latin-1") + body


POST = "POST /api/play/deal HTTP/1.1"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"


def test_invalid_requests_are_refused_in_one_sentence(server, capfd):
    """Each gets one answer, then the server closes the connection; the terminal stays empty."""
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
        found = answers(server, request(server, *given, body=b"{}"))
        assert found and found[0][0] == status and said in found[0][1], ([one[:80] for one in given], found)
        assert len(found) == 1 and found[0][1].isprintable() and len(found[0][1]) <= 500
    assert capfd.readouterr() == ("", "")


def test_a_connection_carries_one_request(server):
    """The server answers the first of several requests, all HTTP versions and chunked bodies."""
    chunks = [b"1\r\n{\r\n", b"1;x=y\r\n}\r\n", b"0\r\n\r\n"]
    for data in (
        request(server) * 3,
        request(server, "GET /api/game HTTP/1.0", "Connection: keep-alive"),
        request(server, "GET /api/game", "Connection: keep-alive"),
        request(server, "GET /api/game HTTP/2.0"),
        request(server, "GET /api/game HTTP/1.1", "Content-Length: 2", body=b"{}"),
        request(server, "GET /api/game HTTP/1.1", "Expect: 100-continue"),
        request(server, POST, JSON, "Content-Length: 2", "Expect: 100-continue", body=b"{}"),
        request(server, POST, JSON, CHUNKED, body=b"".join(chunks)),
    ):
        assert [status for status, _ in answers(server, data)] == [200], data
    for status, body in ((400, b"x\r\n"), (413, b"1\r\n{\r\n" * 20_000)):
        assert [found for found, _ in answers(server, request(server, POST, JSON, CHUNKED, body=body))] == [status]
    with connected(server, request(server, "HEAD /api/game HTTP/1.1")) as connection:
        assert connection.makefile("rb").read().endswith(b"\r\n\r\n")


def test_requests_of_other_web_pages_are_refused_before_they_are_handled(server, monkeypatch):
    """The server refuses requests from other pages, also reads; links to the page work."""
    own, port = f"http://127.0.0.1:{server.server_port}", server.server_port
    with monkeypatch.context() as patched:
        patched.setattr(server.application, "shelf", None)
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
                status, _, found = ask(server, path, "GET" if body is None else "POST", body=body, **headers)
                assert status == 403 and b"answers its own page only" in found, (headers, path)
        status, _, found = ask(server, "/api/play/sit", "POST", body={}, **{"Content-Type": "text/plain"})
        assert status == 400 and b"own page" in found
        for site in ("cross-site", "same-site", "same-origin", "none"):
            assert ask(server, "/", **{"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": site})[0] == 200
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": own}, {}):
        assert ask(server, "/api/game", **headers)[0] == 200
    assert ask(server, "/api/play/sit", "POST", body={"seed": 1}, Origin=own)[0] == 200


HALF = {
    "nothing": lambda server: b"",
    "half a header": lambda server: b"GET /api/ga",
    "a header without its end": lambda server: request(server)[:-2],
    "half a body": lambda server: request(server, POST, JSON, "Content-Length: 4000", body=b"{"),
    "an answer that is not read": lambda server: request(server, "GET /view.js HTTP/1.1"),
}


@pytest.mark.parametrize("half", HALF)
def test_slow_connections_do_not_block_other_requests(server, half, monkeypatch):
    """Answer a request within a second among more unfinished requests than allowed connections.

    The fastest of three counts, since other programs may slow this machine. No connection reaches its time limit.
    """
    monkeypatch.setattr("mccfr.view.server.SECONDS", 600.0)
    seconds = []
    with ExitStack() as slow:
        for count in (CONNECTIONS, 150, 150):
            for _ in range(count):
                slow.enter_context(connected(server, HALF[half](server)))
            began = time.monotonic()
            assert ask(server, "/api/game")[0] == 200
            seconds.append(time.monotonic() - began)
            assert len(server.active_channels) <= CONNECTIONS
    assert min(seconds) < 1


def test_a_request_has_a_total_time_limit(server, monkeypatch):
    """Single bytes, sent slowly in headers or a body, do not extend it; nor does urgent data."""
    monkeypatch.setattr("mccfr.view.server.SECONDS", 0.3)
    body = request(server, POST, JSON, "Content-Length: 4000")
    for data in (b"", request(server)[:20], body):
        with connected(server, data) as slow, suppress(ConnectionError):
            slow.settimeout(0.02)
            began = time.monotonic()
            while time.monotonic() - began < 60:
                with suppress(TimeoutError):
                    assert slow.recv(10) == b""
                    break
                slow.sendall(b"x" if data else b"")
            assert time.monotonic() - began < 30
    with connected(server) as urgent:
        monkeypatch.setattr("mccfr.view.server.SECONDS", 20.0)
        urgent.send(b"x", socket.MSG_OOB)
        with suppress(ConnectionError):
            assert urgent.recv(10) == b""


def test_a_client_that_does_not_read_the_answer_is_disconnected(monkeypatch):
    monkeypatch.setattr("mccfr.view.server.SECONDS", 0.3)
    with serving(Spots(policy(), "x" * 30_000_000)) as slow, connected(slow, request(slow)):
        wait_for(lambda: slow.active_channels, 20)
        wait_for(lambda: not slow.active_channels, 20)


def test_waiting_requests_for_one_path_do_not_block_others(server, spots, monkeypatch):
    """Above the limit for one path, the next request gets status 503; other paths are answered."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    def waits(*_, **__):
        begun.release()
        assert go_on.wait(60)
        return {}

    monkeypatch.setattr(spots, "spot", waits)
    with ExitStack() as waiting:
        every = [
            waiting.enter_context(connected(server, request(server, "GET /api/spot?line= HTTP/1.1")))
            for _ in range(MOST_ALIKE)
        ]
        assert all(begun.acquire(timeout=60) for _ in every)
        status, _, body = ask(server, "/api/spot?line=")
        assert status == 503 and b"8 requests for /api/spot are being answered: try again when one is done" in body
        assert ask(server, "/api/game")[0] == 200
        go_on.set()
        for one in every:
            with one.makefile("rb") as came:
                assert list(read_answers(came)) == [(200, 2)]
    assert ask(server, "/api/spot?line=")[0] == 200


@pytest.mark.parametrize("error", [OverflowError("too\nlarge"), KeyError("x"), RecursionError(), MemoryError()])
def test_internal_errors_are_reported_in_one_sentence(server, spots, monkeypatch, caplog, error):
    """The page gets the error's type, the terminal one line with its place; the server continues."""

    def fails(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(spots, "spot", fails)
        status, _, body = ask(server, "/api/spot?line=")
    kind = type(error).__name__
    assert (status, list(json.loads(body))) == (500, ["error"]) and f"({kind}): the terminal says more".encode() in body
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith("mccfr: GET '/api/spot?line=' failed at test_connections.py:") and kind in told
    assert told.isprintable()
    assert ask(server, "/api/spot?line=")[0] == 200


# --- work under way ---

RIVER = {"line": "b200c/cc/cc/", "board": "Kc7d2s4h9d"}


def wait_until_done(solving):
    wait_for(lambda: solving.state()["done"])
    return solving.state()


@contextmanager
def stages_that_wait(monkeypatch):
    """Make stages wait; yield the iterations of begun stages, and the event that releases them."""
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


def test_of_simultaneous_spot_requests_only_the_newest_is_solved(spots, monkeypatch):
    """One thread solves for a strategy; it does not begin requests that are stopped or replaced."""
    with stages_that_wait(monkeypatch) as (begun, go_on):
        solving, before = Solving(spots), threading.active_count()
        for iterations in range(1, 16):
            solving.start(**RIVER, iterations=iterations)
        assert threading.active_count() <= before + 1
        go_on.set()
        found = wait_until_done(solving)
    assert found["done"] and found["iterations"] == 15
    assert begun[-1] == 15 and len(begun) <= 4


def test_the_number_of_simultaneous_solves_is_limited(spots, monkeypatch):
    """A stopped solve counts until it has ended."""
    others = [Spots(policy(), f"other {number}") for number in range(MOST_SOLVES)]
    with stages_that_wait(monkeypatch) as (begun, go_on), serving(spots, *others) as server:
        for of in range(MOST_SOLVES):
            assert ask(server, "/api/solve", "POST", body={**RIVER, "of": of})[0] == 200
            wait_for(lambda of=of: len(begun) > of)
            assert ask(server, "/api/solve/stop", "POST", body={"of": of})[0] == 200
        late = {**RIVER, "of": MOST_SOLVES}
        status, _, body = ask(server, "/api/solve", "POST", body=late)
        assert status == 503 and b"try again when one of them is done" in body and len(begun) <= MOST_SOLVES
        assert ask(server, "/api/solve", "POST", body=RIVER)[0] == 200
        go_on.set()
        wait_for(lambda: ask(server, "/api/solve", "POST", body=late)[0] == 200)
        assert wait_until_done(server.application.shelf.shown(MOST_SOLVES).solving)["done"]


def test_a_spot_that_is_stopped_ends_within_its_stage(spots):
    """All 5,000 iterations would take half a minute."""
    solving = Solving(spots)
    solving.start(**RIVER, iterations=5_000)
    wait_for(lambda: (solving.state()["result"] or {"iterations": 0})["iterations"] >= 40)
    solving.stop()
    began, found = time.monotonic(), wait_until_done(solving)
    assert time.monotonic() - began < 5 and found["done"] and not found["problem"]
    assert found["result"]["iterations"] < 5_000


def test_an_error_while_solving_is_reported(spots, monkeypatch):
    monkeypatch.setattr(Solving, "_stage", lambda *_: {}["missing"])
    solving = Solving(spots)
    solving.start(**RIVER)
    assert wait_until_done(solving)["problem"] == "'missing'"


def test_requests_are_refused_while_the_strategy_computes_its_action(spots):
    table = PageTable(spots, patience=0.01)
    with table._lock(), pytest.raises(BusyError, match="is thinking about this hand: try again when it has acted"):
        table.state()
    assert table.state() == {"hand": None}
