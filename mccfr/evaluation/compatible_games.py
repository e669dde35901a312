"""Checks that two games differ only in card buckets and bet sizes, so that strategies can meet.

Each side may have its own buckets and, if the games have real betting rules, its own bet sizes in the tree. All else
must be equal: stacks and blinds, or betting tree and payoffs, hands, ranges, boards and strengths.
"""

from collections.abc import Iterator

from mccfr.cards.base import Difference, unequal, unlike
from mccfr.games.betting import BettingRules
from mccfr.games.game import Game
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import CompiledTree


def check_same_game(first: Game, second: Game) -> None:
    """Raise `ValueError` naming the first difference, unless only buckets and bet sizes differ.

    Bet sizes in the trees may differ only if both games have real betting rules.
    """
    if first is second:
        return
    difference = next(_differences(first, second), None)
    if difference is not None:
        name, one, other = difference
        apart = "card buckets" if first.real_rules is None or second.real_rules is None else "card buckets and menus"
        raise ValueError(
            f"two strategies can only be compared in one game, in which only {apart} differ: {name} is {one} for the "
            f"first and {other} for the second"
        )


def same_tree(first: Game, second: Game) -> bool:
    """Return whether two games have the same betting tree."""
    return first.tree is second.tree or next(_tree_differences(first.tree, second.tree), None) is None


def _differences(first: Game, second: Game) -> Iterator[Difference]:
    yield from unequal("the game", repr(first.name), repr(second.name))
    yield from unequal("the big blind in chips", first.big_blind_chips, second.big_blind_chips)
    yield from unequal("the starting pot in chips", first.pot_chips, second.pot_chips)
    yield from unequal("the chips that player 0 gets from neither player", first.offset_chips, second.offset_chips)
    yield from unequal("the number of streets", first.tree.streets, second.tree.streets)
    if first.real_rules is not None and second.real_rules is not None:
        yield from _rule_differences(first.real_rules, second.real_rules)
    else:
        yield from _tree_differences(first.tree, second.tree)
    yield from first.cards.differences(second.cards)


def _rule_differences(first: BettingRules, second: BettingRules) -> Iterator[Difference]:
    for name, one, other in (
        ("a player's stack in chips", first.stack, second.stack),
        ("the players' stacks in chips", list(first.stacks), list(second.stacks)),
        ("the chips of antes that are no bets", list(first.dead), list(second.dead)),
        ("the rake", (first.rake, first.rake_cap), (second.rake, second.rake_cap)),
        ("the chips that the players have put in at the start", list(first.put_in), list(second.put_in)),
        ("the ante in chips", first.put_in_before, second.put_in_before),
        ("the least bet in chips", first.minimum_bet, second.minimum_bet),
        ("the player to act first on each street", list(first.first_player), list(second.first_player)),
    ):
        yield from unequal(name, one, other)


def _tree_differences(first: CompiledTree, second: CompiledTree) -> Iterator[Difference]:
    one, other = first.arrays, second.arrays
    for node, labels in enumerate(zip(first.label, second.label, strict=False)):
        if labels[0] != labels[1]:
            yield (
                f"the line to node {node} of the betting tree",
                repr(line_text(first, node)),
                repr(line_text(second, node)),
            )
    yield from unequal("the number of nodes of the betting tree", len(first.label), len(second.label))
    for name, text in (
        *((name, f"{name} after the line") for name in ("kind", "player", "block", "count", "first", "slot", "row")),
        ("fixed", "the chips that player 0 gets after the line"),
        ("showdown", "the stake of a showdown in chips after the line"),
        ("probability", "the probability of the chance outcome at the end of the line"),
    ):
        for (node,), value, instead in unlike(getattr(one, name), getattr(other, name)):
            yield f"{text} {line_text(first, node)!r}", value, instead
