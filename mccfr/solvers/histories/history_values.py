"""Exact values and best responses of games whose tree holds every history.

One pass from the root adds each terminal's payoff, times the probability of chance and of fixed strategies, to the
responder's last action before it.  With perfect recall the responder's actions form a tree (sequence form, von Stengel
1996), so the best response follows from the last infosets upwards.  Each infoset takes its best action, summed over its
histories, and adds the value to the action that leads to it.

Each of N nodes is visited once, with 12·N bytes of scratch.  Nothing is approximated.
"""

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.compiled import CHANCE, TERMINAL

_NOBODY = -1
_NOT_SEEN = -1
_ALL_WELL = -1


@njit
def _book_payoffs(tree, sigma, responder, starts, above, booked, reach, last):
    """Add terminals' payoffs to the responder's last actions; return the node where recall fails, or -1.

    tree    TreeArrays with N nodes
    sigma   [2, S] float64  strategies by player and slot; the responder's is not read
    starts  [R+1] int64     first slot of each of the responder's rows, and the end of the last
    above   [R] int64       receives the responder's action before each row
    booked  [1+S] float64   receives payoffs to player 0 by action (0: none, else slot + 1)
    reach   [N] float64     scratch
    last    [N] int32       scratch
    """
    reach[0], last[0] = 1.0, 0
    for node in range(tree.kind.shape[0]):
        first, slot, behind = tree.first[node], tree.slot[node], last[node]
        kind, player = tree.kind[node], tree.player[node]
        if kind == TERMINAL:
            booked[behind] += reach[node] * tree.fixed[node]
            continue
        own = kind != CHANCE and player == responder
        if own:
            row = tree.row[node]
            if above[row] == _NOT_SEEN:
                above[row] = behind
            if above[row] != behind or behind > starts[row]:
                return node
        for a in range(tree.count[node]):
            child = first + a
            if own:
                last[child] = slot + a + 1
                reach[child] = reach[node]
            else:
                last[child] = behind
                reach[child] = reach[node] * (tree.probability[child] if kind == CHANCE else sigma[player, slot + a])
    return _ALL_WELL


@njit
def _best_total(starts, above, booked, sign, noted):
    """Return player 0's payoff when the responder takes the best action in each row.

    starts         [R+1] int64  first slot of each row, and the end of the last
    above, booked  as filled by `_book_payoffs`; `booked` is changed
    sign           1 if player 0 responds, -1 if player 1
    noted          [S]          receives 1 for the best action of each row, the first of equals, else 0
    """
    for row in range(starts.shape[0] - 2, -1, -1):
        best, chosen = -np.inf, starts[row]
        for slot in range(starts[row], starts[row + 1]):
            noted[slot] = 0.0
            if sign * booked[slot + 1] > best:
                best, chosen = sign * booked[slot + 1], slot
        noted[chosen] = 1.0
        booked[above[row]] += sign * best
    return booked[0]


def _by_player(game: Game, strategy: Strategy) -> npt.NDArray[np.float64]:
    """Return [2, S] float64 probabilities by player and slot, for the larger number of slots S.

    Raises `ValueError` for a game with cards beside its tree and for a strategy of another game.
    """
    if game.cards.dealt:
        raise ValueError(f"{game.name} deals cards beside its tree; only games with every history in the tree fit here")
    sigma = np.zeros((2, int(game.tree.row_slots.max(initial=0))))
    for player in range(2):
        given = strategy.probability[player]
        if given.shape != (1, game.tree.row_slots[player]):
            raise ValueError(
                f"player {player}'s strategy has the shape {given.shape}; {game.name} needs "
                f"(1, {game.tree.row_slots[player]})"
            )
        sigma[player, : given.shape[1]] = given[0]
    return sigma


def _booked(
    game: Game, strategy: Strategy, responder: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the responder's row starts [R+1], actions above each row [R] and payoffs by action [1+S]."""
    sigma, nodes = _by_player(game, strategy), len(game.tree.arrays.kind)
    starts = np.zeros(1, np.int64) if responder == _NOBODY else row_starts(game, responder)
    above = np.full(len(starts) - 1, _NOT_SEEN, np.int64)
    booked = np.zeros(1 + int(starts[-1]))
    reach, last = np.zeros(nodes), np.zeros(nodes, np.int32)
    failed = _book_payoffs(game.tree.arrays, sigma, responder, starts, above, booked, reach, last)
    if failed != _ALL_WELL:
        raise ValueError(
            f"player {responder} lacks perfect recall at node {failed} of {game.name}, or his rows are not numbered in "
            "order of first appearance: no best response is computed"
        )
    return starts, above, booked


def expected_value(game: Game, strategy: Strategy) -> float:
    """Return player 0's expected payoff in chips, without `offset_chips`, if both follow `strategy`.

    Raises `ValueError` for a game with cards beside its tree and for a strategy of another game.
    """
    return float(_booked(game, strategy, _NOBODY)[2][0])


def best_response_value(game: Game, strategy: Strategy, player: int) -> float:
    """Return `player`'s expected payoff in chips with a best response to the other's part of `strategy`.

    Raises `ValueError` for a game with cards beside its tree, for a strategy of another game, and if the player lacks
    perfect recall.
    """
    return best_response(game, strategy, player)[0]


def best_response(game: Game, strategy: Strategy, player: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the value of `best_response_value` and the best response [1, S]; raise the same errors."""
    if player not in (0, 1):
        raise ValueError(f"player = {player}: it must be 0 or 1")
    starts, above, booked = _booked(game, strategy, player)
    noted, sign = np.zeros(len(booked) - 1), 1.0 - 2.0 * player
    return sign * float(_best_total(starts, above, booked, sign, noted)), noted[None]
