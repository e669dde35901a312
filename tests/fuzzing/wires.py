"""What comes over a wire: requests to the page's server, lines to a bot, lines to a dealer."""

import io
import json
from functools import cache

from acpc import session
from places import DATA
from random_policy import policy

from fuzzing import Format, damaged
from mccfr.view import Shelf, Spots
from mccfr.view.server import _GET, _POST, _Handler

_NAMES = ("line", "board", "of", "boards", "hand", "seed", "iterations", "action", "resolve", "method", "x")
_VALUES = (
    "",
    "c",
    "r300c/",
    "r300c/cr500",
    "Kc7d2s",
    "Kc7d",
    "-1",
    "0",
    "1",
    "2",
    "f",
    "river",
    "unsafe",
    "9" * 30,
    "%ff",
    "%00",
)
_PIECES = (b"\r\n", b"%", b"&", b"=", b"GET ", b"HTTP/1.1", b"Host: x\r\n", b"Transfer-Encoding: chunked\r\n")


class _Wire:
    """A connection whose other end has said all it will."""

    def __init__(self, data):
        self._left, self.said = data, bytearray()

    def recv_into(self, room):
        count = min(len(room), len(self._left))
        room[:count], self._left = self._left[:count], self._left[count:]
        return count

    def makefile(self, *_):
        return io.BytesIO()

    def sendall(self, data):
        self.said += data

    def settimeout(self, seconds):
        """Nothing is waited for."""


class _Server:
    server_port = 1

    def __init__(self):
        self.shelf = Shelf([("one", lambda: Spots(policy(), "one"))])


@cache
def _server():
    return _Server()


def _request(rng):
    path = rng.choice(("/", "/view.js", "/nothing", "//[", *_GET, *_GET, *_POST, *_POST))
    if path in ("/api/solve", "/api/values"):  # which work for seconds, and on after the test
        path = "/api/solve/stop"
    given = {rng.choice(_NAMES): rng.choice(_VALUES) for _ in range(rng.randrange(3))}
    if path in _POST:
        body = json.dumps({name: int(value) if value.isdecimal() else value for name, value in given.items()}).encode()
        body = damaged(rng, body, (b"null", b"[", b'{"a":' * 50)) if rng.random() < 0.3 else body
        length = rng.choice((len(body), len(body), len(body), 0, -1, 10**9, "9" * 5_000, ""))
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
    else:
        query = "&".join(f"{name}={value}" for name, value in given.items())
        body, head = b"", f"GET {path}?{query} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
    head += rng.choice(("", "", "", "Origin: http://127.0.0.1:1\r\n", "Sec-Fetch-Site: cross-site\r\n"))
    data = head.encode() + b"\r\n" + body
    return damaged(rng, data, _PIECES) if rng.random() < 0.3 else data


def _answered(data):
    """Good: answered with 200; refused: with 400 to 499, or hung up on."""
    wire = _Wire(data)
    _Handler(wire, ("127.0.0.1", 2), _server())
    said = bytes(wire.said)
    status = int(said.split(b" ", 2)[1]) if said.startswith(b"HTTP/") else 400
    if status >= 500 and status not in (501, 505):  # of methods and versions of HTTP that nobody knows
        raise AssertionError(said[:400])
    if status != 200:
        raise ValueError(f"refused with status {status}, as {said[:60]!r}")


@cache
def _told():
    lines = (DATA / "acpc_transcript.txt").read_text().splitlines()
    return [line.split(" ", 2)[2].encode() for line in lines if line.startswith("TO ")]


def _line(rng):
    line = rng.choice(_told())
    return (
        line if rng.random() < 0.2 else damaged(rng, line, (b"MATCHSTATE:", b":", b"|", b"/", b"r300", b"cc", b"AsKd"))
    )


def _bot(data):
    session("random").answer(data)


VIEW = Format(_request, _answered)
BOT = Format(_line, _bot)
