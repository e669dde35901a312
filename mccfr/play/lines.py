"""Lines over a socket: whole ones, in time; and how much is told of what others say."""

import select
import socket
import time
from collections import deque
from collections.abc import Callable

from mccfr.play.acpc import MOST_BYTES, TableError

_READ_BYTES = 1 << 16


class Lines:
    """Lines that come from a connection and go to it."""

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        """Over an open connection, which it owns from now on."""
        self._connection, self._clock = connection, clock
        self._whole, self._begun = deque[bytes](), b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, seconds: float) -> bytes | None:
        """The next line with its end; None where the stream has ended, also within a line.

        Raises `TimeoutError` where none is taken in time, be it that too many come, `TableError` for one without an
        end, `OSError` where the connection fails.
        """
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0:
            if self._whole:
                return self._whole.popleft() + b"\n"
            if len(self._begun) > MOST_BYTES:
                raise TableError(f"a line of more than {MOST_BYTES:,} bytes: the protocol has no longer ones")
            self._connection.settimeout(left)
            data = self._connection.recv(_READ_BYTES)
            if not data:
                return None
            *whole, self._begun = (self._begun + data).split(b"\n")
            self._whole.extend(whole)
        raise TimeoutError("no line has come in time")

    @property
    def waiting(self) -> bool:
        """Whether a line has come that nobody has read."""
        return bool(self._whole)

    @property
    def cut(self) -> bool:
        """Whether the other side has hung up; lines that it said before may still be read."""
        poll = select.poll()
        poll.register(self._connection, select.POLLRDHUP)
        return bool(poll.poll(0))

    def fileno(self) -> int:
        """Of the connection."""
        return self._connection.fileno()

    def write(self, line: str, seconds: float) -> None:
        """Send a line; `OSError` where that fails, or takes too long."""
        self._connection.settimeout(seconds)
        self._connection.sendall(line.encode("ascii") + b"\r\n")

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Few:
    """Passes on the first messages of many, and then that there are more: what others do must not fill a screen."""

    def __init__(self, say: Callable[[str], None], most: int = 100) -> None:
        self._say, self._left = say, most

    def __call__(self, text: str) -> None:
        """A message."""
        if self._left > 0:
            self._say(text)
            self._left -= 1
            if not self._left:
                self._say("more of this kind is not told")
