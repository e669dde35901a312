"""Plays one hand at a JSON server: validates the server's state by the rules and answers.

Servers send the whole hand with every response, after their own action. Actions are `k` (check), `c`, `f` and `bN`,
with N the chips on this street, and `/` between streets. An all-in may end with the `/` of the remaining streets, or
without.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from mccfr.config.game_tables import HoldemGame
from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.games.translation import apply_action
from mccfr.matches.acpc import BettingResult, TableError, follow_actions, game_text, quoted, read_cards, won_chips
from mccfr.matches.acpc_session import FinishedHand, catch_up
from mccfr.matches.json_http import MOST_BYTES
from mccfr.play.player import Player

GAME = HoldemGame()
"""The servers' game: stacks of 20,000 in every hand, blinds 50/100."""
_TOKEN = re.compile(r"b[0-9]{1,15}|[kcf/]")


class ServerHandState(NamedTuple):
    """The state of a hand as a server sends it.

    position  the player's number: 0 is the big blind, 1 the button
    hand      the player's hole cards, such as "AsKd"
    other     the opponent's hole cards, "" if not shown
    betting   actions as the server writes them: `k`, `c`, `f`, `bN` with N chips on the street, and `/`
    board     all board cards, one text for each
    won       net chips of the player, below 0 for a loss; None if the hand is not over
    """

    position: int
    hand: str
    other: str
    betting: Any
    board: Sequence[str]
    won: Any


class ServerHand:
    """One hand of a player at a server, from the first state to the result."""

    def __init__(self, player: Player, rules: BettingRules, number: int) -> None:
        """Take the player and the betting rules of the server's game.

        number  of the hand; with the player's seed it determines the player's random numbers
        """
        self._player, self._rules, self._number = player, rules, number
        self._dealt: tuple[int, str] | None = None

    def answer(self, server_state: ServerHandState) -> str | FinishedHand:
        """Return the player's action in the servers' form, such as "b300", or the hand if it is finished.

        server_state  the hand in the server's last response; the first one also deals the hand to the player

        Raises `TableError` for an invalid state.
        """
        where, own = f"hand {self._number}", (server_state.position, server_state.hand)
        if self._dealt is None:
            read_cards(f"{server_state.hand}|")
            self._player.deal(*own, self._number)
        elif own != self._dealt:
            raise TableError(f"{where} is dealt again, with other cards or in another seat")
        self._dealt = own
        game, cards = read_betting(self._rules, server_state.betting, where), server_state.board
        board = tuple("".join(cards[first:stop]) for first, stop in ((0, 3), (3, 4), (4, 5)) if len(cards) > first)
        street = game.text.rstrip("/").count("/") if isinstance(game.state, int) else game.state.street
        if len(board) < street or (len(board) > street and not isinstance(game.state, int)):
            raise TableError(f"{where}: the board {''.join(cards)!r} is not that of {game.text!r}")
        holes = (
            (server_state.hand, server_state.other)
            if server_state.position == 0
            else (server_state.other, server_state.hand)
        )
        read_cards("/".join(["|".join(holes), *board]))
        catch_up(self._player, game, board, where)
        if server_state.won is not None:
            chips = self._checked_chips(server_state, holes, board, game)
            return FinishedHand(server_state.position, self._number, game.text, holes, board, chips)
        if isinstance(game.state, int) or game.state.player != server_state.position:
            raise TableError(f"{where}: the server waits for an answer to {game.text!r}, where no player is to act")
        return _server_action(game.state, self._player.choose())

    def folded(self, server_state: ServerHandState) -> FinishedHand:
        """Return the finished hand after the player's fold, for a fold whose response was lost.

        server_state  the state in which the player folded
        """
        betting = server_state.betting + "f"
        game = read_betting(self._rules, betting, f"hand {self._number}")
        won = won_chips(self._rules, game, ("", ""), ())
        assert won is not None
        finished = self.answer(server_state._replace(betting=betting, won=won[server_state.position]))
        assert isinstance(finished, FinishedHand)
        return finished

    def _checked_chips(
        self, server_state: ServerHandState, holes: tuple[str, str], board: Sequence[str], game: BettingResult
    ) -> tuple[float, float]:
        """Check the server's winnings against cards and betting; return both players' net chips.

        The big blind's come first. If a hand at the showdown is unknown or the board incomplete, the winnings may be
        those of a win, a loss or a tie.

        holes  both players' hole cards, the big blind's first; "" if not shown
        board  cards of each dealt street
        game   the hand's betting

        Raises `TableError` if the winnings are wrong, or the hand is not over.
        """
        won, where = server_state.won, f"hand {self._number}"
        if not isinstance(game.state, int):
            raise TableError(f"{where}: winnings are told after {game.text!r}, where the hand is not over")
        if isinstance(won, bool) or not isinstance(won, int | float) or not abs(won) <= self._rules.stack:
            raise TableError(f"{where}: winnings are {quoted(repr(won))}, no number of chips that can be won")
        level = game.states[-1].to_call
        whole = len("".join(board)) == 10 or game.actions[-1] == "f"
        chips = won_chips(self._rules, game, holes, board) if whole else None
        fits = (-level, 0, level) if chips is None else (chips[server_state.position],)
        if won not in fits:
            possible = " or ".join(f"{each:g}" for each in fits)
            raise TableError(f"{where}: the server says {won} chips were won, and they are {possible}")
        return (float(won), -float(won)) if server_state.position == 0 else (-float(won), float(won))


