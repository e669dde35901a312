"""One player's walk of a street tree on a board, for all hands, to train or to evaluate strategies.

A street tree is the betting of one street after one betting line of earlier streets.  Vector form of CFR (Zinkevich et
al. 2007; Johanson et al. 2011).  Both players' reach goes down as vectors over their hands; counterfactual values of
the traverser's hands come up.  At the traverser's decisions there are two cases:

* Training, with the iteration's `step`: the value is that of the current strategy, and the traverser's regrets and
  strategy sums are updated.
* Fixed strategies, with `traversal.fixed` or a `step` of None: there are the values of the traverser's strategy and of
  a best response.  A best response takes the best action for each hand on each board, against the opponent's whole
  range there.  It is exact in the real game, also where strategies are bucketed.

Rows are updated in place, when they are visited, if each hand on each board has a row of its own.  Hands that are alike
(`merged_rows`) may share one column.  Otherwise current strategies are written to tables beforehand, and increments are
added up in tables, each with its hand's deal weight.  Constant factors of a whole row are left out: the probability of
its board and, if no other hand shares the row, the hand's weight in regrets.  A board that stands for others
(`mccfr.cards.suit_symmetry`) counts once for each of them.

Most functions share these arguments:

public     PublicTree
traversal  Traversal: the traverser, its tables and the opponent's
step       Step of the iteration, or None; then numba drops all code for training
here       BettingRound: street, street tree and board
rows       Rows: slots (actions) and columns (hands or buckets) of the decision in the tables
lock       first row of the decision's fixed probabilities in `public.locks`, or -1
scratch    StreetScratch with ranges, strategies and values
"""

import numpy as np

from abstraction.kernels.jit import inline_njit, part_njit
from abstraction.kernels.prefetch import prefetch_to_read
from mccfr.common.float_tolerance import gain_share
from mccfr.solvers.minimisers import Rows, Tables, gain
from mccfr.solvers.public.locked_rows import hold, level, respond_locked, seen
from mccfr.solvers.public.narrow_rows import Int16Work, add_regrets, add_to_average, strategy_of, sums_strategy
from mccfr.solvers.public.row_vectors import add_rows, mean_and_regrets, range_rows, times_rows, weigh
from mccfr.solvers.public.street_arrays import FOLLOW
from mccfr.solvers.public.terminals.range_values import NOWHERE, value_jobs, value_run_outs
from mccfr.solvers.regret import as_element
from mccfr.trees.street_trees import AT_DECISION, AT_FOLD, AT_SHOWDOWN


@part_njit
def clear(out, count):
    """Set the first `count` cells of the vector `out` to 0."""
    for k in range(count):
        out[k] = as_element(out, 0.0)


@part_njit
def copy(source, out):
    """Copy a vector cell by cell; array assignment would add numba's error handling to every kernel."""
    for k in range(source.shape[0]):
        out[k] = source[k]


@inline_njit
def first_side(traversal, step):
    """Return the first range that a walk carries: 0, the traverser's (training); 1, the opponent's only."""
    return 1 if step is None or traversal.fixed else 0


@inline_njit
def _plays(traversal, step, values, street):
    """Return whether the traverser's hands have the value of its own strategy on a street.

    Else they have only that of a best response, which begins on street `traversal.respond_from`.

    values  number of values of each hand: with fixed strategies 2 for strategy and best response, 1 for a best response
    """
    if step is None or traversal.fixed:
        return values > 1 or street < traversal.respond_from
    return True


@part_njit
def take_cells(cells, numbers, out):
    """Set out[k] = cells[numbers[k]] for each k; unsigned indices avoid numba's check for negative ones."""
    for k in range(numbers.shape[0]):
        out[k] = cells[np.uint32(numbers[k])]


@part_njit
def is_walked(copies, street, board):
    """Return whether a board is walked; if not, one that differs only by a renaming of suits is."""
    return copies.first[street, board] < copies.first[street, board + 1]


