"""Accepts connections on the dealer's port and validates each client's handshake.

Any program may connect, such as browsers and port scanners. Waiting therefore handles all clients at once, limits
their number, and gives each a deadline for its handshake.
"""

import errno
import math
import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from mccfr.matches.acpc import VERSION, TableError, decode_line, quoted
from mccfr.matches.socket_lines import FirstMessages, Lines

MOST_VISITORS = 32
"""Most clients without a seat; a further one replaces the oldest that has not completed its handshake."""
GREETING_SECONDS = 10.0
"""Seconds for a client to send the protocol's version."""
_VERSION = re.compile(r"VERSION:2\.0\.[0-9]{1,9}")
_INSTANT = 1e-3
Wanted = Callable[["PendingClient", str], bool]


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. Raises `TableError` if the port is unavailable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise TableError(f"port {port} of {host} is in use: give another --port, or 0 for a free one") from None
        raise TableError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
    return listener


@dataclass(eq=False)
class PendingClient:
    """A connected client that has not been given the seat of a player in the match.

    lines    its connection
    address  IP address of the client
    port     TCP port of the client
    until    deadline for the handshake (monotonic seconds); infinite after it
    greeted  True if the client has sent the protocol's version, which completes the handshake
    """

    lines: Lines
    address: str
    port: int
    until: float
    greeted: bool = False


class DealerPort:
    """A listening port and its clients without a seat; their lines are read only during `wait`.

    where  address and port, such as "127.0.0.1:4000"
    """

    def __init__(
        self, listener: socket.socket, say: Callable[[str], None] = lambda _: None, greeting: float = GREETING_SECONDS
    ) -> None:
        """Take over a listening socket, which `close` closes.

        say       called with messages about closed connections
        greeting  seconds for the handshake
        """
        listener.setblocking(False)
        self._listener, self._say, self._greeting = listener, FirstMessages(say), greeting
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._visitors = list[PendingClient]()
        address, port = listener.getsockname()[:2]
        self.where = f"{address}:{port}"

    def wait(self, seconds: float, wanted: Wanted) -> tuple[PendingClient, str]:
        """Wait for a client that `wanted` accepts; return it and the accepted line.

        The client then belongs to the caller: this port neither reads from it nor closes it any more.

        wanted  function of (client, line) that returns True to accept. It is called with "" when a client's handshake
                completes, then with each line of the client

        Raises `TimeoutError` if no client is accepted within `seconds`, and anything that `wanted` raises.
        """
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            soonest = min((client.until for client in self._visitors), default=until)
            for client in self._readable(max(min(soonest, until) - now, 0.0)):
                text = self._line_of(client)
                if text is not None and wanted(client, text):
                    self._remove(client)
                    return client, text
            for client in [each for each in self._visitors if each.until <= time.monotonic()]:
                self.hang_up(client, f"has not sent {VERSION} within {self._greeting:g} s")
        raise TimeoutError("no client has connected in time")

    def visitors(self) -> list[PendingClient]:
        """Accept pending connections and return all clients without a seat."""
        self._accept()
        return list(self._visitors)

    def hang_up(self, visitor: PendingClient, reason: str) -> None:
        """Close a client's connection and report `reason`, if the client still waits for a seat."""
        if visitor in self._visitors:
            self._remove(visitor)
            visitor.lines.close()
            self._say(f"the client at {visitor.address}:{visitor.port} {reason}: its connection is closed")

    def close(self) -> None:
        """Close the connections of all clients without a seat, and the listening socket."""
        for visitor in self._visitors:
            visitor.lines.close()
        self._selector.close()
        self._listener.close()

    def _readable(self, seconds: float) -> list[PendingClient]:
        """Wait up to `seconds` for data; accept new clients; return those with data to read."""
        waiting = any(visitor.lines.waiting for visitor in self._visitors)
        keys = {key.fd for key, _ in self._selector.select(0 if waiting else seconds)}
        clients = [each for each in self._visitors if each.lines.waiting or each.lines.fileno() in keys]
        if self._listener.fileno() in keys:
            self._accept()
        return clients

    def _accept(self) -> None:
        """Accept up to 64 pending connections; at most 32 clients wait for a seat.

        A further one replaces the oldest client without a handshake, or the oldest of all if each has completed it.
        """
        for _ in range(2 * MOST_VISITORS):
            try:
                connection, (address, port, *_) = self._listener.accept()
            except BlockingIOError:
                break
            except ConnectionError:
                continue  # the client has closed the connection
            if len(self._visitors) == MOST_VISITORS:
                self.hang_up(min(self._visitors, key=lambda each: each.greeted), "makes room for new clients")
            self._visitors.append(PendingClient(Lines(connection), address, port, time.monotonic() + self._greeting))
            self._selector.register(self._visitors[-1].lines, selectors.EVENT_READ, None)

    def _line_of(self, visitor: PendingClient) -> str | None:
        """Read a client's next line and return it; "" if it completes the handshake.

        Return None for an incomplete line or a comment. Also None if the client has disconnected or broken the
        protocol, after closing its connection.
        """
        try:
            line = visitor.lines.read(_INSTANT)
            if line is None:
                self.hang_up(visitor, "has disconnected")
                return None
            text = decode_line(line)
        except TimeoutError:
            return None  # an incomplete line
        except (TableError, OSError) as error:
            self.hang_up(visitor, f"broke the protocol ({error})")
            return None
        if visitor.greeted:
            return text
        if text is None or not _VERSION.fullmatch(text):
            self.hang_up(visitor, f"began with {quoted(text or '')}, not with {VERSION}")
            return None
        visitor.greeted, visitor.until = True, math.inf
        return ""

    def _remove(self, visitor: PendingClient) -> None:
        self._visitors.remove(visitor)
        self._selector.unregister(visitor.lines)
