"""From a `[game]` table to a game: the one place that knows all of them."""

from pathlib import Path

from mccfr.config import (
    AbstractionConfig,
    AkqGame,
    ClairvoyanceGame,
    FlopHoldemGame,
    GameConfig,
    GoofspielGame,
    HoldemGame,
    HoldemSubgame,
    KuhnGame,
    LeducGame,
    MatrixGame,
    OpenSpielGame,
    PokerGame,
)
from mccfr.games.game import Game
from mccfr.games.holdem import flop_holdem, holdem
from mccfr.games.holdem_subgame import endgame_path, holdem_subgame
from mccfr.games.poker import akq, clairvoyance, kuhn, leduc, poker


def build_game(config: GameConfig, base: Path, abstraction: AbstractionConfig | None = None) -> Game:
    """Compile the game of a `[game]` table; files it names are relative to `base`, the directory of the TOML file.

    `abstraction` is for whole hold'em, which is nothing without one; other games ignore it.

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
        case HoldemGame():
            return holdem(config, abstraction, base)
        case FlopHoldemGame():
            return flop_holdem(config, abstraction, base)
        case GoofspielGame():
            from mccfr.games.goofspiel import goofspiel

            return goofspiel(config)
        case MatrixGame():
            from mccfr.games.matrix import matrix

            return matrix(config)
        case OpenSpielGame():
            from mccfr.games.openspiel import import_openspiel

            return import_openspiel(config)


def game_files(config: GameConfig, base: Path) -> list[Path]:
    """The files that a game is made from, besides its configuration: part of a run's identity."""
    return [endgame_path(config, base)] if isinstance(config, HoldemSubgame) else []
