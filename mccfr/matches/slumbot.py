"""Client of servers with Slumbot's interface: plays hold'em hands as JSON over HTTP.

Slumbot is a program that plays no-limit hold'em of two players at a public server.

`/new_hand` deals and `/act` takes an action; both return the current hand (`mccfr.matches.json_server_hand`). A hand is
over if and only if `winnings` is present. Responses may carry a new token, which goes with the next request.
"""

from collections.abc import Mapping
from typing import Any

from mccfr.games.betting import BettingRules
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.acpc_session import FinishedHand
from mccfr.matches.json_http import NoAnswerError, Post
from mccfr.matches.json_server_hand import ServerHand, ServerHandState, card_list
from mccfr.play.player import Player


class SlumbotSession:
    """Plays hands for a player at a server with Slumbot's interface, one after the other."""

    def __init__(self, player: Player, rules: BettingRules, post: Post) -> None:
        self._player, self._rules, self._post = player, rules, post
        self._token: str | None = None

    def login(self, name: str, password: str) -> None:
        """Log in as a user of the server; `TableError` if it fails, refuses or returns no token."""
        self._request("login", {"username": name, "password": password})
        if self._token is None:
            raise TableError("the server has taken the name and given no token")

    def play_hand(self, number: int) -> FinishedHand:
        """Ask the server for a hand, play it to its end and return its result.

        number  of the hand; with the player's seed it determines the player's random numbers

        Raises `TableError` if the server fails or sends an invalid hand, and `ConnectionError` if a request for an
        action fails.
        """
        where, server_hand = f"hand {number}", ServerHand(self._player, self._rules, number)
        answer = self._request("new_hand", {})
        position = answer.get("client_pos")
        hand = "".join(card_list(answer.get("hole_cards"), (2,), f"{where}, hole_cards"))
        if position not in (0, 1) or isinstance(position, bool):
            raise TableError(f"{where}: client_pos is {quoted(repr(position))}, neither 0 nor 1")
        while True:
            opponent_cards, other = answer.get("bot_hole_cards"), ""
            if opponent_cards and answer.get("winnings") is not None:
                other = "".join(card_list(opponent_cards, (2,), f"{where}, bot_hole_cards"))
            board = card_list(answer.get("board", []), (0, 3, 4, 5), f"{where}, board")
            seen = ServerHandState(position, hand, other, answer.get("action"), board, answer.get("winnings"))
            action = server_hand.answer(seen)
            if isinstance(action, FinishedHand):
                return action
            try:
                answer = self._request("act", {"incr": action})
            except NoAnswerError as error:
                raise ConnectionError(f"{error}; {where} was not finished") from None

    def _request(self, where: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send `body` as JSON to the server's path `where`, such as "act"; return the response.

        The request has the server's latest token, if there is one. Raises `TableError` if the server reports an error
        or sends an invalid response.
        """
        answer = self._post(where, body if self._token is None else {**body, "token": self._token})
        if not isinstance(answer, dict):
            raise TableError(f"the server's answer to /{where} is no JSON object")
        if answer.get("error_msg"):
            raise TableError(f"the server refuses /{where}: {quoted(str(answer['error_msg']))}")
        token = answer.get("token")
        if token is not None:
            if not isinstance(token, str):
                raise TableError(f"the server's token after /{where} is {quoted(repr(token))}, no text")
            self._token = token
        return answer
