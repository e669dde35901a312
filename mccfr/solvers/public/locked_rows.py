"""Applies node locks (fixed action probabilities at a decision) in walks of whole ranges.

A hand whose actions are all locked plays them, and their regret increments are 0.  If only some are locked, these are
barred (probability 0), and the hand plays its learnt strategy over the others.  Both enter the average strategy even if
the hand does not reach the decision.  A best response keeps locks too.

Locks are set by hand, or by bucket.  Kernels read them from `PublicTree.locks`: `share` [locked actions, hands or
buckets] holds probabilities, -1 for a free action.

These arguments are the same in all kernels here:

public  PublicTree with locks
player  player to act at the decision
board   index of the board in `public.ranges`
lock    row of the decision's first action in `public.locks.share`
rows    Rows: `actions` of the decision, `count` hands of the player on the board
"""

from abstraction.kernels.jit import part_njit
from mccfr.solvers.regret import as_element

_LEAST = 1e-20  # reach of locked rows that no hand reaches, so that they are in the average; 16-bit cells hold 1e-30
_NEVER = 1e30  # chips; the negative is below any value


@part_njit
def _key(public, entry):
    """Return the column of `public.locks.share` for a hand on a board: the hand's number, or its bucket.

    entry  index in the arrays `public.ranges.hand` and `bucket`, which list the hands of all boards
    """
    return public.ranges.hand[entry] if public.locks.by_hand else public.ranges.bucket[entry]


@part_njit
def _given(share, lock, actions, key):
    """Return how many of a decision's actions are locked (fixed) for one hand or bucket.

    share    [., K] locked probabilities of K hands or buckets, -1 for a free action
    lock     row of the decision's first action in it
    actions  number of actions of the decision
    key      index of the hand or bucket
    """
    count = 0
    for a in range(actions):
        count += share[lock + a, key] >= 0  # -1 is free
    return count


@part_njit
def hold(public, player, board, lock, rows, sigma, offset):
    """Put a player's locked (fixed) probabilities at a decision into sigma[offset : offset+actions].

    Free actions share the rest in proportion to their probabilities in sigma, or evenly if these are 0.

    sigma  [., >= count] strategy of each hand; row offset+a is for action a
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
    """Copy `reach` to `out`, and raise it to at least 1e-20 for hands with a locked action at a decision.

    A locked action has a fixed probability.  So these hands' strategies enter the average even if no hand reaches the
    decision.

    reach, out  [>= count] by hand
    """
    share, first = public.locks.share, public.ranges.first[player, board]
    for k in range(rows.count):
        out[k] = reach[k]
        if _given(share, lock, rows.actions, _key(public, first + k)) > 0:
            out[k] = max(reach[k], as_element(out, _LEAST))


@part_njit
def level(public, player, board, lock, rows, values, child, total):
    """Set each hand's values of locked actions to the decision's value, so that their gain is 0.

    A locked action has a fixed probability.

    values  [., >= count] by hand; row child+a is the value of action a
    total   [>= count] value of the decision for each hand
    """
    share, first = public.locks.share, public.ranges.first[player, board]
    for a in range(rows.actions):
        for k in range(rows.count):
            if share[lock + a, _key(public, first + k)] >= 0:
                values[child + a, k] = total[k]


@part_njit
def respond_locked(public, player, board, lock, rows, values, child, value):
    """Set value [hand] of hands with locked (fixed) actions to that of their best response.

    Such a hand plays its locked probabilities and its best free action.  Other hands keep their value.  If free actions
    remain, the values of the locked ones become -1e30 chips, so that later steps do not choose them.

    values  [., >= count] by hand; row child+a is the value of action a
    value   [>= count] value of the decision for each hand, changed in place
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
