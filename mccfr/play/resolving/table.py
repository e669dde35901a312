"""A policy at the table that solves again what lies ahead: public states, and what every hand plays there.

When the chosen street begins, both players' ranges are what the strategies in force make of them, and the rest of the
hand is solved as an endgame of real chips.  From there on its solution is in force: it says what every hand plays, and
so what our range becomes.  It is solved again

* when the opponent makes a bet that the endgame has not (nested, Brown & Sandholm 2017, section 5): the game that this
  bet begins, at our range there, his alternatives being his values before the bet: what a best response to the solution
  in force wins with a bet that it has;
* when the next street begins: on the real board, his alternatives the values of a best response to the last solution.

At first his alternatives are the values of his best response to the policy itself, with the endgame's bets.

Everything follows from the policy, the betting and the board, public to both players; nothing is drawn and no clock is
asked.  So what is played in a public state is the same whenever it is asked for, and can be kept.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.config.tables import Menu
from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.games.reading import OVER
from mccfr.games.translation import Translation
from mccfr.play.dealing import Board
from mccfr.play.resolving.endgame import MENU, endgame
from mccfr.play.resolving.solve import METHODS, Effort, resolve
from mccfr.play.resolving.spot import Spot, Tables
from mccfr.play.resolving.watching import Watcher
from mccfr.play.seat import Seat
from mccfr.tables.strategy import Strategy, uniform_strategy
from mccfr.trees.compiled import DECISION

Floats = npt.NDArray[np.float64]
STREETS = ("river", "turn")
"""Where solving may begin, by the names that commands take."""
_BOARD_CARDS = {"turn": 4, "river": 5}
_KEPT = 256
EFFORT = Effort(iterations=200)
"""Of a spot: about a fifth of a second on the river."""
Acted = tuple[BettingState, str, Board]
"""A state of the betting, what was done there, and the board that lay."""


@dataclass(frozen=True)
class Settings:
    """How a hand is solved again.

    street   the first that is, "river" or "turn"
    method   one of `METHODS`
    effort   for each spot; with `seconds` what is played is no function of the public state any more
    menu     bets of the endgames
    """

    street: str = "river"
    method: str = METHODS[0]
    effort: Effort = EFFORT
    menu: Menu = MENU


SETTINGS = Settings()
"""Maxmargin on the river."""


def settings_of(text: str) -> Settings:
    """Settings as commands take them, STREET[:METHOD[:ITERATIONS]]: "river", "turn:unsafe", "river:maxmargin:500".

    Raises `ValueError` for a street, a method or a number that is none.
    """
    street, method, iterations, *more = [*text.split(":"), "", ""][: max(3, text.count(":") + 1)]
    if more or street not in STREETS or (method and method not in METHODS):
        raise ValueError(
            f"resolve = {text!r} is not allowed: it must be {' or '.join(STREETS)}, and may go on with :METHOD, one of "
            f"{', '.join(METHODS)}, and :ITERATIONS"
        )
    if iterations and not (iterations.isdecimal() and int(iterations)):
        raise ValueError(
            f"resolve = {text!r}: {iterations!r} is no number of iterations; a whole one above 0 is needed"
        )
    effort = Effort(iterations=int(iterations)) if iterations else EFFORT
    return Settings(street, method or METHODS[0], effort)


class Resolver:
    """Public states of a policy's hands from the street on where it is solved again."""

    def __init__(self, seat: Seat, settings: Settings = SETTINGS) -> None:
        """`seat` holds the policy, as it plays before that street.

        Raises `ValueError` for a game that is not whole no-limit hold'em.
        """
        cards = seat.policy.game.cards
        if not isinstance(seat.betting, Translation) or cards.boards is not None or cards.cards_on(0):
            raise ValueError(
                f"{seat.policy.game.name} is not whole no-limit hold'em, whose hands are solved again at the table"
            )
        self.seat, self.settings, self.rules = seat, settings, seat.betting.rules
        known = [cards.cards_on(street) for street in range(cards.streets)]
        self.street = known.index(_BOARD_CARDS[settings.street])
        self._kept: OrderedDict[Any, PublicState] = OrderedDict()

    def begin(self, position: int, line: Sequence[Acted], state: BettingState, board: Board) -> "PublicState":
        """The public state when the street begins.

        position  of the player whose strategy is solved for
        line      all that was done before
        """
        key = position, tuple(action for _, action, _ in line), tuple(board)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        watcher = Watcher(self.seat, position, line)
        game = endgame(self.rules, state, board, self.settings.menu)
        spot = Spot(game, 0, 0)
        ranges = watcher.ranges() * spot.weights
        found: PublicState
        if not ranges[position].any():  # whoever asks lets us do what we never do: as well as any other
            found = PublicState(self, position, spot, uniform_strategy(spot.game), spot.weights, 0, state)
        else:
            before = watcher.policy_in(spot.game, state)
            found = self.solved(position, spot, ranges, before, state)
        self._kept[key] = found
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found

    def solved(
        self, position: int, spot: Spot, ranges: Floats, before: Tables | Floats, state: BettingState
    ) -> "PublicState":
        """A spot once it is solved.

        before  the strategy in force there, which alternatives are values of best responses to; or these values [H]
        """
        alternatives = before
        if isinstance(before, list):
            alternatives = spot.best_response(1 - position, ranges[position], before).value
        assert not isinstance(alternatives, list)
        found = resolve(
            spot, position, ranges, alternatives, self.settings.method, self.settings.effort, dtype="float32"
        )
        weight = [np.ones((table.shape[1], 1)) for table in found.tables]
        strategy = Strategy([np.ascontiguousarray(table.T) for table in found.tables], weight)
        return PublicState(self, position, spot, strategy, ranges, 0, state, found.gap_chips)


