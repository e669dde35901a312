"""Betting rules of the full game, in which every legal amount may be bet.

Trees made for solving have only some of these amounts.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from mccfr.config.game_tables import HoldemGame, Menu, PokerGame
from mccfr.config.toml_files import config_from
from mccfr.games.betting import MOST_SEATS, BettingRules
from mccfr.games.holdem_betting import configured_rules
from mccfr.games.posting import posted


def small_rules(config: PokerGame) -> BettingRules:
    """Return the betting rules of small-deck poker: stacks, blinds, order of action.

    The function `raise_targets` of the rules returns no raises: replace it before a tree is built from them. Limps are
    legal.

    config  the `[game]` table of the configuration

    Raises `ValueError` for an invalid table.
    """
    streets, blinds, antes = len(config.board_cards), list(config.blinds), list(config.antes)
    seats = len(blinds or antes)
    if seats <= 2 and bool(blinds) == bool(antes):
        raise ValueError("game: give either blinds or antes, each a list of two amounts by seat")
    most = blinds or antes
    if not 2 <= seats <= MOST_SEATS or min(blinds + antes) < 0 or max(most) <= 0:
        raise ValueError(
            f"game.blinds or game.antes = {most}: expected two to {MOST_SEATS} amounts of at least 0, by seat"
        )
    if antes and (len(antes) != seats or (blinds and len({*antes} - {0.0}) > 1)):
        raise ValueError(
            f"game.antes = {antes}: with game.blinds = {blinds}, one amount of every seat or of some seats is needed"
        )
    if not streets or min(config.board_cards) < 0:
        raise ValueError(
            f"game.board_cards = {list(config.board_cards)}: expected a count of at least 0 for each street"
        )
    stacks = [config.stack] * seats if isinstance(config.stack, int | float) else list(config.stack)
    if len(stacks) != seats or min(stacks) <= 0:
        raise ValueError(f"game.stack = {config.stack}: expected a number above 0, or one for each of {seats} seats")
    if seats == 2:
        stacks = [min(stacks)] * seats  # what the other cannot call does not matter
    if max(most) >= max(stacks):
        raise ValueError(f"game.stack = {config.stack}: it must be above what is posted, {max(most)}")
    first = config.first_player or [1] * streets
    if len(first) != streets or any(seat not in range(1, seats + 1) for seat in first):
        raise ValueError(
            f"game.first_player = {list(first)}: expected 1 to {seats} for each of {streets} streets, the seat that "
            "acts first"
        )
    # The ACPC dealer's smallest bet is the larger blind, and one chip without blinds.
    rules = BettingRules(
        (),
        [seat - 1 for seat in first],
        lambda state: [],
        minimum_bet=max(most),
        board_cards=tuple(config.board_cards),
        chip=float(all(float(chips).is_integer() for chips in (*stacks, *blinds, *antes))),
    )
    return posted(rules, stacks, blinds, antes)


def real_rules(config: HoldemGame | PokerGame) -> BettingRules:
    """Return betting rules of the full game, in which any legal amount may be bet.

    The table's bet sizes (`menu`) and its limit of players who see a flop (`flop_players`) are left out. Limps are
    legal. `raise_targets` does not list all legal raises; `raise_bounds` gives their limits.

    config  the `[game]` table of the configuration

    Raises `ValueError` for an invalid table.
    """
    if isinstance(config, PokerGame):
        return small_rules(config)
    return configured_rules(structs.replace(config, menu=Menu(), flop_players=None))


def rules_of_document(document: Mapping[str, Any], source: str) -> BettingRules | None:
    """Return the full game's betting rules for the `[game]` table that is stored in a policy.

    In the full game every legal amount may be bet. The result is None unless the game is `holdem`, or `poker` with a
    table `menu` of bet sizes.

    document  the `[game]` table
    source    name of the policy's file for error messages

    Raises `ValueError` for an invalid table.
    """
    name = document.get("name")
    if name != "holdem" and (name != "poker" or document.get("menu") is None):
        return None
    config = config_from({"game": dict(document)}, source).game
    assert isinstance(config, HoldemGame | PokerGame)
    return real_rules(config)
