"""Draws random decisions of a policy, by which readers in other languages check themselves."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from mccfr.games.betting import amount_text, raise_bounds
from mccfr.games.line_lookup import LineReading
from mccfr.games.translation import Translation, real_betting
from mccfr.policy.query import played
from mccfr.policy.strategy_profile import Behaviour
from storage import durable
from storage.atomic_outputs import begins_with, output

_OFF_TREE = 0.5
"""Probability with which an action of a drawn line is any legal raise, if there is one."""
_BEGINNING = b'{"line": '


def draw_vectors(source: Behaviour, count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield `count` random decisions with the strategy of `source` there.

    line           actions before the decision, with amounts over the whole hand; half of the raises have any size
    hand, board    cards of the player to act, and those on the table
    street, player of the decision
    bucket         of the hand on the board
    readings       decisions of the tree that the line is taken for: `node`, `after_call` and `probability`; node −1
                   means that only a call is possible, which leads to the node `after_call` (else −1)
    actions, probabilities  strategy in the game: mean over the readings

    Raises `ValueError` for a game without cards beside its tree.
    """
    source.game.check_two_players("the export of test vectors")
    betting, cards = real_betting(source.game), source.game.cards.at_table()
    for number in range(count):
        line, state, readings = _random_decision(betting, Random(f"{seed} {number}"))
        deal, player = cards.deal(seed, number), state.player
        hand, board = deal.hands[player], deal.boards[state.street]
        bucket = int(cards.bucket_row(state.street, player, board)[hand])
        moves = [(reading, betting.real_actions(reading, state)) for reading in readings]
        mean = played(source, betting, moves, bucket)
        yield {
            "line": line,
            "hand": cards.hand_text(hand),
            "board": cards.board_text(state.street, board),
            "street": state.street,
            "player": player,
            "bucket": bucket,
            "readings": [{"node": r.node, "after_call": r.closed, "probability": r.probability} for r in readings],
            "actions": list(mean),
            "probabilities": list(mean.values()),
        }


def _random_decision(betting: Any, random: Random) -> tuple[str, Any, Sequence[LineReading]]:
    """Return the line, state and readings of a decision on a random path without folds."""
    line, (state, readings), path = "", betting.start(), []
    while not isinstance(state, int):
        path.append((line, state, readings))
        action = _random_action(betting, readings, state, random)
        after = betting.apply(state, action)
        readings = betting.follow(readings, state, action)
        line += action + "/" * (not isinstance(after, int) and after.street != state.street)
        state = after
    return random.choice(path)


def _random_action(betting: Any, readings: Sequence[LineReading], state: Any, random: Random) -> str:
    bounds = raise_bounds(betting.rules, state) if isinstance(betting, Translation) else None
    if bounds is not None and random.random() < _OFF_TREE:
        target = bounds[0] * (bounds[1] / bounds[0]) ** random.random()
        return f"r{amount_text(float(round(target)) if betting.whole_chips else target)}"
    actions = betting.real_actions(random.choice(readings), state)
    return random.choice([action for action in actions if action != "f"])


def write_vectors(out: Path, source: Behaviour, count: int) -> Path:
    """Write `draw_vectors` as JSON lines; return the path.

    Raises `ValueError` as `draw_vectors`, and `FileExistsError` if something else is at `out`.
    """
    with output(out, begins_with(_BEGINNING)) as temporary:
        durable.write_file(temporary, ((json.dumps(vector) + "\n").encode() for vector in draw_vectors(source, count)))
    return out