def read_betting(rules: BettingRules, text: Any, where: str) -> BettingResult:
    """Parse a server's actions, such as "b300c/kk", to a `BettingResult`, by the rules.

    where  beginning of error messages, such as "hand 7"

    Raises `TableError` for text that is invalid or illegal.
    """
    if not isinstance(text, str) or len(text) > MOST_BYTES or "".join(_TOKEN.findall(text)) != text:
        raise TableError(f"{where}: the action {quoted(str(text))} is not written with k, c, f, bN and /")
    state: BettingState | int = rules.start()
    actions, followed = list[str](), ""
    for token in _TOKEN.findall(text):
        if token == "/":
            followed += token
            continue
        if not isinstance(state, BettingState) or (token in "kc" and (token == "c") != state.facing):
            raise TableError(f"{where}: {token} cannot be in the action {quoted(text)}")
        bet = token[0] == "b"
        action = f"r{amount_text(state.put_in_before + float(token[1:]))}" if bet else token.replace("k", "c")
        try:
            state = apply_action(rules, state, action)
        except ValueError as error:
            raise TableError(f"{where}: the action {quoted(text)}: {error}") from None
        actions.append(action)
        followed += action
    game = follow_actions(rules, actions)
    if followed.rstrip("/") != game.text.rstrip("/") or not (game.text + "///").startswith(followed):
        raise TableError(f"{where}: the streets of the action {quoted(text)} do not end where they should")
    return game


def _server_action(state: BettingState, action: str) -> str:
    """Return an action in the servers' form: `k`, `c`, `f` or `bN`, N chips on the street.

    state   betting state before the action
    action  `c`, `f` or `rN`, N chips over the whole hand
    """
    if action == "c":
        return "c" if state.facing else "k"
    return action if action == "f" else f"b{amount_text(float(action[1:]) - state.put_in_before)}"


def check_game(game: HoldemGame, player_name: str) -> None:
    """Raise `ValueError` unless a policy's game has the servers' stacks and blinds.

    They are: two players, stacks of 20,000, blinds of 50 and 100, and `ante` 0.

    player_name  name of the policy, for the message
    """
    stakes, own = ((each.seats, each.stack, tuple(each.blinds), each.ante) for each in (GAME, game))
    if own != stakes:
        raise ValueError(f"the server plays with {game_text(GAME)}, and {player_name} is for {game_text(game)}")


def card_list(cards: Any, counts: Sequence[int], where: str) -> list[str]:
    """Return a server's list of cards, such as ["As", "Kd"]; `TableError` if it is invalid.

    counts  allowed numbers of cards
    where   beginning of error messages
    """
    is_list = isinstance(cards, list) and len(cards) in counts
    if not is_list or not all(isinstance(card, str) and re.fullmatch("[2-9TJQKA][cdhs]", card) for card in cards):
        raise TableError(f"{where} is {quoted(repr(cards))}, and not {' or '.join(map(str, counts))} cards")
    return list(cards)
