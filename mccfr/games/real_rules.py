"""The betting of the game that a tree abstracts: every legal amount, where the tree has a menu of few."""

from collections.abc import Mapping
from typing import Any

from mccfr.config.file import config_from
from mccfr.config.games import HoldemGame, Menu, PokerGame
from mccfr.games.betting import BettingRules
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.small_betting import small_rules


def real_rules(config: HoldemGame | PokerGame) -> BettingRules:
    """No-limit poker with the stacks and blinds of a `[game]` table; limps are legal whatever its menu says."""
    if isinstance(config, PokerGame):
        return small_rules(config)
    return holdem_rules(config.stack, config.blinds, config.ante, Menu())


def rules_of_document(document: Mapping[str, Any], source: str) -> BettingRules | None:
    """The same from a `[game]` table as a policy holds it; None for games whose every bet is in the tree.

    Raises `ValueError`, naming `source`, for a table of a game with a menu that is none.
    """
    name = document.get("name")
    if name != "holdem" and (name != "poker" or document.get("menu") is None):
        return None
    config = config_from({"game": dict(document)}, source).game
    assert isinstance(config, HoldemGame | PokerGame)
    return real_rules(config)
