"""Drills: practice hands that begin with a given line, dealt by the strategy's ranges after it.

A board of the line's street is dealt first, then all hands by the ranges on that board, without shared cards.  The
rest of the board follows.  Boards are dealt at random, not weighted by how often the strategy plays the line on them.

With three and more players a drill is a set of preflop lines, `first-in` or `facing-raise`, for all positions or for
one (`first-in BTN`).  For each hand the user's position is drawn at random, then one of the set's lines for it.
"""

from typing import NamedTuple

import numpy as np

from mccfr.cards.card_index import Deal, IndexedCards
from mccfr.play.line_ranges import Weights
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_line
from mccfr.view.position_charts import fold_lines
from mccfr.view.spot_view import Spots

_TRIES = 50
_DRAWS = 4_096  # tuples of hands on a board: one in some 12 has no shared cards with six players before the flop
_KINDS = {"first-in": "first in", "facing-raise": "facing a raise"}
"""Drills of three and more players, with their names."""
_RAISES = ("", "a raise", "a 3-bet", "a 4-bet", "a 5-bet")
_POTS = ("single-raised", "3-bet", "4-bet")
_BARRELS = (("c-bet", "facing a c-bet"), ("turn barrel", "facing a turn barrel"), ("river barrel", "river call"))
"""Names of the bets on flop, turn and river, and of the decisions that face them."""
_MOST_SPOT_ACTIONS = 2
_STREAM = 5


class DrillHand(NamedTuple):
    """A dealt hand whose first actions are those of a drill's line.

    position  index of the player who acts after the line; the user plays this position
    deal      index of each player's hole cards, and the board of every street
    actions   actions of the line, in order, such as r300
    """

    position: int
    deal: Deal
    actions: list[str]


def preflop_lines(spots: Spots) -> list[tuple[str, str]]:
    """Return (line, name) of preflop decisions; [] unless the strategy is of hold'em from before the flop.

    A line such as "b200b900" has the chips put in on the street. Its name is for example "Button, facing a 3-bet:
    b200b900". Two players' lines have at most four raises. With three and more players only two kinds of decisions
    are listed: before any bet (first in), and facing the first raise.
    """
    if not spots.starts_preflop:
        return []
    if spots.players > 2:
        return [
            (line, f"{spots.roles[player]}, {_KINDS[kind]}" + f": {line}" * ("b" in line))
            for kind in _KINDS
            for line, player in seat_lines(spots, kind)
        ]
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


def seat_lines(spots: Spots, kind: str) -> list[tuple[str, int]]:
    """Return a list of (line, player to act) of a drill's preflop lines, for three and more players.

    kind  `first-in`: all players before the player to act fold; `facing-raise`: one of them raises, the others fold
    """
    first = fold_lines(spots, "")
    if kind == "first-in":
        return first
    raises = [one["line"] for line, _ in first for one in spots.offered(line) if one["kind"] == "raise"]
    return [pair for line in raises if line for pair in fold_lines(spots, line)]


