"""Base classes of players, which receive and record a hand's cards and actions, and choose actions.

A table calls `deal`, then `board`, `see` and `choose` during the hand. Clients of other servers do the same with the
server's messages.
"""

from abc import ABC, abstractmethod
from random import Random
from typing import Any, ClassVar

from mccfr.common.arguments import checked
from mccfr.common.user_code import UserCodeError, calling, function_name, is_foreign
from mccfr.games.betting import BettingRules, BettingState, amount_text, may_call, raise_bounds
from mccfr.games.game import Game
from mccfr.games.identity_translation import IdentityTranslation, TreeState
from mccfr.games.translation import Translation, actions_of

Betting = Translation | IdentityTranslation
"""The real betting of a game (`mccfr.games.translation.real_betting`)."""
State = BettingState | TreeState
"""Public state of the betting with a player to act."""


class Player(ABC):
    """A player of a poker game, hand after hand.

    Players are numbered by their seat in the hand. In hold'em of two players 0 is the big blind and 1 the button. With
    more, 0 is the small blind, 1 the big blind and the last one the button.

    Attributes:
        betting:  the betting rules of the game with all legal amounts, unlike those of a policy's tree
        position: number of the player in this hand
        hand:     hole cards, such as "AsKd"; "" before the first hand, and for a program that ignores them
        cards:    all board cards so far, such as "Qs7h2d"; "" before any is dealt
        line:     all actions of this hand, such as "r300c/cr500": `rN` has N chips put in over the whole hand
        state:    betting state at the table; an `int` if no player acts any more
        random:   generator of this hand's random numbers
        seed:     seed of the random numbers of all hands
    """

    def __init__(self, betting: Betting, *, seed: int = 0) -> None:
        """Take the betting rules of the game and the seed of all hands' random numbers."""
        self.betting = betting
        self.seed, self._hands = seed, 0
        self.position, self.hand, self.cards = 0, "", ""
        self._begin()

    def _begin(self) -> None:
        """Reset the state for a new hand."""
        self.line = ""
        self.state: State | int
        self.state, self.readings = self.betting.start()
        self.random = Random(f"{self.seed} {self._hands}")

    def prepare(self) -> None:  # noqa: B027  (most players have nothing to prepare)
        """Compile the numba functions that the player needs, before a hand is dealt."""

    @checked
    def reseed(self, seed: int) -> None:
        """Set another seed of the player's random numbers, effective from the next hand."""
        self.seed = seed

    @checked
    def deal(self, position: int, hand: str, number: int | None = None) -> None:
        """Begin a hand.

        position  the player's number in this hand; in hold'em of two 0 is the big blind and 1 the button
        hand      hole cards, such as "AsKd"
        number    number of the hand, which with the seed determines its random numbers; None: one more than the last

        Raises `ValueError` for an invalid position.
        """
        if not 0 <= position < self.betting.players:
            raise ValueError(f"position = {position}: it must be from 0 to {self.betting.players - 1}")
        self._hands = self._hands + 1 if number is None else number
        self.position, self.hand, self.cards = position, hand, ""
        self._begin()

    @checked
    def board(self, cards: str) -> None:
        """Set `cards`, all board cards so far, such as "Qs7h2d".

        Raises `ValueError` if they do not begin with the cards of the last call in this hand.
        """
        if not cards.startswith(self.cards):
            raise ValueError(f"the board {cards!r} does not begin with the cards already dealt, {self.cards!r}")
        self.cards = cards

    @property
    def to_act(self) -> int | None:
        """Number of the player to act, from 0; None if the betting is over."""
        return None if isinstance(self.state, int) else self.state.player

    @checked
    def see(self, action: str) -> None:
        """Record an action: `c`, `f`, `b` or `rN`, N chips over the whole hand; `ValueError` if illegal.

        `b` is a bet of the only legal size, in games such as Kuhn poker.
        An own action that did not come from `choose` is recorded like an opponent's.
        """
        state = self.state
        if isinstance(state, int):
            raise ValueError(f"{action!r} after {self.line!r}: the betting is over")
        after = self._applied(state, action)
        self._seen(state, action)
        self._note(action, after)

    @checked
    def see_line(self, line: str) -> None:
        """Record those actions of the hand's whole line that are not yet recorded.

        line  all actions of the hand so far; `rN` has N chips put in over the whole hand

        Raises `ValueError` if the line does not extend the recorded one, or is illegal.
        """
        known, seen = line.replace("/", ""), self.line.replace("/", "")
        if not known.startswith(seen):
            raise ValueError(f"the line {line!r} does not continue {self.line!r}")
        for action in actions_of(known[len(seen) :]):
            self.see(action)

    @checked
    def choose(self, seed: int | None = None) -> str:
        """Choose and record the player's action, which is legal at the table, and return it.

        seed  seed of this choice only; None: the hand's own random numbers

        Raises `ValueError` if it is not the player's turn, if the street's board is missing, or for an illegal action.
        """
        state = self.state
        if isinstance(state, int) or state.player != self.position:
            raise ValueError(f"after {self.line!r} it is not the turn of position {self.position}")
        action = self._chosen(state, self.random if seed is None else Random(seed))
        self._note(action, self._applied(state, action))
        return action

    def _applied(self, state: Any, action: str) -> State | int:
        return self.betting.apply(state, action, f"after {self.line!r}")

    def _note(self, action: str, after: State | int) -> None:
        before = self.state
        assert not isinstance(before, int)
        self.line += action + "/" * (not isinstance(after, int) and after.street != before.street)
        self.state = after

    def _seen(self, state: State, action: str) -> None:
        """Receive an action that `choose` did not return, before it is recorded; subclasses override this.

        state   betting state at the table before the action
        action  `c`, `f`, `b` or `rN`, N chips put in over the whole hand
        """
        del state, action

    @abstractmethod
    def _chosen(self, state: State, random: Random) -> str:
        """Return the player's action at the betting state `state`; subclasses define it.

        Subclasses may update their own record of the hand here. `random` gives the random numbers of the choice.
        """


