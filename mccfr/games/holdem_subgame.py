"""No-limit hold'em endgames from LibratusEndgames files: flop, turn and river, every combination a hand of its own."""

from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, COMBO_COUNT, card_mask, combo_masks, combo_text, hand_cards
from abstraction.evaluator import board_strengths
from mccfr.cards.deals import NO_BUCKET, card_masks
from mccfr.cards.listed import ListedCards
from mccfr.config import HoldemSubgame
from mccfr.games.betting import BettingRules, build_tree
from mccfr.games.game import Game
from mccfr.games.libratus import Endgame, read_endgame
from mccfr.games.menu import menu_targets

_RIVER = 3


def holdem_subgame(config: HoldemSubgame, base: Path) -> Game:
    """The endgame in `config.file` (relative to `base`) with the bet sizes of `config.menu`.

    Both players have put in half the pot; the player out of position acts first on every street.  Infosets are
    lossless: every (board, hand) that its owner reaches is a bucket of its own.  Raises `OSError` if the file cannot be
    read, and `ValueError` for a file, stack, blind or bet size that makes no turn or river endgame.
    """
    path = base / config.file
    endgame = read_endgame(path)
    if not (isfinite(config.stack) and isfinite(config.big_blind) and config.big_blind > 0):
        raise ValueError(
            f"game.stack = {config.stack}, game.big_blind = {config.big_blind}: finite amounts above 0 are needed"
        )
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
        menu_targets(config.menu, config.stack, config.big_blind, endgame.street),
        stack=config.stack,
        minimum_bet=config.big_blind,
        board_cards=(0, 1, 1)[:streets],
        put_in_before=half,
    )
    return Game(
        "holdem-subgame",
        build_tree(rules),
        endgame_cards(endgame),
        big_blind_chips=config.big_blind,
        pot_chips=endgame.pot_chips,
    )


def endgame_cards(endgame: Endgame) -> ListedCards:
    """Card model of an endgame: 1,326 hands; the file's board, then each street's boards with every card to come."""
    boards = [np.array([endgame.board], np.int16)]
    parents = [np.zeros(1, np.int32)]
    for _ in range(endgame.street, _RIVER):
        above = boards[-1].tolist()
        below = [(*board, card) for board in above for card in range(CARD_COUNT) if card not in board]
        boards.append(np.array(below, np.int16))
        parents.append(np.repeat(np.arange(len(above)), len(below) // len(above)).astype(np.int32))
    hits = (combo_masks() & np.uint64(card_mask(endgame.board))) != 0
    reach = np.where(hits, 0.0, endgame.reach)
    bucket = [_number(reach, street_boards) for street_boards in boards]
    return ListedCards(
        hand_cards(CARD_COUNT, 2),
        [combo_text(index) for index in range(COMBO_COUNT)],
        reach,
        boards,
        parents,
        np.array([board_strengths(board.tolist()) for board in boards[-1]], np.int32),
        bucket,
        np.array([numbers.max(axis=(1, 2)) + 1 for numbers in bucket], np.int64),
    )


def _number(reach: npt.NDArray[np.float64], boards: npt.NDArray[np.int16]) -> npt.NDArray[np.int32]:
    """[2, B, H] numbers of the (board, hand) pairs that each player reaches, board by board; else NO_BUCKET."""
    disjoint = (combo_masks()[None, :] & card_masks(boards)[:, None]) == 0
    live = disjoint[None] & (reach > 0)[:, None]
    numbers = np.cumsum(live.reshape(2, -1), axis=1).reshape(live.shape) - 1
    return np.where(live, numbers, NO_BUCKET).astype(np.int32)
