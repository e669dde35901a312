"""Betting lines: nodes of a tree as text and back, and the chips put in along them.

Poker family: one token for each action, nothing between them: `c`, `f`, `b`, `rN` with N the chips put in over the
whole hand, and `/` between streets: `r300c/cr500`.  A `/` may stand only where the street changes; it may be left out
there, and `cc` and `cc/` are the same node.  `line_text` writes it always.  Trees with hidden moves: labels separated
by spaces, chance outcomes included: `3 1 2`.  The empty line is the root.
"""

import re

import numpy as np

from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, TERMINAL, CompiledTree

_TOKEN = re.compile(r"r(?P<amount>[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|[a-z]")
_SHOWN = 24  # actions in a message


def is_compact(tree: CompiledTree) -> bool:
    """Whether lines are written without spaces, as betting is."""
    return all(_TOKEN.fullmatch(tree.label[child]) for child in tree.children(0))


def starts_street(tree: CompiledTree, node: int) -> bool:
    """Whether a decision is the first one of a street other than the root's."""
    above = int(tree.parent[node])
    block = tree.arrays.block
    if above == NO_PARENT or tree.arrays.kind[node] != DECISION or tree.arrays.kind[above] != DECISION:
        return False
    return bool(block[node] // 2 != block[above] // 2)


def line_text(tree: CompiledTree, node: int) -> str:
    """The line that leads to a node, as `find_node` reads it."""
    path = tree.path(node)
    if not is_compact(tree):
        return " ".join(tree.label[step] for step in path[1:])
    return "".join(tree.label[step] + "/" * starts_street(tree, step) for step in path)


def all_lines(tree: CompiledTree) -> list[str]:
    """[N] the line that leads to each node, as `line_text` writes it."""
    block, kind = tree.arrays.block, tree.arrays.kind
    above = np.maximum(tree.parent, 0)
    both = (kind == DECISION) & (kind[above] == DECISION)
    ends = np.where(both & (block // 2 != block[above] // 2), "/", "").tolist()
    if not is_compact(tree):
        ends = [" "] * len(ends)
    lines = [""]
    for label, parent, end in zip(tree.label[1:], tree.parent[1:].tolist(), ends[1:], strict=True):
        lines.append(lines[parent] + label + end)  # parents come first
    return lines if is_compact(tree) else [line.removesuffix(" ") for line in lines]


def find_node(tree: CompiledTree, line: str) -> int:
    """The node, of whatever kind, that a line leads to.

    Raises `ValueError` naming the position, what is there and the legal actions.
    """
    return _follow_compact(tree, line.strip()) if is_compact(tree) else _follow_spaced(tree, line)


def find_decision(tree: CompiledTree, line: str) -> int:
    """The decision that a line leads to; `ValueError` also where the hand is over or chance acts."""
    node = find_node(tree, line)
    kind = tree.arrays.kind[node]
    if kind == TERMINAL:
        raise ValueError(f"line {line!r}: the hand is over here, so nobody acts; give a line to a decision")
    if kind == CHANCE:
        raise ValueError(f"line {line!r}: chance acts here; add one of its outcomes: {_legal(tree, node)}")
    return node


def _follow_compact(tree: CompiledTree, line: str) -> int:
    node, place, slash_allowed = 0, 0, False
    while place < len(line):
        where = f"line {line!r}, character {place + 1}"
        if line[place] == "/":
            if not slash_allowed:
                raise ValueError(f"{where}: the street does not change here, so '/' is wrong; {_expected(tree, node)}")
            place, slash_allowed = place + 1, False
            continue
        match = _TOKEN.match(line, place)
        label = match[0] if match else line[place]
        if match and match["amount"]:
            label = next((c for c in _labels(tree, node) if _same_amount(c, match["amount"])), label)
        node = _child(tree, node, label, where)
        place, slash_allowed = (match.end() if match else place + 1), starts_street(tree, node)
    return node


def _follow_spaced(tree: CompiledTree, line: str) -> int:
    node = 0
    for number, label in enumerate(line.split(), 1):
        node = _child(tree, node, label, f"line {line!r}, action {number}")
    return node


def _same_amount(label: str, amount: str) -> bool:
    """Whether a raise's label says an amount that may be written in another way: r300 and r300.0."""
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
    """Chips that the player to act, and his opponent, have put in over the whole hand, at a betting tree's decision."""
    assert tree.put_in is not None
    player = int(tree.arrays.player[node])
    return float(tree.put_in[node, player]), float(tree.put_in[node, 1 - player])


def to_chips(tree: CompiledTree, node: int) -> list[float]:
    """Chips that the player to act will have put in over the whole hand after each action of a decision."""
    own, other = put_in_chips(tree, node)
    level = max(own, other)
    after = []
    for child in tree.children(node):
        label = tree.label[child]
        raised = tree.arrays.kind[child] == DECISION and label != "c"
        after.append(own if label == "f" else put_in_chips(tree, child)[1] if raised else level)
    return after


def own_actions(tree: CompiledTree) -> list[int]:
    """[N] for each decision: the child that its player's last decision before it led into, -1 where he had none."""
    arrays, parents = tree.arrays, tree.parent.tolist()
    player, decision = arrays.player.tolist(), (arrays.kind == DECISION).tolist()
    last: tuple[list[int], list[int]] = ([-1] * len(parents), [-1] * len(parents))
    for node, over in enumerate(parents):
        if over == NO_PARENT:
            continue
        for seat in (0, 1):
            last[seat][node] = node if decision[over] and player[over] == seat else last[seat][over]
    return [last[seat][node] if decision[node] else -1 for node, seat in enumerate(player)]
