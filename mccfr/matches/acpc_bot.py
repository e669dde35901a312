"""Client that plays matches at a server with the protocol of the ACPC, a poker competition."""

import socket
import time
from collections.abc import Callable

from mccfr.matches.acpc import VERSION, TableError
from mccfr.matches.acpc_session import AcpcSession
from mccfr.matches.socket_lines import Lines

_WAITS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts to connect; the last value repeats."""


def play_acpc(
    session: AcpcSession,
    host: str,
    port: int,
    *,
    patience: float = 60.0,
    silence: float = 600.0,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Connect to an ACPC server, and play until it ends the stream.

    session   plays the match: follows its hands and answers for a player
    patience  seconds to connect, at first and after a lost connection
    silence   seconds without a message after which the match ends
    say       called with messages about connections

    If a connection that has begun a hand ends in the middle of one, or by an error, the bot reconnects. If it ended by
    an error between hands and no server listens any more, the match counts as ended.

    Raises `TableError` if no server listens, the server closes the connection before the first hand, stays silent
    between hands, or breaks the protocol. Raises `ConnectionError`, with the number of the hand, if the server is lost
    or stays silent within a hand.
    """
    address, connected_before = f"{host}:{port}", False
    while True:
        try:
            lines = _connected(host, port, patience, say)
        except TableError as error:
            if not connected_before:
                raise
            if session.between_hands:
                return  # the match was over, and the server has stopped
            raise _lost(session, str(error)) from None
        say(f"connected to {address}")
        got_state = False
        try:
            lines.write(VERSION, silence)
            while (line := lines.read(silence)) is not None:
                answer = session.answer(line)
                got_state = got_state or line.startswith(b"MATCHSTATE")
                if answer is not None:
                    lines.write(answer, silence)
            cause = None if session.between_hands else "the server closed the connection"
        except TimeoutError:
            raise _lost(session, f"{address} has sent nothing for {silence:g} s: the match ends") from None
        except TableError as error:
            raise TableError(f"{address}: {error}") from None
        except OSError as error:
            cause = error.strerror or str(error)
        finally:
            lines.close()
        if cause is None and (got_state or connected_before):
            return
        if not got_state:
            raise _lost(session, _silent(address, cause))
        place = "" if session.between_hands else f" in the middle of hand {session.hand}"
        say(f"the connection to {address} was lost{place} ({cause}): trying again")
        session.reconnected()
        connected_before = True


def _lost(session: AcpcSession, text: str) -> Exception:
    """Return the error for a lost server: a `ConnectionError` within a hand, otherwise a `TableError`.

    text  message of the error, to which the number of an unfinished hand is added
    """
    if session.between_hands:
        return TableError(text)
    return ConnectionError(f"{text}; hand {session.hand} was not finished")


def _silent(address: str, cause: str | None) -> str:
    """Return the message for a connection that ended before any MATCHSTATE line.

    cause  reason of the disconnection; None if the server closed the connection between hands
    """
    if cause is None:
        return (
            f"{address} closed the connection before the first hand: it may need another version of the protocol than "
            f"{VERSION.partition(':')[2]}"
        )
    return f"{address} closes every connection: {cause}"


def _connected(host: str, port: int, patience: float, say: Callable[[str], None]) -> Lines:
    """Connect to a server and return the connection; on failure try again for `patience` seconds.

    The waits between attempts are `_WAITS`.

    say  called with one message after the first failure

    Raises `TableError` after that time, and at once for an unknown host.
    """
    until, tries = time.monotonic() + patience, 0
    while True:
        try:
            return Lines(socket.create_connection((host, port), timeout=max(until - time.monotonic(), 0.1)))
        except OSError as error:
            wait = _WAITS[min(tries, len(_WAITS) - 1)]
            tries += 1
            reason = error.strerror or str(error)
            if time.monotonic() + wait > until or isinstance(error, socket.gaierror):
                raise TableError(f"no server answers at {host}:{port}: {reason}") from None
            if tries == 1:
                left = until - time.monotonic()
                end = time.strftime("%H:%M:%S", time.localtime(time.time() + left))
                say(f"no server answers at {host}:{port} ({reason}): trying until {end}, for {left:.0f} s (--patience)")
            time.sleep(wait)
