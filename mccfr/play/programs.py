"""Programs to play against, from the simplest on: what each of them takes from a policy says something about it."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from mccfr.config import outside
from mccfr.config.suggest import did_you_mean
from mccfr.play.player import Betting, Player, PlayerSpec, Program
from mccfr.user_code import calling

_MOST_RAISES = 20
"""On a street by those who always raise: in deep games they would not end otherwise."""
_ODD = 0.0137
"""Of the way from the smallest raise to the largest: with 200 big blinds, a bet that no menu has."""
_ODD_RAISES = 4


class AlwaysCall(Program):
    """Checks and calls; raises where the game has neither."""

    blind = True

    def act(self, random: Random) -> str:
        """As `Program.act`."""
        return "c" if self.may_call else self.raises()[0]


class AlwaysFold(Program):
    """Folds to every bet, and checks."""

    blind = True

    def act(self, random: Random) -> str:
        """As `Program.act`."""
        return "f" if self.may_fold else "c"


class AlwaysAllIn(Program):
    """The largest bet there is, else the call."""

    blind = True

    def act(self, random: Random) -> str:
        """As `Program.act`."""
        return (self.raises((1.0,)) or ["c"])[0]


class Uniform(Program):
    """Folds, calls or raises with one probability each; the raise is the smallest, the largest or any between."""

    blind = True

    def act(self, random: Random) -> str:
        """As `Program.act`."""
        kinds = ["f"] * self.may_fold + ["c"] * self.may_call
        kinds += self.raises((random.choice((0.0, random.random(), 1.0)),))
        return random.choice(kinds)


class MinimumRaise(Program):
    """The smallest bet or raise there is, twenty times on a street, then the call."""

    blind = True

    most, share = _MOST_RAISES, 0.0

    def act(self, random: Random) -> str:
        """As `Program.act`."""
        last = self.line.removesuffix("/").rpartition("/")[2] if not self.line.endswith("/") else ""
        raised = last.count("r") + last.count("b")
        found = self.raises((self.share,)) if raised < self.most or not self.may_call else []
        return (found or ["c"])[0]


class OddSize(MinimumRaise):
    """Bets and raises of a size that no tree has, four times on a street, then the call."""

    most, share = _ODD_RAISES, _ODD


PROGRAMS: dict[str, type[Program]] = {
    "always-call": AlwaysCall,
    "always-fold": AlwaysFold,
    "always-all-in": AlwaysAllIn,
    "random": Uniform,
    "min-raise": MinimumRaise,
    "odd-size": OddSize,
}
"""By the names that `mccfr match` takes."""


@dataclass(frozen=True)
class ProgramSpec(PlayerSpec):
    """A program: it plays any game."""

    program: type[Program]

    @property
    def game(self) -> None:
        """As `PlayerSpec.game`: any."""

    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """As `PlayerSpec.player`; `UserCodeError` where a user's class cannot be made."""
        with calling(self.program):
            return self.program(betting, seed=seed)

    def fingerprint(self) -> str:
        """As `PlayerSpec.fingerprint`, by the program's source."""
        return sha256(inspect.getsource(self.program).encode()).hexdigest()


def program_named(name: str, beside: Sequence[Path] = ()) -> type[Program] | None:
    """The program of a name: one of `PROGRAMS`, `module:Class`, or an entry point's; None where it is none of these.

    beside  directories in which a module is looked for first

    Raises `ValueError` where a module or class cannot be had, or is no `Program`.
    """
    if name in PROGRAMS:
        return PROGRAMS[name]
    if outside.is_reference(name):
        found = outside.load(outside.PROGRAMS, name, "program", beside)
    else:
        found = outside.find(outside.PROGRAMS, name)
    if found is None:
        return None
    if not (isinstance(found, type) and issubclass(found, Program)):
        raise ValueError(f"program {name!r} is not derived from mccfr.play.Program")
    return found


def known_programs(name: str) -> str:
    """The names there are, and the one that may have been meant by another."""
    known = [*PROGRAMS, *outside.installed(outside.PROGRAMS)]
    return ", ".join(known) + ", or module:Class" + did_you_mean(name, known)
