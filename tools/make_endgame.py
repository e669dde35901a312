"""Makes a hold'em endgame in the LibratusEndgames format: `make_endgame.py river|turn OUT`.

Each player starts from a preflop range.  A hand's weight is scaled by how likely a player of that seat continues with
its strength on the board (linear between given points).  Noise from a fixed seed makes weights vary within every class
of hands.  Weights have six significant digits.
"""

import random
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import CARD_COUNT, COMBO_COUNT, parse_cards
from abstraction.hand_evaluator import board_strengths
from abstraction.range_notation import parse_range
from mccfr.games.libratus import Endgame, write_endgame


@dataclass(frozen=True)
class EndgameRecipe:
    street: int
    board: str
    pot_chips: int
    seed: int
    ranges: tuple[str, str]
    """Preflop ranges: player 0 called out of position, player 1 raised on the button."""


RECIPES = {
    "river": EndgameRecipe(
        street=3,
        board="KdJh8s5c2h",
        pot_chips=600,
        seed=11,
        ranges=(
            "22-JJ,A2s-AQs,K4s+,Q6s+,J7s+,T7s+,96s+,85s+,74s+,64s+,53s+,A3o-AJo,K8o+,Q9o+,J8o+,T8o+,97o+,87o,76o",
            "22+,A2s+,K2s+,Q4s+,J6s+,T6s+,96s+,85s+,75s+,64s+,54s,A2o+,K7o+,Q8o+,J8o+,T8o+,98o:0.5",
        ),
    ),
    "turn": EndgameRecipe(
        street=2,
        board="Qd9c6c3h",
        pot_chips=1800,
        seed=12,
        ranges=(
            "77-JJ,QQ:0.5,ATs-AQs,KQs,KJs:0.5,QJs,JTs,T9s,98s:0.5,87s:0.5,AQo:0.7,KQo:0.5",
            "TT+,66:0.5,AJs+,KQs,QJs,JTs,T9s,98s,87s:0.5,76s:0.5,A5s-A4s,AQo+:0.8,KQo:0.6",
        ),
    ),
}
# Weight by share of hands beaten: player 0 calls with the middle and slow-plays, player 1 bets strong hands and bluffs.
BEATEN = (0.0, 0.2, 0.5, 0.75, 0.9, 1.0)
WEIGHTS = ((0.15, 0.35, 0.8, 1.0, 0.7, 0.4), (0.6, 0.4, 0.3, 0.7, 1.0, 0.95))


def share_beaten(board: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the mean share of hands [1326] that each combination beats over all rivers.

    -1 marks combinations that share a card with the board.
    """
    total, boards = np.zeros(COMBO_COUNT), np.zeros(COMBO_COUNT)
    rivers = [(*board, card) for card in range(CARD_COUNT) if card not in board] if len(board) == 4 else [board]
    for river in rivers:
        strengths = board_strengths(river)
        held = strengths > 0
        order = np.sort(strengths[held])
        beaten, not_beaten = (np.searchsorted(order, strengths[held], side) for side in ("left", "right"))
        total[held] += (beaten + not_beaten) / (2 * len(order))
        boards[held] += 1
    return np.where(boards > 0, total / np.maximum(boards, 1), -1)


def make(recipe: EndgameRecipe) -> Endgame:
    board = parse_cards(recipe.board)
    beaten = share_beaten(board)
    noise = random.Random(recipe.seed)
    reach = np.zeros((2, COMBO_COUNT))
    for player in range(2):
        weights = parse_range(recipe.ranges[player]) * np.interp(beaten, BEATEN, WEIGHTS[player])
        for combo in range(COMBO_COUNT):
            value = weights[combo] * (0.6 + 0.4 * noise.random())
            reach[player, combo] = float(f"{value:.6g}") if beaten[combo] >= 0 else 0.0
    return Endgame(recipe.street, board, recipe.pot_chips, reach)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in RECIPES:
        sys.exit(f"usage: make_endgame.py {'|'.join(RECIPES)} OUT")
    write_endgame(sys.argv[2], make(RECIPES[sys.argv[1]]))
