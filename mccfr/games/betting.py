"""Betting rules of poker games for two to six seats.

One state machine serves Kuhn, Leduc, limit and no-limit poker, hold'em, and half-street games, where a check ends the
street. They differ in antes and blinds, in the player to act first, and in the legal raises. Amounts are chips put in
over the whole hand, as in the ACPC protocol: `r300` raises *to* 300.

Rule books differ in some points. The rules here are:

* After an all-in of less than a full raise, players who have acted on the street may raise only against a full raise.
  Several short all-ins together can be one (TDA).
* The last player with chips, who faces no bet, does not act.
* A call of a short big blind is a call of the whole blind (`BettingRules.least_call`).
* Antes are posted before blinds. One player's ante for all goes to the main pot (`BettingRules.dead`).
* Odd chips go one by one to the winners of the pot, in order of action from the first player of the last street on.
* Rake is taken from the main pot first. An uncalled bet pays no rake. A hand that ends by folds on the first street
  pays none either.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf
from typing import NamedTuple

from mccfr.trees.street_amounts import LineStart

MOST_SEATS = 6
MAX_CHIPS = 1e15
"""Most chips of a player: below it, whole numbers and halves are exact in float64."""


class Seats(NamedTuple):
    """Seats that have acted, folded or may not raise: three sets, with seat i as bit i."""

    acted: int = 0  # took an action on this street
    folded: int = 0
    barred: int = 0  # may not raise unless facing a full raise: a smaller all-in came after they acted


class BettingState(NamedTuple):
    """Public state of the betting: chips put in, player to act, street, bets, folds."""

    put_in: tuple[float, ...]  # chips each player has put in over the whole hand
    player: int
    street: int = 0
    bets: int = 0  # bets and raises on this street (a blind is none)
    last_raise: float = 0  # size of the last bet or raise on this street, at least the minimum bet
    dealt: bool = False  # board cards are dealt just before this state
    put_in_before: float = 0  # chips each player had put in before this street; a player who is all-in may have less
    called_bet: bool = False  # the last street ended with a call by the player to act first on this one
    seats: Seats = Seats()
    least_call: float = 0  # on the first street: the big blind, if its player had fewer chips

    @property
    def acted(self) -> bool:
        """True if some player has taken an action on this street."""
        return self.seats.acted != 0

    @property
    def to_call(self) -> float:
        """Chips over the whole hand after a check or call: the largest amount put in.

        If the big blind is short, it is at least the whole blind on the first street. A player with fewer chips calls
        all-in for less. The player's own blind may be the largest amount.
        """
        level = max(self.put_in)
        return level if level >= self.least_call else self.least_call

    @property
    def lowest_raise(self) -> float:
        """Least amount that a no-limit raise may raise to, over the whole hand.

        It is the amount of a call plus the largest bet or raise so far on the street, or the minimum bet if larger. A
        player with fewer chips may raise all-in.
        """
        return self.to_call + self.last_raise

    @property
    def facing(self) -> bool:
        """True if the player to act has put in less than a call, so that there is a bet to call."""
        return self.put_in[self.player] < self.to_call

    @property
    def left(self) -> list[int]:
        """Numbers of the players who have not folded, ascending."""
        return [player for player in range(len(self.put_in)) if not self.seats.folded >> player & 1]

    def with_put_in(self, amount: float) -> tuple[float, ...]:
        """Return a copy of `put_in` in which the player to act has put in `amount` chips in all."""
        return (*self.put_in[: self.player], amount, *self.put_in[self.player + 1 :])


@dataclass(frozen=True)
class BettingRules:
    """Parameters of a betting game, from which `build_tree` builds its tree.

    A player's number, also called position, counts from 0 in the cyclic order of action.
    """

    put_in: tuple[float, ...]  # antes and blinds, by position
    first_player: Sequence[int]  # position to act first on each street; the next one if that player cannot act
    raise_targets: Callable[[BettingState], Sequence[float]]  # amounts that the player to act may raise to, ascending
    stack: float = inf  # chips of each player in the whole hand, or the most if they differ
    minimum_bet: float = 0  # starting value of `last_raise` on each street
    board_cards: Sequence[int] = ()  # cards dealt on each street; () means none anywhere
    check_closes: bool = False  # half-street games: a check ends the street at once
    raise_text: str = "r{}"  # how a raise is written; the braces hold the amount raised to
    put_in_before: float = 0  # part of `put_in` that is no bet: each player's ante, or half of an endgame's pot
    limp: bool = True  # False: no call of the blind before the first raise
    limpers: Sequence[int] = ()  # positions that may call the blind although `limp` is False
    flop_players: int = MOST_SEATS  # most players with chips left who see the second street
    added: Mapping[str, Sequence[float]] = field(default_factory=dict)  # amounts to add, by line without /
    removed: Mapping[str, Sequence[float]] = field(default_factory=dict)  # amounts to leave out, by line without /
    stacks: Sequence[float] = ()  # chips by position, if they differ
    dead: Sequence[float] = ()  # by position: chips in the pot that are no bet, besides `put_in` and the stacks
    least_call: float = 0  # least amount of a call on the first street
    chip: float = 0  # smallest chip, for pots that do not split evenly; 0: they are split exactly
    rake: float = 0  # share of the pots that the house takes; trees of two players pay without it (`Game.rake`)
    rake_cap: float = inf  # most chips of rake in a hand

    @property
    def streets(self) -> int:
        """Number of streets."""
        return len(self.first_player)

    @property
    def line_start(self) -> LineStart:
        """Chips that players have put in before the first action of a hand, as a `LineStart`.

        It has each player's chips that are no bet: the ante, or half of the pot in a game that begins postflop. It also
        has the most chips that a player has put in, blinds included. The conversion of a betting line's amounts needs
        both: chips put in on a street become chips put in over the whole hand, or the reverse.
        """
        return LineStart(self.put_in_before, max(self.put_in), len(self.put_in))

    def deals_board(self, street: int) -> bool:
        """Return True if board cards are dealt before this street."""
        return bool(self.board_cards) and self.board_cards[street] > 0

    def stack_of(self, player: int) -> float:
        """Return a player's stack: the most chips that it can put in over the whole hand.

        Antes in `dead` are not counted.
        """
        return self.stacks[player] if self.stacks else self.stack

    @property
    def effective_stack(self) -> float:
        """The second largest stack: the most chips that a player can lose."""
        return sorted(self.stacks)[-2] if self.stacks else self.stack

    def start(self) -> BettingState:
        """Return the state at a hand's first decision.

        Raises `ValueError` if antes and blinds leave no decision.
        """
        level = max(*self.put_in, self.least_call)
        player = _next_player(self, self.put_in, level, Seats(), self.first_player[0])
        if player is None:
            raise ValueError(f"with {self.put_in} chips put in, no player can bet: larger stacks are needed")
        return BettingState(
            self.put_in,
            player,
            last_raise=self.minimum_bet,
            put_in_before=self.put_in_before,
            least_call=self.least_call,
        )


def amount_text(amount: float) -> str:
    """Return chips as text without a redundant fraction: 300, 1.5."""
    return str(int(amount)) if amount == int(amount) else repr(float(amount))


def may_raise(rules: BettingRules, state: BettingState) -> bool:
    """Return True if the player to act may raise.

    The player, and at least one opponent who has not folded, must have more chips than a call takes. A player who has
    acted before an all-in of less than a full raise (`Seats.barred`) must also face a full raise.
    """
    player, level, (_, folded, barred) = state.player, state.to_call, state.seats
    if level >= rules.stack_of(player) or (barred >> player & 1 and level - state.put_in[player] < state.last_raise):
        return False
    if not rules.stacks:
        return True
    return any(
        other != player and not folded >> other & 1 and stack > level for other, stack in enumerate(rules.stacks)
    )


def raise_bounds(rules: BettingRules, state: BettingState) -> tuple[float, float] | None:
    """Return the least and largest amount of a no-limit raise, or None if no raise is legal.

    Amounts are the player's chips put in over the whole hand after the raise. A raise adds at least the largest bet or
    raise so far on the street, or the minimum bet if that is larger. A player with fewer chips may raise all-in.
    """
    if not may_raise(rules, state):
        return None
    stack = rules.stack_of(state.player)
    return min(state.lowest_raise, stack), stack


def may_call(rules: BettingRules, state: BettingState) -> bool:
    """Return True if the player to act may check or call.

    This is always so, with two exceptions on the first street:

    * A limp (a call of the blind) is illegal if `rules.limp` is False and the player is not one of `rules.limpers`.
    * A call is illegal if `rules.flop_players` others with chips left have matched the bet. The last player to act on
      the street, the big blind, counts as one of them until it folds.

    An all-in call is always allowed, because no raise could replace it.
    """
    player, level = state.player, state.to_call
    if state.street > 0 or not state.facing or level >= rules.stack_of(player):
        return True
    if not rules.limp and not state.bets and player not in rules.limpers:
        return False
    last, folded = (rules.first_player[0] - 1) % len(state.put_in), state.seats.folded
    matched = sum(
        other != player
        and (chips >= level or other == last)
        and rules.stack_of(other) > level
        and not folded >> other & 1
        for other, chips in enumerate(state.put_in)
    )
    return matched < rules.flop_players


def fold_value(state: BettingState) -> float:
    """Return the net chips that player 0 of two wins if the player to act folds; negative: a loss.

    Rake is not deducted.
    """
    return -state.put_in[0] if state.player == 0 else state.put_in[1]


def _next_player(rules: BettingRules, put_in: tuple[float, ...], level: float, seats: Seats, first: int) -> int | None:
    """Return the number of the next player who must act, or None if the street is over.

    Player numbers count from 0 in the cyclic order of action. Players who have folded or are all-in do not act. Others
    must act if they have not acted on the street, or have put in less than a call. The last player with chips acts only
    against a bet.

    put_in  chips of each player over the whole hand
    level   amount of a call, over the whole hand
    seats   players who have acted on this street, or folded
    first   number of the player to consider first
    """
    acted, folded, _ = seats
    count, able, found = len(put_in), 0, None
    stacks = rules.stacks or (rules.stack,) * count
    for player in range(first - count, first):
        if put_in[player] < stacks[player] and not folded >> player % count & 1:
            able += 1
            if found is None and (put_in[player] < level or not acted >> player % count & 1):
                found = player
    if found is None or (able == 1 and put_in[found] >= max(put_in)):
        return None
    return found % count


def following(rules: BettingRules, state: BettingState, *, closes: bool = False) -> BettingState | None:
    """Return the state at the next decision after a fold, check or call; None if no player acts any more.

    state   state just after the action, made by `after_fold` or `after_call`; its `player` is the one who acted
    closes  True: the action ends the street
    """
    put_in, level, seats = state.put_in, state.to_call, state.seats
    if seats.folded.bit_count() == len(put_in) - 1:
        return None
    player = None if closes else _next_player(rules, put_in, level, seats, (state.player + 1) % len(put_in))
    if player is not None:
        return state._replace(player=player, dealt=False)
    street = state.street + 1
    if street == rules.streets:
        return None
    new = Seats(folded=seats.folded)
    player = _next_player(rules, put_in, level, new, rules.first_player[street])
    if player is None:
        return None
    return BettingState(
        put_in,
        player,
        street,
        last_raise=rules.minimum_bet,
        dealt=rules.deals_board(street),
        put_in_before=level,
        called_bet=state.bets > 0 and state.player == player,
        seats=new,
    )


def after_fold(state: BettingState) -> BettingState:
    """Return the state just after the player to act folds.

    `following` then finds the next decision.
    """
    acted, folded, barred = state.seats
    own = 1 << state.player
    return state._replace(seats=Seats(acted | own, folded | own, barred))


def after_call(rules: BettingRules, state: BettingState) -> BettingState:
    """Return the state just after the player to act checks or calls, all-in if the chips are too few.

    `following` then finds the next decision.
    """
    acted, folded, barred = state.seats
    amount = min(state.to_call, rules.stack_of(state.player))
    return state._replace(put_in=state.with_put_in(amount), seats=Seats(acted | 1 << state.player, folded, barred))


def after_last(rules: BettingRules, state: BettingState, action: str) -> BettingState:
    """Return the state after an action that ends the hand, for `pots_of` and `payoffs`.

    action  "f": a fold; otherwise a check or call
    """
    return after_fold(state) if action == "f" else after_call(rules, state)


def called(rules: BettingRules, state: BettingState) -> BettingState | None:
    """Return the state at the next decision after a check or call; None if no player acts any more.

    The hand then goes to a showdown, at once or after the rest of the board.
    """
    return following(rules, after_call(rules, state), closes=rules.check_closes)


def raised(rules: BettingRules, state: BettingState, target: float) -> BettingState:
    """Return the state at the next decision after a raise, whose legality is not checked.

    target  chips that the raiser has put in after the raise, over the whole hand
    """
    player, size, put_in = state.player, target - state.to_call, state.with_put_in(target)
    acted = state.seats.acted | 1 << player
    short = size < state.last_raise and target >= rules.stack_of(player)
    seats = Seats(acted, state.seats.folded, acted if short else 0)
    following_player = _next_player(rules, put_in, target, seats, (player + 1) % len(put_in))
    assert following_player is not None, "no player can answer the raise: it was not legal"
    return BettingState(
        put_in,
        following_player,
        state.street,
        state.bets + 1,
        max(size, state.last_raise),
        put_in_before=state.put_in_before,
        seats=seats,
    )


class Pot(NamedTuple):
    """A main or side pot: its chips after rake, and the seats that can win it (bit i: seat i)."""

    chips: float
    contenders: int


def pots_of(rules: BettingRules, state: BettingState) -> list[Pot]:
    """Return the main pot and the side pots at the end of a hand, main pot first.

    state  state after the last action, made by `after_last`

    A pot holds what all players put in up to the amount of one player who has not folded. Its contenders are those who
    put in as much and have not folded. The main pot includes the chips of `rules.dead`, such as antes. The last pot
    includes the uncalled bet, which pays no rake. The cap of the rake limits the sum over all pots. A hand that ends by
    folds on the first street pays no rake.
    """
    put_in, live = state.put_in, state.left
    top = max(live, key=put_in.__getitem__)
    uncalled = max(0.0, put_in[top] - max(chips for player, chips in enumerate(put_in) if player != top))
    left = 0.0 if state.street == 0 and len(live) == 1 else rules.rake_cap
    found, below, pot = [], 0.0, float(sum(rules.dead))
    for level in sorted({put_in[player] for player in live}):
        pot += sum(min(chips, level) - min(chips, below) for chips in put_in)
        contenders = sum(1 << player for player in live if put_in[player] >= level)
        rake = min(rules.rake * (pot - uncalled if level == put_in[top] else pot), left)
        found.append(Pot(pot - rake, contenders))
        left, below, pot = left - rake, level, 0.0
    return found


def payoffs(rules: BettingRules, state: BettingState, strength: Sequence[int]) -> list[float]:
    """Return the net chips that each player wins at the end of a hand; they sum to minus the rake.

    state     state after the last action, made by `after_last`
    strength  rank of each player's hand at the showdown, higher wins; those of folded players are not read

    The players with the best hand among the contenders of a pot split it; the module's docstring describes odd chips.
    """
    dead = rules.dead or (0,) * len(state.put_in)
    won = [0.0 - chips - extra for chips, extra in zip(state.put_in, dead, strict=True)]
    first, count = rules.first_player[-1], len(state.put_in)
    for pot, contenders in pots_of(rules, state):
        entitled = [player for player in (*range(first, count), *range(first)) if contenders >> player & 1]
        best = max(strength[player] for player in entitled)
        winners = [player for player in entitled if strength[player] == best]
        share = pot / len(winners)
        if rules.chip:
            share = floor(share / rules.chip) * rules.chip
        odd = pot - share * len(winners) if rules.chip else 0.0
        for player in winners:
            extra = min(rules.chip, odd)
            won[player] += share + extra
            odd -= extra
    return won
