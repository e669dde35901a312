"""Runs ACPC matches for tests: dealers, players, lost connections."""

import socket
import threading
from contextlib import contextmanager
from functools import cache

from policies import document
from random_policy import policy

from mccfr.config.game_tables import HoldemGame, Menu
from mccfr.games.full_betting import real_rules
from mccfr.matches import bot_sessions
from mccfr.matches.acpc_bot import play_acpc
from mccfr.matches.acpc_session import AcpcSession
from mccfr.matches.dealer import LocalSeat, MatchDealer, MatchPlan
from mccfr.matches.match import Contender
from mccfr.matches.players import OpenedPlayer
from mccfr.matches.programs import PROGRAMS, ProgramSpec
from mccfr.play.policy_seat import PolicySpec, Seat
from mccfr.play.resolving import Effort
from mccfr.play.resolving.resolving_seat import ResolvingSeat
from mccfr.play.resolving.resolving_table import Settings


@cache
def rules(stack=20_000.0):
    return real_rules(HoldemGame(stack=stack))


def plan(hands=40, duplicate=False, seed=3, stack=20_000.0):
    return MatchPlan(stack, (50.0, 100.0), hands, seed, duplicate, ("Ada", "Bob"))


CHEAP = Menu(first=("1p",), later=("allin",), max_bets=1)
SOLVING = {
    "resolving": Settings("river", effort=Effort(2), menu=CHEAP),
    "resolving from the turn": Settings("turn", effort=Effort(2), menu=CHEAP, turn_menu=CHEAP),
    "resolving from the flop": Settings("flop", effort=Effort(2), menu=CHEAP, turn_menu=CHEAP),
}
"""Settings of the random policy's re-solving, with the least computation."""


def player(name, seed=1):
    """Return a player by name: the random policy with or without re-solving, or a program."""
    if name in SOLVING:
        return ResolvingSeat(policy(), SOLVING[name], seed=seed)
    seat = Seat(policy(), seed=seed)
    return seat if name == "policy" else PROGRAMS[name](seat.betting, seed=seed)


def contender_of(source, name="policy", spec=None):
    """Return a policy as a player of a match."""
    return Contender(name, spec or PolicySpec(source), source.side())


def program(name):
    return Contender(name, ProgramSpec(PROGRAMS[name]))


def opened(source, name="holdem", spec=None):
    """Return a policy as an opened player, which commands use."""
    return OpenedPlayer(contender_of(source, name, spec), document(source.config))


def solved_again(monkeypatch):
    """Return a list to which each decision that a seat re-solves adds (number of players left, line)."""
    seen, right = [], ResolvingSeat.public_state

    def noted(seat):
        seen.append((len(seat.state.left), seat.line))
        return right(seat)

    monkeypatch.setattr(ResolvingSeat, "public_state", noted)
    return seen


def session(name, seed=1, finished=lambda _: None):
    return AcpcSession(player(name, seed), rules(), finished)


def dealer(of, names=("policy", "random"), warned=lambda _: None):
    return MatchDealer(of, [LocalSeat(session(name)) for name in names], warned=warned)


@contextmanager
def dealing(of, guests=(), **options):
    """Run a dealer in a thread; yield its port, its results and its messages."""
    ready, texts, came = threading.Event(), [], {}

    def say(text):
        texts.append(text)
        if text.startswith("waiting for"):
            ready.set()

    def deal():
        try:
            came["score"], came["record"] = bot_sessions.run_dealer(of, guests, say=say, warn=texts.append, **options)
        except Exception as error:
            came["error"] = error
            ready.set()

    thread = threading.Thread(target=deal)
    thread.start()
    assert ready.wait(30)
    yield int(texts[-1].rpartition(":")[2]) if texts else 0, came, texts
    thread.join(60)
    assert not thread.is_alive()


def visit(port, finished=lambda _: None, name="policy", **options):
    """Connect a player to a dealer and play the match."""
    play_acpc(session(name, finished=finished), "127.0.0.1", port, **{"patience": 10, "silence": 30, **options})


def scripted(program, of):
    """Return a program as a player of the dealer's own process."""
    betting = bot_sessions._betting(of.game)
    return bot_sessions.ServerPlayer("guest", program(betting, seed=2), of.game, rules())


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def cut(one, port):
    """Play until the dealer asks for an action, then close the connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"VERSION:2.0.0\r\n")
        with connection.makefile("rb") as lines:
            for line in lines:
                if one.answer(line) is not None:
                    one.reconnected()
                    return
