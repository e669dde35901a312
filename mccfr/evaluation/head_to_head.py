"""Head-to-head: what one strategy wins from another in the same game, on seeded boards, exact in the private cards.

Each side remembers its cards in its own buckets and knows its own bets, so that strategies on different abstractions
may meet; in all else their games must be the same.  Where betting trees differ, what a side takes the other's bets for
is drawn at a table (`mccfr.games.translation`); here all of it is expanded, with its probabilities
(`mccfr.evaluation.joint_tree`), and what is won are real chips.

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

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.joint_tree import JointTree, joint_tree, shared_tree
from mccfr.evaluation.same_game import check_same_game, same_tree
from mccfr.evaluation.units import Effort, Units, play_units, units_in
from mccfr.intervals import ratio95
from mccfr.policy.profile import Profile
from mccfr.rng import EVALUATION
from mccfr.solvers.public.played_walk import PlayedRows, new_play_scratch, played_walk
from mccfr.solvers.public.sampled_board import BoardSource, SampledBoard, seated
from mccfr.tables.row_tables import near_rows, row_tables
from mccfr.tables.strategy import BlockRows, row_starts
from mccfr.trees.streets import AT_DECISION, StreetTrees, street_members, street_trees

_BLOCKS = 8  # kernels are compiled anew for each number of tables: nearly all games get this many
_SEATINGS = 2
_Spans = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class HeadToHeadResult:
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


def head_to_head(
    one: Profile,
    other: Profile,
    boards: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> HeadToHeadResult:
    """Chips a hand that `one` wins from `other`, the mean over both seats.

    boards    how many boards are played; fewer where the game lists fewer, and then the result is exact
    progress  called after each board with the boards played and their number

    Raises `ValueError` for a game without cards beside its tree, fewer than two boards, a strategy that is none of its
    side's game, sides whose games differ in more than their buckets and the bets of their menus, and betting trees
    that meet at too many places; and as `play_units`.
    """
    if boards < 2:
        raise ValueError(f"boards = {boards}: at least 2 are needed, for an interval")
    check_same_game(one.game, other.game)
    sources = [BoardSource(side.game, np.float64, seed, purpose=EVALUATION, ordered=True) for side in (one, other)]
    for side in (one, other):
        check_strategy(side)
    listed = sources[0].listed
    meetings = _Meetings(SeatedPolicies(one, other), sources, same=one.game is other.game)
    played = boards if listed is None else min(boards, listed)
    if effort.seconds is not None:
        played = units_in(meetings, effort.seconds, effort.workers, least=2, most=listed)
    what = {"method": "head-to-head", "seed": seed}
    won, weight = play_units(meetings, played, effort, what=what, sides=(one, other), progress=progress).T
    mean, interval = ratio95(won, weight, listed)
    return HeadToHeadResult(mean, interval, played, seed)


class _Meetings(Units):
    """Boards on which two sides meet: (what the first one wins, the board's weight)."""

    fields = 2

    def __init__(self, table: "SeatedPolicies", sources: Sequence[BoardSource], *, same: bool) -> None:
        self._table, self._sources, self._same = table, sources, same

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """As `Units.play`."""
        dealt = seated_boards(self._sources, unit, same=self._same)
        (as_first, weight), (as_second, _) = (self._table.play(board, seating) for seating, board in enumerate(dealt))
        return np.array([(as_first - as_second) / _SEATINGS, weight])


def check_strategy(side: Profile) -> None:
    """Raise `ValueError` unless a side's tables are those of its game."""
    game = side.game
    shapes = [(int(buckets), int(slots)) for buckets, slots in zip(game.buckets, game.tree.row_slots, strict=True)]
    blocks = side.strategy.blocks
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


def seated_boards(sources: Sequence[BoardSource], number: int, *, same: bool) -> tuple[SampledBoard, SampledBoard]:
    """A board as it is with the first side in seat 0, and in seat 1; `same`: both sides have the same buckets."""
    own = sources[0].board(number)
    if same:
        return own, own
    others = sources[1].board(number)
    return seated(own, others), seated(others, own)


def _near_rows(side: Profile) -> list[BlockRows]:
    """The rows of each block of a side."""
    blocks = range(2 * side.game.tree.streets)
    return [near_rows(side.strategy.blocks[block], row_starts(side.game, block), _BLOCKS) for block in blocks]


class SeatedPolicies:
    """Two sides' policies, played against each other on one board after the other, in both seatings."""

    def __init__(self, one: Profile, other: Profile) -> None:
        """Raises `ValueError` where the sides' betting trees differ and meet at too many places (`joint_tree`)."""
        seats = (one, other), (other, one)
        if same_tree(one.game, other.game):
            shared = shared_tree(one.game.tree)
            meetings = [shared, shared]
        else:
            meetings = [joint_tree([side.game for side in seated_sides]) for seated_sides in seats]
        near = {id(side): _near_rows(side) for side in (one, other)}
        self._seatings = [
            _Seating(meeting, sides, [near[id(side)] for side in sides])
            for meeting, sides in zip(meetings, seats, strict=True)
        ]

    def play(self, board: SampledBoard, seating: int) -> tuple[float, float]:
        """Sums over pairs of hands on a board: chips that player 0 gets, and weights; side `seating` is player 0.

        board  in order of strength
        """
        return self._seatings[seating].play(board)


class _Seating:
    """Who sits where: player 0's side first."""

    def __init__(self, meeting: JointTree, sides: Sequence[Profile], rows: Sequence[Sequence[BlockRows]]) -> None:
        """`rows` are those of each block of the two sides, on their own buckets."""
        cards, blocks = sides[0].game.cards, range(len(rows[0]))
        self._trees = street_trees(meeting.tree)
        starts = [row_starts(sides[block % 2].game, block) for block in blocks]
        (first, stop, slots), width = _row_spans(self._trees, starts)
        self._played = PlayedRows(
            row_tables([rows[block % 2][block] for block in blocks], starts, _BLOCKS),
            first,
            stop,
            *_ways_in(meeting, self._trees, slots),
            np.zeros((2, width, cards.most_hands)),
        )
        self._scratch = new_play_scratch(self._trees, cards.most_hands, cards.deck_size)

    def play(self, board: SampledBoard) -> tuple[float, float]:
        """As `SeatedPolicies.play`."""
        won, weight = played_walk(self._trees, self._played, board, self._scratch)
        return float(won), float(weight)


def _row_spans(trees: StreetTrees, starts: Sequence[npt.NDArray[np.int64]]) -> tuple[_Spans, int]:
    """The rows of each street tree (first, stop, first slot, [2, U] each), and the most slots a player has in one.

    starts  of each block, the first slot of its rows, and the end of the last
    """
    count = len(trees.first) - 1
    first, stop = np.full((2, count), np.iinfo(np.int64).max), np.zeros((2, count), np.int64)
    slots, width = np.zeros((2, count), np.int64), 1
    tree_of, decides = np.repeat(np.arange(count), np.diff(trees.first)), trees.kind == AT_DECISION
    for block, start in enumerate(starts):
        player, own = block % 2, decides & (trees.rows.block == block)
        row = np.searchsorted(start, trees.rows.slot[own])
        np.minimum.at(first[player], tree_of[own], row)
        np.maximum.at(stop[player], tree_of[own], row + 1)
        known = np.unique(tree_of[own])
        slots[player, known] = start[first[player, known]]
        width = max(width, int((start[stop[player, known]] - slots[player, known]).max(initial=0)))
    return (np.minimum(first, stop), stop, slots), width


def _ways_in(
    meeting: JointTree, trees: StreetTrees, slots: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """`at` and `factor` of `PlayedRows`; `slots` [2, U] are the first ones of each player in each street tree."""
    tree_of = np.repeat(np.arange(len(trees.first) - 1), np.diff(trees.first))
    at, factor = np.zeros(len(tree_of), np.int64), np.ones(len(tree_of))
    decisions = np.flatnonzero(trees.kind == AT_DECISION)
    actions = trees.actions[decisions]
    parent = np.repeat(decisions, actions)
    sibling = np.arange(len(parent)) - np.repeat(np.cumsum(actions) - actions, actions)
    child = trees.first[tree_of[parent]] + trees.child[parent] + sibling
    node = street_members(meeting.tree)[child]
    at[child] = trees.rows.slot[parent] - slots[trees.player[parent], tree_of[parent]] + meeting.action[node]
    factor[child] = meeting.factor[node]
    return at, factor
