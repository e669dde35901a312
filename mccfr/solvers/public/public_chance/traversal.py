"""Walks one full board with whole ranges as vectors, for public chance sampling.

The opponent's range goes down and all its actions are walked; counterfactual values of the traverser's hands come up.
At an opponent's node strategy sums grow by weight times reach times strategy; actions that no hand takes are skipped.
At a traverser's node regrets grow by weight times the hand's deal weight times the action's gain, summed over the hands
of a bucket.  (PCS in figure 1 of Johanson, Bard, Lanctot, Gibson & Bowling 2012.)

A street tree is the betting of one street after one betting line of earlier streets; its nodes are its *members*.  A
*job* is a fold, a showdown, or one of each that meet the same range of the opponent.  In kernels `trees` is a
StreetTrees, `tables` a VectorTables, `board` a SampledBoard, `task` a Task and `scratch` a SampledScratch.  `member` is
a node's number among those of all street trees, `m` its row in scratch arrays of N nodes.  `incoming` [n] is the range
of the player to act before a decision, `noted` the best action of each hand.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, nogil_njit, part_njit
from mccfr.common.float_tolerance import card_removal_share
from mccfr.common.rng import random_at
from mccfr.solvers.public.public_chance.board_rows import (
    DecisionRows,
    add_regrets,
    add_shares,
    add_sums,
    add_values,
    begin_values,
    copy_values,
    current_strategy,
    new_rows,
    pass_reach,
    share_rows,
    sum_rows,
    take_values,
    weigh_gains,
)
from mccfr.solvers.public.terminals.board_values import LANES, Lanes, new_lanes, store_lanes, sum_lanes
from mccfr.solvers.public.terminals.range_values import NOWHERE, Jobs, load_ranges, new_jobs
from mccfr.solvers.regret import as_element
from mccfr.trees.street_trees import AT_DECISION, AT_EXIT, AT_FOLD, AT_SHOWDOWN, StreetTrees

_GROUP_MEMBERS = 128  # members of last-street trees walked together: they fill the lanes and fit the cache


class VectorTables(NamedTuple):
    """Regrets and strategy sums, a table [slot, bucket] for each block 2·street + player; unused: [1, 1]."""

    regret: tuple[npt.NDArray[np.floating], ...]
    strategy_sum: tuple[npt.NDArray[np.floating], ...]


class Task(NamedTuple):
    """Parameters of one traversal.

    traverser      player whose regrets are updated
    regret_weight  factor of new regrets
    sum_weight     factor of new strategy sums
    floored        1: regrets below 0 are set to 0
    word           random bits of the iteration, for rounding float32 strategy sums
    response       Response of the player who plays a best response on the last street (-1: none); with one, the board's
                   hands must be in order of strength
    """

    traverser: int
    regret_weight: float
    sum_weight: float
    floored: int
    word: np.uint64
    response: "Response"


class Response(NamedTuple):
    """A player's best response on one board: M nodes of all street trees, n hands.

    player  the responder; -1: none, and M = n = 1
    walk    [1] int64    number of the responder's latest traversal, from 1
    found   [M] int64    for each decision, the number of the responder's last traversal that reached it
    action  [M, n] int8  best action of each hand there
    """

    player: int
    walk: npt.NDArray[np.int64]
    found: npt.NDArray[np.int64]
    action: npt.NDArray[np.int8]


class SampledScratch(NamedTuple):
    """Scratch for a walk: N nodes of street trees, n hands, S streets; F is the dtype of regrets.

    There is room for one street tree of each street, and for up to G small ones on the last street.

    member_first  [S] int64     first row of a street in arrays of N rows
    tree          [S] int64     street tree in progress on each street
    exit          [S] int64     node of that tree at which the search for the next exit to a later street continues
    group         [3, G] int64  last-street trees in progress: tree, row of its root, row of `value` that gets its value
    range_of      [N] int64     row in `reach` of the opponent's range at a node; NOWHERE: never reached
    reach         [N+1, n] F    opponent's range at a node, after the action that leads there; last row: initial range
    value         [N+1, n] F    values of the traverser's hands, in chips times the opponent's reach; last row: spare
    decision      DecisionRows  scratch for the current decision
    jobs          Jobs          terminals: room for N folds and showdowns
    lanes         Lanes         scratch for the terminal values of LANES ranges
    """

    member_first: npt.NDArray[np.int64]
    tree: npt.NDArray[np.int64]
    exit: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    range_of: npt.NDArray[np.int64]
    reach: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]
    decision: DecisionRows
    jobs: Jobs
    lanes: Lanes


def new_response(player: int = -1, members: int = 1, hands: int = 1) -> Response:
    """Return an empty Response of a player (-1: none) for `members` street tree nodes and `hands` hands."""
    noted = np.zeros((members, hands), np.int8)
    return Response(player, np.zeros(1, np.int64), np.zeros(members, np.int64), noted)


def new_scratch(trees: StreetTrees, hands: int, cards: int, dtype: npt.DTypeLike) -> SampledScratch:
    """Return scratch for boards of up to `hands` hands, with spare cells, and a deck of `cards` cards."""
    hands += LANES
    room = trees.most[0].copy()
    room[-1] = max(room[-1], _GROUP_MEMBERS)
    streets, members, actions = len(room), int(room.sum()), int(trees.actions.max())
    return SampledScratch(
        np.cumsum(room) - room,
        np.zeros(streets, np.int64),
        np.zeros(streets, np.int64),
        np.zeros((3, int(room[-1])), np.int64),
        np.zeros(members, np.int64),
        np.zeros((members + 1, hands), dtype),
        np.zeros((members + 1, hands), dtype),
        new_rows(actions, hands, dtype),
        new_jobs(members, dtype),
        new_lanes(hands, cards, dtype),
    )


@inline_njit
def _opponent_node(trees, tables, board, task, member, scratch, here, child):
    """Update strategy sums at an opponent's node and compute the ranges after its actions.

    here    row of scratch.reach with the opponent's range at the node
    child   row of scratch.reach for the range after the first action; the next rows are for the other actions
    """
    actions, slot, block = trees.actions[member], trees.rows.slot[member], trees.rows.block[member]
    street, player = block // 2, block % 2
    sigma, gain, total, parts = scratch.decision[:4]
    reach = scratch.reach
    if player == task.response.player and street == board.rows.shape[0] - 1:
        _follow(board.count[player], actions, task.response, member, scratch.reach[here], scratch, child)
        if task.sum_weight > 0:
            _add_response(tables.strategy_sum[block], slot, board, task, member, scratch.reach[here])
        return
    current_strategy(tables.regret[block], slot, actions, board, street, player, sigma, gain)
    incoming = reach[here]
    if board.direct[street, player]:
        total = incoming
    elif task.sum_weight > 0:
        sum_rows(board, street, player, incoming, total, parts)
    word = random_at(task.word, np.uint64(2 * member + task.traverser))  # a member is met once in a traversal
    for a in range(actions):
        if task.sum_weight > 0:
            step = np.int64(a), task.sum_weight, random_at(word, np.uint64(a))
            add_sums(tables.strategy_sum[block], slot, board, (street, player), step, total, scratch.decision)
    ranges = scratch.range_of[child : child + actions]
    pass_reach(board, (street, player), incoming, scratch.decision, reach[child : child + actions], ranges)
    for a in range(actions):
        ranges[a] = child + a if ranges[a] else NOWHERE


@part_njit
def _follow(count, actions, response, member, incoming, scratch, child):
    """Compute ranges after a responder's decision: each hand takes the best action in `response`.

    child  row of scratch.reach for the range after the first action; the next rows are for the other actions

    At a decision that the responder's traversal did not reach, all hands take the first action: any one is best.
    """
    reach, noted, zero = scratch.reach, response.action[member], as_element(scratch.reach, 0.0)
    if response.found[member] != response.walk[0]:
        noted[:count] = 0
    for a in range(actions):
        alive = False
        for k in range(count):
            reach[child + a, k] = incoming[k] if noted[k] == a else zero
            alive |= reach[child + a, k] > 0
        scratch.range_of[child + a] = child + a if alive else NOWHERE


@part_njit
def _add_response(table, slot, board, task, member, incoming):
    """Add each hand's reach times weight to the responder's strategy sum of its best action at a decision."""
    street, player, noted = board.rows.shape[0] - 1, task.response.player, task.response.action[member]
    weight = as_element(table, task.sum_weight)
    for k in range(board.count[player]):
        bucket = board.bucket[street, player, board.local[street, player, k]]
        table[slot + noted[k], bucket] += weight * incoming[k]


@part_njit
def _respond(count, actions, response, member, value, here, child):
    """Set value[here] at a responder's decision to each hand's largest value over the actions.

    count     number of hands
    response  action[member] gets best actions (the first of equal ones), found[member] the traversal's number
    value     [N+1, n] values of the traverser's hands, by row of scratch arrays; `here` is the decision's row
    child     row of the first action's node; those of the other actions follow
    """
    noted = response.action[member]
    response.found[member] = response.walk[0]
    copy_values(value[child], value[here], count)
    noted[:count] = 0
    for a in range(1, actions):
        for k in range(count):
            if value[child + a, k] > value[here, k]:
                value[here, k], noted[k] = value[child + a, k], a


@part_njit
def _descend(trees, tables, board, task, scratch, at, count):
    """Walk a street tree down: update strategy sums, compute ranges, list its terminals as jobs.

    at     (number of a street's betting tree, row of its root in scratch arrays); the root's range is already there
    count  number of jobs listed before; a job is a fold, a showdown, or one of each that meet the same range

    Returns (number of jobs listed in all, nodes touched).
    """
    tree, base = at
    first, range_of, jobs = trees.first[tree], scratch.range_of, scratch.jobs
    source, ending = jobs.source, jobs.ending
    nodes, sign = 0, 1.0 - 2.0 * task.traverser
    for member in range(first, trees.first[tree + 1]):
        m = base + member - first
        kind, here = trees.kind[member], range_of[m]
        if kind == AT_DECISION:
            child = base + trees.child[member]
            if here == NOWHERE or trees.player[member] == task.traverser:
                for a in range(trees.actions[member]):
                    range_of[child + a] = here
            else:
                _opponent_node(trees, tables, board, task, member, scratch, here, child)
        if here == NOWHERE:
            continue
        nodes += trees.touched[member]
        if kind in (AT_FOLD, AT_SHOWDOWN):
            # A fold and a call of the traverser meet the same range: one job.
            showdown = np.int64(kind == AT_SHOWDOWN)
            if count == 0 or source[count - 1] != here or ending[showdown, count - 1] != NOWHERE:
                source[count], ending[0, count], ending[1, count] = here, NOWHERE, NOWHERE
                count += 1
            ending[showdown, count - 1] = m
            jobs.chips[showdown, count - 1] = trees.chips[member, 0] * (1.0 if showdown else sign)
    return count, nodes


@part_njit
def _sort_jobs(jobs, count):
    """Write the numbers of the first `count` jobs (groups of terminals) to `jobs.order`.

    First are jobs with a showdown only, then those with a showdown and a fold, then those with a fold only.  Returns
    two indices in `order`: that of the first job with a fold, and the end of the jobs with a showdown.
    """
    place, first, stop, order = 0, 0, 0, jobs.order
    for kind in range(3):
        if kind == 1:
            first = place
        if kind == 2:
            stop = place
        for job in range(count):
            showdown, fold = jobs.ending[1, job] != NOWHERE, jobs.ending[0, job] != NOWHERE
            if kind == (np.int64(fold) if showdown else 2):
                order[place] = job
                place += 1
    return first, stop


@part_njit
def _terminals(board, task, scratch, count):
    """Compute the traverser's `scratch.value` at terminals, which are grouped in `count` jobs."""
    player, lanes, order = task.traverser, scratch.lanes, scratch.jobs.order
    limit, whole = lanes.limit, board.showdown.cards[0] + 1
    folds_from, showdowns_to = _sort_jobs(scratch.jobs, count)
    for start in range(0, count, LANES):
        here = order[start : min(start + LANES, count)]
        used, first, stop = len(here), max(folds_from - start, 0), min(showdowns_to - start, len(here))
        _load(board, task, scratch, here)
        sum_lanes(board, player, stop > 0, lanes)
        for lane in range(LANES):
            limit[lane] = card_removal_share(limit) * lanes.total[whole, lane]
        if first < used:
            _store(board, task, scratch, here, 0, (first, used))
        if stop > 0:
            _store(board, task, scratch, here, 1, (np.int64(0), stop))


@part_njit
def _load(board, task, scratch, here):
    """Copy the opponent's range at each job (group of terminals) in `here` to `lanes.reach`."""
    jobs, lanes, other, reach = scratch.jobs, scratch.lanes, 1 - task.traverser, scratch.reach
    count, used, picked = board.count[other], len(here), lanes.picked[0]
    for lane in range(LANES):
        picked[lane] = jobs.source[here[min(lane, used - 1)]]
    if task.response.player >= 0:
        load_ranges(lanes.reach, reach, picked, count, used)
        return
    order = board.showdown.order[other]
    for lane in range(used):
        for k in range(count):
            lanes.turned[lane, k] = reach[picked[lane], order[k]]
    for lane in range(LANES):
        picked[lane] = min(lane, used - 1)
    load_ranges(lanes.reach, lanes.turned, picked, count, used)


@part_njit
def _store(board, task, scratch, here, kind, span):
    """Write values at the folds (kind 0) or showdowns (1) of some jobs to `scratch.value`.

    here  numbers of the jobs (groups of terminals that meet the same range) that `lanes` holds
    span  (first, stop): values of the jobs here[first] to here[stop-1] are stored
    """
    jobs, lanes, player, (first, stop) = scratch.jobs, scratch.lanes, task.traverser, span
    value, target, order = scratch.value, lanes.picked[1], board.showdown.order[task.traverser]
    for lane in range(LANES):
        target[lane], job = value.shape[0] - 1, here[min(lane, stop - 1)]
        lanes.factor[lane] = jobs.chips[kind, job]
        if first <= lane < stop:
            target[lane] = jobs.ending[kind, job]
    if task.response.player >= 0:
        store_lanes(board, player, kind, lanes, span, value)
        return
    for lane in range(LANES):
        target[lane] = lane
    store_lanes(board, player, kind, lanes, span, lanes.turned)
    for lane in range(first, stop):
        row = value[jobs.ending[kind, here[lane]]]
        for k in range(board.count[player]):
            row[order[k]] = lanes.turned[lane, k]


@inline_njit
def _own_node(trees, tables, board, task, member, scratch, m, child):
    """Set value[m] of a traverser's node from value[child + a] of its actions a, and update its regrets.

    Rows of `value` are nodes.  For a responder on the last street, record each hand's best action, not regrets.
    """
    actions, slot, block = trees.actions[member], trees.rows.slot[member], trees.rows.block[member]
    street, player = block // 2, block % 2
    sigma, gain, total = scratch.decision[:3]
    value = scratch.value
    if player == task.response.player and street == board.rows.shape[0] - 1:
        _respond(board.count[player], actions, task.response, member, value, m, child)
        return
    table, count, rows = tables.regret[block], board.count[player], board.rows[street, player]
    current_strategy(table, slot, actions, board, street, player, sigma, gain)
    here, weight, zero = value[m], board.weight[player], as_element(value, 0.0)
    if board.direct[street, player]:
        here[:count] = zero
        for a in range(actions):
            add_shares(value[child + a], sigma[a], here, count)
        for a in range(actions):
            weigh_gains(value[child + a], here, weight, gain[a], count)
    else:
        share_rows(value[child : child + actions], board, (street, player), scratch.decision, here)
        total[:rows] = zero
        for a in range(actions):
            add_shares(gain[a], sigma[a], total, rows)
        for a in range(actions):
            take_values(total, gain[a], rows)
    for a in range(actions):
        add_regrets(table, slot + a, board, street, player, (task.regret_weight, task.floored), gain[a])


@part_njit
def _ascend(trees, tables, board, task, scratch, at):
    """Compute values up the street tree at = (tree, row of its root) from its leaves, and update regrets."""
    tree, base = at
    first, value, range_of = trees.first[tree], scratch.value, scratch.range_of
    count = board.count[task.traverser]
    for member in range(trees.first[tree + 1] - 1, first - 1, -1):
        m = base + member - first
        if trees.kind[member] != AT_DECISION or range_of[m] == NOWHERE:
            continue
        child = base + trees.child[member]
        if trees.player[member] == task.traverser:
            _own_node(trees, tables, board, task, member, scratch, m, child)
            continue
        here, begun = value[m], False
        for a in range(trees.actions[member]):
            if range_of[child + a] != NOWHERE:
                if begun:
                    add_values(value[child + a], here, count)
                else:
                    begin_values(value[child + a], here, count)
                begun = True
        if not begun:
            here[:count] = as_element(value, 0.0)


@part_njit
def _last_street(trees, tables, board, task, scratch, level, jobs):
    """Walk last-street trees that follow the current tree of street `level`; return nodes touched.

    At the exits of a street tree play goes on to the next street.  The trees after exits from node
    `scratch.exit[level]` on are walked, until the nodes of the next one exceed the free rows of `scratch`.
    `scratch.exit[level]` is set to that exit, or to the end of the current tree.

    jobs  number of earlier streets' jobs (groups of terminals) without values; they are valued with the new ones
    """
    tree, group, range_of = scratch.tree[level], scratch.group, scratch.range_of
    upper, base = scratch.member_first[level] - trees.first[tree], scratch.member_first[level + 1]
    member, count, nodes = scratch.exit[level], 0, 0
    while member < trees.first[tree + 1]:
        if trees.kind[member] == AT_EXIT and range_of[upper + member] != NOWHERE:
            below = np.int64(trees.below[member])
            size = trees.first[below + 1] - trees.first[below]
            if base + size > range_of.shape[0]:
                break
            range_of[base] = range_of[upper + member]
            jobs, touched = _descend(trees, tables, board, task, scratch, (below, base), jobs)
            group[0, count], group[1, count], group[2, count] = below, base, upper + member
            nodes, base, count = nodes + touched, base + size, count + 1
        member += 1
    scratch.exit[level] = member
    _terminals(board, task, scratch, jobs)
    for i in range(count):
        _ascend(trees, tables, board, task, scratch, (group[0, i], group[1, i]))
        copy_values(scratch.value[group[1, i]], scratch.value[group[2, i]], scratch.value.shape[1])
    return nodes


@part_njit
def sampled_traversal(trees, tables, board, task, scratch):
    """Run one player's traversal on a board and return the nodes touched.

    `tables` and `scratch` are changed in place.  scratch.value[0] receives the values of the traverser's hands: chips
    times the opponent's reach.
    """
    level, entering, jobs, nodes = np.int64(0), True, np.int64(0), 0
    member_first, tree, left, range_of = scratch.member_first, scratch.tree, scratch.exit, scratch.range_of
    start, opponent = range_of.shape[0], 1 - task.traverser
    copy_values(board.weight[opponent], scratch.reach[start], board.count[opponent])
    tree[0], range_of[0] = 0, start
    while True:
        first, stop = trees.first[tree[level]], trees.first[tree[level] + 1]
        if entering:
            at = (tree[level], member_first[level])
            jobs, touched = _descend(trees, tables, board, task, scratch, at, jobs)
            nodes, left[level] = nodes + touched, first
        base, member = member_first[level] - first, left[level]
        while member < stop and (trees.kind[member] != AT_EXIT or range_of[base + member] == NOWHERE):
            member += 1
        left[level], entering = member, False
        if member < stop and level + 2 == tree.shape[0]:
            nodes += _last_street(trees, tables, board, task, scratch, level, jobs)
            jobs = np.int64(0)
        elif member < stop:
            entering = True
            level += 1
            tree[level] = trees.below[member]
            range_of[member_first[level]] = range_of[base + member]
        else:
            _terminals(board, task, scratch, jobs)
            jobs = np.int64(0)
            _ascend(trees, tables, board, task, scratch, (tree[level], member_first[level]))
            if level == 0:
                return nodes
            level -= 1
            at_exit = member_first[level] + left[level] - trees.first[tree[level]]
            copy_values(scratch.value[member_first[level + 1]], scratch.value[at_exit], scratch.value.shape[1])
            left[level] += 1


@nogil_njit
def sampled_traversals(trees, tables, board, task, stop, scratch):
    """Run a traversal for each player from `task.traverser` to `stop`-1; return the nodes touched."""
    nodes = 0
    for traverser in range(task.traverser, stop):
        one = Task(traverser, task.regret_weight, task.sum_weight, task.floored, task.word, task.response)
        nodes += sampled_traversal(trees, tables, board, one, scratch)
    return nodes


@nogil_njit
def responded_traversals(trees, tables, board, task, scratch):
    """Run the responder's traversal, then the learner's, and return the nodes touched.

    The responder, `task.traverser`, updates its regrets before the last street and computes a best response on it.  The
    learner is the other player and updates its regrets on all streets.  Only the learner's strategy sums are updated.
    """
    task.response.walk[0] += 1
    nodes = sampled_traversal(trees, tables, board, task, scratch)
    one = Task(1 - task.traverser, task.regret_weight, 0.0, task.floored, task.word, task.response)
    return nodes + sampled_traversal(trees, tables, board, one, scratch)
