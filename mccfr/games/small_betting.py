"""Betting rules of poker on small decks, by the rules of the ACPC dealer, without raise sizes."""

from mccfr.config.game_tables import PokerGame
from mccfr.games.betting import BettingRules


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
