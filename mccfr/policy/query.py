"""One decision point of a policy: what is played there, with which hand, and how well it is known."""

from typing import Any

from mccfr.policy.source import PolicySource
from mccfr.trees.lines import find_decision, line_text, put_in_chips, to_chips


def query(source: PolicySource, line: str, hand: str | None = None, board: str | None = None) -> dict[str, Any]:
    """The strategy at the decision that `line` leads to; docs/interface.md lists the fields.

    source  a `Policy`, or `StrategySource(game, strategy)`
    line    as `mccfr.trees.lines` reads it
    hand    one hand; None: every hand of the player's range (games without cards need none)
    board   all board cards, or those dealt after the board that the game begins with; needed where there are several

    With a hand each action has a `probability` and the `weight` behind its infoset, and `reached` says whether that
    is above 0; if not, the probabilities are uniform.  Without one, `hands` has the probabilities of each hand, in the
    order of `actions`, and `unreached` lists those of weight 0.  `street` is a name in hold'em and a number elsewhere;
    chips are None where a game has none.

    Raises `ValueError` for a line, hand or board that means nothing here; the message says what is allowed.
    """
    game = source.game
    tree, cards = game.tree, game.cards
    node = find_decision(tree, line)
    street, player = divmod(int(tree.arrays.block[node]), 2)
    chips = [None] * int(tree.arrays.count[node]) if not cards.dealt else [_whole(n) for n in to_chips(tree, node)]
    actions: list[dict[str, Any]] = [
        {"action": tree.label[child], "to_chips": to} for child, to in zip(tree.children(node), chips, strict=True)
    ]
    answer = {
        "line": line_text(tree, node),
        "street": game.street_name(street),
        "player": player,
        "pot_chips": None if not cards.dealt else _whole(sum(put_in_chips(tree, node))),
        "actions": actions,
    }
    if not cards.dealt:
        if hand or board:
            raise ValueError(f"game {game.name!r} has no cards: leave hand and board out")
        return {**answer, **_fill(actions, source, node, 0)}
    if hand:
        return {**answer, **_fill(actions, source, node, cards.hand_bucket(street, player, hand, board))}
    buckets = cards.hand_buckets(street, player, board)
    return {
        **answer,
        "hands": {name: source.probabilities(node, bucket).tolist() for name, bucket in buckets.items()},
        "unreached": [name for name, bucket in buckets.items() if source.weight(node, bucket) == 0],
    }


def _fill(actions: list[dict[str, Any]], source: PolicySource, node: int, bucket: int) -> dict[str, bool]:
    """Add probability and weight to the actions, in place; the flag beside them."""
    weight = source.weight(node, bucket)
    for action, probability in zip(actions, source.probabilities(node, bucket).tolist(), strict=True):
        action.update(probability=probability, weight=weight)
    return {"reached": weight > 0}


def _whole(chips: float) -> int | float:
    """Chips without a needless fraction, as lines have them."""
    return int(chips) if chips == int(chips) else chips
