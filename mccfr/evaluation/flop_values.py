"""Reports a strategy's play on many flops after one betting line: frequencies, equities, EVs.

Frequencies and equities are exact, over all 1,176 pairs of turn and river. EVs come from run-outs, pairs of turn and
river, that are drawn at random. On each, both ranges are walked through the betting (`mccfr.evaluation.hand_values`).
Showdown equity on the same run-outs is a control variate, because its mean is known. Its factor is fitted over all
flops.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import board_classes
from abstraction.cards import cards_text
from abstraction.range_notation import class_names, class_of
from mccfr.cards.card_index import Board, IndexedCards
from mccfr.common.intervals import Estimate, student95
from mccfr.evaluation.hand_values import Below
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.games.line_text import line_start, typed_line
from mccfr.play.line_ranges import FollowedLine, RangesOfLine
from mccfr.play.showdown_values import RunOuts, all_run_outs, win_minus_lose
from mccfr.policy.strategy_profile import Profile
from mccfr.trees.betting_lines import line_text
from mccfr.trees.street_amounts import street_action, street_line

Floats = npt.NDArray[np.float64]
FLOP_CARDS = 3
CLASSES = 169
_PLAYER_COLUMNS = 4  # sums of each class and player: weight, weight·equity, weight·value, weight of the value


class Flops(NamedTuple):
    """A set of F flops.

    cards   [F, 3] int8 card numbers
    weight  [F] float64 number of the 22,100 possible flops that each flop of the set represents
    """

    cards: npt.NDArray[np.int8]
    weight: Floats


def all_flops() -> Flops:
    """Return `Flops` with one flop of each of the 1,755 suit-isomorphism classes.

    Each stands for all flops of its class.
    """
    known = board_classes(FLOP_CARDS)
    return Flops(known.boards, known.multiplicity.astype(np.float64))


def some_flops(count: int) -> Flops:
    """Return `count` representative flops, each with the number of flops that it represents.

    All flops are sorted by pairs, suits and ranks, and divided into `count` groups of about equally many flops. The
    middle flop of each group represents it.

    Raises `ValueError` for a count below 1 or above 1,755.
    """
    every = all_flops()
    if not 1 <= count <= len(every.cards):
        raise ValueError(f"flops = {count} is not allowed: from 1 to {len(every.cards):,} are there")
    ranks, suits = every.cards // 4, every.cards % 4
    pairs = 3 - np.array([len(set(each)) for each in ranks.tolist()])
    colours = np.array([len(set(each)) for each in suits.tolist()])
    order = np.lexsort((ranks[:, 0], ranks[:, 1], ranks[:, 2], colours, pairs))
    sums, steps = np.cumsum(every.weight[order]), np.arange(1, count)
    cuts = np.searchsorted(sums, sums[-1] * steps / count, side="right")
    cuts = np.maximum.accumulate(cuts - steps) + steps  # no stratum is empty
    cuts = np.minimum(cuts, len(order) - count + steps)
    chosen, weight = [], []
    for own in np.split(order, cuts):
        half = np.cumsum(every.weight[own])
        chosen.append(int(own[np.searchsorted(half, half[-1] / 2)]))
        weight.append(float(half[-1]))
    return Flops(every.cards[chosen], np.array(weight))


def pair_weights(dealing: IndexedCards, reach: Floats) -> Floats:
    """Return [2, H] each hand's weight times the weight of disjoint opposing hands.

    Disjoint hands share no card.

    dealing  the game's hands
    reach    [2, H] weights of both players' hands
    """
    return reach * np.stack([np.maximum(dealing.disjoint_weight(other), 0) for other in reach[::-1]])


def class_sums(
    source: Profile, dealing: IndexedCards, place: tuple[int, int, int, Board], reach: Floats, values: Floats
) -> Floats:
    """Return [169, 2·4 + A] sums over the hands of each preflop class (such as AKs) at a decision.

    The columns are, for each player, the sums of weight, weight·equity, weight·value and run-out weight. Then follow
    the sums of weight·probability of each of the A actions. A hand's weight is its range weight times that of the
    opposing hands that share no card with it (`pair_weights`). The run-out weight is the weight with which values are
    summed. If they come from drawn run-outs (turn and river), it is a sum over these. So weight·value divided by it is
    the mean value.

    source   the strategies of both players, with their game
    dealing  the game's hands and boards
    place    (node of the decision in the tree, its street, the player to act, the board)
    reach    [2, H] weights of both players' hands at the decision
    values   [2, 2, H] for both players' hands [2, H]: first weight·value in chips of the whole hand of poker, then the
             run-out weight
    """
    (node, street, actor, board), columns = place, []
    pairs, every = pair_weights(dealing, reach), all_run_outs(dealing, street, board)
    for player in range(2):
        won = reach[player] * win_minus_lose(dealing, every, reach[1 - player])
        columns += [pairs[player], 0.5 * (pairs[player] + won), *values[:, player]]
    columns += list(source.rows(node, dealing.bucket_row(street, actor, board))[0].T * pairs[actor])
    group = class_of(dealing.hand_cards)
    return np.stack([np.bincount(group, column, CLASSES) for column in columns], axis=1)


class LineOnFlops(SampledEvaluation):
    """Evaluation of a two-player strategy after one betting line, flop by flop.

    The line ends at a flop decision with A actions. For each flop, K run-outs (turn and river) are drawn. The result of
    a flop is one array. It begins with the 169 × (2·4 + A) sums of `class_sums` for the preflop hand classes. Then
    follow three sums for each run-out, over all pairs of hands: weight times player 0's chips, weight that player 0
    wins minus loses at an immediate showdown, and weight.
    """

    least, option, step = 1, "flops", "flop"

    def __init__(self, source: Profile, line: str, flops: Flops, drawn: int, seed: int) -> None:
        """Parse a betting line and prepare its evaluation.

        source  the strategies of both players, with their game
        line    line as the user types it, which ends at a flop decision, such as "b300c/"
        flops   the flops to evaluate, one for each sample
        drawn   number of run-outs (turn and river) to draw for each flop
        seed    seed of the run-outs

        Raises `ValueError` if the line does not end at a flop decision of the tree. Also for fewer than 2 run-outs, and
        for three and more players.
        """
        if drawn < 2:
            raise ValueError(f"run-outs = {drawn}: at least 2 of each flop are needed, for an interval")
        source.game.check_two_players("the report over flops")
        self._ranges, self._line, self._flops = RangesOfLine(source), typed_line(source.game, line), flops
        self._drawn, self._seed = drawn, seed
        followed = self.follow(0)
        (node, _), *more = followed.places
        tree = source.game.tree
        if more or line_text(tree, max(node, 0)) != followed.line:
            raise ValueError(f"line {line!r} has bets that the strategy does not have: give a line of its tree")
        self.node, self.put_in = node, followed.state.put_in
        self.player = followed.state.player
        start = line_start(source.game)
        self.line = street_line(followed.line, start)
        self.actions = [street_action(followed.line, tree.label[child], start) for child in tree.children(node)]
        self._source = source
        self.fields = CLASSES * self._columns + 3 * drawn
        self.sides, self.identity_fields = (
            (source,),
            {"method": "flops", "line": self.line, "run_outs": drawn, "seed": seed},
        )
        self.identity_fields["flops"] = flops.cards.tolist()

    @property
    def _columns(self) -> int:
        return 2 * _PLAYER_COLUMNS + len(self.actions)

    @cached_property
    def _below(self) -> Below:
        return Below(self._source, self._ranges.dealing, self.node)

    def follow(self, sample: int) -> FollowedLine:
        """Follow the line on a flop; return a `FollowedLine`: betting state, boards, tree nodes, ranges.

        sample  index of the flop in the set

        Raises `ValueError` unless the line ends on the flop.
        """
        try:
            followed = self._ranges.follow(self._line, cards_text(self._flops.cards[sample].tolist()))
        except ValueError as error:
            raise ValueError(f"{error}; the report is of a line that ends on the flop, as b300c/") from None
        if followed.boards is None:
            raise ValueError(f"line {self._line!r} ends after the flop: the report needs a line that ends on the flop")
        return followed

    def play(self, sample: int) -> Floats:
        """Return one flop's result as a flat float64 array, whose contents the class describes.

        sample  index of the flop in the set
        """
        dealing, followed = self._ranges.dealing, self.follow(sample)
        assert followed.boards is not None
        board, reach = followed.boards[-1], self._ranges.reach(followed)
        values, drawn = self._walked(sample, followed.state.street, board, reach)
        decision = self.node, followed.state.street, self.player, board
        return np.concatenate([class_sums(self._source, dealing, decision, reach, values).ravel(), drawn.ravel()])

    def _walked(self, sample: int, street: int, board: Any, reach: Floats) -> tuple[Floats, Floats]:
        """Walk a flop's drawn run-outs; return sums by hand [2, 2, H] and by run-out [K, 3].

        The sums by hand are over run-outs. Of both players' hands [2, H] they are first weight·value in chips, then
        weight. The sums by run-out are over all pairs of hands: weight times player 0's chips, weight that player 0
        wins minus loses at a showdown, and weight.

        sample  index of the flop in the set
        street  number of the decision's street
        board   the flop, as the game represents a board
        reach   [2, H] weights of both players' hands at the decision
        """
        dealing, rng = self._ranges.dealing, np.random.default_rng((self._seed, sample))
        full, _ = dealing.full_boards(street, board, (), self._drawn, rng)
        values, drawn = np.zeros((2, *reach.shape)), np.zeros((self._drawn, 3))
        for number, each in enumerate(full):
            cards = self._below.on_board(each, reach)
            value, _, weight = self._below.values(cards)
            values += np.stack([cards.reach * value, cards.reach * weight])
            shown = RunOuts.of(cards.strength)
            won = cards.reach[0] @ win_minus_lose(dealing, shown, cards.reach[1])
            drawn[number] = cards.reach[0] @ value[0], won, cards.reach[0] @ weight[0]
        return values, drawn


@dataclass(frozen=True)
class FlopReport:
    """Results of a two-player strategy on F flops, at the decision after one betting line.

    line             betting line that ends at the flop decision; "" for games that begin there
    actions, player  texts of the A actions at the line's decision, and number of the player to act there
    put_in           chips that each player has put in before the decision, over the whole hand
    flops            the F flops, with the number of flops that each represents
    classes          [F, 169, 2·4 + A] sums over the hands of each preflop class, such as AKs: for each player weight,
                     weight·equity, weight·value and the weight for which the value is known; then weight·probability of
                     each action (`class_sums`)
    run_outs         [F, K, 3] sums over pairs of hands for each of K run-outs (turn and river): weight times player 0's
                     chips, weight that player 0 wins minus loses at an immediate showdown, and weight; K = 0: the
                     values are exact
    unit             chips of a big blind; 1 if the game has none

    The argument `flops` of the methods selects flops by their index, 0 to F - 1.
    """

    line: str
    actions: list[str]
    player: int
    put_in: tuple[float, float]
    flops: Flops
    classes: Floats
    run_outs: Floats
    unit: float = 1.0

    @property
    def pot(self) -> float:
        """Chips in the pot at the line's decision."""
        return float(sum(self.put_in))

    @cached_property
    def _factor(self) -> float:
        """Factor of the control variate: slope of a regression over the run-outs of all flops.

        The control variate makes EVs from drawn run-outs more precise. The regression is of player 0's chips on the
        weight that player 0 wins minus loses at an immediate showdown.
        """
        value, shown, weight = np.moveaxis(self.run_outs, 2, 0)
        rest = [column - weight * (column.sum(1) / weight.sum(1))[:, None] for column in (value, shown)]
        spread = float((rest[1] ** 2).sum())
        return float((rest[0] * rest[1]).sum()) / spread if spread > 0 else 0.0

    def weight(self, flops: npt.NDArray[np.int64]) -> Floats:
        """Return the weight of each flop in means over flops, a float64 array.

        It is the summed weight of all pairs of hands on the flop, times the number of flops that it represents.

        flops  indices of flops of the report
        """
        return self.flops.weight[flops] * self.classes[flops, :, 0].sum(axis=1)

    def value(self, flops: npt.NDArray[np.int64], player: int) -> Estimate:
        """Return the EV of a player's whole range at the decision, in chips.

        The EV is from here on: chips already put in count as gone. With it comes half the width of its 95 % interval; 0
        if the values are exact.

        flops   indices of the flops of the report to average over
        player  0 or 1
        """
        if not self.run_outs.shape[1]:
            mean = self._of_range(flops, _PLAYER_COLUMNS * player + 2, _PLAYER_COLUMNS * player + 3)
            return Estimate(mean + self.put_in[player], 0.0)
        value, shown, weight = np.moveaxis(self.run_outs[flops], 2, 0)
        pairs, equity = self.classes[flops][:, :, 0].sum(axis=1), self.classes[flops][:, :, 1].sum(axis=1)
        value = value - self._factor * (shown - weight * ((2 * equity - pairs) / pairs)[:, None])
        ratio = value.sum(axis=1) / weight.sum(axis=1)
        runs, count = value.shape[1], self.weight(flops)
        rest = (value - ratio[:, None] * weight) / weight.mean(axis=1, keepdims=True)
        error = (rest**2).sum(axis=1) / (runs - 1) / runs
        share = count / count.sum()
        within = student95(len(flops) * (runs - 1)) * float(np.sqrt(share**2 @ error))
        mean = float(share @ ratio)
        return Estimate((mean if player == 0 else -mean) + self.put_in[player], within)

    def equity(self, flops: npt.NDArray[np.int64], player: int) -> float:
        """Return the equity (0 to 1) of a player's whole range at the decision.

        It is the mean share of the pot if both players only check and call from here on.

        flops  indices of the flops of the report to average over
        """
        return self._of_range(flops, _PLAYER_COLUMNS * player + 1, _PLAYER_COLUMNS * player)

    def frequencies(self, flops: npt.NDArray[np.int64]) -> list[float]:
        """Return a list of the actions' probabilities at the decision, means over flops and hands.

        flops  indices of the flops of the report to average over
        """
        first = 2 * _PLAYER_COLUMNS
        return [
            self._of_range(flops, first + number, _PLAYER_COLUMNS * self.player) for number in range(len(self.actions))
        ]

    def _of_range(self, flops: npt.NDArray[np.int64], column: int, by: int) -> float:
        sums = self.flops.weight[flops] @ self.classes[flops][:, :, [column, by]].sum(axis=1)
        return float(sums[0] / sums[1])

    def of_classes(self, player: int) -> dict[str, tuple[float, float, float, list[float]]]:
        """Return {preflop hand class, such as "AKs": its numbers} of a player, over all flops.

        The numbers are (share of the player's range, equity, EV in chips, probabilities of the actions). The EV is from
        here on: chips already put in count as gone. The probabilities are empty for the player who does not act.
        Classes without possible hands are left out.
        """
        sums = np.tensordot(self.flops.weight, self.classes, 1)
        weight, equity, value, walked = sums[:, _PLAYER_COLUMNS * player : _PLAYER_COLUMNS * (player + 1)].T
        results = {}
        for number, name in enumerate(class_names()):
            if weight[number] > 0 and walked[number] > 0:
                played = (sums[number, 2 * _PLAYER_COLUMNS :] / weight[number]).tolist()
                ev = value[number] / walked[number] + self.put_in[player]
                share, acts = float(weight[number] / weight.sum()), player == self.player
                results[name] = share, equity[number] / weight[number], ev, played if acts else []
        return results


