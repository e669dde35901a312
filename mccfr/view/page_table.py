"""Hands that the user plays against a strategy on the web page.

The server knows all cards.  It shows the user's own, the board, and the others' at a showdown.  A request names the
hand and the line that the user has seen, so a repeated request has no effect.
"""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from mccfr.cards.card_index import Deal
from mccfr.games.betting import BettingState
from mccfr.games.line_text import typed_line
from mccfr.games.translation import actions_of
from mccfr.play.player import Player, PlayerSpec, Program, State
from mccfr.play.policy_seat import PolicySpec
from mccfr.play.resolving.resolving_seat import ResolvingSpec
from mccfr.play.resolving.resolving_table import settings_of
from mccfr.play.table import PlayedHand, shown_down, won_chips
from mccfr.trees.street_amounts import street_line
from mccfr.view.drills import deal_hand
from mccfr.view.resolve_request import MOST_ITERATIONS, BusyError
from mccfr.view.spot_view import Spots

_PATIENCE_SECONDS = 10.0


class _PersonSeat(Program):
    """The user's seat, which records the hand's cards and actions; it never chooses an action."""

    def act(self, random: Random) -> str:
        """Raise `RuntimeError`, because actions of the user are never chosen here."""
        raise RuntimeError("the person's seat cannot be moved by the program")