@part_njit
def add_copies(copies, ranges, player, street, board, weight, value, out):
    """Add weight · value of the player's hands on a board, and on the boards it stands for, to out [H].

    value  [W] by column of the board: a hand, or hands that share a bucket
    out    [H] by number of the hand; the boards differ by renamings of suits, which change the hands as well
    """
    every = ranges.every
    first, stop = every.first[player, board], every.first[player, board + 1]
    hand, column = every.hand[first:stop], every.column[first:stop]
    for i in range(copies.first[street, board], copies.first[street, board + 1]):
        renamed = copies.hand[copies.renaming[i]]
        for entry in range(stop - first):
            out[np.uint32(renamed[np.uint32(hand[entry])])] += weight * value[np.uint32(column[entry])]


# --- strategies and updates of one decision ---


@part_njit
def _take_rows(ranges, player, board, table, rows, out, place):
    """Copy the probabilities of a player's hands on a board from a table to out[place : place+actions].

    table  [slot, bucket] probabilities; a slot is one action of a decision
    out    [., W] by hand of the board; row `place` is for the first action
    """
    first = ranges.first[player, board]
    bucket = ranges.bucket[first : first + rows.count]
    for a in range(rows.actions):
        take_cells(table[rows.slot + a], bucket, out[place + a])


@inline_njit
def _opponent_strategy(public, traversal, step, here, rows, scratch, place):
    """Write the opponent's strategy at a decision to scratch.opponent.reach[place : place+actions]."""
    table, reach, narrow = traversal.opponent[here.street], scratch.opponent.reach, traversal.opponent_narrow
    if step is None or traversal.fixed:
        if traversal.in_place is not None:
            sums_strategy(table, narrow, here.street, rows, reach, place, scratch.wide)
        else:
            _take_rows(public.ranges, 1 - traversal.player, here.board, table, rows, reach, place)
    elif traversal.in_place is not None:
        tables = Tables(table, table, table)
        strategy_of(step, tables, narrow, here.street, rows, reach, place, scratch.wide)
    else:
        _take_rows(public.ranges, 1 - traversal.player, here.board, table, rows, reach, place)


@inline_njit
def _is_locked(public, lock):
    """Return whether a decision has fixed probabilities; `lock` is their first row, or -1."""
    return public.locks is not None and lock >= 0


@inline_njit
def _matches_at_once(traversal, step):
    """Return whether the opponent plays regret matching from float tables that are updated in place."""
    return traversal.in_place is not None and traversal.opponent_narrow is None and step.rule is None


@inline_njit
def _learns_at_once(public, traversal, step, lock):
    """Return whether a decision's value and its regrets can be computed in one pass.

    They can for float tables updated in place, if nothing is predicted or fixed (lock < 0) and no hands share a column.
    """
    plain = traversal.in_place is not None and traversal.views.narrow is None and step.predicts is None
    return plain and not _is_locked(public, lock) and public.row_weight.shape[1] == 0


@inline_njit
def _opponent_ranges(public, traversal, step, here, rows, scratch, at):
    """Write the opponent's range after each action to scratch.opponent.reach[place : place+actions].

    at  (place, row of its range at the decision in the same array, lock)
    """
    (place, row, lock), reach = at, scratch.opponent.reach
    learns = step is not None and not traversal.fixed
    if step is not None and learns and not _is_locked(public, lock) and _matches_at_once(traversal, step):
        range_rows(traversal.opponent[here.street], rows, reach[row], reach, place)
        return
    _opponent_strategy(public, traversal, step, here, rows, scratch, place)
    if step is not None and learns and public.locks is not None and lock >= 0:
        hold(public, 1 - traversal.player, here.board, lock, rows, reach, place)
    times_rows(reach, reach, reach[row], (place, place, rows.actions, rows.count))


