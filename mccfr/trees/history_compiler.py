"""Compiles games with chance and hidden moves in the tree, which has a node for each history.

A history is the sequence of actions and chance outcomes from the root.

A player's infosets are named by the player's observations. Both players must have perfect recall: all histories of an
infoset follow the same infosets and actions of its player. Comparing the player's last action suffices, by induction.
Probabilities, labels, players and payoffs from the game's function are validated before use.
"""

from array import array
from collections.abc import Callable, Sequence
from math import fsum, isfinite
from numbers import Integral, Real
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from mccfr.common.user_code import UserCodeError, user_error
from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, NO_PLAYER, NO_SLOT, TERMINAL, CompiledTree, TreeArrays
from mccfr.trees.history_progress import count_callback
from storage.free_space import available_memory_bytes

MAX_HISTORIES = 100_000_000
MAX_DEPTH = 5_000
"""Most moves of one history. In a game that does not end, the depth-first search soon exceeds it."""
MAX_NAME_BYTES = 1 << 30  # bounds the memory of games whose infoset names are whole transcripts
_MEMORY_SHARE = 0.8  # of the available memory; the rest is for tables and other processes
HISTORY_BYTES = 180
"""Upper bound of a history's memory in bytes: record, infoset name, and traversal scratch."""


def most_histories(requested: int = MAX_HISTORIES) -> int:
    """Return the largest number of histories to compile, at most `requested` and MAX_HISTORIES.

    It is smaller if 80 % of the available memory holds fewer histories.
    """
    return min(requested, MAX_HISTORIES, int(_MEMORY_SHARE * available_memory_bytes()) // HISTORY_BYTES)


class Decision(NamedTuple):
    """A history (sequence of moves from the root) at which a player acts. A actions.

    player    0 or 1
    infoset   name of the player's infoset: what the player has observed
    labels    [A] label of each action, a text without blanks
    children  [A] history after each action, in the form that the game's function `expand` takes
    names     [A] names for display, if labels are numbers; None: the labels
    """

    player: int
    infoset: str
    labels: Sequence[str]
    children: Sequence[Any]
    names: Sequence[str] | None = None


class Chance(NamedTuple):
    """A history (sequence of moves from the root) at which chance acts. A outcomes.

    labels         [A] label of each outcome, a text without blanks
    probabilities  [A] probabilities, which sum to 1
    children       [A] history after each outcome, in the form that the game's function `expand` takes
    names          [A] names for display, if labels are numbers; None: the labels
    """

    labels: Sequence[str]
    probabilities: Sequence[float]
    children: Sequence[Any]
    names: Sequence[str] | None = None


Expansion = Decision | Chance | float | tuple[float, float]
"""Type of a history; a terminal is its payoff to player 0 in chips, or the payoffs to both players."""

_COUNT_STEP = 2_000  # histories between two calls of the progress callback
_SUM_TOLERANCE = 1e-9
_SHOWN = 60  # characters shown of a long history's beginning and of its end, in messages


class _Infosets:
    """One player's infosets, each with its table row and facts that all its histories must share.

    rows    row of each infoset by name
    slot    first slot (action) of each row
    before  slot of the player's previous action, by row; NO_SLOT: none
    labels  labels of the actions, by row
    slots   number of slots so far
    """

    def __init__(self, player: int) -> None:
        self.player = player
        self.rows: dict[str, int] = {}
        self.slot, self.before = array("i"), array("i")
        self.labels: list[tuple[str, ...]] = []
        self.shared_labels: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.slots = self.name_bytes = 0

    def find(self, decision: Decision, before: int) -> int:
        """Return the row of a decision's infoset, and add it if it is new.

        before  slot of the player's previous action, or NO_SLOT

        Raises `ValueError` if the history does not agree with others of its infoset.
        """
        name, labels = decision.infoset, tuple(decision.labels)
        row = self.rows.get(name)
        if row is None:
            return self._add(name, labels, before)
        if self.before[row] != before:
            raise ValueError(
                f"not of perfect recall: player {self.player} forgets earlier actions or observations at the infoset "
                f"{name!r}, which has histories with different ones"
            )
        if self.labels[row] != labels:
            raise ValueError(
                f"infoset {name!r} of player {self.player} has the actions {' '.join(self.labels[row])} in one history "
                f"and {' '.join(labels)} in another; they must be the same"
            )
        return row

    def _add(self, name: str, labels: tuple[str, ...], before: int) -> int:
        self.name_bytes += len(name)
        if self.name_bytes > MAX_NAME_BYTES:
            raise ValueError(
                f"the names of player {self.player}'s infosets take more than {MAX_NAME_BYTES:,} bytes, the most "
                "allowed: take a smaller game"
            )
        row = self.rows[name] = len(self.rows)
        self.slot.append(self.slots)
        self.before.append(before)
        self.labels.append(self.shared_labels.setdefault(labels, labels))
        self.slots += len(labels)
        return row


class _Records:
    """Growing arrays with the fields of all nodes (kind, player, parent and so on) of a tree.

    A node is a terminal until it is expanded.
    """

    def __init__(self) -> None:
        self.kind, self.player = array("b"), array("b")
        self.count, self.first, self.row, self.parent = array("i"), array("i"), array("i"), array("i")
        self.fixed, self.probability = array("d"), array("d")
        self.label: list[str] = []
        self.named: list[str] = []  # may be shorter than `label`

    def add(self, parent: int, labels: Sequence[str], probabilities: Sequence[float]) -> int:
        """Append the children of a node, as terminals that pay 0; return the first child's number.

        parent                 number of the node
        labels, probabilities  label and probability of each child
        """
        first, count = len(self.kind), len(labels)
        self.kind.extend((TERMINAL,) * count)
        self.player.extend((NO_PLAYER,) * count)
        self.count.extend((0,) * count)
        self.first.extend((-1,) * count)
        self.row.extend((NO_SLOT,) * count)
        self.parent.extend((parent,) * count)
        self.fixed.extend((0.0,) * count)
        self.probability.extend(probabilities)
        self.label.extend(labels)
        return first

    def open(self, node: int, kind: int, branch: Decision | Chance, probabilities: Sequence[float]) -> int:
        """Make a node a decision or chance node, add its children, return the first child's number.

        kind           DECISION or CHANCE
        branch         the Decision or Chance
        probabilities  [A] probability of each child; 1 at a decision
        """
        first = self.add(node, branch.labels, probabilities)
        self.kind[node], self.count[node], self.first[node] = kind, len(branch.labels), first
        if branch.names is not None:
            self.named.extend([""] * (first - len(self.named)))
            self.named.extend(map(intern, branch.names))
        return first


class _Checks:
    """Validates the results of a game's function `expand`; `UserCodeError` names the history."""

    def __init__(self, game: str, records: _Records) -> None:
        self.game, self.records = game, records
        self.sound: set[tuple[str, ...]] = set()  # labels already checked

    def history_text(self, node: int) -> str:
        """Return the moves from the root to a node as text: " after the history 'a b'" or " at the root".

        Moves are given by their names for display, or else by their labels.
        """
        labels, named, path = self.records.label, self.records.named, []
        while node:
            path.append((named[node] if node < len(named) else "") or labels[node])
            node = self.records.parent[node]
        text = " ".join(reversed(path))
        if len(text) > 3 * _SHOWN:
            text = f"{text[:_SHOWN]} ... {text[-_SHOWN:]}"
        return f" after the history {text!r}" if path else " at the root"

    def refuse(self, node: int, problem: str) -> UserCodeError:
        """Return an error that names a history and its problem."""
        return UserCodeError(f"{self.game},{self.history_text(node)}: {problem}")

    def payoff(self, node: int, value: Any) -> float:
        """Return the payoff to player 0 in chips from `value`: a number, or two numbers that sum to 0.

        Raises `UserCodeError`, naming the node's history, for any other value.
        """
        if type(value) is float and isfinite(value):
            return value
        pair = value if isinstance(value, tuple | list) else (value, 0)
        if len(pair) != 2 or not all(isinstance(each, Real) and isfinite(each) for each in pair):
            raise self.refuse(
                node, f"the payoff is {value!r}; a finite number of chips to player 0 is needed, or a pair of them"
            )
        if pair is value and abs(pair[0] + pair[1]) > _SUM_TOLERANCE * max(1.0, abs(pair[0])):
            raise self.refuse(
                node,
                f"the payoffs {pair[0]} and {pair[1]} sum to {pair[0] + pair[1]:.9g}; only zero-sum games are solved",
            )
        return float(pair[0])

    def actions(self, node: int, branch: Decision | Chance) -> None:
        """Check the fields of `branch`, a Decision or Chance that the game's function returned for a node.

        Raises `UserCodeError` for invalid labels, children, names, probabilities, player or infoset.
        """
        chance = isinstance(branch, Chance)
        kind = "outcome" if chance else "action"
        for column in (
            branch.labels,
            branch.children,
            branch.probabilities if isinstance(branch, Chance) else (),
        ):
            if not hasattr(column, "__len__"):
                raise self.refuse(node, f"a {type(column).__name__} is given where a list is needed")
        labels, count = branch.labels, len(branch.labels)
        if len(branch.children) != count:
            raise self.refuse(
                node,
                f"{count} labels and {len(branch.children)} children: give one label and one child for each {kind}",
            )
        if not count:
            raise self.refuse(node, f"a history without {kind}s is neither a decision nor chance: return its payoff")
        key = tuple(labels) if all(isinstance(label, str) for label in labels) else ()
        if key not in self.sound:
            self.labels(node, labels, kind)
            self.sound.add(key)
        if branch.names is not None and not (len(branch.names) == count and all(map(_is_text, branch.names))):
            raise self.refuse(node, f"names = {branch.names!r} is not allowed; a text for each {kind} is needed")
        if isinstance(branch, Chance):
            self.probabilities(node, branch)
        elif not isinstance(branch.player, Integral) or branch.player not in (0, 1):
            raise self.refuse(node, f"the player {branch.player!r} acts; players are 0 and 1")
        elif not isinstance(branch.infoset, str):
            raise self.refuse(node, f"the infoset {branch.infoset!r} is not allowed; a text is needed")

    def labels(self, node: int, labels: Sequence[str], kind: str) -> None:
        """Raise `UserCodeError` unless labels are distinct texts without blanks.

        kind  "action" or "outcome", for the message
        """
        for label in labels:
            if not isinstance(label, str) or not label or label.split() != [label]:
                raise self.refuse(node, f"the label {label!r} is not allowed; a text without blanks is needed")
        if len(set(labels)) != len(labels):
            raise self.refuse(node, f"two {kind}s have one label, of {', '.join(labels)}; they must differ")

    def probabilities(self, node: int, branch: Chance) -> None:
        """Raise `UserCodeError` unless each outcome has a probability of at least 0, and they sum to 1."""
        shares, count = branch.probabilities, len(branch.labels)
        if len(shares) != count:
            raise self.refuse(node, f"{count} outcomes have {len(shares)} probabilities; each outcome needs one")
        for label, share in zip(branch.labels, shares, strict=True):
            if not isinstance(share, Real) or not isfinite(share) or share < 0:
                raise self.refuse(node, f"the outcome {label!r} has the probability {share!r}; 0 to 1 is allowed")
        total = fsum(shares)
        if abs(total - 1) > _SUM_TOLERANCE:
            raise self.refuse(node, f"the probabilities sum to {total:.10g}; they must sum to 1")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def build_history_tree(
    root: Any, expand: Callable[[Any], Expansion], *, max_histories: int = MAX_HISTORIES, name: str = "the game"
) -> CompiledTree:
    """Compile the game that begins at `root`, as one street, with one block of table rows for each player.

    root           history without moves: any object that describes it to `expand`
    expand         function of such an object; returns a `Decision`, a `Chance`, or a terminal's payoff in chips (to
                   player 0, or to both)
    max_histories  most histories (nodes), chance nodes and terminals included
    name           of the game, for messages

    Raises `UserCodeError` (a `ValueError`), naming the history, if `expand` fails or returns an invalid result. It also
    raises it if a player lacks perfect recall, if an infoset's actions differ, and above MAX_DEPTH moves or
    MAX_NAME_BYTES of infoset names. Raises `ValueError` above `max_histories` or what memory allows (`most_histories`).
    """
    allowed = most_histories(max_histories)
    records, next_report, report = _Records(), _COUNT_STEP, count_callback.get()
    checks, players = _Checks(name, records), (_Infosets(0), _Infosets(1))
    records.add(NO_PARENT, ("",), (1.0,))
    todo = [(0, root, 0, NO_SLOT, NO_SLOT)]
    while todo:
        node, history, depth, *before = todo.pop()
        try:
            branch = expand(history)
        except Exception as error:
            raise user_error(expand, error, checks.history_text(node)) from error
        if not isinstance(branch, Decision | Chance):
            records.fixed[node] = checks.payoff(node, branch)
            continue
        checks.actions(node, branch)
        count, depth = len(branch.labels), depth + 1
        if depth > MAX_DEPTH:
            raise checks.refuse(node, f"the game goes on after {MAX_DEPTH:,} moves, the most allowed: does it end?")
        if len(records.kind) + count > allowed:
            raise ValueError(
                f"{name} has at least {len(records.kind) + count:,} histories; {allowed:,} are allowed "
                f"({'by the memory available' if allowed < max_histories else 'at most'}): take a smaller game"
            )
        if report is not None and len(records.kind) >= next_report:
            next_report = len(records.kind) + _COUNT_STEP
            report(name, len(records.kind), allowed)
        if isinstance(branch, Chance):
            first = records.open(node, CHANCE, branch, branch.probabilities)
            children = [(first + a, child, depth, *before) for a, child in enumerate(branch.children)]
        else:
            first = records.open(node, DECISION, branch, (1.0,) * count)
            infosets = players[branch.player]
            try:
                row = infosets.find(branch, before[branch.player])
            except ValueError as error:
                raise checks.refuse(node, str(error)) from None
            records.player[node], records.row[node] = branch.player, row
            slot, other = infosets.slot[row], before[1 - branch.player]
            if branch.player == 0:
                children = [(first + a, child, depth, slot + a, other) for a, child in enumerate(branch.children)]
            else:
                children = [(first + a, child, depth, other, slot + a) for a, child in enumerate(branch.children)]
        children.reverse()
        todo.extend(children)
    return _compiled(records, players)


def _compiled(records: _Records, players: tuple[_Infosets, _Infosets]) -> CompiledTree:
    """Return the compiled tree of the arrays in `records`; most are used without a copy."""
    player, row = np.frombuffer(records.player, np.int8), np.frombuffer(records.row, np.int32)
    slot = np.full(len(row), NO_SLOT, np.int32)
    for infosets in players:
        own = player == infosets.player
        slot[own] = np.array(infosets.slot, np.int32)[row[own]]
    arrays = TreeArrays(
        kind=np.frombuffer(records.kind, np.int8),
        player=player,
        block=player.copy(),
        count=np.frombuffer(records.count, np.int32),
        first=np.frombuffer(records.first, np.int32),
        slot=slot,
        row=row,
        fixed=np.frombuffer(records.fixed, np.float64),
        showdown=np.zeros(len(row)),
        probability=np.frombuffer(records.probability, np.float64),
        touched=np.ones(len(row), np.int8),
    )
    return CompiledTree(
        arrays,
        np.frombuffer(records.parent, np.int32),
        records.label,
        1,
        np.array([infosets.slots for infosets in players], np.int64),
        np.array([len(infosets.rows) for infosets in players], np.int64),
        (list(players[0].rows), list(players[1].rows)),
        action_names=records.named + [""] * (len(row) - len(records.named)) if records.named else None,
    )


def largest_payoff(tree: CompiledTree) -> float:
    """Return the largest absolute payoff of a tree's terminals in chips, or 1 if all are 0.

    Matrix and OpenSpiel games use it as `Game.pot_chips`, the scale for errors of a value.
    """
    return float(np.abs(tree.arrays.fixed).max()) or 1.0
