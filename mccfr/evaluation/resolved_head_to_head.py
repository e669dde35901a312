"""Head-to-head with a first side that re-solves from some street on (`mccfr.play.resolving`).

On each board all hands of both sides meet in both seats, as in `mccfr.evaluation.head_to_head`. Re-solving is slow,
so betting lines are drawn at the start of each street. As a control variate, the first side without re-solving is
played on the same drawn lines and on all lines.
"""

from functools import partial
from typing import Any

import numpy as np

from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.evaluation.compatible_games import check_same_game
from mccfr.evaluation.head_to_head import HeadToHeadResult
from mccfr.evaluation.local_best_response.hand import PolicyRows, Ranges, Responder, all_of_them
from mccfr.evaluation.local_best_response.lbr_evaluation import POLICY_DRAWS, STEP
from mccfr.evaluation.local_best_response.resolved_policy import OpponentRanges, RangeResponder
from mccfr.evaluation.local_best_response.responder_deals import DeckBoard, DeckTable, Floats
from mccfr.evaluation.local_best_response.settings import ResponderBetting
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.games.translation import real_betting
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.resolving_table import Resolver, Settings
from mccfr.policy.strategy_profile import Profile


class _PlayedRange(RangeResponder):
    """Plays all hands of a second policy, with their probabilities, against a first that re-solves.

    theirs  reads the second policy's strategy
    boards  the board up to each street, with the second policy's buckets

    It is a `RangeResponder` whose responder is the second policy. `own` in the methods is that policy's range: {node of
    its own tree and a second node (`TreePosition`): weights [H] of its hands}.
    """

    theirs: Responder
    boards: list[OpponentRanges]

    def _branches(self, state: Any, ranges: Any, own: Any, hands: OpponentRanges) -> list[tuple[str, Any, Floats, Any]]:
        """Return (action, second side's range, first side's weights, function) for each action.

        Range and weights [H] of hands are those after the action. The function takes no arguments and returns the first
        side's range after the action. The caller calls it only if the hand goes on.

        state   the real betting, at a decision of either side
        ranges  the first side's range before the action, {its tree node or public state: weights [H]}
        own     the second side's range before the action
        hands   the board of the street
        """
        if state.player != self._seat:
            branches = super()._branches(state, ranges, own, hands)
            return [(action, self.theirs.ranges_after(own, state, action), *more) for action, _, *more in branches]  # type: ignore[misc]
        answers, whole = self.theirs.answers(state, own, self.boards[hands.street]), self.weight(ranges)  # type: ignore[arg-type]
        after = partial(self.ranges_after, ranges, state)
        return [(action, mine, whole, partial(after, action)) for action, mine in answers.items()]


class _ResolvedMeetings(SampledEvaluation):
    """Runs a head-to-head in which the first strategy re-solves, board by board.

    A sample is one full board of the full deck. Its result has two numbers: the first strategy's chips per hand as
    player 0 and as player 1.
    """

    fields = 2

    def __init__(self, one: Profile, other: Profile, seed: int, settings: Settings) -> None:
        """Take two strategies; the first re-solves.

        one, other  the first and the second strategy, with their games, which may differ in buckets and bet sizes
        seed        seed of the boards, and of the draws of betting lines
        settings    how the first re-solves
        """
        self.sides = (one, other)
        self.identity_fields = {"method": "head-to-head", "seed": seed, "resolve": repr(settings), "step": STEP}
        self._resolver, self._seed = Resolver(Seat(one), settings), seed
        self._sides = [(ResponderBetting(real_betting(side.game), "1"), PolicyRows(side)) for side in (one, other)]
        self._tables = [DeckTable(side.game.table_cards(), seed, set()) for side in (one, other)]
        self._step = STEP * one.game.pot_chips

    def play(self, sample: int) -> Floats:
        """Return [2] the first strategy's chips per hand on board number `sample`, as player 0 and 1."""
        chips, boards = np.zeros(2), self._boards(sample)
        for seat in range(2):
            for sign, resolver, draws_lines in ((1, self._resolver, True), (-1, None, True), (1, None, False)):
                draws = new_stream(self._seed, POLICY_DRAWS, EVALUATION, sample) if draws_lines else None
                walk = _PlayedRange(*self._sides[0], seat, resolver, draws, self._step)
                walk.theirs, walk.boards = Responder(*self._sides[1], seat, all_of_them), boards[1]
                _, readings = self._sides[1][0].betting.start()
                own: Ranges = {(node, closed): np.ones(len(boards[0][0].live)) for node, _, closed in readings}
                chips[1 - seat] -= sign * walk.play_all(boards[0], own)
        return chips

    def _boards(self, sample: int) -> list[list[OpponentRanges]]:
        """Return two lists of the sample's board up to each street, with each side's own buckets.

        sample  number of the board
        """
        board, _, state = self._tables[0].deal(sample)
        boards = [board, DeckBoard(self._tables[1], board.cards, state)]
        return [
            [OpponentRanges(each, street, sample) for street in range(len(self._tables[0].known))] for each in boards
        ]


def resolved_head_to_head(
    first: Profile,
    second: Profile,
    boards: int,
    seed: int,
    settings: Settings,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> HeadToHeadResult:
    """Return chips per hand that `first`, which re-solves, wins from `second`, which does not.

    The result is a `HeadToHeadResult`: the mean over both seats, with a 95 % interval.

    boards    number of sampled boards, each played in both seats
    seed      seed of the boards, and of the draws of betting lines
    settings  how `first` re-solves
    effort    number of processes, time budget (which replaces `boards`) and journal file for resuming

    Raises `ValueError` for games that differ in more than buckets and bet sizes, and for settings that do not suit the
    game. Also for fewer than two boards, and if the journal belongs to another evaluation. Raises `OSError` if the
    journal cannot be read or written, `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
    """
    check_same_game(first.game, second.game)
    chips = run_samples(_ResolvedMeetings(first, second, seed, settings), boards, effort)
    return HeadToHeadResult(*ratio95(chips.mean(axis=1), np.ones(len(chips))), len(chips))