@inline_njit
def _counted(public, player, board, rows, scratch, at):
    """Put fixed probabilities into scratch.sigma; return the reach [W] for the strategy sums.

    at  (first row of the decision in sigma, row of the range in scratch.own.reach, lock)

    The reach is the range, raised to at least 1e-20 for hands with a fixed action.
    """
    place, own, lock = at
    counted = scratch.own.reach[own]
    if public.locks is not None and lock >= 0:
        hold(public, player, board, lock, rows, scratch.sigma, place)
        spare = scratch.value[FOLLOW, scratch.value.shape[1] - 1]
        seen(public, player, board, lock, rows, counted, spare)
        counted = spare
    return counted


@inline_njit
def _own_strategy(public, traversal, step, here, rows, scratch, at):
    """Write the traverser's strategy at a decision to scratch.sigma[place : place+actions].

    at  (place, row of its range in scratch.own.reach, lock)

    In training this also updates the strategy sums, or their increments if rows are not updated in place.
    """
    views, ranges, street, board = traversal.views, public.ranges, here.street, here.board
    place, own, _ = at
    reach = scratch.own.reach[own]
    if step is None or traversal.fixed:
        table = views.basis[street]
        if traversal.in_place is not None:
            sums_strategy(table, views.narrow, street, rows, scratch.sigma, place, scratch.wide)
        else:
            _take_rows(ranges, traversal.player, board, table, rows, scratch.sigma, place)
    elif traversal.in_place is not None:
        tables = Tables(views.regret[street], views.basis[street], views.strategy_sum[street])
        strategy_of(step, tables, views.narrow, street, rows, scratch.sigma, place, scratch.wide)
        counted = _counted(public, traversal.player, board, rows, scratch, at)
        if public.row_weight.shape[1] > 0:
            spare = scratch.value[FOLLOW, scratch.value.shape[1] - 1]
            weigh(spare, counted, public.row_weight[0], ranges.first[traversal.player, board], rows.count)
            counted = spare
        strategy, work = (scratch.sigma, place), Int16Work(scratch.wide, traversal.iteration)
        add_to_average(step, tables, views.narrow, street, rows, strategy, counted, work)
    else:
        first, times = ranges.first[traversal.player, board], as_element(reach, public.copies.times[board])
        _take_rows(ranges, traversal.player, board, views.basis[street], rows, scratch.sigma, place)
        counted = _counted(public, traversal.player, board, rows, scratch, at)
        for a in range(rows.actions):
            sums, out = views.strategy_sum[street][rows.slot + a], scratch.sigma[place + a]
            for k in range(rows.count):
                sums[ranges.bucket[first + k]] += times * counted[k] * out[k]


@inline_njit
def _regrets(public, traversal, step, here, rows, scratch, member, child):
    """Add the gain of each action at a decision to the traverser's regrets, or to their increments.

    A gain is the action's value minus the decision's.  Increments get it if `traversal.in_place` is None.

    member, child  rows of scratch.value[0] [., hand] with the values of the decision; of its first action
    """
    views, street, board = traversal.views, here.street, here.board
    values, total = scratch.value[FOLLOW], scratch.value[FOLLOW, member]
    first = public.ranges.first[traversal.player, board]
    if traversal.in_place is not None:
        tables = Tables(views.regret[street], views.basis[street], views.strategy_sum[street])
        if public.row_weight.shape[1] > 0:  # the actions' values are not needed afterwards and may be overwritten
            weights, weighed = public.row_weight[1], values[values.shape[0] - 1]
            for a in range(rows.actions):
                weigh(values[child + a], values[child + a], weights, first, rows.count)
            weigh(weighed, total, weights, first, rows.count)
            total = weighed
        counted, work = (values, child), Int16Work(scratch.wide, traversal.iteration)
        add_regrets(step, tables, views.narrow, street, rows, counted, total, work)
        return
    weights, times = public.reach[traversal.player], as_element(total, public.copies.times[board])
    limit = as_element(total, gain_share(total))
    for a in range(rows.actions):
        row, value = views.regret[street][rows.slot + a], values[child + a]
        for k in range(rows.count):
            weight = times * weights[public.ranges.hand[first + k]]
            row[public.ranges.bucket[first + k]] += weight * gain(value[k], total[k], limit)


