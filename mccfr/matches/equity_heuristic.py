"""AIVAT heuristic from equity and the policy's own average play.

A heuristic estimates player 0's chips from any state of a hand; AIVAT (`mccfr.matches.aivat`) uses it to subtract luck.

One pass over the policy's tree gives two numbers for each decision. All hands are assumed to play the same: the mean
over buckets of the policy's action probabilities. Each infoset's weight is the total of its strategy sum.

* F: player 0's mean chips from the folds that follow, each times its probability.
* S: the mean chips that a showdown wins or loses, each times its probability.

A state with hands i and j has the value F + S · E. E (equity) is the mean showdown result of i and j over the boards to
come: 1 if player 0 wins, -1 if it loses, 0 for a tie. After the last action F and S are the hand's real result.

E is a martingale: its mean over the next board is its value before, so the 22,100 flops need no sum. On the last street
E is exact. Earlier it is the mean over all full boards if there are at most 16 (`RUN_OUTS`). Otherwise it is an
unbiased estimate from that many drawn boards. Their random stream is independent of the hand's cards.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mccfr.cards.card_index import Board, IndexedCards
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.games.game import Game
from mccfr.games.line_lookup import LineReading
from mccfr.games.translation import real_betting
from mccfr.matches.aivat import HandState, Heuristic, Weights
from mccfr.play.player import Betting
from mccfr.play.showdown_values import RunOuts, run_outs, win_minus_lose
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import Strategy, row_starts
from mccfr.trees.compiled import DECISION

RUN_OUTS = 16
DRAWN = 2
"""Worker number of the random stream for run-outs; `mccfr.cards.card_index.DEALT` is that for hands."""
_KEPT_LINES = 4096


class EquityHeuristic(Heuristic):
    """AIVAT heuristic: estimates player 0's chips by F + S · E for each pair of hands.

    F is the mean chips from later folds. S is the mean chips at stake in showdowns. Both assume the policy's average
    play of all hands. E is the mean showdown result of the two hands, -1 to 1.
    """

    def __init__(self, side: Profile, dealing: IndexedCards, run_outs: int = RUN_OUTS) -> None:
        """Take a policy of two players, and compute the values of its tree's nodes.

        side      game and strategy of the policy
        dealing   the game's hands and boards
        run_outs  largest number of full boards over which a showdown result is averaged. If more are possible, this
                  number is drawn
        """
        side.game.check_two_players("AIVAT")
        self._dealing, self._most = dealing, run_outs
        self._game = side.game
        self._betting: Betting = real_betting(side.game)
        self._values = mean_values(side.game, side.strategy)
        put_in = side.game.tree.put_in
        # Real amounts may differ from the tree's: a node's chips are then scaled to the real pot.
        self._level = None if side.game.real_rules is None or put_in is None else put_in.max(axis=1)
        self._of_line = lru_cache(_KEPT_LINES)(self._line_values)
        self.begin(0, 0)

    def begin(self, seed: int, number: int, betting: Betting | None = None) -> None:
        """Begin a hand with a new random stream for drawing boards.

        seed     of the match
        number   of the hand
        betting  betting rules with the hand's stacks and blinds; None: as for the last hand
        """
        if betting is not None and betting is not self._betting:
            self._betting = betting
            self._of_line.cache_clear()
        self._rng = np.random.default_rng(new_stream(seed, DRAWN, EVALUATION, number).tolist())
        self._kept: dict[tuple[int, Board, tuple[int, ...]], RunOuts] = {}
        self._opponent_reach: tuple[Weights, Weights] | None = None
        self._last: tuple[tuple[int, Board, int], Weights, Weights] | None = None

    def values(self, spot: HandState, hero: int, opponent_weights: Weights) -> Weights:
        """Return [H] for each of a player's H hands the weighted sum of values over opposing hands.

        A value is player 0's estimated chips with these two hands: mean chips from folds, plus mean chips at showdowns
        times equity (-1 to 1). Before the last street, equity may be an estimate from drawn boards.

        spot              public state of the hand
        hero              player to whose hands the result belongs
        opponent_weights  [H] weights of the opponent's hands
        """
        fixed, showdown = self._of_line(spot.actions) if spot.settled is None else spot.settled
        # The same range array is passed for all actions of a decision.
        if self._opponent_reach is None or self._opponent_reach[0] is not opponent_weights:
            self._opponent_reach = opponent_weights, self._dealing.disjoint_weight(opponent_weights)
        folds = fixed * self._opponent_reach[1]
        return folds + showdown * self._equity(spot.street, spot.board, hero, opponent_weights) if showdown else folds

    def foreseen(self, spot: HandState, hero: int, opponent_weights: Weights, dealing: IndexedCards) -> Weights:
        """Return the mean of `values` over the next boards: `values` before the board is dealt.

        Both are equal because the mean equity over the next boards is the equity before.
        """
        return self.values(spot, hero, opponent_weights)

    def _equity(self, street: int, board: Board, hero: int, opponent_weights: Weights) -> Weights:
        """Return [H] for each of a player's H hands the weighted sum of results over other hands.

        The other hands are the opponent's. A result is player 0's mean showdown result with these two hands, -1 to 1,
        over the boards to come.

        street, board     last dealt street and its board, as in `HandState`
        hero              player to whose hands the result belongs
        opponent_weights  [H] weights of the opponent's hands
        """
        key = street, board, hero
        if self._last is None or self._last[0] != key or self._last[1] is not opponent_weights:
            possible = np.flatnonzero(opponent_weights)
            cards = self._dealing.hand_cards[possible[0]].tolist() if len(possible) == 1 else []
            own_cards = tuple(card for card in cards if card >= 0)
            won = win_minus_lose(self._dealing, self._run_outs(street, board, own_cards), opponent_weights)
            self._last = key, opponent_weights, won if hero == 0 else -won
        return self._last[2]

    def _run_outs(self, street: int, board: Board, excluded: tuple[int, ...]) -> RunOuts:
        if (street, board, excluded) not in self._kept:
            self._kept[street, board, excluded] = run_outs(
                self._dealing, street, board, excluded, self._most, self._rng
            )
        return self._kept[street, board, excluded]

    def _line_values(self, actions: tuple[str, ...]) -> tuple[float, float]:
        """Return (F, S): player 0's mean chips from folds after `actions`, and mean chips at showdowns.

        All hands are assumed to play the policy's average. The means are over the tree nodes to which action
        translation maps the actions, weighted by probability. Chips are those of the table, scaled by the real pot if
        it differs from the tree's.
        """
        state, readings = self._betting.start()
        for action in actions:
            after = self._betting.apply(state, action)  # type: ignore[arg-type]
            readings = self._betting.follow(readings, state, action)  # type: ignore[arg-type]
            state = after
        assert not isinstance(state, int)
        line_values = np.zeros(2)
        for node, probability, _ in readings:
            if not self._betting.decides(LineReading(node, 1.0)):  # only a call is left
                line_values += probability * np.array([0.0, state.to_call])
            else:
                scale = 1.0 if self._level is None else state.to_call / self._level[node]
                line_values += probability * scale * self._values[node]
        return float(line_values[0]), float(line_values[1])


def mean_values(game: Game, strategy: Strategy) -> npt.NDArray[np.float64]:
    """Return [N, 2] for each tree node the mean chips from later folds and at showdowns.

    Column 0 has player 0's net chips from folds, each times its probability. Column 1 has a showdown winner's net
    chips, each times the showdown's probability. Both are in chips of the tree.

    Each player plays the mean of its action probabilities over buckets; an infoset's weight is the total of its
    strategy sum.
    """
    arrays, shares = game.tree.arrays, mean_play(game, strategy)
    node_values = np.stack([np.asarray(arrays.fixed, np.float64), np.asarray(arrays.showdown, np.float64)], axis=1)
    for node in np.flatnonzero(arrays.kind == DECISION)[::-1].tolist():  # children come after their parents
        first, count, slot = int(arrays.first[node]), int(arrays.count[node]), int(arrays.slot[node])
        node_values[node] = shares[int(arrays.block[node])][slot : slot + count] @ node_values[first : first + count]
    return node_values


def mean_play(game: Game, strategy: Strategy) -> list[npt.NDArray[np.float64]]:
    """Return for each street and player the mean over buckets of its action probabilities.

    Entry 2·street + player is an array with one probability for each action of each of the player's decisions on the
    street. An infoset's weight in the mean is the total of its strategy sum. Decisions without any weight are uniform.
    """
    blocks = []
    for block, rows in enumerate(strategy.blocks):
        starts, weight = row_starts(game, block), rows.weight
        sums, counts = np.zeros(int(starts[-1])), np.diff(starts)
        for bucket in range(len(rows.cells)):  # one at a time: tables may be larger than memory
            cells = np.asarray(rows.cells[bucket, : len(sums)], np.float64)
            sums += cells if weight is None else cells * np.repeat(weight[bucket], counts)
        total = _row_sums(sums, starts)
        mean = sums / np.repeat(np.where(total > 0, total, 1), counts)
        blocks.append(np.where(np.repeat(total > 0, counts), mean, np.repeat(1 / np.maximum(counts, 1), counts)))
    return blocks


def _row_sums(cells: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    total = np.concatenate([[0.0], np.cumsum(cells)])
    return total[starts[1:]] - total[starts[:-1]]
