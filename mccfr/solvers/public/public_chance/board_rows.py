"""Rows of one decision node for all hands of a player on a board: strategies, reach, strategy sums, regrets.

Tables are [slot, bucket]: the hands of a board that have a row each then lie side by side (lossless games number their
buckets board by board), so that a node's rows are a few streams of vector instructions.  Where hands share rows, a row
is matched once a node and hands look it up.  `SampledBoard.direct` tells the cases apart.
"""

import numpy as np

from abstraction.kernels.jit import part_njit
from mccfr.rounding import lane_bits, rounded
from mccfr.solvers.minimisers import Rows, regret_matching
from mccfr.solvers.regret import as_element


@part_njit
def current_strategy(table, slot, actions, board, street, player, sigma, gathered):
    """Regret matching of all rows of a node on the board: sigma [actions, rows], in place.

    `table` [slots, buckets] holds regrets; `gathered` [actions, rows] is scratch.
    """
    rows, bucket, none = board.rows[street, player], board.bucket[street, player], np.int64(0)
    if board.direct[street, player] == 2:
        regret_matching(table, Rows(np.int64(slot), np.int64(actions), np.int64(bucket[0]), rows), sigma, none)
        return
    for a in range(actions):
        cells, here = table[slot + a], gathered[a]
        for k in range(rows):
            here[k] = cells[np.uint32(bucket[k])]
    regret_matching(gathered, Rows(none, np.int64(actions), none, rows), sigma, none)


@part_njit
def pass_reach(board, street, player, reach, sigma, out):
    """out [n] = reach [n] times the strategy of each hand's row, one action's sigma; whether any of it is above 0."""
    alive = False
    count = board.count[player]
    if board.direct[street, player]:
        for k in range(count):
            out[k] = reach[k] * sigma[k]
    else:
        local = board.local[street, player]
        for row in range(board.rows[street, player]):
            alive |= sigma[row] > 0
        if not alive:
            return False  # no row takes the action
        for k in range(count):
            out[k] = reach[k] * sigma[np.uint32(local[k])]
        alive = False
    for k in range(count):  # apart, so that it is compiled to vector instructions
        alive |= out[k] > 0
    return alive


@part_njit
def sum_rows(board, street, player, reach, total, parts):
    """total [rows] = reach of the hands that share each row; `parts` as of `share_rows`."""
    counts = board.count[player], board.rows[street, player]
    share_rows(reach, None, board.local[street, player], None, total, parts, total, counts)


@part_njit
def add_sums(table, slot, board, street, player, step, total, sigma):
    """Strategy sums of one action: table[slot, bucket] += weight · total · sigma by row, added in float64.

    step  (weight float64, word uint64: random bits that float32 sums are rounded by)
    """
    rows, bucket = board.rows[street, player], board.bucket[street, player]
    weight, word, cells = np.float64(step[0]), step[1], table[slot]
    if board.direct[street, player] == 2:
        here = cells[bucket[0] : bucket[0] + rows]
        for k in range(rows):
            here[k] = rounded(here, np.float64(here[k]) + weight * (total[k] * sigma[k]), lane_bits(word, k))
    else:
        for k in range(rows):
            place = np.uint32(bucket[k])
            sum_here = np.float64(cells[place]) + weight * (total[k] * sigma[k])
            cells[place] = rounded(cells, sum_here, lane_bits(word, k))


@part_njit
def add_regrets(table, slot, board, street, player, step, gain):
    """Regrets of one action: table[slot, bucket] += weight · gain by row; step = (weight, floored: not below 0)."""
    rows, bucket = board.rows[street, player], board.bucket[street, player]
    factor, zero, cells = as_element(table, step[0]), as_element(table, 0.0), table[slot]
    lowest = zero if step[1] else as_element(table, -np.inf)
    if board.direct[street, player] == 2:
        here = cells[bucket[0] : bucket[0] + rows]
        for k in range(rows):
            here[k] = max(here[k] + factor * gain[k], lowest)
    else:
        for k in range(rows):
            place = np.uint32(bucket[k])
            cells[place] = max(cells[place] + factor * gain[k], lowest)


# --- values, hand by hand: small, so that each loop is compiled to vector instructions before callers take it in ---


@part_njit
def add_values(values, out, count):
    """out[k] += values[k] for the first `count` hands."""
    for k in range(count):
        out[k] += values[k]


@part_njit
def copy_values(values, out, count):
    """out[k] = values[k] for the first `count` hands."""
    for k in range(count):
        out[k] = values[k]


@part_njit
def take_values(values, out, count):
    """out[k] -= values[k] for the first `count` rows."""
    for k in range(count):
        out[k] -= values[k]


@part_njit
def add_shares(values, sigma, out, count):
    """out[k] += sigma[k] · values[k] for the first `count` hands."""
    for k in range(count):
        out[k] += sigma[k] * values[k]


@part_njit
def weigh_gains(values, mean, weight, out, count):
    """out[k] = weight[k] · (values[k] - mean[k]) for the first `count` hands."""
    for k in range(count):
        out[k] = weight[k] * (values[k] - mean[k])


@part_njit
def share_rows(values, weight, local, sigma, out, parts, rows_out, counts):
    """For hands that share rows: out[k] += sigma[row] · values[k], and rows_out[row] = sum of weight[k] · values[k].

    parts   [4, rows] scratch: hands that follow each other share rows, and a sum that is read as soon as it was written
            has to be waited for
    counts  (hands, rows)
    """
    count, rows = counts
    one, two, three, four = parts[0], parts[1], parts[2], parts[3]
    for part in (one, two, three, four):
        for row in range(rows):
            part[row] = as_element(out, 0.0)
    whole = count - count % 4
    for k in range(0, whole, 4):
        _share_hand(k, values, weight, local, sigma, out, one)
        _share_hand(k + 1, values, weight, local, sigma, out, two)
        _share_hand(k + 2, values, weight, local, sigma, out, three)
        _share_hand(k + 3, values, weight, local, sigma, out, four)
    for k in range(whole, count):
        _share_hand(k, values, weight, local, sigma, out, one)
    for row in range(rows):
        rows_out[row] = (one[row] + two[row]) + (three[row] + four[row])


@part_njit
def _share_hand(k, values, weight, local, sigma, out, part):
    """One hand of `share_rows`; without sigma, None, it has no share in `out`; without weight, None, it weighs 1."""
    row = np.uint32(local[k])
    if sigma is not None:
        out[k] += sigma[row] * values[k]
    part[row] += values[k] if weight is None else weight[k] * values[k]