# --- one street tree on one board ---


@part_njit
def _rows(public, player, member, board, in_place):
    """Return the Rows of a decision of `player`: slot, actions, first table column, and hands on a board.

    member    number of the decision among the nodes of all street trees
    in_place  True: the column is the bucket of the first hand; None: it is 0
    """
    first = public.ranges.first[player, board]
    column = np.int64(0)
    count = public.ranges.first[player, board + 1] - first
    if in_place is not None and count > 0:
        column = np.int64(public.ranges.bucket[first])
    return Rows(np.int64(public.trees.rows.slot[member]), np.int64(public.trees.actions[member]), column, count)


@part_njit
def descend(public, traversal, step, here, scratch):
    """Carry the ranges down a street tree on a board; in training update the average strategy.

    The ranges at its root are in scratch.by_hand.reach[:, street] [2, H].  With fixed strategies only the opponent's is
    carried down.
    """
    trees, ranges, player, in_place = public.trees, public.ranges, traversal.player, traversal.in_place
    street, tree, board = here
    mine, theirs, base, top = scratch.own, scratch.opponent, trees.first[tree], scratch.member_first[street]
    for side in range(first_side(traversal, step), 2):
        who = player if side == 0 else 1 - player
        out = mine.reach[top] if side == 0 else theirs.reach[top]
        first, stop = ranges.first[who, board], ranges.first[who, board + 1]
        prefetch_to_read(ranges.bucket, stop)
        take_cells(scratch.by_hand.reach[side, street], ranges.hand[first:stop], out)
        out[stop - first] = as_element(out, 0.0)
    mine.row[top], theirs.row[top] = top, top
    own_ranges, opponent_ranges = top + 1, top + 1
    for m in range(trees.first[tree + 1] - base):
        if trees.kind[base + m] != AT_DECISION:
            continue
        child, own, opponent = top + trees.child[base + m], mine.row[top + m], theirs.row[top + m]
        rows = _rows(public, np.int64(trees.player[base + m]), base + m, board, in_place)
        if trees.player[base + m] == player:
            place = scratch.cell_first[street] + trees.rows.cell[base + m]
            reach, at = mine.reach[own], (place, own, trees.rows.lock[base + m])
            if _plays(traversal, step, scratch.value.shape[0], street):
                _own_strategy(public, traversal, step, here, rows, scratch, at)
            for a in range(rows.actions):
                mine.row[child + a], theirs.row[child + a] = own, opponent
                if first_side(traversal, step) == 0:
                    kind = trees.kind[base + trees.child[base + m] + a]
                    if kind in (AT_FOLD, AT_SHOWDOWN):
                        continue  # not needed here
                    mine.row[child + a] = own_ranges
                    times_rows(mine.reach, scratch.sigma, reach, (own_ranges, place + a, np.int64(1), rows.count))
                    own_ranges += 1
        else:
            at = (opponent_ranges, opponent, trees.rows.lock[base + m])
            _opponent_ranges(public, traversal, step, here, rows, scratch, at)
            for a in range(rows.actions):
                mine.row[child + a], theirs.row[child + a] = own, opponent_ranges
                theirs.reach[opponent_ranges, rows.count] = as_element(theirs.reach, 0.0)
                opponent_ranges += 1


