"""The betting of the game that a tree abstracts: every legal amount, where the tree has a menu of few."""

from collections.abc import Mapping
from typing import Any

from mccfr.config.file import config_from
from mccfr.config.tables import HoldemGame, Menu
from mccfr.games.betting import BettingRules
from mccfr.games.holdem_betting import holdem_rules


def real_rules(config: HoldemGame) -> BettingRules:
    """No-limit hold'em with the stacks and blinds of a `[game]` table; limps are legal whatever its menu says."""
    return holdem_rules(config.stack, config.blinds, config.ante, Menu())


def rules_of_document(document: Mapping[str, Any], source: str) -> BettingRules | None:
    """The same from a `[game]` table as a policy holds it; None for games whose every bet is in the tree.

    Raises `ValueError`, naming `source`, for a table of whole hold'em that is none.
    """
    if document.get("name") != "holdem":
        return None
    config = config_from({"game": dict(document)}, source).game
    assert isinstance(config, HoldemGame)
    return real_rules(config)
