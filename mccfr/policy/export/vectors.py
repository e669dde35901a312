"""Draws random decisions of a policy with their strategy, to test policy readers in other languages."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from mccfr.games.betting import amount_text, raise_bounds
from mccfr.games.line_lookup import LineReading
from mccfr.games.translation import Translation, real_betting
from mccfr.policy.query import hand_readings, played
from mccfr.policy.strategy_profile import Behaviour
from storage import durable
from storage.atomic_outputs import begins_with, output

_OFF_TREE = 0.5
"""Probability with which an action of a drawn line is any legal raise, if there is one; with P players a (P-1)th."""
_FOLDS = 0.6
"""Probability of a fold to a bet while more than two players are left."""
_BEGINNING = b'{"line": '


def draw_vectors(source: Behaviour, count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield `count` random decisions with the strategy of `source` there, as dicts of these fields.

    `seed` and the number of a decision, from 0, determine it.

    line           actions before the decision, with amounts over the whole hand. Raises have any legal amount; if the
                   tree lacks one, it is mapped to one or more actions of the tree
    hand, board    cards of the player to act, and those on the table
    street, player of the decision
    bucket         of the hand on the board
    readings       list of {`node`, `after_call`, `probability`}: decisions of the tree to which the line is mapped for
                   the hand, with their probabilities. node −1: the tree has no decision of the player, so that only a
                   check or call is possible, or a fold. The tree then waits at the node `after_call` (else −1)
    actions, probabilities  legal actions and strategy in the game: mean over the readings

    Raises `ValueError` for a game whose cards, if any, are chance nodes.
    """
    betting, cards = real_betting(source.game), source.game.table_cards()
    for number in range(count):
        line, actions, state = _random_decision(betting, Random(f"{seed} {number}"))
        deal, player = cards.deal(seed, number), state.player
        hand, board = deal.hands[player], deal.boards[state.street]
        first, bucket = (int(cards.bucket_row(k, player, deal.boards[k])[hand]) for k in (0, state.street))
        readings = hand_readings(source, betting, actions, player, first)
        mean = played(source, betting, readings, state, bucket)
        yield {
            "line": line,
            "hand": cards.hand_text(hand),
            "board": cards.board_text(state.street, board),
            "street": state.street,
            "player": player,
            "bucket": bucket,
            "readings": [
                {"node": r.node, "after_call": r.closed, "probability": r.probability}
                for r in (betting.at(reading, state) for reading in readings)
            ],
            "actions": list(mean),
            "probabilities": list(mean.values()),
        }


def _random_decision(betting: Any, random: Random) -> tuple[str, Sequence[str], Any]:
    """Return (line, actions, state) of a random decision on a random path of the betting.

    `line` is the text of the actions before it, with "/" between streets; `actions` the same as a tuple, `state` the
    betting state. Players fold only while more than two are left. A street of the path is drawn first, then a decision
    on it.
    """
    line, (state, readings), path, actions = "", betting.start(), [], list[str]()
    while not isinstance(state, int):
        path.append((line, tuple(actions), state))
        action = _random_action(betting, readings, state, random)
        actions.append(action)
        after = betting.apply(state, action)
        readings = betting.follow(readings, state, action)
        line += action + "/" * (not isinstance(after, int) and after.street != state.street)
        state = after
    street = random.randrange(path[-1][2].street + 1)
    return random.choice([each for each in path if each[2].street == street])


def _random_action(betting: Any, readings: Sequence[LineReading], state: Any, random: Random) -> str:
    last_two = betting.players == 2 or state.seats.folded.bit_count() == betting.players - 2
    if not last_two and state.facing and random.random() < _FOLDS:
        return "f"
    bounds = raise_bounds(betting.rules, state) if isinstance(betting, Translation) else None
    if bounds is not None and random.random() < _OFF_TREE / (betting.players - 1):
        target = bounds[0] * (bounds[1] / bounds[0]) ** random.random()
        target = float(round(target)) if betting.whole_chips else target
        return f"r{amount_text(min(max(target, bounds[0]), bounds[1]))}"
    actions = betting.real_actions(betting.at(random.choice(readings), state), state)
    if isinstance(betting, Translation) and "c" not in actions:  # a call that the tree lacks
        actions.append("c")
    return random.choice([action for action in actions if action != "f"])


def write_vectors(out: Path, source: Behaviour, count: int) -> Path:
    """Write `count` random decisions with the strategy there (`draw_vectors`) as JSON lines; return `out`.

    source  the strategy and its game; the seed is 0

    Raises `ValueError` for a game whose cards, if any, are chance nodes.  Raises `FileExistsError` if `out` exists
    and is not a file that this function wrote.
    """
    with output(out, begins_with(_BEGINNING)) as temporary:
        durable.write_file(temporary, ((json.dumps(vector) + "\n").encode() for vector in draw_vectors(source, count)))
    return out
