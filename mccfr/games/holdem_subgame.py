"""No-limit hold'em endgames from LibratusEndgames files: flop, turn and river, every combination a hand of its own."""

from math import isfinite
from pathlib import Path

from mccfr.cards.endgame import endgame_cards
from mccfr.config.games import HoldemSubgame
from mccfr.games.betting import BettingRules, build_tree
from mccfr.games.game import Game
from mccfr.games.libratus import read_endgame
from mccfr.games.menu import MenuGame, menu_targets

_RIVER = 3
BIG_BLIND = 100.0
"""Chips, in all files of the format."""


def holdem_subgame(config: HoldemSubgame, base: Path) -> Game:
    """The endgame in `config.file` (relative to `base`) with the bet sizes of `config.menu`.

    Both players have put in half the pot; the player out of position acts first on every street.  Infosets are
    lossless: every (board, hand) that its owner reaches is a bucket of its own.  Raises `OSError` if the file cannot be
    read, and `ValueError` for a file, stack or bet size that makes no turn or river endgame.
    """
    path = base / config.file
    endgame = read_endgame(path)
    if not isfinite(config.stack):
        raise ValueError(f"game.stack = {config.stack} is not allowed: a finite amount is needed")
    half = endgame.pot_chips / 2
    if half >= config.stack:
        raise ValueError(
            f"{path}: half the pot of {endgame.pot_chips} chips is not below game.stack = {config.stack}: "
            "raise game.stack, which counts the chips already in the pot"
        )
    streets = _RIVER - endgame.street + 1
    rules = BettingRules(
        (half, half),
        (0,) * streets,
        menu_targets(config.menu, MenuGame(config.stack, BIG_BLIND, endgame.street, streets)),
        stack=config.stack,
        minimum_bet=BIG_BLIND,
        board_cards=(0, 1, 1)[:streets],
        put_in_before=half,
    )
    return Game(
        "holdem-subgame",
        build_tree(rules),
        endgame_cards(endgame.board, endgame.reach, streets),
        big_blind_chips=BIG_BLIND,
        pot_chips=endgame.pot_chips,
    )
