"""Converts small poker games to trees of histories: the public betting tree combined with all deals.

Chance deals player 0's hand, then player 1's, then the board of each street. Outcomes of a chance node are merged if no
player can distinguish them: equal buckets of both players on this and all later boards, and equal results. Nothing else
is merged and nothing is approximated, so values and best responses are exact.

Rows of a player are numbered street by street, then bucket by bucket, then in the public tree's order. So they are the
player's tables laid end to end, and strategies convert both ways by copying.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit
from mccfr.cards.card_lists import ListedCards
from mccfr.cards.deals import NO_BUCKET, card_masks
from mccfr.cards.no_cards import NO_CARDS
from mccfr.games.game import Game
from mccfr.trees.betting_lines import all_lines
from mccfr.trees.compiled import CHANCE, DECISION, NO_PARENT, TERMINAL, CompiledTree, TreeArrays, blank_arrays
from mccfr.trees.history_compiler import MAX_HISTORIES, most_histories

MAX_DEALS = 2_000_000
"""Most deals (two hands and a board), before merging, of a game to expand."""

_ROOT_LEVEL, _PAIR_LEVEL = 0, 2


class DealTree(NamedTuple):
    """Tree of all deals. D nodes, children contiguous.

    Level 0 is the root, 1 player 0's hand, 2 both hands, 3 + s a board of street s.

    count        [D] int32     number of children
    first        [D] int32     first child
    probability  [D] float64   given the parent
    bucket       [D, 2] int32  both players' buckets, from level 3 on; else NO_BUCKET
    result       [D] float64   showdown at the last level: +1 if player 0 wins, -1 if player 1 wins, 0 for a tie
    """

    count: npt.NDArray[np.int32]  # type: ignore[assignment]  # hides the tuple's own method
    first: npt.NDArray[np.int32]
    probability: npt.NDArray[np.float64]
    bucket: npt.NDArray[np.int32]
    result: npt.NDArray[np.float64]


class _Deal(NamedTuple):
    """A node of the deal tree: hands and board dealt so far, -1 if not dealt yet."""

    level: int
    hand_0: int = -1
    hand_1: int = -1
    board: int = -1


class _Dealer:
    """Enumerates deals, and identifies deals that no player can distinguish."""

    def __init__(self, cards: ListedCards) -> None:
        self.cards, self.last_level = cards, _PAIR_LEVEL + cards.streets
        self.hand_mask = cards.hand_masks()
        self.board_mask = [card_masks(board) for board in cards.board_cards]
        self.below = [
            [np.flatnonzero(parent == above) for above in range(int(parent.max()) + 1)] for parent in cards.board_parent
        ]
        disjoint = (self.hand_mask[:, None] & self.hand_mask[None, :]) == 0
        self.weight_1 = disjoint * cards.reach[1][None, :]
        self.weight_0 = cards.reach[0] * self.weight_1.sum(axis=1)
        self.ids: dict[Any, int] = {}
        self.known: dict[_Deal, int] = {}

    def children(self, deal: _Deal) -> list[tuple[_Deal, float]]:
        """Return every deal of the next level, with its probability."""
        level = deal.level + 1
        if level <= _PAIR_LEVEL:
            weight = self.weight_0 if level == 1 else self.weight_1[deal.hand_0]
            hands = np.flatnonzero(weight > 0).tolist()
            made = [_Deal(1, hand) if level == 1 else _Deal(2, deal.hand_0, hand) for hand in hands]
            return list(zip(made, (weight[hands] / weight[hands].sum()).tolist(), strict=True))
        street = level - _PAIR_LEVEL - 1
        boards = self.below[street][max(deal.board, 0)]
        dead = self.hand_mask[deal.hand_0] | self.hand_mask[deal.hand_1]
        boards = boards[(self.board_mask[street][boards] & dead) == 0].tolist()
        return [(deal._replace(level=level, board=board), 1 / len(boards)) for board in boards]

    def buckets(self, deal: _Deal) -> tuple[int, int]:
        """Return both players' buckets, NO_BUCKET before the first board."""
        if deal.level <= _PAIR_LEVEL:
            return NO_BUCKET, NO_BUCKET
        bucket = self.cards.bucket[deal.level - _PAIR_LEVEL - 1]
        return int(bucket[0, deal.board, deal.hand_0]), int(bucket[1, deal.board, deal.hand_1])

    def result(self, deal: _Deal) -> int:
        """Return the result of a showdown for player 0, or 0 before the last street."""
        if deal.level < self.last_level:
            return 0
        strength = self.cards.strength[deal.board]
        return int(np.sign(int(strength[deal.hand_0]) - int(strength[deal.hand_1])))

    def merged(self, deal: _Deal) -> list[tuple[_Deal, float]]:
        """Return `children` with indistinguishable deals merged: the first of each class, with their total."""
        found: dict[int, tuple[_Deal, float]] = {}
        for child, probability in self.children(deal) if deal.level < self.last_level else []:
            kind = self.kind(child)
            first, total = found.get(kind, (child, 0.0))
            found[kind] = first, total + probability
        return list(found.values())

    def kind(self, deal: _Deal) -> int:
        """Return a class number: two deals share it if no player can distinguish them, now or later."""
        if deal not in self.known:
            later: Counter[tuple[int, float]] = Counter()
            if deal.level < self.last_level:
                later.update((self.kind(child), round(share, 12)) for child, share in self.children(deal))
            key = (deal.level, self.buckets(deal), self.result(deal), frozenset(later.items()))
            self.known[deal] = self.ids.setdefault(key, len(self.ids))
        return self.known[deal]

    def label(self, deal: _Deal, names: dict[int, str]) -> str:
        """Return the label of the last chance event: a hand, or the new cards of a street."""
        if deal.level <= _PAIR_LEVEL:
            return self.cards.hand_names[deal.hand_0 if deal.level == 1 else deal.hand_1] if deal.level else ""
        street = deal.level - _PAIR_LEVEL - 1
        before = self.cards.board_cards[street - 1].shape[1] if street else 0
        return "".join(names[int(card)] for card in self.cards.board_cards[street][deal.board][before:])


