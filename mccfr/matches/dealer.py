"""Dealer of the ACPC protocol: runs matches of two to six players, local or over connections.

ACPC is the Annual Computer Poker Competition; `mccfr.matches.acpc` describes its protocol. The seed determines all
deals. Players move by one seat from deal to deal. With duplicate deals, every deal is played with each player in each
seat. So the second half of a match of two repeats the first half's deals with seats exchanged. A player's message must
begin with the state it was sent, otherwise it is ignored. A raise of an illegal size is replaced by the nearest legal
one, any other illegal action by a check or call. Both are counted in `MatchDealer.changed`. The time of a player over
a connection is limited per decision and per match.
"""

import re
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from abstraction.cards import combo_text
from mccfr.cards.card_index import Deal
from mccfr.cards.full_deck import WholeDeck
from mccfr.common.intervals import ratio95
from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingRules, BettingState, amount_text, raise_bounds
from mccfr.matches.acpc import (
    MOST_ACTIONS,
    BettingResult,
    MatchState,
    TableError,
    acpc_rules,
    follow_actions,
    follow_line,
    quoted,
    won_chips,
)
from mccfr.matches.acpc_log import LoggedHand, Replay, read_hand
from mccfr.matches.acpc_session import AcpcSession
from mccfr.matches.socket_lines import FirstMessages

_STREETS = (0, 3, 1, 1)
_RAISE = re.compile("r[0-9]{1,15}")


@dataclass(frozen=True)
class MatchPlan:
    """Settings of a match, which determine its deals and the seat of each player in each hand.

    stack      chips of each player at the beginning of every hand
    blinds     (small blind, big blind) in chips
    hands      number of hands of the match
    seed       random seed of the deals
    duplicate  True: each deal is played once for each player, so that each player plays it in each seat; `hands` is
               then a multiple of the number of players
    names      names of the players

    Raises `ValueError` for impossible settings, such as no hands, or names that logs cannot hold.
    """

    stack: float
    blinds: tuple[float, float]
    hands: int
    seed: int
    duplicate: bool
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        acpc_rules(self.game, "dealer")
        small, big = self.blinds
        if not 0 <= small <= big <= self.stack:
            raise ValueError(
                f"blinds = {small:g} {big:g}, stack = {self.stack:g}: the small blind must not be above the big blind, "
                "nor that above the stack"
            )
        if self.hands < 1:
            raise ValueError(f"hands = {self.hands}: at least 1 is needed")
        if self.duplicate and self.hands % len(self.names):
            number = "an even number" if len(self.names) == 2 else f"a multiple of {len(self.names)}"
            raise ValueError(f"hands = {self.hands}: duplicate deals need {number}")
        for name in self.names:
            if not name or not name.isprintable() or set(name) & set(":|"):
                raise ValueError(f"{name!r} is no name of a player: it stands between ':' and '|' in logs")

    @property
    def game(self) -> HoldemGame:
        """No-limit hold'em with the match's number of players, stack and blinds."""
        return HoldemGame(seats=len(self.names), stack=self.stack, blinds=self.blinds)

    @property
    def deals(self) -> int | None:
        """Number of deals of a duplicate match, else None."""
        return self.hands // len(self.names) if self.duplicate else None

    def seating(self, number: int) -> tuple[int, list[int]]:
        """Return (number of the deal, players by seat number) of hand `number`.

        A player is an index of `names`. Players move by one seat from deal to deal. With duplicate deals their seats
        also differ between the repeats of a deal.
        """
        part, deal = divmod(number, self.deals or self.hands)
        seats = len(self.names)
        return deal, [(position + deal - part) % seats for position in range(seats)]

    def fields(self) -> Mapping[str, Any]:
        """Return the settings as JSON fields, which the first line of the match's log states."""
        return {**asdict(self), "blinds": list(self.blinds), "names": list(self.names)}


@dataclass(frozen=True)
class Clock:
    """Time limits of each player in seconds.

    response  limit of one decision
    per_hand  mean limit of a hand: all decisions of a match together may take this times the number of hands
    """

    response: float = 600.0
    per_hand: float = 7.0


class DealerSeat(Protocol):
    """Interface of a player: the dealer sends it the hand's states and receives its actions."""

    def tell(self, line: str) -> None:
        """Send the hand's state, a MATCHSTATE line, to the player, even if it need not act."""

    def ask(self, line: str, seconds: float) -> str:
        """Wait for the player's next message, a line of text, and return it.

        line     MATCHSTATE line to answer, which `tell` has already sent
        seconds  time limit

        Raises `TimeoutError` after `seconds`.
        """


