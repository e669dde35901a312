"""Betting rules of the full game: all legal amounts; the tree contains a few of them."""

from collections.abc import Mapping
from typing import Any

from mccfr.config.game_tables import HoldemGame, Menu, PokerGame
from mccfr.config.toml_files import config_from
from mccfr.games.betting import BettingRules
from mccfr.games.holdem_betting import holdem_rules


def small_rules(config: PokerGame) -> BettingRules:
    """Return stacks, blinds and order of a `[game]` table, with limps and without raises.

    Raises `ValueError` for an invalid table.
    """
    streets = len(config.board_cards)
    if bool(config.blinds) == bool(config.antes):
        raise ValueError("game: give either blinds or antes, each a list of two amounts by seat")
    posted = tuple(config.blinds or config.antes)
    if len(posted) != 2 or min(posted) < 0 or max(posted) <= 0:
        raise ValueError(f"game.blinds or game.antes = {list(posted)}: expected two amounts of at least 0, by seat")
    if not streets or min(config.board_cards) < 0:
        raise ValueError(
            f"game.board_cards = {list(config.board_cards)}: expected a count of at least 0 for each street"
        )
    if max(posted) >= config.stack:
        raise ValueError(f"game.stack = {config.stack}: it must be above what is posted, {max(posted)}")
    first = config.first_player or [1] * streets
    if len(first) != streets or any(seat not in (1, 2) for seat in first):
        raise ValueError(f"game.first_player = {list(first)}: expected 1 or 2 for each of {streets} streets")
    # The ACPC dealer's smallest bet is the larger blind, and one chip without blinds.
    return BettingRules(
        (posted[0], posted[1]),
        [seat - 1 for seat in first],
        lambda state: [],
        stack=config.stack,
        minimum_bet=max(posted),
        board_cards=tuple(config.board_cards),
        put_in_before=min(config.antes, default=0),  # for the sizes of a menu: an ante is no bet
    )


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
