"""Hands that the user plays against a strategy on the page.

The server knows all cards.  It shows the user's own, the board, and the opponent's at a showdown.  A request names the
hand and the line that the user has seen, so a repeated request has no effect.
"""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np

from mccfr.cards.card_index import Deal
from mccfr.games.betting import BettingState
from mccfr.games.line_text import typed_line
from mccfr.games.translation import Translation, actions_of
from mccfr.play.player import PlayerSpec, Program
from mccfr.play.policy_seat import PolicySpec
from mccfr.play.resolving.resolving_seat import ResolvingSpec
from mccfr.play.resolving.resolving_table import settings_of
from mccfr.play.showdown_values import showdown_results
from mccfr.trees.street_amounts import street_line
from mccfr.view.drills import deal_hand
from mccfr.view.resolve_request import MOST_ITERATIONS, BusyError
from mccfr.view.spot_view import Spots

_PATIENCE_SECONDS = 10.0


class _PersonSeat(Program):
    """The user's seat, which records the hand; the user's actions come from requests."""

    def act(self, random: Random) -> str:
        """Raise an error, because actions of the user are never chosen here."""
        raise RuntimeError("the person's seat cannot be moved by the program")


class PageTable:
    """The user's hands against a strategy, from both seats in turn; several threads may call it."""

    def __init__(self, spots: Spots, patience: float = _PATIENCE_SECONDS) -> None:
        """`patience` is the seconds that a request waits while the strategy acts, before `BusyError`."""
        self._spots, self._table, self._patience = spots, threading.Lock(), patience
        self._begin("", 0)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if not self._table.acquire(timeout=self._patience):
            raise BusyError("the strategy is thinking about this hand: try again when it has acted")
        try:
            yield
        finally:
            self._table.release()

    def _begin(self, resolve: str, seed: int, line: str = "") -> None:
        source, betting = self._spots.source, self._spots.betting
        spec: PlayerSpec = PolicySpec(source)
        if resolve:
            settings = settings_of(resolve)
            if settings.effort is not None and settings.effort.iterations > MOST_ITERATIONS:
                raise ValueError(f"resolve = {resolve[:40]!r}: at most {MOST_ITERATIONS:,} iterations are done here")
            spec = ResolvingSpec(source, settings)
        self._bot, self._person = spec.player(betting, seed=seed), _PersonSeat(betting)
        self._seed, self._number, self._position = seed, -1, 0
        self._line, self._newest, self._counts = line, -1, True
        self._won, self._played, self._put_in = 0.0, 0, (0.0, 0.0)
        self._log, self._result = list[dict[str, Any]](), None
        self._cards: Deal | None = None
        self._opened = 0

    _result: dict[str, Any] | None

    # --- requests ---

    def sit(self, resolve: str = "", seed: int | None = None, line: str = "", hand: int = 0) -> dict[str, Any]:
        """Begin a session and deal its first hand; answers as `state`.

        resolve  how the strategy re-solves its hands, as in commands: "river"; "" for not at all
        seed     seed of cards and of the strategy's draws, 0 to 2^63 - 1; None draws one
        line     line with which every hand begins (`mccfr.view.drills`); the user acts next
        hand     number of the first hand, with which a hand of an earlier session is dealt again

        Raises `ValueError` for a game that cannot be re-solved, an invalid text or seed, and as `deal_hand`.
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
        """Deal the hand after number `hand`, which is over; a repeated or early request changes nothing."""
        with self._lock():
            over = hand == self._number and self._result is not None
            return self._deal(self._newest + 1) if over else self._document()

    def again(self, hand: int) -> dict[str, Any]:
        """Deal an earlier hand again without counting it; `ValueError` for an unknown hand or during a hand."""
        with self._lock():
            if self._result is None or not 0 <= hand <= self._newest:
                raise ValueError(f"hand = {hand}: only hands of this session, once one is over, are dealt again")
            return self._deal(hand)

    def act(self, hand: int, line: str, action: str) -> dict[str, Any]:
        """Take an action in hand number `hand` after `line`, then let the strategy act; answers as `state`.

        If the hand has gone on since `line`, nothing is done.  Raises `ValueError` for an illegal action.
        """
        with self._lock():
            begun = self._cards is not None and self._result is None
            if begun and hand == self._number and line == self._seen():
                before, actions = self._person.state, actions_of(typed_line(self._spots.source.game, line + action))
                if len(actions) != len(self._log) + 1:
                    raise ValueError(f"action = {action[:40]!r}: give one action")
                self._person.see(actions[-1])
                self._bot.see(actions[-1])
                self._done(before, actions[-1])
                self._go_on()
            return self._document()

    def state(self) -> dict[str, Any]:
        """Return the hand as the user may see it.

        hand           its number; null before the first
        seed           seed of the session
        position       of the user
        cards, board   the user's cards and the board
        log            actions with `street`, `player`, `name`, `kind`, and the `line` before each
        behind_chips   by position, if stacks are known
        opened         number of log entries that belong to the `drilled` line
        again          True if the hand was dealt before and does not count
        actions        those of the strategy as in `Spots.spot`, if it is the user's turn; other bets may be typed
        raise_chips    least and most of a bet on this street; null if none is allowed
        result         after the hand: `won_chips`, and the opponent's cards `shown`, null without a showdown
        played         number of hands in the session
        won_chips      chips won in the session
        """
        with self._lock():
            return self._document()

    # --- the hand ---

    def _deal(self, number: int) -> dict[str, Any]:
        dealing = self._spots.dealing
        self._number, self._counts, self._newest = number, number > self._newest, max(number, self._newest)
        self._position, self._result, self._log = (number + 1) % 2, None, []
        opening = list[str]()
        if self._line:
            self._position, self._cards, opening = deal_hand(self._spots, self._line, self._seed, number)
        else:
            self._cards = dealing.deal(self._seed, number)
        for player, position in ((self._person, self._position), (self._bot, 1 - self._position)):
            player.deal(position, dealing.hand_text(self._cards.hands[position]), self._number)
        self._lay()
        for action in opening:
            before = self._person.state
            self._person.see(action)
            self._bot.see(action)
            self._done(before, action)
        self._opened = len(opening)
        self._go_on()
        return self._document()

    def _lay(self) -> None:
        """Show the current street's board to both players."""
        state, dealing = self._person.state, self._spots.dealing
        if self._cards is not None and not isinstance(state, int):
            text = dealing.board_text(state.street, self._cards.boards[state.street])
            for player in (self._person, self._bot):
                player.board(text)

    def _go_on(self) -> None:
        """Let the strategy act while it is its turn."""
        while not isinstance(state := self._bot.state, int) and state.player == self._bot.position:
            action = self._bot.choose()
            self._person.see(action)
            self._done(state, action)

    def _done(self, before: Any, action: str) -> None:
        """Record an action that both players have seen."""
        line = self._log[-1]["after"] if self._log else ""
        self._log.append({**self._spots.step(before, action, line), "after": self._seen()})
        if isinstance(self._person.state, int):
            self._end(before, action)
        elif self._person.state.street != before.street:
            self._lay()

    def _end(self, before: Any, action: str) -> None:
        """Settle the hand after the last action."""
        assert self._cards is not None
        put_in = list(before.put_in)
        if action == "c":
            put_in[before.player] = before.to_call
        self._put_in = tuple(put_in)
        dealing, cards = self._spots.dealing, self._cards
        fixed, showdown = self._spots.betting.settled(before, action)
        shown, result = None, 0.0
        if showdown:
            last = dealing.streets - 1
            drawn = showdown_results(dealing, cards.hands, last, cards.boards[last], 1, np.random.default_rng(0))
            result = float(drawn[0])
            shown = dealing.hand_text(cards.hands[1 - self._position])
            self._person.cards = dealing.board_text(last, cards.boards[last])
        won = self._spots.source.game.won_chips(fixed, showdown, result)[self._position]
        if self._counts:
            self._won, self._played = self._won + won, self._played + 1
        self._result = {"won_chips": won, "shown": shown}

    # --- answers ---

    def _seen(self) -> str:
        """Return the line of the hand."""
        return street_line(self._person.line, self._spots.start)

    def _document(self) -> dict[str, Any]:
        if self._cards is None:
            return {"hand": None}
        person, state = self._person, self._person.state
        turn = not isinstance(state, int) and state.player == self._position
        put_in = self._put_in if isinstance(state, int) else state.put_in
        rules = self._spots.betting.rules if isinstance(self._spots.betting, Translation) else None
        return {
            "hand": self._number,
            "seed": self._seed,
            "position": self._position,
            "cards": person.hand,
            "board": person.cards,
            "line": self._seen(),
            "log": self._log,
            "pot_chips": sum(put_in),
            "behind_chips": None if rules is None else [rules.stack - chips for chips in put_in],
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
        """Return the least and the most of a bet on this street if any amount is allowed, else None."""
        state, found = self._person.state, self._person.raises()
        if not isinstance(state, BettingState) or not found:
            return None
        return [float(action[1:]) - state.put_in_before for action in found]
