"""Trees of whole histories: games that keep chance and hidden moves in the tree, compiled history by history.

A player's infosets are named by what he has seen.  The tree is accepted only if both players have perfect recall: all
histories of an infoset must come after the same infosets and actions of its owner.  Step by step, the last of them is
enough to compare.
"""

from array import array
from collections.abc import Callable, Sequence
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, NO_PLAYER, NO_SLOT, TERMINAL, CompiledTree, TreeArrays
from storage.space import available_memory_bytes

MAX_HISTORIES = 100_000_000
MAX_NAME_BYTES = 1 << 30  # games that print whole transcripts would fill the memory long before MAX_HISTORIES
_MEMORY_SHARE = 0.8  # of what is available: the rest is for the tables and for others
HISTORY_BYTES = 180
"""Memory that one history takes, at most: its record, its share of the infosets' names, a traversal's scratch."""


def most_histories(wanted: int = MAX_HISTORIES) -> int:
    """Histories that may be compiled: at most `wanted` and MAX_HISTORIES, and what 80 % of the free memory holds."""
    return min(wanted, MAX_HISTORIES, int(_MEMORY_SHARE * available_memory_bytes()) // HISTORY_BYTES)


class Decision(NamedTuple):
    """A history where a player acts: who, what names his infoset, and for each action its label and what follows.

    names  of actions, for people, where labels are numbers
    """

    player: int
    infoset: str
    labels: Sequence[str]
    children: Sequence[Any]
    names: Sequence[str] | None = None


class Chance(NamedTuple):
    """A history where chance acts: for each outcome its label, its probability and what follows; `names` as above."""

    labels: Sequence[str]
    probabilities: Sequence[float]
    children: Sequence[Any]
    names: Sequence[str] | None = None


Expansion = Decision | Chance | float
"""What a history turns out to be; a number is a terminal's payoff to player 0 in chips."""


class _Infosets:
    """One player's infosets: names with their rows, and by row the first slot, the labels and what came before."""

    def __init__(self, player: int, game: str) -> None:
        self.player, self.game = player, game
        self.rows: dict[str, int] = {}
        self.slot, self.before = array("i"), array("i")
        self.labels: list[tuple[str, ...]] = []
        self.shared_labels: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.slots = self.name_bytes = 0

    def find(self, decision: Decision, before: int) -> int:
        """Row of a history's infoset; `before` is the slot of the player's last action, NO_SLOT for none.

        Raises `ValueError` where the history does not fit with the others of its infoset.
        """
        name, labels = decision.infoset, tuple(decision.labels)
        row = self.rows.get(name)
        if row is None:
            return self._add(name, labels, before)
        if self.before[row] != before:
            raise ValueError(
                f"{self.game} is not of perfect recall: player {self.player} forgets what he did or saw before his "
                f"infoset {name!r}"
            )
        if self.labels[row] != labels:
            raise ValueError(
                f"{self.game}: infoset {name!r} of player {self.player} has the actions {' '.join(self.labels[row])} "
                f"in one history and {' '.join(labels)} in another; they must be the same"
            )
        return row

    def _add(self, name: str, labels: tuple[str, ...], before: int) -> int:
        self.name_bytes += len(name)
        if self.name_bytes > MAX_NAME_BYTES:
            raise ValueError(
                f"{self.game}: the names of player {self.player}'s infosets take more than {MAX_NAME_BYTES:,} bytes, "
                "the most allowed: take a smaller game"
            )
        row = self.rows[name] = len(self.rows)
        self.slot.append(self.slots)
        self.before.append(before)
        self.labels.append(self.shared_labels.setdefault(labels, labels))
        self.slots += len(labels)
        return row


class _Records:
    """Columns of the general records while the tree grows; a new record is a terminal until it is expanded."""

    def __init__(self) -> None:
        self.kind, self.player = array("b"), array("b")
        self.count, self.first, self.row, self.parent = array("i"), array("i"), array("i"), array("i")
        self.fixed, self.probability = array("d"), array("d")
        self.label: list[str] = []
        self.named: list[str] = []  # as far as there are names

    def add(self, parent: int, labels: Sequence[str], probabilities: Sequence[float]) -> int:
        """Append siblings; returns the first one's number."""
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

    def open(self, node: int, kind: int, found: Decision | Chance, probabilities: Sequence[float]) -> int:
        """Give a node its children; returns the first one's number."""
        first = self.add(node, found.labels, probabilities)
        self.kind[node], self.count[node], self.first[node] = kind, len(found.labels), first
        if found.names is not None:
            self.named.extend([""] * (first - len(self.named)))
            self.named.extend(map(intern, found.names))
        return first


def build_history_tree(
    root: Any, expand: Callable[[Any], Expansion], *, max_histories: int = MAX_HISTORIES, name: str = "the game"
) -> CompiledTree:
    """Compile the game that begins at `root`: blocks 0 and 1 are the players, every history touches one node.

    root           any description of a history that `expand` understands
    expand         what a history is: a decision, chance, or a terminal's payoff to player 0 in chips
    max_histories  chance and terminals included; counting stops there
    name           of the game, for messages

    Raises `ValueError` beyond `max_histories` (and what `most_histories` makes of it) or MAX_NAME_BYTES of infoset
    names, where a player lacks perfect recall, where the actions of an infoset differ, and where a decision or a chance
    node has no children.
    """
    allowed = most_histories(max_histories)
    records = _Records()
    players = (_Infosets(0, name), _Infosets(1, name))
    records.add(NO_PARENT, ("",), (1.0,))
    todo = [(0, root, NO_SLOT, NO_SLOT)]
    while todo:
        node, history, *before = todo.pop()
        found = expand(history)
        if not isinstance(found, tuple):
            records.fixed[node] = found
            continue
        count = len(found.labels)
        if not count:
            raise ValueError(f"{name} has a history without actions or outcomes that is not terminal")
        if len(records.kind) + count > allowed:
            raise ValueError(
                f"{name} has at least {len(records.kind) + count:,} histories; {allowed:,} are allowed "
                f"({'by the memory available' if allowed < max_histories else 'at most'}): take a smaller game"
            )
        if isinstance(found, Chance):
            first = records.open(node, CHANCE, found, found.probabilities)
            children = [(first + a, child, *before) for a, child in enumerate(found.children)]
        else:
            first = records.open(node, DECISION, found, (1.0,) * count)
            infosets = players[found.player]
            row = infosets.find(found, before[found.player])
            records.player[node], records.row[node] = found.player, row
            slot, other = infosets.slot[row], before[1 - found.player]
            if found.player == 0:
                children = [(first + a, child, slot + a, other) for a, child in enumerate(found.children)]
            else:
                children = [(first + a, child, other, slot + a) for a, child in enumerate(found.children)]
        children.reverse()
        todo.extend(children)
    return _compiled(records, players)


def _compiled(records: _Records, players: tuple[_Infosets, _Infosets]) -> CompiledTree:
    """Freeze the records; columns that grew are taken over without a copy."""
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
    """Largest payoff of either player in chips, 1 where all are 0: the scale on which errors of a value are judged."""
    return float(np.abs(tree.arrays.fixed).max()) or 1.0