def _deal_tree(dealer: _Dealer) -> tuple[DealTree, list[_Deal]]:
    """Return the tree of all distinguishable deals, level by level, and the deal of each node."""
    deals, probability = [_Deal(_ROOT_LEVEL)], [1.0]
    count, first = [], []
    for place in range(MAX_DEALS):
        if place == len(deals):
            break
        children = dealer.merged(deals[place])
        count.append(len(children))
        first.append(len(deals))
        deals.extend(child for child, _ in children)
        probability.extend(share for _, share in children)
    tree = DealTree(
        np.array(count, np.int32),
        np.array(first, np.int32),
        np.array(probability),
        np.array([dealer.buckets(deal) for deal in deals], np.int32),
        np.array([dealer.result(deal) for deal in deals], np.float64),
    )
    return tree, deals


class _Layout(NamedTuple):
    """Position of each block's rows in its player's table. B blocks, N public nodes, L levels of deals.

    slot, row    [B] int64      first slot and row of the block
    width, rows  [B] int64      slots and rows of one bucket
    place        [B, K] int64   index of each bucket among those that can be dealt, -1 for the others
    target       [N] int64      level of deals that a public node needs
    dealt        [L] uint8      1: a chance record leads from this level to the next
    """

    slot: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    width: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    dealt: npt.NDArray[np.uint8]


class _ExpandedRecords(NamedTuple):
    """Records to fill: columns of `TreeArrays`, parents, and the sources of labels.

    origin  [N] int32  public node, or ~d for node d of the deal tree
    """

    arrays: TreeArrays
    parent: npt.NDArray[np.int32]
    origin: npt.NDArray[np.int32]


