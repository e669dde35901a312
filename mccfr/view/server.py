"""Hands the page and its answers out over HTTP, to this machine alone.

Python's own server does: a dozen answers in JSON and six files, asked for by one browser.  A library such as bottle
would route them with as many lines, and serve them by the same `http.server` underneath unless another one comes with
it; what matters here - whom it answers, with which headers - would be ours to write all the same.

It listens at 127.0.0.1 and answers only requests that name it so: a page of somebody else's whose name has been made to
lead here (DNS rebinding) is refused by its `Host`.  What changes something is sent by POST as JSON, which a form of
somebody else's page cannot do, and a script there only after a question that is refused (there is no OPTIONS).  What
browsers say comes from another site is refused before anything is worked out for it; links to the page itself pass.
The headers forbid the page to load anything from elsewhere.

Connections, the time that a request takes to arrive, and spots that are solved at a time (`mccfr.view.solving`) have
limits: whoever goes beyond them is told so, or hung up on.
"""

import errno
import io
import json
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from mccfr import __version__
from mccfr.view.shelf import Shelf, Shown

ADDRESS = "127.0.0.1"
PORT = 8765
MOST_TEXT = 2_000
"""Characters of a line or board."""
MOST_BODY = 8_192
"""Bytes of what a page sends."""
MOST_CONNECTIONS = 32
"""At a time: a browser opens six."""
REQUEST_SECONDS = 20.0
"""From a request's first byte to its last."""
_SILENCE_SECONDS = 60.0
_LENGTH_DIGITS = 9
_BUSY = b"this server has as many connections as it takes: close other pages of it, or try again"
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
    b"Retry-After: 1\r\nContent-Length: %d\r\n\r\n%s" % (len(_BUSY), _BUSY)
)
_HTML, _CSS, _SCRIPT = (f"text/{kind}; charset=utf-8" for kind in ("html", "css", "javascript"))
_FILES = {
    "index.html": ("mccfr.view", _HTML),
    "strategy.css": ("mccfr.report", _CSS),
    "view.css": ("mccfr.view", _CSS),
    "strategy.js": ("mccfr.report", _SCRIPT),
    "view.js": ("mccfr.view", _SCRIPT),
    "play.js": ("mccfr.view", _SCRIPT),
}
"""Of each file, the package whose `static` holds it, and its type."""
_Known = Mapping[str, type]
_Asked = tuple[Callable[..., dict[str, Any]], _Known]
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewServer(ThreadingHTTPServer):
    """A server of strategies; what `shelf` holds answers."""

    daemon_threads = True

    def __init__(self, shelf: Shelf, port: int = PORT) -> None:
        """Listen at 127.0.0.1; port 0 takes a free one.  Raises `ValueError` where the port cannot be had."""
        self.shelf, self._free = shelf, threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = "give another --port, or 0 for a free one"
                raise ValueError(f"port {port} of {ADDRESS} is in use: {hint}") from None
            raise ValueError(f"cannot listen at {ADDRESS}:{port}: {error.strerror or error}") from None
        self.url = f"http://{ADDRESS}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, while there are not too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.settimeout(1.0)
            request.sendall(_TOO_MANY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As the base class, and then there is room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet where the browser has hung up; else as ever."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Arriving(io.RawIOBase):
    """What a connection sends; `TimeoutError` where it is silent, or a request takes too long to arrive."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._until = connection, 0.0

    def readable(self) -> bool:
        """It is."""
        return True

    def begin(self) -> None:
        """Another request is waited for."""
        self._until = 0.0

    def readinto(self, room: Any) -> int:
        """As the base class."""
        left = self._until - time.monotonic() if self._until else _SILENCE_SECONDS
        if left <= 0:
            raise TimeoutError("the request has not arrived in time")
        self._connection.settimeout(min(left, _SILENCE_SECONDS))
        got = self._connection.recv_into(room)
        self._until = self._until or time.monotonic() + REQUEST_SECONDS
        return got


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: ViewServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """As the base class, reading within limits of time."""
        super().setup()
        self._arriving = _Arriving(self.connection)
        self.rfile = io.BufferedReader(self._arriving)

    def handle_one_request(self) -> None:
        """As the base class."""
        self._arriving.begin()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer a request."""
        if not self._welcome():
            return
        url = self._url()
        name = url.path.removeprefix("/") or "index.html"
        if name in _FILES:
            package, kind = _FILES[name]
            self._send(HTTPStatus.OK, kind, files(package).joinpath("static", name).read_bytes())
            return
        self._ask(_GET.get(url.path), lambda known: _arguments(url.query, known))

    def do_POST(self) -> None:
        """Do what a request asks for, of what a page may change: a hand that is played, a spot that is solved."""
        if not self._welcome():
            return
        length = self.headers.get("Content-Length", "")
        plain = self.headers.get("Content-Type") == "application/json" and "Transfer-Encoding" not in self.headers
        if not plain or not length.isdecimal() or len(length) > _LENGTH_DIGITS or int(length) > MOST_BODY:
            self.close_connection = True  # what may follow the headers is not read
            message = f"send application/json of at most {MOST_BODY:,} bytes, from this server's own page"
            self._answer(HTTPStatus.BAD_REQUEST, {"error": message})
            return
        body = self.rfile.read(int(length))
        self._ask(_POST.get(self._url().path), lambda known: _fields(body, known))

    def _names(self) -> tuple[str, str]:
        """What this server is called."""
        return f"{ADDRESS}:{self.server.server_port}", f"localhost:{self.server.server_port}"

    def _welcome(self) -> bool:
        """Whether a request names this machine, and comes from the page itself or from nobody's; else it is refused."""
        if self.headers.get_all("Host", []) not in [[name] for name in self._names()]:
            self.close_connection = True
            body = f"this server answers to {' and '.join(self._names())} only"
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain; charset=utf-8", body.encode())
            return False
        own = (None, *(f"http://{name}" for name in self._names()))
        near = self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        if (near and self.headers.get("Origin") in own) or not self._works():
            return True
        self.close_connection = True
        self._answer(HTTPStatus.FORBIDDEN, {"error": "this server answers its own page only: open it by its address"})
        return False

    def _url(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError:  # a path that is taken for a host's name, which is none
            return SplitResult("", "", "nowhere", "", "")

    def _works(self) -> bool:
        """Whether a request asks for more than the page and its files."""
        return self.command != "GET" or self._url().path.removeprefix("/") not in ("", *_FILES)

    def _ask(self, asked: "_Asked | None", read: Callable[[_Known], dict[str, Any]]) -> None:
        """Answer what is asked with what `read` makes of the request."""
        if asked is None:
            path = self._url().path[:80]
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"there is no {path!r} here"})
            return
        does, known = asked
        try:
            given = read({"of": int, **known})
            shelf, of = self.server.shelf, given.pop("of", 0)
            self._answer(HTTPStatus.OK, does(shelf.shown(of), **given) | _shelved(shelf, of, does))
        except ValueError as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": " ".join(str(error).split())})
        except (OSError, MemoryError) as error:  # a damaged file
            self._fail(" ".join(str(error).split()) or "there is too little memory for it")
        except Exception as error:  # ours: whoever asks is told, and the terminal has the rest
            logging.getLogger("mccfr.view").exception("mccfr: %s failed", self.path[:200])
            self._fail(
                f"this should not have happened ({type(error).__name__}): the terminal says more; please report it"
            )

    def _fail(self, text: str) -> None:
        self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": text})

    def _refuse(self) -> None:
        self.close_connection = True  # what may follow the headers is not read
        self._send(
            HTTPStatus.METHOD_NOT_ALLOWED,
            "text/plain; charset=utf-8",
            b"only GET and POST are known",
            Allow="GET, POST",
        )

    def _answer(self, status: HTTPStatus, value: dict[str, Any]) -> None:
        body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
        self._send(status, "application/json", body)

    def _send(self, status: HTTPStatus, kind: str, body: bytes, **more: str) -> None:
        self.connection.settimeout(_SILENCE_SECONDS)
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """What the server calls itself."""
        return f"mccfr/{__version__}"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the terminal belongs to whoever started it."""


for _method in ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
    setattr(_Handler, f"do_{_method}", _Handler._refuse)  # http.server looks methods up by these names


def _arguments(query: str, known: _Known) -> dict[str, Any]:
    """Parameters of a request; `ValueError` for others than the known ones, twice the same, and long ones."""
    try:
        found = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=8, errors="strict")
    except ValueError:
        raise ValueError("the query is not understood: write line=r300c/&board=Kc7d2s") from None
    for name, values in found.items():
        if name not in known or len(values) > 1:
            raise ValueError(f"{name[:40]!r} is no parameter here, or is given twice; known are {', '.join(known)}")
        if known[name] is int and not (values[0].isdecimal() and len(values[0]) < 10):
            raise ValueError(f"{name} = {values[0][:40]!r} is not a whole number")
    return _checked({name: known[name](values[0]) for name, values in found.items()})


def _fields(body: bytes, known: _Known) -> dict[str, Any]:
    """The same of a request's JSON object."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the request is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("the request is no JSON object")
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{name[:40]!r} is no parameter here; known are {', '.join(known)}")
        if type(value) is not known[name]:
            wanted = "a whole number" if known[name] is int else "text"
            raise ValueError(f"{name} = {str(value)[:40]!r} is not {wanted}")
    return _checked(found)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters none of which is too long."""
    for name, value in given.items():
        if isinstance(value, str) and len(value) > MOST_TEXT:
            raise ValueError(f"{name} has {len(value):,} characters; at most {MOST_TEXT:,} are read")
    return given


def _shelved(shelf: Shelf, of: int, does: Callable[..., Any]) -> dict[str, Any]:
    """What the page learns of the other strategies when it asks for the game."""
    return {"strategies": shelf.names, "of": of} if does is _game else {}


def _game(shown: Shown) -> dict[str, Any]:
    return shown.spots.game()


_AT: _Known = {"line": str, "board": str}
_GET: Mapping[str, _Asked] = {
    "/api/game": (_game, {}),
    "/api/spot": (lambda shown, **at: shown.spots.spot(**{"line": "", **at}), _AT),
    "/api/equity": (lambda shown, **at: shown.spots.equity(**{"line": "", **at}), _AT),
    "/api/values": (lambda shown, **at: shown.worth.values(**{"line": "", **at}), {**_AT, "boards": int}),
    "/api/solve": (lambda shown: shown.solving.state(), {}),
    "/api/play": (lambda shown: shown.playing.state(), {}),
}
_POST: Mapping[str, _Asked] = {
    "/api/solve": (
        lambda shown, **job: shown.solving.start(**{"line": "", "board": "", **job}),
        {**_AT, "method": str, "iterations": int},
    ),
    "/api/solve/stop": (lambda shown: shown.solving.stop(), {}),
    "/api/play/sit": (lambda shown, **given: shown.playing.sit(**given), {"resolve": str, "seed": int}),
    "/api/play/deal": (lambda shown, hand=-1: shown.playing.deal(hand), {"hand": int}),
    "/api/play/act": (
        lambda shown, hand=-1, line="", action="": shown.playing.act(hand, line, action),
        {"hand": int, "line": str, "action": str},
    ),
}
"""What is asked of a strategy, and with which parameters beside `of`, its number."""


def serve(shelf: Shelf, port: int = PORT, *, ready: Callable[[str], None]) -> None:
    """Serve strategies until Ctrl-C; a second one, while the process ends, is not heard.

    port   0: a free one
    ready  is told the page's address once it answers

    Raises `ValueError` where the port cannot be had.
    """
    with ViewServer(shelf, port) as server, suppress(KeyboardInterrupt), _one_interrupt():
        ready(server.url)
        server.serve_forever()


@contextmanager
def _one_interrupt() -> Iterator[None]:
    """SIGINT is heard once inside, as `KeyboardInterrupt`, and never again; in the main thread only."""

    def hear(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hear:
            signal.signal(signal.SIGINT, before)
