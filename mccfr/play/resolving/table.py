"""A policy at the table that solves again what lies ahead: public states, and what every hand plays there.

When the chosen street begins, both players' ranges are what the strategies in force make of them, and the rest of the
hand is solved as an endgame of real chips.  From there on its solution is in force: it says what every hand plays, and
so what our range becomes.  It is solved again

* when the opponent makes a bet that the endgame has not (nested, Brown & Sandholm 2017, section 5): the game that this
  bet begins, at our range there, his alternatives being his values before the bet: what a best response to the solution
  in force wins with a bet that it has;
* when the next street begins: on the real board, his alternatives the values of a best response to the last solution.

At first his alternatives are the values of his best response to the policy itself, with the endgame's bets.  So ranges
and the opponent's values are carried through the hand (continual re-solving: Moravčík et al. 2017), and the policy is
asked once.

Below a flop hands have the policy's buckets, and boards are sampled (`mccfr.play.resolving.solve`); his alternatives
are best responses on all turns and rivers, as elsewhere.

Everything follows from the policy, the betting and the board, public to both players; nothing is drawn and no clock is
asked.  So what is played in a public state is the same whenever it is asked for, and can be kept.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.cards import card_mask, combo_masks
from mccfr.cards.dealt import Board
from mccfr.config.games import Menu
from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.games.reading import OVER
from mccfr.games.translation import Translation
from mccfr.play.resolving.endgame import MENU, TURN_MENU, endgame
from mccfr.play.resolving.solve import METHODS, Effort, Resolved, resolve
from mccfr.play.resolving.spot import RootValues, Spot, Tables
from mccfr.play.resolving.watching import Watcher, nearest_action
from mccfr.play.run_outs import opponent_weight, per_weight
from mccfr.play.seat import Seat
from mccfr.solvers.variants import PRESETS
from mccfr.tables.strategy import BlockRows, Strategy, uniform_strategy
from mccfr.trees.compiled import DECISION

Floats = npt.NDArray[np.float64]
STREETS = ("river", "turn", "flop")
"""Where solving may begin, by the names that commands take."""
_BOARD_CARDS = {"flop": 3, "turn": 4, "river": 5}
_KEPT = {"flop": 2, "turn": 8, "river": 256}  # endgames; one from the turn on may take 40 MB, from the flop on 300
EFFORT = {
    "flop": Effort(iterations=50),
    "turn": Effort(iterations=40),
    "river": Effort(iterations=100),
}
"""Of a spot of a street, gaps of some thousandths of the pot (docs/measured/resolving.md): some seconds of processor
time on the flop, one on the turn, a twentieth of one on the river."""
COLD_FLOP = Effort(iterations=200)
"""After a bet on the flop that no strategy in force says how to answer, to a like gap."""
NESTED = "resolving"
"""After a bet that an endgame has not, in place of the unsafe method: by no strategy in force does he make it with some
hands and not with others, and who believes that he makes it with all of them pays off the best."""
VARIANT = PRESETS["dcfr+"]
"""At the same cost some hundred of its iterations leave a smaller gap than those of plain DCFR
(docs/measured/resolving.md)."""
Acted = tuple[BettingState, str, Board]
"""A state of the betting, what was done there, and the board that lay."""


@dataclass(frozen=True)
class Settings:
    """How a hand is solved again.

    street     the first that is, one of `STREETS`
    method     one of `METHODS`; on the flop the first for "maxmargin"
    effort     for each spot; None: `EFFORT` of its street.  With `seconds` what is played is no function of the public
               state any more
    menu       bets of endgames on the river
    turn_menu  bets of endgames from the flop or the turn on, those of later streets included
    workers    threads that share the rivers of a turn; nothing depends on them
    """

    street: str = "river"
    method: str = METHODS[0]
    effort: Effort | None = None
    menu: Menu = MENU
    turn_menu: Menu = TURN_MENU
    workers: int = field(default=1, repr=False)


SETTINGS = Settings()
"""The first method, on the river."""


def settings_of(text: str) -> Settings:
    """Settings as commands take them, STREET[:METHOD[:ITERATIONS]]: "river", "turn:unsafe", "flop:resolving:200".

    Raises `ValueError` for a street, a method or a number that is none.
    """
    street, method, iterations, *more = [*text.split(":"), "", ""][: max(3, text.count(":") + 1)]
    if more or street not in STREETS or (method and method not in METHODS):
        raise ValueError(
            f"resolve = {text!r} is not allowed: it must be {', '.join(STREETS[:-1])} or {STREETS[-1]}, and may go on "
            f"with :METHOD, one of {', '.join(METHODS)}, and :ITERATIONS"
        )
    if iterations and not (iterations.isdecimal() and int(iterations)):
        raise ValueError(
            f"resolve = {text!r}: {iterations!r} is no number of iterations; a whole one above 0 is needed"
        )
    effort = Effort(iterations=int(iterations)) if iterations else None
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

    def at(self, position: int, line: Sequence[Acted], state: BettingState, board: Board) -> "PublicState":
        """The public state after all that was done, from the street on that is solved again.

        position  of the player whose strategy is solved for
        board     of the state's street
        """
        before = [each for each in line if each[0].street < self.street]
        later = line[len(before) :]
        first, lies = (later[0][0], later[0][2]) if later else (state, board)
        here = self.begin(position, before, first, lies)
        for number, (_, action, _) in enumerate(later):
            found = here.after(action, later[number + 1][2] if number + 1 < len(later) else board)
            assert isinstance(found, PublicState)
            here = found
        return here

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
        ranges = watcher.ranges()
        method = self.settings.method
        spot = self.spot(position, state, board, ranges, method)
        ranges = ranges * spot.weights
        found: PublicState
        if not ranges[position].any():  # whoever asks lets us do what we never do: as well as any other
            found = PublicState(self, position, spot, uniform_strategy(spot.game), spot.weights, 0, state)
        else:
            alternatives, before = None, None
            if method != "unsafe":
                before = watcher.buckets_in(spot, state) if spot.merged else watcher.policy_in(spot.game, state)
                alternatives = spot.best_response(1 - position, ranges[position], before).value
            found = self.solved(position, spot, ranges, alternatives, state, method, before)
        self._kept[key] = found
        if len(self._kept) > _KEPT[self.settings.street]:
            self._kept.popitem(last=False)
        return found

    def spot(self, position: int, state: BettingState, board: Board, ranges: Floats, method: str) -> Spot:
        """What follows a state of the betting on a board that has all its street's cards.

        Hands outside of our range cost time and change nothing, and neither do those outside of the opponent's where
        his range is believed: they are not dealt.  Where a range has none left, all are.
        """
        on_river = state.street == len(self.rules.board_cards) - 1
        menu, live = self.settings.menu if on_river else self.settings.turn_menu, ranges > 0
        if method != "unsafe":
            live[1 - position] = True
        live &= (combo_masks() & np.uint64(card_mask(board))) == 0
        live[~live.any(axis=1)] = True
        game = endgame(self.rules, state, board, menu, live, self.seat.policy.game.cards)
        return Spot(game, 0, 0, merged=self.on_flop(state))

    def on_flop(self, state: BettingState) -> bool:
        """Whether too much follows to tell hands apart on all boards."""
        return sum(self.rules.board_cards[: state.street + 1]) == _BOARD_CARDS["flop"]

    def solved(
        self,
        position: int,
        spot: Spot,
        ranges: Floats,
        alternatives: Floats | None,
        state: BettingState,
        method: str,
        before: Tables | None = None,
    ) -> "PublicState":
        """A spot once it is solved.

        alternatives  [H] what a best response to the strategy in force wins; None where the method is not safe
        before        that strategy, which the solution begins with, if it is known
        """
        settings = self.settings
        cold = spot.merged and before is None
        effort = settings.effort or (COLD_FLOP if cold else EFFORT[STREETS[spot.game.tree.streets - 1]])
        found = resolve(
            spot,
            position,
            ranges,
            alternatives,
            METHODS[0] if spot.merged and method == "maxmargin" else method,
            effort,
            variant=VARIANT,
            dtype="float32",
            workers=settings.workers,
            begun=before,
        )
        return PublicState(
            self,
            position,
            spot,
            Strategy.stored(spot.game, [BlockRows(table.T.astype(np.float64)) for table in found.tables]),
            ranges,
            0,
            state,
            found,
        )


class PublicState:
    """A decision of a hand that is being solved again; hands are combinations.

    position   of our player
    state      the real betting
    ranges     [2, 1326] weights of both players' hands here, by the solutions so far
    found      the solution in force; None: we are never here
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
        found: Resolved | None = None,
    ) -> None:
        """`found` is what was solved, and `strategy` its tables; None: nothing was."""
        self._resolver, self._spot, self._strategy, self._node = resolver, spot, strategy, node
        self.position, self.ranges, self.state, self.found = position, ranges, state, found
        self._after: dict[Any, PublicState | int] = {}
        self._played: Floats | None = None
        self._responses: RootValues | None = None

    @property
    def gap_chips(self) -> float:
        """Of the solution in force, chips a hand; found when it is asked for."""
        return self.found.gap_chips if self.found else 0.0

    @property
    def excess_chips(self) -> float:
        """What the opponent may win more there than before the solution was in force, at most, chips a hand; NaN after
        the unsafe method, which knows no before."""
        return self.found.excess_chips if self.found else 0.0

    @property
    def _game(self) -> Game:
        return self._spot.game

    @property
    def _tables(self) -> Tables:
        return [table.T for table in self._strategy.probability]

    @property
    def actions(self) -> list[str]:
        """What the endgame has here: `f`, `c` or `rN`, all legal."""
        return [self._game.tree.label[child] for child in self._game.tree.children(self._node)]

    def played(self) -> Floats:
        """[A, 1326] what every hand of the player to act plays by the solution; 0 where it hits the board, and hands
        that are outside of his range play anything."""
        if self._played is None:
            arrays, cards = self._game.tree.arrays, self._game.cards.listed()
            block, slot = int(arrays.block[self._node]), int(arrays.slot[self._node])
            bucket = cards.bucket[0][block % 2, 0]
            rows = self._strategy.probability[block][np.maximum(bucket, 0), slot : slot + len(self.actions)]
            masks = cards.hand_masks() & np.uint64(card_mask(cards.board_cards[0][0].tolist()))
            self._played = np.where(bucket >= 0, rows.T, np.where(masks, 0.0, 1 / len(self.actions)))
        return self._played

    def values(self) -> Floats | None:
        """[A, 1326] chips of the whole hand that hands of the player to act win after each action, both going on by
        the solution, exact on all boards; NaN outside of his range.  None inside a spot.
        """
        if self._node or self.position != self.state.player:
            return None
        other = self.ranges[1 - self.position]
        action = self._spot.followed(self.position, other, self._tables).action
        met = np.where(self.ranges[self.position] > 0, opponent_weight(self._spot.dealing, other), 0.0)
        return per_weight(action, met)

    def responses(self) -> RootValues:
        """What the opponent's hands win from here by best responses to the solution in force, with its bets; kept."""
        if self._responses is None:
            self._responses = self._best_responses()
        return self._responses

    def _best_responses(self) -> RootValues:
        spot, tables = self._spot, self._tables
        if self._node:
            spot = Spot(self._game, self._node, 0, merged=spot.merged)
            tables = spot.tables(self._strategy)
        return spot.best_response(1 - self.position, self.ranges[self.position], tables)

    def responses_after(self, action: str, board: Board) -> RootValues:
        """The same once an action has ended the street and the next one's `board` lies, before that is solved."""
        before, ranges = self._dealt(self.actions.index(action), self.ranges_after(action), tuple(board))
        return before.best_response(1 - self.position, ranges[self.position], before.tables(self._strategy))

    def ranges_after(self, action: str) -> Floats:
        """[2, 1326] weights of both players' hands after one of `actions`."""
        ranges = self.ranges.copy()
        ranges[self.state.player] *= self.played()[self.actions.index(action)]
        return ranges if ranges[self.state.player].any() else self.ranges  # as if a solution said nothing of it

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
            own = self.state.player == self.position  # of another program at this seat, or before a restart
            nearest = self.actions[nearest_action(self.actions, action)]
            return self._answered(state, self.ranges_after(nearest) if own else self.ranges)
        number, ranges = self.actions.index(action), self.ranges_after(action)
        if dealt:
            before, ranges = self._dealt(number, ranges, dealt)
            return self._again(before, ranges, state, dealt)
        node = int(self._game.tree.arrays.first[self._node]) + number
        return PublicState(self._resolver, self.position, self._spot, self._strategy, ranges, node, state, self.found)

    def _dealt(self, number: int, ranges: Floats, board: Board) -> tuple[Spot, Floats]:
        """The next street by the solution in force, where an action has ended this one, and ranges there."""
        node = int(self._game.tree.arrays.first[self._node]) + number
        assert self._game.tree.arrays.kind[node] == DECISION
        boards = self._game.cards.listed().board_cards[1].tolist()
        before = Spot(self._game, node, boards.index(list(board)))
        return before, ranges * before.weights

    def _again(self, before: Spot, ranges: Floats, state: BettingState, board: Board) -> "PublicState":
        """A street that begins, his alternatives what a best response to the solution in force wins from it."""
        method, value = self._resolver.settings.method, None
        if method != "unsafe":
            value = before.best_response(1 - self.position, ranges[self.position], before.tables(self._strategy)).value
        spot = self._resolver.spot(self.position, state, board, ranges, method)
        return self._resolver.solved(self.position, spot, ranges, value, state, method)

    def _answered(self, state: BettingState, ranges: Floats) -> "PublicState":
        """Solve again after a bet that the endgame lacks; the opponent's alternatives are the values before it."""
        board, method = self._game.cards.listed().board_cards[0][0].tolist(), self._resolver.settings.method
        method = NESTED if method == "unsafe" else method
        spot = self._resolver.spot(self.position, state, board, ranges, method)
        return self._resolver.solved(self.position, spot, ranges, self.responses().value, state, method)
