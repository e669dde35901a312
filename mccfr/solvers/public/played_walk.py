"""Plays two policies against each other on one full board; both ranges go down the betting tree.

A board's result is the sum over terminals and pairs of hands of both reaches times chips.  So no values go up the tree.
A line is the actions so far on a street; lines that a player never takes are skipped.  A fold and a call after the same
line meet the same range of the other player, so they are valued as one job.  LANES jobs are valued together
(`pair_values`).  Hands are in order of strength.

If the players have different betting trees, one bet may lead to several nodes with probabilities
(`PlayedRows.factor`).  The nodes are the bets as which the other player understands a bet that its tree lacks.

A street tree is the betting of one street after one earlier line; its nodes are called members.  Street trees are
nested by an explicit stack.  Scratch holds one street tree for each street, and on the last street a group of small
ones.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit, part_njit
from mccfr.solvers.public.terminals.board_values import LANES
from mccfr.solvers.public.terminals.pair_values import (
    PAIRS,
    HandLists,
    PairLanes,
    gather_shares,
    list_hands,
    new_hand_lists,
    new_pair_lanes,
    take_shares,
    weigh_lanes,
)
from mccfr.solvers.public.terminals.range_values import NOWHERE
from mccfr.tables.row_tables import RowTables, gather_rows
from mccfr.trees.street_trees import AT_DECISION, AT_EXIT, AT_SHOWDOWN, StreetTrees

_GROUP_MEMBERS = 128  # members of last-street trees walked together: they fill the lanes and fit the cache
_GROUP_TREES = 32


class PlayedRows(NamedTuple):
    """Policies of both players on U street trees with M nodes in all.

    A street tree is the betting of one street after one earlier sequence of actions.  W is the most slots of a player
    in a street tree; a slot is an action of one of its decisions.  n is the number of hands.

    tables       RowTables of all blocks (street and player): both players' policies
    first, stop  [2, U] int64       rows first to stop-1 of a player's block are its decisions in a street tree
    at           [M] int64          row of `sigma` with the action that leads to a node; 0 at the roots of street trees
    factor       [M] float64        probability that the other player understands that action as the one into the node;
                                    1 if both have the same betting tree
    sigma        [2, W, n] float64  scratch: probabilities of each player's actions in the current street tree, by
                                    bucket on the board
    """

    tables: RowTables
    first: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    factor: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.float64]


class PairJobs(NamedTuple):
    """Terminals grouped into J jobs: a fold and a showdown after one line that meet the same range.

    A line is the actions so far on a street; the actor is the player who acted last.  LANES jobs are valued at a time,
    one in each lane of a vector.  Two neighbouring lanes form a pair, whose jobs have the same way: an index of both
    players' ranges at the start of the street.

    count   [2] int64        number of jobs of each actor
    way     [2, J] int64     way of each job, by actor
    source  [2, J] int64     row in `PlayScratch.shares` of the other player's line
    behind  [2, 2, J] int64  by actor: rows in `shares` of its line with the call (showdown) and with the fold; an
                             all-zero row if there is none
    """

    count: npt.NDArray[np.int64]  # type: ignore[assignment]  # hides the tuple's own method
    way: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    behind: npt.NDArray[np.int64]


class PlayScratch(NamedTuple):
    """Scratch arrays for a walk: N nodes of street trees, n hands, S streets, R ways.

    A street tree is the betting of one street after one earlier sequence of actions; a line is the actions in it so
    far.  There is room for one street tree of each street, and for a group of small ones on the last.  A way is the
    index of both players' ranges at the start of a street tree in progress: one for each street, and those of the
    group.

    member_first  [S] int64          first row of a street in arrays of N rows
    tree          [S] int64          stack: street tree of each street
    exit          [S] int64          node of that tree at which the search for the next exit to a later street continues
    reach         [2R, n+1] float64  player p's range at the start of way r, in row 2r + p; 0 after the last hand
    range_of      [2, N] int64       row in `shares` of each player's line at a node; NOWHERE: never reached
    shares        [N+2, n] float64   by bucket, the share of the street's range that takes a line, times the chips at a
                                     terminal; the row of a node is for the action that leads to it; the last two rows
                                     are all 1 and all 0
    jobs          PairJobs           terminals
    hands         HandLists          hands in order of strength
    lanes         PairLanes          lines side by side, for terminals
    """

    member_first: npt.NDArray[np.int64]
    tree: npt.NDArray[np.int64]
    exit: npt.NDArray[np.int64]
    reach: npt.NDArray[np.float64]
    range_of: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    jobs: PairJobs
    hands: HandLists
    lanes: PairLanes


def new_play_scratch(trees: StreetTrees, hands: int, cards: int) -> PlayScratch:
    """Return scratch arrays for boards of at most `hands` hands and a deck of `cards` cards.

    trees  StreetTrees of the betting tree that is walked
    """
    room = trees.most[0].copy()
    room[-1] = max(room[-1], _GROUP_MEMBERS)
    streets, members = len(room), int(room.sum())
    jobs = PAIRS * members + LANES
    shares = np.zeros((members + 2, hands))
    shares[-2] = 1
    return PlayScratch(
        np.cumsum(room) - room,
        np.zeros(streets, np.int64),
        np.zeros(streets, np.int64),
        np.zeros((2 * (streets + _GROUP_TREES), hands + 1)),
        np.zeros((2, members), np.int64),
        shares,
        PairJobs(
            np.zeros(2, np.int64),
            np.zeros((2, jobs), np.int64),
            np.zeros((2, jobs), np.int64),
            np.zeros((2, 2, jobs), np.int64),
        ),
        new_hand_lists(streets, hands),
        new_pair_lanes(hands, cards),
    )


# --- terminals ---


@part_njit
def _take_jobs(scratch, player, start):
    """Load up to LANES jobs of a player, from number `start` on, into `scratch.lanes`.

    A job is the fold and the showdown after one line of actions.  Each lane of a vector values one job.  Returns
    whether any of them has a showdown.

    scratch  PlayScratch with the jobs
    player   the player who acted last in these jobs
    """
    none, rows, jobs, showdown = scratch.shares.shape[0] - 1, scratch.lanes.rows, scratch.jobs, False
    last = jobs.count[player] - 1
    for lane in range(LANES):
        job, used = min(start + lane, last), start + lane <= last
        rows[0, lane] = jobs.source[player, job] if used else none
        for kind in range(2):
            rows[1 + kind, lane] = jobs.behind[player, kind, job] if used else none
        showdown |= rows[1, lane] != none
        if lane % PAIRS == 0:
            scratch.lanes.ways[lane // PAIRS] = jobs.way[player, job]
    return showdown


@part_njit
def _settle(board, scratch, street):
    """Return player 0's chips at the terminals of all jobs, over pairs of hands; clear the jobs.

    A job is the fold and the showdown after one line of actions.  A pair of hands counts times both players' weights.

    board    SampledBoard in order of strength
    scratch  PlayScratch with the jobs
    street   street of the terminals
    """
    lanes, count, won = scratch.lanes, scratch.jobs.count, 0.0
    for player in range(2):
        counts = board.rows[street, 1 - player], board.rows[street, player]
        for start in range(0, count[player], LANES):
            showdown = _take_jobs(scratch, player, start)
            gather_shares(scratch.shares, counts, lanes)
            weigh_lanes(scratch.hands, street, np.int64(player), showdown, scratch.reach, lanes)
            for lane in range(LANES):
                won += lanes.won[lane]
        count[player] = 0
    return won


@part_njit
def _scale(line, factor, count):
    """Multiply the first `count` cells of the array `line` by a factor, in place."""
    for k in range(count):
        line[k] *= factor


@part_njit
def _new_job(scratch, player, way, source):
    """Append a job without terminals for a player, and return its number.

    A job is the fold and the showdown after one line of actions.  Two neighbouring jobs are valued as a pair.

    player  the player who acted last
    way     index of both players' ranges at the start of the street
    source  row in `shares` of the other player's line

    An empty job comes before it if the other job of its pair would have another way.
    """
    none, jobs, job = scratch.shares.shape[0] - 1, scratch.jobs, scratch.jobs.count[player]
    while True:
        own = job % PAIRS == 0 or jobs.way[player, job - 1] == way
        jobs.way[player, job] = way if own else jobs.way[player, job - 1]
        jobs.source[player, job] = source if own else none
        for kind in range(2):
            jobs.behind[player, kind, job] = none
        job += 1
        if own:
            jobs.count[player] = job
            return job - 1


@part_njit
def _add_job(board, scratch, street, way, kind, m, chips):
    """Add the terminal at row `m` of scratch to a job, and multiply its row in `shares` by ±`chips`.

    A job is the fold and the showdown after one line of actions.  It belongs to the player who acted last.

    board    SampledBoard in order of strength
    scratch  PlayScratch, changed in place
    street   street of the terminal
    way      index of both players' ranges at the start of the street
    kind     0: showdown, where player 0 can win `chips`; 1: fold, where player 0 gets `chips`

    The sign is - at a showdown if player 1 acted last, else +.
    """
    none, range_of, line, jobs = scratch.shares.shape[0] - 1, scratch.range_of, scratch.shares[m], scratch.jobs
    player = np.int64(range_of[1, m] == m)  # the actor is the player whose line has the member's own row
    source, job = range_of[1 - player, m], jobs.count[player] - 1
    listed = job >= 0 and jobs.source[player, job] == source and jobs.way[player, job] == way
    if not listed or jobs.behind[player, kind, job] != none:
        job = _new_job(scratch, player, way, source)
    jobs.behind[player, kind, job] = m
    _scale(line, -chips if player and not kind else chips, board.rows[street, player])


# --- a street tree ---


@part_njit
def _share(before, sigma, factor, count, out):
    """Multiply the shares of a range by an action's probabilities; return whether any is positive.

    before  [n] by bucket: share of the range that takes the line of actions before this one
    sigma   [n] by bucket: probability of the action
    factor  further factor: probability that the other player understands the action as this one
    count   number of buckets
    out     [n] receives before · sigma · factor
    """
    alive = False
    for k in range(count):
        out[k] = before[k] * sigma[k] * factor
        alive |= out[k] > 0
    return alive


@part_njit
def _descend(trees, played, board, scratch, tree, base, way):
    """Carry both players' range shares down a street tree; list its terminals for valuation.

    trees    StreetTrees
    played   PlayedRows: both policies
    board    SampledBoard in order of strength
    scratch  PlayScratch, changed in place
    tree     number of the street tree
    base     row of the tree's root in scratch arrays
    way      index of both players' ranges at the root
    """
    first, range_of, shares = trees.first[tree], scratch.range_of, scratch.shares
    street = np.int64(trees.rows.block[first]) // 2
    for player in range(2):
        span = (played.first[player, tree], played.stop[player, tree])
        buckets = board.bucket[street, player, : board.rows[street, player]]
        gather_rows(played.tables, 2 * street + player, span, buckets, played.sigma[player])
        range_of[player, base] = shares.shape[0] - 2
    for member in range(first, trees.first[tree + 1]):
        m, kind = base + member - first, trees.kind[member]
        if kind == AT_DECISION:
            player, child = np.int64(trees.player[member]), trees.child[member]
            own, others, count = range_of[player, m], range_of[1 - player, m], board.rows[street, player]
            for c in range(child, child + trees.actions[member]):
                alive = False
                if own != NOWHERE:
                    sigma, factor = played.sigma[player, played.at[first + c]], played.factor[first + c]
                    alive = _share(shares[own], sigma, factor, count, shares[base + c])
                range_of[player, base + c] = base + c if alive else NOWHERE
                range_of[1 - player, base + c] = others if alive else NOWHERE
        elif kind != AT_EXIT and range_of[0, m] != NOWHERE:
            _add_job(board, scratch, street, way, np.int64(kind != AT_SHOWDOWN), m, trees.chips[member, 0])


@part_njit
def _enter(scratch, street, way, m, below):
    """Set both players' ranges after an exit, a node that leads to the next street.

    street  street of the exit
    way     index of both players' ranges at the start of that street
    m       row of the exit in scratch arrays
    below   index at which the ranges on the next street are stored

    Returns False if the exit is never reached or a range becomes empty.
    """
    reach, hands = scratch.reach, scratch.hands
    if scratch.range_of[0, m] == NOWHERE:
        return False
    alive = True
    for player in range(2):
        count, out = hands.count[player], reach[2 * below + player]
        line = scratch.shares[scratch.range_of[player, m]]
        alive &= take_shares(hands.place[street, player], count, reach[2 * way + player], line, out)
        out[count] = 0.0
    return alive


@part_njit
def _last_street(trees, played, board, scratch, level):
    """Walk the next last-street trees below a tree, as many as scratch holds; return player 0's chips.

    The chips are summed over weighted pairs of hands.  `scratch.exit[level]` says where the next call continues.

    level  street before the last; the tree is `scratch.tree[level]`
    """
    tree, last = scratch.tree[level], level + 1
    upper, base = scratch.member_first[level] - trees.first[tree], scratch.member_first[last]
    member, way = scratch.exit[level], last
    while member < trees.first[tree + 1] and way < last + _GROUP_TREES:
        if trees.kind[member] == AT_EXIT:
            below = np.int64(trees.below[member])
            size = trees.first[below + 1] - trees.first[below]
            if base + size > scratch.range_of.shape[1]:
                break
            if _enter(scratch, level, level, upper + member, way):
                _descend(trees, played, board, scratch, below, base, way)
                base += size
                way += 1
        member += 1
    scratch.exit[level] = member
    return _settle(board, scratch, last)


@part_njit
def _begin(board, scratch):
    """Set both players' ranges at the root; return the total weight of pairs of disjoint hands.

    A pair's weight is the product of both hands' weights.

    board    SampledBoard in order of strength
    scratch  PlayScratch, changed in place
    """
    reach, lanes, street = scratch.reach, scratch.lanes, np.int64(0)
    everything, none = scratch.shares.shape[0] - 2, scratch.shares.shape[0] - 1
    list_hands(board, scratch.hands)
    for player in range(2):
        count = board.count[player]
        for k in range(count):
            reach[player, k] = board.weight[player, k]
        reach[player, count] = 0.0
    lanes.rows[:] = none
    lanes.rows[0, 0], lanes.rows[2, 0] = everything, everything
    lanes.ways[:] = 0
    gather_shares(scratch.shares, (board.rows[street, 1], board.rows[street, 0]), lanes)
    weigh_lanes(scratch.hands, street, np.int64(0), False, reach, lanes)
    scratch.jobs.count[:] = 0
    return lanes.won[0]


@njit
def played_walk(trees, played, board, scratch):
    """Return (player 0's chips, total weight) on a board, sums over all weighted pairs of disjoint hands.

    trees    StreetTrees
    played   PlayedRows
    board    SampledBoard in order of strength, float64
    scratch  PlayScratch, changed in place
    """
    level, entering, won = np.int64(0), True, 0.0
    member_first, tree, exits = scratch.member_first, scratch.tree, scratch.exit
    weight = _begin(board, scratch)
    tree[0] = 0
    while True:
        first, stop = trees.first[tree[level]], trees.first[tree[level] + 1]
        if entering:
            _descend(trees, played, board, scratch, tree[level], member_first[level], level)
            won += _settle(board, scratch, level)
            exits[level] = first
            entering = False
        if level + 2 == tree.shape[0] and exits[level] < stop:
            won += _last_street(trees, played, board, scratch, level)
            continue
        member = exits[level]
        while member < stop and trees.kind[member] != AT_EXIT:
            member += 1
        exits[level] = member + 1
        if member < stop:
            if _enter(scratch, level, level, member_first[level] + member - first, level + 1):
                entering = True
                level += 1
                tree[level] = trees.below[member]
        elif level == 0:
            return won, weight
        else:
            level -= 1
