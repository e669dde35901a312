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
* **From the first street** the responder decides before any board lies.  A maximum over what some flops happen to give
  would see them early, so what he does there is chosen by one half of the boards, for each class of hole cards, and
  scored on the other half; both ways, four boards in a stratum.  With all boards there is no split.

A board that lies, with all that may follow, is a small game of its own, walked by the kernel of exact evaluation;
boards to come that are alike but for suits are walked once.  Where all boards are played, one such walk of the whole
game gives the same: what he does before he responds is then known on every board.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import preflop_classes
from mccfr.cards.cards import Cards
from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.listed import ListedCards
from mccfr.evaluation.resolved_best_response import ResolvedBoards
from mccfr.evaluation.strata import BoardStrata, drawn_boards, stratified95, units_each
from mccfr.evaluation.units import Effort, Units, play_units, units_in
from mccfr.games.game import Game
from mccfr.play.resolving.table import Settings
from mccfr.policy.profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.street_arrays import RESPOND
from mccfr.tables.row_tables import some_rows
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.streets import AT_DECISION, StreetTrees, street_trees

_BLOCKS = 8  # kernels are compiled anew for each number of tables
_LEAST, _LEAST_SPLIT = 5, 8
_EACH_SPLIT = 4
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
    sample = _Sample(side, street, _resolved(side, street, resolve, seed))
    listed = sample.listed
    if boards is None:
        boards = _DEFAULT_BOARDS[game.cards.cards_on(street)] if listed is None else listed
    if effort.seconds is not None:
        ready = _LEAST_SPLIT if listed is None else min(_LEAST_SPLIT, listed)
        sample.draw(ready, seed)  # boards to time
        boards = units_in(sample, effort.seconds, effort.workers, least=sample.least, most=listed, ready=ready)
    played = boards if listed is None else min(boards, listed)
    if played < (least := least_boards(game, street)):
        raise ValueError(f"boards = {boards}: at least {least} are needed, for an interval")
    what: dict[str, Any] = {"method": "sampled-br", "street": street, "boards": played, "seed": seed}
    if resolve is not None:
        what["resolve"] = repr(resolve)
    if played == listed:
        won = play_units(_Whole(side, street), 1, effort, what=what, sides=(side,))
        return sample.result(won, played)
    sample.draw(played, seed)
    found = play_units(sample, played, effort, what=what, sides=(side,), progress=progress)
    return sample.result(found, played)


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
    """(street whose boards are sampled, how many are listed, whether responses are chosen and scored on halves).

    Before any board lies there is nothing to sample: boards of the next street are, and the rest is chosen.
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
    solved again, which the first two know of; where he decides before the board lies, it is
    what each way out of the first street is worth to each class of his hands instead of what he wins.
    """

    def __init__(self, side: Profile, street: int, resolved: ResolvedBoards | None = None) -> None:
        self._resolved = resolved
        self._game, self._strategy, self._street = side.game, side.strategy, street
        self._lies, self.listed, split = _sampled(side.game, street)
        self._first = _FirstStreet(side.game) if split else None
        self.least = _LEAST_SPLIT if split else _LEAST
        self.fields = 3 + 2 * (resolved is not None) if self._first is None else self._first.fields
        self._strata = BoardStrata.of(1, 1, 1)
        self._drawn: list[int] | list[list[int]] = []

    def draw(self, units: int, seed: int) -> None:
        """Draw the boards of so many units."""
        each = 1 if units == self.listed else units_each(units) if self._first is None else _EACH_SPLIT
        self._strata = BoardStrata.of(units, each, self.listed)
        self._drawn = drawn_boards(self._game.cards, self._lies, self._strata, seed)

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """As `Units.play`."""
        public, tables = _board_game(self._game, self._strategy, self._lies, self._drawn[unit])
        walk = Walk(public, tables)
        if self._first is None:
            won = [walk.values(player, self._street)[RESPOND] for player in range(2)]
            if self._resolved is None:
                return np.array([*won, public.joint_weight])
            board = self._drawn[unit]
            assert isinstance(board, list)
            less = self._resolved.gained(unit, board)
            return np.array([*(np.array(won) - less), public.joint_weight, *less])
        return self._first.found(public, walk, self._lies)

    def result(self, found: npt.NDArray[np.float64], boards: int) -> SampledBestResponse:
        """What the units [n, fields] come to; those of `_Whole` where all boards are played."""
        exact = boards == self.listed
        strata = BoardStrata.of(1, 1, 1) if exact else self._strata
        if self._first is not None and not exact:
            found, strata = self._first.scored(found, strata, split=True)
        weight, offset = found[:, 2], self._game.offset_chips
        value, interval = stratified95(found[:, :2].sum(axis=1) / 2, weight, strata)
        best = [stratified95(found[:, player], weight, strata)[0] for player in range(2)]
        gain = None if self._resolved is None else stratified95(found[:, 3:].sum(axis=1) / 2, weight, strata)
        return SampledBestResponse(value, interval, (best[0] + offset, best[1] - offset), boards, exact, gain)


class _Whole(Units):
    """All boards at once: what a responder wins as player 0, as player 1, and the weight of all pairs of hands."""

    fields = 3

    def __init__(self, side: Profile, street: int) -> None:
        self._game, self._strategy, self._street = side.game, side.strategy, street

    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """As `Units.play`."""
        public, tables = _card_game(self._game, self._strategy, self._game.cards.listed())
        walk = Walk(public, tables)
        return np.array([*(walk.values(player, self._street)[RESPOND] for player in range(2)), public.joint_weight])


