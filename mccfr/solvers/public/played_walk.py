"""Two policies played against each other on one full board: both ranges go down the betting tree, and nothing comes up.

A terminal is worth the sum over pairs of hands of both players' reach times the chips, so what is won on the board is a
sum over terminals.  Where a player folds or calls, both ends meet the same range of the other: one job, whose range is
valued LANES at a time (`range_lanes`) and weighed with the ranges behind the fold and behind the call.  Lines that one
of the players never takes are dropped.

Hands lie in order of strength (`sampled_board.by_strength`), as terminals need them.

A member may be one of several that an action leads to, with probabilities (`PlayedRows.factor`): how the other player
takes it, where he has another tree.

Street trees nest by an explicit stack; scratch is one street tree a street, and a group of small ones on the last.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import njit, part_njit
from mccfr.solvers.public.met_lanes import MetLanes, gather_lanes, new_met_lanes, pass_range, weigh_lanes
from mccfr.solvers.public.range_lanes import LANES
from mccfr.tables.row_tables import RowTables, gather_rows
from mccfr.trees.streets import AT_DECISION, AT_EXIT, AT_SHOWDOWN, StreetTrees

NOWHERE = -1
_GROUP_MEMBERS = 128  # of small last-street trees walked together: enough to fill the lanes, few enough for the cache


class PlayedRows(NamedTuple):
    """Policies of both players, to be played.  U street trees of M members, W slots of a player in one, n hands.

    tables       RowTables of all blocks: each player's are those of his policy
    first, stop  [2, U] int64     rows first .. stop-1 of a player's block are those of a street tree
    at           [M] int64        row of `sigma` that leads to a member; 0 at the roots of street trees
    factor       [M] float64      what that is multiplied with
    sigma        [2, W, n] float64  scratch: each player's rows of the street tree under way, by bucket on the board
    """

    tables: RowTables
    first: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    factor: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.float64]


class PlayScratch(NamedTuple):
    """Room for a walk.  N members, n hands, S streets.

    Of each street but the last there is room for one street tree, of the last for a group of small ones.

    member_first  [S] int64       first row of a street in what has N rows
    tree          [S] int64       the stack: street tree of each street
    exit          [S] int64       member of that tree where the search for the next exit goes on
    range_of      [2, N] int64    row in `reach` of each player's range at a member; NOWHERE: never reached
    reach         [N+3, n] float64  ranges: that behind the action that leads to a member at its row; then the players'
                                  own, and one of zeros
    jobs          [2] int64       jobs at terminals where a player acts
    source        [2, N] int64    of each, the row of the other's range
    behind        [2, 2, N] int64 and of the actor's ranges behind a fold and behind a showdown: zeros where none is
    chips         [2, 2, N] float64  what player 0 gets at the fold, and wins at the showdown times who he is: 1, -1
    rows          [LANES] int64   rows under way
    """

    member_first: npt.NDArray[np.int64]
    tree: npt.NDArray[np.int64]
    exit: npt.NDArray[np.int64]
    range_of: npt.NDArray[np.int64]
    reach: npt.NDArray[np.float64]
    jobs: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    behind: npt.NDArray[np.int64]
    chips: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    lanes: MetLanes


def new_play_scratch(trees: StreetTrees, hands: int, cards: int) -> PlayScratch:
    """Scratch for boards of at most `hands` hands and a deck of `cards`."""
    room = trees.members.copy()
    room[-1] = max(room[-1], _GROUP_MEMBERS)
    streets, members = len(room), int(room.sum())
    return PlayScratch(
        np.cumsum(room) - room,
        np.zeros(streets, np.int64),
        np.zeros(streets, np.int64),
        np.zeros((2, members), np.int64),
        np.zeros((members + 3, hands)),
        np.zeros(2, np.int64),
        np.zeros((2, members), np.int64),
        np.zeros((2, 2, members), np.int64),
        np.zeros((2, 2, members)),
        np.zeros(LANES, np.int64),
        new_met_lanes(hands, cards),
    )


# --- terminals ---


@part_njit
def _put_rows(source, start, used, none, rows):
    """rows[lane] = source[start + lane] of the lanes that are used; `none` of the others."""
    for lane in range(LANES):
        rows[lane] = source[start + lane] if lane < used else none


@part_njit
def _settle(board, scratch):
    """What player 0 gets at the terminals of all jobs, LANES ranges at a time; the jobs are done then."""
    reach, rows, lanes, won = scratch.reach, scratch.rows, scratch.lanes, 0.0
    none = reach.shape[0] - 1
    for player in range(2):
        jobs = scratch.jobs[player]
        for start in range(0, jobs, LANES):
            used, showdown = min(jobs - start, LANES), False
            for job in range(start, start + used):
                showdown = showdown or scratch.behind[player, 1, job] != none
            _put_rows(scratch.source[player], start, used, none, rows)
            gather_lanes(reach, rows, board.count[1 - player], lanes.reach)
            for kind in range(1 + showdown):
                _put_rows(scratch.behind[player, kind], start, used, none, rows)
                gather_lanes(reach, rows, board.count[player], lanes.own[kind])
            weigh_lanes(board, np.int64(player), showdown, lanes)
            for kind in range(1 + showdown):
                for lane in range(used):
                    won += scratch.chips[player, kind, start + lane] * lanes.sums[kind, lane]
        scratch.jobs[player] = 0
    return won


@part_njit
def _add_job(scratch, kind, m, chips):
    """A terminal at row `m`, where player 0 gets `chips`: a fold (kind 0), or wins them at a showdown (1)."""
    none, range_of, jobs = scratch.reach.shape[0] - 1, scratch.range_of, scratch.jobs
    player = np.int64(range_of[1, m] == m)  # who acted: the range behind his action is the member's own
    source, job = range_of[1 - player, m], jobs[player] - 1
    if job < 0 or scratch.source[player, job] != source or scratch.behind[player, kind, job] != none:
        job += 1
        jobs[player] = job + 1
        scratch.source[player, job] = source
        scratch.behind[player, 0, job] = none
        scratch.behind[player, 1, job] = none
    scratch.behind[player, kind, job] = m
    scratch.chips[player, kind, job] = -chips if kind and player else chips


# --- a street tree ---


@part_njit
def _descend(trees, played, board, scratch, tree, base):
    """Carry both ranges down a street tree, whose root is at row `base` and has them, and add jobs at its terminals."""
    first, street, range_of, reach = trees.first[tree], trees.street[tree], scratch.range_of, scratch.reach
    for player in range(2):
        span = (played.first[player, tree], played.stop[player, tree])
        buckets = board.bucket[street, player, : board.rows[street, player]]
        gather_rows(played.tables, 2 * street + player, span, buckets, played.sigma[player])
    for member in range(first, trees.first[tree + 1]):
        m, kind = base + member - first, trees.kind[member]
        if kind == AT_DECISION:
            player, child = np.int64(trees.player[member]), trees.child[member]
            own, others = range_of[player, m], range_of[1 - player, m]
            count, local, direct = board.count[player], board.local[street, player], board.direct[street, player]
            for c in range(child, child + trees.actions[member]):
                alive = False
                if own != NOWHERE:
                    sigma, factor = played.sigma[player, played.at[first + c]], played.factor[first + c]
                    alive = pass_range(local, direct, count, reach[own], sigma, factor, reach[base + c])
                range_of[player, base + c] = base + c if alive else NOWHERE
                range_of[1 - player, base + c] = others if alive else NOWHERE
        elif kind != AT_EXIT and range_of[0, m] != NOWHERE:
            _add_job(scratch, np.int64(kind == AT_SHOWDOWN), m, trees.chips[member])


@part_njit
def _last_street(trees, played, board, scratch, level):
    """Walk the next last-street trees below a tree, as many as there is room for; what player 0 gets."""
    tree, range_of = scratch.tree[level], scratch.range_of
    upper, base = scratch.member_first[level] - trees.first[tree], scratch.member_first[level + 1]
    member = scratch.exit[level]
    while member < trees.first[tree + 1]:
        if trees.kind[member] == AT_EXIT and range_of[0, upper + member] != NOWHERE:
            below = np.int64(trees.below[member])
            size = trees.first[below + 1] - trees.first[below]
            if base + size > range_of.shape[1]:
                break
            for player in range(2):
                range_of[player, base] = range_of[player, upper + member]
            _descend(trees, played, board, scratch, below, base)
            base += size
        member += 1
    scratch.exit[level] = member
    return _settle(board, scratch)


@part_njit
def _begin(board, scratch):
    """Put both players' own ranges into their rows; the weight of all pairs of hands that may meet."""
    reach, range_of, rows, lanes = scratch.reach, scratch.range_of, scratch.rows, scratch.lanes
    none = reach.shape[0] - 1
    reach[none] = 0.0
    for player in range(2):
        own = range_of.shape[1] + player
        for k in range(board.count[player]):
            reach[own, k] = board.weight[player, k]
        range_of[player, 0] = own
    rows[:] = none
    rows[0] = range_of[1, 0]
    gather_lanes(reach, rows, board.count[1], lanes.reach)
    rows[0] = range_of[0, 0]
    gather_lanes(reach, rows, board.count[0], lanes.own[0])
    weigh_lanes(board, np.int64(0), False, lanes)
    scratch.jobs[:] = 0
    return lanes.sums[0, 0]


