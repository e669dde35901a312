"""Payoffs and sampling probabilities of three and more players on betting trees, for kernels.

The number of players is the length of a tuple, so it is a constant in compiled code.  With two players `SeatArrays` is
None, and no code for more is compiled.  Chips of a pot are shared evenly by the best hands among its contenders.  Such
a share may be a fraction of a chip.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit
from mccfr.trees.compiled import CompiledTree, pack_pots


class SeatArrays(NamedTuple):
    """Arrays to pay pots and to track sampling probabilities of P players, three or more.

    K pots, N nodes of the tree, C rows of probabilities.  Sets of players are numbers with player i as bit i.

    players  (0, .., P-1)     numbers of the players
    pots     [K] PACKED_POT   pots of the tree's terminals
    first    [N+1] int32      first pot of each node (`Pots.first`)
    best     [2^P] int64      for each set of players: those with the best hand at the deal's showdown, as a set
    top      [2^P] int32      for each set of players: strength of that hand
    winners  [2^P] int64      for each set of players: number of those who have it
    share    [2^P] float64    for each set of contenders: the part of their pot that the traverser wins, 0 to 1
    sampled  [C, P] float64   probability of each player's sampled actions up to a decision; row 0 is the root's
    row      [C] int32        row of `sampled` of each decision in a worklist: before it, then after its sampled action
    turns    [2] int64        first player to traverse with each deal, and one past the last: 0 and P, unless only one
                              player is trained to respond
    """

    players: tuple[int, ...]
    pots: npt.NDArray[np.void]
    first: npt.NDArray[np.int32]
    best: npt.NDArray[np.int64]
    top: npt.NDArray[np.int32]
    winners: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]
    sampled: npt.NDArray[np.float64]
    row: npt.NDArray[np.int32]
    turns: npt.NDArray[np.int64]


def new_seats(tree: CompiledTree, rows: int) -> SeatArrays | None:
    """Return a SeatArrays for the pots of a betting tree, or None for a tree without pots.

    A tree of two players has no pots.

    rows  number of rows of `sampled`
    """
    if tree.pots is None:
        return None
    players, sets = tree.players, 1 << tree.players
    best, winners = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
    sampled = np.ones((rows, players))
    return SeatArrays(
        tuple(range(players)),
        pack_pots(tree),
        tree.pots.first,
        best,
        np.zeros(sets, np.int32),
        winners,
        np.zeros(sets),
        sampled,
        np.zeros(rows, np.int32),
        np.array([0, players]),
    )


@inline_njit
def begin_deal(seats, strengths, deal):
    """Find the best hands of each set of players in deal number `deal` and write them to `seats`.

    seats      SeatArrays, changed in place; None for a tree without pots, and nothing is done
    strengths  [deals, P] int32 showdown strength of each player's hand, higher wins

    Returns the first player to traverse with the deal, and one past the last: 0 and 2 if `seats` is None.
    """
    if seats is None:
        return 0, 2
    best, top, winners = seats.best, seats.top, seats.winners
    for player in range(len(seats.players)):
        own, strength = 1 << player, strengths[deal, player]
        best[own], top[own], winners[own] = own, strength, 1
        for others in range(1, own):
            both = own | others
            best[both], top[both], winners[both] = best[others], top[others], winners[others]
            if strength > top[others]:
                best[both], top[both], winners[both] = own, strength, 1
            elif strength == top[others]:
                best[both], winners[both] = best[others] | own, winners[others] + 1
    return seats.turns[0], seats.turns[1]


@inline_njit
def begin_traversal(seats, traverser):
    """Write the part of a pot that a traverser wins, by its set of contenders, to `seats.share`.

    seats  SeatArrays, changed in place; None for a tree without pots, and nothing is written

    The root gets row 0 of `seats.sampled`.  Returns 1 or -1: the factor that turns player 0's chips into the
    traverser's, of two players.
    """
    if seats is not None:
        for contenders in range(1, seats.best.shape[0]):
            seats.share[contenders] = (seats.best[contenders] >> traverser & 1) / seats.winners[contenders]
        seats.row[0] = 0
    return 1.0 - 2.0 * traverser


@inline_njit
def won_chips(seats, pot, traverser):
    """Return the traverser's net chips at a terminal of three and more players: won less paid.

    seats  SeatArrays, after `begin_traversal`
    pot    index in `seats.pots` of the terminal's main pot; its side pots follow
    """
    number = np.uint64(pot)
    main = seats.pots[number]
    chips = main.chips * seats.share[np.uint64(main.contenders)] - main.paid[np.uint64(traverser)]
    for _ in range(main.others):
        number += np.uint64(1)
        chips += seats.pots[number].chips * seats.share[np.uint64(seats.pots[number].contenders)]
    return chips


@inline_njit
def others_sampled(seats, position, player):
    """Return the probability of all players' sampled actions but those of `player`, up to a decision.

    seats     SeatArrays; None for two players, for whom it is 1
    position  index of the decision in the worklist, the list of decisions that a traversal visits
    player    player to act at the decision
    """
    if seats is None:
        return 1.0
    row, probability = np.uint64(seats.row[position]), 1.0
    for each in range(len(seats.players)):
        if each != player:
            probability *= seats.sampled[row, np.uint64(each)]
    return probability


@inline_njit
def add_sampled(seats, rows, position, player, probability):
    """Add a row to `seats.sampled`: a decision's row times the probability of its sampled action.

    seats        SeatArrays, changed in place; None for two players, for whom nothing is written
    rows         number of rows after row 0 so far
    position     index of the decision in the worklist of a traversal; its `row` becomes the new one
    probability  of the sampled action of `player`

    Only the cell of `player` is multiplied.  Returns the number of rows after row 0 now; 0 with two players.
    """
    if seats is None:
        return 0
    row, new = np.uint64(seats.row[position]), np.uint64(rows + 1)
    for each in range(len(seats.players)):
        before = seats.sampled[row, np.uint64(each)]
        seats.sampled[new, np.uint64(each)] = before * np.float64(probability) if each == player else before
    seats.row[position] = rows + 1
    return rows + 1


@inline_njit
def inherit(seats, position, above):
    """Give a decision the row of `seats.sampled` of its parent.

    position  index of the decision in the worklist, the list of decisions that a traversal visits
    above     index of its parent there

    Nothing is done with two players, for whom `seats` is None.
    """
    if seats is not None:
        seats.row[position] = seats.row[above]
