"""Training against opponents with an abstraction of their own, finer than the players'.

Source: Bard, Johanson & Bowling, "Asymmetric Abstractions for Adversarial Settings" (AAMAS 2014).  Players that train
against each other on the same buckets learn to rely on each other's blindness; against finer buckets they cannot.

A run alternates two trainings.  In each, one player learns on the run's buckets, and an opponent that learns as well
plays on its own.  The opponents have regrets of their own and no strategy sums.
"""

from dataclasses import replace

from mccfr.cards.cards import Cards
from mccfr.config.solvers import SolverConfig
from mccfr.games.game import Game

OPPONENT = "opponent_regret"
"""Kind of the tables that hold the opponents' regrets."""


def opponent_game(solver: SolverConfig, game: Game) -> Game | None:
    """Return the game on the opponents' buckets, or None if the opponents have none of their own.

    Raises `ValueError` if the game was built without the opponents' buckets.
    """
    if solver.opponents is None:
        return None
    if game.opponent_cards is None:
        key, path = solver.opponents
        raise ValueError(f"solver.{key} = {path!r}: the game comes without its buckets, opponent_cards")
    return replace(game, cards=game.opponent_cards)


def seated_cards(game: Game, opponents: Game) -> tuple[Cards, Cards]:
    """Return the cards for each learner: its own buckets in its seat, the opponent's in the other."""
    return game.cards.seated(opponents.cards), opponents.cards.seated(game.cards)