class PlayerSpec(ABC):
    """Creates players: from a policy with play options, or from a program.

    Tables, matches, bots and dealers use only this interface and `Player`, so any kind of player can take a seat.
    """

    @property
    @abstractmethod
    def game(self) -> Game | None:
        """The game that the created players play; None if they play any game."""

    @abstractmethod
    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """Return a new player.

        betting  betting rules of the table's game
        seed     seed of the player's random numbers in all hands
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text of all settings that affect play, except the strategy and the seed."""


class Program(Player):
    """A player without a known strategy. User-defined programs derive from it and define `act`.

    blind  True: the program ignores its hole cards. Tables then hide them, and evaluations may average over all hands
    """

    blind: ClassVar[bool] = False

    @abstractmethod
    def act(self, random: Random) -> str:
        """Return the action to take: `c`, `f`, `b` or `rN`, N chips put in over the whole hand.

        `b` is a bet of the only legal size, in games such as Kuhn poker. The attributes of `Player` have all known
        information; `random` is for random choices.
        """

    def _chosen(self, state: State, random: Random) -> str:
        """Return the action of `act`; `UserCodeError` if a user's program raises or returns an illegal one."""
        if not is_foreign(self.act):
            return self.act(random)
        where = f" after the line {self.line!r}"
        with calling(self.act, where):
            action = self.act(random)
        if not isinstance(action, str):
            raise UserCodeError(f"{function_name(self.act)} returned {action!r}{where}; c, f, b or rN is needed")
        try:
            self._applied(state, action)
        except ValueError as error:
            raise UserCodeError(f"{function_name(self.act)} returned {action!r}: {error}") from None
        return action

    @property
    def may_fold(self) -> bool:
        """True if the player faces a bet, so that folding is legal."""
        return not isinstance(self.state, int) and self.state.facing

    @property
    def may_call(self) -> bool:
        """True if a check or call is legal."""
        state, rules = self.state, self._rules
        if isinstance(state, int):
            return False
        return "c" in self._listed if rules is None else may_call(rules, state)  # type: ignore[arg-type]

    @checked
    def raises(self, shares: tuple[float, ...] = (0.0, 1.0)) -> list[str]:
        """Return legal bets or raises as actions, such as "r600"; by default the smallest and the largest.

        shares  size of each one to return, from 0 for the smallest to 1 for the largest legal amount

        Returns [] if no bet or raise is legal.
        """
        state, rules = self.state, self._rules
        if isinstance(state, int):
            return []
        if rules is None:
            listed = [action for action in self._listed if action not in ("c", "f")]
            return [listed[round(share * (len(listed) - 1))] for share in shares] if listed else []
        bounds = raise_bounds(rules, state)  # type: ignore[arg-type]
        if bounds is None:
            return []
        low, high = bounds
        amounts = [low + share * (high - low) for share in shares]
        whole = float(low).is_integer() and float(high).is_integer()
        return [f"r{amount_text(float(round(amount)) if whole else amount)}" for amount in amounts]

    @property
    def _rules(self) -> BettingRules | None:
        return self.betting.rules if isinstance(self.betting, Translation) else None

    @property
    def _listed(self) -> list[str]:
        """All legal actions, for games whose tree contains every bet."""
        assert isinstance(self.betting, IdentityTranslation) and isinstance(self.state, TreeState)
        return self.betting.actions(self.state)
