"""Serves the page over HTTP, to this machine alone, by waitress.

waitress reads all requests in one thread and calls the application in others.  A slow client costs its own connection
only: a connection carries one request, for a limited time, and the oldest waiting connection makes room for a new one.
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

from mccfr import __version__
from mccfr.view.application import ADDRESS, MOST_BODY, Application, head, refusal
from mccfr.view.shelf import Shelf

PORT = 8765
CONNECTIONS = 256
"""Open at once.  Few, because waitress asks the system about all of them each time; a browser opens six."""
_ROOM = CONNECTIONS // 8
"""Connections that are accepted at once, and closed where all are taken: few, so that a new one is read before."""
SECONDS = 20.0
"""For a whole request to arrive, and without progress of a client that reads its answer."""
THREADS = 48
"""Requests that are answered at once: the five paths of a table may wait for a strategy that thinks, which leaves 8."""
MOST_HEADERS = 65_536
"""Bytes of a request's first line and headers."""
_UNREADABLE = {
    HTTPStatus.BAD_REQUEST: "this is no request of HTTP 1.1",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"the body is too long: send at most {MOST_BODY:,} bytes",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: f"the headers are {MOST_HEADERS:,} bytes or more: send less",
    HTTPStatus.NOT_IMPLEMENTED: "the Transfer-Encoding is not known: send the body with its Content-Length",
}
"""What is said of a request that waitress refuses, by its status."""


class _Parser(HTTPRequestParser):
    """Reads the one request of a connection."""

    path = ""  # waitress logs it, also of a request that it could not read

    def received(self, data: bytes) -> int:
        """Take bytes that have arrived; returns how many are this request's."""
        try:
            count: int = super().received(data)
        except ValueError:  # from a Content-Length of 5,000 digits, or an address such as http://[
            self.error, self.completed, count = BadRequest(""), True, len(data)
        self.expect_continue = False  # after "100 Continue" waitress waits for the body even of a refused request
        self.headers["CONNECTION"] = "close"  # after the answer, whatever the client has asked for
        return count


class _Unreadable(ErrorTask):
    """Refuses a request that waitress could not read, in the form of the application's refusals."""

    def execute(self) -> None:
        """Send the refusal."""
        status = HTTPStatus(self.request.error.code)
        response = refusal(status, _UNREADABLE.get(status, status.phrase))
        self.status, self.response_headers = head(response)
        self.set_close_on_finish()
        self.write(response[2])


class _Channel(HTTPChannel):
    """A connection."""

    parser_class = _Parser
    error_task_class = _Unreadable
    handle_expt = HTTPChannel.handle_close  # urgent data, which waitress never reads: it would wake the server for ever


class ViewServer(TcpWSGIServer):
    """Serves strategies by HTTP; a context manager, which closes all connections at its end.

    server_port  the port that it listens at
    url          the page's address
    """

    channel_class = _Channel

    def __init__(self, shelf: Shelf, port: int = PORT) -> None:
        """Listen at 127.0.0.1; port 0 takes a free one.  Raises `ValueError` where the port cannot be had."""
        try:
            listening = socket.create_server((ADDRESS, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = "give another --port, or 0 for a free one"
                raise ValueError(f"port {port} of {ADDRESS} is in use: {hint}") from None
            raise ValueError(f"cannot listen at {ADDRESS}:{port}: {error.strerror or error}") from None
        logging.getLogger("waitress").setLevel(logging.ERROR)  # crowds and slow clients are nothing to tell
        self.server_port: int = listening.getsockname()[1]
        self.url = f"http://{ADDRESS}:{self.server_port}/"
        super().__init__(
            Application(shelf, self.server_port),
            _sock=listening,
            bind_socket=False,
            threads=THREADS,
            connection_limit=CONNECTIONS + 2,  # waitress counts the listening socket and its own pipe
            max_request_header_size=MOST_HEADERS,
            max_request_body_size=MOST_BODY + 1,
            clear_untrusted_proxy_headers=False,  # nothing reads them
            log_socket_errors=False,
            ident=f"mccfr/{__version__}",
        )

    def __enter__(self) -> "ViewServer":
        return self

    def __exit__(self, *_: object) -> None:
        for channel in list(self.active_channels.values()):
            channel.handle_close()  # a thread that still works for it leaves the server alone afterwards
        self.task_dispatcher.shutdown(timeout=0.5)
        wasyncore.close_all(self._map)

    def serve_forever(self) -> None:
        """Answer requests for as long as `accepting`."""
        while self.accepting:
            self._make_room()
            wasyncore.loop(timeout=1, use_poll=True, map=self._map, count=1)

    def handle_accept(self) -> None:
        """Accept several new connections, where waitress accepts one and asks about all again."""
        for _ in range(min(_ROOM, CONNECTIONS - len(self.active_channels))):
            super().handle_accept()

    def _make_room(self) -> None:
        """Close connections whose time is over; where all are taken, also those that have waited longest.

        They wait for the rest of a request, or for the client to read the answer.  They are closed at once, because
        waitress never closes one whose client does not read, and between two polls, because a new connection may get
        the same descriptor.
        """
        waiting = [channel for channel in self.active_channels.values() if not channel.requests]
        waiting.sort(key=lambda channel: channel.creation_time)
        over = time.time() - SECONDS
        surplus = _ROOM if len(self.active_channels) >= CONNECTIONS else 0
        for place, channel in enumerate(waiting):
            since = channel.last_activity if channel.close_when_flushed else channel.creation_time
            if place < surplus or since < over:
                channel.handle_close()


def serve(shelf: Shelf, port: int = PORT, *, ready: Callable[[str], None]) -> None:
    """Serve strategies until a signal, which is raised once the spots that are being solved have ended.

    port   0: a free one
    ready  is told the page's address once it answers

    Raises `ValueError` where the port cannot be had.
    """
    try:
        with ViewServer(shelf, port) as server:
            ready(server.url)
            server.serve_forever()
    finally:
        shelf.desk.close()
