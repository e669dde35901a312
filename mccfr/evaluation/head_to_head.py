"""Head-to-head: chips one strategy wins from another, on sampled boards and over all hands.

The two strategies ("sides") may have different card abstractions and bet sizes; otherwise their games must be equal. If
the betting trees differ, all translations of a bet are expanded with their probabilities
(`mccfr.evaluation.joint_tree`). Results are real chips.

On each full board both ranges are walked through the betting tree as vectors. That is done twice, with each side once
as player 0. Every pair of hands meets at every terminal; only boards are sampled (Johanson, Waugh, Bowling & Zinkevich
2011 do this for best responses).

A board's weight is the weight of the possible pairs of hands: constant in full-deck hold'em, but not for games that
begin with ranges. The mean is therefore a ratio of two sums over boards (`mccfr.common.intervals.ratio95`). In a game
that lists its boards, they are drawn without repetition; with all of them the mean is exact. The random stream differs
from that of public chance sampling, so boards are not those of training.

Large strategies are read in place, from memory or mapped files, and only the probabilities that a board needs. Small
ones are copied as probabilities.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION
from mccfr.evaluation.compatible_games import check_same_game, same_tree
from mccfr.evaluation.joint_tree import JointTree, joint_tree, shared_tree
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.played_walk import PlayedRows, new_play_scratch, played_walk
from mccfr.solvers.public.sampled_board import BoardSource, SampledBoard, both_buckets
from mccfr.tables.row_tables import expanded_rows, row_tables
from mccfr.tables.strategy import BlockRows, row_starts
from mccfr.trees.street_trees import AT_DECISION, StreetTrees, street_members, street_trees

_BLOCKS = 8  # kernels compile for each number of tables; padding to 8 gives nearly all games the same
_SEATINGS = 2
_Spans = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class HeadToHeadResult:
    """Result of a head-to-head: chips that the first strategy wins from the second.

    mean_chips  chips per hand, the mean over both seats
    ci95_chips  95 % interval of it by Student's t over boards; of zero width if every board was played
    boards      number of boards, each played in both seats
    """

    mean_chips: float
    ci95_chips: tuple[float, float]
    boards: int


def head_to_head(
    first: Profile,
    second: Profile,
    boards: int = 1000,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> HeadToHeadResult:
    """Return the chips per hand of poker that `first` wins from `second`, the mean over both seats.

    boards  number of full boards to draw. If the game lists its boards and has no more than that, all are played and
            the result is exact
    seed    seed of the drawn boards
    effort  number of processes, time budget (which replaces `boards`) and journal file for resuming

    Raises `ValueError` for a game that has no cards or has them in its tree, and for fewer than two boards. Also for a
    strategy that does not fit its game, and for games that differ in more than buckets and bet sizes. Also if both
    betting trees together are too large, or if the journal belongs to another evaluation. Raises `OSError` if the
    journal cannot be read or written, `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
    """
    check_same_game(first.game, second.game)
    meetings = _Meetings(first, second, seed)
    won, weight = run_samples(meetings, boards, effort).T
    return HeadToHeadResult(*ratio95(won, weight, meetings.most), len(won))


class _Meetings(SampledEvaluation):
    """Runs a head-to-head of two strategies, board by board.

    A sample is one full board. Its result is two sums over all pairs of hands: the first strategy's chips times the
    pair's weight, and the weight. A pair's weight is the product of both range weights.
    """

    fields = 2

    def __init__(self, one: Profile, other: Profile, seed: int) -> None:
        self.sides, self.identity_fields = (one, other), {"method": "head-to-head", "seed": seed}
        games = one.game, other.game
        self._sources = [BoardSource(game, np.float64, seed, purpose=EVALUATION, ordered=True) for game in games]
        for side in self.sides:
            check_strategy(side)
        self.most = self._sources[0].listed
        self._table, self._same = PolicyPair(one, other), one.game is other.game

    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Return [2] the first strategy's chips on one board, and the board's weight.

        Both are sums over pairs of hands. The chips are multiplied by the pair's weight, and are the mean over both
        seats.

        sample  number of the board
        """
        dealt = boards_in_both_seats(self._sources, sample, same=self._same)
        (as_first, weight), (as_second, _) = (self._table.play(board, seating) for seating, board in enumerate(dealt))
        return np.array([(as_first - as_second) / _SEATINGS, weight])


def check_strategy(side: Profile) -> None:
    """Raise `ValueError` unless the shapes of a strategy's tables fit its game.

    side  the game and the strategy
    """
    game = side.game
    shapes = [(int(buckets), int(slots)) for buckets, slots in zip(game.buckets, game.tree.row_slots, strict=True)]
    blocks = side.strategy.blocks
    stored = [rows.cells.shape for rows in blocks]
    padded = [
        (shape[0], max(shape[1], width)) if rows.sums else shape
        for rows, shape, (_, width) in zip(blocks, shapes, stored, strict=False)
    ]
    if len(blocks) != len(shapes) or stored != padded:
        raise ValueError(
            f"the strategy has tables [bucket, slot] of the shapes {stored}, and {game.name} needs {shapes}: use a "
            "strategy with the game that it was trained for"
        )


def boards_in_both_seats(
    sources: Sequence[BoardSource], number: int, *, same: bool
) -> tuple[SampledBoard, SampledBoard]:
    """Return a board twice: with the first side in seat 0, then with the first side in seat 1.

    The sides are two strategies that may have different buckets. On each returned board a hand has the buckets of the
    side that sits there.

    sources  two sources of the same boards: with the first side's buckets, and with the second side's
    number   number of the board to draw
    same     True if both sides have the same buckets
    """
    own = sources[0].board(number)
    if same:
        return own, own
    others = sources[1].board(number)
    return both_buckets(own, others), both_buckets(others, own)


def _expanded_rows(side: Profile) -> list[BlockRows]:
    """Return a strategy's tables, one for each street and player.

    Small tables are converted to float64 probabilities; large ones are read in place.

    side  the game and the strategy
    """
    blocks = range(2 * side.game.tree.streets)
    return [expanded_rows(side.strategy.blocks[block], row_starts(side.game, block)) for block in blocks]


class PolicyPair:
    """Two policies that play each other on one board at a time, each in both seats."""

    def __init__(self, one: Profile, other: Profile) -> None:
        """Prepare the policies `one` and `other`, each with its game, to play each other in both seats.

        If their betting trees differ, a joint tree with the actions of both is built. Raises `ValueError` if it has too
        many nodes.
        """
        seats = (one, other), (other, one)
        if same_tree(one.game, other.game):
            shared = shared_tree(one.game.tree)
            meetings = [shared, shared]
        else:
            meetings = [joint_tree([side.game for side in seated_sides]) for seated_sides in seats]
        near = {id(side): _expanded_rows(side) for side in (one, other)}
        self._seatings = [
            _Seating(meeting, sides, [near[id(side)] for side in sides])
            for meeting, sides in zip(meetings, seats, strict=True)
        ]

    def play(self, board: SampledBoard, seating: int) -> tuple[float, float]:
        """Play all pairs of hands on a board; return sums of player 0's chips and of weights.

        The chips of a pair are multiplied by its weight, the product of both range weights.

        board    full board with both players' hands, in order of strength
        seating  0: the first policy is player 0; 1: the second policy is player 0
        """
        return self._seatings[seating].play(board)


class _Seating:
    """Two policies with their seats, and arrays for playing them against each other on a board."""

    def __init__(self, meeting: JointTree, sides: Sequence[Profile], rows: Sequence[Sequence[BlockRows]]) -> None:
        """Prepare the walk of the joint tree of two policies.

        meeting  joint tree: a betting tree with the actions of both policies
        sides    both policies with their games, player 0's first
        rows     both policies' strategy tables, player 0's first, each for every street and player
        """
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
        """Play all pairs of hands on a board; return sums of player 0's chips and of weights.

        The chips of a pair are multiplied by its weight, the product of both range weights.
        """
        won, weight = played_walk(self._trees, self._played, board, self._scratch)
        return float(won), float(weight)


def _row_spans(trees: StreetTrees, starts: Sequence[npt.NDArray[np.int64]]) -> tuple[_Spans, int]:
    """Return where each player's decisions lie in its strategy tables, by street tree.

    A street tree is the part of the betting tree on one street after one line; there are U of them. In a table, a row
    is one decision and a slot is one action of a row. The first result is (first row, row after the last, first slot),
    each [2, U] by player. The second is the largest number of slots of one player in a street tree.

    trees   all street trees of the joint betting tree
    starts  for each street and player: the first slot of each row, and the end of the last row
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
        used = np.unique(tree_of[own])
        slots[player, used] = start[first[player, used]]
        width = max(width, int((start[stop[player, used]] - slots[player, used]).max(initial=0)))
    return (np.minimum(first, stop), stop, slots), width


def _ways_in(
    meeting: JointTree, trees: StreetTrees, slots: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the table index of the action into each node of the street trees, and a factor.

    A street tree is the part of the betting tree on one street after one line; all U of them have M nodes. The index
    [M] counts actions of the acting player in its strategy table, from the player's first one in the street tree. The
    factor [M] is the probability that the other player translates the action into the action of its own tree for which
    the node stands. The root of a street tree has index 0 and factor 1.

    meeting  joint betting tree of the two players
    trees    its street trees
    slots    [2, U] index in each player's table of its first action in each street tree
    """
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
