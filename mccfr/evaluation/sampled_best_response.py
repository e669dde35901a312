"""Sampled best response: a responder with exact cards, for a lower bound on exploitability.

Before a given street the responder plays the evaluated strategy itself. From that street on it knows its own cards
and the other player's strategy, and plays a best response with the tree's bets. Johanson, Waugh, Bowling & Zinkevich
2011, "Accelerating best response calculation in large extensive games", compute such responses; here chance is
sampled up to the street.

* **Boards are sampled up to the street and enumerated below it.** The maximum at each decision uses only the
  responder's information: the board, the other player's whole range and all cards to come. Each board's value thus
  belongs to a playable strategy, and in expectation the mean is at most a best response's value.
* **Boards are drawn from groups of similar boards** (strata, `mccfr.evaluation.stratified_boards`), at least two in
  each. If a game lists its boards and all are requested, the value is exact.
* **From the first street on** the responder decides before the board (`mccfr.evaluation.preflop_best_response`). For
  each board, its choice there is made by all other boards.

Each board with all later cards is a small game, walked by the kernel of exact evaluation; boards that differ by
suits only are walked once. If all boards are requested, one walk of the whole game gives the same result.
"""

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import Cards
from mccfr.evaluation.board_game import board_game, card_game
from mccfr.evaluation.preflop_best_response import FirstStreet
from mccfr.evaluation.resolved_best_response import ResolvedBoards
from mccfr.evaluation.samples import Effort, LowerBound, run_samples
from mccfr.evaluation.stratified_boards import BoardSamples, BoardStrata, stratified95
from mccfr.games.game import Game
from mccfr.play.resolving.resolving_table import Settings
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import RESPOND

_LEAST, _LEAST_SPLIT = 5, 8
_DEFAULT_BOARDS = {5: 600, 4: 120, 3: 8, 0: 8}
"""Default number of boards of full-deck hold'em by board cards: some minutes for a small tree."""


def sampled_best_response(
    side: Profile,
    street: int,
    boards: int | None = None,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    resolve: Settings | None = None,
) -> LowerBound:
    """Return the chips per hand that a best response from some street on wins from a strategy.

    side     the game and the strategy that is measured
    street   number of the first street, from 0, on which the responder plays a best response; before it, the responder
             plays the strategy itself
    boards   number of sampled boards of that street, or of the next if it is the first and has no board. None: all
             boards if the game lists them, else 600 rivers, 120 turns or 8 flops
    seed     seed of the drawn boards
    effort   number of processes, time budget (which replaces `boards`) and journal file for resuming
    resolve  how the strategy re-solves, for full-deck no-limit hold'em from the same street on, river or turn; None: it
             does not (`mccfr.evaluation.resolved_best_response`)

    Raises `ValueError` for a game without cards or with the cards in its tree. Also for too few boards for a 95 %
    interval (`least_boards`), for re-solving from another street, and if the journal belongs to another evaluation.
    Raises `OSError` if the journal cannot be read or written, `StoppedError` if a signal stops it, and `RuntimeError`
    if a worker process dies.
    """
    if not side.game.cards.dealt:
        raise ValueError(f"{side.game.name} deals no cards outside of its tree: use the method exact")
    samples = BestResponseSamples(side, street, seed, resolve)
    if boards is None:
        boards = samples.most or _DEFAULT_BOARDS[side.game.cards.cards_on(street)]
    return samples.bound(run_samples(samples, boards, effort))


