"""A dealer's end of the connection to a player."""

import errno
import re
import socket
import time
from collections.abc import Callable

from mccfr.play.acpc import VERSION, TableError, decoded, shown
from mccfr.play.lines import Lines

_VERSION = re.compile(r"VERSION:2\.0\.[0-9]{1,9}")
_SEND_SECONDS = 30.0


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.  Raises `TableError` where the port cannot be had."""
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


class RemoteSeat:
    """A player who connects, and may connect again where the line is cut: he is then told the last state once more."""

    def __init__(self, listener: socket.socket, name: str, told: Callable[[str], None] = lambda _: None) -> None:
        """`listener` may be another seat's too: who comes goes to the one that waits.  `told` of who comes and goes."""
        self._listener, self._name, self._told = listener, name, told
        self._lines: Lines | None = None

    def connect(self, seconds: float) -> None:
        """Wait for the player; `TimeoutError` where he does not come, `TableError` for another version."""
        until = time.monotonic() + seconds
        while self._lines is None:
            self._listener.settimeout(max(until - time.monotonic(), 0.001))
            connection, address = self._listener.accept()
            lines = Lines(connection)
            try:
                self._lines = self._greeted(lines, max(until - time.monotonic(), 0.001))
            except OSError:  # gone before he has said who he is, or silent: let others come
                lines.close()
            else:
                self._told(f"{self._name} is here, from {address[0]}:{address[1]}")

    def _greeted(self, lines: Lines, seconds: float) -> Lines:
        said = lines.read(seconds)
        text = decoded(said) if said is not None else ""
        if text is None or not _VERSION.fullmatch(text):
            lines.close()
            began = shown(text or "")
            raise TableError(f"{self._name} began with {began}, not with {VERSION}: it speaks another protocol")
        return lines

    def tell(self, line: str) -> None:
        """As `DealerSeat.tell`; a player who is not there is told when he is back."""
        if self._lines is not None:
            try:
                self._lines.write(line, _SEND_SECONDS)
            except OSError:
                self._gone()

    def ask(self, line: str, seconds: float) -> str:
        """As `DealerSeat.ask`."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            if self._lines is None:
                self.connect(left)
                self.tell(line)
                continue
            try:
                data = self._lines.read(left)
                text = None if data is None else decoded(data)
            except TableError as error:
                raise TableError(f"{self._name}: {error}") from None
            except TimeoutError:
                raise
            except OSError:
                data = text = None
            if data is None:
                self._gone()
            elif text is not None:
                return text

    def _gone(self) -> None:
        assert self._lines is not None
        self._lines.close()
        self._lines = None
        self._told(f"{self._name} has hung up: he may connect again")

    def close(self) -> None:
        """Hang up, which is the end of the match."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None
