"""The dealer's side of a connection to a player, identified by port and address."""

import time
from collections.abc import Callable, Sequence

from mccfr.matches.acpc import TableError, decode_line
from mccfr.matches.dealer_connections import DealerPort, PendingClient
from mccfr.matches.socket_lines import FirstMessages, Lines

_SEND_SECONDS = 30.0


class RemoteSeat:
    """A player over a connection, who may reconnect.

    The protocol has no names. A reconnecting player gets the seat of its port and IP address. Of several connections
    from that address, the first that answers the current state gets the seat. Two lost players with the same address
    and port cannot be distinguished, which ends the match.
    """

    def __init__(self, port: DealerPort, seats: "list[RemoteSeat]", name: str, say: Callable[[str], None]) -> None:
        """Join the list `seats` of the port; `say` is called when the player connects or leaves."""
        self.door, self.name, self._seats, self._say = port, name, seats, FirstMessages(say)
        self._lines: Lines | None = None
        self._address = ""
        seats.append(self)

    @property
    def here(self) -> bool:
        """A player with a live connection has this seat."""
        return self._lines is not None and not self._lines.cut

    def sit(self, visitor: PendingClient) -> None:
        """Give this seat to a connected client."""
        if self._lines is not None:
            self._gone()
        self._lines, self._address = visitor.lines, visitor.address
        self._say(f"{self.name} has connected from {visitor.address}:{visitor.port}")

    def tell(self, line: str) -> None:
        """Send a state; a disconnected player gets it after reconnecting."""
        if self._lines is not None:
            try:
                self._lines.write(line, _SEND_SECONDS)
            except OSError:
                self._gone()

    def ask(self, line: str, seconds: float) -> str:
        """Return the player's message, waiting for reconnection if needed.

        Raises `TableError` for an invalid line, and if reconnecting players cannot be told apart.
        """
        until = time.monotonic() + seconds
        came = self.door.visitors()
        if came and all(seat.here for seat in self._seats):
            for visitor in came:
                self.door.hang_up(visitor, "finds no free seat")
        while self._lines is not None:
            try:
                data = self._lines.read(until - time.monotonic())
                text = None if data is None else decode_line(data)
            except TableError as error:
                raise TableError(f"{self.name}: {error}") from None
            except TimeoutError:
                raise
            except OSError:
                data = text = None
            if data is None:
                self._gone()
            elif text is not None:
                return text
        return self._back(line, until - time.monotonic())

    def _back(self, line: str, seconds: float) -> str:
        """Wait until the player reconnects, and return its answer."""

        def wanted(visitor: PendingClient, text: str) -> bool:
            if text:
                return text.startswith(f"{line}:")
            if visitor.address != self._address:
                self.door.hang_up(visitor, f"is not {self.name}, whose address is {self._address}")
                return False
            self._alone()
            try:
                visitor.lines.write(line, _SEND_SECONDS)
            except OSError:
                self.door.hang_up(visitor, "has disconnected")
            return False

        visitor, text = self.door.wait(seconds, wanted)
        self.sit(visitor)
        for other in self.door.visitors():
            if other.greeted:
                self.door.hang_up(other, "finds no free seat")
        return text

    def _alone(self) -> None:
        """Raise `TableError` if the new connection could belong to another disconnected player."""
        for other in self._seats:
            if other is not self and other._address == self._address and not other.here:
                raise TableError(
                    f"{self.name} and {other.name}, both from {self._address}, have disconnected, and a client from "
                    "there may be either: give each player a port of its own (--port twice)"
                )

    def _gone(self) -> None:
        self.close()
        self._say(f"{self.name} has disconnected: it may connect again")

    def close(self) -> None:
        """Close the connection, which ends the match for the player."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def seat_all(seats: Sequence[RemoteSeat], seconds: float) -> None:
    """Wait for all players; each new client gets the first free seat of its port.

    Raises `TableError` if a player does not connect in time.
    """
    until = time.monotonic() + seconds
    while free := [seat for seat in seats if not seat.here]:
        try:
            visitor, _ = free[0].door.wait(until - time.monotonic(), lambda *_: True)
        except TimeoutError:
            raise TableError(f"{free[0].name} has not connected within {seconds:g} s: there is no match") from None
        next(seat for seat in seats if seat.door is free[0].door and not seat.here).sit(visitor)
