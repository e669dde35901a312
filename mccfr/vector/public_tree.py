"""The public tree prepared for vector kernels: street subtrees of the betting, and the hands of each board.

A *street subtree* is the betting of one street from one way into it; it is walked once for each board.  What leaves it
is a member too: a terminal, a run-out (showdown with boards still to come) or an exit into a subtree of the next
street.  Each player's hands are listed board by board, only those that he reaches and that share no card with the
board; a vector over hands on a board has the order of that list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import card_masks
from mccfr.cards.listed import ListedCards, joint_weight
from mccfr.tree import DECISION, TERMINAL, CompiledTree

EXIT, RUN_OUT = 3, 4
"""Kinds of members besides DECISION and TERMINAL: the way into the next street; a showdown before the last board."""
NO_SUBTREE = -1


class Subtrees(NamedTuple):
    """Betting by street subtree, as kernels take it.  U subtrees, M members in all, subtree 0 begins the game.

    member_first [U+1] int64   members of subtree u are member_first[u] .. member_first[u+1]-1, its root first
    street       [U] int64
    slot_first   [U, 2] int64  first cell of the subtree's rows within a bucket's cells, by player
    slot_count   [U, 2] int64  number of those cells
    kind         [M] int8      DECISION, TERMINAL, EXIT or RUN_OUT
    player       [M] int8      who acts at a decision
    actions      [M] int32     number of actions
    child        [M] int32     first child, counted from the subtree's root; siblings follow it, parents come earlier
    slot         [M] int32     first cell of the row, counted from slot_first
    fixed        [M] float64   chips player 0 gets at a fold
    showdown     [M] float64   chips at stake at a showdown
    below        [M] int32     the subtree an exit leads to, else NO_SUBTREE
    """

    member_first: npt.NDArray[np.int64]
    street: npt.NDArray[np.int64]
    slot_first: npt.NDArray[np.int64]
    slot_count: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int8]
    player: npt.NDArray[np.int8]
    actions: npt.NDArray[np.int32]
    child: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    fixed: npt.NDArray[np.float64]
    showdown: npt.NDArray[np.float64]
    below: npt.NDArray[np.int32]


class HandLists(NamedTuple):
    """Hands by board, as kernels take them.  T boards of all streets in one list, E entries, C cards, P = 2 players.

    first     [2, T+1] int64    entries of player p on board t are first[p, t] .. first[p, t+1]-1
    hand      [E] int32         number of the hand; ascending, on the last street by strength first
    bucket    [E] int32         the player's bucket of this hand on this board
    strength  [E] int32         showdown order on the last street, else 0
    card      [E, 2] int32      cards of the hand; C where it has fewer
    same      [E] int32         place of the same hand in the other player's list of this board if it is a hand of two
                                cards there, else the length of that list
    cards     [1] int64         C
    """

    first: npt.NDArray[np.int64]
    hand: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    strength: npt.NDArray[np.int32]
    card: npt.NDArray[np.int32]
    same: npt.NDArray[np.int32]
    cards: npt.NDArray[np.int64]


class PublicArrays(NamedTuple):
    """What vector kernels take of a public tree."""

    subtrees: Subtrees
    hands: HandLists


@dataclass(frozen=True)
class PublicTree:
    """Everything a vector traversal needs besides strategies.  H hands, S streets, T boards.

    weight        [S] float64  1 / number of boards of street s below one board that are compatible with two hands
    child_boards  [T, 2]       boards of the next street below a board, first and end
    last_boards   [T, 2]       last-street boards below a board (itself on the last street), first and end
    root_boards  [2]           boards of street 0, first and end
    joint_weight               sum of reach·reach over disjoint hands: expected values are divided by it
    """

    arrays: PublicArrays
    reach: npt.NDArray[np.float64]  # [2, H]
    weight: npt.NDArray[np.float64]
    child_boards: npt.NDArray[np.int64]
    last_boards: npt.NDArray[np.int64]
    root_boards: npt.NDArray[np.int64]
    joint_weight: float

    @property
    def streets(self) -> int:
        """Number of streets."""
        return len(self.weight)


def public_tree(tree: CompiledTree, cards: ListedCards) -> PublicTree:
    """Prepare the public tree of a poker-family game.

    Raises `ValueError` if chance is not dealt evenly: hands of unequal numbers of cards, two hands of the same two
    cards, boards that are not all those the deck allows; or if a hand that can be dealt has no bucket.
    """
    sizes = [len(boards) for boards in cards.board_cards]
    start = np.concatenate([[0], np.cumsum(sizes)])
    child, last = _board_ranges(cards, start)
    return PublicTree(
        PublicArrays(_subtrees(tree), _hand_lists(cards)),
        np.ascontiguousarray(cards.reach, np.float64),
        _board_weights(cards),
        child,
        last,
        np.array([0, sizes[0]], np.int64),
        joint_weight(cards),
    )


# --- betting ---


def _subtrees(tree: CompiledTree) -> Subtrees:
    """Cut the betting tree into street subtrees."""
    arrays = tree.arrays
    roots, members = [0], list[list[int]]()
    below: list[int] = []
    kinds: list[int] = []
    street = [int(arrays.block[0]) // 2]
    for root in roots:  # grows while it is walked
        here = _members(tree, root)
        for node in here:
            kind, leads_to = int(arrays.kind[node]), NO_SUBTREE
            if kind == DECISION and arrays.block[node] // 2 != street[len(members)]:
                kind, leads_to = EXIT, len(roots)
                roots.append(node)
                street.append(int(arrays.block[node]) // 2)
            elif kind == TERMINAL and arrays.showdown[node] != 0 and street[len(members)] + 1 < tree.streets:
                kind = RUN_OUT
            kinds.append(kind)
            below.append(leads_to)
        members.append(here)
    return _pack_subtrees(tree, members, street, np.array(kinds, np.int8), np.array(below, np.int32))


def _members(tree: CompiledTree, root: int) -> list[int]:
    """Nodes of the street subtree at `root` in the tree's order (so siblings stay together), the ways out included."""
    arrays, found, todo = tree.arrays, [root], [root]
    while todo:
        node = todo.pop()
        if arrays.kind[node] not in (DECISION, TERMINAL):
            raise ValueError(f"tree node {node} is a chance record: public trees hold decisions and terminals only")
        if arrays.fixed[node] != 0 and arrays.showdown[node] != 0:
            raise ValueError(f"tree node {node} pays for a fold and for a showdown at once: one of them is allowed")
        if arrays.kind[node] == DECISION and arrays.block[node] // 2 == arrays.block[root] // 2:
            found.extend(tree.children(node))
            todo.extend(tree.children(node))
    return sorted(found)