@njit
def _fill(public, deals, layout, records, stack):
    """Write every record, depth first, siblings together, and return the number of records.

    stack  [`_most_waiting`, 4] int32 scratch
    """
    arrays = records.arrays
    written, height = 1, 1
    stack[0] = 0
    while height > 0:
        height -= 1
        record, node, deal, level = stack[height]
        target = layout.target[node]
        while level < target and layout.dealt[level] == 0:
            deal = deals.first[deal]
            level += 1
        chance = level < target
        if not chance and public.kind[node] == TERMINAL:
            arrays.fixed[record] = public.fixed[node] + public.showdown[node] * deals.result[deal]
            continue
        if chance:
            arrays.kind[record], count = CHANCE, deals.count[deal]
        else:
            arrays.kind[record], count = DECISION, public.count[node]
            block, player = public.block[node], public.player[node]
            place = layout.place[block, deals.bucket[deal, player]]
            arrays.player[record], arrays.block[record] = player, player
            arrays.slot[record] = layout.slot[block] + place * layout.width[block] + public.slot[node]
            arrays.row[record] = layout.row[block] + place * layout.rows[block] + public.row[node]
        arrays.count[record], arrays.first[record] = count, written
        for a in range(count - 1, -1, -1):
            child = written + a
            records.parent[child] = record
            next_node, next_deal, next_level = node, deal, level
            if chance:
                next_deal, next_level = deals.first[deal] + a, level + 1
                arrays.probability[child] = deals.probability[next_deal]
                records.origin[child] = ~next_deal
            else:
                next_node = public.first[node] + a
                records.origin[child] = next_node
            stack[height, 0], stack[height, 1] = child, next_node
            stack[height, 2], stack[height, 3] = next_deal, next_level
            height += 1
        written += count
    return written


@dataclass(frozen=True)
class ExpandedGame:
    """A card game as a tree of histories, with the information to convert strategies.

    game      the expanded game, without cards beside its tree
    original  the game with cards
    dealt     B × [K_b] int64   buckets of each block of the original that can be dealt, ascending
    """

    game: Game
    original: Game
    dealt: tuple[npt.NDArray[np.int64], ...]


def expand(game: Game, *, max_histories: int = MAX_HISTORIES) -> ExpandedGame:
    """Return the game with its cards in the tree; infosets are named by hand, board and betting line.

    Raises `ValueError` for a game without listed cards, and above MAX_DEALS deals or `max_histories` histories.
    """
    if not game.cards.dealt:
        raise ValueError(f"{game.name} has every history in its tree already: there are no cards to expand")
    cards = game.cards.listed()
    deals = int((cards.reach[0] > 0).sum()) * int((cards.reach[1] > 0).sum()) * len(cards.board_cards[-1])
    if deals > MAX_DEALS:
        raise ValueError(
            f"{game.name} has up to {deals:,} deals of two hands and a board; at most {MAX_DEALS:,} can be expanded: "
            "leave the cards beside the tree"
        )
    dealer = _Dealer(cards)
    tree, nodes = _deal_tree(dealer)
    layout, dealt = _layout(game, cards, tree, np.array([deal.level for deal in nodes]))
    histories = _count(game, layout, np.bincount([deal.level for deal in nodes]))
    allowed = most_histories(max_histories)
    if histories > allowed:
        raise ValueError(f"{game.name} has {histories:,} histories when expanded, more than {allowed:,} allowed")
    records = _ExpandedRecords(
        blank_arrays(histories), np.full(histories, NO_PARENT, np.int32), np.zeros(histories, np.int32)
    )
    written = _fill(game.tree.arrays, tree, layout, records, np.zeros((_most_waiting(game, tree), 4), np.int32))
    if written != histories:
        raise RuntimeError(f"{written} histories were written and {histories} counted")
    names = cards.card_texts
    dealt_label = [dealer.label(deal, names) for deal in nodes]
    public_label = game.tree.label
    label = [public_label[at] if at >= 0 else dealt_label[~at] for at in records.origin.tolist()]
    compiled = CompiledTree(
        records.arrays,
        records.parent,
        label,
        1,
        np.array([sum(len(dealt[b]) * int(layout.width[b]) for b in range(p, len(dealt), 2)) for p in range(2)]),
        np.array([sum(len(dealt[b]) * int(layout.rows[b]) for b in range(p, len(dealt), 2)) for p in range(2)]),
        _infoset_names(game, dealt, nodes, dealer),
    )
    expanded = Game(
        f"{game.name} with cards", compiled, NO_CARDS, game.offset_chips, game.big_blind_chips, pot_chips=game.pot_chips
    )
    return ExpandedGame(expanded, game, tuple(dealt))


