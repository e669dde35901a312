"""The dealer's side of a player's connection; IP address and dealer's port tell players apart."""

import time
from collections.abc import Callable, Sequence

from mccfr.matches.acpc import TableError, decode_line
from mccfr.matches.dealer_connections import DealerPort, PendingClient
from mccfr.matches.socket_lines import FirstMessages, Lines

_SEND_SECONDS = 30.0


class RemoteSeat:
    """A player over a connection, which may reconnect.

    The protocol has no names. A player is recognised by its IP address and by the dealer's port to which it connects.
    So a reconnecting player gets its former seat. Of several connections from that address, the first that answers the
    current state gets the seat. Two lost players with the same address and port cannot be distinguished, which ends the
    match.
    """

    def __init__(self, port: DealerPort, seats: "list[RemoteSeat]", name: str, say: Callable[[str], None]) -> None:
        """Create the seat of player `name` and append it to `seats`.

        port   the dealer's port to which the player connects
        seats  all seats of the same port so far
        say    called with messages about the connection
        """
        self.port, self.name, self._seats, self._say = port, name, seats, FirstMessages(say)
        self._lines: Lines | None = None
        self._address = ""
        seats.append(self)

    @property
    def is_connected(self) -> bool:
        """True while a player is connected to this seat."""
        return self._lines is not None and not self._lines.cut

    def sit(self, visitor: PendingClient) -> None:
        """Give this seat to a connected client; close the seat's earlier connection, if there is one."""
        if self._lines is not None:
            self._disconnect()
        self._lines, self._address = visitor.lines, visitor.address
        self._say(f"{self.name} has connected from {visitor.address}:{visitor.port}")

    def tell(self, line: str) -> None:
        """Send the hand's state to the player; if disconnected, `ask` sends the current one.

        line  the state as a MATCHSTATE line
        """
        if self._lines is not None:
            try:
                self._lines.write(line, _SEND_SECONDS)
            except OSError:
                self._disconnect()

    def ask(self, line: str, seconds: float) -> str:
        """Wait for the player's next message, also over a new connection, and return it.

        line     current state, sent to a player that reconnects
        seconds  time limit

        Raises `TimeoutError` after `seconds`, and `TableError` for an invalid line or if reconnecting players cannot
        be told apart.
        """
        until = time.monotonic() + seconds
        clients = self.port.visitors()
        if clients and all(seat.is_connected for seat in self._seats):
            for visitor in clients:
                self.port.hang_up(visitor, "finds no free seat")
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
                self._disconnect()
            elif text is not None:
                return text
        return self._wait_for_return(line, until - time.monotonic())

    def _wait_for_return(self, line: str, seconds: float) -> str:
        """Wait until the player has reconnected and answered the state `line`; return the answer.

        Clients with another IP address are disconnected.

        Raises `TimeoutError` after `seconds`, and `TableError` if a client connects while another player with the same
        address and port is disconnected too.
        """

        def wanted(visitor: PendingClient, text: str) -> bool:
            if text:
                return text.startswith(f"{line}:")
            if visitor.address != self._address:
                self.port.hang_up(visitor, f"is not {self.name}, whose address is {self._address}")
                return False
            self._check_unambiguous()
            try:
                visitor.lines.write(line, _SEND_SECONDS)
            except OSError:
                self.port.hang_up(visitor, "has disconnected")
            return False

        visitor, text = self.port.wait(seconds, wanted)
        self.sit(visitor)
        for other in self.port.visitors():
            if other.greeted:
                self.port.hang_up(other, "finds no free seat")
        return text

    def _check_unambiguous(self) -> None:
        """Raise `TableError` if another player with this seat's port and IP address is disconnected too."""
        for other in self._seats:
            if other is not self and other._address == self._address and not other.is_connected:
                raise TableError(
                    f"{self.name} and {other.name}, both from {self._address}, have disconnected, and a client from "
                    "there may be either: give each player a port of its own (--port twice)"
                )

    def _disconnect(self) -> None:
        self.close()
        self._say(f"{self.name} has disconnected: it may connect again")

    def close(self) -> None:
        """Close the connection to the player, if there is one."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def seat_all(seats: Sequence[RemoteSeat], seconds: float) -> None:
    """Wait until every seat has a player; each new client gets the first free seat of its port.

    Raises `TableError` unless all players connect within `seconds`.
    """
    until = time.monotonic() + seconds
    while free := [seat for seat in seats if not seat.is_connected]:
        try:
            visitor, _ = free[0].port.wait(until - time.monotonic(), lambda *_: True)
        except TimeoutError:
            raise TableError(f"{free[0].name} has not connected within {seconds:g} s: start both again") from None
        next(seat for seat in seats if seat.port is free[0].port and not seat.is_connected).sit(visitor)