def _pack_subtrees(
    tree: CompiledTree,
    members: Sequence[list[int]],
    street: Sequence[int],
    kind: npt.NDArray[np.int8],
    below: npt.NDArray[np.int32],
) -> Subtrees:
    arrays = tree.arrays
    node = np.array([member for here in members for member in here])
    member_first = np.concatenate([[0], np.cumsum([len(here) for here in members])]).astype(np.int64)
    count, child, slot = (np.zeros(len(node), np.int32) for _ in range(3))
    slot_first, slot_count = np.zeros((len(members), 2), np.int64), np.zeros((len(members), 2), np.int64)
    for u, here in enumerate(members):
        part = slice(member_first[u], member_first[u + 1])
        decision = kind[part] == DECISION
        nodes = node[part]
        count[part] = np.where(decision, arrays.count[nodes], 0)
        child[part] = np.where(decision, np.searchsorted(here, arrays.first[nodes]), 0)
        for player in range(2):
            own = decision & (arrays.player[nodes] == player)
            if own.any():
                first = arrays.slot[nodes[own]]
                slot_first[u, player] = first.min()
                slot_count[u, player] = (first + arrays.count[nodes[own]]).max() - first.min()
                slot[member_first[u] + np.flatnonzero(own)] = first - first.min()
    return Subtrees(
        member_first,
        np.array(street, np.int64),
        slot_first,
        slot_count,
        kind,
        arrays.player[node].astype(np.int8),
        count,
        child,
        slot,
        arrays.fixed[node].astype(np.float64),
        arrays.showdown[node].astype(np.float64),
        below,
    )


# --- cards ---