def _layout(
    game: Game, cards: ListedCards, deals: DealTree, level: npt.NDArray[np.int64]
) -> tuple[_Layout, list[npt.NDArray[np.int64]]]:
    """Return the layout of rows, and for each block the buckets that can be dealt."""
    tree = game.tree
    blocks = 2 * tree.streets
    dealt = [np.unique(deals.bucket[level == _PAIR_LEVEL + 1 + b // 2, b % 2]).astype(np.int64) for b in range(blocks)]
    place = np.full((blocks, int(game.buckets.max())), -1, np.int64)
    slot, row = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
    for block, buckets in enumerate(dealt):
        place[block, buckets] = np.arange(len(buckets))
        if block >= 2:
            slot[block] = slot[block - 2] + len(dealt[block - 2]) * int(tree.row_slots[block - 2])
            row[block] = row[block - 2] + len(dealt[block - 2]) * int(tree.row_count[block - 2])
    arrays, last = tree.arrays, _PAIR_LEVEL + tree.streets
    target = arrays.block // 2 + _PAIR_LEVEL + 1
    ends = arrays.kind == TERMINAL
    target[ends] = np.where(arrays.showdown[ends] != 0, last, target[tree.parent[ends]])
    sizes = [board.shape[1] for board in cards.board_cards]
    chance = [1, 1, int(len(cards.board_cards[0]) > 1), *(int(more > less) for less, more in pairwise(sizes))]
    return _Layout(
        slot,
        row,
        tree.row_slots.astype(np.int64),
        tree.row_count.astype(np.int64),
        place,
        target.astype(np.int64),
        np.array(chance, np.uint8),
    ), dealt


def _count(game: Game, layout: _Layout, deals: npt.NDArray[np.int64]) -> int:
    """Return the number of records: public nodes times the deals they need, plus chance records."""
    target = layout.target
    before = np.concatenate([[_ROOT_LEVEL], target[game.tree.parent[1:]]])
    chance = np.concatenate([[0], np.cumsum(deals[: len(layout.dealt)] * layout.dealt)])
    return int((deals[target] + chance[target] - chance[before]).sum())


def _most_waiting(game: Game, deals: DealTree) -> int:
    """Return an upper bound of the stack height of `_fill`: all siblings along a longest path."""
    depth = np.zeros(len(game.tree.parent), np.int64)
    for node, above in enumerate(game.tree.parent[1:].tolist(), 1):
        depth[node] = depth[above] + 1
    longest = int(depth.max()) + _PAIR_LEVEL + game.tree.streets
    return 1 + (longest + 1) * int(max(game.tree.arrays.count.max(), deals.count.max()))


def _infoset_names(
    game: Game, dealt: list[npt.NDArray[np.int64]], deals: list[_Deal], dealer: _Dealer
) -> tuple[list[str], list[str]]:
    """Return the names of both players' infosets in order of rows, such as "Kd" and "Kd Qc c/r5".

    The hand is the first of its bucket.
    """
    tree, names = game.tree, dealer.cards.card_texts
    line = all_lines(tree)
    shown: list[dict[int, str]] = [{} for _ in dealt]
    for deal in deals:
        if deal.level > _PAIR_LEVEL:
            street = deal.level - _PAIR_LEVEL - 1
            board = "".join(names[int(card)] for card in dealer.cards.board_cards[street][deal.board])
            for player, (hand, bucket) in enumerate(zip((deal.hand_0, deal.hand_1), dealer.buckets(deal), strict=True)):
                text = f"{dealer.cards.hand_names[hand]} {board}".rstrip()
                shown[2 * street + player].setdefault(bucket, text)
    found: tuple[list[str], list[str]] = ([], [])
    for block, buckets in enumerate(dealt):
        own = np.flatnonzero((tree.arrays.kind == DECISION) & (tree.arrays.block == block))
        lines = [line[node] for node in own[np.argsort(tree.arrays.row[own])].tolist()]
        for bucket in buckets.tolist():
            found[block % 2].extend(f"{shown[block][bucket]} {text}".rstrip() for text in lines)
    return found
