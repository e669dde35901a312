"""The betting of the game that a tree abstracts: every legal amount, where the tree has a menu of few."""

from collections.abc import Callable
from typing import Any

from mccfr.config.tables import GameConfig, HoldemGame, Menu
from mccfr.games.betting import BettingRules
from mccfr.games.holdem_betting import holdem_rules


def _holdem(config: HoldemGame) -> BettingRules:
    return holdem_rules(config.stack, config.blinds, config.ante, Menu())


_RULES: dict[type[GameConfig], Callable[[Any], BettingRules]] = {HoldemGame: _holdem}


def real_rules(config: GameConfig) -> BettingRules:
    """The rules of a game's real betting; limps are legal whatever the menu says.

    Raises `ValueError` for games whose every bet is in the tree, and for those that are no poker.
    """
    make = _RULES.get(type(config))
    if make is None:
        name = config.__struct_config__.tag
        raise ValueError(f"{name}: real bets are those of whole no-limit hold'em (game.name = 'holdem') only")
    return make(config)