class PageTable:
    """The user's hands against a strategy in all other seats; several threads may call it.

    The user has every position in turn, as the button moves round the table.
    """

    def __init__(self, spots: Spots, patience: float = _PATIENCE_SECONDS) -> None:
        """Start without a hand.

        spots     the strategy that plays all other seats
        patience  seconds that a request waits while the strategy chooses an action for another request; after
                  them it raises `BusyError`
        """
        self._spots, self._table, self._patience = spots, threading.Lock(), patience
        self._begin("", 0)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the table for one request; raise `BusyError` if another one has it for `patience` seconds."""
        if not self._table.acquire(timeout=self._patience):
            raise BusyError("the strategy is thinking about this hand: try again when it has acted")
        try:
            yield
        finally:
            self._table.release()

    def _begin(self, resolve: str, seed: int, line: str = "") -> None:
        """Begin a session, still without a hand; the arguments are those of `sit`."""
        source, betting = self._spots.source, self._spots.betting
        spec: PlayerSpec = PolicySpec(source)
        if resolve:
            settings = settings_of(resolve)
            if settings.effort is not None and settings.effort.iterations > MOST_ITERATIONS:
                raise ValueError(f"resolve = {resolve[:40]!r}: at most {MOST_ITERATIONS:,} iterations are done here")
            spec = ResolvingSpec(source, settings)
        self._bots = [spec.player(betting, seed=seed + place) for place in range(self._spots.players - 1)]
        self._person, self._players = _PersonSeat(betting), list[Player]()
        self._seed, self._number, self._position = seed, -1, 0
        self._line, self._newest, self._counts = line, -1, True
        self._won, self._played = 0.0, 0
        self._log, self._done, self._result = list[dict[str, Any]](), list[tuple[State, str]](), None
        self._cards: Deal | None = None
        self._opened = 0

    _result: dict[str, Any] | None

    # --- requests ---

    def sit(self, resolve: str = "", seed: int | None = None, line: str = "", hand: int = 0) -> dict[str, Any]:
        """Begin a session and deal its first hand; return the hand as the user sees it, as JSON (see `state`).

        resolve  STREET[:METHOD[:ITERATIONS]]: the strategy's seats re-solve hands from this street on, such as "river"
                 or "turn:unsafe:200". METHOD is resolving, maxmargin or unsafe. "" for no re-solving
        seed     seed of cards and of the strategy's draws, 0 to 2^63 - 1; None draws one
        line     betting line with which every hand begins, before the user acts; "" for none. With three and more
                 players it may be the name of a set of preflop lines; each hand draws one
        hand     number of the first hand, with which a hand of an earlier session is dealt again

        Raises `ValueError` for a game that cannot be re-solved, an invalid text or number, and a line that the strategy
        never plays.
        """
        if seed is not None and not 0 <= seed < 2**63:
            raise ValueError(f"seed = {str(seed)[:40]}: it must be from 0 to 2^63 - 1")
        if not 0 <= hand < 2**31:
            raise ValueError(f"hand = {str(hand)[:40]}: it must be from 0 to 2^31 - 1")
        seed = secrets.randbits(48) if seed is None else seed
        if line:
            deal_hand(self._spots, line, seed, 0)
        with self._lock():
            self._begin(resolve, seed, line)
            return self._deal(hand)

    def deal(self, hand: int) -> dict[str, Any]:
        """Deal the next hand if hand number `hand` is over; return the hand dealt last as the user sees it.

        The result is JSON with the fields that `state` lists.
        """
        with self._lock():
            over = hand == self._number and self._result is not None
            return self._deal(self._newest + 1) if over else self._document()

    def again(self, hand: int) -> dict[str, Any]:
        """Deal hand number `hand` of this session again, without counting its result.

        Returns the hand as the user sees it, as JSON with the fields that `state` lists.

        Raises `ValueError` for an unknown hand, and while a hand is played.
        """
        with self._lock():
            if self._result is None or not 0 <= hand <= self._newest:
                raise ValueError(f"hand = {hand}: only hands of this session, once one is over, are dealt again")
            return self._deal(hand)

    def act(self, hand: int, line: str, action: str) -> dict[str, Any]:
        """Take the user's action after `line` in hand number `hand`, then let the strategy act.

        Returns the hand as the user sees it, as JSON with the fields that `state` lists.  Nothing is done if `hand` is
        not the hand dealt last or is over, or if the actions so far are not `line`.

        Raises `ValueError` for an illegal action.
        """
        with self._lock():
            begun = self._cards is not None and self._result is None
            if begun and hand == self._number and line == self._seen():
                actions = actions_of(typed_line(self._spots.source.game, line + action))
                if len(actions) != len(self._log) + 1:
                    raise ValueError(f"action = {action[:40]!r}: give one action")
                self._take(actions[-1])
                self._go_on()
            return self._document()

    def state(self) -> dict[str, Any]:
        """Return the hand that was dealt last as JSON, without the cards that the user may not see.

        hand           number of the hand; null before the first, without the other fields
        seed           seed of the session
        position       index of the user's position in lists by position, such as `behind_chips`
        cards, board   the user's cards and the board
        line           actions so far, as text
        log            actions so far, each with `street`, `player`, `name`, `kind`, and the `line` before it
        left           indices of the positions that have not folded
        pot_chips      chips in the pot, bets of this street included
        behind_chips   chips of each position that are not in the pot; null if stacks are unknown
        street_chips   chips that each position has put in on this street
        drilled        line, or name of a set of lines, with which every hand begins; "" for none
        opened         number of actions at the beginning of `log` that come from the line `drilled`
        again          True if the hand was dealt before and does not count
        actions        at the user's turn, the strategy's actions with `action`, `name`, `kind`, `to_chips`; else []
        raise_chips    [least, most] chips of a bet on this street; null if the user may not type a bet now
        result         null until the hand is over; then `won_chips` of the user, `won_by_position`, and `shown`, the
                       cards of each position at a showdown, null if they are not shown
        played         number of hands finished in the session, without those dealt again
        won_chips      chips that the user won in these hands
        """
        with self._lock():
            return self._document()

    # --- the hand ---

    def _deal(self, number: int) -> dict[str, Any]:
        """Deal hand `number`, let the strategy act until it is the user's turn; return what `state` returns."""
        dealing, bots = self._spots.dealing, iter(self._bots)
        self._number, self._counts, self._newest = number, number > self._newest, max(number, self._newest)
        self._position, self._result, self._log, self._done = (1 - number) % self._spots.players, None, [], []
        opening = list[str]()
        if self._line:
            self._position, self._cards, opening = deal_hand(self._spots, self._line, self._seed, number)
        else:
            self._cards = dealing.deal(self._seed, number)
        positions = range(self._spots.players)
        self._players = [self._person if position == self._position else next(bots) for position in positions]
        for position, player in enumerate(self._players):
            player.deal(position, dealing.hand_text(self._cards.hands[position]), self._number)
        self._lay()
        for action in opening:
            self._take(action)
        self._opened = len(opening)
        self._go_on()
        return self._document()

    def _lay(self) -> None:
        """Tell all players, the user and the strategy's seats, the board of the current street."""
        state, dealing = self._person.state, self._spots.dealing
        if self._cards is not None and not isinstance(state, int):
            text = dealing.board_text(state.street, self._cards.boards[state.street])
            for player in self._players:
                player.board(text)

    def _go_on(self) -> None:
        """Let the strategy act while it is its turn."""
        while not isinstance(state := self._person.state, int) and state.player != self._position:
            actor = self._players[state.player]
            self._take(actor.choose(), actor)

    def _take(self, action: str, chosen_by: Player | None = None) -> None:
        """Play an action: tell it to the players, record it; then deal a board or end the hand, if due.

        chosen_by  player that chose the action and knows it already; None: tell all players
        """
        before: Any = self._person.state
        for player in self._players:
            if player is not chosen_by:
                player.see(action)
        line = self._log[-1]["after"] if self._log else ""
        self._log.append({**self._spots.step(before, action, line), "after": self._seen()})
        self._done.append((before, action))
        if isinstance(self._person.state, int):
            self._end()
        elif self._person.state.street != before.street:
            self._lay()

    def _end(self) -> None:
        """Compute the result after the last action; count the hand unless it was dealt before."""
        assert self._cards is not None
        dealing, cards = self._spots.dealing, self._cards
        states, actions = zip(*self._done, strict=True)
        two = self._spots.betting.settled(states[-1], actions[-1]) if len(cards.hands) == 2 else ()
        hand = PlayedHand(self._person.line, states, actions, *two)
        won, shown = won_chips(self._spots.source.game, dealing, cards, hand), shown_down(hand)
        if shown:
            last = dealing.streets - 1
            self._person.cards = dealing.board_text(last, cards.boards[last])
        if self._counts:
            self._won, self._played = self._won + won[self._position], self._played + 1
        texts = [dealing.hand_text(each) if position in shown else None for position, each in enumerate(cards.hands)]
        self._result = {"won_chips": won[self._position], "won_by_position": won, "shown": texts}

    # --- answers ---

    def _seen(self) -> str:
        """Return the actions of the hand so far as a line, with bets as chips put in on the street."""
        return street_line(self._person.line, self._spots.start)

    def _left(self) -> list[int]:
        folded = {one["player"] for one in self._log if one["kind"] == "fold"}
        return [position for position in range(self._spots.players) if position not in folded]

    def _chips(self) -> tuple[list[float], list[float]]:
        """Return two lists: the chips that each player has put in over the whole hand, and on this street."""
        state: Any = self._person.state
        last, action = self._done[-1] if isinstance(state, int) else (state, "")
        put_in = list(last.put_in)
        if action == "c":
            put_in[last.player] = self._spots.to_chips(last, action)
        before = last.put_in_before if isinstance(last, BettingState) else min(put_in)
        return put_in, [max(chips - before, 0.0) for chips in put_in]

    def _document(self) -> dict[str, Any]:
        """Return the fields that `state` describes."""
        if self._cards is None:
            return {"hand": None}
        person, state = self._person, self._person.state
        turn = not isinstance(state, int) and state.player == self._position
        put_in, street_chips = self._chips()
        return {
            "hand": self._number,
            "seed": self._seed,
            "position": self._position,
            "cards": person.hand,
            "board": person.cards,
            "line": self._seen(),
            "log": self._log,
            "left": self._left(),
            "pot_chips": sum(put_in) + self._spots.dead_chips,
            "behind_chips": self._spots.behind_chips(put_in),
            "street_chips": street_chips,
            "actions": self._spots.offered(self._seen()) if turn else [],
            "raise_chips": self._bounds() if turn else None,
            "result": self._result,
            "drilled": self._line,
            "opened": self._opened,
            "again": not self._counts,
            "played": self._played,
            "won_chips": self._won,
        }

    def _bounds(self) -> list[float] | None:
        """Return [smallest, largest] legal bet of the user, in chips on this street.

        Returns None if no bet is legal, or if the game allows only the bets of the tree.
        """
        state, found = self._person.state, self._person.raises()
        if not isinstance(state, BettingState) or not found:
            return None
        return [float(action[1:]) - state.put_in_before for action in found]
