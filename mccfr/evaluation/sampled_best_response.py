"""Sampled best response: a responder with real cards, for a lower bound on exploitability.

Before a given street the responder plays the evaluated strategy itself. From that street on it knows its own cards
and the other player's strategy, and plays a best response with the tree's bets. Johanson, Waugh, Bowling & Zinkevich
2011, "Accelerating best response calculation in large extensive games", compute such responses; here chance is
sampled up to the street.

* **Boards are sampled up to the street and enumerated below it.** The maximum at each decision uses only the
  responder's information: the board, the other player's whole range and all cards to come. Each board's value thus
  belongs to a playable strategy, and in expectation the mean is at most a best response's value.
* **Boards are drawn in strata** (`mccfr.evaluation.stratified_boards`), at least two in each. If all listed boards of
  the street are requested, the value is exact.
* **From the first street on** the responder decides before the board (`mccfr.evaluation.preflop_best_response`). For
  each board, its choice there is made by all other boards.

Each board with all later cards is a small game, walked by the kernel of exact evaluation; boards that differ by
suits only are walked once. If all boards are requested, one walk of the whole game gives the same result.
"""

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import Cards
from mccfr.evaluation.board_game import board_game, card_game
from mccfr.evaluation.samples import Effort, LowerBound, run_samples
from mccfr.evaluation.stratified_boards import BoardSamples, BoardStrata, stratified95
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import RESPOND

_LEAST, _READY = 5, 8
_DEFAULT_BOARDS = {5: 600, 4: 120, 3: 8}
"""Default number of boards of full-deck hold'em by board cards: some minutes for a small tree."""


def sampled_best_response(
    side: Profile,
    street: int,
    boards: int | None = None,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> LowerBound:
    """Return the chips that a best response from a street on wins from a strategy.

    street   from which the responder knows its cards; before it, it plays the strategy
    boards   number of boards, at most all listed ones; None: all listed ones or a default

    Raises `ValueError` for a game without cards beside its tree, and too few boards for an interval; also raises as
    `run_samples`.
    """
    if not side.game.cards.dealt:
        raise ValueError(f"{side.game.name} deals no cards outside of its tree: use the method exact")
    samples = BestResponseSamples(side, street, seed)
    if boards is None:
        boards = samples.most or _DEFAULT_BOARDS[side.game.cards.cards_on(street)]
    return samples.bound(run_samples(samples, boards, effort))


class BestResponseSamples(BoardSamples):
    """Boards of one street, with the responder's chips on each.

    A sample is (chips as player 0, chips as player 1, the board's weight). If all boards are requested, they are one
    sample.
    """

    fields, ready = 3, _READY

    def __init__(self, side: Profile, street: int, seed: int = 0) -> None:
        """Take the policy and the street of the responder's first decision."""
        self.least = least_boards(side.game, street)
        super().__init__(side, street, _listed_boards(side.game.cards, street), seed)
        self._all = False

    def draw(self, count: int) -> int:
        """Draw the boards of `count` samples, or take all listed ones as one sample."""
        self.identity_fields = {"method": "sampled-br", "street": self.street, "boards": count, "seed": self.seed}
        self._all, self._count = count == self.most, count
        if self._all:
            self.strata = BoardStrata.of(1, 1, 1)
            return 1
        return super().draw(count)

    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Return one sample."""
        game, strategy = self.game, self.strategy
        public, tables = (
            card_game(game, strategy, game.cards.listed())
            if self._all
            else board_game(game, strategy, self.street, self.boards[sample])
        )
        walk = Walk(public, tables)
        won = [walk.values(player, self.street)[RESPOND] for player in range(2)]
        return np.array([*won, public.joint_weight])

    def bound(self, samples: npt.NDArray[np.float64]) -> LowerBound:
        """Return the bound from all samples [n, fields]."""
        offset = self.game.offset_chips
        weight, strata = samples[:, 2], self.strata
        value, interval = stratified95(samples[:, :2].sum(axis=1) / 2, weight, strata)
        first, second = (stratified95(samples[:, player], weight, strata)[0] for player in range(2))
        return LowerBound(value, interval, (first + offset, second - offset), self._count, self._all)


def least_boards(game: Game, street: int) -> int:
    """Return the least number of boards of a best response from a street on; all listed ones if fewer.

    Raises `ValueError` for a street of the whole deck that has no board.
    """
    listed = _listed_boards(game.cards, street)
    if listed is None and not game.cards.cards_on(street):
        raise ValueError(
            f"{game.name} has no board on street {game.street_name(street)}: respond from a later street (--from), or "
            "use --method exact --flops N"
        )
    return _LEAST if listed is None else min(_LEAST, listed)


def _listed_boards(cards: Cards, street: int) -> int | None:
    """Return the number of boards of a street; None if they are not listed."""
    return None if cards.boards is None else len(cards.listed().board_cards[street])
