"""Converts betting lines between chips put in over the whole hand and chips put in on the street.

The tree, files and the ACPC protocol write `r450`: the chips that a player has put in over the whole hand. Players
write `b150`: the chips that a player has put in on this street. With 300 chips in before, both are the same bet.
"""

import re
from typing import NamedTuple

from mccfr.trees.compiled import CompiledTree

_AMOUNT = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_TOKEN = re.compile(f"(?P<kind>[rb])(?P<chips>{_AMOUNT})|.")


class LineStart(NamedTuple):
    """Chips that the players have put in when a betting line begins.

    before   chips of each player that are no bet: an ante that all pay, or half of the pot with which an endgame begins
    level    chips of the player who has put in most, blinds included
    players  number of players; with two, a call that is not a street's first action ends it also without a "/"
    """

    before: float
    level: float
    players: int = 2


def tree_start(tree: CompiledTree) -> LineStart:
    """Return the LineStart of a tree's root: the chips put in there; 0 in trees without `put_in`.

    `before` is the least that a player has put in.  For two players it is 0 if they have put in different amounts,
    such as blinds.
    """
    if tree.put_in is None:
        return LineStart(0.0, 0.0)
    least, most = float(tree.put_in[0].min()), float(tree.put_in[0].max())
    return LineStart(least if least == most or tree.players > 2 else 0.0, most, tree.players)


def street_line(line: str, start: LineStart) -> str:
    """Return a line with the chips put in on the street: `r300c/r450` as `b300c/b150`.

    start  chips put in before the line
    """
    return _rewritten(line, start, "b")


def whole_line(line: str, start: LineStart) -> str:
    """Return a line with the chips put in over the whole hand: `b300c/b150` as `r300c/r450`.

    start  chips put in before the line
    """
    return _rewritten(line, start, "r")


def street_action(line: str, action: str, start: LineStart) -> str:
    """Return an action with the chips put in on its street: `b150` for `r450`.

    line    betting line before the action
    action  the action, such as `r450` or `c`
    start   chips put in before the line
    """
    return [match[0] for match in _TOKEN.finditer(street_line(line + action, start))][-1]


def refuse_whole_amounts(line: str, start: LineStart, above: str = "") -> None:
    """Raise `ValueError` if a line typed by a user has `r` amounts with two meanings.

    By them users mean chips put in on the street, or over the whole hand.  `b` amounts always count the street.

    start  chips put in before the line
    above  line of the tree that the typed one continues, for the message
    """
    if token := next((match[0] for match in _TOKEN.finditer(line) if match["kind"] == "r"), None):
        street, same = (
            street_line(above + line, start)[len(street_line(above, start)) :],
            line.replace("r", "b"),
        )
        if street != same:
            raise ValueError(
                f"line {line!r}: {token} can mean chips put in on this street ({same}) or over the whole hand "
                f"({street}): write b and the chips put in on this street"
            )


def check_line(tree: CompiledTree, line: str, start: LineStart) -> None:
    """Raise `ValueError`, with the legal actions, for a line's first action that the tree lacks.

    line   betting line with the chips put in over the whole hand, such as r300c
    start  chips put in before the line, to write the message with the chips put in on the street
    """
    node, prefix = 0, ""
    for match in _TOKEN.finditer(line):
        token = match[0]
        if token == "/":
            continue
        labels = {tree.label[child]: child for child in tree.children(node)}
        if token not in labels:
            legal = ", ".join(street_action(prefix, label, start) for label in labels) or "none: the hand is over"
            raise ValueError(
                f"line {street_line(line, start)!r}: {street_action(prefix, token, start)!r} is not possible after "
                f"{street_line(prefix, start)!r}; legal actions: {legal}"
            )
        node, prefix = labels[token], prefix + token


def _rewritten(line: str, start: LineStart, kind: str) -> str:
    """Return a line with all amounts as chips of the street (`kind` "b") or of the whole hand ("r").

    With two players a call ends a street unless it is the first action on it; with more only a "/" ends it.

    start  chips put in before the line
    """
    (before, level, players), first, rewritten = start, True, ""
    for match in _TOKEN.finditer(line):
        token = match[0]
        if match["kind"]:
            level = float(match["chips"]) + (before if match["kind"] == "b" else 0.0)
            chips = level - before if kind == "b" else level
            token = f"{kind}{chips:.15g}"
        elif token == "/" if players > 2 else token == "c" and not first:
            before, first = level, True
            rewritten += token
            continue
        first = first and token == "/"
        rewritten += token
    return rewritten