@part_njit
def _respond(public, traversal, here, lock, rows, values, child, value):
    """Set `value` [W] to a best response's value at a decision, and record the best actions.

    `Views.regret`, unless empty, receives 1 for the best action of each hand, the first of equal ones, else 0.

    values  [., W] by hand of the board; row child+a is the value of action a
    """
    copy(values[child], value)
    for a in range(1, rows.actions):
        below = values[child + a]
        for k in range(rows.count):
            value[k] = below[k] if below[k] > value[k] else value[k]
    if public.locks is not None and lock >= 0:
        respond_locked(public, traversal.player, here.board, lock, rows, values, child, value)
    table, first = traversal.views.regret[here.street], public.ranges.first[traversal.player, here.board]
    if table.shape[0] > 0:
        for k in range(rows.count):
            best = 0
            for a in range(1, rows.actions):
                if values[child + a, k] > values[child + best, k]:
                    best = a
            row = public.ranges.bucket[first + k]
            for a in range(rows.actions):
                table[rows.slot + a, row] = as_element(table, 1.0 if a == best else 0.0)


@inline_njit
def _decision(public, traversal, step, here, member, scratch):
    """Compute the values of a decision from those of its actions; in training update the regrets.

    member  number of the decision, counted from the root of the street tree
    """
    street, tree, board = here
    trees, base, top, player = public.trees, public.trees.first[tree], scratch.member_first[street], traversal.player
    child, own = top + trees.child[base + member], trees.player[base + member] == player
    place = scratch.cell_first[street] + trees.rows.cell[base + member]
    plays, lock = _plays(traversal, step, scratch.value.shape[0], street), trees.rows.lock[base + member]
    rows = _rows(public, player, base + member, board, traversal.in_place)
    learns = own and step is not None and not traversal.fixed
    if step is not None and learns and _learns_at_once(public, traversal, step, lock):
        regret, at = traversal.views.regret[street], (top + member, child, place)
        mean_and_regrets(step, regret, rows, scratch.value[FOLLOW], scratch.sigma, at)
        return
    for kind in range(scratch.value.shape[0]):
        values, value = scratch.value[kind], scratch.value[kind, top + member]
        if not own or street < traversal.respond_from or (kind == FOLLOW and plays):
            shares = np.int64(place) if own else np.int64(NOWHERE)
            add_rows(values, scratch.sigma, (top + member, child, shares, rows.actions, rows.count))
        elif step is None or traversal.fixed:
            _respond(public, traversal, here, lock, rows, values, child, value)
    if step is not None and learns:
        if public.locks is not None and lock >= 0:
            gained, mean = scratch.value[FOLLOW], scratch.value[FOLLOW, top + member]
            level(public, player, board, lock, rows, gained, child, mean)
        _regrets(public, traversal, step, here, rows, scratch, top + member, child)


@part_njit
def _stake(jobs, job, weight, chips, rake):
    """Set chips[1, job] of `jobs` (Jobs) to weight · (chips - rake/2), and its rake[job] to rake/2.

    So the winner gets the chips less the rake; players who share the pot lose half the rake each.

    weight  1, or for a run-out the probability of one of its boards
    chips   chips that the winner of the showdown gets from the loser; `rake` is that of the pot
    """
    jobs.chips[1, job] = as_element(jobs.chips, weight * (chips - 0.5 * rake))
    jobs.rake[job] = as_element(jobs.rake, 0.5 * rake)


@part_njit
def _jobs(trees, player, last, tree, top, opponent_range, lanes):
    """Group a street tree's folds and, if `last`, its showdowns to jobs; return the number of jobs.

    A job is a fold, a showdown, or one of each that meet the same range of the opponent.  Jobs are in `lanes.jobs`.

    player          the traverser, from whose view chips count
    top             row of the tree's root in arrays of N nodes
    opponent_range  [N] int32 row of the opponent's range at each node, in its array of ranges
    """
    count, base, jobs = np.int64(0), trees.first[tree], lanes.jobs
    for kind in range(1, -1, -1):  # showdowns first, so that jobs with folds only are consecutive
        for m in range(trees.first[tree + 1] - base):
            if trees.kind[base + m] != (AT_SHOWDOWN if kind else AT_FOLD) or (kind and not last):
                continue
            here = np.int64(opponent_range[top + m])
            job = lanes.job_of[here]
            if not (0 <= job < count and jobs.source[job] == here and jobs.ending[kind, job] == NOWHERE):
                job = count
                count += 1
                jobs.source[job], jobs.ending[0, job], jobs.ending[1, job] = here, NOWHERE, NOWHERE
                lanes.job_of[here] = job
            chips, rake = trees.chips[base + m, 0], trees.chips[base + m, 1]
            jobs.ending[kind, job] = top + m
            if kind:
                _stake(jobs, job, 1.0, chips, rake)
                continue
            chips = chips if player == 0 else -chips
            jobs.chips[0, job] = as_element(jobs.chips, chips - rake if chips > 0 else chips)
    return count


