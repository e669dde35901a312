"""The HTTP server of the page, for this machine only, built on waitress.

waitress reads all requests in one thread and calls the application in others.  A connection carries one request, for a
limited time; the oldest waiting connection makes room for a new one.  So a slow client blocks only itself.
"""

import errno
import logging
import socket
import time
from collections.abc import Callable
from http import HTTPStatus

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask
from waitress.utilities import BadRequest

from mccfr.common.package import VERSION
from mccfr.view.application import ADDRESS, MOST_BODY, Application, head, refusal
from mccfr.view.strategies import StrategyList

PORT = 8765
CONNECTIONS = 256
"""Maximum open connections. waitress polls all of them each time; a browser opens six."""
_ROOM = CONNECTIONS // 8
"""Connections accepted in one step, and closed if all are taken.  Few, so that a new one is read before it is
closed.
"""
SECONDS = 20.0
"""Time for a request to arrive, and maximum time without progress of a client that reads its answer."""
THREADS = 48
"""Number of requests that are answered at the same time.

The 5 paths of a table may each have 8 requests that wait for the strategy to act; 8 threads remain for others.
"""
MOST_HEADERS = 65_536
"""Maximum bytes of a request's first line and headers."""
_UNREADABLE = {
    HTTPStatus.BAD_REQUEST: "this is no request of HTTP 1.1",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"the body is too long: send at most {MOST_BODY:,} bytes",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: f"the headers are {MOST_HEADERS:,} bytes or more: send less",
    HTTPStatus.NOT_IMPLEMENTED: "the Transfer-Encoding is not known: send the body with its Content-Length",
}
"""Sentence on a request that waitress refuses, by its status."""


class _Parser(HTTPRequestParser):
    """Parses the single HTTP request of a connection, and makes waitress close the connection after it."""

    path = ""  # waitress logs it even for a request that it could not read

    def received(self, data: bytes) -> int:
        """Parse bytes that have arrived; return how many of them belong to this request."""
        try:
            count: int = super().received(data)
        except ValueError:  # raised for a Content-Length of 5,000 digits, or an address such as http://[
            self.error, self.completed, count = BadRequest(""), True, len(data)
        self.expect_continue = False  # after "100 Continue" waitress waits for the body even of a refused request
        self.headers["CONNECTION"] = "close"  # after the answer, for any request
        return count


class _Unreadable(ErrorTask):
    """Sends the JSON error of the application for a request that waitress could not read."""

    def execute(self) -> None:
        """Send the error response and close the connection."""
        status = HTTPStatus(self.request.error.code)
        response = refusal(status, _UNREADABLE.get(status, status.phrase))
        self.status, self.response_headers = head(response)
        self.set_close_on_finish()
        self.write(response[2])


class _Channel(HTTPChannel):
    """A client's connection, which carries one request and is then closed."""

    parser_class = _Parser
    error_task_class = _Unreadable
    handle_expt = HTTPChannel.handle_close  # waitress never reads urgent data, which would wake the server in a loop


class ViewServer(TcpWSGIServer):
    """HTTP server of the web page; a context manager that closes all connections at its end.

    server_port  port on which it listens
    url          address of the page, such as http://127.0.0.1:8765/
    """

    channel_class = _Channel

    def __init__(self, strategies: StrategyList, port: int = PORT) -> None:
        """Listen on 127.0.0.1; port 0 takes a free one.  Raises `ValueError` if the port is not available."""
        try:
            listening = socket.create_server((ADDRESS, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = "give another --port, or 0 for a free one"
                raise ValueError(f"port {port} of {ADDRESS} is in use: {hint}") from None
            raise ValueError(f"cannot listen at {ADDRESS}:{port}: {error.strerror or error}") from None
        logging.getLogger("waitress").setLevel(logging.ERROR)  # slow clients and full queues are expected
        self.server_port: int = listening.getsockname()[1]
        self.url = f"http://{ADDRESS}:{self.server_port}/"
        super().__init__(
            Application(strategies, self.server_port),
            _sock=listening,
            bind_socket=False,
            threads=THREADS,
            connection_limit=CONNECTIONS + 2,  # waitress also counts the listening socket and its own pipe
            max_request_header_size=MOST_HEADERS,
            max_request_body_size=MOST_BODY + 1,
            clear_untrusted_proxy_headers=False,  # no code reads them
            log_socket_errors=False,
            ident=f"mccfr/{VERSION}",
        )

    def __enter__(self) -> "ViewServer":
        return self

    def __exit__(self, *_: object) -> None:
        for channel in list(self.active_channels.values()):
            channel.handle_close()  # a thread that still works for it does not touch the server afterwards
        self.task_dispatcher.shutdown(timeout=0.5)
        wasyncore.close_all(self._map)

    def serve_forever(self) -> None:
        """Answer requests until the server is closed, which makes waitress's `accepting` false."""
        while self.accepting:
            self._close_old_connections()
            wasyncore.loop(timeout=1, use_poll=True, map=self._map, count=1)

    def handle_accept(self) -> None:
        """Accept up to 32 new connections; waitress itself accepts one, then polls all connections."""
        for _ in range(min(_ROOM, CONNECTIONS - len(self.active_channels))):
            super().handle_accept()

    def _close_old_connections(self) -> None:
        """Close waiting connections that timed out, and the 32 oldest ones if 256 connections are open.

        A waiting connection has an incomplete request, or a client that does not read its answer; waitress never
        closes the latter.  This runs between two polls, because a new connection may get the file descriptor of a
        closed one.
        """
        waiting = [channel for channel in self.active_channels.values() if not channel.requests]
        waiting.sort(key=lambda channel: channel.creation_time)
        over = time.time() - SECONDS
        surplus = _ROOM if len(self.active_channels) >= CONNECTIONS else 0
        for place, channel in enumerate(waiting):
            since = channel.last_activity if channel.close_when_flushed else channel.creation_time
            if place < surplus or since < over:
                channel.handle_close()


def serve(strategies: StrategyList, port: int = PORT, *, ready: Callable[[str], None]) -> None:
    """Serve the web page until an exception, such as one that the handler of Ctrl-C raises.

    Then stop the solve of a spot that the user has typed, if one runs.

    port   port to listen on; 0 takes a free one
    ready  called with the page's address, such as http://127.0.0.1:8765/, when the server listens

    Raises `ValueError` if the port is not available.
    """
    try:
        with ViewServer(strategies, port) as server:
            ready(server.url)
            server.serve_forever()
    finally:
        strategies.desk.close()
