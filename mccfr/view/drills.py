"""Drills: hands that begin with a given line, dealt by the ranges with which the strategy plays it.

A board of the line's street is dealt first, then both hands by the ranges on that board, without shared cards.  The
rest of the board follows.  Boards are dealt at random, not weighted by how often the strategy plays the line on them.
"""

from typing import NamedTuple

import numpy as np

from mccfr.cards.card_index import Deal
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_line
from mccfr.view.spot_view import Spots

_TRIES = 50
_RAISES = ("", "a raise", "a 3-bet", "a 4-bet", "a 5-bet")
_POTS = ("single-raised", "3-bet", "4-bet")
_BARRELS = (("c-bet", "facing a c-bet"), ("turn barrel", "facing a turn barrel"), ("river barrel", "river call"))
"""Names of the bets on flop, turn and river, and of the decisions that face them."""
_MOST_SPOT_ACTIONS = 2
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


def preflop_lines(spots: Spots) -> list[tuple[str, str]]:
    """Return the preflop lines of a hold'em strategy with their names.

    A name is for example "Button, facing a 3-bet: b200b900".
    """
    if not spots.starts_preflop:
        return []
    tree, found = spots.source.game.tree, []
    block = tree.arrays.block
    for node in np.flatnonzero((tree.arrays.kind == DECISION) & (block < 2)).tolist():
        line = street_line(line_text(tree, node), spots.start)
        raises = line.count("b")
        if raises >= len(_RAISES):
            continue
        facing = f"facing {_RAISES[raises]}" if raises else "first in" if not line else "after a limp"
        name = f"{spots.roles[block[node]]}, {facing}" + f": {line}" * (raises > 0)
        found.append((line, name))
    return found


def postflop_lines(spots: Spots) -> list[tuple[str, str]]:
    """Return lines after the flop with their names: c-bets, barrels, and the decisions that face them.

    The last raiser before the flop bets on each street and the other calls.  A bet that is called is the smallest.
    """
    if not spots.starts_preflop:
        return []
    tree, found = spots.source.game.tree, []
    block, kind = tree.arrays.block, tree.arrays.kind

    def after(node: int, action: str) -> int | None:
        child = next((one for one in tree.children(node) if tree.label[one] == action), None)
        return child if child is not None and kind[child] == DECISION else None

    def add(node: int, name: str) -> None:
        line = street_line(line_text(tree, node), spots.start)
        found.append((line, f"{spots.roles[block[node] % 2]}, {name} in a {pot} pot: {line}"))

    for faces in np.flatnonzero((kind == DECISION) & (block < 2)).tolist():
        raises, node = line_text(tree, faces).count("r"), after(faces, "c")
        if not 1 <= raises <= len(_POTS) or node is None:
            continue
        pot, raiser = _POTS[raises - 1], 1 - block[faces] % 2
        for bet_name, facing in _BARRELS:
            street = block[node] // 2
            if block[node] % 2 != raiser:  # the caller acts first and checks
                node = after(node, "c")
            if node is None or block[node] // 2 != street:
                break
            add(node, bet_name)
            bets = [one for one in tree.children(node) if tree.label[one][0] == "r" and kind[one] == DECISION]
            for bet in bets:
                add(bet, facing)
            node = after(bets[0], "c") if bets else None
            if node is None:
                break
    return found


def spot_lines(spots: Spots) -> list[tuple[str, str]]:
    """Return the lines of at most two actions on the first street of a solved spot, with their names."""
    tree, found = spots.source.game.tree, []
    block = tree.arrays.block
    for node in np.flatnonzero((tree.arrays.kind == DECISION) & (block < 2)).tolist():
        line = street_line(line_text(tree, node), spots.start)
        if len(tree.path(node)) - 1 <= _MOST_SPOT_ACTIONS:
            found.append((line, f"{spots.roles[block[node]]}, {line or 'first to act'}"))
    return found


def drills(spots: Spots) -> list[dict[str, str]]:
    """Return the lines that hands may begin with, as `line` and `name`.

    Blueprints of hold'em have lines before and after the flop, solved spots those of their first street.
    """
    if not spots.square:
        return []
    lines = preflop_lines(spots) + postflop_lines(spots) if spots.starts_preflop else spot_lines(spots)
    return [{"line": line, "name": name} for line, name in lines]


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
