"""Betting trees whose bet sizes are given for each betting line, instead of by a menu."""

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
    """A betting tree whose decisions are found by line. Lines have no / and amounts of the whole hand.

    tree   the betting tree
    state  {line: betting state} of each decision
    sizes  {line: amounts to raise to}; decisions without raises are left out
    """

    tree: CompiledTree
    state: Mapping[str, BettingState]
    sizes: Mapping[str, Sequence[float]]

    def node(self, line: str) -> int:
        """Return the node of the decision to which a line leads."""
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
    """Build the tree of `rules` with the raises that the function `sizes` gives for each line.

    `sizes` takes a line and its betting state, and returns amounts to raise to. The rules' own raises, `added` and
    `removed` are ignored.
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
    """Return all bets of `sizes` as lines for the key `add` of `[game.menu]`, such as cb40.

    sizes  amounts to raise to, over the whole hand, by line

    The amounts in the result are chips put in on the street.
    """
    return [street_line(f"{line}r{amount_text(amount)}", rules.line_start) for line in sizes for amount in sizes[line]]
