"""Self-consistency: gain of the best single deviations from a policy, in chips per hand by street.

At a decision each hand plays its bucket's strategy. Action values assume that both players continue by the policy,
with the opponent's range at that decision. Weighted by the policy's own reach, a decision loses:

total     gain of the best action for each hand and board over the policy's mix
training  the part of it that the best action for the bucket gains over the mix; more training could win it
buckets   the rest, because hands of one bucket need different actions

The total is the positive immediate counterfactual regret of Zinkevich, Johanson, Bowling & Piccione 2007, weighted
by own reach. Zero everywhere is necessary for an equilibrium but not sufficient. Only single deviations are
considered, so the sum over decisions is no bound on exploitability.

If boards are listed, one walk of the public tree gives exact figures. Full-deck hold'em is sampled by boards of one
street, each with all later cards. Boards are drawn in strata of four (`strata`): two choose actions that span boards
(for buckets, and for hand classes before the flop), two score them. Separate boards keep the training part, and all
preflop losses, at most the true values in expectation; the buckets part is then at least its true value. On earlier
streets with a board only the training part is measured.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards
from mccfr.evaluation.board_game import renumbered_buckets
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.evaluation.preflop_best_response import hand_classes
from mccfr.evaluation.stratified_boards import BoardStrata, sample_boards, stratified95
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.street_arrays import FOLLOW
from mccfr.tables.strategy import row_starts
from mccfr.trees.street_trees import AT_DECISION, StreetTrees

Floats = npt.NDArray[np.float64]
Interval = tuple[float, tuple[float, float]]
"""A mean and its 95 % interval."""
LEAST_BOARDS = 8
_DEFAULT_BOARDS = {5: 600, 4: 120, 3: 8}
"""Default number of boards by board cards: some minutes for a small tree."""
_EACH = 4  # boards of a stratum


@dataclass(frozen=True)
class SelfConsistency:
    """Losses in chips per hand, the mean over both seats; intervals are of zero width if exact. S streets.

    lost      over all decisions
    streets   [S] by street
    training  [S] the part that the policy could win within its buckets
    boards    number walked
    """

    lost: Interval
    streets: list[Interval]
    training: list[Interval]
    boards: int


def self_consistency(
    side: Profile,
    street: int | None = None,
    boards: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> SelfConsistency:
    """Return a policy's losses against the best single deviations at its decisions.

    street    whose boards are sampled in full-deck hold'em, None: the flop; in other games all boards are walked
    boards    number of boards
    workers   threads that share the boards; results do not depend on it

    Raises `ValueError` for a game without cards beside its tree, a street without a board, or fewer than 8 boards.
    """
    cards = side.game.cards
    if cards.boards is not None:
        choices_by_block, weight = _walked(side, cards.listed())
        return _result(np.array([_exact_losses(side, choices_by_block)]), np.array([weight]), None, cards.boards)
    street = (0 if cards.cards_on(0) else 1) if street is None else street
    if not (lying := cards.cards_on(street)):
        raise ValueError("self-consistency samples boards: give the flop or a later street")
    boards = _DEFAULT_BOARDS[lying] if boards is None else boards
    if boards < LEAST_BOARDS:
        raise ValueError(f"boards = {boards}: at least {LEAST_BOARDS} are needed, for an interval")
    strata = BoardStrata.of(boards, _EACH, None)
    number = np.arange(boards) - np.searchsorted(strata.stratum, strata.stratum)  # within the stratum
    scores = number // 2 % 2 == 1
    sampled, sample = sample_boards(cards, street, strata, seed), _DecisionSample(side, street)
    with ThreadPoolExecutor(workers) as pool:

        def played(play: Callable[[Any], Any], chosen: npt.NDArray[np.bool_], done: int) -> Iterable[Any]:
            for choices_by_block in pool.map(play, [sampled[unit] for unit in np.flatnonzero(chosen).tolist()]):
                done += 1
                report_step("board", done, boards)
                yield choices_by_block

        for choices in played(sample.walk, ~scores, 0):
            sample.add(choices)
        scored = list(played(sample.score, scores, int((~scores).sum())))
    losses, weights = (np.array(part) for part in zip(*scored, strict=True))
    return _result(losses, weights, replace(strata, stratum=strata.stratum[scores]), boards)


def _result(losses: Floats, weight: Floats, strata: BoardStrata | None, boards: int) -> SelfConsistency:
    """Return the losses from samples [n, 2 (total, training), S], summed over both players.

    Without strata there is one sample, which is exact.
    """

    def mean(value: Floats) -> Interval:
        if strata is None:
            return (only := float(value[0] / weight[0] / 2)), (only, only)
        return stratified95(value / 2, weight, strata)

    streets, training = ([mean(each) for each in losses[:, part].T] for part in range(2))
    return SelfConsistency(mean(losses[:, 0].sum(axis=1)), streets, training, boards)


# --- action values of ranges ---


class _BlockChoices(NamedTuple):
    """Action values of a player's own range for some buckets of one block.

    buckets  [n] their numbers
    share    [slots, n] the policy's probabilities
    won      [slots, n] reach-weighted chips of each action
    most     chips of the best action for each hand, summed over all decisions
    """

    buckets: npt.NDArray[np.int32]
    share: Floats
    won: Floats
    most: float


def _walked(
    side: Profile, cards: ListedCards, note: Callable[[PublicTree, Walk, int], object] | None = None
) -> tuple[list[_BlockChoices], float]:
    """Return the choices of each block on these cards, and the weight of all pairs of hands.

    note  called after each player's walk with (tree, walk, player)
    """
    public, walk, bucket_numbers, tables, choices = _prepared(side, cards)
    for player in range(2):
        walk.values(player)
        if note is not None:
            note(public, walk, player)
    results = []
    for buckets, share, table in zip(bucket_numbers, tables, choices, strict=True):
        slots = len(share)
        results.append(_BlockChoices(buckets, share, table[:slots], float(table[slots:].sum())))
    return results, float(public.joint_weight)


def _prepared(
    side: Profile, cards: ListedCards
) -> tuple[PublicTree, Walk, list[npt.NDArray[np.int32]], list[Floats], list[Floats]]:
    """Return (public tree, walk on it, buckets of each block, the policy's rows, arrays for its choices).

    Isomorphic boards are merged only if their buckets are equal, because choices are summed by bucket; equal policy
    rows are not enough.
    """
    renumbered, tables, numbers = renumbered_buckets(side.game, side.strategy, cards)
    public = public_tree(replace(side.game, cards=renumbered))
    choices = [np.zeros((2 * table.shape[0], table.shape[1])) for table in tables]
    return public, Walk(public, tables, choices=choices), numbers, tables, choices


def _best(won: Floats, starts: npt.NDArray[np.int64]) -> Floats:
    """Return [rows, n] the largest value of each row's actions, from [slots, n]."""
    return np.maximum.reduceat(won, starts[:-1], axis=0) if len(won) else won


def _exact_losses(side: Profile, choices_by_block: Sequence[_BlockChoices]) -> Floats:
    """Return [2, S] both players' losses on each street: total, and the training part."""
    losses = np.zeros((2, len(choices_by_block) // 2))
    for block, choices in enumerate(choices_by_block):
        mix = float((choices.share * choices.won).sum())
        best = float(_best(choices.won, row_starts(side.game, block)).sum())
        losses[:, block // 2] += choices.most - mix, best - mix
    return losses


# --- on sampled boards ---


class _DecisionSample:
    """Sums the choices of some boards and scores them on others.

    Before the first board, tables [slots, C] of hand classes are summed as well, for either player.
    """

    def __init__(self, side: Profile, street: int) -> None:
        self._side, self._class, self._street = side, hand_classes(side.game.cards), street
        blocks = range(2 * side.game.tree.streets)
        self._starts = [row_starts(side.game, block) for block in blocks]
        self._won = [np.zeros((int(self._starts[b][-1]), int(side.game.buckets[b]))) for b in blocks]
        self._by_class = [np.zeros((int(self._starts[b][-1]), int(self._class.max()) + 1)) for b in range(2)]

    def walk(self, board: Any) -> tuple[list[_BlockChoices], list[Floats], float]:
        """Return (choices of each block on a board, values of preflop classes for either player, weight)."""
        classes = list[Floats]()
        cards = self._side.game.cards.after(self._street, board)
        choices, weight = _walked(self._side, cards, lambda *walked: classes.append(self._first_street(*walked)))
        return choices, classes, weight

    def _first_street(self, public: PublicTree, walk: Walk, player: int) -> Floats:
        """Return [slots, C] reach-weighted chips of a player's classes by each action before the flop."""
        trees: StreetTrees = public.trees
        first, stop = public.ranges.first[player, :2].tolist()
        own, won = self._class[public.ranges.hand[first:stop]], np.zeros_like(self._by_class[player])
        for member in range(int(trees.first[1])):
            if trees.kind[member] == AT_DECISION and trees.player[member] == player:
                reach = walk.root.own.reach[walk.root.own.row[member], : stop - first]
                for action in range(int(trees.actions[member])):
                    value = walk.root.value[FOLLOW, int(trees.child[member]) + action, : stop - first]
                    won[int(trees.rows.slot[member]) + action] = np.bincount(own, reach * value, won.shape[1])
        return won

    def add(self, walked: tuple[list[_BlockChoices], list[Floats], float]) -> None:
        """Add a board's choices to the sums."""
        for won, choices in zip(self._won, walked[0], strict=True):
            won[:, choices.buckets] += choices.won
        for player, won in enumerate(walked[1]):
            self._by_class[player] += won

    def score(self, board: Any) -> tuple[Floats, float]:
        """Return [2, S] both players' losses on a board (total, training part), and the board's weight."""
        blocks, classes, weight = self.walk(board)
        losses = np.zeros((2, len(blocks) // 2))
        for block, choices in enumerate(blocks):
            starts, street = self._starts[block], block // 2
            mix = float((choices.share * choices.won).sum())
            best = _scored(self._won[block][:, choices.buckets], choices.won, choices.share, starts)
            most = choices.most if street >= self._street else best
            if not self._side.game.cards.cards_on(street):
                most = _scored(self._by_class[block], classes[block], None, starts)
            losses[:, street] += most - mix, best - mix
        return losses, weight


def _scored(chosen_by: Floats, won: Floats, share: Floats | None, starts: npt.NDArray[np.int64]) -> float:
    """Return the sum of `won` [slots, n] over each row's actions with the largest `chosen_by` [slots, n].

    share  [slots, n] strategy for rows where `chosen_by` is all 0; None: the first action
    """
    total = 0.0
    for first, stop in _spans(starts):
        rows, values = chosen_by[first:stop], won[first:stop]
        best = np.take_along_axis(values, rows.argmax(axis=0)[None], axis=0)[0]
        if share is not None:
            best = np.where((rows == 0).all(axis=0), (share[first:stop] * values).sum(axis=0), best)
        total += float(best.sum())
    return total


def _spans(starts: npt.NDArray[np.int64]) -> Iterable[tuple[int, int]]:
    return zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
