"""Locked rows in walks of whole ranges: applies `mccfr.trees.compiled.Locks` from `PublicTree.locks`.

A hand whose actions are all locked plays them and gains nothing by any.  If only some are barred, the hand plays its
learnt strategy over the others.  Both enter the average even if the hand does not reach the decision.  A best response
keeps locks too.
"""

from abstraction.kernels.jit import part_njit
from mccfr.solvers.regret import as_element

_LEAST = 1e-20  # reach of locked rows that no hand reaches, so that they are in the average; 16-bit cells hold 1e-30
_NEVER = 1e30  # chips; the negative is below any value


@part_njit
def _key(public, entry):
    """Return the index of a column in the table of locked probabilities."""
    return public.ranges.hand[entry] if public.locks.by_hand else public.ranges.bucket[entry]


@part_njit
def _given(share, lock, actions, key):
    """Return the number of locked actions of a row."""
    count = 0
    for a in range(actions):
        count += share[lock + a, key] >= 0  # -1 is free
    return count


@part_njit
def hold(public, player, board, lock, rows, sigma, offset):
    """Put locked probabilities into sigma[offset : offset+actions].

    Free actions share the rest in proportion.
    """
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        key, free, remaining = _key(public, first + k), as_element(sigma, 0.0), as_element(sigma, 1.0)
        locked_count = _given(share, lock, rows.actions, key)
        if locked_count == 0:
            continue
        for a in range(rows.actions):
            if share[lock + a, key] < 0:
                free += sigma[offset + a, k]
            else:
                remaining -= share[lock + a, key]
        for a in range(rows.actions):
            if share[lock + a, key] >= 0:
                sigma[offset + a, k] = share[lock + a, key]
            elif free > 0:
                sigma[offset + a, k] *= remaining / free
            else:
                sigma[offset + a, k] = remaining / as_element(sigma, rows.actions - locked_count)


@part_njit
def seen(public, player, board, lock, rows, reach, out):
    """Set `out` to reach, with a small minimum in rows with locked actions.

    So these rows enter the average even if no hand reaches them.
    """
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        out[k] = reach[k]
        if _given(share, lock, rows.actions, _key(public, first + k)) > 0:
            out[k] = max(reach[k], as_element(out, _LEAST))


@part_njit
def level(public, player, board, lock, rows, values, child, total):
    """Set the values of locked actions to the row's value, so that their regret is 0."""
    share, first = public.locks.share, public.ranges.first[player, board]
    for a in range(rows.actions):
        for k in range(rows.count):
            if share[lock + a, _key(public, first + k)] >= 0:
                values[child + a, k] = total[k]


@part_njit
def respond_locked(public, player, board, lock, rows, values, child, value):
    """Set the best-response value of rows with locked actions; other rows keep theirs.

    The values of the barred actions become very negative, so that later steps do not choose them.
    """
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        key, has_free, total = _key(public, first + k), False, as_element(value, 0.0)
        locked_count = _given(share, lock, rows.actions, key)
        if locked_count == 0:
            continue
        best, remaining = total, as_element(value, 1.0)
        for a in range(rows.actions):
            if share[lock + a, key] < 0:
                best = max(best, values[child + a, k]) if has_free else values[child + a, k]
                has_free = True
            else:
                total += share[lock + a, key] * values[child + a, k]
                remaining -= share[lock + a, key]
        value[k] = total + remaining * best if has_free else total
        for a in range(rows.actions):
            if has_free and share[lock + a, key] >= 0:
                values[child + a, k] = as_element(value, -_NEVER)
