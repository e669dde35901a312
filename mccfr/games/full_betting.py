"""Betting rules of the full game: all legal amounts; the tree contains a few of them."""

from collections.abc import Mapping
from typing import Any

from mccfr.config.game_tables import HoldemGame, Menu, PokerGame
from mccfr.config.toml_files import config_from
from mccfr.games.betting import BettingRules
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.small_betting import small_rules


def real_rules(config: HoldemGame | PokerGame) -> BettingRules:
    """Return no-limit rules with the stacks and blinds of a `[game]` table; limps are legal in any case."""
    if isinstance(config, PokerGame):
        return small_rules(config)
    return holdem_rules(config.stack, config.blinds, config.ante, Menu())


def rules_of_document(document: Mapping[str, Any], source: str) -> BettingRules | None:
    """Return the rules of a `[game]` table stored in a policy, or None if the tree has every legal bet.

    Raises `ValueError`, naming `source`, for an invalid table.
    """
    name = document.get("name")
    if name != "holdem" and (name != "poker" or document.get("menu") is None):
        return None
    config = config_from({"game": dict(document)}, source).game
    assert isinstance(config, HoldemGame | PokerGame)
    return real_rules(config)
