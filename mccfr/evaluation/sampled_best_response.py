"""Sampled best response: what a player who knows his real cards wins from a strategy, a lower bound on exploitability.

Before a street the responder plays the strategy that he is up against; from that street on he knows his own cards, not
their bucket, and the other player's strategy, and best-responds with the bets of the tree.  (Real-game best responses:
Johanson, Waugh, Bowling & Zinkevich 2011, "Accelerating best response calculation in large extensive games"; here
chance is sampled up to the street.)

* **Boards are sampled up to the street and enumerated below it.**  A maximum is taken at the responder's decisions
  only, over what he knows there: on the board that lies, against the whole range that the other player may hold, over
  every card that may still come.  So each board's value is that of a strategy which he could play, their mean is one
  too, and in expectation it is not above what a best response wins.
* **Boards are drawn in strata** (`mccfr.evaluation.strata`), two or more in each.  Where all boards of the street are
  listed and asked for, nothing is sampled, and the value is that of the responder to the last digits.
* **From the first street** the responder decides before any board lies (`mccfr.evaluation.first_street`): what he does
  there is chosen, for each board, by all the others.

A board that lies, with all that may follow, is a small game of its own, walked by the kernel of exact evaluation;
boards to come that are alike but for suits are walked once.  Where all boards are played, one such walk of the whole
game gives the same: what he does before he responds is then known on every board.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.cards import Cards
from mccfr.evaluation.board_game import board_game, card_game
from mccfr.evaluation.first_street import SecondStreetBoards
from mccfr.evaluation.resolved_best_response import ResolvedBoards
from mccfr.evaluation.strata import BoardStrata, drawn_boards, stratified95, units_each
from mccfr.evaluation.units import Effort, Units, play_units, units_in
from mccfr.games.game import Game
from mccfr.play.resolving.table import Settings
from mccfr.policy.profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import RESPOND

_LEAST, _LEAST_SPLIT = 5, 8
_DEFAULT_BOARDS = {5: 600, 4: 120, 3: 8, 0: 8}
"""Boards of whole hold'em by the cards that lie: some minutes of a small tree."""


@dataclass(frozen=True)
class SampledBestResponse:
    """What the responder wins.

    value_chips          chips a hand, the mean over both seats: a lower bound on exploitability, in expectation
    ci95_chips           95 % interval for it by Student's t, from how boards differ within strata; without width where
                         every board was played
    best_response_chips  to each player, player 0's with the game's `offset_chips`, player 1's less it
    boards               boards played, each from both seats
    exact                whether these were all boards
    gain_chips           what he wins less from the strategy when its hands are solved again than when they are not, on
                         the same boards, and its interval; None where they are not
    """

    value_chips: float
    ci95_chips: tuple[float, float]
    best_response_chips: tuple[float, float]
    boards: int
    exact: bool
    gain_chips: tuple[float, tuple[float, float]] | None = None


def sampled_best_response(
    side: Profile,
    street: int,
    boards: int | None = None,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
    resolve: Settings | None = None,
) -> SampledBestResponse:
    """What a best response from a street on wins from a strategy.

    street    from which the responder knows his cards; before it he plays the strategy
    boards    how many are played; where boards are listed never more than there are, which is what None means
    progress  called after each board with the boards played and their number
    resolve   how the strategy solves its hands again, whole no-limit hold'em and this street, river or turn
              (`mccfr.evaluation.resolved_best_response`)

    Raises `ValueError` for a game without cards beside its tree, too few boards for an interval, and hands that are
    solved again from another street than the responder's on; and as `play_units`.
    """
    game = side.game
    if not game.cards.dealt:
        raise ValueError(f"{game.name} deals no cards beside its tree: use the method exact")
    lies, listed, first = _sampled(game, street)
    sample = SecondStreetBoards(side) if first else _Sample(side, lies, street, _resolved(side, street, resolve, seed))
    least = least_boards(game, street)
    if boards is None:
        boards = _DEFAULT_BOARDS[game.cards.cards_on(street)] if listed is None else listed
    if effort.seconds is not None:
        ready = _LEAST_SPLIT if listed is None else min(_LEAST_SPLIT, listed)
        sample.draw(ready, seed, listed)  # boards to time
        boards = units_in(sample, effort.seconds, effort.workers, least=least, most=listed, ready=ready)
    played = boards if listed is None else min(boards, listed)
    if played < least:
        raise ValueError(f"boards = {boards}: at least {least} are needed, for an interval")
    what: dict[str, Any] = {"method": "sampled-br", "street": street, "boards": played, "seed": seed}
    if resolve is not None:
        what["resolve"] = repr(resolve)
    if played == listed:
        won = play_units(_Whole(side, street), 1, effort, what=what, sides=(side,))
        return _result(game, won, BoardStrata.of(1, 1, 1), played, exact=True)
    sample.draw(played, seed, listed)
    found = play_units(sample, played, effort, what=what, sides=(side,), progress=progress)
    if isinstance(sample, _Sample):
        return _result(game, found, sample.strata, played)
    fitted, offset = sample.first.sampled(found, sample.strata), game.offset_chips
    best = (fitted.best[0] + offset, fitted.best[1] - offset)
    return SampledBestResponse(*fitted.lower, best, played, exact=False)


