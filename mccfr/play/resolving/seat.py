"""A policy's seat that solves again what lies ahead."""

from dataclasses import dataclass
from random import Random
from typing import Any

from abstraction.cards import combo_index, parse_cards
from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.play.player import Betting, Player, PlayerSpec, State
from mccfr.play.resolving.table import SETTINGS, Acted, PublicState, Resolver, Settings
from mccfr.play.seat import Seat
from mccfr.policy.profile import Behaviour


@dataclass(frozen=True)
class ResolvingSpec(PlayerSpec):
    """A policy whose hands are solved again as they are played."""

    policy: Behaviour
    settings: Settings

    @property
    def game(self) -> Game:
        """As `PlayerSpec.game`."""
        return self.policy.game

    def player(self, betting: Betting, *, seed: int = 0) -> Player:
        """As `PlayerSpec.player`; raises as `ResolvingSeat`."""
        del betting
        return ResolvingSeat(self.policy, self.settings, seed=seed)

    def fingerprint(self) -> str:
        """As `PlayerSpec.fingerprint`."""
        return repr(self.settings)


class ResolvingSeat(Seat):
    """A policy at one seat of no-limit hold'em, solved again from a street on (`mccfr.play.resolving.table`).

    Before that street it plays as `Seat` does.  From there on what it plays in a public state is a function of that
    state and its hand: nothing but the action is drawn.
    """

    def __init__(self, policy: Behaviour, settings: Settings = SETTINGS, *, seed: int = 0) -> None:
        """Sit down; raises `ValueError` as `Seat` and `Resolver` do."""
        self._acted: list[Acted] = []
        super().__init__(policy, seed=seed)
        self.resolver = Resolver(self, settings)

    def _begin(self) -> None:
        super()._begin()
        self._acted = []

    def _note(self, action: str, after: State | int) -> None:
        state = self.state
        assert isinstance(state, BettingState)
        self._acted.append((state, action, self.dealing.read_board(state.street, self.cards)))
        super()._note(action, after)

    def _seen(self, state: State, action: str) -> None:
        if state.street < self.resolver.street:  # later nobody asks where the policy's tree is
            super()._seen(state, action)

    def _chosen(self, state: Any, random: Random) -> str:
        if state.street < self.resolver.street:
            return super()._chosen(state, random)
        here = self.public_state()
        hand = combo_index(*parse_cards(self.hand))
        return here.actions[self._sampled(here.played()[:, hand], random)]

    def public_state(self) -> PublicState:
        """Where the hand is, from the chosen street on, with somebody to act; `ValueError` elsewhere."""
        state = self.state
        if not isinstance(state, BettingState) or state.street < self.resolver.street:
            raise ValueError(
                f"after {self.line!r} nobody acts, or the street comes before {self.resolver.settings.street}"
            )
        board = self.dealing.read_board(state.street, self.cards)
        before = [each for each in self._acted if each[0].street < self.resolver.street]
        later = self._acted[len(before) :]
        first, lies = (later[0][0], later[0][2]) if later else (state, board)
        here = self.resolver.begin(self.position, before, first, lies)
        for number, (_, action, _) in enumerate(later):
            found = here.after(action, later[number + 1][2] if number + 1 < len(later) else board)
            assert isinstance(found, PublicState)
            here = found
        return here
