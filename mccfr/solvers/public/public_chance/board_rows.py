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
            here[k] = cells[bucket[k]]
    regret_matching(gathered, Rows(none, np.int64(actions), none, rows), sigma, none)


@part_njit
def pass_reach(board, street, player, reach, sigma, out):
    """out [n] = reach [n] times the strategy of each hand's row, one action's sigma; whether any of it is above 0."""
    alive = False
    count = board.count[player]
    if board.direct[street, player]:
        for k in range(count):
            out[k] = reach[k] * sigma[k]
            alive |= out[k] > 0
    else:
        local = board.local[street, player]
        for k in range(count):
            out[k] = reach[k] * sigma[local[k]]
            alive |= out[k] > 0
    return alive


@part_njit
def sum_rows(board, street, player, reach, total):
    """total [rows] = reach of the hands that share each row."""
    total[: board.rows[street, player]] = as_element(total, 0.0)
    local = board.local[street, player]
    for k in range(board.count[player]):
        total[local[k]] += reach[k]


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
            sum_here = np.float64(cells[bucket[k]]) + weight * (total[k] * sigma[k])
            cells[bucket[k]] = rounded(cells, sum_here, lane_bits(word, k))


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
            cells[bucket[k]] = max(cells[bucket[k]] + factor * gain[k], lowest)


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
def share_rows(values, weight, local, sigma, out, rows_out, count):
    """For hands that share rows: out[k] += sigma[row] · values[k], and rows_out[row] += weight[k] · values[k]."""
    for k in range(count):
        row = local[k]
        out[k] += sigma[row] * values[k]
        rows_out[row] += weight[k] * values[k]
