"""Lines over a socket: whole ones, in time."""

import socket
import time
from collections.abc import Callable

from mccfr.play.acpc import MOST_BYTES, TableError

_READ_BYTES = 1 << 16


class Lines:
    """Lines that come from a connection and go to it."""

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        """Over an open connection, which it owns from now on."""
        self._connection, self._clock, self._held = connection, clock, b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, seconds: float) -> bytes | None:
        """The next line with its end; None where the stream has ended, also within a line.

        Raises `TimeoutError` where none comes in time, `TableError` for one without an end, `OSError` where the
        connection fails.
        """
        until = self._clock() + seconds
        while b"\n" not in self._held:
            if len(self._held) > MOST_BYTES:
                raise TableError(f"a line of more than {MOST_BYTES:,} bytes: the protocol has no longer ones")
            left = until - self._clock()
            if left <= 0:
                raise TimeoutError("no line has come in time")
            self._connection.settimeout(left)
            data = self._connection.recv(_READ_BYTES)
            if not data:
                return None
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return line + b"\n"

    def write(self, line: str, seconds: float) -> None:
        """Send a line; `OSError` where that fails, or takes too long."""
        self._connection.settimeout(seconds)
        self._connection.sendall(line.encode("ascii") + b"\r\n")

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
