"""Plays a policy at one position of a table, and re-solves it from a chosen street on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.cards import combo_index, parse_cards
from mccfr.cards.card_index import Board
from mccfr.games.betting import BettingState, amount_text, raise_bounds
from mccfr.games.game import Game
from mccfr.games.translation import Translation
from mccfr.play.hand_beliefs import ObservedRange
from mccfr.play.player import Betting, Player, PlayerSpec, State
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.observer_ranges import NoRangeError
from mccfr.play.resolving.resolving_table import SETTINGS, Acted, PublicState, Resolver, Settings
from mccfr.play.resolving.solve import Effort
from mccfr.policy.strategy_profile import Behaviour

_HAND, _BOARD, _ODD_CHIPS = "AsQh", "Kc7d2s9hTd", 1.0  # of the hand that is played to compile kernels


@dataclass(frozen=True)
class ResolvingSpec(PlayerSpec):
    """Creates players that follow a policy, and re-solve it during play from a chosen street on.

    policy    the strategy to follow, with its game
    settings  first re-solved street, gadget, bet sizes, and when to stop solving
    """

    policy: Behaviour
    settings: Settings

    @property
    def game(self) -> Game:
        """The policy's game."""
        return self.policy.game

    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """Return a new player, whose random draws follow from `seed`.

        betting  ignored: the player uses the betting rules of the policy's game

        Raises `ValueError` unless the policy's game is full-deck no-limit hold'em.
        """
        del betting
        return ResolvingSeat(self.policy, self.settings, seed=seed)

    def fingerprint(self) -> str:
        """Return the settings of re-solving as text, except `workers`, which does not affect play."""
        return repr(self.settings)


class ResolvingSeat(Seat):
    """Player of no-limit hold'em that follows a policy, and re-solves it from a street on.

    Before that street it plays the policy. From that street on, its action probabilities depend only on the public
    state and its hand (`resolving_table`). At a table of three and more players it re-solves once two of them are left.
    If one of these two took an action that the tree lacks, it plays the policy until the hand ends.
    """

    takes_stacks = False

    def __init__(self, policy: Behaviour, settings: Settings = SETTINGS, *, seed: int = 0) -> None:
        """Take the policy, the settings of re-solving and the seed of random draws.

        Draws choose actions, and map bets outside the policy's tree to bets inside.

        Raises `ValueError` unless the policy's game is full-deck no-limit hold'em.
        """
        self._acted: list[Acted] = []
        self._solves = False
        super().__init__(policy, seed=seed)
        self.resolver = Resolver(self, settings)

    def prepare(self) -> None:
        """Compile the kernels of all re-solved streets before play, by playing one hand.

        Each subgame gets one CFR iteration. On each of these streets the opponent bets an amount that the subgame
        lacks, since this needs kernels of its own. At a table of three and more players the others fold, except for
        the small and the big blind.
        """
        other = ResolvingSeat(self.policy, replace(self.resolver.settings, effort=Effort(iterations=1)))
        rules, betting, dealt = other.resolver.rules, other.betting, 0
        assert isinstance(betting, Translation)
        other.deal(0, _HAND)
        for street, cards in enumerate(rules.board_cards):
            dealt += cards
            other.board(_BOARD[: 2 * dealt])
            resolves = street >= other.resolver.street
            while isinstance(state := other.state, BettingState) and state.street == street:
                if resolves and state.player == other.position:
                    other.public_state().played()
                bounds = raise_bounds(rules, state) if resolves and state.player != other.position else None
                action = "c" if bounds is None or state.facing else f"r{amount_text(bounds[0] + _ODD_CHIPS)}"
                if state.player > 1:
                    action = "f"
                elif len(state.put_in) > 2 and not street and not state.bets:
                    real = betting.real_actions(betting.at(other.reading, state), state)
                    action = next((each for each in real if each[0] == "r"), "c")
                other.see(action)

    def _begin(self) -> None:
        super()._begin()
        self._acted, self._solves = [], False

    def _note(self, action: str, after: State | int) -> None:
        state = self.state
        assert isinstance(state, BettingState)
        self._acted.append((state, action, self.dealing.read_board(state.street, self.cards)))
        super()._note(action, after)

    def _seen(self, state: State, action: str) -> None:
        assert isinstance(state, BettingState)
        if not self._solves and (self.betting.players > 2 or not self.resolver.begins(state)):
            super()._seen(state, action)  # the place in the policy's tree is not needed later

    def _chosen(self, state: Any, random: Random) -> str:
        if not self.resolver.begins(state):
            return super()._chosen(state, random)
        try:
            public_state = self.public_state()
        except NoRangeError:
            return super()._chosen(state, random)
        self._solves, hand = True, combo_index(*parse_cards(self.hand))
        return public_state.table_action(state, self._sampled(public_state.played()[:, hand], random))

    def public_state(self) -> PublicState:
        """Return the hand's current public state, with the re-solved strategy there.

        Raises `ValueError` before the first re-solved street, if no player is to act, or if more than two are left.
        Raises `NoRangeError` if, at a table of three or more, one of the two took an action that the tree lacks.
        """
        state = self.state
        if not isinstance(state, BettingState) or not self.resolver.begins(state):
            raise ValueError(
                f"after {self.line!r} no player acts, more than two are left, or the street comes before "
                f"{self.resolver.settings.street}"
            )
        board = self.dealing.read_board(state.street, self.cards)
        return self.resolver.at(self.position, self._acted, state, board)


class ResolvedRange(ObservedRange):
    """The range of a re-solving player, as an opponent who knows its policy computes it.

    Weights follow from the player's actions. Their probabilities are those of the policy before the first re-solved
    street, and those of the solutions from there on.
    """

    def __init__(self, seat: ResolvingSeat, position: int) -> None:
        super().__init__(seat, position)
        self._resolver, self._dealing = seat.resolver, seat.dealing
        self._line: list[tuple[Any, str]] = []
        self._state: Any = None

    def choices(self, state: Any, board: Board) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return {action: [H]}: each hand's probability of all actions so far, then this action.

        On re-solved streets it solves the subgames that the player solves there; the player's resolver caches
        solutions. Actions that no hand takes are left out.

        state  betting state at the table, with the player to act
        board  all board cards of the state's street
        """
        self._state = state
        if state.street < self._resolver.street:
            return super().choices(state, board)
        boards = self._dealing.path(state.street, board)
        public_state = self._resolver.at(
            self._position, [(each, action, boards[each.street]) for each, action in self._line], state, board
        )
        translation, reach = next(iter(self.reach)), np.sum(list(self.reach.values()), axis=0)
        rows = zip(public_state.actions, public_state.played(), strict=True)
        by_action = {action: reach * row for action, row in rows}
        self._after = {action: {translation: row} for action, row in by_action.items()}
        return {action: row for action, row in by_action.items() if row.any()}

    def chose(self, action: str) -> None:
        """Update the range by the player's `action`, a key of the last result of `choices`."""
        super().chose(action)
        if self._state is not None:
            self._line.append((self._state, action))
            self._state = None

    def see(self, state: Any, action: str) -> None:
        """Record an action of another player.

        Before the re-solved streets it is mapped to the policy's tree; later it is kept as it is.

        state   betting state at the table before the action
        action  `f`, `c`, or `rN` with N chips put in over the whole hand
        """
        if state.street < self._resolver.street:
            super().see(state, action)
        self._line.append((state, action))
