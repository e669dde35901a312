"""The sequence form of a game whose tree holds every history (von Stengel 1996).

A row is an infoset, its owner the player who acts there; a slot is one action of a row.  With perfect recall a player's
rows and actions form a tree: each row comes after one action of its owner, or after none.  Rows are numbered such that
the slots of a row have larger numbers than the slot of the action before it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.tables.strategy import row_starts
from mccfr.trees.compiled import CHANCE, NO_SLOT, TERMINAL

_NOT_SEEN = -2
_ALL_WELL = -1


class Sequences(NamedTuple):
    """One player's rows (infosets) and slots (actions of all rows): R rows, S slots.

    starts  [R+1] int64  first slot of each row, and the end of the last
    above   [R] int64    slot of the player's last action before each row; NO_SLOT: no action is before it
    row_of  [S] int64    row of each slot
    """

    starts: npt.NDArray[np.int64]
    above: npt.NDArray[np.int64]
    row_of: npt.NDArray[np.int64]


class SequenceForm(NamedTuple):
    """The P players' rows and slots, and a summary of the path to each of N nodes.

    players  Sequences of each player
    last     [P, N] int32  slot of each player's last action before a node, or NO_SLOT
    chance   [N] float64   product of the probabilities of chance on the path, and of given strategies if there are any
    """

    players: tuple[Sequences, ...]
    last: npt.NDArray[np.int32]
    chance: npt.NDArray[np.float64]


@njit
def _follow(tree, sigma, checked, starts, above, last, reach):
    """Fill `above`, `last` and `reach`; return a node where recall or numbering fails, or -1.

    A row is an infoset, a slot one action of it.

    sigma    [P, S] float64     strategies by player and slot
    checked  [P] bool           players whose recall and numbering of rows are checked
    starts   P × [R_p+1] int64  first slot of each row, and the end of the last
    above    P × [R_p] int64    receives the slot of the owner's last action before each row; must hold -2
    last     [P, N] int32       receives the slot of each player's last action before a node; NO_SLOT at the root
    reach    [N] float64        receives the probability of each node by chance and `sigma`
    """
    reach[0] = 1.0
    for node in range(tree.kind.shape[0]):
        kind, player, first, slot = tree.kind[node], tree.player[node], tree.first[node], tree.slot[node]
        if kind == TERMINAL:
            continue
        own = kind != CHANCE
        if own:
            row, last_slot = tree.row[node], last[player, node]
            if above[player][row] == _NOT_SEEN:
                above[player][row] = last_slot
            if checked[player] and (above[player][row] != last_slot or last_slot >= starts[player][row]):
                return node
        for a in range(tree.count[node]):
            child = first + a
            for each in range(last.shape[0]):
                last[each, child] = last[each, node]
            reach[child] = reach[node] * (sigma[player, slot + a] if own else tree.probability[child])
            if own:
                last[player, child] = slot + a
    return _ALL_WELL


def check_histories(game: Game) -> None:
    """Raise `ValueError` for a game that deals cards outside its tree."""
    if game.cards.dealt:
        raise ValueError(
            f"{game.name} deals cards outside of its tree; only games with every history in the tree fit: expand it"
        )


def sequence_form(
    game: Game, sigma: npt.NDArray[np.float64] | None = None, checked: Sequence[bool] | None = None
) -> SequenceForm:
    """Return the sequence form of a game; a slot is one action of an infoset.

    sigma    [P, >= S] strategies by player and slot, whose probabilities count in `chance`; None: chance alone
    checked  [P] whether to check each player's recall; None: all.  For others `above` in `players` may be wrong

    Raises `ValueError` for a game that deals cards outside its tree, and if a checked player lacks perfect recall.
    Also raises it if the slots of a checked player's infoset do not come after the slot of the action before the
    infoset.
    """
    check_histories(game)
    players = game.tree.players
    starts = [row_starts(game, player) for player in range(players)]
    above = tuple(np.full(len(first) - 1, _NOT_SEEN, np.int64) for first in starts)
    nodes = len(game.tree.arrays.kind)
    last, chance = np.full((players, nodes), NO_SLOT, np.int32), np.zeros(nodes)
    probabilities = np.ones((players, int(game.tree.row_slots.max()))) if sigma is None else sigma
    seen = np.ones(players, np.bool_) if checked is None else np.array(checked)
    failed = _follow(game.tree.arrays, probabilities, seen, tuple(starts), above, last, chance)
    if failed != _ALL_WELL:
        raise ValueError(
            f"player {game.tree.arrays.player[failed]} lacks perfect recall at node {failed} of {game.name}, or its "
            "rows are not numbered in order of first appearance: no strategy or best response is computed"
        )
    sequences = tuple(
        Sequences(first, rows, np.repeat(np.arange(len(rows)), np.diff(first)))
        for first, rows in zip(starts, above, strict=True)
    )
    return SequenceForm(sequences, last, chance)
