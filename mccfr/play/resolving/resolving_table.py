"""Re-solving of a policy during play: public states and the strategy of every hand there.

When the chosen street begins, both ranges follow from the policy, and the rest of the hand is solved as a subgame in
real chips. Its solution is then in force and determines the player's range. It is re-solved:

* when the opponent makes a bet outside the subgame (nested: Brown & Sandholm 2017, section 5). The new subgame
  begins after this bet. The alternatives, with which a gadget compares the opponent's values in the subgame, are its
  best-response values to the solution in force before the bet.
* when the next street begins, on the real board. The alternatives are best-response values to the last solution.

The first alternatives are best-response values to the policy itself, with the subgame's bets. Ranges and opponent
values are thus carried through the hand (continual re-solving: Moravčík et al. 2017).

At a table of three and more players the subgame begins once two are left. The others' chips then count as antes of
these two (`mccfr.play.two_left`). Both ranges have to be known: a player who took an action that the tree lacks has
none (`NoRangeError`).

After a flop, hands have the policy's buckets on later streets and boards are sampled (`mccfr.play.resolving.solve`).
Alternatives are still best-response values on all turns and rivers.

Everything follows from the policy, the betting and the board; there are no random draws and no clocks. A public
state's strategy is therefore always the same and can be cached.
"""

from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.cards import card_mask, combo_masks
from mccfr.cards.card_index import Board
from mccfr.cards.full_deck import WholeDeck
from mccfr.config.game_tables import Menu
from mccfr.games.betting import BettingState
from mccfr.games.game import Game
from mccfr.games.line_lookup import OVER
from mccfr.games.translation import Translation, apply_action
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.observer_ranges import HandObserver, nearest_action
from mccfr.play.resolving.real_endgame import MENU, TURN_MENU, endgame
from mccfr.play.resolving.resolving_spot import RootValues, Spot, Tables
from mccfr.play.resolving.solve import METHODS, Effort, Resolved, resolve
from mccfr.play.two_left import TwoLeft, two_left
from mccfr.solvers.variants import PRESETS
from mccfr.tables.strategy import BlockRows, Strategy, uniform_strategy
from mccfr.trees.compiled import DECISION

Floats = npt.NDArray[np.float64]
STREETS = ("river", "turn", "flop")
"""Streets where re-solving may begin, by their names in commands."""
_BOARD_CARDS = {"flop": 3, "turn": 4, "river": 5}
_KEPT = {"flop": 2, "turn": 8, "river": 256}  # cached subgames; from the turn on up to 40 MB each, from the flop 300
EFFORT = {
    "flop": Effort(iterations=50),
    "turn": Effort(iterations=40),
    "river": Effort(iterations=100),
}
"""Default efforts by street, for gaps of some thousandths of the pot (docs/measured/resolving.md).

They take some seconds of processor time on the flop, one on the turn, 0.05 on the river."""
COLD_FLOP = Effort(iterations=200)
"""Effort after a bet on the flop outside the subgame, without initial regrets, for a similar gap."""
NESTED = "resolving"
"""Method after a bet outside the subgame instead of "unsafe".

No strategy in force gives the opponent's range for such a bet, and assuming all hands would overpay strong ones."""
VARIANT = PRESETS["dcfr+"]
"""CFR variant: after some hundred iterations its gap is smaller than plain DCFR's (docs/measured/resolving.md)."""
Acted = tuple[BettingState, str, Board]
"""Betting state before an action, the action, and all board cards of the state's street."""


