"""From a `[game]` table to a game: the one place that knows all of them."""

from pathlib import Path

from mccfr.config import (
    AkqGame,
    ClairvoyanceGame,
    Config,
    GameConfig,
    GoofspielGame,
    HoldemSubgame,
    KuhnGame,
    LeducGame,
    MatrixGame,
    OpenSpielGame,
    PokerGame,
)
from mccfr.games.game import Game
from mccfr.games.holdem_subgame import endgame_path, holdem_subgame
from mccfr.games.poker import akq, clairvoyance, kuhn, leduc, poker


def build_game(config: GameConfig, base: Path) -> Game:
    """Compile the game of a `[game]` table; files it names are relative to `base`, the directory of the TOML file.

    Raises `ValueError` for parameters no game can have, `OSError` for a file that cannot be read.
    """
    match config:
        case KuhnGame():
            return kuhn(config)
        case LeducGame():
            return leduc(config)
        case PokerGame():
            return poker(config)
        case AkqGame():
            return akq(config)
        case ClairvoyanceGame():
            return clairvoyance(config)
        case HoldemSubgame():
            return holdem_subgame(config, base)
        case GoofspielGame():
            from mccfr.games.goofspiel import goofspiel

            return goofspiel(config)
        case MatrixGame():
            from mccfr.games.matrix import matrix

            return matrix(config)
        case OpenSpielGame():
            from mccfr.games.openspiel import import_openspiel

            return import_openspiel(config)


def configured_game(config: Config, base: Path) -> Game:
    """The game of a whole configuration: `[game]`, on the buckets of `[abstraction]` if there is one.

    Raises as `build_game`, and `ValueError` for an abstraction that is absent or does not suit the game.
    """
    game = build_game(config.game, base)
    if config.abstraction is None:
        return game
    from abstraction.buckets import Abstraction
    from mccfr.games.bucketed import bucketed

    return bucketed(game, Abstraction(base / config.abstraction.path))


def game_files(config: GameConfig, base: Path) -> list[Path]:
    """The files that a game is made from, besides its configuration: part of a run's identity."""
    return [endgame_path(config, base)] if isinstance(config, HoldemSubgame) else []
