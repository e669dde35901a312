"""Builds the game of a whole configuration, with its buckets and in the form that the algorithm needs."""

from dataclasses import replace
from pathlib import Path

from abstraction.buckets import Abstraction, is_abstraction, is_built
from abstraction.recipe import load_recipe
from mccfr.cards.board_strata import in_strata
from mccfr.config.run_tables import AbstractionConfig, Config
from mccfr.games.game import Game
from mccfr.games.registry import build_game
from mccfr.solvers.registry import algorithm_of


def configured_game(config: Config, base: Path) -> Game:
    """Return the game of `[game]`, its hands in the buckets of `[abstraction]` if there is one.

    Paths in the configuration are relative to `base`.  If the algorithm walks single histories, the cards become chance
    nodes of the game's tree.

    Raises `ValueError` for invalid parameters, a missing or unsuitable abstraction, and too many histories.  Raises
    `OSError` for a file that cannot be read.
    """
    game = with_opponents(_on(config.abstraction, config, base), config, base)
    return form_for(stratified(game, config), config)


def planned_game(config: Config, base: Path) -> Game:
    """Return the game of a configuration, even if its abstraction is not built yet.

    A game with listed cards then gets about as many buckets as the abstraction's recipe (a TOML file of settings)
    plans.  Hands are put into them without regard to strength, so the game serves to count infosets and bytes only.

    base  directory that the configuration's paths are relative to

    Raises `ValueError` for invalid parameters, a missing or unsuitable abstraction, and too many histories.  Raises
    `OSError` for a file that cannot be read.
    """
    wanted = config.abstraction
    if wanted is None or wanted.recipe is None or is_built(base / wanted.path):
        return configured_game(config, base)
    game = build_game(config.game, base, wanted)
    if game.cards.shared_bytes:  # whole hold'em has its sizes from the recipe
        return configured_game(config, base)
    from mccfr.games.bucketed import with_planned_buckets

    game = with_opponents(with_planned_buckets(game, load_recipe(base / wanted.recipe)), config, base)
    return form_for(stratified(game, config), config)


def with_opponents(game: Game, config: Config, base: Path) -> Game:
    """Return the game with the opponents' buckets as `opponent_cards`, if they have their own.

    Opponents are the players against which CFR-BR trains; `solver.trunk` names their buckets.

    base  directory that the configuration's paths are relative to

    Raises `ValueError` if their abstraction is missing, or not built.  In whole hold'em it need not be built until
    hands are dealt, if its recipe (a TOML file of settings) is given.
    """
    buckets = opponents_buckets(config, base)
    if buckets is None or config.solver.opponents is None:
        return game
    key, path = config.solver.opponents[0], Path(buckets.path)
    setting = f"solver.{key} = {config.solver.opponents[1]!r}"
    if buckets.recipe is not None and not is_abstraction(path) and not game.cards.shared_bytes:
        raise ValueError(f"{setting} is not built yet: build it with mccfr abstraction build {buckets.recipe}")
    if buckets.recipe is None and not is_abstraction(path):
        raise ValueError(
            f"{setting} is not an abstraction: name a directory that mccfr abstraction build wrote, the .toml file of "
            "a recipe, 'own' or 'lossless'"
        )
    return replace(game, opponent_cards=_on(buckets, config, base).cards)


def opponents_buckets(config: Config, base: Path) -> AbstractionConfig | None:
    """Return the `AbstractionConfig` of CFR-BR's opponents, or None if they have none of their own.

    Paths in it are absolute.  It has a recipe (a TOML file of settings) if `solver.trunk` names one.

    base  directory that the configuration's paths are relative to
    """
    if config.solver.opponents is None:
        return None
    path = (base / config.solver.opponents[1]).resolve()
    if path.suffix != ".toml":
        return AbstractionConfig(path=str(path))
    return AbstractionConfig(path=str(path.with_suffix("")), recipe=str(path))


def _on(abstraction: AbstractionConfig | None, config: Config, base: Path) -> Game:
    game = build_game(config.game, base, abstraction)
    if abstraction is not None and not game.cards.shared_bytes:
        from mccfr.games.bucketed import bucketed

        if game.tree.locks is not None:
            raise ValueError("game.locks are of hands, which share rows with [abstraction]: leave one of the two out")
        game = bucketed(game, Abstraction(base / abstraction.path))
    return game


def stratified(game: Game, config: Config) -> Game:
    """Return the game with buckets split by stratum, if `run.strata` is set.

    A stratum is a group of second-street boards.  After the split, each bucket of a later street belongs to one
    stratum.  Raises `ValueError` if the game cannot be split so.
    """
    if config.run.strata is None:
        return game
    cards, strata = in_strata(game.cards, config.run.strata)
    return replace(game, cards=cards, strata=strata)


def form_for(game: Game, config: Config) -> Game:
    """Return the game, with its cards as chance nodes if the algorithm walks single histories.

    Raises `ValueError` for more than two players, rake or locked rows (fixed strategies) if the algorithm does not
    support them.  Raises it also if the tree would have too many histories, or the game does not list its boards.
    """
    algorithm, players = algorithm_of(config), game.tree.players
    if players > 2 and not algorithm.traits.takes_seats:
        raise ValueError(
            f"solver.algorithm = {algorithm.name!r} with these options is for two players, and {game.name} has "
            f"{players}: take 'external-sampling', 'outcome-sampling', or 'cfr' without best_response and with pruning "
            "'none' or 'partial'"
        )
    if game.tree.pots is not None and not algorithm.traits.takes_pots:
        raise ValueError(
            f"solver.algorithm = {algorithm.name!r} is for two players if cards are dealt beside the tree, and "
            f"{game.name} has {players}: take 'external-sampling' or 'outcome-sampling'"
        )
    if game.rake is not None and not algorithm.traits.takes_rake:
        raise ValueError(
            f"game.rake = {game.rake.share} is for solver.algorithm = 'cfr' over whole ranges, which pays each player "
            f"apart, and not for {algorithm.name!r}{' over histories' * algorithm.traits.over_histories}: leave it out"
        )
    if game.tree.locks is not None and not algorithm.traits.takes_locks:
        apart = "" if config.run.strata is None else " with run.strata"
        raise ValueError(f"solver.algorithm = {algorithm.name!r}{apart} keeps no game.locks: leave one of them out")
    if algorithm.traits.over_histories and game.cards.dealt:
        from mccfr.games.history_tree import expand

        return expand(game).game
    return game
