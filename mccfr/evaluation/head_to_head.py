"""Head-to-head: what one strategy wins from another in the same game, on seeded boards, exact in the private cards.

Each side remembers its cards in its own buckets, so that strategies on different abstractions may meet; in all else
their games must be the same.

On each full board both ranges are carried down the betting tree as vectors, in both seatings, and every pair of hands
meets at every terminal; only the boards are sampled.  (Range against range on sampled public cards, as Johanson, Waugh,
Bowling & Zinkevich 2011 do for best responses.)

A board weighs as much as the pairs of hands it lets meet: a constant in whole hold'em, not where the game begins with
ranges.  The mean is therefore the ratio of two sums over boards, with the interval of one (`mccfr.intervals.ratio95`).
Listed boards are drawn without repetition; when all have been drawn the mean is exact.  Boards come from a stream of
their own, because public chance sampling, with the same seed, would have been trained on them.

Strategies are read where they lie, in memory or in mapped files: of each street tree that is walked, the rows of the
buckets on the board, in whatever form they are kept.  So no more of a strategy is in memory at a time than that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import allocating_njit, inline_njit, part_njit
from mccfr.evaluation.row_tables import RowTables, gather_rows, near_rows, row_tables
from mccfr.evaluation.same_game import check_same_game
from mccfr.games.game import Game
from mccfr.intervals import ratio95
from mccfr.rng import EVALUATION
from mccfr.solvers.public.board_rows import copy_values, pass_reach
from mccfr.solvers.public.range_lanes import (
    LANES,
    Lanes,
    add_product_lanes,
    fill_lanes,
    joint_reach,
    lane_rows,
    new_lanes,
)
from mccfr.solvers.public.sampled_board import BoardSource, SampledBoard, seated
from mccfr.solvers.public.sampled_traversal import NOWHERE
from mccfr.tables.strategy import Rows, RowSource, row_starts
from mccfr.trees.streets import AT_DECISION, AT_EXIT, AT_FOLD, AT_SHOWDOWN, StreetTrees, street_trees

_BLOCKS = 8  # kernels are compiled anew for each number of tables: nearly all games get this many
_SEATINGS = 2


@dataclass(frozen=True)
class Side:
    """A strategy and the game it is for, whose cards say which bucket each of its hands has.

    `prepared` is what an evaluation method has made of the game before, for other strategies (`Method.prepared`).
    """

    game: Game
    strategy: RowSource
    prepared: Any = None


@dataclass(frozen=True)
class HeadToHead:
    """What the first side wins.

    mean_chips  chips a hand, the mean over both seats
    ci95_chips  95 % interval for it by Student's t, from how boards differ; of no width when every board was played
    boards      boards played, each in both seats
    seed        of the boards
    """

    mean_chips: float
    ci95_chips: tuple[float, float]
    boards: int
    seed: int


class _Spans(NamedTuple):
    """Which rows of its blocks each street tree has, for either player.  U trees.  Rows are numbered depth first.

    first, stop  [2, U] int64  rows first .. stop-1
    slots        [2, U] int64  first slot of them
    """

    first: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]


class _Pending(NamedTuple):
    """Decisions where the hand may end, up to LANES of them for each block; B blocks, n hands.

    Ranges are those of whoever acts and of the other player, in order of strength; `share` and `chips` are the
    strategy by row and the payoff to player 0 of a fold (0) and of a showdown (1), `chips` 0 where there is none.
    """

    count: npt.NDArray[np.int64]  # type: ignore[assignment]  # [B]
    own: npt.NDArray[np.float64]  # [B, n+1, LANES]
    other: npt.NDArray[np.float64]  # [B, n+1, LANES]
    share: npt.NDArray[np.float64]  # [B, 2, LANES, n]
    chips: npt.NDArray[np.float64]  # [B, 2, LANES]


class _Scratch(NamedTuple):
    """Room for one street tree a street.  N members, W slots of a player in one street tree, n hands, S streets.

    member_first  [S] int64     first row of a street in what has N rows
    tree, exit    [S] int64     the stack: street tree of each street, and the member that it was left by
    range_of      [2, N] int64  row in `reach` of each player's range at a member; NOWHERE: one of them is never there
    reach         [N+2, n]      ranges behind each action, by its member; the last two rows are those of the start
    sigma         [2, W, n]     each player's strategy in the street tree, by slot and bucket on the board
    met, won      [n, LANES]    reach times what is met and what is won, by row
    """

    member_first: npt.NDArray[np.int64]
    tree: npt.NDArray[np.int64]
    exit: npt.NDArray[np.int64]
    range_of: npt.NDArray[np.int64]
    reach: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.float64]
    met: npt.NDArray[np.floating]
    won: npt.NDArray[np.floating]
    lanes: Lanes
    pending: _Pending


def _new_scratch(trees: StreetTrees, width: int, hands: int, cards: int) -> _Scratch:
    streets, members = len(trees.members), int(trees.members.sum())
    blocks = 2 * streets
    pending = _Pending(
        np.zeros(blocks, np.int64),
        lane_rows(blocks * (hands + 1)).reshape(blocks, hands + 1, LANES),
        lane_rows(blocks * (hands + 1)).reshape(blocks, hands + 1, LANES),
        np.zeros((blocks, 2, LANES, hands)),
        np.zeros((blocks, 2, LANES)),
    )
    return _Scratch(
        np.cumsum(trees.members) - trees.members,
        np.zeros(streets, np.int64),
        np.zeros(streets, np.int64),
        np.zeros((2, members), np.int64),
        np.zeros((members + 2, hands)),
        np.zeros((2, width, hands)),
        lane_rows(hands),
        lane_rows(hands),
        new_lanes(hands, cards, np.float64),
        pending,
    )


# --- kernels ---


@part_njit
def _load_lane(board, player, reach, out, lane):
    """Copy a range [n] of a player into a lane, in order of strength."""
    order = board.order[player]
    for k in range(board.count[player]):
        out[k, lane] = reach[order[k]]


@part_njit
def _products(board, street, player, own, lanes, met, won):
    """Sums over the hands of each row of reach times what it meets, and what it wins: met and won [rows, LANES].

    own [n, LANES] are the player's ranges, `lanes` what his hands meet, both in order of strength.
    """
    order, local = board.order[player], board.local[street, player]
    met[: board.rows[street, player]] = 0.0
    won[: board.rows[street, player]] = 0.0
    for k in range(board.count[player]):
        row = np.int64(local[order[k]])
        add_product_lanes(met, row, own, k, lanes.met, k)
        add_product_lanes(won, row, own, k, lanes.won, k)


@part_njit
def _settle(board, block, pending, scratch):
    """Chips that player 0 gets at the pending decisions of a block, summed over pairs of hands; none is left."""
    street, player, total = block // 2, block % 2, 0.0
    own, other, share = pending.own[block], pending.other[block], pending.share[block]
    fill_lanes(board, player, True, other, scratch.lanes)
    _products(board, street, player, own, scratch.lanes, scratch.met, scratch.won)
    for kind in range(2):
        table = scratch.won if kind else scratch.met
        for i in range(pending.count[block]):
            chips, found = pending.chips[block, kind, i], 0.0
            if chips != 0:
                row = share[kind, i]
                for k in range(board.rows[street, player]):
                    found += row[k] * table[k, i]
                total += chips * found
    pending.count[block] = 0
    return total


@inline_njit
def _descend(trees, spans, tables, board, scratch, level):
    """Carry both ranges down a street tree; chips that player 0 gets at decisions that were settled meanwhile."""
    tree = scratch.tree[level]
    first, stop = trees.first[tree], trees.first[tree + 1]
    base, range_of, reach = scratch.member_first[level], scratch.range_of, scratch.reach
    pending, settled = scratch.pending, 0.0
    for player in range(2):
        span = spans.first[player, tree], spans.stop[player, tree]
        buckets = board.bucket[level, player, : board.rows[level, player]]
        gather_rows(tables, 2 * level + player, span, buckets, scratch.sigma[player])
    for member in range(first, stop):
        m = base + member - first
        if trees.kind[member] != AT_DECISION:
            continue
        player, actions, child = trees.player[member], trees.actions[member], trees.child[member]
        block, here, opposite = trees.block[member], range_of[player, m], range_of[1 - player, m]
        alive, ends, lane = here != NOWHERE, False, pending.count[block]  # where one range has ended both have
        rows = board.rows[level, player]
        sigma, at_slot = scratch.sigma[player], trees.slot[member] - spans.slots[player, tree]
        if alive:
            pending.chips[block, :, lane] = 0.0
        for a in range(actions):
            kind, at, passed = trees.kind[first + child + a], base + child + a, alive
            if alive and kind in (AT_FOLD, AT_SHOWDOWN):
                showdown = np.int64(kind == AT_SHOWDOWN)
                sign = -1.0 if showdown and player == 1 else 1.0
                pending.chips[block, showdown, lane] = sign * trees.chips[first + child + a]
                copy_values(sigma[at_slot + a], pending.share[block, showdown, lane], rows)
                ends = True
            elif alive:
                passed = pass_reach(board, level, player, reach[here], sigma[at_slot + a], reach[at])
            range_of[player, at] = at if passed else NOWHERE
            range_of[1 - player, at] = opposite if passed else NOWHERE
        if ends:
            _load_lane(board, player, reach[here], pending.own[block], lane)
            _load_lane(board, 1 - player, reach[opposite], pending.other[block], lane)
            pending.count[block] += 1
            if lane + 1 == LANES:
                settled += _settle(board, block, pending, scratch)
    return settled


@allocating_njit
def play_board(trees, spans, tables, board, scratch):
    """Chips player 0 gets on a board, summed over pairs of hands with their weights; `scratch` is changed in place.

    `tables` (`RowTables`) holds the rows of each block: each player's are those of his strategy.
    """
    member_first, tree, left, range_of = scratch.member_first, scratch.tree, scratch.exit, scratch.range_of
    start = scratch.reach.shape[0] - 2
    for player in range(2):
        copy_values(board.weight[player], scratch.reach[start + player], board.count[player])
        range_of[player, 0] = start + player
    level, entering, total = np.int64(0), True, 0.0
    tree[0] = 0
    while True:
        first, stop = trees.first[tree[level]], trees.first[tree[level] + 1]
        if entering:
            total += _descend(trees, spans, tables, board, scratch, level)
            left[level] = first
        base, member = member_first[level] - first, left[level]
        while member < stop and (trees.kind[member] != AT_EXIT or range_of[0, base + member] == NOWHERE):
            member += 1
        entering = member < stop
        if entering:
            left[level] = member + 1
            level += 1
            tree[level] = trees.below[member]
            for player in range(2):
                range_of[player, member_first[level]] = range_of[player, base + member]
        elif level > 0:
            level -= 1
        else:
            break
    for block in range(2 * trees.members.shape[0]):
        total += _settle(board, block, scratch.pending, scratch)
    return total


# --- functions ---


def head_to_head(
    one: Side,
    other: Side,
    boards: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> HeadToHead:
    """Chips a hand that `one` wins from `other`, the mean over both seats.

    boards    how many boards are played; fewer where the game lists fewer, and then the result is exact
    progress  called after each board with the boards played and their number

    Raises `ValueError` for a game without cards beside its tree, fewer than two boards, a strategy that is none of its
    side's game, or sides whose games differ in more than their buckets.
    """
    if boards < 2:
        raise ValueError(f"boards = {boards}: at least 2 are needed, for an interval")
    check_same_game(one.game, other.game)
    sources = [BoardSource(side.game, np.float64, seed, purpose=EVALUATION) for side in (one, other)]
    for side in (one, other):
        _check_strategy(side)
    listed = sources[0].listed
    played = boards if listed is None else min(boards, listed)
    trees = street_trees(one.game.tree)
    spans, width = _row_spans(one.game, trees)
    scratch = _new_scratch(trees, width, one.game.cards.most_hands, one.game.cards.deck_size)
    rows = [_near_rows(side) for side in (one, other)]
    starts = [row_starts(one.game, block) for block in range(len(rows[0]))]
    seatings = [_seated_tables(rows[first], rows[1 - first], starts) for first in range(_SEATINGS)]
    won, weight = np.zeros(played), np.zeros(played)
    for number in range(played):
        dealt = _seated_boards(sources, number, same=one.game is other.game)
        as_first, as_second = (
            play_board(trees, spans, tables, board, scratch) for tables, board in zip(seatings, dealt, strict=True)
        )
        won[number] = (as_first - as_second) / _SEATINGS
        weight[number] = joint_reach(dealt[0], scratch.pending.own[0], scratch.lanes)
        if progress is not None:
            progress(number + 1, played)
    mean, interval = ratio95(won, weight, listed)
    return HeadToHead(mean, interval, played, seed)


def _check_strategy(side: Side) -> None:
    game = side.game
    shapes = [(int(buckets), int(slots)) for buckets, slots in zip(game.buckets, game.tree.row_slots, strict=True)]
    blocks = [side.strategy.rows(block) for block in range(side.strategy.blocks)]
    found = [rows.cells.shape for rows in blocks]
    padded = [
        (shape[0], max(shape[1], width)) if rows.sums else shape
        for rows, shape, (_, width) in zip(blocks, shapes, found, strict=False)
    ]
    if len(blocks) != len(shapes) or found != padded:
        raise ValueError(
            f"a strategy with tables [bucket, slot] of {found} is none of {game.name}: {shapes} are needed; a strategy "
            "goes with the game it was made for"
        )


def _seated_boards(sources: Sequence[BoardSource], number: int, *, same: bool) -> tuple[SampledBoard, SampledBoard]:
    """A board as it is with the first side in seat 0, and in seat 1; `same`: both sides have the same buckets."""
    own = sources[0].board(number)
    if same:
        return own, own
    others = sources[1].board(number)
    return seated(own, others), seated(others, own)


def _near_rows(side: Side) -> list[Rows]:
    """The rows of each block of a side."""
    blocks = range(2 * side.game.tree.streets)
    return [near_rows(side.strategy.rows(block), row_starts(side.game, block), _BLOCKS) for block in blocks]


def _seated_tables(first: Sequence[Rows], second: Sequence[Rows], starts: Sequence[npt.NDArray[np.int64]]) -> RowTables:
    """The rows of both seats, block by block: even blocks are the first player's."""
    return row_tables([(first, second)[block % 2][block] for block in range(len(first))], starts, _BLOCKS)


def _row_spans(game: Game, trees: StreetTrees) -> tuple[_Spans, int]:
    """The rows of each street tree, and the most slots that a player has in one."""
    count = len(trees.first) - 1
    first, stop = np.full((2, count), np.iinfo(np.int64).max), np.zeros((2, count), np.int64)
    slots, width = np.zeros((2, count), np.int64), 1
    tree_of, decides = np.repeat(np.arange(count), np.diff(trees.first)), trees.kind == AT_DECISION
    for block in range(2 * game.tree.streets):
        player, starts = block % 2, row_starts(game, block)
        own = decides & (trees.block == block)
        row = np.searchsorted(starts, trees.slot[own])
        np.minimum.at(first[player], tree_of[own], row)
        np.maximum.at(stop[player], tree_of[own], row + 1)
        known = np.unique(tree_of[own])
        slots[player, known] = starts[first[player, known]]
        width = max(width, int((starts[stop[player, known]] - slots[player, known]).max(initial=0)))
    return _Spans(np.minimum(first, stop), stop, slots), width
