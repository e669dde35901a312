"""Checks that two games differ only in card buckets and bet sizes, so that strategies are comparable.

Each game may have its own buckets. Bet sizes may differ in games whose tree has only some of the legal bets, as in
no-limit hold'em; their rules are in `Game.real_rules`. All else must be equal: stacks and blinds, or betting tree and
payoffs; also hands, ranges, boards and showdowns.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mccfr.games.game import Game
from mccfr.trees.betting_lines import line_text


def check_same_game(first: Game, second: Game) -> None:
    """Raise `ValueError`, naming the first difference, unless strategies of two games can be compared.

    Card buckets may differ. Bet sizes may differ only if both trees have just some of the legal bets. `Game.real_rules`
    then has the rules of all legal bets, which must be equal.
    """
    if first is second:
        return
    has_real_rules = first.real_rules is not None and second.real_rules is not None
    apart = "card buckets and menus" if has_real_rules else "card buckets"
    start = f"two strategies can only be compared in one game, in which only {apart} differ"
    for name, one, other in (*_properties(first, second), *(_rules if has_real_rules else _lines)(first, second)):
        if one != other:
            raise ValueError(f"{start}: {name} is {one} for the first and {other} for the second")
    if not has_real_rules and not same_tree(first, second):
        raise ValueError(f"{start}: the payoffs or rows after a line of the betting tree are others")
    if not first.cards.deals_as(second.cards):
        raise ValueError(f"{start}: hands, ranges, boards or strengths are others")


def same_tree(first: Game, second: Game) -> bool:
    """Return whether two games have the same betting tree: labels, players to act, payoffs and table rows."""
    one, other = first.tree, second.tree
    if one is other:
        return True
    fields = [name for name in one.arrays._fields if name != "touched"]  # which only counts nodes
    equal = (np.array_equal(getattr(one.arrays, name), getattr(other.arrays, name)) for name in fields)
    return [*one.label] == [*other.label] and all(equal)


def _properties(first: Game, second: Game) -> Iterator[tuple[str, Any, Any]]:
    yield "the game", repr(first.name), repr(second.name)
    yield "the big blind in chips", first.big_blind_chips, second.big_blind_chips
    yield "the starting pot in chips", first.pot_chips, second.pot_chips
    yield "the chips that player 0 gets from neither player", first.offset_chips, second.offset_chips
    yield "the number of streets", first.tree.streets, second.tree.streets
    yield "what cards are dealt from", first.cards.source, second.cards.source
    boards = [game.cards.board_cards_by_street for game in (first, second)]
    yield "the number of board cards by street", boards[0], boards[1]


def _rules(first: Game, second: Game) -> Iterator[tuple[str, Any, Any]]:
    one, other = first.real_rules, second.real_rules
    assert one is not None
    assert other is not None
    yield "a player's stack in chips", one.stack, other.stack
    yield "the players' stacks in chips", list(one.stacks), list(other.stacks)
    yield "the chips of antes that are no bets", list(one.dead), list(other.dead)
    yield "the rake", (one.rake, one.rake_cap), (other.rake, other.rake_cap)
    yield "the chips that the players have put in at the start", list(one.put_in), list(other.put_in)
    yield "the ante in chips", one.put_in_before, other.put_in_before
    yield "the least bet in chips", one.minimum_bet, other.minimum_bet
    yield "the player to act first on each street", list(one.first_player), list(other.first_player)


def _lines(first: Game, second: Game) -> Iterator[tuple[str, Any, Any]]:
    one, other = first.tree, second.tree
    pairs = enumerate(zip(one.label, other.label, strict=False))
    node = next((node for node, (label, instead) in pairs if label != instead), 0)
    yield f"the line to node {node} of the betting tree", repr(line_text(one, node)), repr(line_text(other, node))
    yield "the number of nodes of the betting tree", len(one.label), len(other.label)