class PublicState:
    """A decision of a hand that is being solved again; hands are combinations.

    position   of our player
    state      the real betting
    ranges     [2, 1326] weights of both players' hands here, by the solutions so far
    gap_chips  of the solution in force, chips a hand
    """

    def __init__(
        self,
        resolver: Resolver,
        position: int,
        spot: Spot,
        strategy: Strategy,
        ranges: Floats,
        node: int,
        state: BettingState,
        gap_chips: float = 0.0,
    ) -> None:
        self._resolver, self._spot, self._strategy, self._node = resolver, spot, strategy, node
        self.position, self.ranges, self.state, self.gap_chips = position, ranges, state, gap_chips
        self._after: dict[Any, PublicState | int] = {}
        self._played: Floats | None = None

    @property
    def _game(self) -> Game:
        return self._spot.game

    @property
    def actions(self) -> list[str]:
        """What the endgame has here: `f`, `c` or `rN`, all legal."""
        return [self._game.tree.label[child] for child in self._game.tree.children(self._node)]

    def played(self) -> Floats:
        """[A, 1326] what every hand of the player to act plays by the solution; 0 where a hand cannot be."""
        if self._played is None:
            arrays, cards = self._game.tree.arrays, self._game.cards.listed()
            block, slot = int(arrays.block[self._node]), int(arrays.slot[self._node])
            bucket = cards.bucket[0][block % 2, 0]
            rows = self._strategy.probability[block][np.maximum(bucket, 0), slot : slot + len(self.actions)]
            self._played = np.where(bucket >= 0, rows.T, 0.0)
        return self._played

    def after(self, action: str, board: Board = ()) -> "PublicState | int":
        """The state that a legal action leads to; `OVER` where nobody acts any more.

        board  all its cards, where the action ends a street; else it is not looked at
        """
        state = self._resolver.seat.betting.apply(self.state, action)  # type: ignore[arg-type]
        if not isinstance(state, BettingState):
            return OVER
        dealt = tuple(board) if state.street != self.state.street else ()
        if (action, dealt) not in self._after:
            self._after[action, dealt] = self._followed(action, state, dealt)
        return self._after[action, dealt]

    def _followed(self, action: str, state: BettingState, dealt: Board) -> "PublicState":
        if action not in self.actions:
            return self._answered(state)
        number, ranges = self.actions.index(action), self.ranges.copy()
        ranges[self.state.player] *= self.played()[number]
        if not ranges[self.state.player].any():  # nobody gets there by the solution: as if it said nothing
            ranges = self.ranges.copy()
        node = int(self._game.tree.arrays.first[self._node]) + number
        assert self._game.tree.arrays.kind[node] == DECISION
        if not dealt:
            return PublicState(
                self._resolver, self.position, self._spot, self._strategy, ranges, node, state, self.gap_chips
            )
        boards = self._game.cards.listed().board_cards[1].tolist()
        spot = Spot(self._game, node, boards.index(list(dealt)))
        ranges = ranges * spot.weights
        return self._resolver.solved(self.position, spot, ranges, spot.tables(self._strategy), state)

    def _answered(self, state: BettingState) -> "PublicState":
        """After a bet that the endgame has not; his alternatives are his values before it."""
        board = self._game.cards.listed().board_cards[0][0].tolist()
        before = Spot(self._game, self._node, 0)
        spot = Spot(endgame(self._resolver.rules, state, board, self._resolver.settings.menu), 0, 0)
        ours = self.ranges[self.position]
        value = before.best_response(1 - self.position, ours, before.tables(self._strategy)).value
        return self._resolver.solved(self.position, spot, self.ranges, value, state)
