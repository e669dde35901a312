"""Connections of browsers, within bounds: how many there are, how long a request may take to come, how it may look.

Python's own server waits for whoever connects, for as long as he likes, and tells his mistakes as pages.  Here every
connection has a clock, and what cannot be answered is told in one sentence.
"""

import io
import logging
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn

from mccfr import __version__

_MOST_BYTES = 1 << 17  # of a request: its first line alone may have half of them
_MOST_DIGITS = 10
_LARGE = "the headers are longer than 65,536 bytes, or more than 100: send fewer"
_SENTENCES = {
    HTTPStatus.BAD_REQUEST: "this is no request of HTTP 1.1",
    HTTPStatus.REQUEST_URI_TOO_LONG: "the request's first line is longer than 65,536 bytes: ask for less at once",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: _LARGE,
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "HTTP 1.0 and 1.1 are spoken here, and nothing else",
}


@dataclass(frozen=True)
class Limits:
    """What one server bears; times in seconds.

    connections  that are open at once; as many again are told so and closed, others closed
    idle         without a request, after which a connection is closed
    request      for the whole of a request to come
    answer       for an answer to be taken
    """

    connections: int = 32
    idle: float = 15.0
    request: float = 20.0
    answer: float = 30.0


LIMITS = Limits()
"""A browser opens six connections."""