def _board_ranges(
    cards: ListedCards, start: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """[T, 2] boards below each board on the next street, and [T, 2] on the last street; first and end."""
    total, last_street = int(start[-1]), cards.streets - 1
    child, last = np.zeros((total, 2), np.int64), np.zeros((total, 2), np.int64)
    own = np.arange(start[last_street], total)
    last[start[last_street] :] = np.stack([own, own + 1], axis=1)
    for street in range(last_street, 0, -1):
        parent, above = cards.board_parent[street], np.arange(len(cards.board_cards[street - 1]))
        if np.any(np.diff(parent) < 0):
            raise ValueError(f"boards of street {street} are not in the order of those of the street before")
        ranges = np.stack([np.searchsorted(parent, above), np.searchsorted(parent, above, side="right")], axis=1)
        here = slice(start[street - 1], start[street])
        child[here] = start[street] + ranges
        last[here] = np.stack([last[child[here, 0], 0], last[child[here, 1] - 1, 1]], axis=1)
    return child, last


def _board_weights(cards: ListedCards) -> npt.NDArray[np.float64]:
    """[S] chance of each board of a street given the one before and two hands that hit neither; see `public_tree`."""
    live = (cards.reach > 0).any(axis=0)
    held = np.unique((cards.hand_cards[live] >= 0).sum(axis=1))
    if len(held) != 1:
        raise ValueError(f"hands hold {held.tolist()} cards: all hands of a game must hold equally many")
    deck = len(np.unique(cards.hand_cards[cards.hand_cards >= 0]))
    known, weight = 0, np.ones(cards.streets)
    for street, boards in enumerate(cards.board_cards):
        dealt = boards.shape[1] - known
        parents = 1 if street == 0 else len(cards.board_cards[street - 1])
        given = street == 0 and len(boards) == 1  # a subgame's board is not chance
        if not given and dealt:
            below = np.bincount(cards.board_parent[street], minlength=parents)
            if np.any(below != comb(deck - known, dealt)):
                raise ValueError(
                    f"street {street} has {below.min()} to {below.max()} boards below one board: all "
                    f"{comb(deck - known, dealt)} ways to deal {dealt} of {deck - known} cards are needed"
                )
            weight[street] = 1 / comb(deck - known - 2 * int(held[0]), dealt)
        elif len(boards) != parents:
            raise ValueError(f"street {street} has {len(boards)} boards although none of its cards is dealt by chance")
        known = boards.shape[1]
    return weight


def _hand_lists(cards: ListedCards) -> HandLists:
    two = cards.hand_cards[(cards.hand_cards >= 0).all(axis=1)]
    if len(np.unique(np.sort(two, axis=1), axis=0)) != len(two):
        raise ValueError("two hands hold the same two cards: each pair of cards may be one hand")
    masks = cards.hand_masks()
    deck = 1 + int(max(cards.hand_cards.max(), *(boards.max(initial=-1) for boards in cards.board_cards)))
    lists: tuple[list[npt.NDArray[np.int64]], ...] = ([], [])
    same: tuple[list[npt.NDArray[np.int64]], ...] = ([], [])
    bucket: tuple[list[npt.NDArray[np.int32]], ...] = ([], [])
    strength: tuple[list[npt.NDArray[np.int32]], ...] = ([], [])
    for street, boards in enumerate(cards.board_cards):
        last = street + 1 == cards.streets
        for board, mask in enumerate(card_masks(boards)):
            order = cards.strength[board] if last else np.zeros(len(masks), np.int32)
            here = [np.flatnonzero((cards.reach[player] > 0) & ((masks & mask) == 0)) for player in range(2)]
            here = [hands[np.argsort(order[hands], kind="stable")] for hands in here]
            for player, hands in enumerate(here):
                lists[player].append(hands)
                strength[player].append(order[hands])
                bucket[player].append(cards.bucket[street][player, board, hands])
                same[player].append(_same_hands(cards, hands, here[1 - player]))
    counts = np.array([[len(hands) for hands in lists[player]] for player in range(2)])
    first = np.zeros((2, counts.shape[1] + 1), np.int64)
    first[:, 1:] = np.cumsum(counts, axis=1)
    first[1] += first[0, -1]
    hand = np.concatenate([*lists[0], *lists[1]])
    found = np.concatenate([*bucket[0], *bucket[1]])
    if np.any(found < 0):
        raise ValueError(f"hand {cards.hand_names[hand[np.argmin(found)]]} can be dealt but has no bucket on a board")
    return HandLists(
        first,
        hand.astype(np.int32),
        found.astype(np.int32),
        np.concatenate([*strength[0], *strength[1]]).astype(np.int32),
        np.where(cards.hand_cards[hand] >= 0, cards.hand_cards[hand], deck).astype(np.int32),
        np.concatenate([*same[0], *same[1]]).astype(np.int32),
        np.array([deck], np.int64),
    )


def _same_hands(
    cards: ListedCards, hands: npt.NDArray[np.int64], others: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """[n] place of each two-card hand in the list `others`; the length of that list where it has none."""
    place = np.full(len(cards.hand_cards), len(others))
    place[others] = np.arange(len(others))
    place[(cards.hand_cards < 0).any(axis=1)] = len(others)
    return place[hands]