class BestResponseSamples(BoardSamples):
    """Runs a sampled best response, board by board.

    A sample is one board; if all listed boards are requested, they are one sample together. Its result has three
    numbers, summed over pairs of hands by weight: the responder's chips as player 0, as player 1, and the weight. If
    the policy re-solves, these are chips against the re-solving policy. Two numbers follow: by seat, how many more
    chips the responder wins against the policy without re-solving.

    If the responder decides before the board, the result of a drawn board is that of `FirstStreet`.

    first  computes the responder's actions on a first street without board; None: it decides on the board
    """

    def __init__(self, side: Profile, street: int, seed: int = 0, resolve: Settings | None = None) -> None:
        """Take the policy, and the street from which the responder plays a best response.

        side     the policy's game and strategy
        street   number of the street, from 0
        seed     seed of the drawn boards
        resolve  how the policy re-solves, from the same street on; None: it does not

        Raises `ValueError` if the policy re-solves from another street, or cannot re-solve in this game.
        """
        boards_on, listed, before_board = _sampled(side.game, street)
        super().__init__(side, boards_on, listed, seed)
        self._from, self._all = street, False
        self.first = FirstStreet(side.game) if before_board else None
        self._resolved = None if resolve is None else ResolvedBoards(side, resolve, seed)
        if self._resolved is not None and street != self._resolved.street:
            raise ValueError(
                f"resolve = {self._resolved.settings.street}: the responder's first street must be the same one; give "
                f"--from {self._resolved.settings.street}"
            )
        self.fields = self._drawn_fields = self.first.fields if self.first else 3 + 2 * (resolve is not None)
        self.least = least_boards(side.game, street)
        self.ready = _LEAST_SPLIT

    def draw(self, count: int) -> int:
        """Draw `count` boards, one for each sample; return the number of samples.

        If the game lists no more boards than that, all of them are one sample.
        """
        self.identity_fields = {"method": "sampled-br", "street": self._from, "boards": count, "seed": self.seed}
        if self._resolved is not None:
            self.identity_fields["resolve"] = repr(self._resolved.settings)
        self._all, self._count = count == self.most, count
        if self._all:
            self.fields, self.strata = 3, BoardStrata.of(1, 1, 1)
            return 1
        self.fields = self._drawn_fields
        return super().draw(count)

    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Return the result of one sample as a float64 array, whose numbers the class describes."""
        game, strategy = self.game, self.strategy
        public, tables = (
            card_game(game, strategy, game.listed_cards())
            if self._all
            else board_game(game, strategy, self.street, self.boards[sample])
        )
        if self.first is not None and not self._all:
            return self.first.sample_of_board(public, tables)
        walk = Walk(public, tables)
        won = [walk.values(player, self._from)[RESPOND] for player in range(2)]
        if self._resolved is None or self._all:
            return np.array([*won, public.joint_weight])
        less = self._resolved.gained(sample, self.boards[sample])
        return np.array([*(np.array(won) - less), public.joint_weight, *less])

    def bound(self, samples: npt.NDArray[np.float64]) -> LowerBound:
        """Return the lower bound on exploitability computed from the results of all samples.

        samples  [n, fields] results of `play`
        """
        offset = self.game.offset_chips
        if self.first is not None and not self._all:
            fitted = self.first.sampled(samples, self.strata)
            best = (fitted.best[0] + offset, fitted.best[1] - offset)
            return LowerBound(*fitted.lower, best, self._count)
        weight, strata = samples[:, 2], self.strata
        value, interval = stratified95(samples[:, :2].sum(axis=1) / 2, weight, strata)
        first, second = (stratified95(samples[:, player], weight, strata)[0] for player in range(2))
        gain = None if self._resolved is None else stratified95(samples[:, 3:].sum(axis=1) / 2, weight, strata)
        return LowerBound(value, interval, (first + offset, second - offset), self._count, self._all, gain)


def _sampled(game: Game, street: int) -> tuple[int, int | None, bool]:
    """Return (street whose boards are sampled, number of its boards, flag) for a best response.

    The number is None for boards of the full deck. The result is usually `street`, the first street on which the
    responder plays a best response. If that is the game's first street and has no board, it is the next street, if that
    has several boards. The flag is then True: the responder decides before the board is dealt.
    """
    cards = game.cards
    if cards.cards_on(street) or _boards(cards, street) != 1 or street + 1 == cards.streets:
        return street, _boards(cards, street), False
    listed = _boards(cards, street + 1)
    return (street + 1, listed, True) if street == 0 and listed != 1 else (street, 1, False)


def least_boards(game: Game, street: int) -> int:
    """Return the least number of boards that a best response from `street` on needs for a 95 % interval.

    It is 8 if the responder decides before the board is dealt, else 5; but no more than the game lists.
    """
    _, listed, split = _sampled(game, street)
    least = _LEAST_SPLIT if split else _LEAST
    return least if listed is None else min(least, listed)


def _boards(cards: Cards, street: int) -> int | None:
    """Return the number of boards of a street; None for board cards of the full deck."""
    if cards.boards is not None:
        return len(cards.listed().board_cards[street])
    return None if cards.cards_on(street) else 1
