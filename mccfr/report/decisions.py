"""The decisions that a report holds: what each hand plays there and how often it gets there."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.report.boards import NO_BOARD, ShownCards
from mccfr.solvers.locked_tables import given_actions
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION
from mccfr.trees.lines import line_text, put_in_chips, to_chips

SCALE = 10_000
"""Probabilities are written as whole multiples of 1/SCALE."""

_CELL_BYTES = 5  # text of one number, with its comma: what a decision takes is estimated by it
_VIEW_BYTES = 400  # and of what surrounds the numbers


@dataclass(frozen=True)
class BoardDecision:
    """A decision on a board.

    reach  [2, H] float64  each player's weight of his hands: his range before the game times what he played since
    """

    node: int
    board: int
    reach: npt.NDArray[np.float64]

    @property
    def mass(self) -> float:
        """How much play comes here, card removal left out; never more than above it."""
        return float(self.reach[0].sum() * self.reach[1].sum())


def places(game: Game, strategy: Strategy, cards: ShownCards) -> Iterator[BoardDecision]:
    """Decisions on the boards shown, the most played first; each comes after the one that it follows from.

    Boards are only reached by hands that do not hit them.
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
    """(hands [h] of the actor on the board, their probabilities [h, A], the weight behind each [h])."""
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
    """({"NODE.BOARD": what a page needs of a decision}, whether some were left out for the sake of the size).

    The most played decisions come first.  Of each: `line`, `player`, `board`, `pot`, `actions` (with the chips put in
    after each and the node that follows, -1 where the hand ends), and for the hands of `hand_lists`, in that order,
    `p` (SCALE times the probabilities, hand by hand), `r` (reach as a share of the player's largest weight before the
    game) and `u` (places in the list of hands whose infoset was never reached: uniform); with locks also `k` (those of
    hands of which actions are given, and not learnt).
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
    """Hands of each player on each board, [boards][2]: the order of a view's numbers."""
    return [
        [np.flatnonzero((board.bucket[player] >= 0) & (cards.reach[player] > 0)).tolist() for player in range(2)]
        for board in cards.boards
    ]


def _public(game: Game, place: BoardDecision) -> dict[str, Any]:
    """What everybody sees at a decision."""
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
    """An action in words; chips are what the action adds to what the player has put in, or raises to."""
    if label == "f":
        return "fold"
    if label == "c":
        return "check" if own == level else f"call {level - own:,.10g}"
    return f"bet {to - own:,.10g}" if own == level else f"raise to {to:,.10g}"
