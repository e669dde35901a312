"""EVs at one decision of a strategy: of every hand, action and range, exact or with 95 % intervals.

The EV counts the chips that a player expects from the pot, less those still to put in; folding has EV 0. The result is
exact from the turn on, in games that list their boards, and where few nodes follow a flop. Otherwise boards are drawn
in independent samples, whose differences give the intervals. In a sample after a flop, no card is the turn twice or
the river twice. Before the flop, the flops in a fixed order are cut into equal parts, with one drawn from each. Hands
that differ by suits only are then one class, as in every abstraction. Results at showdowns on the same boards, whose
means are known, are a control variate; its factor is fitted over all hands for each action.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import preflop_classes
from abstraction.cards import CARD_COUNT
from mccfr.cards.card_index import Board, IndexedCards
from mccfr.common.intervals import Estimate, student95
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.evaluation.hand_values import Below
from mccfr.evaluation.stratified_boards import flops_in_order
from mccfr.play.expected_value import action_means, hand_ev, range_mean
from mccfr.play.preflop_equity import preflop_won
from mccfr.play.showdown_values import all_run_outs, per_weight, win_minus_lose
from mccfr.policy.strategy_profile import Behaviour

Floats = npt.NDArray[np.float64]
LEAST_SHARE = 0.05
"""Frequency below which a strategy hardly takes an action."""
EQUAL = 0.01
"""Share of the pot by which EVs of mixed actions may differ: solutions are not exact."""
SAMPLES = 12
"""Independent samples of boards; half a 95 % interval is 2.20 standard errors."""
_LEAST_BOARDS, _MOST_BOARDS = 4, {3: 49, 0: 64}  # in one sample; the most by number of cards on the board
_WORK = 330_000  # nodes times boards of all samples: three to four seconds of processor time
_EXACT_NODES = 40  # after a flop: nodes that are walked on all 2,352 turns and rivers
_WHOLE_BOARD = 5
_STREAM = 6
"""Worker number of the random stream for boards: it differs from those of other evaluations that draw boards."""
_LEAST_MET = 1e-12  # of the largest weight: smaller weights are rounding errors of a true 0


@dataclass(frozen=True)
class DecisionValues:
    """EVs at a decision in chips: H hands, A actions, R samples.

    player         number of the player to act: 0 or 1
    weight         [2, H] each hand's reach times the total reach of the opposing hands that share no card with it
    played         [A, H] probability of each action of the player to act
    hands          [2, H] EV of both players' hands; NaN for hands without opposing hands
    actions        [A, H] EV of each action of the player to act
    hand_errors    [R, 2, H] deviations of the samples from `hands`; R = 0: exact
    action_errors  [R, A, H] the same of `actions`
    boards         number of boards on which EVs were computed
    """

    player: int
    weight: Floats
    played: Floats
    hands: Floats
    actions: Floats
    hand_errors: Floats
    action_errors: Floats
    boards: int

    @property
    def exact(self) -> bool:
        """True if EVs were computed on all possible boards, False if on a random sample."""
        return not len(self.hand_errors)

    @cached_property
    def hands_within(self) -> Floats:
        """[2, H] half the widths of 95 % intervals of `hands`; 0 if exact."""
        return _within(self.hand_errors)

    @cached_property
    def actions_within(self) -> Floats:
        """[A, H] half the widths of 95 % intervals of `actions`; 0 if exact."""
        return _within(self.action_errors)

    def mean(self, player: int) -> Estimate | None:
        """Return the EV in chips of a player's whole range, with half its 95 % interval (`Estimate`).

        None if no pair of both players' hands is possible: each pair shares a card, or a range is empty.

        player  0 or 1
        """
        return _mean(self.hands[player], self.hand_errors[:, player], self.weight[player])

    def action_means(self) -> list[tuple[float | None, Estimate | None]]:
        """Return for each action (frequency, EV in chips of the hands that take it, as `Estimate`).

        The frequency, 0 to 1, is the mean of the action's probability over the acting player's range. It is None if no
        pair of both players' hands is possible. The EV is None in that case, and for an action that no hand takes.
        """
        shares, own = action_means(self.actions, self.played, self.weight[self.player]), self.weight[self.player]
        return [
            (share, _mean(self.actions[number], self.action_errors[:, number], own * self.played[number]))
            for number, (share, _) in enumerate(shares)
        ]

    def cost(self, action: int, hand: int) -> tuple[int, Estimate] | None:
        """Return (index of a hand's best action, chips of EV that `action` loses against it).

        The loss is an `Estimate`, with half its 95 % interval. None if the hand's EVs are unknown, as for a hand that
        shares a card with every opposing hand.

        action  index of the action that is compared with the best one
        hand    index of a hand of the player to act
        """
        ev = self.actions[:, hand]
        if np.isnan(ev).any():
            return None
        best = int(ev.argmax())
        errors = self.action_errors[:, best, hand] - self.action_errors[:, action, hand]
        return best, Estimate(float(ev[best] - ev[action]), float(_within(errors)))

    def mixes(self, pot: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return two bool arrays [H]: True if a hand mixes actions; True if all its actions are best ones.

        A best action has the highest EV of all actions of the hand. Only actions that the hand takes with probability
        0.05 or more count.

        pot  chips in the pot; EVs count as equal if they differ by at most 1 % of it, or by at most half the width of
             their difference's 95 % interval
        """
        best = self.actions.argmax(axis=0)[None]
        costs = np.take_along_axis(self.actions, best, 0) - self.actions
        errors = np.take_along_axis(self.action_errors, best[None], 1) - self.action_errors
        taken = self.played >= LEAST_SHARE
        equal = costs <= np.maximum(_within(errors), EQUAL * pot)
        known = ~np.isnan(self.actions).any(axis=0)
        return known & (taken.sum(axis=0) > 1), np.asarray((equal | ~taken).all(axis=0))


def decision_values(
    source: Behaviour,
    dealing: IndexedCards,
    at: tuple[int, Board],
    reach: Floats,
    put_in: Sequence[float],
    threads: int = 1,
    seed: int = 0,
) -> DecisionValues:
    """Return the EVs at a decision if both players follow their strategies from there on.

    source   a game of two players, and both strategies
    dealing  the cards of `source`, with numbered hands
    at       pair: the decision's node in the tree, and the board: its cards, or its number in a game that lists boards
    reach    [2, H] weight of each hand in the ranges that the players have there
    put_in   chips of both players in the pot before the decision, over the whole hand
    threads  number of threads; results do not depend on it
    seed     seed of the boards that are drawn, where the result is not exact

    Raises `ValueError` if the node is no decision.
    """
    node, board = at
    below = Below(source, dealing, node, threads)
    played = source.rows(node, dealing.bucket_row(below.street, below.player, board))[0].T
    opposing = np.stack([dealing.disjoint_weight(other) for other in reach[::-1]])
    opposing = np.where(opposing > _LEAST_MET * opposing.max(initial=0), opposing, 0)
    place = _Place(below, dealing, board, reach, opposing)
    known = len(board) if isinstance(board, tuple) else 0
    if not isinstance(board, tuple) or below.cards_to_come <= 1 or (known and below.nodes <= _EXACT_NODES):
        figures = _exact(place, put_in)
    else:
        last = source.game.cards.cards_on(dealing.streets - 1)
        figures = _sampled(place, put_in, played, last, seed)
    return DecisionValues(below.player, reach * opposing, played, *figures)


class _Place(NamedTuple):
    """A decision on a board, and the two ranges there.

    below     the subtree from the decision on
    dealing   the game's cards
    board     its cards, or its number in a game that lists boards
    reach     [2, H] weights of both players' hands
    opposing  [2, H] for each hand the weight of the opposing hands that share no card with it
    """

    below: Below
    dealing: IndexedCards
    board: Board
    reach: Floats
    opposing: Floats


_Figures = tuple[Floats, Floats, Floats, Floats, int]
"""`hands`, `actions`, their errors, and the number of boards, as in `DecisionValues`."""


def _exact(place: _Place, put_in: Sequence[float]) -> _Figures:
    """Return the EVs at a decision in chips, computed on all boards.

    They are `hands` [2, H] and `actions` [A, H], as in `DecisionValues`. Empty arrays of errors [0, 2, H] and [0, A, H]
    and the number of boards follow.

    place   the decision, its board and both ranges
    put_in  chips of both players in the pot before the decision
    """
    below, board, reach = place.below, place.board, place.reach
    every = isinstance(board, tuple) and not below.cards_to_come
    cards = below.on_board(board, reach) if every else below.listed(board, reach)
    value, action, faced = below.values(cards)
    faced = np.where(faced > _LEAST_MET * faced.max(initial=0), faced, 0)
    hands = np.stack([hand_ev(value[one], faced[one], put_in[one]) for one in range(2)])
    actions = hand_ev(action, faced[below.player], put_in[below.player])
    return hands, actions, np.zeros((0, *hands.shape)), np.zeros((0, *actions.shape)), len(cards.board_cards[-1])


def _sampled(place: _Place, put_in: Sequence[float], played: Floats, last: int, seed: int) -> _Figures:
    """Return the EVs at a decision in chips, computed on random boards in R samples.

    They are `hands` [2, H] and `actions` [A, H], as in `DecisionValues`. Deviations of the samples, [R, 2, H] and
    [R, A, H], and the number of boards follow.

    place   the decision, its board (a flop or no cards) and both ranges
    put_in  chips of both players in the pot before the decision
    played  [A, H] probability of each action of the player to act
    last    number of cards of a full board
    seed    seed of the random boards
    """
    below, board, reach, known = place.below, place.board, place.reach, len(place.board)
    size = int(np.clip(_WORK // (below.nodes * SAMPLES), _LEAST_BOARDS, _MOST_BOARDS[known]))
    drawn = [full for number in range(SAMPLES) for full in _drawn(board, last, size, (seed, number))]
    sums = [np.stack(one) for one in zip(*below.of_samples(below.on_boards(board, drawn, reach), size), strict=True)]
    value, action = below.of_street(below.on_boards(board, drawn[:1], reach))
    ended = np.concatenate([value[1 - below.player, None], action])
    alike = None if known else preflop_classes()
    if not known and last != _WHOLE_BOARD:
        sums[3] = np.zeros_like(sums[3])  # the means of showdowns are known for whole boards only
    shown, ended = (_together(each, alike) for each in (_shown(place, last), ended))
    rows, deviations = _estimated([_together(each, alike) for each in sums], shown, ended, below.player)
    rows += np.array([put_in[1 - below.player], *[put_in[below.player]] * len(played)])[:, None]
    hands, errors = np.empty_like(reach), np.empty((SAMPLES, *reach.shape))
    hands[1 - below.player], errors[:, 1 - below.player] = rows[0], deviations[:, 0]
    hands[below.player] = (played * rows[1:]).sum(axis=0)
    errors[:, below.player] = (played * deviations[:, 1:]).sum(axis=1)
    return hands, rows[1:], errors, deviations[:, 1:], len(drawn)


def _estimated(sums: Sequence[Floats], shown: Floats, ended: Floats, player: int) -> tuple[Floats, Floats]:
    """Return mean chips [1 + A, H] won over the whole hand, and the samples' deviations [R, 1 + A, H].

    Row 0 is for the hands of the player who waits, row 1 + a for action a of `player`, who is to act.

    sums    four arrays with sums over the boards of each of R samples: counterfactual values [R, 2, H] of hands and
            [R, A, H] of actions, weights [R, 2, H] of opposing hands, and weights [R, 2, H] beaten minus lost to at
            showdowns
    shown   [2, 2, H] mean showdown results over all boards, then opposing weights, as from `_shown`
    ended   [1 + A, H] counterfactual value that is won on the decision's street, which later cards do not change
    player  player to act: 0 or 1

    Showdown results, whose means are known, serve as a control variate. Deviations are the jackknife's (Efron & Stein
    1981). Residuals would be too small, because ratio and factor are fitted to the same few samples.
    """
    value, action, weight, won = sums
    found = np.concatenate([value[:, 1 - player, None], action], axis=1) - ended
    of = [1 - player, *[player] * action.shape[1]]
    weight, known = weight[:, of], np.nan_to_num(per_weight(*shown))[of]
    beside = won[:, of] - weight * known
    mean = _controlled(found, beside, weight)
    others = [_controlled(*(np.delete(one, number, 0) for one in (found, beside, weight))) for number in range(SAMPLES)]
    exact = np.nan_to_num(per_weight(ended, shown[1][of]))
    return mean + exact, (SAMPLES - 1) * np.nan_to_num(mean - np.stack(others))


def _controlled(found: Floats, beside: Floats, weight: Floats) -> Floats:
    """Return [1 + A, H] mean chips won per unit of opposing weight, with a fitted control variate.

    found   [R, 1 + A, H] chips won in R samples, as sums over opposing hands: row 0 for the player who waits, then for
            each of A actions of the player to act
    beside  [R, 1 + A, H] showdown results on the same boards minus their expected values (the control variate)
    weight  [R, 1 + A, H] weights of the opposing hands
    """
    total = weight.sum(axis=0)
    total = np.where(total > _LEAST_MET * total.max(initial=0), total, 0)
    rest, spread = (one - weight * np.nan_to_num(per_weight(one.sum(axis=0), total)) for one in (found, beside))
    square = (spread**2).sum(axis=(0, 2))
    factor = np.where(square > 0, (rest * spread).sum(axis=(0, 2)) / np.where(square > 0, square, 1), 0)
    return np.asarray(per_weight((found - factor[:, None] * beside).sum(axis=0), total))


def _shown(place: _Place, last: int) -> Floats:
    """Return [2, 2, H] showdown results of both players' hands, as means over all later boards.

    Index 0 has for each player and hand the weight of opposing hands that it beats minus that of those that beat it.
    Index 1 has the weight of all opposing hands that share no card with it. Hands outside of the range have 0. Index 0
    is also 0 before the flop if a full board has fewer than five cards.

    place  the decision, its board and both ranges
    last   number of cards of a full board
    """
    _, dealing, board, reach, opposing = place
    if board:
        every = all_run_outs(dealing, place.below.street, board)
        won = np.stack([win_minus_lose(dealing, every, other) for other in reach[::-1]])
    elif last == _WHOLE_BOARD:
        won = np.stack([2 * preflop_won(other) for other in reach[::-1]]) - opposing
    else:
        won = np.zeros_like(opposing)
    return np.where(reach > 0, np.stack([won, opposing]), 0.0)


def _together(sums: Floats, alike: npt.NDArray[np.integer] | None) -> Floats:
    """Return `sums` [..., H] with each hand's value replaced by the sum over its class of hands.

    alike  [H] number of each hand's class, such as AKs; None: return `sums` unchanged
    """
    if alike is None:
        return sums
    return np.apply_along_axis(lambda row: np.bincount(alike, row)[alike], -1, sums)


def _drawn(board: Sequence[int], last: int, count: int, seed: tuple[int, int]) -> list[tuple[int, ...]]:
    """Return `count` random full boards, as card numbers, that begin with `board`, a flop or ().

    After a flop, no two boards have the same turn, and no two the same river. Without one, the flops in a fixed order
    are cut into `count` parts of equal size, and one is drawn from each.

    last  number of cards of a full board
    seed  the evaluation's seed, and the number of the sample
    """
    rng = np.random.default_rng(new_stream(seed[0], _STREAM, EVALUATION, seed[1]).tolist())
    if board:
        left = rng.permutation(np.setdiff1d(np.arange(CARD_COUNT), board)).tolist()
        return [(*board, left[number], left[(number + 1) % len(left)]) for number in range(count)]
    flops, boards = flops_in_order(), []
    for number in range(count):
        flop = flops[int((number + rng.random()) / count * len(flops))]
        left = rng.permutation(np.setdiff1d(np.arange(CARD_COUNT), flop))
        boards.append((*flop.tolist(), *left[: last - len(flop)].tolist()))
    return boards


def _mean(values: Floats, errors: Floats, weight: Floats) -> Estimate | None:
    """Return the weighted mean of the hands' values, with half its 95 % interval.

    values  [H]; hands with NaN are left out
    errors  [R, H] deviations of the samples from `values`; R = 0: exact
    weight  [H] weights of the hands

    Returns None if no hand of positive weight remains.
    """
    found = range_mean(values, weight)
    if found is None:
        return None
    known = np.where(np.isnan(values), 0, weight)
    return Estimate(found, float(_within(errors @ known / known.sum())))


def _within(errors: Floats) -> Floats:
    """Return half the widths of 95 % intervals, an array [...]; 0 if there are no samples.

    errors  [R, ...] deviations of R samples from the mean
    """
    samples = len(errors)
    if not samples:
        return np.zeros(errors.shape[1:])
    return np.asarray(student95(samples - 1) * np.sqrt((errors**2).sum(axis=0) / samples / (samples - 1)))