def _result(
    game: Game, found: npt.NDArray[np.float64], strata: BoardStrata, boards: int, *, exact: bool = False
) -> SampledBestResponse:
    """What units [n, 3] come to, or [n, 5] with what each seat wins less where hands are solved again."""
    weight, offset = found[:, 2], game.offset_chips
    value, interval = stratified95(found[:, :2].sum(axis=1) / 2, weight, strata)
    best = [stratified95(found[:, player], weight, strata)[0] for player in range(2)]
    gain = None if found.shape[1] == 3 else stratified95(found[:, 3:].sum(axis=1) / 2, weight, strata)
    return SampledBestResponse(value, interval, (best[0] + offset, best[1] - offset), boards, exact, gain)


def _resolved(side: Profile, street: int, resolve: Settings | None, seed: int) -> ResolvedBoards | None:
    if resolve is None:
        return None
    found = ResolvedBoards(side, resolve, seed)
    if street != found.street:
        raise ValueError(
            f"with resolve, a best response is taken from where hands are solved again: --from {resolve.street}"
        )
    return found


def _sampled(game: Game, street: int) -> tuple[int, int | None, bool]:
    """(street whose boards are sampled, how many are listed, whether he decides before they lie).

    Before any board lies there is nothing to sample: boards of the next street are.
    """
    cards = game.cards
    if cards.cards_on(street) or _boards(cards, street) != 1 or street + 1 == cards.streets:
        return street, _boards(cards, street), False
    listed = _boards(cards, street + 1)
    return (street + 1, listed, True) if street == 0 and listed != 1 else (street, 1, False)


def least_boards(game: Game, street: int) -> int:
    """The fewest boards of a best response from a street on: enough for an interval, or all that there are."""
    _, listed, split = _sampled(game, street)
    least = _LEAST_SPLIT if split else _LEAST
    return least if listed is None else min(least, listed)


class _Sample(Units):
    """Boards of a street: what a responder wins on each.

    A unit is (what he wins as player 0, as player 1, the board's weight), and by seat what he wins less where hands are
    solved again, which the first two know of.
    """

    def __init__(self, side: Profile, lies: int, street: int, resolved: ResolvedBoards | None = None) -> None:
        """`lies` is the street whose boards are drawn, `street` that from which he responds."""
        self._resolved = resolved
        self._game, self._strategy, self._lies, self._street = side.game, side.strategy, lies, street
        self.fields = 3 + 2 * (resolved is not None)
        self.strata = BoardStrata.of(1, 1, 1)
        self._drawn: list[int] | list[list[int]] = []

    def draw(self, units: int, seed: int, listed: int | None) -> None:
        """Draw the boards of so many units; `listed` of them there are, None: boards of the deck."""
        self.strata = BoardStrata.of(units, 1 if units == listed else units_each(units), listed)
        self._drawn = drawn_boards(self._game.cards, self._lies, self.strata, seed)

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """As `Units.play`."""
        board = self._drawn[unit]
        public, tables = board_game(self._game, self._strategy, self._lies, board)
        walk = Walk(public, tables)
        won = [walk.values(player, self._street)[RESPOND] for player in range(2)]
        if self._resolved is None:
            return np.array([*won, public.joint_weight])
        assert isinstance(board, list)
        less = self._resolved.gained(unit, board)
        return np.array([*(np.array(won) - less), public.joint_weight, *less])


class _Whole(Units):
    """All boards at once: what a responder wins as player 0, as player 1, and the weight of all pairs of hands."""

    fields = 3

    def __init__(self, side: Profile, street: int) -> None:
        self._game, self._strategy, self._street = side.game, side.strategy, street

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """As `Units.play`."""
        public, tables = card_game(self._game, self._strategy, self._game.cards.listed())
        walk = Walk(public, tables)
        return np.array([*(walk.values(player, self._street)[RESPOND] for player in range(2)), public.joint_weight])


def _boards(cards: Cards, street: int) -> int | None:
    """How many boards a street has; None where they are not listed."""
    if cards.boards is not None:
        return len(cards.listed().board_cards[street])
    return None if cards.cards_on(street) else 1
