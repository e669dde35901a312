"""Queries networks of Deep CFR at one decision: their average strategy, or one sampled network."""

from typing import Any

import numpy as np

from abstraction.cards import combo_text
from abstraction.range_notation import hand_class_names
from mccfr.games.line_text import typed_line
from mccfr.policy.query import answer_head, query
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.deep.network_strategy import Networks
from mccfr.solvers.deep.sampled_cards import NO_CARD
from mccfr.solvers.deep.sampled_cards_cfr import samples_cards


def query_networks(
    strategy: Networks, line: str, hand: str | None = None, board: str | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Return the networks' strategy at the decision that a line leads to.

    The fields of the result are those of `mccfr.policy.query.query`: street, player, actions, probabilities by hand.
    Its field `networks` is the number of networks that were evaluated.

    line   actions before the decision, such as "b300c/"
    hand   one hand; None: every hand of the player
    board  board cards at the decision
    seed   number with which one network of the player is drawn, with probabilities by weight. The result then has the
           network's training iteration as `sampled_iteration`. None: the average over the player's networks

    If cards are dealt from the whole deck, a class of hole cards (`AKs`) gets the probabilities of its first hand.
    Networks do not treat suits as equal.  Raises `ValueError` for an invalid line, hand or board.
    """
    if samples_cards(strategy.game):
        answer = _dealt(strategy, line, hand, board, seed)
    else:
        answer = query(Profile(strategy.game, strategy.strategy(seed)), line, hand, board)
    player = answer["player"]
    if seed is None:
        return {**answer, "networks": strategy.count(player)}
    return {
        **answer,
        "networks": 1,
        "sampled_iteration": strategy.iteration(player, strategy.sampled_network(player, seed)),
    }


def _dealt(strategy: Networks, line: str, hand: str | None, board: str | None, seed: int | None) -> dict[str, Any]:
    """Return the strategy at a decision of a game whose cards are dealt from the whole deck.

    The result has the fields of `mccfr.policy.query.query`: street, player, actions and probabilities by hand. Without
    `hand`, the hands before the flop are classes, such as AKs; later they are combinations of two cards.

    line   actions before the decision
    hand   one hand; None: every hand of the player
    board  board cards at the decision
    seed   number with which one network is drawn; None: the average over the player's networks

    Raises `ValueError` for an invalid line, hand or board, and for a hand that shares a card with the board.
    """
    game = strategy.game
    table = game.table_cards()
    node, answer = answer_head(game, typed_line(game, line))
    street = int(game.tree.arrays.block[node]) // 2
    dealt = table.read_board(street, board)
    combos = np.arange(table.hand_count) if hand is None else table.find_hands(hand)
    cards = np.full((len(combos), 2 + game.cards.cards_on(game.tree.streets - 1)), NO_CARD, np.uint8)
    cards[:, :2] = table.hand_cards[combos]
    cards[:, 2 : 2 + len(dealt)] = dealt
    live = ~np.isin(cards[:, :2], dealt).any(axis=1)
    if not live.any():
        raise ValueError(f"hand {hand!r} shares a card with the board {board}")
    combos, cards = combos[live], cards[live]
    if hand is None and not dealt:
        names = {name: k for k, name in reversed(list(enumerate(hand_class_names(table.hand_cards[combos]))))}
    else:
        names = {combo_text(int(combo)): k for k, combo in enumerate(combos)}
    if hand is not None and dealt and len(names) > 1:
        raise ValueError(f"hand {hand!r} means several hands on the board {board}: give both suits")
    if hand is not None:
        cards = cards[:1]
    shares, weights = strategy.rows(node, cards, seed)
    if hand is None:
        return {
            **answer,
            "hands": {name: shares[k].tolist() for name, k in names.items()},
            "unreached": [name for name, k in names.items() if weights[k] == 0],
        }
    for action, share in zip(answer["actions"], shares[0].tolist(), strict=True):
        action.update(probability=share, weight=float(weights[0]))
    return {**answer, "reached": bool(weights[0] > 0)}
