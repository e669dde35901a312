"""Hands the page and its answers out over HTTP, to this machine alone.

Python's own server does: three answers in JSON and four files, asked for by one browser.  A library such as bottle
would route them with as many lines, and serve them by the same `http.server` underneath unless another one comes with
it; what matters here - whom it answers, with which headers - would be ours to write all the same.

It listens at 127.0.0.1 and answers only requests that name it so: a page of somebody else's whose name has been made to
lead here (DNS rebinding) is refused by its `Host`.  Nothing but GET is known, and the headers forbid the page to load
anything from elsewhere.
"""

import errno
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mccfr import __version__
from mccfr.view.spots import Spots

ADDRESS = "127.0.0.1"
PORT = 8765
MOST_TEXT = 2_000
"""Characters of a line or board."""
_SILENCE_SECONDS = 60
_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "view.css": "text/css; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class ViewServer(ThreadingHTTPServer):
    """A server of one strategy; `spots` answers."""

    daemon_threads = True

    def __init__(self, spots: Spots, port: int = PORT) -> None:
        """Listen at 127.0.0.1; port 0 takes a free one.  Raises `ValueError` where the port cannot be had."""
        self.spots = spots
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
        host = f"{ADDRESS}:{self.server.server_port}", f"localhost:{self.server.server_port}"
        if self.headers.get("Host") not in host:
            status, body = HTTPStatus.MISDIRECTED_REQUEST, f"this server answers to {' and '.join(host)} only"
            self._send(status, "text/plain; charset=utf-8", body.encode())
            return
        url = urlsplit(self.path)
        name = url.path.removeprefix("/") or "index.html"
        if name in _TYPES:
            self._send(HTTPStatus.OK, _TYPES[name], files("mccfr.view").joinpath("static", name).read_bytes())
            return
        asked: dict[str, Callable[..., dict[str, Any]]] = {
            "/api/game": self.server.spots.game,
            "/api/spot": self.server.spots.spot,
            "/api/equity": self.server.spots.equity,
        }
        if url.path not in asked:
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"there is no {url.path[:80]!r} here"})
            return
        try:
            given = _arguments(url.query, () if url.path == "/api/game" else ("line", "board"))
            self._answer(HTTPStatus.OK, asked[url.path](**given))
        except ValueError as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": " ".join(str(error).split())})
        except OSError as error:  # a damaged file
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": " ".join(str(error).split())})

    def _refuse(self) -> None:
        self.close_connection = True  # what may follow the headers is not read
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", b"only GET is known", Allow="GET")

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


for _method in ("HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
    setattr(_Handler, f"do_{_method}", _Handler._refuse)  # http.server looks methods up by these names


def _arguments(query: str, known: tuple[str, ...]) -> dict[str, str]:
    """Parameters of a request; `ValueError` for others than the known ones, twice the same, and long ones."""
    try:
        found = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=8, errors="strict")
    except ValueError:
        raise ValueError("the query is not understood: write line=r300c/&board=Kc7d2s") from None
    for name, values in found.items():
        if name not in known or len(values) > 1:
            raise ValueError(f"{name[:40]!r} is no parameter here, or is given twice; known are {known or 'none'}")
        if len(values[0]) > MOST_TEXT:
            raise ValueError(f"{name} has {len(values[0]):,} characters; at most {MOST_TEXT:,} are read")
    return {name: values[0] for name, values in found.items()}


def serve(spots: Spots, port: int = PORT, *, ready: Callable[[str], None]) -> None:
    """Serve a strategy until Ctrl-C.

    port   0: a free one
    ready  is told the page's address once it answers

    Raises `ValueError` where the port cannot be had.
    """
    with ViewServer(spots, port) as server:
        ready(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
