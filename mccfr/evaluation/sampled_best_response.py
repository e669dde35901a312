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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.base import Cards
from mccfr.evaluation.board_game import board_game, card_game
from mccfr.evaluation.preflop_best_response import SecondStreetBoards
from mccfr.evaluation.resolved_best_response import ResolvedBoards
from mccfr.evaluation.samples import Effort, SampledWork, play_units, units_in
from mccfr.evaluation.stratified_boards import BoardStrata, drawn_boards, stratified95, units_each
from mccfr.games.game import Game
from mccfr.play.resolving.resolving_table import Settings
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import RESPOND

_LEAST, _LEAST_SPLIT = 5, 8
_DEFAULT_BOARDS = {5: 600, 4: 120, 3: 8, 0: 8}
"""Default number of boards of full-deck hold'em by board cards: some minutes for a small tree."""


@dataclass(frozen=True)
class SampledBestResponse:
    """Result of a sampled best response.

    value_chips          chips per hand, the mean over both seats; in expectation a lower bound on exploitability
    ci95_chips           95 % interval of it by Student's t within strata; of zero width if every board was played
    best_response_chips  of each player; player 0's plus the game's `offset_chips`, player 1's minus it
    boards               number of boards, each played from both seats
    exact                all boards were played
    gain_chips           reduction of the responder's chips by re-solving, on the same boards, and its 95 % interval;
                         None without re-solving
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
    """Return the chips that a best response from a street on wins from a strategy.

    street    from which the responder knows its cards; before it, it plays the strategy
    boards    number of boards, at most all listed ones; None: all listed ones or a default
    progress  called after each board with the number done and the total
    resolve   re-solving settings of the strategy, for full-deck no-limit hold'em from the same street on, river or
              turn (`mccfr.evaluation.resolved_best_response`)

    Raises `ValueError` for a game without cards beside its tree, too few boards for an interval, or re-solving from
    another street; also raises as `play_units`.
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
        sample.draw(ready, seed, listed)  # boards for timing
        boards = units_in(sample, effort.seconds, effort.workers, least=least, most=listed, ready=ready)
    played = boards if listed is None else min(boards, listed)
    if played < least:
        raise ValueError(f"boards = {boards}: at least {least} are needed, for an interval")
    what: dict[str, Any] = {"method": "sampled-br", "street": street, "boards": played, "seed": seed}
    if resolve is not None:
        what["resolve"] = repr(resolve)
    if played == listed:
        won = play_units(_AllBoards(side, street), 1, effort, what=what, sides=(side,))
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
    """Return the result from samples [n, 3], or [n, 5] with the reduction by re-solving in each seat."""
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
    """Return the street whose boards are sampled, their listed number, and a first-street flag.

    With the flag the responder decides before the board is dealt. A street without a board has nothing to sample, so
    boards of the next street are sampled instead.
    """
    cards = game.cards
    if cards.cards_on(street) or _boards(cards, street) != 1 or street + 1 == cards.streets:
        return street, _boards(cards, street), False
    listed = _boards(cards, street + 1)
    return (street + 1, listed, True) if street == 0 and listed != 1 else (street, 1, False)


def least_boards(game: Game, street: int) -> int:
    """Return the least number of boards of a best response from a street on; all listed ones if fewer."""
    _, listed, split = _sampled(game, street)
    least = _LEAST_SPLIT if split else _LEAST
    return least if listed is None else min(least, listed)


class _Sample(SampledWork):
    """Boards of one street, with the responder's chips on each.

    A sample is (chips as player 0, chips as player 1, the board's weight). With re-solving, two reductions by seat
    follow; the first two numbers include them.
    """

    def __init__(self, side: Profile, lies: int, street: int, resolved: ResolvedBoards | None = None) -> None:
        """Take the policy, the boards' street `lies` and the street of the responder's first decision."""
        self._resolved = resolved
        self._game, self._strategy, self._lies, self._street = side.game, side.strategy, lies, street
        self.fields = 3 + 2 * (resolved is not None)
        self.strata = BoardStrata.of(1, 1, 1)
        self._drawn: list[int] | list[list[int]] = []

    def draw(self, units: int, seed: int, listed: int | None) -> None:
        """Draw the boards of `units` samples; `listed` is the number of listed boards, None: full deck."""
        self.strata = BoardStrata.of(units, 1 if units == listed else units_each(units), listed)
        self._drawn = drawn_boards(self._game.cards, self._lies, self.strata, seed)

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """Return one board's sample."""
        board = self._drawn[unit]
        public, tables = board_game(self._game, self._strategy, self._lies, board)
        walk = Walk(public, tables)
        won = [walk.values(player, self._street)[RESPOND] for player in range(2)]
        if self._resolved is None:
            return np.array([*won, public.joint_weight])
        assert isinstance(board, list)
        less = self._resolved.gained(unit, board)
        return np.array([*(np.array(won) - less), public.joint_weight, *less])


class _AllBoards(SampledWork):
    """All boards in one sample: the responder's chips as player 0, as player 1, and the weight."""

    fields = 3

    def __init__(self, side: Profile, street: int) -> None:
        self._game, self._strategy, self._street = side.game, side.strategy, street

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """Return the only sample."""
        public, tables = card_game(self._game, self._strategy, self._game.cards.listed())
        walk = Walk(public, tables)
        return np.array([*(walk.values(player, self._street)[RESPOND] for player in range(2)), public.joint_weight])


def _boards(cards: Cards, street: int) -> int | None:
    """Return the number of boards of a street; None if they are not listed."""
    if cards.boards is not None:
        return len(cards.listed().board_cards[street])
    return None if cards.cards_on(street) else 1
