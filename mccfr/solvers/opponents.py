"""Opponents who have an abstraction of their own: each player learns against one who sees more than he does.

Bard, Johanson & Bowling, "Asymmetric Abstractions for Adversarial Settings" (AAMAS 2014): players who learn from each
other on the same buckets come to rely on the other's blindness, and against an opponent on finer ones a player cannot.
A run is two in one: in either, one player learns on the run's buckets, and his opponent, who learns as well, on the
others.  Opponents have regrets of their own, and nobody needs their averages.
"""

from dataclasses import replace

from mccfr.cards.cards import Cards
from mccfr.config.solvers import SolverConfig
from mccfr.games.game import Game

OPPONENT = "opponent_regret"
"""Kind of the tables of the opponents' regrets."""


def opponent_game(solver: SolverConfig, game: Game) -> Game | None:
    """The game on the opponents' buckets; None: they have none of their own.

    Raises `ValueError` for a game that was made without them.
    """
    if solver.opponents is None:
        return None
    if game.opponent_cards is None:
        key, path = solver.opponents
        raise ValueError(f"solver.{key} = {path!r}: the game comes without its buckets, opponent_cards")
    return replace(game, cards=game.opponent_cards)


def seated_cards(game: Game, opponents: Game) -> tuple[Cards, Cards]:
    """By learner, the cards as he and his opponent remember them."""
    return game.cards.seated(opponents.cards), opponents.cards.seated(game.cards)