def flop_report(
    source: Profile,
    line: str,
    flops: Flops,
    run_outs: int = 10,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> FlopReport:
    """Evaluate a strategy after a betting line on a set of flops and return the report.

    source    the strategies of both players, with their game
    line      betting line as the user types it, which ends at a flop decision, such as "b300c/"
    flops     flops of the report, such as `some_flops(100)`
    run_outs  number of pairs of turn and river drawn for each flop
    seed      seed of the draws
    effort    number of processes, and the file in which finished flops are saved for resuming, if any

    Raises `ValueError` if the line ends at no flop decision of the tree, for fewer than 2 run-outs, and for three and
    more players. Also if the file belongs to another evaluation; `OSError` if it cannot be read or written. Raises
    `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
    """
    samples = LineOnFlops(source, line, flops, run_outs, seed)
    sums = run_samples(samples, len(flops.cards), effort)
    classes, rest = np.split(sums, [CLASSES * (2 * _PLAYER_COLUMNS + len(samples.actions))], axis=1)
    return FlopReport(
        samples.line,
        samples.actions,
        samples.player,
        (samples.put_in[0], samples.put_in[1]),
        flops,
        classes.reshape(len(sums), CLASSES, -1),
        rest.reshape(len(sums), run_outs, 3),
        source.game.big_blind_chips or 1.0,
    )
