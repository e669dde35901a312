"""Simple opponent programs; the chips that each wins from a policy reveal typical weaknesses."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from mccfr.common.user_code import calling
from mccfr.config import plugins
from mccfr.config.value_limits import did_you_mean
from mccfr.play.player import Betting, Player, PlayerSpec, Program

_MOST_RAISES = 20
"""Most raises on a street by programs that always raise, since deep games would last too long otherwise."""
_ODD = 0.0137
"""Bet size between the smallest (0) and largest (1) raise: with 200 big blinds, one outside all usual menus."""
_ODD_RAISES = 4


class AlwaysCall(Program):
    """Checks and calls; raises if neither is legal."""

    blind = True

    def act(self, random: Random) -> str:
        """Return a check or call if legal, otherwise a raise."""
        return "c" if self.may_call else self.raises()[0]


class AlwaysFold(Program):
    """Folds to every bet, and checks otherwise."""

    blind = True

    def act(self, random: Random) -> str:
        """Return a fold if facing a bet, otherwise a check."""
        return "f" if self.may_fold else "c"


class AlwaysAllIn(Program):
    """Makes the largest legal bet or raise, otherwise calls."""

    blind = True

    def act(self, random: Random) -> str:
        """Return the largest raise, otherwise a call."""
        return (self.raises((1.0,)) or ["c"])[0]


class Uniform(Program):
    """Folds, calls or raises with equal probability, as far as these are legal.

    The raise is the smallest, the largest or one of random size.
    """

    blind = True

    def act(self, random: Random) -> str:
        """Return a random action."""
        kinds = ["f"] * self.may_fold + ["c"] * self.may_call
        kinds += self.raises((random.choice((0.0, random.random(), 1.0)),))
        return random.choice(kinds)


class MinimumRaise(Program):
    """Makes the smallest bet or raise; calls once the players have made twenty on a street."""

    blind = True

    most, share = _MOST_RAISES, 0.0

    def act(self, random: Random) -> str:
        """Return a bet or raise; a call after `self.most` bets and raises on the street.

        Bets and raises of all players count. The size is the class's `share`: from 0, the smallest legal raise, to 1,
        the largest. Without a legal raise the program calls; without a legal call it raises.
        """
        last = self.line.removesuffix("/").rpartition("/")[2] if not self.line.endswith("/") else ""
        raised = last.count("r") + last.count("b")
        bets = self.raises((self.share,)) if raised < self.most or not self.may_call else []
        return (bets or ["c"])[0]


class OddSize(MinimumRaise):
    """Bets and raises a size that usual trees lack; calls after four on a street.

    Bets and raises of all players count. The size is 1.37 % of the way from the smallest to the largest legal raise.
    """

    most, share = _ODD_RAISES, _ODD


PROGRAMS: dict[str, type[Program]] = {
    "always-call": AlwaysCall,
    "always-fold": AlwaysFold,
    "always-all-in": AlwaysAllIn,
    "random": Uniform,
    "min-raise": MinimumRaise,
    "odd-size": OddSize,
}
"""Built-in programs by their names for `mccfr match`."""


@dataclass(frozen=True)
class ProgramSpec(PlayerSpec):
    """Factory of players of one program, which play any game."""

    program: type[Program]

    @property
    def game(self) -> None:
        """None, because a program plays any game."""

    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """Return a new player; `UserCodeError` if a user's class fails.

        betting  action translation of the game that the player follows, such as a `Translation`
        seed     of the player's random choices
        """
        with calling(self.program):
            return self.program(betting, seed=seed)

    def fingerprint(self) -> str:
        """Return a hash of the program's source."""
        return sha256(inspect.getsource(self.program).encode()).hexdigest()


def find_program(name: str, search_directories: Sequence[Path] = ()) -> type[Program] | None:
    """Return a program by its name in `PROGRAMS` or as `module:Class`; None if unknown.

    search_directories  directories searched first for a module

    Raises `ValueError` if a module or class cannot be loaded, or is no `Program`.
    """
    if name in PROGRAMS:
        return PROGRAMS[name]
    if not plugins.is_reference(name):
        return None
    program = plugins.load(plugins.PROGRAMS, name, "program", search_directories)
    if not (isinstance(program, type) and issubclass(program, Program)):
        raise ValueError(f"program {name!r} is not derived from mccfr.play.Program")
    return program


def known_programs(name: str) -> str:
    """Return all programs' names as text for an error message, with a suggestion for the misspelt `name`."""
    return ", ".join(PROGRAMS) + ", or module:Class" + did_you_mean(name, PROGRAMS)
