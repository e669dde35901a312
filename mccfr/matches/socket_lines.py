"""Reads and writes text lines over a socket with time limits, and limits the number of log messages."""

import select
import socket
import time
from collections import deque
from collections.abc import Callable

from mccfr.matches.acpc import MOST_BYTES, TableError

_READ_BYTES = 1 << 16


class Lines:
    """Reads and writes text lines over a socket connection, with time limits."""

    def __init__(self, connection: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        """Take over an open connection, which `close` closes.

        clock  returns the time in seconds
        """
        self._connection, self._clock = connection, clock
        self._whole, self._begun = deque[bytes](), b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, seconds: float) -> bytes | None:
        """Return the next line with its newline; None if the stream has ended, even within a line.

        seconds  time limit

        Raises `TimeoutError` if no line is returned in time, `TableError` for an overlong line, and `OSError` if the
        connection fails.
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
        raise TimeoutError(f"the other program has sent no whole line of text within {seconds:.3g} s")

    @property
    def waiting(self) -> bool:
        """True if a complete line was received and not yet read."""
        return bool(self._whole)

    @property
    def cut(self) -> bool:
        """True if the peer has closed the connection; lines received before may still be read."""
        poll = select.poll()
        poll.register(self._connection, select.POLLRDHUP)
        return bool(poll.poll(0))

    def fileno(self) -> int:
        """Return the file descriptor of the connection."""
        return self._connection.fileno()

    def write(self, line: str, seconds: float) -> None:
        """Send a line with CR LF; `OSError` if that fails or takes longer than `seconds`."""
        self._connection.settimeout(seconds)
        self._connection.sendall(line.encode("ascii") + b"\r\n")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class FirstMessages:
    """Passes the first `most` messages and then one notice to a function, and ignores all later messages.

    So the clients of a server cannot flood its output.
    """

    def __init__(self, say: Callable[[str], None], most: int = 100) -> None:
        self._say, self._left = say, most

    def __call__(self, text: str) -> None:
        """Pass a message to the function, unless `most` messages have been passed.

        After the last of these, the function also gets the notice that further messages are not shown.
        """
        if self._left > 0:
            self._say(text)
            self._left -= 1
            if not self._left:
                self._say("further messages of this kind are not shown")