@dataclass(frozen=True)
class Settings:
    """Settings of re-solving during play: first street, method, effort and bet sizes.

    street     the first street that is re-solved: "river", "turn" or "flop"
    method     the gadget, a game before the subgame that bounds the opponent's gain: "resolving" or "maxmargin". With
               "unsafe" there is none, except "resolving" after a bet outside the subgame. On the flop "resolving"
               replaces "maxmargin"
    effort     when to stop solving a subgame; None: a default number of iterations by its first street (`EFFORT`). It
               is larger if a subgame from the flop on has no earlier strategy for its initial regrets (`COLD_FLOP`)
    menu       bet sizes of subgames that begin on the river
    turn_menu  bet sizes of subgames that begin on the flop or the turn, on all their streets
    workers    threads that share the rivers of a turn; results do not depend on them
    """

    street: str = "river"
    method: str = METHODS[0]
    effort: Effort | None = None
    menu: Menu = MENU
    turn_menu: Menu = TURN_MENU
    workers: int = field(default=1, repr=False)


SETTINGS = Settings()
"""Default settings: the first method, on the river."""


def settings_of(text: str) -> Settings:
    """Parse a text STREET[:METHOD[:ITERATIONS]], such as "river", "turn:unsafe" or "flop:resolving:200".

    The method is "resolving" if not given, and the number of iterations a default of the street (`EFFORT`).

    Raises `ValueError` for an unknown street or method, or an invalid number.
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
    """Re-solves hands of a policy from a street on, and caches the public states that it has solved."""

    def __init__(self, seat: Seat, settings: Settings = SETTINGS) -> None:
        """Take the player `seat`, whose policy is re-solved, and the settings of re-solving.

        Raises `ValueError` unless the game is full-deck no-limit hold'em.
        """
        cards = seat.policy.game.cards
        if not isinstance(seat.betting, Translation) or cards.boards is not None or cards.cards_on(0):
            raise ValueError(f"re-solving needs a policy of whole no-limit hold'em; {seat.policy.game.name} is not")
        self.seat, self.settings, self.rules = seat, settings, seat.betting.rules
        known = [cards.cards_on(street) for street in range(cards.streets)]
        self.street = known.index(_BOARD_CARDS[settings.street])
        self._cards = cards.of_two() if isinstance(cards, WholeDeck) else cards
        self.left: TwoLeft | None = None  # the rest of the hand, of a resolver for one hand
        self._kept: OrderedDict[Any, PublicState] = OrderedDict()

    def at(self, position: int, line: Sequence[Acted], state: BettingState, board: Board) -> "PublicState":
        """Return the public state after a line of actions that ends on a re-solved street.

        It solves each subgame on the way that is not in the cache.

        position  index of the re-solving player at the table
        line      (state before, action, board) of each action of the hand
        state     betting state at the table after these actions
        board     all board cards of the state's street

        Raises `NoRangeError` like `begin`.
        """
        later = list(dropwhile(lambda each: not self.begins(each[0]), line))
        before = line[: len(line) - len(later)]
        first, first_board = (later[0][0], later[0][2]) if later else (state, board)
        public_state = self.begin(position, before, first, first_board)
        for number, (_, action, _) in enumerate(later):
            cards = later[number + 1][2] if number + 1 < len(later) else board
            following = public_state.after(public_state.own_action(action), cards)
            assert isinstance(following, PublicState)
            public_state = following
        return public_state

    def begins(self, state: BettingState) -> bool:
        """Return True if the state is on the chosen street or a later one, and two players are left."""
        return state.street >= self.street and len(state.left) == 2

    def begin(self, position: int, line: Sequence[Acted], state: BettingState, board: Board) -> "PublicState":
        """Return the public state at a hand's first re-solved decision, where two players are left.

        Its subgame is solved, or taken from the cache.

        position  index of the re-solving player at the table
        line      (state before, action, board) of each earlier action
        state     betting state at the table at this decision
        board     all board cards of the state's street

        Raises `NoRangeError` if, at a table of three or more, one of the two took an action that the tree lacks.
        """
        key = position, tuple(action for _, action, _ in line), tuple(board)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        left, of_hand = two_left(self.rules, state), copy(self)
        of_hand.rules, of_hand.left = left.rules, left
        public_state = of_hand._begun(HandObserver(self.seat, position, line, left), state, board)
        self._kept[key] = public_state
        if len(self._kept) > _KEPT[self.settings.street]:
            self._kept.popitem(last=False)
        return public_state

    def _begun(self, observer: HandObserver, state: BettingState, board: Board) -> "PublicState":
        """Solve the subgame that begins at a decision and return the public state there.

        observer  has both players' ranges, computed from the policy and the actions so far
        state     betting state at the table, at the decision
        board     all board cards of the state's street
        """
        assert self.left is not None and isinstance(self.left.state, BettingState)
        position, here, method, ranges = observer.position, self.left.state, self.settings.method, observer.ranges()
        spot = self.spot(position, here, board, ranges, method)
        ranges = ranges * spot.weights
        if not ranges[position].any():  # the line has probability 0 for the player: any strategy will do
            return PublicState(self, position, spot, uniform_strategy(spot.game), spot.weights, 0, here)
        alternatives, before = None, None
        if method != "unsafe":
            before = observer.buckets_in(spot, state) if spot.merged else observer.policy_in(spot.game, state)
            alternatives = spot.best_response(1 - position, ranges[position], before).value
        return self.solved(position, spot, ranges, alternatives, here, method, before)

    def spot(self, position: int, state: BettingState, board: Board, ranges: Floats, method: str) -> Spot:
        """Build the subgame (`Spot`) that begins at a state of the betting, on its street's board.

        Hands outside the re-solving player's range are not dealt, to save time. For the method "unsafe" the same holds
        for the opponent's range. If a range is empty, all hands are dealt.

        position  index of the re-solving player among the two left, 0 or 1
        state     betting state of the hand of these two players
        board     all board cards of the state's street
        ranges    [2, 1326] weights of both players' hands
        method    gadget: "resolving", "maxmargin", or "unsafe" for none
        """
        on_river = state.street == len(self.rules.board_cards) - 1
        menu, live = self.settings.menu if on_river else self.settings.turn_menu, ranges > 0
        if method != "unsafe":
            live[1 - position] = True
        live &= (combo_masks() & np.uint64(card_mask(board))) == 0
        live[~live.any(axis=1)] = True
        game = endgame(self.rules, state, board, menu, live, self._cards)
        # After a flop, too many boards follow for lossless buckets.
        return Spot(game, 0, 0, merged=len(board) == _BOARD_CARDS["flop"])

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
        """Solve the subgame `spot` and return the public state at its root.

        position      index of the re-solving player among the two left, 0 or 1
        ranges        [2, 1326] weights of both players' hands at the root
        alternatives  [H] counterfactual values of the opponent's hands before re-solving: those of its best response
                      to the last solution, or to the policy; None for the method "unsafe"
        state         betting state of the hand of these two players, at the root
        method        gadget: "resolving", "maxmargin" (replaced by "resolving" on the flop) or "unsafe"
        before        earlier strategy in the subgame, for initial regrets: probabilities [slots, buckets] for each
                      block (street and player); None if not known
        """
        settings = self.settings
        without_initial = spot.merged and before is None
        effort = settings.effort or (COLD_FLOP if without_initial else EFFORT[STREETS[spot.game.tree.streets - 1]])
        solution = resolve(
            spot,
            position,
            ranges,
            alternatives,
            METHODS[0] if spot.merged and method == "maxmargin" else method,
            effort,
            variant=VARIANT,
            workers=settings.workers,
            initial=before,
        )
        return PublicState(
            self,
            position,
            spot,
            Strategy.stored(spot.game, [BlockRows(table.T.astype(np.float64)) for table in solution.tables]),
            ranges,
            0,
            state,
            solution,
        )


class PublicState:
    """Public state on a re-solved street, with the latest solution, which is played there.

    Hands are the 1,326 combinations of two cards. The betting is that of a hand of the two players left; at a table of
    three or more, the others' chips count as antes of these two.

    position  index of the re-solving player among the two left, 0 or 1
    state     betting state of this hand of two players
    ranges    [2, 1326] weights of both players' hands here, by the solutions so far
    found     the solution; None if, by the policy, the re-solving player never gets to the subgame: play is uniform
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
        """Take a node of the subgame `spot`, and the strategy that is played there.

        The class describes `position`, `ranges` and `state`.

        resolver  resolver of this hand of poker, which re-solves later public states
        strategy  strategies of both players in the whole subgame
        node      number of the node in the subgame's tree
        found     solution with this strategy; None if the strategy is uniform because, by the policy, the re-solving
                  player never gets to the subgame
        """
        self._resolver, self._spot, self._strategy, self._node = resolver, spot, strategy, node
        self.position, self.ranges, self.state, self.found = position, ranges, state, found
        self._after: dict[Any, PublicState | int] = {}
        self._played: Floats | None = None
        self._responses: RootValues | None = None

    @property
    def gap_chips(self) -> float:
        """NashConv of the subgame with its gadget, for the latest solution; computed on access.

        The unit is chips per hand of poker that gets to the subgame's first decision. It is 0 if the re-solving player
        never gets there.
        """
        return self.found.gap_chips if self.found else 0.0

    @property
    def excess_chips(self) -> float:
        """Upper bound of the opponent's gain by re-solving, in chips per hand of poker in the subgame.

        The gain is over the opponent's values before re-solving. NaN for a solution that was found without such values;
        0 if the re-solving player never gets to the subgame.
        """
        return self.found.excess_chips if self.found else 0.0

    @property
    def _game(self) -> Game:
        return self._spot.game

    @property
    def _tables(self) -> Tables:
        return [table.T for table in self._strategy.probability]

    @property
    def actions(self) -> list[str]:
        """Actions of the subgame's tree here: `f`, `c`, or `rN` with N chips over the whole hand; all legal."""
        return [self._game.tree.label[child] for child in self._game.tree.children(self._node)]

    def own_action(self, action: str) -> str:
        """Return an action at the table as a legal action in this state.

        Amounts may differ: chips of the other players, and antes, count as put in by the two players left. `actions`
        may lack the result's amount.

        action  `f`, `c`, or `rN` with N chips put in over the whole hand
        """
        assert self._resolver.left is not None
        return self._resolver.left.converted(self.state, action, self.actions)

    def table_action(self, state: BettingState, number: int) -> str:
        """Return `actions[number]` as a legal action at the table, with its amount in chips there.

        state  betting state at the table
        """
        left, betting = self._resolver.left, self._resolver.seat.betting
        assert left is not None and isinstance(betting, Translation)
        return left.at_table(betting, state, self.actions[number])

    def played(self) -> Floats:
        """Return [A, 1326] the solution's probabilities of `actions`, by hand of the player to act.

        They are 0 for hands that share a card with the board, and arbitrary for hands outside the range.
        """
        if self._played is None:
            arrays, cards = self._game.tree.arrays, self._game.listed_cards()
            block, slot = int(arrays.block[self._node]), int(arrays.slot[self._node])
            bucket = cards.bucket[0][block % 2, 0]
            rows = self._strategy.probability[block][np.maximum(bucket, 0), slot : slot + len(self.actions)]
            masks = cards.hand_masks() & np.uint64(card_mask(cards.board_cards[0][0].tolist()))
            self._played = np.where(bucket >= 0, rows.T, np.where(masks, 0.0, 1 / len(self.actions)))
        return self._played

    def responses(self) -> RootValues:
        """Return the opponent's best-response values, from here on, to the latest solution; cached.

        They are counterfactual values of each of its 1,326 hands: chips won, summed over the re-solving player's hands
        with their weights. The response may use the bets of the subgame only.
        """
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
        """Return the opponent's best-response values on the next street, after an action that ends this one.

        They are counterfactual values of each of its 1,326 hands against the latest solution: chips won, summed over
        the re-solving player's hands with their weights.

        action  one of `actions`
        board   all cards of the next street's board
        """
        before, ranges = self._next_street(self.actions.index(action), self.ranges_after(action), tuple(board))
        return before.best_response(1 - self.position, ranges[self.position], before.tables(self._strategy))

    def ranges_after(self, action: str) -> Floats:
        """Return [2, 1326] weights of both players' hands after `action`, one of `actions`.

        An action that no hand takes leaves the weights unchanged.
        """
        ranges = self.ranges.copy()
        ranges[self.state.player] *= self.played()[self.actions.index(action)]
        return ranges if ranges[self.state.player].any() else self.ranges  # an action of probability 0 changes nothing

    def after(self, action: str, board: Board = ()) -> "PublicState | int":
        """Return the public state after a legal action, or the number `OVER` if the betting ends.

        Re-solves after an action that `actions` lacks, and at the start of a street.

        action  `f`, `c`, or `rN` with its amount in chips of this state, as from `own_action`
        board   all cards of the next street's board if the action ends a street; otherwise ignored
        """
        state = apply_action(self._resolver.rules, self.state, action)
        if not isinstance(state, BettingState):
            return OVER
        new_board = tuple(board) if state.street != self.state.street else ()
        if (action, new_board) not in self._after:
            self._after[action, new_board] = self._followed(action, state, new_board)
        return self._after[action, new_board]

    def _followed(self, action: str, state: BettingState, new_board: Board) -> "PublicState":
        if action not in self.actions:
            own = self.state.player == self.position  # chosen by another program at this seat, or before a restart
            nearest = self.actions[nearest_action(self.actions, action)]
            return self._resolve_after_bet(state, self.ranges_after(nearest) if own else self.ranges)
        number, ranges = self.actions.index(action), self.ranges_after(action)
        if new_board:
            before, ranges = self._next_street(number, ranges, new_board)
            return self._resolve_street(before, ranges, state, new_board)
        node = int(self._game.tree.arrays.first[self._node]) + number
        return PublicState(self._resolver, self.position, self._spot, self._strategy, ranges, node, state, self.found)

    def _next_street(self, number: int, ranges: Floats, board: Board) -> tuple[Spot, Floats]:
        """Return the part of this subgame from the next street on, and both players' ranges there.

        number  index in `actions` of the action that ends this street
        ranges  [2, 1326] weights of both players' hands after that action
        board   all cards of the next street's board
        """
        node = int(self._game.tree.arrays.first[self._node]) + number
        assert self._game.tree.arrays.kind[node] == DECISION
        boards = self._game.listed_cards().board_cards[1].tolist()
        before = Spot(self._game, node, boards.index(list(board)))
        return before, ranges * before.weights

    def _resolve_street(self, before: Spot, ranges: Floats, state: BettingState, board: Board) -> "PublicState":
        """Re-solve at the start of a street, and return the public state there.

        Unless the method is "unsafe", a gadget compares the opponent's values with its best-response values to the last
        solution.

        before  the part of the last subgame from the new street on
        ranges  [2, 1326] weights of both players' hands there
        state   betting state of the hand of two players there
        board   all cards of the new street's board
        """
        method, value = self._resolver.settings.method, None
        if method != "unsafe":
            value = before.best_response(1 - self.position, ranges[self.position], before.tables(self._strategy)).value
        spot = self._resolver.spot(self.position, state, board, ranges, method)
        return self._resolver.solved(self.position, spot, ranges, value, state, method)

    def _resolve_after_bet(self, state: BettingState, ranges: Floats) -> "PublicState":
        """Re-solve after a bet that the subgame's tree lacks, and return the public state there.

        The gadget compares the opponent's values with its best-response values before the bet.

        state   betting state of the hand of two players after the bet
        ranges  [2, 1326] weights of both players' hands after the bet; a bet of the opponent leaves its range unchanged
        """
        board, method = self._game.listed_cards().board_cards[0][0].tolist(), self._resolver.settings.method
        method = NESTED if method == "unsafe" else method
        spot = self._resolver.spot(self.position, state, board, ranges, method)
        return self._resolver.solved(self.position, spot, ranges, self.responses().value, state, method)