@njit
def played_walk(trees, played, board, scratch):
    """Both sums over pairs of hands on a board with their weights: chips that player 0 gets, and the weights alone.

    trees    StreetTrees
    played   PlayedRows
    board    SampledBoard in order of strength, float64
    scratch  PlayScratch, changed in place
    """
    level, entering, won = np.int64(0), True, 0.0
    member_first, tree, left, range_of = scratch.member_first, scratch.tree, scratch.exit, scratch.range_of
    weight = _begin(board, scratch)
    tree[0] = 0
    while True:
        first, stop = trees.first[tree[level]], trees.first[tree[level] + 1]
        if entering:
            _descend(trees, played, board, scratch, tree[level], member_first[level])
            left[level] = first
        base, member = member_first[level] - first, left[level]
        while member < stop and (trees.kind[member] != AT_EXIT or range_of[0, base + member] == NOWHERE):
            member += 1
        left[level], entering = member, False
        if member < stop and level + 2 == tree.shape[0]:
            won += _last_street(trees, played, board, scratch, level)
        elif member < stop:
            entering = True
            level += 1
            tree[level] = trees.below[member]
            for player in range(2):
                range_of[player, member_first[level]] = range_of[player, base + member]
        else:
            won += _settle(board, scratch)
            if level == 0:
                return won, weight
            level -= 1
            left[level] += 1