def _boards(cards: Cards, street: int) -> int | None:
    """How many boards a street has; None where they are not listed."""
    if cards.boards is not None:
        return len(cards.listed().board_cards[street])
    return None if cards.cards_on(street) else 1


def _board_game(
    game: Game, strategy: Strategy, street: int, board: int | list[int]
) -> tuple[PublicTree, list[npt.NDArray[np.float64]]]:
    """As `_card_game`, below a board."""
    return _card_game(game, strategy, game.cards.after(street, board))


def _card_game(game: Game, strategy: Strategy, cards: ListedCards) -> tuple[PublicTree, list[npt.NDArray[np.float64]]]:
    """The public tree with some of a game's cards, and the strategy's tables [slots, buckets] of the buckets there."""
    tables, buckets = [], []
    for here in range(cards.streets):
        numbered = np.empty_like(cards.bucket[here])
        for player in range(2):
            held, block = cards.bucket[here][player], 2 * here + player
            known = np.unique(held[held != NO_BUCKET]).astype(np.int32)
            numbered[player] = np.where(held == NO_BUCKET, NO_BUCKET, np.searchsorted(known, held))
            tables.append(some_rows(strategy.blocks[block], row_starts(game, block), known, _BLOCKS))
        buckets.append(numbered)
    cards = replace(cards, bucket=buckets)
    return public_tree(replace(game, cards=cards), [table.T for table in tables]), tables


class _FirstStreet:
    """The responder's decisions before a board lies: chosen for each class of his hands.

    C classes, E ways out of the first street: folds, showdowns and exits; a unit is [2, E, C] and the board's weight.
    """

    def __init__(self, game: Game) -> None:
        self._trees: StreetTrees = street_trees(game.tree)
        self._class = hand_classes(game.cards)
        self._members = int(self._trees.first[1])
        self._out = np.flatnonzero(self._trees.kind[: self._members] != AT_DECISION)
        self._shape = (2, len(self._out), int(self._class.max()) + 1)
        self.fields = int(np.prod(self._shape)) + 1

    def found(self, public: PublicTree, walk: Walk, lies: int) -> npt.NDArray[np.float64]:
        """[fields] what a board's walks found, best responses being taken from street `lies` on."""
        values = np.zeros(self._shape)
        for player in range(2):
            walk.values(player, lies)
            first, stop = public.ranges.first[player, :2]
            hand = public.ranges.hand[first:stop]
            own = public.reach[player, hand]
            for place, member in enumerate(self._out.tolist()):
                value = walk.root.value[RESPOND, walk.root.member_first[0] + member, : stop - first]
                values[player, place] = np.bincount(self._class[hand], own * value, self._shape[2])
        return np.append(values.ravel(), public.joint_weight)

    def scored(
        self, found: npt.NDArray[np.float64], strata: BoardStrata, *, split: bool
    ) -> tuple[npt.NDArray[np.float64], BoardStrata]:
        """[n, 3] units as they are without a first street to decide on, and their strata.

        split  what is done on the first street is chosen by every other two units, and scored on those between
        """
        values, weight = found[:, :-1].reshape(len(found), *self._shape), found[:, -1]
        number = np.arange(len(found)) - np.searchsorted(strata.stratum, strata.stratum)  # within the stratum
        half = (number // 2 % 2).astype(bool) if split else np.zeros(len(found), bool)
        share = (strata.size / np.bincount(strata.stratum))[strata.stratum]
        won = np.zeros((len(found), 2))
        for scored in (half, ~half) if split else (~half,):
            chosen_by = ~scored if split else scored
            for player in range(2):
                whole = np.einsum("n,nec->ec", share[chosen_by], values[chosen_by, player])
                choice = self._walk(player, whole, None)[1]
                won[scored, player] = self._walk(player, values[scored, player], choice)[0].sum(axis=-1)
        # Two units of a stratum scored by one choice belong together; the two halves' choices differ.
        parts = (
            BoardStrata(2 * strata.stratum + half, np.repeat(strata.size / 2, 2), strata.listed) if split else strata
        )
        return np.column_stack([won, weight]), parts

    def _walk(
        self, player: int, values: npt.NDArray[np.float64], choice: dict[int, npt.NDArray[np.int64]] | None
    ) -> tuple[npt.NDArray[np.float64], dict[int, npt.NDArray[np.int64]]]:
        """[..., C] value of the root from those of the ways out [..., E, C], and what was done [C] at each decision.

        choice  what the player does; None: what is best for each class
        """
        trees, done = self._trees, dict[int, npt.NDArray[np.int64]]()
        value = {member: values[..., place, :] for place, member in enumerate(self._out.tolist())}
        for member in range(self._members - 1, -1, -1):
            if trees.kind[member] != AT_DECISION:
                continue
            child = int(trees.child[member])
            below = np.stack([value[child + action] for action in range(int(trees.actions[member]))])
            if trees.player[member] != player:
                value[member] = below.sum(axis=0)
                continue
            best = below.argmax(axis=0) if choice is None else choice[member]
            done[member] = best
            value[member] = np.take_along_axis(below, np.broadcast_to(best, (1, *below.shape[1:])), axis=0)[0]
        return value[0], done


def hand_classes(cards: Cards) -> npt.NDArray[np.int64]:
    """[H] class of each hand before a board lies: of hole cards in hold'em; elsewhere every hand is one."""
    if cards.boards is None:
        return preflop_classes().astype(np.int64)
    return np.arange(len(cards.listed().hand_cards))
