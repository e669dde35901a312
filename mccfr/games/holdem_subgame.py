"""No-limit hold'em spots: two-player games that begin postflop with a given board and ranges.

Board, pot and ranges are keys of `[game]`, or stand in a file in the LibratusEndgames format (`mccfr.games.libratus`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path

import numpy as np

from abstraction.cards import card_mask, cards_text, combo_masks, parse_cards
from abstraction.range_notation import read_range
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.cards.suit_symmetry import suits_merged
from mccfr.config.game_tables import HoldemSubgame
from mccfr.config.value_limits import share_of
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game, Rake
from mccfr.games.libratus import Endgame, check_endgame, read_endgame
from mccfr.games.locks import LockRanges, read_locks
from mccfr.games.menu import MenuGame, line_edits, menu_targets
from mccfr.trees.street_amounts import LineStart

_RIVER = 3
FILE_BIG_BLIND, FILE_STACK = 100.0, 20_000.0
"""Chips: big blind and stack of all LibratusEndgames files."""
SPOT_BIG_BLIND = 1.0
"""Chips: default minimum bet of a spot, small enough that bet sizes are used as written."""


def holdem_subgame(config: HoldemSubgame, base: Path, *, merge_suits: bool = True) -> Game:
    """Build a game that begins postflop, with a given board, pot and ranges (a spot).

    They are keys of `config`, the `[game]` table, or stand in the file that it names, a path relative to `base`. The
    bet sizes are in `config.menu`.

    Each player has put in half the pot; the player out of position acts first on every street. Infosets are lossless:
    one for each (board, hand) in a player's range. With `merge_suits`, suit-isomorphic infosets are merged, but not for
    a spot in a file. Bets of a spot without a file are whole chips if its pot, stack and big blind are.

    Raises `OSError` if the file cannot be read, and `ValueError` for an invalid file, range, stack, bet size or node
    lock (a fixed strategy).
    """
    spot = config.file is None
    endgame = spot_endgame(config)[0] if spot else read_endgame(base / str(config.file))
    rules = endgame_rules(config, base, endgame)
    tree = build_tree(rules)
    tree = replace(tree, locks=read_locks(config.locks or {}, tree, LockRanges()))
    cards = endgame_cards(endgame.board, endgame.reach, rules.streets)
    return Game(
        "holdem-subgame",
        tree,
        suits_merged(cards, tree.locks.shares.values() if tree.locks else ()) if spot and merge_suits else cards,
        big_blind_chips=rules.minimum_bet,
        pot_chips=endgame.pot_chips,
        rake=spot_rake(config),
    )


def endgame_rules(config: HoldemSubgame, base: Path, endgame: Endgame) -> BettingRules:
    """Return the betting rules of a game that begins postflop with given ranges (a spot).

    config   the `[game]` table of the configuration, with the bet sizes
    base     directory to which the table's file name is relative, for error messages
    endgame  board, pot and ranges of the spot, from `config` or from its file

    Raises `ValueError` for an invalid stack or bet size.
    """
    spot, half = config.file is None, endgame.pot_chips / 2
    stack = half + (config.effective_stack or 0) if spot else float(config.stack or FILE_STACK)
    _check_stack(config, base, half, stack)
    big_blind = float(config.big_blind or (SPOT_BIG_BLIND if spot else FILE_BIG_BLIND))
    whole = spot and all(float(chips or 0).is_integer() for chips in (config.pot, config.effective_stack, big_blind))
    streets = _RIVER - endgame.street + 1
    menu = MenuGame(stack, big_blind, endgame.street, streets, whole_chips=whole)
    return BettingRules(
        (half, half),
        (0,) * streets,
        menu_targets(config.menu, menu),
        stack=stack,
        minimum_bet=big_blind,
        board_cards=(0, 1, 1)[:streets],
        put_in_before=half,
        **line_edits(config.menu, LineStart(half, half)),
    )


def spot_rake(config: HoldemSubgame) -> Rake | None:
    """Return the rake that the `[game]` table of a postflop spot sets; None if it is 0 %."""
    share = share_of(config.rake)
    return Rake(share, config.rake_cap or inf) if share else None


def spot_endgame(config: HoldemSubgame) -> tuple[Endgame, Mapping[str, int]]:
    """Return board, pot and ranges of a `[game]` table, and how many hands the board blocks.

    In the ranges, hands that share a card with the board have weight 0. The second result is the number of these hands
    by range, {"oop": number, "ip": number}: the player out of position, then the one in position.

    Raises `ValueError`, naming the key of the table, for an invalid board, range or pot.
    """
    try:
        board = parse_cards(config.board or "")
    except ValueError as error:
        raise ValueError(f"game.board = {config.board!r}: {error}") from None
    if not 3 <= len(board) <= 5 or len(set(board)) != len(board):
        raise ValueError(f"game.board = {config.board!r} is not allowed: it must be three to five different cards")
    hits = (combo_masks() & np.uint64(card_mask(board))) != 0
    reach, dropped = np.zeros((2, len(hits))), {}
    for player, name in enumerate(("oop", "ip")):
        try:
            weights = read_range((config.ranges or {})[name])
        except ValueError as error:
            raise ValueError(f"game.ranges.{name}: {error}") from None
        dropped[name] = int((hits & (weights > 0)).sum())
        reach[player] = np.where(hits, 0.0, weights)
        if not reach[player].any():
            raise ValueError(f"game.ranges.{name} has no hand that the board {cards_text(board)} leaves: give one")
    pot = float(config.pot or 0)
    endgame = Endgame(len(board) - 2, board, int(pot) if pot.is_integer() else pot, reach)
    try:
        check_endgame(endgame)
    except ValueError as error:
        raise ValueError(f"game: {error}") from None
    return endgame, dropped


def _check_stack(config: HoldemSubgame, base: Path, half: float, stack: float) -> None:
    """Raise `ValueError` for a stack that is infinite or not above `half`.

    half   chips that each player has already put in: half the pot
    stack  chips of each player in the whole hand, those included
    """
    key = "stack" if config.file is not None else "effective_stack"
    if not isfinite(stack):
        raise ValueError(f"game.{key} = {getattr(config, key)} is not allowed: a finite amount is needed")
    if half >= stack:
        raise ValueError(
            f"{base / str(config.file)}: half the pot of {2 * half:g} chips is not below game.stack = {stack}: "
            "raise game.stack, which counts the chips already in the pot"
        )


def dropped_text(dropped: Mapping[str, int], board: Sequence[int]) -> str | None:
    """Return one sentence that tells how many hands of the ranges the board blocks; None for none.

    dropped  number of such hands in the range of each player, {"oop": number, "ip": number}
    """
    counts = [f"{count} of {name}" for name, count in dropped.items() if count]
    return f"hands that the board {cards_text(board)} blocks are dropped: {', '.join(counts)}" if counts else None
