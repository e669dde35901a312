"""Drills: hands that begin with a given line, dealt by the ranges with which the strategy plays it.

A board of the line's street is dealt first, then both hands by the ranges on that board, without shared cards.  The
rest of the board follows.  Boards are dealt at random, not weighted by how often the strategy plays the line on them.
"""

from typing import NamedTuple

import numpy as np

from mccfr.cards.card_index import Deal
from mccfr.games.line_text import line_start
from mccfr.games.translation import Translation
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_line
from mccfr.view.spot_view import Spots

_TRIES = 50
_RAISES = ("", "a raise", "a 3-bet", "a 4-bet", "a 5-bet")
_STREAM = 5


class DrillHand(NamedTuple):
    """A hand that begins with a line.

    position  of the player who acts after the line
    deal      hands by position, and boards
    actions   actions of the line
    """

    position: int
    deal: Deal
    actions: list[str]


def drills(spots: Spots) -> list[dict[str, str]]:
    """Return the preflop lines of a hold'em strategy with their names, such as "button, facing a 3-bet"."""
    if not isinstance(spots.betting, Translation):
        return []
    tree, found = spots.source.game.tree, []
    block, start = tree.arrays.block, line_start(spots.source.game)
    for node in np.flatnonzero((tree.arrays.kind == DECISION) & (block < 2)).tolist():
        line = line_text(tree, node)
        raises = line.count("r")
        if raises >= len(_RAISES):
            continue
        facing = f"facing {_RAISES[raises]}" if raises else "first in" if not line else "after a limp"
        found.append(
            {
                "line": line,
                "name": f"{spots.roles[block[node]]}, {facing}" + f": {street_line(line, start)}" * (raises > 0),
            }
        )
    return found


def deal_hand(spots: Spots, line: str, seed: int, number: int) -> DrillHand:
    """Return hand `number` of a seed, beginning with a line.

    Raises `ValueError` for an invalid line, or one that the strategy never plays.
    """
    dealing = spots.dealing
    street = int(spots.spot(line)["street"])
    rng = np.random.default_rng([seed, number, _STREAM])
    for _ in range(_TRIES):
        boards = dealing.deal(seed, int(rng.integers(1 << 40))).boards
        at = spots.decision(line, dealing.board_text(street, boards[street]))
        player, reach = at.state.player, np.maximum(at.reach, 0.0)
        joint = reach[player] * np.maximum(dealing.disjoint_weight(reach[1 - player]), 0.0)
        if not joint.sum() > 0:
            continue
        own = int(rng.choice(len(joint), p=joint / joint.sum()))
        masks = dealing.hand_masks()
        met = np.where((masks & masks[own]) == 0, reach[1 - player], 0.0)
        if not met.sum() > 0:
            continue
        other = int(rng.choice(len(met), p=met / met.sum()))
        taken = [card for hand in (own, other) for card in dealing.hand_cards[hand].tolist() if card >= 0]
        last = dealing.streets - 1
        full, _ = dealing.full_boards(street, boards[street], taken, 1, rng)
        path = dealing.path(last, full[int(rng.integers(len(full)))])
        hands = (own, other) if player == 0 else (other, own)
        return DrillHand(player, Deal(hands, path), [action for _, action, _ in at.acted])
    raise ValueError(f"line {line[:60]!r}: the strategy never reaches it: drill another line")
