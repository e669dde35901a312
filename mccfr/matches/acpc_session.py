"""A player's side of an ACPC match, without sockets: takes the server's lines, returns answers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mccfr.games.betting import BettingRules
from mccfr.games.translation import actions_of
from mccfr.matches.acpc import (
    BettingResult,
    MatchState,
    TableError,
    decode_line,
    follow_line,
    quoted,
    read_state,
    won_chips,
)
from mccfr.play.player import Player


class FinishedHand(NamedTuple):
    """A finished hand as seen by a player.

    position  seat number of the player in this hand
    number    number of the hand in the match
    betting   all actions, such as "cr200c/r400f"
    holes     hole cards by seat number, "" if not shown
    board     cards of each dealt street
    chips     net chips won by seat number; None if a hand at the showdown was not shown, so that they are unknown
    """

    position: int
    number: int
    betting: str
    holes: tuple[str, ...]
    board: tuple[str, ...]
    chips: tuple[float, ...] | None


class AcpcSession:
    """Follows an ACPC match from the server's lines, and answers the server for a player.

    An invalid line raises `TableError`; the player's state is then undefined.
    """

    def __init__(
        self, player: Player, rules: BettingRules, finished: Callable[[FinishedHand], None] = lambda _: None
    ) -> None:
        """Take the player, the rules of the match, and a function that receives each finished hand."""
        self._player, self._rules, self._finished = player, rules, finished
        self._state: MatchState | None = None
        self._over, self._fresh = True, True
        self._answered = "", ""

    @property
    def between_hands(self) -> bool:
        """True while no hand is in progress."""
        return self._over

    @property
    def hand(self) -> int | None:
        """Number of the last hand seen; None before the first."""
        return None if self._state is None else self._state.hand

    def reconnected(self) -> None:
        """Prepare for a new connection: the server may skip hands, or repeat one from its start."""
        self._fresh = True

    def answer(self, data: bytes) -> str | None:
        """Return the player's answer to a line of the ACPC server; None if it need not act.

        The answer is the line, a colon and the action. A line that is sent again gets the same answer.

        data  the line as received, with or without its line break

        Raises `TableError` for an invalid line.
        """
        line = decode_line(data)
        if line is None:
            return None
        if line == self._answered[0]:
            return self._answered[1]  # a repeated line, for example after a lost connection
        state, players = read_state(line), len(self._rules.put_in)
        if len(state.holes) != players or state.position >= players:
            raise TableError(f"hand {state.hand}: {quoted(line)} is not of {players} players")
        if not state.holes[state.position]:
            raise TableError(f"hand {state.hand}: {quoted(line)} does not show the player's own cards")
        game = follow_line(self._rules, state.betting)
        if len(state.board) != state.betting.count("/"):
            raise TableError(f"hand {state.hand}: the board of {quoted(line)} is not that of its streets")
        self._follow(state, game)
        if isinstance(game.state, int):
            self._end(state, game)
            return None
        if game.state.player != state.position:
            return None
        self._answered = line, f"{line}:{self._player.choose()}"
        return self._answered[1]

    def _follow(self, state: MatchState, game: BettingResult) -> None:
        """Tell the player all news of a MATCHSTATE line: a new hand, actions and board cards.

        game  the line's betting, replayed by the rules

        Raises `TableError` if the line does not continue the hand, or begins an earlier one.
        """
        last, self._state = self._state, state
        reconnected, self._fresh = self._fresh, False
        same = last is not None and state.hand == last.hand
        own = state.position, state.holes[state.position]
        if last is not None and not reconnected and state.hand < last.hand:
            raise TableError(f"hand {state.hand} comes after hand {last.hand}: expected {last.hand} or a later hand")
        if same and last is not None and not reconnected and own != (last.position, last.holes[last.position]):
            raise TableError(f"hand {state.hand} is dealt again, with other cards or in another seat")
        if not same or (reconnected and not continues_line(self._player, game)):
            self._player.deal(*own, state.hand)
            self._over = False
        catch_up(self._player, game, state.board, f"hand {state.hand}")

    def _end(self, state: MatchState, game: BettingResult) -> None:
        if not self._over:
            self._over = True
            chips = won_chips(self._rules, game, state.holes, state.board)
            self._finished(FinishedHand(state.position, state.hand, state.betting, state.holes, state.board, chips))


def continues_line(player: Player, game: BettingResult) -> bool:
    """Return True if the actions that a player has seen are the first ones of a hand.

    game  betting of the hand
    """
    seen = actions_of(player.line)
    return list(game.actions[: len(seen)]) == seen


def catch_up(player: Player, game: BettingResult, board: Sequence[str], where: str) -> None:
    """Tell a player all actions and boards of a hand that it has not yet seen, in order.

    game   the hand's betting so far
    board  cards of each dealt street
    where  prefix of error messages, such as "hand 7"

    Raises `TableError` if betting or board do not continue what the player has seen.
    """
    if not continues_line(player, game):
        raise TableError(
            f"{where}: the table is at {quoted(game.text)} and this player at {player.line!r}: it has changed "
            "an action, or plays with other stacks or blinds"
        )
    try:
        for action in game.actions[len(actions_of(player.line)) :]:
            _show_board(player, board)
            player.see(action)
        _show_board(player, board)
    except ValueError as error:
        raise TableError(f"{where}: {error}") from None


def _show_board(player: Player, board: Sequence[str]) -> None:
    """Tell the player the board of its current street; once betting is over, the whole board.

    board  cards of each dealt street
    """
    street = player.state.street if not isinstance(player.state, int) else len(board)
    player.board("".join(board[:street]))
