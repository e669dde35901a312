"""Matches between policies and programs: each deal is played in both seats, with variance reduction.

A sample is a pair of hands: one deal played from both seats. Intervals are over pairs. There are three figures:

* chips as played
* chips without the luck of boards after all-ins. A hand whose betting ended before the last street, with a showdown,
  counts the mean over all boards that could come. If there are more than 1,000, 1,000 are drawn
* AIVAT's corrected chips (`mccfr.matches.aivat`), with a heuristic from a policy's own play, fixed before the
  first hand (`mccfr.matches.equity_heuristic`)

Deals come from a random stream that training does not use.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Deal
from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.evaluation.compatible_games import check_same_game
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.games.game import Game
from mccfr.games.translation import real_betting
from mccfr.matches.aivat import Aivat, Heuristic
from mccfr.matches.equity_heuristic import RUN_OUTS, EquityHeuristic
from mccfr.play.hand_beliefs import AnyHand, ObservedRange
from mccfr.play.player import Player, PlayerSpec, Program
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.resolving_seat import ResolvedRange, ResolvingSeat
from mccfr.play.showdown_values import showdown_results
from mccfr.play.table import PlayedHand, play_hand
from mccfr.policy.strategy_profile import Profile

LEAST_PAIRS = 100
"""Least number of pairs; with fewer a 95 % interval would cover the mean less often."""
PLAYERS = 3  # worker number of the random stream of players' seeds; deals and run-outs have 1 and 2
_SEEDS = 2**64
_ALL_IN_BOARDS = 1_000
_FIGURES = ("chips", "allin", "aivat")


@dataclass(frozen=True)
class Contender:
    """A participant of a match: a policy or a program.

    name  as given by the user
    spec  factory of `Player` objects, which choose actions
    side  a policy's game and strategy; None for programs
    """

    name: str
    spec: PlayerSpec
    side: Profile | None = None

    def fingerprint(self) -> str:
        """Return a text that identifies a policy's strategy and play options, or a program's source."""
        whole = "" if self.side is None else self.side.fingerprint()
        return f"{whole} {self.spec.fingerprint()}".strip()


@dataclass(frozen=True)
class Figure:
    """A contender's mean net chips per hand, and the ends of the 95 % interval of this mean."""

    mean_chips: float
    ci95_chips: tuple[float, float]


def figure_fields(
    mean: float | None, ci95: tuple[float, float] | None, big_blind: float | None, title: str = ""
) -> dict[str, Any]:
    """Return a mean and its 95 % interval as a dict for `--json`: in chips and in mbb per hand.

    Unknown values, and mbb in games without big blinds, are None.

    mean, ci95  chips per hand, and the interval's ends
    big_blind   in chips; None if the game has none
    title       prefix of the fields' names, such as "aivat_"
    """
    scale = 1000 / big_blind if big_blind else None
    return {
        f"{title}mean_chips": mean,
        f"{title}ci95_chips": None if ci95 is None else list(ci95),
        f"{title}mean_mbb": None if scale is None or mean is None else mean * scale,
        f"{title}ci95_mbb": None if scale is None or ci95 is None else [end * scale for end in ci95],
    }


@dataclass(frozen=True)
class MatchFigures:
    """Result of a match of two players, for the first contender.

    chips  mean chips won per hand, as played
    allin  the same, with hands that went all-in before the last street counted as their mean over the boards to come
    aivat  the same, corrected by AIVAT
    hands  number of hands, two for each deal
    pairs  [n, 3] the figures chips, allin and aivat of each of the n deals, mean of its two hands, in chips per hand
    """

    chips: Figure
    allin: Figure
    aivat: Figure
    hands: int
    pairs: npt.NDArray[np.float64]


