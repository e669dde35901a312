"""Client of the GTO Wizard researcher server: plays hold'em hands as JSON over HTTP, five at once.

`POST /hands` deals, `POST /hands/ID/act` takes an action; both return the hand after the server's action.
`action_history` has `k`, `c`, `f`, `bN` (N chips on this street) and `_` between streets. With `is_hand_over` the
chips won and the server's AIVAT value are set. `GET /hands/in-progress` lists open hands.

As in the published client (gtowizard-ai/researcher-api-client), failed requests are repeated. A request is sent up to
twenty times, 1 to 15 s apart. It is repeated after a lost connection and after status 429 and 502 to 504. Differences:

* A failed request may have been executed, so the open hands are checked before an action is sent again.
* Status 409 for a new hand means too many open hands, and is retried.
* Hands that are open before or after a match, because of a lost connection, are played to their end.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any, NamedTuple

from mccfr.games.betting import BettingRules
from mccfr.matches.acpc import TableError, quoted
from mccfr.matches.acpc_session import FinishedHand
from mccfr.matches.json_http import DisconnectedError, NoAnswerError, Post, StatusError
from mccfr.matches.json_server_hand import GAME, ServerHand, ServerHandState, card_list
from mccfr.play.player import Player

AT_ONCE = 5
GAME_NAME = "HUNL 200BB"
_OTHER = "GTO Wizard"
_BUSY, _FULL, _NO_KEY = (429, 502, 503, 504), 409, (401, 403)
_TRIES, _FIRST_WAIT, _LONGEST_WAIT = 20, 2.0, 15.0
_MOVE = re.compile(r"[kcf_]|b[0-9]{1,15}(\.0{1,9})?")


class WizardHand(NamedTuple):
    """The state of a hand as the server sends it.

    number  the server's number of the hand
    moves   number of entries of `action_history` so far: actions, and a `_` for each later street
    seen    cards, betting and result as the player sees them
    aivat   the player's chips, corrected by the server's AIVAT; None if missing
    """

    number: int
    moves: int
    seen: ServerHandState
    aivat: float | None


class ScoredHand(NamedTuple):
    """A finished hand, and the player's luck-adjusted chips (the server's AIVAT); None if missing."""

    hand: FinishedHand
    aivat: float | None  # the chips lost, for a fold whose response was lost


class UnknownResultError(TableError):
    """Raised when a hand ended during a lost connection, so its chips are unknown."""


class WizardServer:
    """Sends requests to the server, and repeats them after lost connections and temporary error statuses."""

    def __init__(
        self, post: Post, say: Callable[[str], None] = lambda _: None, wait: Callable[[float], object] = time.sleep
    ) -> None:
        """Take the functions for HTTP requests, messages and waiting.

        post  sends a request to the server and returns its JSON
        say   called with a message when a request fails for the first time
        wait  sleeps for a number of seconds before the next attempt
        """
        self._post, self._say, self._wait, self._random = post, say, wait, Random()

    def new_hand(self) -> WizardHand:
        """Ask the server for a new hand; `TableError` if it fails or sends an invalid hand."""
        return read_wizard_hand(self._request(lambda _: self._post("hands", {"game_name": GAME_NAME}), (*_BUSY, _FULL)))

    def act(self, hand: WizardHand, action: str) -> WizardHand:
        """Send the player's action and return the hand after the server's answer.

        Raises `UnknownResultError` if the hand ended during a lost connection, and another `TableError` if the server
        fails or sends an invalid hand.
        """
        body = {"action": action[0], "amount": int(action[1:]) if action[1:] else None}

        def act(attempt: int) -> Any:
            if attempt:
                current = next((one for one in self._open() if _number(one) == hand.number), None)
                if current is None:
                    raise UnknownResultError(
                        f"hand {hand.number} of the server has ended while the connection was lost"
                    )
                if read_wizard_hand(current).moves > hand.moves:
                    return current
            return self._post(f"hands/{hand.number}/act", body)

        after = read_wizard_hand(self._request(act))
        if after.number != hand.number:
            raise TableError(f"the server answers with hand {after.number} to an action of hand {hand.number}")
        return after

    def open_hands(self) -> list[WizardHand]:
        """Return the hands in progress at the server; `TableError` if it fails or sends an invalid hand."""
        return [read_wizard_hand(one) for one in self._request(lambda _: self._open())]

    def _open(self) -> list[Any]:
        hands = self._post(f"hands/in-progress?game_name={GAME_NAME.replace(' ', '%20')}", None)
        if not isinstance(hands, list):
            raise TableError("the server's answer to /hands/in-progress is no list of hands")
        return hands

    def _request(self, request: Callable[[int], Any], again: Sequence[int] = _BUSY) -> Any:
        """Call `request(attempt)`, attempt = 0, 1, ..., until it succeeds; return its result.

        again  HTTP statuses after which it is called again, as after a lost connection

        Raises a `TableError` for other failures, and after twenty attempts.
        """
        for attempt in range(_TRIES):
            try:
                return request(attempt)
            except DisconnectedError as error:
                last: NoAnswerError = error
            except StatusError as error:
                if error.status in _NO_KEY:
                    raise TableError(
                        f"{error}: give a --key-file that holds the server's key, and nothing else"
                    ) from None
                if error.status not in again:
                    raise
                last = error
            if attempt == 0:
                self._say(f"{last}: trying again")
            if attempt + 1 < _TRIES:
                self._wait(min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * self._random.uniform(0.5, 1.0))
        raise NoAnswerError(f"{last}, {_TRIES} times: give it up until later") from None


_Thinking = AbstractContextManager[Any]
"""Lock held while a player chooses an action."""


def _play_hand(
    player: Player,
    rules: BettingRules,
    server: WizardServer,
    hand: WizardHand,
    number: int,
    thinking: _Thinking = nullcontext(),  # noqa: B008  (has no state)
) -> ScoredHand:
    """Play a hand to its end; return it with the server's luck-adjusted chips (AIVAT).

    rules     betting rules of the server's game
    hand      its state when it was dealt, or the current one of a hand in progress
    number    of the hand; with the player's seed it determines the player's random numbers
    thinking  lock that is held while the player chooses an action

    Raises `ConnectionError`, with the server's number of the hand, if a request for an action fails. Raises
    `UnknownResultError` if the hand ended during a lost connection; not if the player's own fold ended it, which loses
    the chips put in.
    """
    served = ServerHand(player, rules, number)
    while True:
        with thinking:
            action = served.answer(hand.seen)
        if isinstance(action, FinishedHand):
            return ScoredHand(action, hand.aivat)
        try:
            hand = server.act(hand, action)
        except UnknownResultError:
            if action != "f":
                raise
            folded = served.folded(hand.seen)  # without these hands the score would be biased upwards
            assert folded.chips is not None
            return ScoredHand(folded, folded.chips[folded.position])
        except NoAnswerError as error:
            raise ConnectionError(f"{error}; hand {hand.number} is still open: start again to finish it") from None


def finish_open(player: Player, rules: BettingRules, server: WizardServer) -> int:
    """Play all hands that are in progress at the server to their end, and return how many there were.

    The results are discarded, also that of a hand which ends during a lost connection.

    Raises `TableError` if the server fails or sends an invalid hand, and `ConnectionError` if a request for an action
    fails.
    """
    hands = server.open_hands()
    for number, hand in enumerate(hands):
        try:
            _play_hand(player, rules, server, hand, number)
        except UnknownResultError:
            continue
    return len(hands)


def play_wizard_hands(
    players: Sequence[Player], rules: BettingRules, server: WizardServer, count: int
) -> Iterator[ScoredHand | UnknownResultError]:
    """Play `count` hands, with one thread for each of `players`, and yield each hand as it ends.

    The threads wait for the server at the same time, but only one player chooses an action at a time. A hand that ended
    during a lost connection, unless by the player's fold, yields an `UnknownResultError` (not raised) instead of a
    hand.

    Raises `TableError` if the server fails or sends an invalid hand, and `ConnectionError` if a request for an action
    fails.
    """
    results: SimpleQueue[ScoredHand | BaseException] = SimpleQueue()
    numbers, number_lock, thinking, stopping = iter(range(count)), threading.Lock(), threading.Lock(), threading.Event()

    def play(player: Player) -> None:
        while not stopping.is_set():
            with number_lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                results.put(_play_hand(player, rules, server, server.new_hand(), number, thinking))
            except UnknownResultError as error:
                results.put(error)
            except BaseException as error:  # raised again in the caller's thread
                results.put(error)
                return

    threads = [threading.Thread(target=play, args=(player,), daemon=True) for player in players]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            result = results.get()
            if isinstance(result, BaseException) and not isinstance(result, UnknownResultError):
                raise result
            yield result
    finally:
        stopping.set()
    for thread in threads:
        thread.join()


def read_wizard_hand(answer: Any) -> WizardHand:
    """Parse the JSON content of a response to a `WizardHand`.

    Raises `TableError` if it is invalid, or of a game with other stacks or blinds than 20,000 and 50/100.
    """
    try:
        game, state, number = answer["game"], answer["game_state"], _number(answer)
        blinds = sorted(float(each) for each in game["blinds"])
        if (float(game["starting_stack"]), *blinds) != (GAME.stack, *GAME.blinds) or not game["stack_reset_per_hand"]:
            raise TableError(
                f"hand {number}: the server plays {quoted(str(game))}, and not with stacks of 200 big blinds"
            )
        where, (own, other) = f"hand {number} of the server", _both_players(state["players"])
        position = {"SB": 1, "BTN": 1, "BB": 0}[own["position"]]
        hand, board = _cards(own["hole_cards"], (2,), where), _cards(state["board_cards"], (0, 3, 4, 5), where)
        moves, over = state["action_history"], state["is_hand_over"]
        if not isinstance(moves, list) or not all(isinstance(move, str) and _MOVE.fullmatch(move) for move in moves):
            raise TableError(f"{where}: the actions {quoted(str(moves))} are not k, c, f, bN and _")
        betting = "".join(move.partition(".")[0].replace("_", "/") for move in moves)
        shows = "".join(_cards(other["hole_cards"], (2,), where)) if over and other["hole_cards"] else ""
        won, aivat = (state["winnings"], state["aivat_score"]) if over else (None, None)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"the server's answer holds no hand: {quoted(str(answer))}") from None
    if over and won is None:
        raise TableError(f"{where} is over, and winnings are missing")
    if aivat is not None and (isinstance(aivat, bool) or not isinstance(aivat, int | float) or not abs(aivat) < 1e9):
        raise TableError(f"{where}: aivat_score is {quoted(repr(aivat))}, no number of chips")
    seen = ServerHandState(position, "".join(hand), shows, betting, board, won)
    return WizardHand(number, len(moves), seen, aivat)


def _number(answer: Any) -> int:
    number = answer.get("hand_id") if isinstance(answer, Mapping) else None
    if isinstance(number, bool) or not isinstance(number, int):
        raise TableError(f"the server's answer holds no hand: {quoted(str(answer))}")
    return number


def _both_players(players: Any) -> tuple[Any, Any]:
    """Return (own entry, opponent's entry) of a response's players; `TableError` if invalid."""
    own = [each for each in players if not each["name"].startswith(_OTHER)]
    if len(players) != 2 or len(own) != 1:
        raise TableError(f"the players {quoted(str(players))} are not one and {_OTHER}")
    return own[0], next(each for each in players if each is not own[0])


def _cards(text: str, counts: Sequence[int], where: str) -> list[str]:
    return card_list([text[place : place + 2] for place in range(0, len(text), 2)], counts, f"{where}: cards")


def read_key(path: Path, say: Callable[[str], None]) -> str:
    """Return the server's access key, the only content of a file.

    Raises `ValueError` if the file cannot be read, or has no key, several lines, a space or more than 1,024 bytes.

    say  called with a warning if other users can read the file
    """
    try:
        mode, data = path.stat().st_mode, path.read_bytes()[:1025]
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}: --key-file is a file that holds the server's key") from None
    try:
        key = data.decode("ascii").strip()
    except UnicodeDecodeError:
        key = ""
    if not key or len(data) > 1024 or not key.isprintable() or " " in key:
        raise ValueError(f"{path} holds no key: it must be there alone, on one line, in letters without spaces")
    if mode & 0o077:
        say(f"{path} can be read by others: chmod 600 {path}")
    return key
