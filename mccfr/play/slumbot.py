"""A player at a server with Slumbot's interface: hands of hold'em by JSON over HTTP.

`/new_hand` deals and `/act` takes an action; both answer with the hand as it stands, after the server has acted.  A
hand is over exactly when `winnings` is there, which may be at once.  Actions are `k` (check), `c`, `f` and `bN`, N the
chips put in on this street.  Answers carry a token, which may change at any time: the newest one goes with the next
request.
"""

import http.client
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from mccfr.config.games import HoldemGame
from mccfr.games.betting import BettingRules, BettingState, amount_text
from mccfr.games.translation import apply_action
from mccfr.play.acpc import Played, TableError, followed, read_cards, shown, told_game, won_chips
from mccfr.play.acpc_session import FinishedHand, catch_up
from mccfr.play.player import Player

GAME = HoldemGame()
"""What is played: stacks of 20,000 in every hand, blinds 50/100."""
_TOKEN = re.compile(r"b[0-9]{1,15}|[kcf/]")
_MOST_BYTES = 1 << 20
Post = Callable[[str, Mapping[str, Any]], Any]
"""Sends a JSON object to an address below the server's, and gives back what comes."""


def http_post(url: str, seconds: float) -> Post:
    """Requests of a server; each has a connection of its own.

    url      such as "https://slumbot.com/api"
    seconds  without an answer after which a server is given up

    Raises `ValueError` for another kind of address; requests raise `TableError` where the server cannot be had, does
    not answer in time, or answers with an error.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"url = {shown(url)}: an address such as https://HOST/api is needed")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"url = {shown(url)}: its port is no number from 0 to 65535") from None
    base = parts.path.rstrip("/")

    def post(where: str, body: Mapping[str, Any]) -> Any:
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(host, port, timeout=seconds)
        try:
            headers = {"Content-Type": "application/json", "Connection": "close"}
            connection.request("POST", f"{base}/{where}", json.dumps(body), headers)
            response = connection.getresponse()
            status, data = response.status, response.read(_MOST_BYTES + 1)
        except TimeoutError:
            raise TableError(f"{url} has not answered /{where} within {seconds:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise TableError(f"{url} cannot be had for /{where}: {why if why.isprintable() else repr(why)}") from None
        finally:
            connection.close()
        return _body(f"{url}/{where}", status, data)

    return post


def _body(where: str, status: int, data: bytes) -> Any:
    try:
        found = json.loads(data) if len(data) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if status != http.client.OK:
        said = found.get("error_msg") if isinstance(found, dict) else None
        raise TableError(f"{where} answers with HTTP status {status}" + (f": {shown(str(said))}" if said else ""))
    return found


def read_betting(rules: BettingRules, text: Any, where: str) -> Played:
    """The betting of an action string, where an all-in may end with `/` or without; `TableError`, from `where` on."""
    if not isinstance(text, str) or len(text) > _MOST_BYTES or "".join(_TOKEN.findall(text)) != text:
        raise TableError(f"{where}: the action {shown(str(text))} is not written with k, c, f, bN and /")
    state: BettingState | int = rules.start()
    actions, written = list[str](), ""
    for token in _TOKEN.findall(text):
        if token == "/":
            written += token
            continue
        if not isinstance(state, BettingState) or (token in "kc" and (token == "c") != state.facing):
            raise TableError(f"{where}: {token} cannot be in the action {shown(text)}")
        bet = token[0] == "b"
        action = f"r{amount_text(state.put_in_before + float(token[1:]))}" if bet else token.replace("k", "c")
        try:
            state = apply_action(rules, state, action)
        except ValueError as error:
            raise TableError(f"{where}: the action {shown(text)}: {error}") from None
        actions.append(action)
        written += action
    game = followed(rules, actions)
    if written.rstrip("/") != game.text.rstrip("/") or not (game.text + "///").startswith(written):
        raise TableError(f"{where}: the streets of the action {shown(text)} do not end where they should")
    return game


class SlumbotSession:
    """Plays hand after hand for a player."""

    def __init__(self, player: Player, rules: BettingRules, post: Post) -> None:
        self._player, self._rules, self._post = player, rules, post
        self._token: str | None = None

    def login(self, name: str, password: str) -> None:
        """Play as a user of the server's; `TableError` where it does not take him."""
        self._asked("login", {"username": name, "password": password})
        if self._token is None:
            raise TableError("the server has taken the name and given no token")

    def play_hand(self, number: int) -> FinishedHand:
        """Play a hand to its end; `TableError` where the server fails, or says what cannot be."""
        where = f"hand {number}"
        answer = self._asked("new_hand", {})
        position = answer.get("client_pos")
        hand = "".join(card_list(answer.get("hole_cards"), (2,), f"{where}, hole_cards"))
        if position not in (0, 1) or isinstance(position, bool):
            raise TableError(f"{where}: client_pos is {shown(repr(position))}, neither 0 nor 1")
        read_cards(f"{hand}|")
        self._player.deal(position, hand, number)
        while True:
            game = read_betting(self._rules, answer.get("action"), where)
            cards = card_list(answer.get("board", []), (0, 3, 4, 5), f"{where}, board")
            board = tuple("".join(cards[first:stop]) for first, stop in ((0, 3), (3, 4), (4, 5)) if len(cards) > first)
            street = game.text.rstrip("/").count("/") if isinstance(game.state, int) else game.state.street
            if len(board) < street or (len(board) > street and not isinstance(game.state, int)):
                raise TableError(f"{where}: the board {''.join(cards)!r} is not that of {game.text!r}")
            holes = (hand, "") if position == 0 else ("", hand)
            read_cards("/".join(["|".join(holes), *board]))
            catch_up(self._player, game, board, where)
            if answer.get("winnings") is not None:
                return self._ended(answer, FinishedHand(position, number, game.text, holes, board, None), game)
            if isinstance(game.state, int) or game.state.player != position:
                raise TableError(f"{where}: the server waits for an answer to {game.text!r}, where nobody is to act")
            answer = self._asked("act", {"incr": _said(game.state, self._player.choose())})

    def _asked(self, where: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the server answers, with the newest token."""
        answer = self._post(where, body if self._token is None else {**body, "token": self._token})
        if not isinstance(answer, dict):
            raise TableError(f"the server's answer to /{where} is no JSON object")
        if answer.get("error_msg"):
            raise TableError(f"the server refuses /{where}: {shown(str(answer['error_msg']))}")
        token = answer.get("token")
        if token is not None:
            if not isinstance(token, str):
                raise TableError(f"the server's token after /{where} is {shown(repr(token))}, no text")
            self._token = token
        return answer

    def _ended(self, answer: Mapping[str, Any], hand: FinishedHand, game: Played) -> FinishedHand:
        """The hand with what the server shows and says of its end."""
        other = answer.get("bot_hole_cards")
        if other:
            theirs = "".join(card_list(other, (2,), f"hand {hand.number}, bot_hole_cards"))
            holes = (hand.holes[0] or theirs, hand.holes[1] or theirs)
            read_cards("/".join(["|".join(holes), *hand.board]))
            hand = hand._replace(holes=holes)
        won = answer["winnings"]
        if not isinstance(game.state, int):
            raise TableError(f"hand {hand.number}: winnings are told after {game.text!r}, where the hand is not over")
        if isinstance(won, bool) or not isinstance(won, int | float) or not abs(won) <= self._rules.stack:
            raise TableError(f"hand {hand.number}: winnings are {shown(repr(won))}, no number of chips that can be won")
        first = float(won) * (1 - 2 * hand.position)
        whole = len("".join(hand.board)) == 10 or game.actions[-1] == "f"
        expected = won_chips(game, hand.holes, hand.board) if whole else None
        if expected is not None and expected != first:
            mine = expected * (1 - 2 * hand.position)
            raise TableError(f"hand {hand.number}: the server says {won} chips were won, and they are {mine:g}")
        return hand._replace(won=first)


def check_game(game: HoldemGame, who: str) -> None:
    """Raise `ValueError` where a policy is for other stacks or blinds than the server's."""
    if (game.stack, tuple(game.blinds), game.ante) != (GAME.stack, tuple(GAME.blinds), GAME.ante):
        raise ValueError(f"the server plays with {told_game(GAME)}, and {who} is for {told_game(game)}")


def _said(state: BettingState, action: str) -> str:
    """An action as the server takes it."""
    if action == "c":
        return "c" if state.facing else "k"
    return action if action == "f" else f"b{amount_text(float(action[1:]) - state.put_in_before)}"


def card_list(given: Any, counts: Sequence[int], where: str) -> list[str]:
    """A server's list of so many cards; `TableError`, from `where` on."""
    fine = isinstance(given, list) and len(given) in counts
    if not fine or not all(isinstance(card, str) and re.fullmatch("[2-9TJQKA][cdhs]", card) for card in given):
        raise TableError(f"{where} is {shown(repr(given))}, and not {' or '.join(map(str, counts))} cards")
    return list(given)
