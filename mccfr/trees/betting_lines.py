"""Betting lines: converts tree nodes to text and back, and counts the chips put in.

Poker games: one token for each action, without separators: `c` (check or call), `f` (fold), `b` (the only bet, in Kuhn
poker), and `rN` (bet or raise). N is the chips that the player has then put in over the whole hand. A `/` separates
streets, as in `r300c/cr500`. It may be omitted: `cc` and `cc/` are the same node. `line_text` always writes it.

Trees with hidden moves: labels separated by spaces, chance outcomes included, as in `3 1 2`. The empty line is the
root.
"""

import re

import numpy as np

from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, TERMINAL, CompiledTree

_TOKEN = re.compile(r"r(?P<amount>[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|[a-z]")
_SHOWN = 24  # actions in a message


def is_compact(tree: CompiledTree) -> bool:
    """Return True if the tree's lines are written without spaces, as in poker games."""
    return all(_TOKEN.fullmatch(tree.label[child]) for child in tree.children(0))


def starts_street(tree: CompiledTree, node: int) -> bool:
    """Return True if `node` is the first decision of a street, and that street is not the root's."""
    above = int(tree.parent[node])
    block, players = tree.arrays.block, tree.players
    if above == NO_PARENT or tree.arrays.kind[node] != DECISION or tree.arrays.kind[above] != DECISION:
        return False
    return bool(block[node] // players != block[above] // players)


def line_text(tree: CompiledTree, node: int) -> str:
    """Return the betting line that leads to a node, such as "r300c/"; `find_node` reads it."""
    path = tree.path(node)
    if not is_compact(tree):
        return " ".join(tree.label[step] for step in path[1:])
    return "".join(tree.label[step] + "/" * starts_street(tree, step) for step in path)


def all_lines(tree: CompiledTree) -> list[str]:
    """Return for each of the N nodes the betting line that leads to it, such as "r300c/"."""
    street, kind = tree.arrays.block // tree.players, tree.arrays.kind
    above = np.maximum(tree.parent, 0)
    both = (kind == DECISION) & (kind[above] == DECISION)
    ends = np.where(both & (street != street[above]), "/", "").tolist()
    if not is_compact(tree):
        ends = [" "] * len(ends)
    lines = [""]
    for label, parent, end in zip(tree.label[1:], tree.parent[1:].tolist(), ends[1:], strict=True):
        lines.append(lines[parent] + label + end)  # parents come before their children
    return lines if is_compact(tree) else [line.removesuffix(" ") for line in lines]


def find_node(tree: CompiledTree, line: str) -> int:
    """Return the number of the node, of any kind, to which a line such as "r300c" leads.

    Raises `ValueError` for a line that is not in the tree, with the number of the wrong character or action and the
    legal actions.
    """
    return _follow_compact(tree, line.strip()) if is_compact(tree) else _follow_spaced(tree, line)


def find_decision(tree: CompiledTree, line: str) -> int:
    """Return the number of the decision node to which a line leads.

    Raises `ValueError` for a line that is not in the tree, and for one that leads to a terminal or chance node.
    """
    node = find_node(tree, line)
    kind = tree.arrays.kind[node]
    if kind == TERMINAL:
        raise ValueError(f"line {line!r}: the hand is over here; give a line to a decision")
    if kind == CHANCE:
        raise ValueError(f"line {line!r}: chance acts here; add one of its outcomes: {_legal(tree, node)}")
    return node


def _follow_compact(tree: CompiledTree, line: str) -> int:
    node, position, slash_allowed = 0, 0, False
    while position < len(line):
        where = f"line {line!r}, character {position + 1}"
        if line[position] == "/":
            if not slash_allowed:
                raise ValueError(f"{where}: the street does not change here, so '/' is wrong; {_expected(tree, node)}")
            position, slash_allowed = position + 1, False
            continue
        match = _TOKEN.match(line, position)
        label = match[0] if match else line[position]
        if match and match["amount"]:
            label = next((c for c in _labels(tree, node) if _same_amount(c, match["amount"])), label)
        node = _child(tree, node, label, where)
        position, slash_allowed = (match.end() if match else position + 1), starts_street(tree, node)
    return node


def _follow_spaced(tree: CompiledTree, line: str) -> int:
    node = 0
    for number, label in enumerate(line.split(), 1):
        node = _child(tree, node, label, f"line {line!r}, action {number}")
    return node


def _same_amount(label: str, amount: str) -> bool:
    """Return True if a raise's label has this amount, in any notation: r300 and r300.0."""
    match = _TOKEN.fullmatch(label)
    return bool(match and match["amount"]) and float(label[1:]) == float(amount)


def _child(tree: CompiledTree, node: int, label: str, where: str) -> int:
    for child in tree.children(node):
        if tree.label[child] == label:
            return child
    raise ValueError(f"{where}: {label!r} is not possible here; {_expected(tree, node)}")


def _labels(tree: CompiledTree, node: int) -> list[str]:
    return [tree.label[child] for child in tree.children(node)]


def _legal(tree: CompiledTree, node: int) -> str:
    labels = _labels(tree, node)
    return ", ".join(labels[:_SHOWN]) + (f", ... {labels[-1]}" if len(labels) > _SHOWN else "")


def _expected(tree: CompiledTree, node: int) -> str:
    if tree.arrays.kind[node] == TERMINAL:
        return "the hand is over and the line must end"
    who = "outcomes of chance" if tree.arrays.kind[node] == CHANCE else "legal actions"
    return f"{who}: {_legal(tree, node)}"


def put_in_chips(tree: CompiledTree, node: int) -> tuple[float, float]:
    """Return (chips of the player to act at `node`, most chips of an opponent) put in over the whole hand."""
    assert tree.put_in is not None
    player, put_in = int(tree.arrays.player[node]), tree.put_in[node]
    return float(put_in[player]), float(np.delete(put_in, player).max())


def chips_after(tree: CompiledTree, node: int) -> list[float]:
    """Return a list: chips that the player to act has put in over the whole hand after each action.

    node  node of the decision
    """
    own, other = put_in_chips(tree, node)
    assert tree.put_in is not None
    player, level = int(tree.arrays.player[node]), max(own, other)
    after = []
    for child in tree.children(node):
        label = tree.label[child]
        raised = tree.arrays.kind[child] == DECISION and label != "c"
        after.append(own if label == "f" else float(tree.put_in[child, player]) if raised else level)
    return after


def previous_own_actions(tree: CompiledTree) -> list[int]:
    """Return for each of the N nodes the node to which the previous action of the player to act led.

    The value is -1 at a player's first decision, and for nodes that are no decisions.
    """
    arrays, parents = tree.arrays, tree.parent.tolist()
    player, decision = arrays.player.tolist(), (arrays.kind == DECISION).tolist()
    seats = range(tree.players)
    last = [[-1] * len(parents) for _ in seats]
    for node, above in enumerate(parents):
        if above == NO_PARENT:
            continue
        for seat in seats:
            last[seat][node] = node if decision[above] and player[above] == seat else last[seat][above]
    return [last[seat][node] if decision[node] else -1 for node, seat in enumerate(player)]
