"""Betting trees whose bet sizes are given for each betting line (sequence of actions)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mccfr.games.betting import BettingRules, BettingState, amount_text, called, raised
from mccfr.games.betting_tree import build_tree
from mccfr.trees.compiled import CompiledTree
from mccfr.trees.street_amounts import street_line

Sizes = Callable[[str, BettingState], Sequence[float]]
"""Amounts that the player to act may raise to, over the whole hand, by line (without /) and state."""


@dataclass(frozen=True)
class LineTree:
    """A betting tree whose decisions are found by line, such as cr300c.

    tree   the betting tree
    state  {line: betting state} of each decision
    sizes  {line: amounts to raise to}; decisions without raises are left out

    Lines have no / between streets. A raise r300 is to 300 chips over the whole hand.
    """

    tree: CompiledTree
    state: Mapping[str, BettingState]
    sizes: Mapping[str, Sequence[float]]

    def node(self, line: str) -> int:
        """Return the number of the tree node after a line of the tree, such as cr300c."""
        node = 0
        while line:
            node = next(child for child in self.tree.children(node) if _begins(line, self.tree.label[child]))
            line = line[len(self.tree.label[node]) :]
        return node


def _begins(line: str, label: str) -> bool:
    """Return True if the first action of a line is `label`; r30 is not the first action of r300."""
    rest = line[len(label) :]
    return line.startswith(label) and not (label[0] == "r" and rest[:1] and rest[0] in "0123456789.e+-")


def line_tree(rules: BettingRules, sizes: Sizes) -> LineTree:
    """Build the betting tree of two-player `rules` with the raises that the function `sizes` returns.

    `sizes` takes a line (actions so far, such as cr300) and its betting state. It returns amounts to raise to, in chips
    over the whole hand. Raises that `rules` itself allows, adds or removes are ignored.
    """
    states, added, todo = dict[str, BettingState](), dict[str, Sequence[float]](), [("", rules.start())]
    while todo:
        line, state = todo.pop()
        states[line] = state
        amounts = sizes(line, state) if state.to_call < rules.stack else ()
        if amounts:
            added[line] = tuple(amounts)
        after = called(rules, state)
        if after is not None:
            todo.append((line + "c", after))
        todo += [(f"{line}r{amount_text(amount)}", raised(rules, state, amount)) for amount in amounts]
    tree = build_tree(replace(rules, raise_targets=_no_raises, added=added, removed={}))
    return LineTree(tree, states, added)


def _no_raises(state: BettingState) -> Sequence[float]:
    del state
    return ()


def added_lines(rules: BettingRules, sizes: Mapping[str, Sequence[float]]) -> list[str]:
    """Return all bets of `sizes` as lines for the configuration key `add` of `[game.menu]`.

    sizes  {line: amounts to raise to, in chips over the whole hand}

    In the result a bet of cb40 is to 40 chips put in on the street.
    """
    return [street_line(f"{line}r{amount_text(amount)}", rules.line_start) for line in sizes for amount in sizes[line]]
