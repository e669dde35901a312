"""What the page's server does with whoever is no page of its own: limits of connections, time and work; other sites."""

import json
import socket
import threading
import time

import pytest
from pages_server import ask, serving
from random_policy import policy

from mccfr.view import Spots, server, solving


@pytest.fixture(scope="module")
def served():
    with serving(Spots(policy(), "one")) as found:
        yield found


def raw(served, data, seconds=10.0):
    """What is said to bytes over a connection, until the server hangs up or says nothing more."""
    with socket.create_connection(("127.0.0.1", served.server_port), seconds) as wire:
        wire.sendall(data)
        said = b""
        while piece := wire.recv(65_536):
            said += piece
    return said


def posted(served, length, *more):
    own = f"127.0.0.1:{served.server_port}"
    lines = ["POST /api/play/sit HTTP/1.1", f"Host: {own}", "Content-Type: application/json", *more]
    return raw(served, "\r\n".join([*lines, f"Content-Length: {length}", "Connection: close", "", "{}"]).encode())


@pytest.mark.parametrize("length", ["9" * 5_000, "-1", "", "0x2", "2 2", str(2**63)])
def test_a_length_that_is_none_is_refused(served, length):
    assert posted(served, length).startswith(b"HTTP/1.1 400 ")


def test_a_body_in_chunks_and_two_names_are_refused(served):
    assert posted(served, 2, "Transfer-Encoding: chunked").startswith(b"HTTP/1.1 400 ")
    assert posted(served, 2, "Host: elsewhere").startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("seed", [-1, 2**63, 10**40])
def test_a_seed_out_of_bounds_is_a_sentence(served, seed):
    status, _, body = ask(served, "/api/play/sit", "POST", body={"seed": seed})
    assert status == 400 and "it must be from 0 to 2^63 - 1" in json.loads(body)["error"]
    assert ask(served, "/api/play/sit", "POST", body={"seed": 2**63 - 1})[0] == 200


def test_any_error_is_a_sentence_and_the_terminal_has_the_rest(served, monkeypatch, caplog):
    def fail(*_):
        raise OverflowError("int too large to convert")

    monkeypatch.setattr(type(served.shelf), "shown", fail)
    status, _, body = ask(served, "/api/game")
    assert status == 500 and "(OverflowError): the terminal says more" in json.loads(body)["error"]
    assert "Traceback" not in body.decode() and "int too large" in caplog.text


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"}],
)
def test_requests_of_other_sites_are_refused_before_anything_is_done(served, monkeypatch, headers):
    monkeypatch.setattr(type(served.shelf), "shown", lambda *_: pytest.fail("it was worked on"))
    for path, method, body in (("/api/game", "GET", None), ("/api/play/deal", "POST", {"hand": 1})):
        name, value = next(iter(headers.items()))
        text = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{served.server_port}\r\n{name}: {value}\r\n"
        text += "Connection: close\r\n"
        if body is not None:
            text += f"Content-Type: application/json\r\nContent-Length: {len(json.dumps(body))}\r\n"
        said = raw(served, text.encode() + b"\r\n" + (b"" if body is None else json.dumps(body).encode()))
        assert said.startswith(b"HTTP/1.1 403 ") and b"its own page only" in said


def test_a_link_from_elsewhere_leads_to_the_page(served):
    text = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.server_port}\r\nSec-Fetch-Site: cross-site\r\n"
    said = raw(served, (text + "Sec-Fetch-Mode: navigate\r\nConnection: close\r\n\r\n").encode())
    assert said.startswith(b"HTTP/1.1 200 ") and b"<!doctype html>" in said.lower()


@pytest.mark.parametrize("slow", ["headers", "body"])
def test_a_request_that_arrives_a_byte_at_a_time_is_hung_up_on(served, monkeypatch, slow):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.3)
    own = f"127.0.0.1:{served.server_port}"
    head = (
        f"POST /api/play/deal HTTP/1.1\r\nHost: {own}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    )
    data = head.encode() + b" " * 500 if slow == "body" else head.encode()
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", served.server_port), 10) as wire:
        wire.sendall(data[: -480 if slow == "body" else 20])
        with pytest.raises(OSError):
            for byte in data[-400:]:
                wire.sendall(bytes([byte]))
                time.sleep(0.02)
                if wire.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b"":
                    raise ConnectionResetError
    assert time.monotonic() - began < 5


def test_connections_beyond_the_limit_are_told_so(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with serving(Spots(policy(), "one")) as served:
        held = [socket.create_connection(("127.0.0.1", served.server_port)) for _ in range(3)]
        time.sleep(0.2)
        assert raw(served, b"").startswith(b"HTTP/1.1 503 ")
        for each in held:
            each.close()
        for _ in range(50):
            if ask_or_none(served) == 200:
                break
            time.sleep(0.05)
        else:
            pytest.fail("room was not made again")


def ask_or_none(served):
    try:
        return ask(served, "/api/game")[0]
    except OSError:
        return None


def test_of_spots_that_are_asked_for_at_once_the_newest_alone_is_solved(monkeypatch):
    """One thread solves for a strategy, whatever is asked; what was stopped or is older is not begun."""
    begun, free, threads = [], threading.Event(), set()

    def stage(self, job, *_):
        begun.append(job.iterations)
        threads.add(threading.get_ident())
        free.wait(10)
        return {}

    monkeypatch.setattr(solving.Solving, "_stage", stage)
    job = solving.Solving(Spots(policy(), "one"))
    before = threading.active_count()
    for iterations in range(1, 16):
        job.start("r300c/cc/cc/", "Kc7d2s4h9d", iterations=iterations)
    assert threading.active_count() <= before + 1
    free.set()
    for _ in range(200):
        if job.state()["done"]:
            break
        time.sleep(0.02)
    assert job.state()["done"] and job.state()["iterations"] == 15
    assert len(threads) == 1 and begun[-1] == 15 and len(begun) <= 4
