"""Best responses to a policy that re-solves rivers, or turns and rivers (`mccfr.play.resolving`).

On each board the responder's chips against the policy without re-solving come from the walk of `sampled_best_response`.
The effect of re-solving is a sum over the tree's decisions that begin the re-solved street. Each term is the best
response's value against the policy minus that against the new solution, weighted by both players' reach. There are
hundreds of terms, so some are drawn, in proportion to reach times pot, and importance-weighted, which is unbiased. From
that street on the responder has the subgame's bets, before it the tree's.

On a turn the responder plays a best response to the turn's solution, and on the river one to the river's new solution.
What the second re-solving takes from it is another sum, over the lines that reach rivers; some of these are drawn
likewise. Its turn strategy ignores the later re-solving, so its chips are in expectation a lower bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_lists import ListedCards
from mccfr.common.rng import EVALUATION
from mccfr.games.betting import BettingState
from mccfr.play.policy_seat import Seat
from mccfr.play.resolving.all_spots import roots
from mccfr.play.resolving.resolving_spot import Spot, hand_rows
from mccfr.play.resolving.resolving_table import Acted, PublicState, Resolver, Settings
from mccfr.policy.strategy_profile import Profile
from mccfr.trees.betting_lines import put_in_chips

ROOTS = {"river": 12, "turn": 3}
"""Number of decisions at the start of the street drawn for each board and seat."""
RIVERS = 4
"""Number of lines to rivers drawn for each decision at the start of a turn."""
_ROOTS_DRAWN = 1  # distinguishes their random stream from that of boards
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Root:
    """A decision that begins the re-solved street on one board.

    node   number of the decision in the game's tree
    reach  [2, H] weights of both players' hands there
    share  weight of all pairs of hands times chips in the pot; the decision is drawn in proportion to it
    """

    node: int
    reach: Floats
    share: float


@dataclass(frozen=True)
class StreetExit:
    """An action that ends the betting of a re-solved turn.

    at      public state before the action
    action  the action, one of `at.actions`; the responder or the policy takes it
    own     [H] weights of the responder's hands after the action
    share   weight of pairs of hands times chips in the pot; the action is drawn in proportion to it
    """

    at: PublicState
    action: str
    own: Floats
    share: float


class ResolvedBoards:
    """Measures on single boards how much less a best response wins because the policy re-solves.

    street    number of the first street that the policy re-solves
    settings  how the policy re-solves
    """

    def __init__(self, side: Profile, settings: Settings, seed: int, root_count: int | None = None) -> None:
        """Take a policy and its settings of re-solving.

        side        the policy's game and strategy
        settings    how the policy re-solves, from the turn or the river on
        seed        seed of the draws of decisions and lines
        root_count  number of decisions drawn for each board and seat; None: 12 for the river, 3 for the turn

        Raises `ValueError` unless the game is full-deck no-limit hold'em, and for settings that re-solve the flop.
        """
        if settings.street not in ROOTS:
            raise ValueError(
                f"resolve = {settings.street!r} is not allowed for sampled-br, which supports turn and river: use lbr"
            )
        self._game, self._strategy, self._seed, self.settings = side.game, side.strategy, seed, settings
        self._count = root_count or ROOTS[settings.street]
        self._resolver = Resolver(Seat(side), settings)
        self.street = self._resolver.street
        self._dealing = side.game.table_cards()
        self._roots = roots(side.game, self.street)

    def gained(self, unit: int, board: list[int]) -> Floats:
        """Return [2] by seat how many chips fewer a responder wins because the policy re-solves.

        The comparison is with the policy without re-solving. Chips are summed over pairs of hands, weighted by both
        players' reach, and estimated from drawn decisions.

        unit   number of the board in the evaluation, which seeds the draws
        board  card numbers of the board on the re-solved street
        """
        later = self._game.cards.after(self.street, board)
        reduction, random = np.zeros(2), np.random.default_rng((EVALUATION, self._seed, unit, _ROOTS_DRAWN))
        reached = self._reached(later)
        if not reached:
            return reduction
        shares = np.array([root.share for root in reached])
        for player in range(2):
            for number, weight in _drawn(shares, self._count, random):
                reduction[player] += weight * self._less(reached[number], player, board, random)
        return reduction

    def _reached(self, cards: ListedCards) -> list[Root]:
        """Return a `Root` for each decision that begins the re-solved street and is reached on a board.

        It is reached if both players, by their strategies, can get there with hands that share no card.

        cards  the game's cards after a board of the re-solved street is dealt, from `Cards.after`
        """
        tree, reached = self._game.tree, list[Root]()
        reach = {0: cards.reach}
        inside = {node for root in self._roots for node in tree.path(root)}
        for node in sorted(inside):  # parents come before their children
            ranges = reach.pop(node, None)
            if ranges is None:
                continue
            street, player = divmod(int(tree.arrays.block[node]), 2)
            if street == self.street:
                together = float(ranges[0] @ self._dealing.disjoint_weight(ranges[1]))
                if together > 0:
                    reached.append(Root(node, ranges, together * sum(put_in_chips(tree, node))))
                continue
            rows = hand_rows(self._game, self._strategy, node, cards.bucket[street][player, 0])
            for number, child in enumerate(tree.children(node)):
                if child in inside:
                    reach[child] = ranges.copy()
                    reach[child][player] *= rows[:, number]
        return reached

    def _less(self, root: Root, player: int, board: list[int], random: np.random.Generator) -> float:
        """Return how many chips fewer the responder wins from a decision on because of re-solving.

        Chips are summed over pairs of hands, weighted by both players' reach.

        root    decision that begins the re-solved street
        player  seat of the responder: 0 or 1
        board   card numbers of the board
        random  random numbers for drawing lines to the river, if the turn is re-solved
        """
        spot = Spot(self._game, root.node, board)
        as_it_is = spot.best_response(player, root.reach[1 - player], spot.tables(self._strategy)).value
        line, state = self._line(root.node, board)
        solved = self._resolver.begin(1 - player, line, state, tuple(board))
        less = float(root.reach[player] @ (as_it_is - solved.responses().value))
        return less + self._less_later(solved, root.reach[player], board, random)

    def _less_later(
        self, solved: PublicState, responder_range: Floats, board: list[int], random: np.random.Generator
    ) -> float:
        """Return how many chips fewer the responder wins because of re-solving the river anew.

        The comparison is with a policy that plays its turn solution on the river. The result is 0 if only the river is
        re-solved. It is estimated from drawn lines to rivers.

        solved           public state at the start of the re-solved street, with its solution
        responder_range  [H] weights of the responder's hands there
        board            card numbers of that street's board
        random           random numbers for drawing lines to rivers
        """
        if self.street + 1 == self._game.tree.streets:
            return 0.0
        ways = list(self._ways_out(solved, responder_range))
        cards = [card for card in range(self._game.cards.deck_size) if card not in board]
        chance = 1 / (len(cards) - 4)  # probability of each river, given both hands
        less, shares = 0.0, np.repeat([way.share for way in ways], len(cards))
        for number, weight in _drawn(shares, RIVERS, random):
            way, lies = ways[number // len(cards)], (*board, cards[number % len(cards)])
            again = way.at.after(way.action, lies)
            assert isinstance(again, PublicState)
            values = way.at.responses_after(way.action, lies).value - again.responses().value
            less += weight * chance * float(way.own @ values)
        return less

    def _ways_out(self, public_state: PublicState, responder_range: Floats) -> Iterator[StreetExit]:
        """Yield the actions that lead from a public state to the next street, as `StreetExit`.

        The responder plays a best response to the solution. Actions that its hands or the policy never take are left
        out.

        public_state     public state on a re-solved turn, with the solution
        responder_range  [H] weights of the responder's hands there
        """
        betting: Any = self._resolver.seat.betting
        responds = public_state.state.player != public_state.position
        best = public_state.responses().action.argmax(axis=0) if responds else None
        for number, action in enumerate(public_state.actions):
            mine = responder_range if best is None else responder_range * (best == number)
            after: Any = betting.apply(public_state.state, action)
            if not isinstance(after, BettingState) or not mine.any():
                continue
            if after.street == public_state.state.street:
                below = public_state.after(action)
                assert isinstance(below, PublicState)
                yield from self._ways_out(below, mine)
                continue
            ours = public_state.ranges_after(action)[public_state.position]
            share = float(mine @ self._dealing.disjoint_weight(ours)) * sum(after.put_in)
            if share > 0:
                yield StreetExit(public_state, action, mine, share)

    def _line(self, node: int, board: list[int]) -> tuple[list[Acted], BettingState]:
        """Return the actions that lead to a decision of the tree, and the betting state there.

        The actions are a list of (state before the action, action, board). They are the same in the real betting and
        the tree.

        node   number of the decision in the game's tree
        board  card numbers of the board on the re-solved street
        """
        tree, betting, line = self._game.tree, self._resolver.seat.betting, list[Acted]()
        state: Any = betting.start()[0]
        for below in tree.path(node)[1:]:
            line.append((state, tree.label[below], tuple(board[: self._game.cards.cards_on(state.street)])))
            state = betting.apply(state, tree.label[below])
        assert isinstance(state, BettingState)
        return line, state


def _drawn(shares: Floats, count: int, random: np.random.Generator) -> list[tuple[int, float]]:
    """Draw about `count` indices of `shares` in proportion to them, by systematic sampling.

    Returns [(index, importance weight)] of the drawn ones. Sums over them, with these weights, are unbiased for sums
    over all indices.

    shares  [n] positive numbers, such as weight times pot; [] if nothing can be drawn
    random  random numbers of the draw
    """
    if not len(shares):
        return []
    expected = shares * (count / shares.sum())
    times = np.diff(np.floor(np.cumsum(expected) + random.random()), prepend=0.0)
    return [(number, float(times[number] / expected[number])) for number in np.flatnonzero(times).tolist()]
