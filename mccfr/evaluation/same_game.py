"""Whether two games are one and the same but for card buckets, so that strategies for them may meet.

How players remember their cards is theirs alone; everything they play for must agree to the last bit: betting, payoffs,
hands, ranges, boards, strengths.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.deal import CardModel
from mccfr.games.game import Game
from mccfr.games.holdem_deck import HoldemDeck
from mccfr.hands import board_text, card_names
from mccfr.lines import line_text
from mccfr.tree import CompiledTree

_Difference = tuple[str, Any, Any]
"""What differs, and what it is in either game."""


def check_same_game(first: Game, second: Game) -> None:
    """Raise `ValueError`, naming what differs and both values, unless two games differ in their card buckets alone."""
    if first is second:
        return
    found = next(_differences(first, second), None)
    if found is not None:
        what, one, other = found
        raise ValueError(
            f"two strategies can meet only in the same game, card buckets apart: {what} is {one} for the first and "
            f"{other} for the second"
        )


def _differences(first: Game, second: Game) -> Iterator[_Difference]:
    yield from _unequal("the game", repr(first.name), repr(second.name))
    yield from _unequal("the big blind in chips", first.big_blind_chips, second.big_blind_chips)
    yield from _unequal("the pot to begin with, in chips,", first.pot_chips, second.pot_chips)
    yield from _unequal("what player 0 gets beside the game, in chips,", first.offset_chips, second.offset_chips)
    yield from _unequal("the number of streets", first.tree.streets, second.tree.streets)
    yield from _tree_differences(first.tree, second.tree)
    one, other = first.cards, second.cards
    if isinstance(one, HoldemDeck) and isinstance(other, HoldemDeck):
        yield from _unequal("the number of board cards by street", one.board_cards, other.board_cards)
    elif isinstance(one, CardModel) and isinstance(other, CardModel):
        yield from _card_differences(one, other)
    else:
        yield from _unequal("what cards are dealt from", _dealt_from(one), _dealt_from(other))


def _unequal(what: str, one: Any, other: Any) -> Iterator[_Difference]:
    if one != other:
        yield what, one, other


def _dealt_from(cards: CardModel | HoldemDeck | None) -> str:
    if cards is None:
        return "the tree"
    return "the whole deck" if isinstance(cards, HoldemDeck) else "a list of boards"


def _tree_differences(first: CompiledTree, second: CompiledTree) -> Iterator[_Difference]:
    one, other = first.arrays, second.arrays
    for node, labels in enumerate(zip(first.label, second.label, strict=False)):
        if labels[0] != labels[1]:
            yield (
                f"the line to node {node} of the betting tree",
                repr(line_text(first, node)),
                repr(line_text(second, node)),
            )
    yield from _unequal("the number of nodes of the betting tree", len(first.label), len(second.label))
    for name, what in (
        *((name, f"{name} after the line") for name in ("kind", "player", "block", "count", "first", "slot", "row")),
        ("fixed", "what player 0 gets, in chips, after the line"),
        ("showdown", "what a showdown is played for, in chips, after the line"),
        ("probability", "the probability of what chance does at the end of the line"),
    ):
        for (node,), value, instead in _unlike(getattr(one, name), getattr(other, name)):
            yield f"{what} {line_text(first, node)!r}", value, instead


def _card_differences(first: CardModel, second: CardModel) -> Iterator[_Difference]:
    yield from _unequal("the number of hands", len(first.hand_names), len(second.hand_names))
    hands, names = first.hand_names, card_names(first)
    for hand, (name, instead) in enumerate(zip(hands, second.hand_names, strict=True)):
        yield from _unequal(f"the name of hand {hand}", name, instead)
    for (hand, _), _, _ in _unlike(first.hand_cards, second.hand_cards):
        yield f"the cards of hand {hands[hand]}", first.hand_cards[hand].tolist(), second.hand_cards[hand].tolist()
    for (player, hand), weight, instead in _unlike(first.reach, second.reach):
        yield f"the weight of {hands[hand]} in the range of player {player}", weight, instead
    for street, (boards, others) in enumerate(zip(first.board_cards, second.board_cards, strict=True)):
        yield from _unequal(f"the number of board cards on street {street}", boards.shape[1], others.shape[1])
        yield from _unequal(f"the number of boards of street {street}", len(boards), len(others))
        for (board, _), _, _ in _unlike(boards, others):
            shown = [board_text(cards, street, board, names) for cards in (first, second)]
            yield f"board {board} of street {street}", shown[0], shown[1]
        parents = first.board_parent[street], second.board_parent[street]
        for (board,), parent, instead in _unlike(*parents):
            yield f"the board before board {board} of street {street}", parent, instead
    for (board, hand), strength, instead in _unlike(first.strength, second.strength):
        yield f"the strength of {hands[hand]} on the board {board_text(first, -1, board, names)}", strength, instead


def _unlike(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """The places where two arrays differ, and what stands there."""
    for place in np.argwhere(np.asarray(one) != np.asarray(other)).tolist():
        yield tuple(place), one[tuple(place)].item(), other[tuple(place)].item()
