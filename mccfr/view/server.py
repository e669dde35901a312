"""Hands the page and its answers out over HTTP, to this machine alone.

Python's own server does: a dozen answers in JSON and six files, asked for by one browser.  A library such as bottle
would route them with as many lines, and serve them by the same `http.server` underneath unless another one comes with
it; what matters here - whom it answers, with which headers - would be ours to write all the same.

It listens at 127.0.0.1 and answers only requests that name it so: a page of somebody else's whose name has been made to
lead here (DNS rebinding) is refused by its `Host`.  What changes something is sent by POST as JSON, which a form of
somebody else's page cannot do, and a script there only after a question that is refused (there is no OPTIONS).  The
headers forbid the page to load anything from elsewhere.
"""

import errno
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mccfr import __version__
from mccfr.view.shelf import Shelf, Shown

ADDRESS = "127.0.0.1"
PORT = 8765
MOST_TEXT = 2_000
"""Characters of a line or board."""
MOST_BODY = 8_192
"""Bytes of what a page sends."""
_SILENCE_SECONDS = 60
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
        self.shelf = shelf
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = "give another --port, or 0 for a free one"
                raise ValueError(f"port {port} of {ADDRESS} is in use: {hint}") from None
            raise ValueError(f"cannot listen at {ADDRESS}:{port}: {error.strerror or error}") from None
        self.url = f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet where the browser has hung up; else as ever."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: ViewServer
    protocol_version = "HTTP/1.1"
    timeout = _SILENCE_SECONDS

    def do_GET(self) -> None:
        """Answer a request."""
        if not self._named():
            return
        url = urlsplit(self.path)
        name = url.path.removeprefix("/") or "index.html"
        if name in _FILES:
            package, kind = _FILES[name]
            self._send(HTTPStatus.OK, kind, files(package).joinpath("static", name).read_bytes())
            return
        self._ask(_GET.get(url.path), lambda known: _arguments(url.query, known))

    def do_POST(self) -> None:
        """Do what a request asks for, of what a page may change: a hand that is played, a spot that is solved."""
        if not self._named():
            return
        length = self.headers.get("Content-Length", "")
        own = (None, *(f"http://{name}" for name in self._names()))
        plain = self.headers.get("Content-Type") == "application/json" and self.headers.get("Origin") in own
        if not plain or not length.isdecimal() or int(length) > MOST_BODY:
            self.close_connection = True  # what may follow the headers is not read
            message = f"send application/json of at most {MOST_BODY:,} bytes, from this server's own page"
            self._answer(HTTPStatus.BAD_REQUEST, {"error": message})
            return
        body = self.rfile.read(int(length))
        self._ask(_POST.get(urlsplit(self.path).path), lambda known: _fields(body, known))

    def _names(self) -> tuple[str, str]:
        """What this server is called."""
        return f"{ADDRESS}:{self.server.server_port}", f"localhost:{self.server.server_port}"

    def _named(self) -> bool:
        """Whether a request names this machine; else it is refused."""
        if self.headers.get("Host") in self._names():
            return True
        self.close_connection = True
        body = f"this server answers to {' and '.join(self._names())} only"
        self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain; charset=utf-8", body.encode())
        return False

    def _ask(self, asked: "_Asked | None", read: Callable[[_Known], dict[str, Any]]) -> None:
        """Answer what is asked with what `read` makes of the request."""
        if asked is None:
            path = urlsplit(self.path).path[:80]
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"there is no {path!r} here"})
            return
        does, known = asked
        try:
            given = read({"of": int, **known})
            shelf, of = self.server.shelf, given.pop("of", 0)
            self._answer(HTTPStatus.OK, does(shelf.shown(of), **given) | _shelved(shelf, of, does))
        except ValueError as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": " ".join(str(error).split())})
        except OSError as error:  # a damaged file
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": " ".join(str(error).split())})

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