class LocalSeat:
    """A player in this process; it exchanges the same text lines as a player over a connection.

    It has no time limits: it chooses its action in `tell`, whose time the dealer does not measure.
    """

    def __init__(self, session: AcpcSession) -> None:
        self._session, self._answer_of = session, ""

    def tell(self, line: str) -> None:
        """Pass the hand's state, a MATCHSTATE line, to the player; store its answer for `ask`."""
        self._answer_of = self._session.answer(line.encode("ascii")) or ""

    def ask(self, line: str, seconds: float) -> str:
        """Return the answer to the last state that `tell` received; "" if it was not the player's turn."""
        del line, seconds
        return self._answer_of


class Score(NamedTuple):
    """Score of a player in a match.

    hands  number of hands played
    chips  won by the player in all hands together, below 0 for a loss
    mean   chips won per hand; None with fewer than two samples
    ci95   95 % interval of the mean; None with fewer than two samples. A sample is a hand, or with duplicate deals a
           deal that was played in every seating
    pairs  number of deals that were played in every seating; None if deals are not duplicate
    """

    hands: int
    chips: float
    mean: float | None
    ci95: tuple[float, float] | None
    pairs: int | None = None


class MatchDealer:
    """Plays a match hand by hand: deals, asks players for actions, and checks these by the rules.

    changed  number of illegal actions that were replaced so far
    """

    def __init__(
        self,
        plan: MatchPlan,
        seats: Sequence[DealerSeat],
        clock: Clock = Clock(),
        warned: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take the plan, the players and their time limits.

        seats   a `DealerSeat` for each player, in the order of the plan's `names`
        warned  called with a text for each of the first 100 ignored messages and replaced actions
        """
        self._plan, self._seats, self._clock, self._warned = plan, seats, clock, FirstMessages(warned)
        self._rules = acpc_rules(plan.game, "dealer")
        self._dealing = _dealing(plan)
        self._used = [0.0] * len(plan.names)
        self.changed = 0

    def play(self, number: int) -> LoggedHand:
        """Deal hand `number` and play it to its end; return it as an entry of the match log.

        Raises `TableError` if a player exceeds its time or breaks the protocol.
        """
        deal_number, players = self._plan.seating(number)
        deal = self._dealing.deal(self._plan.seed, deal_number)
        holes = tuple(combo_text(hand) for hand in deal.hands)
        actions = list[str]()
        while True:
            game = follow_actions(self._rules, actions)
            board = _board(self._dealing, deal, game.text.count("/"))
            lines = [
                MatchState(position, number, game.text, _visible_hands(holes, {position, *game.shown}), board).text()
                for position in range(len(players))
            ]
            for position, player in enumerate(players):
                self._seats[player].tell(lines[position])
            if not isinstance(game.state, BettingState):
                return _logged_hand(self._plan, self._rules, self._dealing, number, game)
            actor = game.state.player
            answer = self._answer_of(players[actor], lines[actor], number)
            actions.append(self._legal(game, answer, f"{self._plan.names[players[actor]]}, hand {number}"))

    def _answer_of(self, player: int, line: str, number: int) -> str:
        """Return the text of the action with which a player answers a state, such as "r300".

        Messages that do not begin with the state are ignored. Raises `TableError` after the time limit.

        player  index of the player in the plan's `names`
        line    the state as a MATCHSTATE line
        number  of the hand
        """
        seat, name, start = self._seats[player], self._plan.names[player], time.monotonic()
        bank = self._clock.per_hand * self._plan.hands - self._used[player]
        limit = min(self._clock.response, bank)
        while True:
            try:
                answer = seat.ask(line, max(limit - (time.monotonic() - start), 0.0))
            except TimeoutError:
                qualifier = "" if limit == self._clock.response else ", all that is left of its time for the match"
                raise TableError(
                    f"{name} has not answered for {limit:g} s{qualifier}, in hand {number}: the match stops"
                ) from None
            if answer.startswith(f"{line}:"):
                self._used[player] += time.monotonic() - start
                return answer[len(line) + 1 :]
            self._warned(f"{name}, hand {number}: {quoted(answer)} is not an answer to {line!r}, and is ignored")

    def _legal(self, game: BettingResult, answer: str, who: str) -> str:
        """Return a player's action; if it is illegal, warn and return the nearest legal one.

        A raise of an illegal size becomes the smallest or largest raise. Anything else becomes a check or call, also a
        raise after 63 checks, calls and raises on the street (`MOST_ACTIONS`).

        game    the betting so far
        answer  the action as the player sent it
        who     name of the player and the hand, for the warning
        """
        assert isinstance(game.state, BettingState)
        bounds = raise_bounds(self._rules, game.state)
        if sum(mark in "cr" for mark in game.text.rpartition("/")[2]) >= MOST_ACTIONS:
            bounds = None
        action = "c"
        if answer == "f" and game.state.facing:
            action = "f"
        elif _RAISE.fullmatch(answer) and bounds is not None:
            action = f"r{amount_text(float(min(max(int(answer[1:]), bounds[0]), bounds[1])))}"
        if action != answer:
            self.changed += 1
            self._warned(f"{who}: {quoted(answer)} is not legal after {game.text!r}, and becomes {action}")
        return action


def replay_of(plan: MatchPlan) -> Replay:
    """Return a function that validates one line of a match's log; the seed determines all deals.

    Its arguments are the hands of all earlier lines, and the line. It returns the line's hand, or None for the last
    line, the score. It raises `ValueError` (mostly a `TableError`) if a hand is out of order, illegal or not dealt from
    the seed, or a result is wrong.
    """
    rules, dealing = acpc_rules(plan.game, "dealer"), _dealing(plan)

    def replay(hands: Sequence[LoggedHand], line: str) -> LoggedHand | None:
        number = len(hands)
        if line.startswith("SCORE:") or number == plan.hands:
            expected = score_text(plan, scores(plan, hands))
            if number < plan.hands or line != expected:
                raise TableError(f"{quoted(line)} is not the score of {number:,} hands out of {plan.hands:,}")
            return None
        logged = read_hand(line)
        if logged.number != number:
            raise TableError(f"hand {logged.number} stands in the place of hand {number}")
        game = follow_line(rules, logged.betting)
        if isinstance(game.state, BettingState):
            raise TableError(f"the betting {quoted(logged.betting)} is not over")
        hand = _logged_hand(plan, rules, dealing, number, game)
        if hand.text() != line:
            raise TableError(f"{quoted(line)} contradicts the deal and the betting, which give {quoted(hand.text())}")
        return hand

    return replay


def _dealing(plan: MatchPlan) -> WholeDeck:
    return WholeDeck(_STREETS, np.ones((4, len(plan.names)), np.int64), list)


def _logged_hand(
    plan: MatchPlan, rules: BettingRules, dealing: WholeDeck, number: int, game: BettingResult
) -> LoggedHand:
    """Return the log entry of hand `number`, whose betting `game` is over; deal its cards again."""
    deal_number, players = plan.seating(number)
    deal = dealing.deal(plan.seed, deal_number)
    holes = tuple(combo_text(hand) for hand in deal.hands)
    board = _board(dealing, deal, game.text.count("/"))
    chips = won_chips(rules, game, holes, board)
    return LoggedHand(number, game.text, holes, board, chips, tuple(plan.names[player] for player in players))


def scores(plan: MatchPlan, hands: Sequence[LoggedHand]) -> list[Score]:
    """Return each player's score after the hands of a log, in the order of the plan's `names`.

    Raises `TableError` if the log does not state the chips of a hand.
    """
    won = [_won_by_player(plan, hand) for hand in hands]
    columns = list(zip(*won, strict=True)) or [()] * len(plan.names)
    return [score_of(column, plan.deals, len(plan.names)) for column in columns]


def score_of(won: Sequence[float], deals: int | None = None, seats: int = 2) -> Score:
    """Return a player's score from the chips that it won in each hand.

    won    chips by hand, in the order of play; a match may be unfinished
    deals  number of duplicate deals, each played `seats` times; None if deals are not duplicate
    """
    units = won
    if deals is not None:
        parts = [won[part * deals : (part + 1) * deals] for part in range(seats)]
        units = [sum(unit) / seats for unit in zip(*parts, strict=False)]
    mean, interval = None, None
    if len(units) > 1:
        mean, interval = ratio95(np.array(units), np.ones(len(units)))
    return Score(len(won), float(sum(won)), mean, interval, None if deals is None else len(units))


def _won_by_player(plan: MatchPlan, hand: LoggedHand) -> list[float]:
    """Return the net chips of each player in a hand, in the order of the plan's `names`.

    Raises `TableError` if the log does not state them.
    """
    if hand.chips is None:
        raise TableError(f"hand {hand.number} of the log does not say what was won")
    players = plan.seating(hand.number)[1]
    return [hand.chips[players.index(player)] for player in range(len(players))]


def score_text(plan: MatchPlan, scores: Sequence[Score]) -> str:
    """Return the line `SCORE:chips|chips:name|name`, the last one of a log: total net chips by player."""
    return f"SCORE:{'|'.join(amount_text(score.chips) for score in scores)}:{'|'.join(plan.names)}"


def _visible_hands(holes: Sequence[str], positions: Container[int]) -> tuple[str, ...]:
    """Return `holes`, hole cards by seat number, with "" for seats that are not in `positions`."""
    return tuple(hole if position in positions else "" for position, hole in enumerate(holes))


def _board(dealing: WholeDeck, deal: Deal, street: int) -> tuple[str, ...]:
    """Return the board cards dealt on each of the first `street` streets from the flop on, as texts."""
    whole = dealing.board_text(3, deal.boards[3])
    stops = [0, 6, 8, 10]
    return tuple(whole[stops[each] : stops[each + 1]] for each in range(street))
