"""The game of a whole configuration: on its buckets, and in the form that its algorithm needs."""

from dataclasses import replace
from pathlib import Path

from mccfr.cards.strata import in_strata
from mccfr.config.tables import Config
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.solvers.registry import algorithm_of


def configured_game(config: Config, base: Path) -> Game:
    """The game of `[game]`, on the buckets of `[abstraction]` if there is one; files are relative to `base`.

    For algorithms over histories, cards are put into the tree.  Raises as `build_game`, and `ValueError` for an
    abstraction that is absent or does not suit the game, and for too many histories.
    """
    game = build_game(config.game, base, config.abstraction)
    if config.abstraction is not None and not game.cards.shared_bytes:
        from abstraction.buckets import Abstraction
        from mccfr.games.bucketed import bucketed

        game = bucketed(game, Abstraction(base / config.abstraction.path))
    return form_for(stratified(game, config), config)


def stratified(game: Game, config: Config) -> Game:
    """A game with its buckets by stratum, where `run.strata` asks for it; `ValueError` where they cannot be."""
    if config.run.strata is None:
        return game
    cards, strata = in_strata(game.cards, config.run.strata)
    return replace(game, cards=cards, strata=strata)


def form_for(game: Game, config: Config) -> Game:
    """A game as the algorithm of a configuration takes it; `ValueError` for too many histories, or rake."""
    algorithm = algorithm_of(config)
    if game.rake is not None and not algorithm.traits.takes_rake:
        raise ValueError(
            f"game.rake = {game.rake.share} is for solver.algorithm = 'cfr' over whole ranges, which pays each player "
            f"apart, and not for {algorithm.name!r}{' over histories' * algorithm.traits.over_histories}: leave it out"
        )
    if game.tree.locks is not None and not algorithm.traits.takes_locks:
        raise ValueError(f"solver.algorithm = {algorithm.name!r} keeps no game.locks: take 'cfr', or leave them out")
    if algorithm.traits.over_histories and game.cards.dealt:
        from mccfr.games.expanded import expand

        return expand(game).game
    return game