class Match(SampledEvaluation):
    """A match of two players as a sampled evaluation: `run_samples` plays its samples in parallel.

    A sample is a pair of hands: one deal played in both seats.
    """

    fields, least, option, step = len(_FIGURES), LEAST_PAIRS, "pairs", "pair of hands"

    def __init__(
        self, contenders: Sequence[Contender], seed: int = 0, heuristic: Callable[..., Heuristic] = EquityHeuristic
    ) -> None:
        """Take two contenders; the game is that of a policy, so at least one of them must be a policy.

        seed       of the deals and the players, at least 0 and below 2^64
        heuristic  creates AIVAT's heuristic, which estimates chips; called once, before any hand, with the `Profile`
                   (game and strategy) of the first contender that is a policy, and with the game's cards

        Raises `ValueError` if neither is a policy, or if their games differ in more than buckets and bet sizes. Also
        for rake and for more than two players.
        """
        self.game = common_game(contenders)
        self._seed, self.names = check_seed(seed), [contender.name for contender in contenders]
        self._contenders = contenders
        self.identity_fields = {"method": "match", "seed": seed, "run_outs": RUN_OUTS, "names": self.names}
        self.betting, self.dealing = real_betting(self.game), self.game.table_cards()
        self._players = [contender.spec.player(self.betting) for contender in contenders]
        side = next(contender.side for contender in contenders if contender.side is not None)
        self._heuristic = heuristic(side, self.dealing)
        self._aivat = Aivat(self.dealing, self.betting, self._heuristic)

    def identity(self) -> dict[str, Any]:
        """Return a dict that determines all hands: contenders' names and hashes, and the seed."""
        return super().identity() | {"players": [contender.fingerprint() for contender in self._contenders]}

    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Play one pair of hands; return [3] the first contender's mean chips per hand.

        sample  number of the deal, which is played in both seats

        The three are chips as played, with all-ins counted by their mean, and corrected by AIVAT (`MatchFigures`).
        """
        figures = np.zeros(len(_FIGURES))
        for seat in range(2):
            deal, played = self.hand(sample, seat)
            sign = 1 - 2 * seat  # seat 0: the first contender is player 0
            figures += np.array(self._figures(deal, played, seat, 2 * sample + seat)) * sign / 2
        return figures

    def hand(self, sample: int, seat: int) -> tuple[Deal, PlayedHand]:
        """Play one hand of deal number `sample`; return the deal and the played hand.

        seat  player number, 0 or 1, of the first contender
        """
        deal, number = self.dealing.deal(self._seed, sample), 2 * sample + seat
        names = self.names if seat == 0 else self.names[::-1]
        players = self._players if seat == 0 else self._players[::-1]
        seeds = new_stream(self._seed, PLAYERS, EVALUATION, number).tolist()
        for which, player in enumerate(self._players):
            player.reseed(seeds[which])
        return deal, play_hand(players, self.betting, self.dealing, deal, number, names)

    def _figures(self, deal: Deal, played: PlayedHand, seat: int, number: int) -> tuple[float, float, float]:
        """Return player 0's chips in a hand: as played, all-ins by their mean, and by AIVAT.

        deal    all cards of the hand
        played  its betting
        seat    player number, 0 or 1, of the first contender
        number  number of the hand, which seeds drawn boards
        """
        self._heuristic.begin(self._seed, number)
        chips = all_in = played.fixed
        if played.showdown:
            last = self.dealing.streets - 1
            street = played.states[-1].street
            rng = np.random.default_rng(new_stream(self._seed, PLAYERS, EVALUATION, number).tolist())
            mean_results = [
                showdown_results(self.dealing, deal.hands, street, deal.boards[street], _ALL_IN_BOARDS, rng).mean()
                for street in (last, street)
            ]
            chips += played.showdown * mean_results[0]
            all_in += played.showdown * mean_results[1]
        players = self._players if seat == 0 else self._players[::-1]
        ranges = [_range_of(player, position) for position, player in enumerate(players)]
        return chips, all_in, sum(self._aivat.terms(deal, played, ranges).values())


def _range_of(player: Player, position: int) -> ObservedRange | AnyHand | None:
    """Return the object with which AIVAT follows a player's range during a hand.

    It is an `ObservedRange` for a policy, whose strategy is known. It is `AnyHand` for a program that ignores its
    cards, and None for other programs, whose strategy is unknown.

    position  player number in the hand, 0 or 1
    """
    if isinstance(player, Seat):
        return ResolvedRange(player, position) if isinstance(player, ResolvingSeat) else ObservedRange(player, position)
    return AnyHand() if isinstance(player, Program) and player.blind else None


def check_seed(seed: int) -> int:
    """Return `seed` if it is at least 0 and below 2^64; raise `ValueError` otherwise."""
    if not 0 <= seed < _SEEDS:
        raise ValueError(f"seed = {seed} is not allowed: it must be at least 0 and below 2^64")
    return seed


def common_game(contenders: Sequence[Contender]) -> Game:
    """Return the game of a match, that of the first policy among the contenders.

    Raises `ValueError` without a policy, for games that differ in more than buckets and bet sizes, and for rake of a
    game of two players.
    """
    games = [contender.spec.game for contender in contenders if contender.spec.game is not None]
    if not games:
        names = " and ".join(contender.name for contender in contenders)
        raise ValueError(f"{names} are programs: one of the players must be a policy or a run, whose game is played")
    for other in games[1:]:
        check_same_game(games[0], other)
    if games[0].rake is not None:
        raise ValueError(f"{games[0].name} takes rake, which matches do not pay: solve the game without rake")
    return games[0]


def match(
    contenders: Sequence[Contender],
    hands: int = 2_000,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> MatchFigures:
    """Return the results of a match between two contenders, for the first one.

    hands   number of hands, rounded up to whole pairs: each deal is played in both seats
    seed    of the deals and the players, at least 0 and below 2^64
    effort  number of worker processes, file for finished pairs, and a time limit, which replaces `hands`

    Raises `ValueError` for fewer than LEAST_PAIRS (100) pairs, different games, rake, illegal actions of programs, or a
    file of another match. Raises `OSError` if that file cannot be read or written, `StoppedError` at a signal, and
    `RuntimeError` if a worker dies.
    """
    pairs = -(-hands // 2)
    if pairs < LEAST_PAIRS:
        raise ValueError(f"hands = {hands}: at least {2 * LEAST_PAIRS} are needed, for an interval that holds")
    pairs_played = run_samples(Match(contenders, seed), pairs, effort)
    chips, all_in, aivat = (Figure(*ratio95(column, np.ones(len(pairs_played)))) for column in pairs_played.T)
    return MatchFigures(chips, all_in, aivat, 2 * len(pairs_played), pairs_played)
