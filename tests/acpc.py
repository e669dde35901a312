"""Matches by the ACPC protocol in tests: dealers, players and hands that differ in what a test is about."""

from functools import cache

from random_policy import policy

from mccfr.config.games import HoldemGame, Menu
from mccfr.games.real_rules import real_rules
from mccfr.play.acpc_session import AcpcSession
from mccfr.play.dealer import Dealer, LocalSeat, MatchPlan
from mccfr.play.programs import PROGRAMS
from mccfr.play.resolving import Effort, ResolvingSeat, Settings
from mccfr.play.seat import Seat


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
    "resolving the flop alone": Settings("flop", effort=Effort(2), menu=CHEAP, turn_menu=CHEAP, limited=True),
}
"""The random policy, its hands solved again as cheaply as can be."""


def player(name, seed=1):
    """The random policy, or a program."""
    if name in SOLVING:
        return ResolvingSeat(policy(), SOLVING[name], seed=seed)
    seat = Seat(policy(), seed=seed)
    return seat if name == "policy" else PROGRAMS[name](seat.betting, seed=seed)


def session(name, seed=1, finished=lambda _: None):
    return AcpcSession(player(name, seed), rules(), finished)


def dealer(of, names=("policy", "random"), warned=lambda _: None):
    return Dealer(of, [LocalSeat(session(name)) for name in names], warned=warned)
