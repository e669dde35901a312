"""Matches of three and more players: each deal is played in every rotation of the players.

A sample is one deal. With P players it is played P times with the same cards. Each time all players move by one seat.
So each player plays every seat, with the cards dealt to that seat. A player's result is the mean over these hands, and
its interval is over deals. The game's rake is paid. There is no AIVAT, which is for two players.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Deal
from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.games.translation import real_betting
from mccfr.matches.match import LEAST_PAIRS, PLAYERS, Contender, Figure, check_seed, common_game
from mccfr.play.table import PlayedHand, play_hand, won_chips


@dataclass(frozen=True)
class SeatFigures:
    """Result of a match of P players.

    figures  each player's mean chips won per hand, with its 95 % interval
    hands    number of hands, P for each deal
    deals    [n, P] each player's mean chips won per hand on each of the n deals
    """

    figures: Sequence[Figure]
    hands: int
    deals: npt.NDArray[np.float64]


class SeatMatch(SampledEvaluation):
    """A match of three or more players as a sampled evaluation: `run_samples` plays its samples.

    A sample is one deal, played once in every rotation of the players over the seats.
    """

    least, option, step = LEAST_PAIRS, "deals", "deal"

    def __init__(self, contenders: Sequence[Contender], seed: int = 0) -> None:
        """Take a contender (policy or program) for each seat; the game is that of the policies among them.

        seed  of the deals and the players, at least 0 and below 2^64

        Raises `ValueError` for another number of contenders than the game's players, programs only, and games that
        differ.
        """
        self.game, self._seed = common_game(contenders), check_seed(seed)
        if len(contenders) != self.game.tree.players:
            raise ValueError(
                f"{self.game.name} has {self.game.tree.players} players, and {len(contenders)} were given: name one "
                "for each seat; a name may occur more than once"
            )
        self._contenders, self.names, self.fields = contenders, [each.name for each in contenders], len(contenders)
        self.identity_fields = {"method": "match of seats", "seed": seed, "names": self.names}
        self.betting, self.dealing = real_betting(self.game), self.game.table_cards()
        self._players = [contender.spec.player(self.betting) for contender in contenders]

    def identity(self) -> dict[str, Any]:
        """Return a dict that determines all hands: contenders' names and hashes, and the seed."""
        return super().identity() | {"players": [contender.fingerprint() for contender in self._contenders]}

    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Play deal number `sample` once for each of P rotations of the players over the seats.

        Returns [P] each contender's mean chips won per hand.
        """
        chips = np.zeros(self.fields)
        for rotation in range(self.fields):
            deal, played = self.hand(sample, rotation)
            chips += np.roll(won_chips(self.game, self.dealing, deal, played), rotation)
        return chips / self.fields

    def hand(self, sample: int, rotation: int) -> tuple[Deal, PlayedHand]:
        """Play one hand of deal number `sample` and return (cards of the deal, played hand).

        rotation  0 to P - 1, by which the players' seats are moved: contender i has seat (i - rotation) modulo P
        """
        deal, number = self.dealing.deal(self._seed, sample), self.fields * sample + rotation
        for which, player in enumerate(self._players):
            player.reseed(int(new_stream(self._seed, PLAYERS + which, EVALUATION, number)[0]))
        order = [(position + rotation) % self.fields for position in range(self.fields)]
        players, names = [self._players[which] for which in order], [self.names[which] for which in order]
        return deal, play_hand(players, self.betting, self.dealing, deal, number, names)


def match_of_seats(contenders: Sequence[Contender], hands: int, seed: int, effort: Effort) -> SeatFigures:
    """Play a match of three or more players; return their mean winnings per hand and intervals.

    contenders  a policy or program for each seat
    hands       number of hands, rounded up to whole deals; each deal is played once per seat
    seed        of the deals and the players
    effort      number of worker processes, file for finished deals, and a time limit, which replaces `hands`

    Raises `ValueError` for fewer than LEAST_PAIRS (100) deals, another number of contenders than the game's players,
    different games, or a file of another match. Raises `OSError` if that file cannot be read or written,
    `StoppedError` at a signal, and `RuntimeError` if a worker dies.
    """
    playing = SeatMatch(contenders, seed)
    deals = -(-hands // playing.fields)
    if deals < LEAST_PAIRS:
        least = playing.fields * LEAST_PAIRS
        raise ValueError(f"hands = {hands}: at least {least} are needed, for an interval that holds")
    played = run_samples(playing, deals, effort)
    figures = [Figure(*ratio95(column, np.ones(len(played)))) for column in played.T]
    return SeatFigures(figures, playing.fields * len(played), played)
