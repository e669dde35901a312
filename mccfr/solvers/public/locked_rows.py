"""Rows that do not learn, in walks of whole ranges: `mccfr.trees.compiled.Locks` as `PublicTree.locks` has them.

A hand whose actions are all given plays so, and gains nothing by any of them.  One of which some actions are barred
plays what it has learnt of the others.  Both are in the average whether the hand gets there or not.  A best responder
keeps them too.
"""

from abstraction.kernels.jit import part_njit
from mccfr.solvers.regret import as_element

_LEAST = 1e-20  # of reach, where a row is in the average though nobody gets there; cells of 16 bits go down to 1e-30
_NEVER = 1e30  # chips: less than anything, below 0


@part_njit
def _key(public, entry):
    """What a column is in the table of shares."""
    return public.ranges.hand[entry] if public.locks.by_hand else public.ranges.bucket[entry]


@part_njit
def _given(share, lock, actions, key):
    """How many actions of a row are given."""
    count = 0
    for a in range(actions):
        count += share[lock + a, key] >= 0  # -1 is free
    return count


@part_njit
def hold(public, player, board, lock, rows, sigma, place):
    """Put what is given in the place of what was learnt, in sigma[place ..]; what is free keeps its parts."""
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        key, free, left = _key(public, first + k), as_element(sigma, 0.0), as_element(sigma, 1.0)
        given = _given(share, lock, rows.actions, key)
        if given == 0:
            continue
        for a in range(rows.actions):
            if share[lock + a, key] < 0:
                free += sigma[place + a, k]
            else:
                left -= share[lock + a, key]
        for a in range(rows.actions):
            if share[lock + a, key] >= 0:
                sigma[place + a, k] = share[lock + a, key]
            elif free > 0:
                sigma[place + a, k] *= left / free
            else:
                sigma[place + a, k] = left / as_element(sigma, rows.actions - given)


@part_njit
def seen(public, player, board, lock, rows, reach, out):
    """out = reach, a little at least where actions are given: their row is in the average whoever gets there."""
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        out[k] = reach[k]
        if _given(share, lock, rows.actions, _key(public, first + k)) > 0:
            out[k] = max(reach[k], as_element(out, _LEAST))


@part_njit
def level(public, player, board, lock, rows, values, child, total):
    """Make actions that are given worth what the row is, so that nothing is gained by them."""
    share, first = public.locks.share, public.ranges.first[player, board]
    for a in range(rows.actions):
        for k in range(rows.count):
            if share[lock + a, _key(public, first + k)] >= 0:
                values[child + a, k] = total[k]


@part_njit
def respond_locked(public, player, board, lock, rows, values, child, value):
    """Value of the best that rows of which actions are given may still do; the others keep theirs.

    What a row bars is worth less than anything after that.
    """
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        key, found, total = _key(public, first + k), False, as_element(value, 0.0)
        given = _given(share, lock, rows.actions, key)
        if given == 0:
            continue
        best, left = total, as_element(value, 1.0)
        for a in range(rows.actions):
            if share[lock + a, key] < 0:
                best = max(best, values[child + a, k]) if found else values[child + a, k]
                found = True
            else:
                total += share[lock + a, key] * values[child + a, k]
                left -= share[lock + a, key]
        value[k] = total + left * best if found else total
        for a in range(rows.actions):
            if found and share[lock + a, key] >= 0:
                values[child + a, k] = as_element(value, -_NEVER)
