"""Where players come in: whoever connects to a dealer's port, until he has said that he is a player.

Anybody may connect: browsers, scanners of ports, programs that never say a word.  So nobody is waited for alone, each
has a time of his own to begin as a player does, and only so many are there at once.
"""

import errno
import math
import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from mccfr.play.acpc import VERSION, TableError, decoded, shown
from mccfr.play.lines import Few, Lines

MOST_VISITORS = 32
"""Who have come and sit nowhere: where one more comes, the first of them who has not greeted is hung up on."""
GREETING_SECONDS = 10.0
"""In which a visitor says the version of the protocol."""
_VERSION = re.compile(r"VERSION:2\.0\.[0-9]{1,9}")
_INSTANT = 1e-3
Wanted = Callable[["Visitor", str], bool]


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


@dataclass(eq=False)
class Visitor:
    """Who has connected.

    address  of his machine
    until    when he is hung up on, if he has not `greeted`
    """

    lines: Lines
    address: str
    port: int
    until: float
    greeted: bool = False


class Door:
    """A port and who has come to it.  Nobody sees to it but who waits at it."""

    def __init__(
        self, listener: socket.socket, say: Callable[[str], None] = lambda _: None, greeting: float = GREETING_SECONDS
    ) -> None:
        """`listener` is closed with it; `say` tells of who is hung up on; `greeting`: seconds to say the version in."""
        listener.setblocking(False)
        self._listener, self._say, self._greeting = listener, Few(say), greeting
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._visitors = list[Visitor]()
        address, port = listener.getsockname()[:2]
        self.where = f"{address}:{port}"

    def wait(self, seconds: float, wanted: Wanted) -> tuple[Visitor, str]:
        """The first visitor who is wanted, and what he has said: he leaves the door.

        wanted  is asked about each line of visitors who speak the protocol: at first with "", when one has said so

        Raises `TimeoutError` where none comes in time, and what `wanted` raises.
        """
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            soonest = min((visitor.until for visitor in self._visitors), default=until)
            for visitor in self._heard(max(min(soonest, until) - now, 0.0)):
                text = self._said(visitor)
                if text is not None and wanted(visitor, text):
                    self._forget(visitor)
                    return visitor, text
            for visitor in [each for each in self._visitors if each.until <= time.monotonic()]:
                self.hang_up(visitor, f"has not said {VERSION} for {self._greeting:g} s")
        raise TimeoutError("nobody has come in time")

    def visitors(self) -> list[Visitor]:
        """All who have come by now."""
        self._accept()
        return list(self._visitors)

    def hang_up(self, visitor: Visitor, why: str) -> None:
        """Send a visitor away."""
        if visitor in self._visitors:
            self._forget(visitor)
            visitor.lines.close()
            self._say(f"who came from {visitor.address}:{visitor.port} {why}, and is hung up on")

    def close(self) -> None:
        """Hang up on all, and listen no more."""
        for visitor in self._visitors:
            visitor.lines.close()
        self._selector.close()
        self._listener.close()

    def _heard(self, seconds: float) -> list[Visitor]:
        """Who has said something, within so many seconds."""
        waiting = any(visitor.lines.waiting for visitor in self._visitors)
        keys = {key.fd for key, _ in self._selector.select(0 if waiting else seconds)}
        found = [each for each in self._visitors if each.lines.waiting or each.lines.fileno() in keys]
        if self._listener.fileno() in keys:
            self._accept()
        return found

    def _accept(self) -> None:
        """Let in whoever stands outside."""
        for _ in range(2 * MOST_VISITORS):
            try:
                connection, (address, port, *_) = self._listener.accept()
            except BlockingIOError:
                break
            except ConnectionError:
                continue  # gone again
            if len(self._visitors) == MOST_VISITORS:
                self.hang_up(min(self._visitors, key=lambda each: each.greeted), "gives way to others")
            self._visitors.append(Visitor(Lines(connection), address, port, time.monotonic() + self._greeting))
            self._selector.register(self._visitors[-1].lines, selectors.EVENT_READ, None)

    def _said(self, visitor: Visitor) -> str | None:
        """A line of a visitor's; "" where he has just greeted; None for nothing that counts."""
        try:
            line = visitor.lines.read(_INSTANT)
            if line is None:
                self.hang_up(visitor, "is gone")
                return None
            text = decoded(line)
        except TimeoutError:
            return None  # a part of a line
        except (TableError, OSError) as error:
            self.hang_up(visitor, f"is no player ({error})")
            return None
        if visitor.greeted:
            return text
        if text is None or not _VERSION.fullmatch(text):
            self.hang_up(visitor, f"began with {shown(text or '')}, not with {VERSION}")
            return None
        visitor.greeted, visitor.until = True, math.inf
        return ""

    def _forget(self, visitor: Visitor) -> None:
        self._visitors.remove(visitor)
        self._selector.unregister(visitor.lines)
