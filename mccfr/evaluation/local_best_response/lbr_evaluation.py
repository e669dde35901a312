"""Computes LBR's chips against a policy: over all deals of a small game, or over drawn deals."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from abstraction.cards import COMBO_COUNT
from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION, new_stream, uniform
from mccfr.evaluation.local_best_response.hand import PolicyRows, Responder, all_of_them
from mccfr.evaluation.local_best_response.resolved_policy import OpponentRanges, RangeResponder
from mccfr.evaluation.local_best_response.responder_deals import DeckHand, DeckTable, Floats, ListedTable, uniform_draws
from mccfr.evaluation.local_best_response.settings import (
    SOLVED_SIZES,
    ResponderBetting,
    check_setting,
    streets_that_look,
)
from mccfr.evaluation.samples import Effort, LowerBound, SampledEvaluation, run_samples
from mccfr.games.game import Game
from mccfr.games.identity_translation import IdentityTranslation
from mccfr.games.translation import Translation, real_betting
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.resolving_table import STREETS, Resolver, Settings
from mccfr.policy.strategy_profile import Profile

DEFAULT_HANDS = 10_000
LEAST_HANDS = 100
"""Least number of deals: with fewer the interval is unreliable, as few hands win or lose whole stacks."""
LEAST_BOARDS, DEFAULT_BOARDS = 20, 100
"""The same in boards for a re-solving policy, where all hands are played on each board."""
MOST_ENUMERATED = 3_000
"""Largest number of (hand, board) pairs of both seats for which all deals are enumerated."""
POLICY_DRAWS = 1  # worker number of the random stream for lines against a re-solving policy

STEP = 1 / 2
"""Share of the initial pot: against re-solving, lines with at least this stake are always followed, others drawn."""
FOLLOWED = 2 / 3
"""Share of the initial pot: actions of the policy with larger stakes are all followed, not sampled."""


def local_best_response(
    side: Profile,
    setting: str = "2",
    hands: int | None = None,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    betting: Translation | IdentityTranslation | None = None,
    resolve: Settings | None = None,
) -> LowerBound:
    """Return the chips per hand that local best response wins from a policy, as a `LowerBound`.

    side     the policy's game and strategy
    setting  actions that the responder may take: "1", "2", "3", "4" or "fcpa" (the paper's settings, and
             fold-call-pot-all-in)
    hands    deals to draw, each played from both seats, at least 100. None: all deals of a small game, else 10,000.
             With `resolve`: number of boards instead, at least 20; None: 100
    seed     seed of deals, boards and other draws
    effort   number of processes, time budget (which replaces `hands`) and journal file for resuming
    betting  the responder's legal bets and their translation into the policy's tree. None: real bets in full-deck
             hold'em, the tree's bets in games that list all boards, as in exact exploitability
    resolve  how the policy re-solves, for full-deck no-limit hold'em only; None: it does not. The policy without
             re-solving is played on the same boards, for comparison

    Raises `ValueError` for an unknown setting, too few hands, or a game that has no cards or has them in its tree. Also
    for three and more players, and if the journal belongs to another evaluation. Raises `OSError` if the journal cannot
    be read or written, `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
    """
    check_setting(setting)
    # STREETS lists the last street first.
    solved_from = None if resolve is None else len(STREETS) - STREETS.index(resolve.street)
    lines = ResponderBetting(betting or _betting(side), setting, solved_from)
    offset = side.game.offset_chips
    if resolve is None and plays_every_deal(side.game, hands, effort.seconds):
        first, second = enumerated(side, lines)
        mean = (first + second) / 2
        return LowerBound(mean, (mean, mean), (first + offset, second - offset), listed_deals(side.game), exact=True)
    samples: SampledEvaluation
    if resolve is not None:
        samples, default = _ResolvedSamples(side, lines, seed, resolve), DEFAULT_BOARDS
    else:
        kind = _DeckSamples if side.game.cards.boards is None else _ListedSamples
        samples, default = kind(side, lines, seed), DEFAULT_HANDS
    results = run_samples(samples, default if hands is None else hands, effort)
    chips, beside, weight, gain = results[:, :2], results[:, 2:], np.ones(len(results)), None
    if resolve is None:
        chips = without_luck(chips, beside)
    else:
        gain = ratio95((beside - chips).mean(axis=1), weight)
    first, second = chips.mean(axis=0).tolist()
    bound = ratio95(chips.mean(axis=1), weight)
    return LowerBound(*bound, (first + offset, second - offset), len(results), gain_chips=gain)


def without_luck(chips: Floats, luck: Floats) -> Floats:
    """Return [n, 2] chips by deal and seat, with less variance by a control variate.

    chips  [n, 2] the responder's chips, by deal and seat
    luck   [n, 2] mean showdown result of the dealt cards, whose expectation is 0; [n, 0] changes nothing

    A multiple of the luck is subtracted. The factor for deals of even number is fitted on those of odd number, and vice
    versa. Fitting on the same deals would bias the mean.
    """
    corrected = chips.copy()
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        for seat in range(luck.shape[1]):
            centred = luck[other, seat] - luck[other, seat].mean()
            slope = centred @ (chips[other, seat] - chips[other, seat].mean()) / (centred @ centred)
            corrected[half, seat] -= slope * luck[half, seat]
    return corrected


def _betting(side: Profile) -> Translation | IdentityTranslation:
    """Return the bets that the responder may make, and their translation into the policy's tree.

    They are any real bets in full-deck hold'em, and the tree's bets in games that list all boards. Raises `ValueError`
    for three and more players, and for a game that has no cards or has them in its tree.

    side  the policy's game and strategy
    """
    side.game.check_two_players("local best response")
    real = real_betting(side.game)  # raises for games without cards
    return real if side.game.cards.boards is None else IdentityTranslation(side.game.tree)


def plays_every_deal(game: Game, hands: int | None, seconds: float | None) -> bool:
    """Return whether local best response plays all deals of a game, without sampling.

    It does if the game has 1 to 3,000 `listed_deals`, and no number of deals or time budget is given.

    hands    number of deals that the user wants; None: not given
    seconds  time budget; None: not given
    """
    return hands is None and seconds is None and 0 < listed_deals(game) <= MOST_ENUMERATED


def listed_deals(game: Game) -> int:
    """Return the number of hands of both players' ranges together, times the number of full boards.

    It is 0 if the game does not list its boards. Pairs of hand and board with a common card are included.
    """
    cards = game.cards
    if cards.boards is None:
        return 0
    listed = game.listed_cards()
    return int((listed.reach > 0).sum()) * len(listed.board_cards[-1])


def enumerated(side: Profile, lines: ResponderBetting) -> tuple[float, float]:
    """Return the responder's exact chips per hand as player 0 and 1, over all deals and actions.

    side   the policy's game and strategy
    lines  the rules of the betting, with the responder's actions, the policy's translations and the payoffs
    """
    table, rows = ListedTable(side.game.listed_cards()), PolicyRows(side)
    chips = [0.0, 0.0]
    for seat in range(2):
        responder = Responder(lines, rows, seat, all_of_them)
        weights = table.weights(seat)
        for hand in np.flatnonzero(weights).tolist():
            chips[seat] += weights[hand] * sum(responder.play(*begun) for begun in table.first_boards(seat, hand))
    return float(chips[0]), float(chips[1])


def sampled_actions(state: npt.NDArray[np.uint64], large: float, stakes: Sequence[float]) -> list[tuple[int, float]]:
    """Choose which actions of the policy are followed: those with large stakes, and one other.

    The other one, if any, is drawn in proportion to the stakes, for all those that are not large. Returns a list of
    (index of the action, factor for its value). The factor is 1 for large stakes, else the inverse of the probability
    of the draw.

    state   [4] uint64 random state, advanced in place
    large   stakes above which an action is large
    stakes  stake of each action: chips times weight of the hands that take it
    """
    followed = [(number, 1.0) for number, stake in enumerate(stakes) if stake > large]
    small = [(number, stake) for number, stake in enumerate(stakes) if stake <= large]
    if not small:
        return followed
    total = sum(stake for _, stake in small)
    draw, ends = float(uniform(state)) * total, np.cumsum([stake for _, stake in small])
    number, stake = small[min(int(np.searchsorted(ends, draw, side="right")), len(small) - 1)]
    return [*followed, (number, total / stake)]


class _DeckSamples(SampledEvaluation):
    """Runs local best response on sampled deals from the full deck.

    A sample is one deal, played by the responder in both seats. Its result has four numbers: the responder's chips in
    seats 0 and 1, then its luck in both seats. Luck is the probability to beat a random hand on the full board minus
    that to lose to it (`DeckBoard.luck`).
    """

    fields, least, option, step = 4, LEAST_HANDS, "hands", "hand"

    def __init__(self, side: Profile, lines: ResponderBetting, seed: int) -> None:
        self.sides, self._lines, self._rows = (side,), lines, PolicyRows(side)
        self.identity_fields = {"method": "lbr", "setting": lines.setting, "seed": seed}
        looks = streets_that_look(lines.setting) if side.game.real_rules else set(range(side.game.tree.streets))
        self._table, self._large = DeckTable(side.game.table_cards(), seed, looks), FOLLOWED * side.game.pot_chips

    def play(self, sample: int) -> Floats:
        """Return [4] for one deal: the responder's chips in seats 0 and 1, then its luck in them.

        Luck is the probability to beat a random hand on the full board minus that to lose to it.

        sample  number of the deal
        """
        board, hands, state = self._table.deal(sample)
        results = np.zeros(4)
        choose = partial(sampled_actions, state, self._large)
        for seat, hand in enumerate(hands):
            dealt = DeckHand(board, hand)
            results[seat] = Responder(self._lines, self._rows, seat, choose).play(dealt, dealt.prior())
            results[2 + seat] = board.luck(hand)
        return results


class _ResolvedSamples(_DeckSamples):
    """Runs local best response against a policy that re-solves, on sampled full-deck boards.

    A sample is one board. Its result has four numbers: the responder's chips per hand, averaged over all its hands. The
    first two are for both seats against the re-solving policy, the others against the same policy without re-solving.
    Betting lines are drawn with the same random numbers for both.
    """

    least, step = LEAST_BOARDS, "board"

    def __init__(self, side: Profile, lines: ResponderBetting, seed: int, settings: Settings) -> None:
        super().__init__(side, lines, seed)
        self._resolver, self._seed = Resolver(Seat(side), settings), seed
        self._step = STEP * side.game.pot_chips
        self.identity_fields |= {"resolve": repr(settings), "step": STEP, "stream": POLICY_DRAWS}
        if lines.solved_sizes:
            self.identity_fields["sizes"] = SOLVED_SIZES

    def play(self, sample: int) -> Floats:
        """Return [4] the responder's chips on one board: by seat with re-solving, by seat without.

        sample  number of the board
        """
        board, _, _ = self._table.deal(sample)
        streets = [OpponentRanges(board, street, sample) for street in range(len(self._table.known))]
        chips, own = np.zeros((2, 2)), np.ones(COMBO_COUNT)
        for seat in range(2):
            for number, resolver in enumerate((self._resolver, None)):
                draws = new_stream(self._seed, POLICY_DRAWS, EVALUATION, sample)
                responder = RangeResponder(self._lines, self._rows, seat, resolver, draws, self._step)
                chips[number, seat] = responder.play_all(streets, own)
        return chips.ravel()


class _ListedSamples(SampledEvaluation):
    """Runs local best response on sampled deals of a game with listed boards, such as a small deck.

    A sample is one deal, played by the responder in both seats. Its result is the responder's chips in seats 0 and 1.
    """

    fields, least, option, step = 2, LEAST_HANDS, "hands", "hand"

    def __init__(self, side: Profile, lines: ResponderBetting, seed: int) -> None:
        self.sides, self._lines, self._rows, self._seed = (side,), lines, PolicyRows(side), seed
        self.identity_fields = {"method": "lbr", "setting": lines.setting, "seed": seed}
        self._table = ListedTable(side.game.listed_cards())
        self._hands, self._large = np.cumsum(self._table.weights(0)), FOLLOWED * side.game.pot_chips

    def play(self, sample: int) -> Floats:
        """Return [2] the responder's chips in seats 0 and 1 for the deal of number `sample`."""
        state, table = new_stream(self._seed, 0, EVALUATION, sample), self._table
        first = int(np.searchsorted(self._hands, uniform(state) * self._hands[-1], side="right"))
        beside = np.cumsum(table.prior(0, first))
        second = int(np.searchsorted(beside, uniform(state) * beside[-1], side="right"))
        draws = uniform_draws(state, table.cards.streets)
        chips = np.zeros(2)
        for seat, hand in enumerate((first, second)):
            responder = Responder(self._lines, self._rows, seat, partial(sampled_actions, state, self._large))
            chips[seat] = sum(responder.play(*begun) for begun in table.first_boards(seat, hand, draws))
        return chips