@part_njit
def _share(value, ending, jobs):
    """Copy terminals' value[0] (of the strategy) to value[1] (of a best response), if that exists.

    ending  [2, J] rows in `value` of J jobs (a fold, a showdown, or both), NOWHERE: none; the first `jobs` count
    """
    for more in range(1, value.shape[0]):
        for job in range(jobs):
            for kind in range(2):
                row = ending[kind, job]
                if row != NOWHERE:
                    copy(value[FOLLOW, row], value[more, row])


@inline_njit
def terminals(public, player, here, scratch):
    """Compute the values of a street tree's folds and, on the last street, showdowns into scratch.value.

    player  the traverser; values are its counterfactual values in chips
    """
    street, tree, board = here
    top, last, lanes = scratch.member_first[street], street + 1 == public.boards.weight.shape[0], scratch.lanes
    jobs = _jobs(public.trees, player, last, tree, top, scratch.opponent.row, lanes)
    value_jobs(public.ranges, player, board, jobs, scratch.opponent.reach, lanes, scratch.value[FOLLOW])
    _share(scratch.value, lanes.jobs.ending, jobs)


@part_njit
def run_outs(public, player, here, first, stop, scratch, lanes):
    """Compute the values of the run-outs (all-ins before the last street) among nodes first to stop-1.

    lanes  TerminalLanes: scratch for terminals, which may belong to another thread's `scratch`

    Nodes are counted from the root of the street tree (one street's betting).  Ranges and values are in `scratch`.
    """
    street, tree, board = here
    trees, boards, top, count, weight = public.trees, public.boards, scratch.member_first[street], np.int64(0), 1.0
    base, jobs = trees.first[tree], lanes.jobs
    for later in range(street + 1, boards.weight.shape[0]):
        weight *= boards.weight[later]
    for m in range(first, stop):
        if trees.kind[base + m] == AT_SHOWDOWN:
            jobs.source[count] = scratch.opponent.row[top + m]
            jobs.ending[0, count], jobs.ending[1, count] = NOWHERE, top + m
            _stake(jobs, count, weight, trees.chips[base + m, 0], trees.chips[base + m, 1])
            count += 1
    span = (player, street, board, boards.last[board, 0], boards.last[board, 1])
    reach, value = scratch.opponent.reach, scratch.value[FOLLOW]
    value_run_outs(public, span, count, reach, lanes, value)
    _share(scratch.value, jobs.ending, count)


@part_njit
def ascend(public, traversal, step, here, scratch):
    """Compute values from the leaves of a street tree up; add them to by_hand.value[street] [V, H].

    These are V values (of strategy, best response or both) of H hands.  Values of run-outs and of exits to the next
    street must be set before.  Training updates the traverser's regrets.
    """
    street, tree, board = here
    trees, base, top = public.trees, public.trees.first[tree], scratch.member_first[street]
    terminals(public, traversal.player, here, scratch)
    for m in range(trees.first[tree + 1] - base - 1, -1, -1):
        if trees.kind[base + m] == AT_DECISION:
            _decision(public, traversal, step, here, m, scratch)
    weight = as_element(scratch.value, public.boards.weight[street])
    for kind in range(scratch.value.shape[0]):
        value, out = scratch.value[kind, top], scratch.by_hand.value[street, kind]
        add_copies(public.copies, public.ranges, traversal.player, street, board, weight, value, out)
