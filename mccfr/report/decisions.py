"""Decisions shown in a report: each hand's action probabilities and reach."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.report.report_boards import NO_BOARD, ShownCards
from mccfr.solvers.locked_tables import given_actions
from mccfr.tables.strategy import Strategy
from mccfr.trees.betting_lines import line_text, put_in_chips, to_chips
from mccfr.trees.compiled import DECISION

SCALE = 10_000
"""Probabilities are written as integer multiples of 1/SCALE."""

_CELL_BYTES = 5  # estimated text of one number with its comma
_VIEW_BYTES = 400  # estimated text of a decision without its numbers


@dataclass(frozen=True)
class BoardDecision:
    """A decision on a board.

    reach  [2, H] float64  weight of each player's hands: initial range times the probabilities of own actions
    """

    node: int
    board: int
    reach: npt.NDArray[np.float64]

    @property
    def mass(self) -> float:
        """Return the product of both players' total reach, without card removal; never above the parent's."""
        return float(self.reach[0].sum() * self.reach[1].sum())


def places(game: Game, strategy: Strategy, cards: ShownCards) -> Iterator[BoardDecision]:
    """Yield decisions on the shown boards by descending mass; each comes after its parent.

    Hands that share a card with a board have reach 0 there.
    """
    order = 0
    waiting: list[tuple[float, int, BoardDecision]] = []
    for board, one in enumerate(cards.boards):
        if one.parent == NO_BOARD:
            start = BoardDecision(0, board, np.where(one.bucket >= 0, cards.reach, 0.0))
            heapq.heappush(waiting, (-start.mass, order, start))
            order += 1
    while waiting:
        place = heapq.heappop(waiting)[2]
        yield place
        for following in _following(game, strategy, cards, place):
            order += 1
            heapq.heappush(waiting, (-following.mass, order, following))


def row(
    game: Game, strategy: Strategy, cards: ShownCards, place: BoardDecision
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the player's hands [h], their probabilities [h, A] and weights [h] at a decision."""
    arrays, node = game.tree.arrays, place.node
    block, slot, count = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.count[node])
    player = int(arrays.player[node])
    bucket = cards.boards[place.board].bucket[player]
    hands = np.flatnonzero((bucket >= 0) & (cards.reach[player] > 0)).astype(np.int64)
    return hands, *strategy.blocks[block].rows(int(arrays.row[node]), slice(slot, slot + count), bucket[hands])


def _following(game: Game, strategy: Strategy, cards: ShownCards, place: BoardDecision) -> Iterator[BoardDecision]:
    arrays, player = game.tree.arrays, int(game.tree.arrays.player[place.node])
    hands, probability, _ = row(game, strategy, cards, place)
    for action, child in enumerate(game.tree.children(place.node)):
        if arrays.kind[child] != DECISION:
            continue
        reach = place.reach.copy()
        reach[player, hands] *= probability[:, action]
        street = int(arrays.block[child]) // 2
        if street == cards.boards[place.board].street:
            yield BoardDecision(child, place.board, reach)
            continue
        for board, one in enumerate(cards.boards):
            if one.street == street and one.parent == place.board:
                yield BoardDecision(child, board, np.where(one.bucket >= 0, reach, 0.0))


def decision_views(game: Game, strategy: Strategy, cards: ShownCards, limit_bytes: int) -> tuple[dict[str, Any], bool]:
    """Return ({"NODE.BOARD": data of a decision}, whether decisions were left out for the file's size).

    Decisions come by descending mass.  Each has `line`, `player`, `board`, `pot` and `actions`, and lists in the order
    of `hand_lists`:

    p  probabilities times SCALE, hand by hand
    r  reach as a share of the player's largest initial weight
    u  indices of hands whose infoset was never reached, so that play is uniform
    k  with locks only: indices of hands with locked actions

    An action has the total chips that the player has put in after it, and the node of the next decision (-1: none).
    """
    views: dict[str, Any] = {}
    spent, largest = 0, np.maximum(cards.reach.max(axis=1), 1e-300)
    for place in places(game, strategy, cards):
        hands, probability, weight = row(game, strategy, cards, place)
        spent += _VIEW_BYTES + _CELL_BYTES * (probability.size + len(hands))
        if spent > limit_bytes and views:
            return views, True
        player = int(game.tree.arrays.player[place.node])
        views[f"{place.node}.{place.board}"] = {
            **_public(game, place),
            "p": np.rint(probability * SCALE).astype(int).ravel().tolist(),
            "r": [float(f"{share:.3g}") for share in place.reach[player, hands] / largest[player]],
            "u": np.flatnonzero(weight == 0).tolist(),
            **_locked(game, cards, place, hands),
        }
    return views, False


def _locked(game: Game, cards: ShownCards, place: BoardDecision, hands: npt.NDArray[np.int64]) -> dict[str, list[int]]:
    if game.tree.locks is None:
        return {}
    buckets = cards.boards[place.board].bucket[int(game.tree.arrays.player[place.node])][hands]
    return {"k": np.flatnonzero(given_actions(game, place.node)[buckets].any(axis=1)).tolist()}


def hand_lists(cards: ShownCards) -> list[list[list[int]]]:
    """Return the hands of each player on each board, [boards][2], in the order of a view's lists."""
    return [
        [np.flatnonzero((board.bucket[player] >= 0) & (cards.reach[player] > 0)).tolist() for player in range(2)]
        for board in cards.boards
    ]


def _public(game: Game, place: BoardDecision) -> dict[str, Any]:
    """Return the public part of a decision's data."""
    tree, node = game.tree, place.node
    own, other = put_in_chips(tree, node)
    actions = [
        {
            "action": tree.label[child],
            "name": _action_name(tree.label[child], own, max(own, other), to),
            "to": to,
            "next": child if tree.arrays.kind[child] == DECISION else -1,
        }
        for child, to in zip(tree.children(node), to_chips(tree, node), strict=True)
    ]
    return {
        "line": line_text(tree, node),
        "player": int(tree.arrays.player[node]),
        "board": place.board,
        "pot": own + other,
        "actions": actions,
    }


def _action_name(label: str, own: float, level: float, to: float) -> str:
    """Return an action in words, with the chips it adds, or to which it raises."""
    if label == "f":
        return "fold"
    if label == "c":
        return "check" if own == level else f"call {level - own:,.10g}"
    return f"bet {to - own:,.10g}" if own == level else f"raise to {to:,.10g}"
