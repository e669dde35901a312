"""Plays for other programs: reads each decision as a line of JSON, and answers with the action.

Programs in any language can use it by pipes.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from abstraction.cards import plain_text
from mccfr.games.line_text import line_start, typed_line
from mccfr.games.translation import actions_of, real_betting
from mccfr.matches.players import PlayManner, open_player
from mccfr.play.player import Player
from mccfr.trees.street_amounts import street_action


class JsonDecision(msgspec.Struct, forbid_unknown_fields=True):
    """One decision that another program asks for.

    position  number of the player to act. In hold'em of two players 0 is the big blind and 1 the button; with more, 0
              is the small blind and 1 the big blind
    hand      the player's hole cards, such as "AsKd"
    line      all actions so far, such as "b300c/b150"; amounts are chips put in on the street
    board     all board cards so far
    stacks    chips of each player before antes and blinds; None: those of the policy's game
    number    number of the hand; with the seed it determines the random numbers
    """

    position: int
    hand: str
    line: str = ""
    board: str = ""
    stacks: list[float] | None = None
    number: int = 0


def answer_lines(name: str, manner: PlayManner, seed: int, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the answer to each line: {"action": text} or {"error": text}.

    The amount of a bet or raise, such as "b150", is in chips put in on the street.

    name    of a policy or run
    manner  how it plays, such as purified
    seed    of its random choices
    lines   one `JsonDecision` as a JSON object each

    Raises `ValueError` for an unknown name, a program, and a game without cards, or with cards as chance nodes of its
    tree.
    """
    spec = open_player(name, manner, programs=False).contender.spec
    assert spec.game is not None
    player, start = spec.player(real_betting(spec.game), seed=seed), line_start(spec.game)
    player.prepare()
    counts = [spec.game.table_cards().cards_on(street) for street in range(spec.game.tree.streets)]
    for line in lines:
        try:
            decision = msgspec.json.decode(line, type=JsonDecision)
            actions = actions_of(typed_line(spec.game, decision.line))
            before, action = _action(player, decision, actions, counts)
            yield {"action": street_action(before, action, start)}
        except (ValueError, msgspec.DecodeError) as error:
            yield {"error": str(error)}


def _action(player: Player, decision: JsonDecision, actions: list[str], counts: list[int]) -> tuple[str, str]:
    """Return (line so far, the player's action), as texts with amounts over the whole hand.

    player   the policy's player, to which the decision's hand is dealt
    actions  all actions of the decision, such as "c" and "r300"
    counts   [S] number of board cards on each of S streets

    Raises `ValueError` for an impossible decision.
    """
    stakes = {} if decision.stacks is None else {"stacks": decision.stacks}
    player.deal(decision.position, decision.hand, decision.number, **stakes)
    board = plain_text(decision.board)
    for action in [*actions, None]:
        if not isinstance(player.state, int):
            player.board(board[: 2 * counts[player.state.street]])
        if action is not None:
            player.see(action)
    if player.cards != board:
        raise ValueError(f"board {decision.board!r} has more cards than the street after the line {decision.line!r}")
    return player.line, player.choose()