class RefusedError(Exception):
    """A request is not answered: its status and a sentence.  The connection is closed, and the rest of it not read."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, headers


class BoundedServer(ThreadingHTTPServer):
    """Answers each connection in a thread, of which there are only so many."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type, limits: Limits) -> None:
        """Listen.  Raises `OSError` where the port cannot be had."""
        self.limits, self.open = limits, 0
        self._counting = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread for a connection."""
        with self._counting:
            self.open += 1
        try:
            if self.open > 2 * self.limits.connections:
                raise ConnectionError("too many connections")
            super().process_request(request, client_address)
        except BaseException:
            self._closed()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._closed()

    def _closed(self) -> None:
        with self._counting:
            self.open -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet where the browser has hung up; else a line."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            _log("a connection", error)


class _Clocked(io.RawIOBase):
    """What comes over a connection, until a time and up to a size; `RefusedError` beyond them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._until, self._left, self._seconds = connection, 0.0, 0, 0.0

    def begin(self, seconds: float) -> None:
        """A request may take so long from now on."""
        self._until, self._left, self._seconds = time.monotonic() + seconds, _MOST_BYTES, seconds

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As of every raw stream."""
        if self._left <= 0:
            raise RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _LARGE)
        with suppress(TimeoutError):
            self._connection.settimeout(max(self._until - time.monotonic(), 1e-6))
            count = self._connection.recv_into(buffer)
            self._left -= count
            return count
        sentence = f"the request has not come within {self._seconds:g} s: send it again"
        raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, sentence)


class BoundedHandler(BaseHTTPRequestHandler):
    """Answers one connection; `do_GET` and `do_POST` are a subclass's, and what they raise is told in a sentence."""

    server: BoundedServer
    raw_requestline: bytes
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # what errors are told in before the version is known

    def setup(self) -> None:
        """Put a clock on what comes."""
        super().setup()
        self.rfile.close()
        self._clock = _Clocked(self.connection)
        self._coming = self.rfile = io.BufferedReader(self._clock)
        self._crowded = self.server.open > self.server.limits.connections

    def handle_one_request(self) -> None:
        """Answer a request, or close the connection where none comes."""
        limits = self.server.limits
        self.command, self.requestline, self.path, self.request_version = "", "", "", self.protocol_version
        self.close_connection, self._begun = True, False
        self._clock.begin(min(1.0, limits.idle) if self._crowded else limits.idle)
        with suppress(RefusedError, ConnectionError):
            if self._coming.peek(1):
                self._clock.begin(min(1.0, limits.request) if self._crowded else limits.request)
                self._answer_or_refuse()

    def _answer_or_refuse(self) -> None:
        try:
            super().handle_one_request()
        except RefusedError as error:
            self._refuse(error)
        except ConnectionError:
            self.close_connection = True
        except Exception as error:  # whatever it is, the page is told, and the server goes on
            _log(f"{self.command} {self.path[:80]!a}", error)
            kind = type(error).__name__
            sentence = f"this should not have happened ({kind}): the terminal says more; please report it"
            self._refuse(RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, sentence))

    def parse_request(self) -> bool:
        """Read the first line and the headers; raises `RefusedError` for such as are not answered here."""
        self.close_connection = True
        if len(self.raw_requestline.split()) != 3:
            self.send_error(HTTPStatus.BAD_REQUEST)
        super().parse_request()
        if self.request_version not in ("HTTP/1.0", "HTTP/1.1"):
            self.send_error(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        if self._crowded:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{self.server.limits.connections} connections are open, which is all there are: try again when one is "
                "closed, in some seconds",
            )
        return True

    def handle_expect_100(self) -> bool:
        """Say nothing yet: `body` does, once it is known that the rest is wanted."""
        return True

    def body(self, most: int) -> bytes:
        """What follows the headers; raises `RefusedError` for more than so many bytes, or an unknown number."""
        lengths = self.headers.get_all("Content-Length", [])
        if not lengths:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "send the body in one piece, with its Content-Length")
        text = lengths[0].strip()
        one = len(lengths) == 1 and self.headers.get("Transfer-Encoding") is None
        number = text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS
        if not (one and number and int(text) <= most):
            sentence = f"the Content-Length is {text[:40]!a}: one number is needed, of at most {most:,} bytes"
            raise RefusedError(HTTPStatus.BAD_REQUEST, sentence)
        if self.headers.get("Expect", "").lower() == "100-continue" and self.request_version == "HTTP/1.1":
            self.connection.settimeout(self.server.limits.answer)
            self.send_response_only(HTTPStatus.CONTINUE)
            self.end_headers()
        return self.rfile.read(int(text))

    def no_body(self) -> None:
        """Raise `RefusedError` where something follows the headers: it would be read as the next request."""
        if self.headers.get("Content-Length", "0") != "0" or self.headers.get("Transfer-Encoding") is not None:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"a {self.command} request has no body here: send none")

    def say(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        """Answer with a sentence; a subclass knows in which form."""
        raise NotImplementedError

    def _refuse(self, error: RefusedError) -> None:
        self.close_connection, self.request_version = True, self.protocol_version
        if self._begun:
            return  # an answer that is cut
        with suppress(OSError):
            self.say(error.status, str(error), **error.headers)
            self._linger()

    def send(self, status: HTTPStatus, headers: Mapping[str, str], body: bytes) -> None:
        """Send an answer, within its time."""
        self._begun = True
        self.connection.settimeout(self.server.limits.answer)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _linger(self) -> None:
        """Take what is still being sent, for a moment: an answer is lost where a connection is closed on it."""
        self.connection.shutdown(socket.SHUT_WR)
        until = time.monotonic() + min(1.0, self.server.limits.request)
        while (left := until - time.monotonic()) > 0:
            self.connection.settimeout(left)
            if not self.connection.recv(1 << 16):
                break

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> NoReturn:
        """Refuse in a sentence of ours, where the base class would tell the whole request again."""
        del message, explain
        status = HTTPStatus(code)
        if status == HTTPStatus.NOT_IMPLEMENTED:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are known", Allow="GET, POST")
        raise RefusedError(status, _SENTENCES.get(status, f"the request is refused: {status.phrase}"))

    def version_string(self) -> str:
        """What the server calls itself."""
        return f"mccfr/{__version__}"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the terminal belongs to whoever started it."""


def _log(what: str, error: BaseException) -> None:
    """A line for the terminal, with the place that an error comes from."""
    steps = traceback.extract_tb(error.__traceback__)
    place = f"{steps[-1].filename.rpartition('/')[2]}:{steps[-1].lineno}" if steps else "nowhere"
    told = ascii(str(error)[:200])[1:-1]
    logging.getLogger("mccfr.view").error("mccfr: %s failed at %s: %s: %s", what, place, type(error).__name__, told)