def postflop_lines(spots: Spots) -> list[tuple[str, str]]:
    """Return (line, name) of postflop lines: c-bets, turn and river bets, and the decisions facing them.

    They are for two players; before the flop there are one to three raises.  The last preflop raiser bets on each
    street, and the opponent calls.  Lines to later streets continue after the smallest bet.  [] for a strategy that
    does not begin before the flop.
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
    """Return (line, name) of the decisions on a game's first street that come after at most two actions.

    The game is a solved spot: it begins on a given board.  A name begins with the position of the player to act.
    """
    tree, found = spots.source.game.tree, []
    block = tree.arrays.block
    for node in np.flatnonzero((tree.arrays.kind == DECISION) & (block < 2)).tolist():
        line = street_line(line_text(tree, node), spots.start)
        if len(tree.path(node)) - 1 <= _MOST_SPOT_ACTIONS:
            found.append((line, f"{spots.roles[block[node]]}, {line or 'first to act'}"))
    return found


def drills(spots: Spots) -> list[dict[str, str]]:
    """Return a list of {"line", "name"}, the drills of a strategy: lines with which hands may begin.

    Strategies of whole hold'em have lines before and after the flop.  Spots, which begin on a board, have lines of
    their first street.  With three and more players, `line` is the name of a set of lines, such as "first-in BTN".
    Games whose hands do not form the 13x13 classes of hold'em have none.
    """
    if not spots.square:
        return []
    if spots.players > 2 and spots.starts_preflop:
        named = {kind: sorted({player for _, player in seat_lines(spots, kind)}) for kind in _KINDS}
        return [
            {"line": f"{kind} {role}".strip(), "name": f"{role or 'Any position'}, {_KINDS[kind]}"}
            for kind, players in named.items()
            for role in ("", *(spots.roles[player] for player in players))
        ]
    lines = preflop_lines(spots) + postflop_lines(spots) if spots.starts_preflop else spot_lines(spots)
    return [{"line": line, "name": name} for line, name in lines]


def _lines_of(spots: Spots, drill: str) -> list[list[str]]:
    """Return the lines with which a drill's hands may begin: a list for each position to act next.

    drill  one line; or, for three and more players, the name of a set of lines, such as "first-in BTN"

    Raises `ValueError` for a set without lines.
    """
    kind, _, role = drill.partition(" ")
    if spots.players == 2 or kind not in _KINDS or not spots.starts_preflop:
        return [[drill]]
    found: dict[int, list[str]] = {}
    for line, player in seat_lines(spots, kind):
        if role in ("", spots.roles[player]):
            found.setdefault(player, []).append(line)
    if not found:
        raise ValueError(f"{role[:20]!r} has no decision {_KINDS[kind]}: the positions are {', '.join(spots.roles)}")
    return list(found.values())


def deal_hand(spots: Spots, drill: str, seed: int, number: int) -> DrillHand:
    """Deal hand `number` of `seed` so that it begins with a line of a drill; the same at each call.

    spots  the strategy, by whose ranges after the line the hands are dealt
    drill  one line; or, for three and more players, the name of a set of lines, from which one is drawn

    Raises `ValueError` for an invalid line, and if 50 draws find no line and board that the strategy plays.
    """
    dealing, by_position = spots.dealing, _lines_of(spots, drill)
    rng = np.random.default_rng([seed, number, _STREAM])
    for _ in range(_TRIES):
        lines = by_position[int(rng.integers(len(by_position)))]
        line = lines[int(rng.integers(len(lines)))]
        boards = dealing.deal(seed, int(rng.integers(1 << 40))).boards
        street = int(spots.spot(line)["street"])
        at = spots.decision(line, dealing.board_text(street, boards[street]))
        hands = _drawn_hands(dealing, np.maximum(at.reach, 0.0), rng)
        if hands is None:
            continue
        taken = [card for hand in hands for card in dealing.hand_cards[hand].tolist() if card >= 0]
        last = dealing.streets - 1
        full, _ = dealing.full_boards(street, boards[street], taken, 1, rng)
        path = dealing.path(last, full[int(rng.integers(len(full)))])
        return DrillHand(at.state.player, Deal(hands, path), [action for _, action, _ in at.acted])
    raise ValueError(f"line {drill[:60]!r}: the strategy never reaches it: drill another line")


def _drawn_hands(dealing: IndexedCards, reach: Weights, rng: np.random.Generator) -> tuple[int, ...] | None:
    """Draw one hand for each of P players, without shared cards; return the indices of the hands.

    reach  [P, H] weights of each player's hands, by which they are drawn
    rng    generator of the draws

    Returns None if a range is empty, or if hands share cards in all 4,096 draws.
    """
    if not reach.sum(axis=1).min() > 0:
        return None
    drawn = np.stack([rng.choice(reach.shape[1], _DRAWS, p=own / own.sum()) for own in reach], axis=1)
    masks = dealing.hand_masks()[drawn]
    disjoint = np.bitwise_count(masks).sum(axis=1) == np.bitwise_count(np.bitwise_or.reduce(masks, axis=1))
    return tuple(drawn[int(np.argmax(disjoint))].tolist()) if disjoint.any() else None
