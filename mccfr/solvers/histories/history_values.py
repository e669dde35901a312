"""Exact values and best responses of games whose tree holds every history.

Each terminal's payoff, times the probability of chance and of fixed strategies, is added to the responder's last action
before it.  With perfect recall the responder's actions form a tree (sequence form, von Stengel 1996), so the best
response follows from the last infosets upwards.  Each infoset takes its best action, summed over its histories, and
adds the value to the action that leads to it.

Each of N nodes is visited once, with 16·N bytes of scratch.  Nothing is approximated.
"""

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.games.game import Game
from mccfr.solvers.histories.sequences import SequenceForm, check_histories, sequence_form
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import NO_SLOT, TERMINAL


@njit
def _best_total(starts, above, booked, noted):
    """Return the responder's expected payoff in chips with the best action in each row.

    A row is an infoset of the responder, a slot is one action of a row: R rows, S slots.

    starts  [R+1] int64    first slot of each row, and the end of the last
    above   [R] int64      slot of the responder's last action before each row, or NO_SLOT
    booked  [1+S] float64  sums of probability times payoff, by the responder's last action before the terminals: index
                           0 for none, else slot + 1; values of rows are added to it, in place
    noted   [S] float64    receives 1 for the best action of each row, the first of equals, else 0
    """
    for row in range(starts.shape[0] - 2, -1, -1):
        best, chosen = -np.inf, starts[row]
        for slot in range(starts[row], starts[row + 1]):
            noted[slot] = 0.0
            if booked[slot + 1] > best:
                best, chosen = booked[slot + 1], slot
        noted[chosen] = 1.0
        booked[above[row] - NO_SLOT] += best
    return booked[0]


def _followed(game: Game, strategy: Strategy, responder: int | None) -> SequenceForm:
    """Return the game's `SequenceForm`, whose `chance` includes the probabilities of `strategy`.

    `chance` [N] is the product of the probabilities on the path to each node.

    responder  player whose probabilities count as 1; None: no player

    Raises `ValueError` for a game that deals cards outside its tree, a strategy of another game, and a responder
    without perfect recall.
    """
    check_histories(game)
    players = game.tree.players
    sigma = np.ones((players, int(game.tree.row_slots.max(initial=0))))
    for player in range(players):
        probabilities = strategy.probability[player]
        if probabilities.shape != (1, game.tree.row_slots[player]):
            raise ValueError(
                f"player {player}'s strategy has the shape {probabilities.shape}; {game.name} needs "
                f"(1, {game.tree.row_slots[player]})"
            )
        if player != responder:
            sigma[player, : probabilities.shape[1]] = probabilities[0]
    return sequence_form(game, sigma, [responder == player for player in range(players)])


def _payoffs(game: Game, form: SequenceForm, player: int) -> npt.NDArray[np.float64]:
    """Return [N] a player's payoff in chips at terminals times the node's reach; 0 at other nodes.

    form  SequenceForm, whose `chance` is the reach
    """
    return np.where(game.tree.arrays.kind == TERMINAL, form.chance * game.tree.payoffs_of(player), 0.0)


def expected_value(game: Game, strategy: Strategy, player: int = 0) -> float:
    """Return a player's expected payoff in chips, without `offset_chips`, if all follow `strategy`.

    `offset_chips` is half of a pot that comes from neither player, usually 0.

    Raises `ValueError` for a game that deals cards outside its tree and for a strategy of another game.
    """
    return float(_payoffs(game, _followed(game, strategy, None), player).cumsum()[-1])


def best_response_value(game: Game, strategy: Strategy, player: int) -> float:
    """Return `player`'s expected payoff in chips with a best response to the others' part of `strategy`.

    Raises `ValueError` for a game that deals cards outside its tree and for a strategy of another game.  Also raises it
    for a player that the game does not have, and if the player lacks perfect recall.
    """
    return best_response(game, strategy, player)[0]


def best_response(game: Game, strategy: Strategy, player: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Return (expected payoff in chips, probabilities [1, S] 0 or 1) of `player`'s best response.

    The other players follow `strategy`; S is the number of the player's slots, one for each action of an infoset.

    Raises `ValueError` for a game that deals cards outside its tree and for a strategy of another game.  Also raises it
    for a player that the game does not have, and if the player lacks perfect recall.
    """
    if player not in range(game.tree.players):
        raise ValueError(f"player = {player}: it must be one of {', '.join(map(str, range(game.tree.players)))}")
    form = _followed(game, strategy, player)
    mine = form.players[player]
    booked = np.bincount(form.last[player] - NO_SLOT, _payoffs(game, form, player), 1 + len(mine.row_of))
    noted = np.zeros(len(mine.row_of))
    return float(_best_total(mine.starts, mine.above, booked, noted)), noted[None]
