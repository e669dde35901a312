"""Betting rules of the full game: all legal amounts; the tree contains a few of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccfr.config.game_tables import HoldemGame, Menu, PokerGame
from mccfr.config.toml_files import config_from
from mccfr.games.betting import MOST_SEATS, BettingRules
from mccfr.games.holdem_betting import holdem_rules


def posted(
    rules: BettingRules, stacks: Sequence[float], blinds: Sequence[float], antes: Sequence[float]
) -> BettingRules:
    """Return rules in which the players have posted antes, then blinds.

    A player with too few chips posts all of them.

    stacks  chips by position
    blinds  by position, or empty: then antes that differ are bets
    antes   by position: equal ones, or one player's for all, which is no bet; or empty

    A call before the first raise is of the whole blind, unless no two players have as much.
    """
    antes, seats = antes or [0.0] * len(stacks), range(len(stacks))
    dead = [min(antes[seat], stacks[seat]) for seat in seats] if blinds and len({*antes}) > 1 else []
    left = [stacks[seat] - dead[seat] for seat in seats] if dead else list(stacks)
    bets = [(0 if dead else antes[seat]) + (blinds[seat] if blinds else 0) for seat in seats]
    put_in = tuple(min(bets[seat], left[seat]) for seat in seats)
    least = min(max(bets), sorted(left)[-2])
    return replace(
        rules,
        put_in=put_in,
        put_in_before=0 if dead else min(antes),  # for the sizes of a menu: an ante is no bet
        stack=max(left),
        stacks=tuple(left) if len({*left}) > 1 else (),
        dead=tuple(dead),
        least_call=least if least > max(put_in) else 0,
    )


def small_rules(config: PokerGame) -> BettingRules:
    """Return stacks, blinds and order of a `[game]` table, with limps and without raises.

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
