"""Answers decisions as JSON lines, for programs in any language that talk to this one by pipes."""

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
    """One decision of the player; see docs/bots.md."""

    position: int
    hand: str
    line: str = ""
    board: str = ""
    stacks: list[float] | None = None
    number: int = 0


def answer_lines(name: str, manner: PlayManner, seed: int, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the answer to each line: `action`, with its amount of the street, or `error`.

    name  of a policy or run

    Raises `ValueError` as `open_player`, and for a game without cards beside its tree.
    """
    spec = open_player(name, manner, programs=False).contender.spec
    assert spec.game is not None
    player, start = spec.player(real_betting(spec.game), seed=seed), line_start(spec.game)
    player.prepare()
    counts = [spec.game.cards.at_table().cards_on(street) for street in range(spec.game.tree.streets)]
    for line in lines:
        try:
            decision = msgspec.json.decode(line, type=JsonDecision)
            actions = actions_of(typed_line(spec.game, decision.line))
            before, action = _action(player, decision, actions, counts)
            yield {"action": street_action(before, action, start)}
        except (ValueError, msgspec.DecodeError) as error:
            yield {"error": str(error)}


def _action(player: Player, decision: JsonDecision, actions: list[str], counts: list[int]) -> tuple[str, str]:
    """Return the line before the player's action, and the action; `ValueError` for an impossible decision.

    actions  of the line
    counts   [S] board cards on each street
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
