"""Whoever sits at a table: what he is told, what he is asked, and what he remembers of a hand's betting.

A table calls `deal`, then `board`, `see` and `choose` as the hand goes; a program for a server of other people's does
the same with what it reads from there.
"""

from abc import ABC, abstractmethod
from random import Random
from typing import Any, ClassVar

from mccfr.arguments import checked
from mccfr.games.betting import BettingRules, BettingState, amount_text, may_call, raise_bounds
from mccfr.games.game import Game
from mccfr.games.in_tree import InTree, TreeState
from mccfr.games.translation import Translation, actions_of
from mccfr.user_code import UserCodeError, calling, function_name, is_foreign

Betting = Translation | InTree
"""The real betting of a game (`mccfr.games.translation.real_betting`)."""
State = BettingState | TreeState
"""What both players see of the betting where somebody is to act."""


class Player(ABC):
    """A player of a two-player game of the poker family, hand after hand.

    Positions are those of the game: in hold'em 0 is the big blind, 1 the button.

    Attributes:
        betting:  the real betting of the game
        position: the player's, of this hand
        hand:     his hole cards, as text
        cards:    the board as it lies, as text
        line:     the real betting of this hand
        state:    the real state of the betting; an `int` where nobody acts any more
        random:   the hand's own stream, for whatever the player draws
        seed:     of all hands' streams
    """

    def __init__(self, betting: Betting, *, seed: int = 0) -> None:
        """Sit down; `seed` is of what is drawn."""
        self.betting = betting
        self.seed, self._hands = seed, 0
        self.position, self.hand, self.cards = 0, "", ""
        self._begin()

    def _begin(self) -> None:
        """Forget the last hand."""
        self.line = ""
        self.state: State | int
        self.state, self.readings = self.betting.start()
        self.random = Random(f"{self.seed} {self._hands}")

    def prepare(self) -> None:  # noqa: B027  (most players have nothing to prepare)
        """Compile the kernels that the player needs at the table, before a hand is dealt."""

    @checked
    def reseed(self, seed: int) -> None:
        """Draw from another seed's streams, from the next hand on."""
        self.seed = seed

    @checked
    def deal(self, position: int, hand: str, number: int | None = None) -> None:
        """Begin a hand.

        position  of the player
        hand      his hole cards, such as "AsKd"
        number    of the hand: with the seed it names the stream of what is drawn; None: one more than the last

        Raises `ValueError` for another position.
        """
        if position not in (0, 1):
            raise ValueError(f"position = {position}: it must be 0 or 1")
        self._hands = self._hands + 1 if number is None else number
        self.position, self.hand, self.cards = position, hand, ""
        self._begin()

    @checked
    def board(self, cards: str) -> None:
        """The whole board as it lies now, such as "Qs7h2d"; `ValueError` where it does not go on from the last one."""
        if not cards.startswith(self.cards):
            raise ValueError(f"the board {cards!r} does not begin with {self.cards!r}, which lies already")
        self.cards = cards

    @property
    def to_act(self) -> int | None:
        """Position of the player to act; None where the betting is over."""
        return None if isinstance(self.state, int) else self.state.player

    @checked
    def see(self, action: str) -> None:
        """Somebody has acted: `c`, `f`, `b` or `rN`, N chips over the whole hand; `ValueError` where that is not legal.

        An own action that `choose` has not chosen is seen like another's.
        """
        state = self.state
        if isinstance(state, int):
            raise ValueError(f"{action!r} after {self.line!r}: the betting is over")
        after = self._applied(state, action)
        self._seen(state, action)
        self._note(action, after)

    @checked
    def see_line(self, line: str) -> None:
        """The whole line of the hand as it stands now, of which what is new is seen.

        Raises `ValueError` where it does not go on from what was seen, or is not legal.
        """
        known, seen = line.replace("/", ""), self.line.replace("/", "")
        if not known.startswith(seen):
            raise ValueError(f"the line {line!r} does not go on from {self.line!r}")
        for action in actions_of(known[len(seen) :]):
            self.see(action)

    @checked
    def choose(self, seed: int | None = None) -> str:
        """The player's action, legal in the real game; it is taken as done.

        seed  of this choice alone; None: the hand's own stream

        Raises `ValueError` where it is not his turn, where he is not told the board of the street, and for an action
        that is not legal.
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
        """An action is about to be noted that was not chosen here."""
        del state, action

    @abstractmethod
    def _chosen(self, state: State, random: Random) -> str:
        """The action of a decision of his own; what he remembers of it is done."""


class PlayerSpec(ABC):
    """What players are made from: a policy and how it is to be played, or a program.

    Tables, matches, bots and dealers know no more of their players than this and `Player`, so that whatever chooses
    actions in another way sits down where a policy does.
    """

    @property
    @abstractmethod
    def game(self) -> Game | None:
        """The game that it plays; None where it plays any."""

    @abstractmethod
    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """A player who has just sat down; `betting` is that of the table's game."""

    @abstractmethod
    def fingerprint(self) -> str:
        """What his play follows from beside his game's strategy and the seed, as text: the same for the same play."""


class Program(Player):
    """A player whose strategy nobody knows but himself.  Those of users derive from it and define `act`.

    blind  whether he acts without his hole cards; tables do not show them to him then, and whoever evaluates may take
           the mean over all he may have
    """

    blind: ClassVar[bool] = False

    @abstractmethod
    def act(self, random: Random) -> str:
        """The action to take: `c`, `f`, `b` or `rN`.

        What he knows are his attributes; `random` is for what he draws.
        """

    def _chosen(self, state: State, random: Random) -> str:
        """The action of `act`; `UserCodeError` where a user's raises or returns one that is not legal."""
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
        """Whether there is something to fold to."""
        return not isinstance(self.state, int) and self.state.facing

    @property
    def may_call(self) -> bool:
        """Whether a check or call is legal."""
        state, rules = self.state, self._rules
        if isinstance(state, int):
            return False
        return "c" in self._listed if rules is None else may_call(rules, state)  # type: ignore[arg-type]

    @checked
    def raises(self, shares: tuple[float, ...] = (0.0, 1.0)) -> list[str]:
        """Legal bets or raises, the smallest and the largest by default; none where none is legal.

        shares  0 for the smallest, 1 for the largest, and what lies between
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
        """All legal actions where they are few."""
        assert isinstance(self.betting, InTree) and isinstance(self.state, TreeState)
        return self.betting.actions(self.state)
